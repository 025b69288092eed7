"""Rows on several dofs: couplings of joints, limits of ball joints, dry friction of free joints; and their adjoint.

    couple    r = q_a - P(q_b),  J = (1, -P'(q_b)),  both ways
    ball      r = largest angle - angle - margin,  J = -axis in the axes of the body,  one way
    free_dry  as dry friction of other joints

Equations: theory 9.7, 9.12. The rows of tendons are in `tendon_rows`.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Row, arctan2, loop, maximum, select, sqrt, switch
from ...context import Step
from ...spatial import Quat, Vec3, cross, dot, quat_normalize
from .families import BIG, MULTI_DOF, velocities
from .impedance import impedance
from .limit_rows import add_friction_bars, coefficient_bar, softness_bars, spring_row_bars
from .soft_problem import BALL, COUPLE, FREE_DRY, MULTI_DOF_KINDS
from .tendon_rows import TENDON_BARS, TENDON_ROWS, RowFunction, add_coefficient, polynomial


def add_multi_dof_rows(s: Step) -> None:
    """Compute coefficients, references and stiffness of all rows on several degrees of freedom."""
    problem = s.constraints
    if not problem.has(*MULTI_DOF_KINDS):
        return
    for n in loop(problem.multi_dofs):
        row = problem.multi_dof[n]
        _by_kind(s, n, row, {COUPLE: _couple, BALL: _ball, FREE_DRY: _free_dry} | TENDON_ROWS)
        problem.coupled[0] = maximum(problem.coupled[0], select(row.D > 0.0, 1.0, 0.0))


def multi_dof_bars(s: Step, n: Any, row: Row) -> None:
    """Add the cotangents of positions, velocities and parameters of a row, from J nu (row.z), kappa (row.d) and its force
    (row.f)."""
    _by_kind(s, n, row, {COUPLE: _couple_bars, BALL: _ball_bars, FREE_DRY: _free_dry_bars} | TENDON_BARS)


def _by_kind(s: Step, n: Any, row: Row, functions: dict[int, RowFunction]) -> None:
    """Call the function of the row's kind."""
    cases = {k: (lambda f=f: f(s, n, row)) for k, f in functions.items() if s.constraints.has(MULTI_DOF_KINDS[k])}
    switch(s.constraints.multi_dof_kind[n], cases)


# -- coupled joints ----------------------------------------------------------------------------------------------------------
def _couple(s: Step, n: Any, row: Row) -> None:
    """Coupling of two joints, or of one with a constant."""
    problem = s.constraints
    e, first = problem.multi_dof_of[n], problem.entry[n]
    own, soft = s.const.equality[e], s.const.equality[e].soft
    problem.coef[first] = 1.0

    def both() -> Any:
        value, slope, _ = polynomial(s, e, s.q[problem.couple_qb[e]])
        problem.coef[first + 1] = -slope
        return value

    value = switch(problem.couple_two[e], {1: both, 0: lambda: own.polynomial.c0})
    r = s.q[problem.couple_qa[e]] - value
    d = impedance(soft, r, problem.square).d
    row.r, row.D, row.low, row.high = r, d / (1.0 - d) * own.g, -BIG, BIG
    row.ref = -(soft.b * MULTI_DOF.jacobian_product(s, n, row, velocities(s))) - soft.k * d * r


def _couple_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of a coupling."""
    problem = s.constraints
    e, first = problem.multi_dof_of[n], problem.entry[n]
    own, soft, bars = s.const.equality[e], s.const.equality[e].soft, s.bars
    d_bar, r_bar, d = spring_row_bars(s, soft, row)
    a = problem.entry_dof[first]
    bars.v[a] = bars.v[a] - soft.b * row.d
    bars.tangent[a] = bars.tangent[a] + r_bar

    def both() -> None:
        b, x = problem.entry_dof[first + 1], s.q[problem.couple_qb[e]]
        _, slope, bend = polynomial(s, e, s.q[problem.couple_qb[e]])
        slope_bar = -coefficient_bar(s, row, b, soft.b)
        bars.v[b] = bars.v[b] + soft.b * row.d * slope
        bars.tangent[b] = bars.tangent[b] + slope_bar * bend - r_bar * slope
        if bars.const is not None:
            power, below = 1.0, 0.0
            for j in range(5):
                add_coefficient(s, e, j, below * j * slope_bar - power * r_bar)
                below, power = power, power * x

    def alone() -> None:
        if bars.const is not None:
            add_coefficient(s, e, 0, -r_bar)

    switch(problem.couple_two[e], {1: both, 0: alone})
    if bars.const is not None:
        bar = bars.const.equality[e]
        bar.soft += softness_bars(s, soft, row, d_bar, (d, MULTI_DOF.jacobian_product(s, n, row, velocities(s))))
        bar.g += row.z * row.f / own.g


# -- limits of ball joints -----------------------------------------------------------------------------------------------------
class _Turned:
    """Angle within 0 and pi, axis, sine and cosine of half the angle of a rotation. Without rotation the axis is x."""

    def __init__(self, q: Quat):
        q = quat_normalize(q)
        flip = select(q.w < 0.0, -1.0, 1.0)
        u, self.cos = q.u * flip, q.w * flip
        self.sin = sqrt(maximum(dot(u, u), 1e-30))
        self.axis = select(self.sin > 1.5e-15, u / self.sin, Vec3(1.0, 0.0, 0.0))
        self.angle = 2.0 * arctan2(self.sin, self.cos)


def _ball(s: Step, n: Any, row: Row) -> None:
    """Limit of a ball joint."""
    problem = s.constraints
    own, first = s.const.link[problem.multi_dof_of[n]], problem.entry[n]
    turned, soft = _Turned(s.q.struct(problem.multi_dof_q[n], Quat)), own.limit
    for k, x in enumerate(turned.axis.leaves()):
        problem.coef[first + k] = -x
    r = maximum(own.low, own.high) - turned.angle - own.limit_margin
    d = impedance(soft, r, problem.square).d
    row.r, row.D, row.low, row.high = r, select(r < 0.0, d / (1.0 - d) * own.limit_g, 0.0), 0.0, BIG
    row.ref = -(soft.b * MULTI_DOF.jacobian_product(s, n, row, velocities(s))) - soft.k * d * r


def _ball_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of the limit of a ball joint.

    A rotation th in the axes of the body changes the angle by axis . th, and the axis by (cot (th - axis axis . th) +
    axis x th)/2.
    """
    problem, bars = s.constraints, s.bars
    i, first = problem.multi_dof_of[n], problem.entry[n]
    own, turned = s.const.link[i], _Turned(s.q.struct(problem.multi_dof_q[n], Quat))
    soft, axis = own.limit, turned.axis
    d_bar, r_bar, d = spring_row_bars(s, soft, row)
    dofs = [problem.entry_dof[first + k] for k in range(3)]
    axis_bar = Vec3(*(-coefficient_bar(s, row, k, soft.b) for k in dofs))
    across = axis_bar - axis * dot(axis, axis_bar)
    turn_bar = (across * (turned.cos / turned.sin) + cross(axis_bar, axis)) * 0.5 - axis * r_bar
    for k, bar, x in zip(dofs, turn_bar.leaves(), axis.leaves(), strict=True):
        bars.tangent[k] = bars.tangent[k] + select(row.D > 0.0, bar, 0.0)
        bars.v[k] = bars.v[k] + soft.b * row.d * x
    if bars.const is not None:
        bar, upper = bars.const.link[i], select(own.high >= own.low, 1.0, 0.0)
        bar.high += r_bar * upper
        bar.low += r_bar * (1.0 - upper)
        bar.limit_margin -= r_bar
        bar.limit += softness_bars(s, soft, row, d_bar, (d, MULTI_DOF.jacobian_product(s, n, row, velocities(s))))
        bar.limit_g += select(row.D > 0.0, row.z * row.f / own.limit_g, 0.0)


# -- dry friction of free joints -----------------------------------------------------------------------------------------
def _free_dry(s: Step, n: Any, row: Row) -> None:
    """Dry friction of a free joint."""
    problem = s.constraints
    k = problem.multi_dof_of[n]
    friction = s.const.dof[k]
    problem.coef[problem.entry[n]] = 1.0
    row.ref, row.r, row.D, row.low, row.high = -(friction.b * s.v[k]), 0.0, friction.D, -friction.dry, friction.dry


def _free_dry_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of dry friction of a free joint."""
    k = s.constraints.multi_dof_of[n]
    s.bars.v[k] = s.bars.v[k] - s.const.dof[k].b * row.d
    add_friction_bars(s, k, row)
