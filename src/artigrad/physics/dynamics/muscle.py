"""Muscles: how strong they are at a length and a velocity, as MuJoCo has it, and the adjoint.

    L = low + (length - first)/L0,   V = velocity/(L0 speed),   L0 = (last - first)/(high - low)
    active gain  -force FL(L) FV(V),      passive force  -force passive FP(L)

first, last: the ends of the range of its length.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...staging import maximum, select, vjp_of
from ..tables import Muscle

LEAST = 1e-15


class MuscleBars(NamedTuple):
    """Cotangents of a muscle, of the ends of its range, of length and velocity."""

    muscle: Muscle
    first: Any
    last: Any
    length: Any
    velocity: Any


class _Normal:
    """Normal length and velocity."""

    def __init__(self, m: Muscle, first: Any, last: Any, length: Any, velocity: Any):
        self.m, self.first = m, first
        self.span = maximum(LEAST, m.high - m.low)
        self.L0 = maximum(LEAST, (last - first) / self.span)
        self.L = m.low + (length - first) / self.L0
        self.top = maximum(LEAST, self.L0 * m.speed)
        self.V = velocity / self.top

    def vjp(self, own: Muscle, L_bar: Any, V_bar: Any, top_bar: Any) -> MuscleBars:
        """own: cotangents of the muscle so far."""
        top_bar = top_bar - V_bar * self.V / self.top
        L0_bar = top_bar * self.m.speed - L_bar * (self.L - self.m.low) / self.L0
        span_bar = -(L0_bar * self.L0) / self.span
        more = Muscle(L_bar - span_bar, span_bar, 0.0, 0.0, 0.0, top_bar * self.L0, 0.0, 0.0)
        first_bar = -(L_bar / self.L0) - L0_bar / self.span
        return MuscleBars(own + more, first_bar, L0_bar / self.span, L_bar / self.L0, V_bar / self.top)


def _by_length(m: Muscle, L: Any) -> tuple[Any, Any, Any, Any, Any]:
    """FL, a bell of parabolas with its top at 1; z = |L - 1| in units of half its width on that side. FL, dFL/dz, dz/dL, and
    dz by the shortest and by the longest length."""
    left = L < 1.0
    half = maximum(LEAST, 0.5 * select(left, 1.0 - m.shortest, m.longest - 1.0))
    z = select(left, 1.0 - L, L - 1.0) / half
    rest = maximum(2.0 - z, 0.0)
    inner = z < 1.0
    by_half = z / half * 0.5
    return (
        select(inner, 1.0 - 0.5 * z * z, 0.5 * rest * rest),
        -select(inner, z, rest),
        select(left, -1.0, 1.0) / half,
        select(left, by_half, 0.0),
        select(left, 0.0, -by_half),
    )


def _by_velocity(m: Muscle, V: Any, order: int) -> tuple[Any, Any, Any]:
    """FV or its slope: the value, its own slope, and how it changes with the force at fastest lengthening."""
    y = m.lengthening - 1.0
    d = maximum(LEAST, y)
    shortens, still, lengthens = V < 0.0, V < -1.0, y > V
    if order == 0:
        left = select(still, 0.0, (V + 1.0) * (V + 1.0))
        right = select(lengthens, m.lengthening - (y - V) * (y - V) / d, m.lengthening)
        by_y = select(lengthens, 1.0 - (2.0 * (y - V) - (y - V) * (y - V) / d) / d, 1.0)
        slope = _by_velocity(m, V, 1)[0]
        return select(shortens, left, right), slope, select(shortens, 0.0, by_y)
    left, bend = select(still, 0.0, 2.0 * (V + 1.0)), select(still, 0.0, 2.0)
    right = select(lengthens, 2.0 * (y - V) / d, 0.0)
    by_y = select(lengthens, 2.0 * V / (d * d), 0.0)
    right_bend = select(lengthens, -2.0 / d, 0.0)
    return select(shortens, left, right), select(shortens, bend, right_bend), select(shortens, 0.0, by_y)


def _active(n: _Normal, order: int) -> Any:
    """The gain, or its slope along the velocity."""
    y = -(n.m.force * _by_length(n.m, n.L)[0] * _by_velocity(n.m, n.V, order)[0])
    return y / n.top if order else y


def _active_vjp(n: _Normal, order: int, y_bar: Any) -> MuscleBars:
    m = n.m
    FL, by_z, z_by_L, z_by_shortest, z_by_longest = _by_length(m, n.L)
    FV, slope, by_lengthening = _by_velocity(m, n.V, order)
    bar = y_bar / n.top if order else y_bar
    force_bar, z_bar, FV_bar = -(FL * FV * bar), -(m.force * FV * by_z * bar), -(m.force * FL * bar)
    top_bar = m.force * FL * FV * bar / n.top if order else 0.0
    own = Muscle(0.0, 0.0, force_bar, z_bar * z_by_shortest, z_bar * z_by_longest, 0.0, 0.0, FV_bar * by_lengthening)
    return n.vjp(own, z_bar * z_by_L, FV_bar * slope, top_bar)


def active(m: Muscle, first: float, last: float, length: float, velocity: float) -> float:
    """-force FL(L) FV(V)"""
    return _active(_Normal(m, first, last, length, velocity), 0)


@vjp_of(active)
def active_vjp(m: Muscle, first: float, last: float, length: float, velocity: float, y_bar: float) -> MuscleBars:
    return _active_vjp(_Normal(m, first, last, length, velocity), 0, y_bar)


def active_slope(m: Muscle, first: float, last: float, length: float, velocity: float) -> float:
    """Its change with the velocity."""
    return _active(_Normal(m, first, last, length, velocity), 1)


@vjp_of(active_slope)
def active_slope_vjp(m: Muscle, first: float, last: float, length: float, velocity: float, y_bar: float) -> MuscleBars:
    return _active_vjp(_Normal(m, first, last, length, velocity), 1, y_bar)


def passive(m: Muscle, first: float, last: float, length: float) -> float:
    """-force passive FP(L); FP grows from L = 1, as a parabola, then straight."""
    n = _Normal(m, first, last, length, 0.0)
    x = maximum(n.L - 1.0, 0.0) / maximum(LEAST, 0.5 * (m.longest - 1.0))
    return -(m.force * m.passive * select(x < 1.0, 0.5 * x * x, x - 0.5))


@vjp_of(passive)
def passive_vjp(m: Muscle, first: float, last: float, length: float, y_bar: float) -> tuple[Muscle, Any, Any, Any]:
    n = _Normal(m, first, last, length, 0.0)
    half = maximum(LEAST, 0.5 * (m.longest - 1.0))
    x = maximum(n.L - 1.0, 0.0) / half
    FP, bar = select(x < 1.0, 0.5 * x * x, x - 0.5), -(m.force * m.passive * y_bar)
    x_bar = select(x < 1.0, x, 1.0) * bar
    own = Muscle(0.0, 0.0, -(m.passive * FP * y_bar), 0.0, -0.5 * x_bar * x / half, 0.0, -(m.force * FP * y_bar), 0.0)
    found = n.vjp(own, x_bar / half, 0.0, 0.0)
    return found.muscle, found.first, found.last, found.length
