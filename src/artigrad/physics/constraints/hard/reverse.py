"""The adjoint of the Gauss-Seidel sweeps that were run, converged or not  (theory 5.18-5.22).

The sweeps are replayed backwards from a tape of what each update found. That gives the cotangents of A and b; with
Y = Mt^-1 J^T,

    J_bar  = (A_bar + A_bar^T) Y^T + b_bar v*^T + lam z^T        one field of joint velocities per row
    Mt_bar = -Y A_bar Y^T - z (Y lam)^T                          to the adjoint of the mass matrix
    v*_bar = v+_bar + J^T b_bar                                  to the adjoint of inverse dynamics

and J_bar goes to poses along the paths of its contact. Costlier than the implicit adjoint, and right for few sweeps.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Reals, carry, climb, copy, loop, maximum, select, to_real, when_any
from ... import joints
from ...context import Step
from ...dynamics import articulated
from ...dynamics.mass_matrix import composite_inertias, mass_matrix_vjp
from ...kinematics import clear_pose_bars, kinematics_vjp
from ...spatial import Mat3, Motion, Vec3, dot
from ...spatial.vectors import outer
from ..paths import along_paths, jacobian_product
from .contact import along_rows, rows_of
from .contact_problem import ContactProblem
from .kinds import of_kind
from .rows import apply_impulses, scale_free_motion, softness_bars, spare_vjp
from .update import Tangents, Update


# -- the sweeps --------------------------------------------------------------------------------------------------------
def sweeps_vjp(problem: ContactProblem, sweeps: int) -> None:
    """lam_bar of the last impulses -> b_bar, mu_bar, bound_bar of each contact, and A_bar in the place of K."""
    for c in loop(problem.count):
        row = problem.row[c]
        row.b_bar, row.inv_bar, row.mu_bar, row.bound_bar = Vec3.zero(), Vec3.zero(), 0.0, 0.0
    for g in loop(problem.islands[0]):
        start, end = problem.island[g], problem.island[g + 1]
        for c in problem.members(start, end):
            for d in problem.members(start, end):
                problem.K.put(problem.block(c, d), Mat3.zero())
        ran = problem.ran[g]
        for s in loop(sweeps, inwards=True):
            here = to_real(s) < ran
            for _ in when_any(here):
                for c in problem.members(start, end, inwards=True):
                    update_vjp(problem, s, c, end, here)
        for c in problem.members(start, end):
            row, at = problem.row[c], problem.block(c, c)
            A_bar = problem.K.struct(at, Mat3) + problem.friction.steps_vjp(problem.A.struct(at, Mat3), row.inv_bar)
            problem.K.put(at, A_bar + spare_vjp(problem, c, A_bar))


def update_vjp(problem: ContactProblem, s: Any, c: Any, end: Any, here: Any) -> None:
    """Adjoint of one update of `solver.sweep`, for the robots that made it.

    Contacts after c already have the impulses from before the sweep.
    """
    row = problem.row[c]
    after, inv, mu = row.lam_bar, row.inv, row.mu
    g = select(here, after, Vec3.zero())
    taped = problem.tape[s * problem.cap + c]
    lam, w, A = taped.lam, taped.w, problem.A.struct(problem.block(c, c), Mat3)
    row.lam = lam

    # forward, as in the sweep
    x_n = lam.x - w.x * inv.x
    n = maximum(x_n, 0.0)
    x = Update(A, w, lam, inv, n - lam.x, mu * n + row.bound)

    # backward
    t = problem.friction.tangents_vjp(x, Tangents(g.y, g.z))
    x_n_bar = select(x_n > 0.0, g.x + t.dn + mu * t.limit, 0.0)
    row.mu_bar += t.limit * n
    row.bound_bar += t.limit
    row.inv_bar += Vec3(-(x_n_bar * w.x), t.inv.y, t.inv.z)
    row.lam_bar = select(here, Vec3(x_n_bar - t.dn, t.lam.y, t.lam.z), after)
    w_bar = Vec3(-(x_n_bar * inv.x), t.w.y, t.w.z)
    row.b_bar += w_bar
    at = problem.block(c, c)
    problem.K.put(at, problem.K.struct(at, Mat3) + t.A)
    for d in problem.members(problem.start[c], end):
        other, place = problem.row[d], problem.block(c, d)
        problem.K.put(place, problem.K.struct(place, Mat3) + outer(w_bar, other.lam))
        other.lam_bar += problem.A.struct(place, Mat3).T @ w_bar


# -- the step ----------------------------------------------------------------------------------------------------------
def multipliers(s: Step, qdd_bar: Reals) -> None:
    """The sweeps backwards; then mu of the free motion, v*_bar = v+_bar + J^T b_bar, at the free accelerations."""
    problem = s.constraints
    articulated.clear_forces(s)
    # z = Mt^-1 v+_bar (times dt), and what the impulses see of it
    articulated.solve_inward(s, qdd_bar)
    scale_free_motion(s)
    for c in loop(problem.count):
        row, seen = problem.row[c], jacobian_product(s, c)
        if problem.force_bar is not None:
            seen = seen + along_rows(row.R, of_kind("force_bar", s, c))
        row.swept, row.lam_bar = row.lam, seen * (1.0 / s.dt)  # `swept` are the impulses that were applied
    articulated.solve_outward(s, problem.dual)
    sweeps_vjp(problem, s.options.hard.sweeps)

    apply_impulses(s, "b_bar", s.dt)
    articulated.solve_outward(s, s.ws.mu)
    copy(problem.free, s.ws.qdd, s.model.nv)


def jacobian_and_mass_matrix_bars(s: Step) -> None:
    """J_bar and Mt_bar, once the free motion has had its adjoint."""
    problem = s.constraints
    columns(s)
    A_bar_times_Y(s)
    mass_matrix_bars(s)
    clear_pose_bars(s)
    for c in loop(problem.count):
        of_kind("jacobian_bars", s, c)
        A_bar = problem.K.struct(problem.block(c, c), Mat3)
        softness_bars(s, c, A_bar.xx + A_bar.yy + A_bar.zz)
    kinematics_vjp(s)
    joints.store_columns(s)
    composite_inertias(s)
    mass_matrix_vjp(s, problem.M_bar)


def columns(s: Step) -> None:
    """Y = Mt^-1 J^T, a row of nv numbers for each row of each contact; of those only the ones of its group are there."""
    problem, still = s.constraints, Motion.zero()
    moved = problem.moved
    moved[0].n, moved[0].t, moved[0].s = still, still, still
    for g in loop(problem.groups):
        first, end = problem.dofs(g)
        for c in loop(problem.group[g], problem.group[g + 1]):
            Y = rows_of(s, problem.Y, c)
            for k in loop(first, end):
                for y in Y:
                    y[k] = 0.0
            for k, z in along_paths(s, c):
                for y, entry in zip(Y, z.leaves(), strict=True):
                    y[k] = y[k] + problem.root[k] * entry
            for n in loop(problem.link_first[g], problem.link_first[g + 1]):
                i = problem.links[n]
                parent, own = moved[s.model.parent[i]], moved[i]
                own.n, own.t, own.s = joints.solve_outward_rows(s, i, (parent.n, parent.t, parent.s), Y)


def A_bar_times_Y(s: Step) -> None:
    """X = (A_bar + A_bar^T) Y^T"""
    problem = s.constraints
    for c in loop(problem.count):
        X, (first, end) = rows_of(s, problem.X, c), problem.dofs(problem.in_group[c])
        for k in loop(first, end):
            for x in X:
                x[k] = 0.0
        for d in problem.members(problem.start[c], problem.end(c)):
            Y = rows_of(s, problem.Y, d)
            both = problem.K.struct(problem.block(c, d), Mat3) + problem.K.struct(problem.block(d, c), Mat3).T
            for k in loop(first, end):
                for x, more in zip(X, (both @ Vec3(*(y[k] for y in Y))).leaves(), strict=True):
                    x[k] = x[k] + more


def mass_matrix_bars(s: Step) -> None:
    """Compute the stored entries of Mt_bar = -Y A_bar Y^T - z (Y lam)^T.

    Both triangles are added. The first term is symmetric: -Y^T X / 2.
    """
    problem, m = s.constraints, s.model
    M_bar, dual, push = problem.M_bar, problem.dual, problem.push
    for k in loop(m.nv):
        push[k] = 0.0
    for c in loop(problem.count):
        first, end = problem.dofs(problem.in_group[c])
        Y, lam = rows_of(s, problem.Y, c), problem.row[c].swept * (1.0 / s.dt)
        for k in loop(first, end):
            push[k] = push[k] + dot(Vec3(*(y[k] for y in Y)), lam)

    def entry(k: Any, j: Any) -> Any:
        """Index of the entry of k and j, in either triangle."""
        return dual[k] * push[j] + push[k] * dual[j]

    for k in loop(m.nv):
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            M_bar[m.dof_row[k] + m.dof_depth[j - 1]] = -entry(k, j - 1)
        M_bar[m.dof_row[k] + m.dof_depth[k]] = -0.5 * entry(k, k)
    for g in loop(problem.groups):

        def pairing(k: Any, j: Any, g: Any = g) -> Any:
            total = carry(0.0)
            for c in loop(problem.group[g], problem.group[g + 1]):
                Y, X = rows_of(s, problem.Y, c), rows_of(s, problem.X, c)
                total.value = total.value + dot(Vec3(*(y[k] for y in Y)), Vec3(*(x[j] for x in X)))
            return total.value

        for n in loop(problem.link_first[g], problem.link_first[g + 1]):
            i = problem.links[n]
            for k in loop(m.link_v[i], m.link_v[i] + m.link_nv[i]):
                row = m.dof_row[k]
                for j in climb(m.dof_parent, m.dof_parent[k + 1]):
                    at = row + m.dof_depth[j - 1]
                    M_bar[at] = M_bar[at] - pairing(k, j - 1)
                at = row + m.dof_depth[k]
                M_bar[at] = M_bar[at] - 0.5 * pairing(k, k)
