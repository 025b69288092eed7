"""The adjoint of the Gauss-Seidel sweeps that were run, converged or not  (theory 5.18-5.22).

The sweeps are replayed backwards from a tape of their impulses. That gives the cotangents of A and b; with Y = Mt^-1 J^T,

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
from ..spatial import Force, Mat3, Motion, Vec3, at_point, cross, cross_force
from ..spatial.vectors import outer
from ..staging import Reals, carry, climb, copy, loop, maximum, select, switch, to_real, when_any
from ..tables import Bars, Constants, Topology, Workspace
from . import find_impulses
from .gather import Law
from .implicit import approach, force_bar, limit_bars, seen_by, shape_bars
from .report import along_rows
from .rows import apply_impulses, bounces, directions, rest_velocity, scale_free_motion
from .solver import residual
from .tables import A_SIDE, B_SIDE, Contacts


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
    lam = contacts.tape.struct((s * contacts.cap + c) * 3, Vec3)
    row.lam = lam
    w, A = residual(contacts, c, end), contacts.A.struct(contacts.block(c, c), Mat3)

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
    jacobian_bars(topology, const, law, q, v, ws, contacts, bars)
    mass_matrix_bars(topology, law, contacts)
    joints.store_columns(topology, ws)
    composite_inertias(topology, ws)
    mass_matrix_vjp(topology, const, method.damping_dt, ws, contacts.M_bar, bars)


def columns(topology: Topology, ws: Workspace, contacts: Contacts) -> None:
    """Y = Mt^-1 J^T, a row of nv numbers for each row of each contact; of those only the ones of its group are there."""
    ws.link[0].y = Motion.zero()
    for g in loop(contacts.groups):
        first, end = contacts.dofs(g)
        for c in loop(contacts.group[g], contacts.group[g + 1]):
            for r in range(3):
                Y = contacts.Y.shifted((c * 3 + r) * topology.nv)
                for k in loop(first, end):
                    ws.dof[k].u, Y[k] = 0.0, 0.0
                for side in (A_SIDE, B_SIDE):
                    for n in climb(topology.parent, contacts.link(c, side)):
                        va = topology.link_v[n]
                        for k in loop(va, va + topology.link_nv[n]):
                            z = contacts.Z.struct(contacts.z(c, side, topology.dof_depth[k]), Vec3)
                            ws.dof[k].u += contacts.root[k] * z.leaves()[r]
                for n in loop(contacts.link_first[g], contacts.link_first[g + 1]):
                    articulated.push_link(topology, contacts.links[n], ws, Y)


def mix(topology: Topology, c: Any, r: int, both: bool, contacts: Contacts, out: Reals) -> None:
    """out = row r of A_bar Y, or of (A_bar + A_bar^T) Y, where that group has entries"""
    first, end = contacts.dofs(contacts.in_group[c])
    for k in loop(first, end):
        out[k] = 0.0
    for d in loop(contacts.start[c], contacts.end(c)):
        weights = contacts.K.struct(contacts.block(c, d), Mat3).leaves()[3 * r : 3 * r + 3]
        if both:
            across = contacts.K.struct(contacts.block(d, c), Mat3).leaves()[r::3]
            weights = [a + b for a, b in zip(weights, across, strict=True)]
        for s in range(3):
            Y = contacts.Y.shifted((d * 3 + s) * topology.nv)
            for k in loop(first, end):
                out[k] = out[k] + weights[s] * Y[k]


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
    recoil = row.e * b_bar.x * bounce  # beta = -e J v
    frame: list[Vec3] = []
    first, end = contacts.dofs(contacts.in_group[c])
    p_a_bar, p_b_bar = Vec3.zero(), Vec3.zero()
    for r, (target_bar, push) in enumerate(zip(b_bar.leaves(), lam.leaves(), strict=True)):
        x, extra = contacts.x, recoil if r == 0 else 0.0
        mix(topology, c, r, True, contacts, x)
        for k in loop(first, end):
            ahead = v[k] + law.dt * contacts.free[k]
            x[k] = x[k] + target_bar * ahead + push * contacts.dual[k] / law.dt + extra * v[k]
        seen = []
        for sign, i, p in ((-1.0, contacts.link_a[c], row.p_a), (1.0, contacts.link_b[c], row.p)):
            f = at_point(p, d[r] * sign, Vec3.zero())
            V = _path_bars(topology, i, f, target_bar + extra, x, ws, bars)
            seen.append((V.v + cross(V.w, p)) * sign)
            if sign < 0:
                p_a_bar = p_a_bar - cross(d[r], V.w)
            else:
                p_b_bar = p_b_bar + cross(d[r], V.w)
        frame.append(seen[0] + seen[1])
    frame_bar = Mat3.columns(frame[1], frame[2], frame[0])
    if contacts.force_bar is not None:
        f_bar = force_bar(contacts, c) * (1.0 / law.dt)
        frame_bar = frame_bar + Mat3.columns(f_bar * lam.y, f_bar * lam.z, f_bar * lam.x)
    numbers = (-(b_bar.x * slope * (1.0 - bounce)), row.mu_bar, b_bar.x * g * bounce)
    shape_bars(topology, const, c, q, ws, contacts, frame_bar, p_a_bar, p_b_bar, numbers, bars)


def _path_bars(
    topology: Topology,
    i: Any,
    f: Force,
    weight: Any,
    x: Reals,
    ws: Workspace,
    bars: Bars,
) -> Motion:
    """The motion V of link i under joint velocities x. Each joint n on the path turns what lies beyond it:
    xi_n = (V - V before n) x* f;  and  v_bar += weight S^T f."""
    beyond = carry(Motion.zero())
    for n in climb(topology.parent, i):
        own = joints.apply(topology, n, x, ws)
        total = beyond.value + own
        beyond.value = total
        xi = cross_force(total - joints.before(topology, n, Motion.zero(), own), f)
        joints.add_pose_bars(topology, n, xi, Vec3.zero(), ws, bars.tangent)
        joints.add_projection(topology, n, f * weight, ws, bars.v)
        if bars.const is not None:
            bar = placement_bar(topology, n, ws.link[topology.parent[n]].X, xi, Vec3.zero())
            bars.const.link[n].placement += bar
    return beyond.value


def mass_matrix_bars(topology: Topology, law: Law, contacts: Contacts) -> None:
    """The stored entries of Mt_bar = -Y A_bar Y^T - z (Y lam)^T, both triangles added up."""
    for k in loop(topology.dof_row[topology.nv]):
        contacts.M_bar[k] = 0.0

    def subtract(a: Reals, b: Reals, first: Any, end: Any) -> None:
        for k in loop(first, end):
            row, a_k, b_k = topology.dof_row[k], a[k], b[k]
            for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
                at = row + topology.dof_depth[j - 1]
                contacts.M_bar[at] = contacts.M_bar[at] - (a_k * b[j - 1] + b_k * a[j - 1])
            at = row + topology.dof_depth[k]
            contacts.M_bar[at] = contacts.M_bar[at] - a_k * b_k

    for k in loop(topology.nv):
        contacts.push[k] = 0.0
    for g in loop(contacts.groups):
        first, end = contacts.dofs(g)
        for c in loop(contacts.group[g], contacts.group[g + 1]):
            for r in range(3):
                Y, lam = contacts.Y.shifted((c * 3 + r) * topology.nv), contacts.row[c].old.leaves()[r]
                mix(topology, c, r, False, contacts, contacts.x)
                subtract(Y, contacts.x, first, end)
                for k in loop(first, end):
                    contacts.push[k] = contacts.push[k] + Y[k] * (lam / law.dt)
    subtract(contacts.dual, contacts.push, 0, topology.nv)
