"""Rows of tendons: limits, dry friction, couplings; and their adjoint.

low, high  r = +-(L - limit) - margin,  J = +-moment,  one way
dry        y = moment . (a + b v),  a force within +-eta
couple     r = L_a - P(L_b),  J = (moment_a, -P'(L_b) moment_b),  both ways
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ....compiler import Row, carry, loop, select, switch
from ...context import Step
from .families import BIG, MULTI_DOF, velocities
from .impedance import impedance
from .limit_rows import coefficient_bar, softness_bars, spring_row_bars
from .soft_problem import TENDON_COUPLE, TENDON_DRY, TENDON_HIGH, TENDON_LOW
from .stiff_rows import drop_immovable_multi_dof

RowFunction = Callable[[Step, Any, Row], None]


def _entries(s: Step, n: Any, t: Any, shift: Any = 0) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (entry of row n, entry of tendon t, degree of freedom). shift: position of the tendon's entries within the
    row."""
    start, first = s.model.line_entry[t], s.constraints.entry[n] + shift
    for e in loop(start, s.model.line_entry[t + 1]):
        yield first + e - start, e, s.model.entry_dof[e]


def _take_moment(s: Step, n: Any, t: Any, scale: Any, shift: Any = 0) -> None:
    """Set the coefficients of row n to the scaled moment of a tendon."""
    for c, e, _ in _entries(s, n, t, shift):
        s.constraints.coef[c] = scale * s.ws.moment[e]


def _take_moment_vjp(s: Step, n: Any, row: Row, t: Any, of: tuple[Any, Any], shift: Any = 0) -> None:
    """Add the cotangents of a tendon's moment and of v, for (scale, damping b of the row)."""
    scale, b = of
    for _, e, k in _entries(s, n, t, shift):
        bar = coefficient_bar(s, row, k, b)
        s.ws.moment_bar[e] = s.ws.moment_bar[e] + scale * bar
        s.bars.v[k] = s.bars.v[k] - b * row.d * scale * s.ws.moment[e]


def _relieve(s: Step, n: Any, row: Row, g: Any, length: Any) -> None:
    """Set the stiffness to zero if the row is nearly rigid and no joint moves it."""
    if s.constraints.has("stiff"):
        drop_immovable_multi_dof(s, n, row, g, length)


# -- limits ----------------------------------------------------------------------------------------------------------------
def _limit(sign: float, s: Step, n: Any, row: Row) -> None:
    """Limit of a tendon: lower (sign 1) or upper (-1)."""
    problem, t = s.constraints, s.constraints.multi_dof_of[n]
    own = s.const.line[t]
    soft = own.limit
    _take_moment(s, n, t, sign)
    r = sign * (s.ws.length[t] - (own.low if sign > 0 else own.high)) - own.margin
    d = impedance(soft, r, problem.square).d
    row.r, row.D, row.low, row.high = r, select(r < 0.0, d / (1.0 - d) * own.g, 0.0), 0.0, BIG
    row.ref = -(soft.b * MULTI_DOF.jacobian_product(s, n, row, velocities(s))) - soft.k * d * r
    _relieve(s, n, row, own.g, s.ws.length[t])


def _limit_bars(sign: float, s: Step, n: Any, row: Row) -> None:
    """Adjoint of a limit."""
    t = s.constraints.multi_dof_of[n]
    own, soft = s.const.line[t], s.const.line[t].limit
    d_bar, r_bar, d = spring_row_bars(s, soft, row)
    _take_moment_vjp(s, n, row, t, (sign, soft.b))
    s.ws.length_bar[t] = s.ws.length_bar[t] + sign * r_bar
    if s.bars.const is not None:
        bar = s.bars.const.line[t]
        if sign > 0:
            bar.low -= r_bar
        else:
            bar.high += r_bar
        bar.margin -= r_bar
        bar.limit += softness_bars(s, soft, row, d_bar, (d, MULTI_DOF.jacobian_product(s, n, row, velocities(s))))
        bar.g += select(row.D > 0.0, row.z * row.f / own.g, 0.0)


# -- dry friction ------------------------------------------------------------------------------------------------------------
def _dry(s: Step, n: Any, row: Row) -> None:
    """Dry friction of a tendon."""
    t = s.constraints.multi_dof_of[n]
    own = s.const.line[t]
    _take_moment(s, n, t, 1.0)
    rate = MULTI_DOF.jacobian_product(s, n, row, velocities(s))
    row.ref, row.r, row.D, row.low, row.high = -(own.b * rate), 0.0, own.D, -own.dry, own.dry
    _relieve(s, n, row, own.g, s.ws.length[t])


def _dry_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of dry friction."""
    t = s.constraints.multi_dof_of[n]
    own, holds = s.const.line[t], row.K > 0.0
    _take_moment_vjp(s, n, row, t, (1.0, own.b))
    if s.bars.const is not None:
        bar = s.bars.const.line[t]
        bar.b -= row.d * MULTI_DOF.jacobian_product(s, n, row, velocities(s))
        bar.D -= select(holds, row.z * row.y, 0.0)
        bar.dry += select(holds, 0.0, select(row.y < 0.0, row.z, -row.z))


# -- couplings ---------------------------------------------------------------------------------------------------------------
def polynomial(s: Step, e: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return P, P' and P'' of equality e at x."""
    P = s.const.equality[e].polynomial
    value = P.c0 + x * (P.c1 + x * (P.c2 + x * (P.c3 + x * P.c4)))
    slope = P.c1 + x * (2.0 * P.c2 + x * (3.0 * P.c3 + x * (4.0 * P.c4)))
    return value, slope, 2.0 * P.c2 + x * (6.0 * P.c3 + x * (12.0 * P.c4))


def add_coefficient(s: Step, e: Any, j: int, more: Any) -> None:
    """Add to the cotangent of coefficient j of the polynomial of equality e."""
    assert s.bars.const is not None
    bar = s.bars.const.equality[e]
    now = bar.polynomial
    bar.polynomial = type(now)(*(x + more if k == j else x for k, x in enumerate(now.leaves())))


def _behind(s: Step, a: Any) -> Any:
    """Position of the second tendon's entries in a coupling."""
    return s.model.line_entry[a + 1] - s.model.line_entry[a]


def _couple(s: Step, n: Any, row: Row) -> None:
    """Coupling of two tendons, or of one with a constant."""
    problem, e = s.constraints, s.constraints.multi_dof_of[n]
    own, soft, a, b = s.const.equality[e], s.const.equality[e].soft, problem.tendon_a[e], problem.tendon_b[e]
    _take_moment(s, n, a, 1.0)

    def both() -> Any:
        value, slope, _ = polynomial(s, e, s.ws.length[b])
        _take_moment(s, n, b, -slope, _behind(s, a))
        return value

    value = switch(problem.couple_two[e], {1: both, 0: lambda: own.polynomial.c0})
    r = s.ws.length[a] - value
    d = impedance(soft, r, problem.square).d
    row.r, row.D, row.low, row.high = r, d / (1.0 - d) * own.g, -BIG, BIG
    row.ref = -(soft.b * MULTI_DOF.jacobian_product(s, n, row, velocities(s))) - soft.k * d * r
    _relieve(s, n, row, own.g, s.ws.length[a])


def _couple_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of a coupling."""
    problem, e = s.constraints, s.constraints.multi_dof_of[n]
    own, soft, a, b = s.const.equality[e], s.const.equality[e].soft, problem.tendon_a[e], problem.tendon_b[e]
    d_bar, r_bar, d = spring_row_bars(s, soft, row)
    _take_moment_vjp(s, n, row, a, (1.0, soft.b))
    s.ws.length_bar[a] = s.ws.length_bar[a] + r_bar

    def both() -> None:
        x = s.ws.length[b]
        _, slope, bend = polynomial(s, e, x)
        _take_moment_vjp(s, n, row, b, (-slope, soft.b), _behind(s, a))
        slope_bar = -_moment_times_bars(s, n, row, b, soft.b)
        if problem.limit_bar is not None:  # force along the second tendon: -P' f
            slope_bar = slope_bar - row.f * problem.limit_bar[s.model.nl + s.model.ntendon + b]
        s.ws.length_bar[b] = s.ws.length_bar[b] + slope_bar * bend - r_bar * slope
        if s.bars.const is not None:
            power, below = 1.0, 0.0
            for j in range(5):
                add_coefficient(s, e, j, below * j * slope_bar - power * r_bar)
                below, power = power, power * x

    def alone() -> None:
        if s.bars.const is not None:
            add_coefficient(s, e, 0, -r_bar)

    switch(problem.couple_two[e], {1: both, 0: alone})
    if s.bars.const is not None:
        bar = s.bars.const.equality[e]
        bar.soft += softness_bars(s, soft, row, d_bar, (d, MULTI_DOF.jacobian_product(s, n, row, velocities(s))))
        bar.g += row.z * row.f / own.g


def _moment_times_bars(s: Step, n: Any, row: Row, t: Any, b: Any) -> Any:
    """Return the moment of a tendon times the cotangents of its coefficients."""
    total = carry(0.0)
    for _, e, k in _entries(s, n, t):
        total.value = total.value + s.ws.moment[e] * coefficient_bar(s, row, k, b)
    return total.value


TENDON_ROWS: dict[int, RowFunction] = {
    TENDON_LOW: partial(_limit, 1.0),
    TENDON_HIGH: partial(_limit, -1.0),
    TENDON_DRY: _dry,
    TENDON_COUPLE: _couple,
}
TENDON_BARS: dict[int, RowFunction] = {
    TENDON_LOW: partial(_limit_bars, 1.0),
    TENDON_HIGH: partial(_limit_bars, -1.0),
    TENDON_DRY: _dry_bars,
    TENDON_COUPLE: _couple_bars,
}
