"""Compliance of a row: from solref and solimp to stiffness, damping and impedance  (theory 9.1, 9.2).

    aref = -b J v - k d r,      D = 1/R = d/(1 - d) / w

r is the position of the row minus its margin, d(r) its impedance, between d0 and d1. Values out of range are clamped as
in MuJoCo, and have no gradient there. MuJoCo's solimp has five values, its solref two: a time constant and a damping
ratio, or, if negative, a stiffness and a damping.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Dual, Linear, clamp, exp, log, maximum, minimum, select, vjp_of

LEAST = 1e-15  # values below are treated as zero
LOW, HIGH = 1e-4, 0.9999  # range of an impedance


class SolRef(Linear):
    """Time constant (s) and damping ratio, or minus stiffness and minus damping."""

    t: float
    ratio: float


class SolImp(Linear):
    """Impedance at r = 0 and beyond the width, the width, and the midpoint and power of the curve between."""

    d0: float
    d1: float
    width: float
    mid: float
    power: float


class Soft(Linear):
    """Stiffness, damping and impedance parameters of a row, all in range."""

    k: float
    b: float
    d0: float
    d1: float
    width: float
    mid: float
    power: float


def _inside(x: Any, low: float, high: float) -> Any:
    """Return 1 where clamping leaves x unchanged, else 0."""
    return select(x > low, select(x < high, 1.0, 0.0), 0.0)


# -- stiffness and damping ---------------------------------------------------------------------------------------------
def soften(ref: SolRef, imp: SolImp, least: float) -> Soft:
    """t > 0:  k = 1/(d1 t ratio)^2,  b = 2/(d1 t),  with t at least `least`;   else  k = -t/d1^2,  b = -ratio/d1"""
    d0, d1, mid = (clamp(x, LOW, HIGH) for x in (imp.d0, imp.d1, imp.mid))
    standard = ref.t > 0.0
    t = select(standard, maximum(ref.t, least), 1.0)
    x, y = d1 * t * ref.ratio, d1 * t
    k = select(standard, 1.0 / maximum(x * x, LEAST), -ref.t / (d1 * d1))
    b = select(ref.ratio > 0.0, 2.0 / maximum(select(standard, y, d1 * ref.t), LEAST), -ref.ratio / d1)
    return Soft(k, b, d0, d1, maximum(imp.width, 0.0), mid, maximum(imp.power, 1.0))


@vjp_of(soften)
def soften_vjp(ref: SolRef, imp: SolImp, least: float, y_bar: Soft) -> tuple[SolRef, SolImp, float]:
    """Adjoint of `soften`."""
    y = soften(ref, imp, least)
    standard, springy = ref.t > 0.0, ref.ratio > 0.0
    held = select(ref.t > least, 0.0, 1.0)  # t is clamped at its least value
    t = select(standard, maximum(ref.t, least), 1.0)
    # t > 0: k ~ (d1 t ratio)^-2, b ~ (d1 t)^-1
    k_rate, b_rate = -2.0 * y.k * y_bar.k, -(y.b * y_bar.b)
    t_bar = (k_rate + select(springy, b_rate, 0.0)) / t
    direct_k, direct_b = y_bar.k / (y.d1 * y.d1), y_bar.b / y.d1
    ratio_of_k = k_rate / select(abs(ref.ratio) > 0.0, ref.ratio, 1.0)
    ref_bar = SolRef(
        select(standard, t_bar * (1.0 - held), -direct_k),
        select(standard, ratio_of_k, 0.0) + select(springy, 0.0, -direct_b),
    )
    d1_bar = y_bar.d1 + (k_rate + b_rate) / y.d1
    imp_bar = SolImp(
        y_bar.d0 * _inside(imp.d0, LOW, HIGH),
        d1_bar * _inside(imp.d1, LOW, HIGH),
        select(imp.width > 0.0, y_bar.width, 0.0),
        y_bar.mid * _inside(imp.mid, LOW, HIGH),
        select(imp.power > 1.0, y_bar.power, 0.0),
    )
    return ref_bar, imp_bar, select(standard, t_bar * held, 0.0)


# -- impedance ---------------------------------------------------------------------------------------------------------
class Curve(Linear):
    """Impedance and its slope."""

    d: float
    slope: float


def _share(s: Soft, r: Any) -> tuple[Any, Any, Any]:
    """Return x = |r|/width within [0, 1], the distance from the nearer end relative to its part, and whether x is below
    mid."""
    wide = s.width > LEAST
    x = minimum(select(wide, abs(r) / select(wide, s.width, 1.0), 1.0), 1.0)
    below = x <= s.mid
    return x, select(below, x / s.mid, (1.0 - x) / (1.0 - s.mid)), below


def _power(u: Any, p: Any, square: bool) -> Any:
    """Return u^(p-1) for 0 <= u <= 1."""
    if square and not isinstance(p, Dual):
        return u
    live = u > 0.0
    return select(live, exp((p - 1.0) * log(select(live, u, 1.0))), select(p > 1.0, 0.0, 1.0))


def impedance(s: Soft, r: Any, square: bool) -> Curve:
    """Impedance d = d0 + Y (d1 - d0) and its slope,  Y = mid u^p below mid, 1 - (1 - mid) u^p above. square: all powers
    are 2."""
    x, u, below = _share(s, r)
    v = _power(u, s.power, square)  # u^(p-1)
    Y = select(below, s.mid * (u * v), 1.0 - (1.0 - s.mid) * (u * v))
    wide = s.width > LEAST
    Y = select(wide, Y, 0.5)
    rate = select(x < 1.0, s.power * v / select(wide, s.width, 1.0), 0.0)  # dY/d|r|
    rate = select(wide, rate, 0.0)
    span = s.d1 - s.d0
    return Curve(s.d0 + Y * span, select(r < 0.0, -rate, rate) * span)


def impedance_vjp(s: Soft, r: Any, square: bool, d_bar: Any) -> Soft:
    """Return cotangents of the impedance parameters from that of d. The cotangent of r is slope * d_bar."""
    x, u, below = _share(s, r)
    v = _power(u, s.power, square)
    wide, inside = s.width > LEAST, x < 1.0
    Y = select(wide, select(below, s.mid * (u * v), 1.0 - (1.0 - s.mid) * (u * v)), 0.5)
    Y_bar = select(wide, select(inside, (s.d1 - s.d0) * d_bar, 0.0), 0.0)
    # Y = mid^(1-p) x^p;  1 - Y = (1-mid)^(1-p) (1-x)^p
    live = u > 0.0
    ln = log(select(live, u, 1.0))
    power_bar = select(below, s.mid, -(1.0 - s.mid)) * (u * v) * ln
    mid_bar = (1.0 - s.power) * (u * v)
    width_bar = -(s.power * v * x) / select(wide, s.width, 1.0)
    return Soft(0.0, 0.0, (1.0 - Y) * d_bar, Y * d_bar, width_bar * Y_bar, mid_bar * Y_bar, power_bar * Y_bar)


# -- mixing ------------------------------------------------------------------------------------------------------------
def mix_ref(a: SolRef, b: SolRef, share: float) -> SolRef:
    """Weighted mean share a + (1 - share) b of two time constants; else the smaller of each value."""
    both = (a.t > 0.0) & (b.t > 0.0)
    return a.map(lambda x, y: select(both, share * x + (1.0 - share) * y, minimum(x, y)), b)


@vjp_of(mix_ref)
def mix_ref_vjp(a: SolRef, b: SolRef, share: float, y_bar: SolRef) -> tuple[SolRef, SolRef, float]:
    """Adjoint of `mix_ref`."""
    both = (a.t > 0.0) & (b.t > 0.0)
    a_bar = y_bar.map(lambda g, x, y: select(both, share * g, select(x > y, 0.0, g)), a, b)
    b_bar = y_bar.map(lambda g, x, y: select(both, (1.0 - share) * g, select(x > y, g, 0.0)), a, b)
    moved: Any = 0.0
    for g, x, y in zip(y_bar.leaves(), a.leaves(), b.leaves(), strict=True):
        moved = moved + g * (x - y)
    return a_bar, b_bar, select(both, moved, 0.0)


def mix_share(a: float, b: float) -> float:
    """Weight of the first shape for mixing weights (solmix) a and b: a/(a + b), or all or nothing if one is zero."""
    first, second = a >= LEAST, b >= LEAST
    total = select(first, a, 0.0) + select(second, b, 0.0)
    some = total > 0.0
    return select(some, select(first, a, 0.0) / select(some, total, 1.0), 0.5)


@vjp_of(mix_share)
def mix_share_vjp(a: float, b: float, y_bar: float) -> tuple[float, float]:
    """Adjoint of `mix_share`."""
    both = select(a >= LEAST, select(b >= LEAST, 1.0, 0.0), 0.0)
    total = select(both > 0.5, a + b, 1.0)
    scale = both * y_bar / (total * total)
    return b * scale, -(a * scale)
