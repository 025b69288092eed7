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

from .. import joints
from ..dynamics import Method, articulated, balance_vjp, clear_forces, forces
from ..dynamics.mass_matrix import composite_inertias, mass_matrix_vjp
from ..kinematics import clear_pose_bars, kinematics_vjp, placement_bar
from ..spatial import Force, Mat3, Motion, Vec3, at_point, cross, cross_force, dot
from ..spatial.vectors import outer
from ..staging import Reals, carry, climb, copy, loop, maximum, select, switch, to_real, when_any
from ..tables import Bars, Constants, Topology, Workspace
from . import find_impulses
from .gather import Law
from .implicit import approach, force_bar, limit_bars, seen_by, shape_bars
from .report import along_rows
from .rows import along_paths, apply_impulses, bounces, directions, rest_velocity, scale_free_motion
from .tables import Contacts


def impulses_taped(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """As `impulses_again`, with a tape of the sweeps, and the free accelerations kept."""
    contacts = method.contact.contacts
    forces(topology, const, q, v, u, ws)
    articulated.factor_pull(topology, const, method.damping_dt, ws, ws.tau)
    articulated.push(topology, ws, contacts.free)
    find_impulses(topology, const, method.contact, q, v, ws, tape=True)


# -- the sweeps --------------------------------------------------------------------------------------------------------
def sweeps_vjp(contacts: Contacts, sweeps: int) -> None:
    """lam_bar of the last impulses -> b_bar, mu_bar, bound_bar of each contact, and A_bar in the place of K."""
    for c in loop(contacts.group[contacts.groups]):
        row = contacts.row[c]
        row.b_bar, row.inv_bar, row.mu_bar, row.bound_bar = Vec3.zero(), Vec3.zero(), 0.0, 0.0
    for g in loop(contacts.groups):
        start, end = contacts.group[g], contacts.group[g + 1]
        for c in loop(start, end):
            for d in loop(start, end):
                contacts.K.put(contacts.block(c, d), Mat3.zero())
        ran = contacts.ran[g]
        for s in loop(sweeps, inwards=True):
            here = to_real(s) < ran
            for _ in when_any(here):
                for c in loop(start, end, inwards=True):
                    update_vjp(contacts, s, c, end, here)
        for c in loop(start, end):
            row, at = contacts.row[c], contacts.block(c, c)
            A_bar = contacts.friction.steps_vjp(contacts.A.struct(at, Mat3), row.inv, row.inv_bar)
            contacts.K.put(at, contacts.K.struct(at, Mat3) + A_bar)


def update_vjp(contacts: Contacts, s: Any, c: Any, end: Any, here: Any) -> None:
    """One update of `solver.sweep` backwards, for the robots that made it: contacts after c have their impulses of before
    the sweep already."""
    row = contacts.row[c]
    after, inv, mu = row.lam_bar, row.inv, row.mu
    g = select(here, after, Vec3.zero())
    taped = contacts.tape[s * contacts.cap + c]
    lam, w, A = taped.lam, taped.w, contacts.A.struct(contacts.block(c, c), Mat3)
    row.lam = lam

    # forward, as in the sweep
    x_n = lam.x - w.x * inv.x
    n = maximum(x_n, 0.0)
    dn, most = n - lam.x, mu * n + row.bound

    # backward
    t = contacts.friction.tangents_vjp(A, w, lam, inv, dn, most, (g.y, g.z))
    x_n_bar = select(x_n > 0.0, g.x + t.dn + mu * t.most, 0.0)
    row.mu_bar += t.most * n
    row.bound_bar += t.most
    row.inv_bar += Vec3(-(x_n_bar * w.x), *t.inv)
    row.lam_bar = select(here, Vec3(x_n_bar - t.dn, *t.lam), after)
    w_bar = Vec3(-(x_n_bar * inv.x), *t.w)
    row.b_bar += w_bar
    at = contacts.block(c, c)
    contacts.K.put(at, contacts.K.struct(at, Mat3) + t.A)
    for d in loop(contacts.start[c], end):
        other, place = contacts.row[d], contacts.block(c, d)
        contacts.K.put(place, contacts.K.struct(place, Mat3) + outer(w_bar, other.lam))
        other.lam_bar += contacts.A.struct(place, Mat3).T @ w_bar


# -- the step ----------------------------------------------------------------------------------------------------------
def accelerate_in_contact_reverse(
    topology: Topology,
    const: Constants,
    method: Method,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    qdd_bar: Reals,
    bars: Bars,
) -> None:
    """As `accelerate_in_contact_vjp`, for the sweeps that `impulses_taped` ran."""
    law, contacts, sweeps = method.contact.law, method.contact.contacts, method.contact.sweeps
    clear_forces(topology, ws, bars.tangent)
    # z = Mt^-1 v+_bar (times dt), and what the impulses see of it
    articulated.pull(topology, ws, qdd_bar)
    scale_free_motion(topology, ws, contacts)
    for c in loop(contacts.group[contacts.groups]):
        row, seen = contacts.row[c], seen_by(topology, c, contacts)
        if contacts.force_bar is not None:
            seen = seen + along_rows(row.R, force_bar(contacts, c))
        row.old, row.lam_bar = row.lam, seen * (1.0 / law.dt)  # `old` are the impulses that were applied
    articulated.push(topology, ws, contacts.dual)
    sweeps_vjp(contacts, sweeps)

    # the free motion: v*_bar = v+_bar + J^T b_bar, at the free accelerations
    apply_impulses(topology, "b_bar", law.dt, ws, contacts)
    articulated.push(topology, ws, ws.mu)
    copy(contacts.free, ws.qdd, topology.nv)
    balance_vjp(topology, const, method, q, v, u, ws, bars)

    columns(topology, ws, contacts)
    mixtures(topology, contacts)
    mass_matrix_bars(topology, law, contacts)
    jacobian_bars(topology, const, law, q, v, ws, contacts, bars)
    joints.store_columns(topology, ws)
    composite_inertias(topology, ws)
    mass_matrix_vjp(topology, const, method.damping_dt, ws, contacts.M_bar, bars)


def three(table: Reals, c: Any, topology: Topology) -> tuple[Reals, Reals, Reals]:
    """The rows of contact c in Y or X."""
    first, second, third = (table.shifted((c * 3 + r) * topology.nv) for r in range(3))
    return first, second, third


def columns(topology: Topology, ws: Workspace, contacts: Contacts) -> None:
    """Y = Mt^-1 J^T, a row of nv numbers for each row of each contact; of those only the ones of its group are there."""
    moved, still = contacts.moved, Motion.zero()
    moved[0].n, moved[0].t, moved[0].s = still, still, still
    for g in loop(contacts.groups):
        first, end = contacts.dofs(g)
        for c in loop(contacts.group[g], contacts.group[g + 1]):
            Y = three(contacts.Y, c, topology)
            for k in loop(first, end):
                for y in Y:
                    y[k] = 0.0
            for k, z in along_paths(topology, c, contacts):
                for y, entry in zip(Y, z.leaves(), strict=True):
                    y[k] = y[k] + contacts.root[k] * entry
            for n in loop(contacts.link_first[g], contacts.link_first[g + 1]):
                i = contacts.links[n]
                parent, own = moved[topology.parent[i]], moved[i]
                own.n, own.t, own.s = joints.push_rows(topology, i, (parent.n, parent.t, parent.s), ws, Y)


def mixtures(topology: Topology, contacts: Contacts) -> None:
    """X = (A_bar + A_bar^T) Y^T"""
    for c in loop(contacts.group[contacts.groups]):
        X, (first, end) = three(contacts.X, c, topology), contacts.dofs(contacts.in_group[c])
        for k in loop(first, end):
            for x in X:
                x[k] = 0.0
        for d in loop(contacts.start[c], contacts.end(c)):
            Y = three(contacts.Y, d, topology)
            both = contacts.K.struct(contacts.block(c, d), Mat3) + contacts.K.struct(contacts.block(d, c), Mat3).T
            for k in loop(first, end):
                for x, more in zip(X, (both @ Vec3(*(y[k] for y in Y))).leaves(), strict=True):
                    x[k] = x[k] + more


def jacobian_bars(
    topology: Topology,
    const: Constants,
    law: Law,
    q: Reals,
    v: Reals,
    ws: Workspace,
    contacts: Contacts,
    bars: Bars,
) -> None:
    """J_bar, the targets and the bounds of every contact to poses, velocities and parameters."""
    clear_pose_bars(topology, ws)
    for c in loop(contacts.group[contacts.groups]):

        def touching(c: Any = c) -> None:
            _touching(topology, const, law, c, q, v, ws, contacts, bars)

        def limited(c: Any = c) -> None:
            row = contacts.row[c]
            k, b_bar = topology.link_v[contacts.link_b[c]], row.b_bar
            bars.v[k] = bars.v[k] + row.R.xx * b_bar.x + b_bar.y
            _, slope = rest_velocity(law, row.phi)
            phi_bar = -(b_bar.x * slope)
            limit_bars(topology, c, contacts, phi_bar, row.bound_bar * law.dt, bars)

        switch(contacts.of_joint[c], {0: touching, 1: limited})
    kinematics_vjp(topology, ws, bars)


def _touching(
    topology: Topology,
    const: Constants,
    law: Law,
    c: Any,
    q: Reals,
    v: Reals,
    ws: Workspace,
    contacts: Contacts,
    bars: Bars,
) -> None:
    row = contacts.row[c]
    g = approach(c, ws, contacts)
    rest, slope = rest_velocity(law, row.phi)
    bounce = select(bounces(law, row.phi, row.e, g, rest), 1.0, 0.0)
    b_bar, lam, d = row.b_bar, row.old, directions(row.R)
    targets, pushes = b_bar.leaves(), lam.leaves()
    extras = (row.e * b_bar.x * bounce, 0.0, 0.0)  # beta = -e J v
    weights = tuple(target + extra for target, extra in zip(targets, extras, strict=True))

    X, (first, end) = three(contacts.X, c, topology), contacts.dofs(contacts.in_group[c])
    for k in loop(first, end):  # all that J_bar is made of
        ahead, dual = v[k] + law.dt * contacts.free[k], contacts.dual[k] / law.dt
        for x, target, push, extra in zip(X, targets, pushes, extras, strict=True):
            x[k] = x[k] + target * ahead + push * dual + extra * v[k]
    frame_bars, point_bars = [Vec3.zero()] * 3, []
    for sign, i, p in ((-1.0, contacts.link_a[c], row.p_a), (1.0, contacts.link_b[c], row.p)):
        forces = tuple(at_point(p, axis * sign, Vec3.zero()) for axis in d)
        seen = _path_bars(topology, i, forces, weights, X, ws, bars)
        frame_bars = [bar + (V.v + cross(V.w, p)) * sign for bar, V in zip(frame_bars, seen, strict=True)]
        p_bar = Vec3.zero()
        for axis, V in zip(d, seen, strict=True):
            p_bar = p_bar + cross(axis, V.w) * sign
        point_bars.append(p_bar)
    frame_bar = Mat3.columns(frame_bars[1], frame_bars[2], frame_bars[0])
    if contacts.force_bar is not None:
        f_bar = force_bar(contacts, c) * (1.0 / law.dt)
        frame_bar = frame_bar + Mat3.columns(f_bar * lam.y, f_bar * lam.z, f_bar * lam.x)
    numbers = (-(b_bar.x * slope * (1.0 - bounce)), row.mu_bar, b_bar.x * g * bounce)
    shape_bars(topology, const, c, q, ws, contacts, frame_bar, point_bars[0], point_bars[1], numbers, bars)


def _path_bars(
    topology: Topology,
    i: Any,
    forces: tuple[Force, ...],
    weights: tuple[Any, ...],
    X: tuple[Reals, ...],
    ws: Workspace,
    bars: Bars,
) -> tuple[Motion, ...]:
    """The motions V of link i under joint velocities x of each row. Each joint n on the path turns what lies beyond it:
    xi_n = sum of (V - V before n) x* f;  and  v_bar += S^T of the weighted forces."""
    total, weighted = carry(tuple(Motion.zero() for _ in X)), Force.zero()
    for f, weight in zip(forces, weights, strict=True):
        weighted = weighted + f * weight
    for n in climb(topology.parent, i):
        own = joints.apply_rows(topology, n, X, ws)
        total.value = tuple(a + b for a, b in zip(total.value, own, strict=True))
        xi = Force.zero()
        for V, f in zip(joints.beyond(topology, n, total.value, own), forces, strict=True):
            xi = xi + cross_force(V, f)
        joints.add_pose_bars(topology, n, xi, Vec3.zero(), ws, bars.tangent)
        joints.add_projection(topology, n, weighted, ws, bars.v)
        if bars.const is not None:
            bar = placement_bar(topology, n, ws.link[topology.parent[n]].X, xi, Vec3.zero())
            bars.const.link[n].placement += bar
    return total.value


def mass_matrix_bars(topology: Topology, law: Law, contacts: Contacts) -> None:
    """The stored entries of Mt_bar = -Y A_bar Y^T - z (Y lam)^T, both triangles added up: the first term is symmetric,
    -Y^T X / 2."""
    M_bar, dual, push = contacts.M_bar, contacts.dual, contacts.push
    for k in loop(topology.nv):
        push[k] = 0.0
    for c in loop(contacts.group[contacts.groups]):
        first, end = contacts.dofs(contacts.in_group[c])
        Y, lam = three(contacts.Y, c, topology), contacts.row[c].old * (1.0 / law.dt)
        for k in loop(first, end):
            push[k] = push[k] + dot(Vec3(*(y[k] for y in Y)), lam)

    def entry(k: Any, j: Any) -> Any:
        """Where k and j meet, with the other triangle."""
        return dual[k] * push[j] + push[k] * dual[j]

    for k in loop(topology.nv):
        for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
            M_bar[topology.dof_row[k] + topology.dof_depth[j - 1]] = -entry(k, j - 1)
        M_bar[topology.dof_row[k] + topology.dof_depth[k]] = -0.5 * entry(k, k)
    for g in loop(contacts.groups):

        def pairing(k: Any, j: Any, g: Any = g) -> Any:
            total = carry(0.0)
            for c in loop(contacts.group[g], contacts.group[g + 1]):
                Y, X = three(contacts.Y, c, topology), three(contacts.X, c, topology)
                total.value = total.value + dot(Vec3(*(y[k] for y in Y)), Vec3(*(x[j] for x in X)))
            return total.value

        for n in loop(contacts.link_first[g], contacts.link_first[g + 1]):
            i = contacts.links[n]
            for k in loop(topology.link_v[i], topology.link_v[i] + topology.link_nv[i]):
                row = topology.dof_row[k]
                for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
                    at = row + topology.dof_depth[j - 1]
                    M_bar[at] = M_bar[at] - pairing(k, j - 1)
                at = row + topology.dof_depth[k]
                M_bar[at] = M_bar[at] - 0.5 * pairing(k, k)
