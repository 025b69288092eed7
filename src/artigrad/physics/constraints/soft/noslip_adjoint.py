"""Adjoint of the noslip sweeps, exact for the sweeps that were run  (theory 9.15).

It runs backwards through the tape of forces before each update. With m = M^-1 a_bar, to which each update adds M^-1
J_i^T y_bar_i,

    J_bar_i = y_bar_i a + f_i mu  +  X_i,        M_bar = -mu a^T - sum of M^-1 J_i^T X_i^T / 2

where a and f are those after the last sweep, mu is m before the first, and X_i accumulates the differences of forces
and accelerations from these at each update of row i. The first two terms are those of any row under its force; X is
propagated to poses along the paths of contacts, and to the mass matrix. There remain cotangents of the forces of
Newton's method: J mu of every row, plus those of friction and of normal forces. They pass through the adjoint of the
soft law at its own solution.
"""

from __future__ import annotations

from copy import copy as copy_of
from functools import partial
from typing import Any

from ....compiler import Reals, Row, copy, counter, loop, select, to_real, when_any
from ... import joints
from ...context import Step
from ...dynamics import articulated
from ...dynamics.forward_dynamics import forces
from ...dynamics.momentum import mass_times_vjp
from ...kinematics import clear_pose_bars, kinematics_vjp
from ...margin import keep_speed
from ...spatial import Mat3, Motion, Vec3, contact_frame_vjp, cross
from ...transmissions.transmission import clear_line_bars, kinematics, lines_vjp
from ..narrowphase import ContactBars, add_contact_bars, saved_geometry
from ..paths import path_bars
from .adhesion import apply_adhesion
from .adjoint import force_bar_or_zero, soft_multipliers
from .assemble_rows import assemble_rows
from .cones import pressed_edges
from .ellipse import in_ellipse_vjp
from .families import WRENCH, Block, Motions, every_row
from .newton import newton
from .noslip import (
    add_scaled,
    block,
    by_unit,
    cost_reduction,
    dot_dofs,
    dry_rows,
    friction_contacts,
    friction_directions,
    is_worse,
    noslip,
    residuals,
    row_of,
    solve_cone,
)
from .slip_problem import FIRST
from .soft_problem import FREE_DRY, TENDON_DRY


def recompute(s: Step) -> None:
    """Run stages 1 to 4: the sweeps start from the result of Newton's method."""
    kinematics(s)
    forces(s)
    assemble_rows(s)
    apply_adhesion(s)
    newton(s)
    noslip(s)


# -- the sweeps ------------------------------------------------------------------------------------------------------------
def multipliers(s: Step, qdd_bar: Reals) -> None:
    """Compute ws.mu = mu. Rows store final forces in f, -y_bar in d, and the cotangents of Newton's forces in `ahead`."""
    problem, nv = s.constraints, s.model.nv
    articulated.factor(s)
    articulated.clear_forces(s)
    articulated.solve(s, qdd_bar, problem.slip_mu)
    _start(s)
    for k in loop(s.options.soft.noslip, inwards=True):
        tape = problem.slip_tape.shifted(k * problem.slips)
        for u in loop(problem.slip_count[0], inwards=True):
            ran = to_real(k) < problem.ran[problem.unit_tree[u]] - 0.5
            for _ in when_any(ran):
                by_unit(s, u, partial(_update_vjp, s, ran, tape))
    copy(problem.slip_mu, s.ws.mu, nv)
    s.link[0].y = Motion.zero()
    for i in loop(1, s.model.nl):
        s.link[i].y = s.link[s.model.parent[i]].y + joints.apply(s, i, s.ws.mu)
    _finish(s)


def _start(s: Step) -> None:
    """Initialize the cotangents of the final friction forces, if the loss has any, and clear the others."""
    problem, r = s.constraints, counter(FIRST)
    for n in loop(FIRST, problem.slip_count[1]):
        slip, X = problem.slip[n], row_of(s, problem.slip_J_bar, n)
        slip.f_bar, slip.mu_bar, slip.bound_bar, slip.y_bar = 0.0, 0.0, 0.0, 0.0
        for k in loop(s.model.nv):
            X[k] = 0.0
    for family, n, row in every_row(s):
        row.z, row.d = row.f * 0.0, row.f * 0.0
        row.ahead = force_bar_or_zero(s, family, n, row)
    for _, _, _, row in dry_rows(s):
        problem.slip[r.value].f_bar = row.ahead
        r.value = r.value + 1
    for family, n in friction_contacts(s):
        row, first = getattr(problem, family.name)[n], getattr(problem, f"{family.name}_slip")[n]
        for d, bar in enumerate(row.ahead.leaves()[1:]):
            problem.slip[first + d].f_bar = bar


def _update_vjp(s: Step, ran: Any, tape: Reals, first: Any, n: int) -> None:
    """Adjoint of the update of one unit, for the SIMD lanes that ran it."""
    problem, count = s.constraints, max(n, 1)
    rows = [problem.slip[first + d] for d in range(count)]
    J, W, X = (
        [row_of(s, table, first + d) for d in range(count)]
        for table in (problem.slip_J, problem.slip_W, problem.slip_J_bar)
    )
    old = [select(ran, tape[first + d], row.f) for d, row in enumerate(rows)]
    change = [row.f - f for row, f in zip(rows, old, strict=True)]
    multiplier = [dot_dofs(s, x, problem.slip_mu) for x in J]  # J m
    f_bar = [row.f_bar + x for row, x in zip(rows, multiplier, strict=True)]
    for k in loop(s.model.nv):
        m, back = problem.slip_mu[k], problem.sliding[k]
        for x, w, c in zip(X, W, change, strict=True):
            x[k] = x[k] + c * m
            back = back - w[k] * c
        problem.sliding[k] = back
    y = residuals(s, first, count)
    x_of, started = (
        _cone_vjp(s, first, (old, y), f_bar, ran) if n else _row_vjp(s, rows[0], old[0], y[0], f_bar[0], ran)
    )
    after = s.ws.qdd
    for k in loop(s.model.nv):
        moved, pulled = 0.0, 0.0
        for w, x, c in zip(W, x_of, change, strict=True):
            moved, pulled = moved + w[k] * x, pulled + w[k] * c
        apart = problem.sliding[k] - after[k]
        for own, x, c in zip(X, x_of, change, strict=True):
            # y_bar = -x, and A_bar = -x change^T
            own[k] = own[k] - x * apart - x * pulled - c * moved
        problem.slip_mu[k] = problem.slip_mu[k] - moved
    for row, f, x, bar, seen in zip(rows, old, x_of, started, multiplier, strict=True):
        row.y_bar = row.y_bar - x
        row.f_bar = select(ran, bar - seen, row.f_bar)
        row.f = f


def _row_vjp(s: Step, row: Row, f: Any, y: Any, f_bar: Any, ran: Any) -> tuple[list[Any], list[Any]]:
    """Return x = -y_bar and the cotangent of the previous force of a single row; add that of its bound."""
    wanted, bound = f - y * row.inv, row.bound
    inside = abs(wanted) < bound
    free = select(ran & inside, f_bar, 0.0)
    row.bound_bar = row.bound_bar + select(ran, select(inside, 0.0, select(wanted < 0.0, -f_bar, f_bar)), 0.0)
    keep_speed(s, select(ran & (bound > 0.0), abs(bound - abs(wanted)) / row.inv, 1e30) * s.dt)
    return [free * row.inv], [free]


def _cone_vjp(
    s: Step, first: Any, given: tuple[list[Any], list[Any]], f_bar: list[Any], ran: Any
) -> tuple[list[Any], list[Any]]:
    """Adjoint of the update of a cone, with the cotangents of the normal force and of the coefficients. given: f and y."""
    f, y = given
    n = len(f)
    rows = [s.constraints.slip[first + d] for d in range(n)]
    mu, found, A = [row.mu for row in rows], solve_cone(s, first, n, f, y), block(s, first, n)
    undone = is_worse(cost_reduction(A, [a - b for a, b in zip(found.f, f, strict=True)], y))
    passed = [select(undone, bar, 0.0) for bar in f_bar]
    bars = in_ellipse_vjp(found, mu, rows[0].bound, [select(undone, 0.0, bar) for bar in f_bar])
    rows[0].bound_bar = rows[0].bound_bar + select(ran, bars.r, 0.0)
    for row, bar in zip(rows, bars.mu, strict=True):
        row.mu_bar = row.mu_bar + select(ran, bar, 0.0)
    x = [select(ran, a, 0.0) for a in bars.x]
    started = []
    for i in range(n):
        total: Any = 0.0
        for j in range(n):
            total = total + A[j][i] * x[j]
        started.append(total + passed[i])
    return x, started


def _finish(s: Step) -> None:
    """Compute the results of the sweeps for rows: -y_bar of friction, and all cotangents of Newton's forces."""
    problem, mu, r = s.constraints, Motions("y", s.ws.mu), counter(FIRST)
    for family, n, row in every_row(s):
        row.ahead = row.ahead + family.jacobian_product(s, n, row, mu)
    for family, kind, n, row in dry_rows(s):
        slip = problem.slip[r.value]
        _settle(s, r.value, row.f - slip.f)
        row.d = -slip.y_bar
        row.ahead = family.jacobian_product(s, n, row, mu) + slip.f_bar
        _dry_bound_bar(s, kind, n, slip.bound_bar)
        r.value = r.value + 1
    for family, n in friction_contacts(s):
        _finish_contact(s, family, n)


def _settle(s: Step, r: Any, change: Any) -> None:
    """Compute X -= change mu: the total change of forces is included in the final equation of motion."""
    add_scaled(s, row_of(s, s.constraints.slip_J_bar, r), -change, s.ws.mu)


def _dry_bound_bar(s: Step, kind: int, n: Any, bar: Any) -> None:
    """Add to the cotangent of dry friction of a joint or a tendon."""
    problem, const = s.constraints, s.bars.const
    if const is None:
        return
    if kind == TENDON_DRY:
        const.line[problem.multi_dof_of[n]].dry += bar
    else:
        const.dof[problem.multi_dof_of[n] if kind == FREE_DRY else problem.single_dof[n]].dry += bar


def _finish_contact(s: Step, family: Block, n: Any) -> None:
    """Compute the results of the sweeps for a contact, whose bounds depend on the normal force and the coefficients."""
    problem = s.constraints
    row, first = getattr(problem, family.name)[n], getattr(problem, f"{family.name}_slip")[n]
    slips = [problem.slip[first + d] for d in range(len(row.f.leaves()) - 1)]
    last, make = row.f.leaves(), type(row.f).from_leaves
    for d, slip in enumerate(slips):
        _settle(s, first + d, last[d + 1] - slip.f)
    row.d = make([0.0, *(-slip.y_bar for slip in slips)])
    seen = family.jacobian_product(s, n, row, Motions("y", s.ws.mu)).leaves()
    normal = row.ahead.leaves()[0]
    if s.options.cone == "elliptic":
        normal = normal + slips[0].bound_bar
    else:
        friction = family.friction_row(row)
        for slip, mu, N in zip(slips, friction.mu, pressed_edges(row.y.leaves(), friction), strict=True):
            slip.mu_bar = select(mu > 0.0, slip.bound_bar * N, 0.0)
            slip.bound_bar = slip.bound_bar * mu  # from here on the cotangent of the pressure of the two edges
    row.ahead = make([normal, *(x + slip.f_bar for x, slip in zip(seen[1:], slips, strict=True))])
    if s.bars.const is not None:
        bar = s.bars.const.pair[getattr(problem, f"{family.name}_of")[n]]
        for name, slip in zip(family.friction_names, slips, strict=True):
            setattr(bar, name, getattr(bar, name) + slip.mu_bar)


# -- J and M of the sweeps -------------------------------------------------------------------------------------------------
def sweep_bars(s: Step) -> None:
    """Propagate the cotangents X of Jacobian rows to poses, shapes and tendons, and to the mass matrix."""
    problem, r = s.constraints, counter(FIRST)
    for n in loop(FIRST, problem.slip_count[1]):
        W, X = (row_of(s, table, n) for table in (problem.slip_W, problem.slip_J_bar))
        for k in loop(s.model.nv):
            W[k] = -0.5 * W[k]
        mass_times_vjp(s, X, W)
    clear_pose_bars(s)
    if problem.has("tendon_dry"):
        clear_line_bars(s)
    for _, kind, n, _ in dry_rows(s):
        if kind == TENDON_DRY:
            X, t = row_of(s, problem.slip_J_bar, r.value), problem.multi_dof_of[n]
            for e in loop(s.model.line_entry[t], s.model.line_entry[t + 1]):
                s.ws.moment_bar[e] = s.ws.moment_bar[e] + X[s.model.entry_dof[e]]
        r.value = r.value + 1
    for family, n in friction_contacts(s):
        _contact_jacobian_bars(s, family, n)
    kinematics_vjp(s)
    if problem.has("tendon_dry"):
        lines_vjp(s)


def _contact_jacobian_bars(s: Step, family: Block, n: Any) -> None:
    """Propagate the accumulated cotangents X of the Jacobian rows of a contact to poses and shapes."""
    problem = s.constraints
    row, first = getattr(problem, family.name)[n], getattr(problem, f"{family.name}_slip")[n]
    k, m = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_at")[n]
    directions = friction_directions(family, row)
    X = tuple(row_of(s, problem.slip_J_bar, first + d) for d in range(len(directions)))

    def side(sign: float, link: Any, p: Vec3) -> tuple[Mat3, Vec3]:
        """Return the cotangents of the frame and of the point."""
        on = tuple(direction.force(p, sign) for direction in directions)
        columns, p_bar = [Vec3.zero()] * 3, Vec3.zero()
        moved = path_bars(s, link, on, (0.0,) * len(directions), X)
        for c, direction, V in zip((1, 2, 0, 1, 2), directions, moved, strict=False):
            columns[c] = columns[c] + (V.w if direction.turns else V.v + cross(V.w, p)) * sign
            if not direction.turns:
                p_bar = p_bar + cross(direction.axis * sign, V.w)
        return Mat3.columns(*columns), p_bar

    def one() -> tuple[Mat3, Vec3, Vec3]:
        frame_bar, p_bar = side(1.0, getattr(problem, f"{family.name}_link_b")[n], row.p)
        return frame_bar, p_bar, Vec3.zero()

    def both() -> tuple[Mat3, Vec3, Vec3]:
        frame_bar, p_bar, _ = one()
        more, p_a_bar = side(-1.0, getattr(problem, f"{family.name}_link_a")[n], row.p_a)
        return frame_bar + more, p_bar, p_a_bar

    frame_bar, p_b_bar, p_a_bar = family.on_links(s, n, one, both)
    which = (k, m, n if family is not WRENCH else problem.points + n)
    found = saved_geometry(s, *which)
    n_bar, t_bar = contact_frame_vjp(found.n, found.t, frame_bar)
    add_contact_bars(s, which, ContactBars(0.0, p_a_bar, p_b_bar, n_bar, t_bar))


# -- solution of Newton's method
# --------------------------------------------------------------------------------------------
def at_newton(s: Step) -> Step:
    """Return the step at the solution of Newton's method, with its accelerations and no cotangents but those of its
    forces."""
    ws, problem = copy_of(s.ws), copy_of(s.constraints)
    ws.qdd = problem.stuck
    problem.force_bar = problem.report_bar = problem.limit_bar = problem.held_bar = None
    problem.edges = s.options.cone == "pyramidal"
    return s.at(ws=ws, constraints=problem)


def newton_multipliers(s: Step) -> None:
    """Solve for the adjoint multipliers ws.mu of Newton's solution, given the cotangents of its forces in `row.ahead`
    only."""
    nothing = s.constraints.joint_force
    for k in loop(s.model.nv):
        nothing[k] = 0.0
    soft_multipliers(s, nothing, lambda family, n, row: row.ahead)
