"""Joint limits and dry friction as rows on one degree of freedom, and their adjoint  (theory 9.7, 9.12).

limit   r = +-(q - limit) - margin,  y = +-a + b (+-v) + k d r,  a force above zero
dry     y = a + b v,                                              a force within +-eta
"""

from __future__ import annotations

from typing import Any

from ....compiler import Row, counter, loop, select, switch, when_any
from ...context import Step
from .families import BIG
from .impedance import Soft, impedance, impedance_vjp
from .motor_rows import motor_bars
from .soft_problem import DRY, LIMIT, MOTOR


def add_limit_rows(s: Step, count: counter) -> None:
    """Add the rows of all joints at or beyond a limit, and of all joints with dry friction."""
    problem = s.constraints
    if problem.has("limit"):
        for k in loop(problem.limits):
            i = problem.limit[k]
            own, x = s.const.link[i], s.q[s.model.link_q[i]]
            for sign, distance in ((1.0, x - own.low), (-1.0, own.high - x)):
                r = distance - own.limit_margin
                for _ in when_any(r < 0.0):
                    _add_limit(s, count, i, sign, r)
    if problem.has("dry"):
        for k in loop(problem.drys):
            dof = problem.dry[k]
            friction = s.const.dof[dof]
            for _ in when_any(friction.dry > 0.0):
                n = count.value
                row = problem.single[n]
                row.sign, row.ref, row.r = 1.0, -(friction.b * s.v[dof]), 0.0
                row.D, row.low, row.high = friction.D, -friction.dry, friction.dry
                problem.single_dof[n], problem.single_link[n], problem.single_kind[n] = dof, 0, DRY
                count.value = n + 1


def _add_limit(s: Step, count: counter, i: Any, sign: float, r: Any) -> None:
    """Add a limit of the joint of link i as a row."""
    problem, n = s.constraints, count.value
    row, own, k = problem.single[n], s.const.link[i], s.model.link_v[i]
    soft = own.limit
    d = impedance(soft, r, problem.square).d
    row.sign, row.r, row.D = sign, r, select(r < 0.0, d / (1.0 - d) * own.limit_g, 0.0)
    row.ref = -(soft.b * (sign * s.v[k])) - soft.k * d * r
    row.low, row.high = 0.0, BIG
    problem.single_dof[n], problem.single_link[n], problem.single_kind[n] = k, i, LIMIT
    count.value = n + 1


def single_bars(s: Step, n: Any, row: Row) -> None:
    """Add the cotangents of position, velocity and parameters of a row, from J nu (row.z), kappa (row.d) and its force
    (row.f)."""
    problem = s.constraints
    cases = {
        kind: (lambda f=f: f(s, n, row))
        for kind, f, name in (
            (LIMIT, _limit_bars, "limit"),
            (DRY, _dry_bars, "dry"),
            (MOTOR, motor_bars, "motor"),
        )
        if problem.has(name)
    }
    switch(problem.single_kind[n], cases)


def _limit_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of a limit."""
    i, k = s.constraints.single_link[n], s.constraints.single_dof[n]
    own, sign, kappa, r = s.const.link[i], row.sign, row.d, row.r
    soft = own.limit
    s.bars.v[k] = s.bars.v[k] - soft.b * kappa * sign
    d_bar, r_bar, d = spring_row_bars(s, soft, row)
    s.bars.tangent[k] = s.bars.tangent[k] + sign * r_bar
    if s.bars.const is not None:
        bar, low = s.bars.const.link[i], select(sign > 0.0, 1.0, 0.0)
        bar.low -= r_bar * low
        bar.high += r_bar * (1.0 - low)
        bar.limit_margin -= r_bar
        bar.limit += softness_bars(s, soft, row, d_bar, (d, sign * s.v[k]))
        bar.limit_g += select(r < 0.0, row.z * row.f / own.limit_g, 0.0)


def spring_row_bars(s: Step, soft: Soft, row: Row) -> tuple[Any, Any, Any]:
    """Return the cotangents of impedance and position of a row with a spring, and its impedance."""
    r, kappa = row.r, row.d
    curve = impedance(soft, r, s.constraints.square)
    d, active = curve.d, row.D > 0.0
    d_bar = select(active, row.z * row.f / (d * (1.0 - d)) - soft.k * r * kappa, 0.0)
    return d_bar, curve.slope * d_bar - select(active, soft.k * d * kappa, 0.0), d


def softness_bars(s: Step, soft: Soft, row: Row, d_bar: Any, of: tuple[Any, Any]) -> Soft:
    """Cotangents of stiffness, damping and impedance parameters of a row, for (impedance, J v)."""
    (d, rate), r, kappa = of, row.r, row.d
    own = Soft(-(d * r * kappa), -(kappa * rate), 0.0, 0.0, 0.0, 0.0, 0.0)
    return impedance_vjp(soft, r, s.constraints.square, d_bar) + own


def coefficient_bar(s: Step, row: Row, k: Any, b: Any) -> Any:
    """Cotangent of the coefficient of degree of freedom k in a row:  f nu_k - kappa (a_k + b v_k)"""
    return row.f * s.ws.mu[k] - row.d * (s.ws.qdd[k] + b * s.v[k])


def _dry_bars(s: Step, n: Any, row: Row) -> None:
    """Adjoint of dry friction."""
    k = s.constraints.single_dof[n]
    s.bars.v[k] = s.bars.v[k] - s.const.dof[k].b * row.d
    add_friction_bars(s, k, row)


def add_friction_bars(s: Step, k: Any, row: Row) -> None:
    """Add the cotangents of the dry friction parameters of degree of freedom k."""
    if s.bars.const is not None:
        bar, holds = s.bars.const.dof[k], row.K > 0.0
        bar.b -= row.d * s.v[k]
        bar.D -= select(holds, row.z * row.y, 0.0)
        bar.dry += select(holds, 0.0, select(row.y < 0.0, row.z, -row.z))
