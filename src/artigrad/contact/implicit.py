"""The adjoint of a step with contact at its converged solution  (theory 5.9-5.16).

With the active set at hand, one small transposed solve gives multipliers nu of the active velocity rows, and one solve
with the factor gives mu. Then everything is the adjoint of inverse dynamics with the contact forces among the forces of
the world, and one kinematic adjoint of what the rows see. No derivative of M or of A appears.

Not differentiated: the active set itself, the threshold of restitution, and the side of the kink at phi = 0 (one-sided).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..collision.collide import gap_vjp
from ..collision.gap import Gap
from ..dynamics import Method, articulated, balance_vjp, clear_forces
from ..spatial import (
    Force,
    Mat3,
    Vec3,
    at_point,
    axis_frame_vjp,
    cross,
    cross_force,
    dot,
    force_to_child,
    point_velocity,
)
from ..staging import Reals, carry, loop, select, switch
from ..tables import Bars, Constants, Topology, Workspace
from . import solver
from .gather import Law, pair_of, point_of
from .report import along_rows, world_force
from .rows import along_paths, apply_impulses, bounces, rest_velocity, scale_free_motion
from .tables import Contacts


def multipliers(topology: Topology, ws: Workspace, contacts: Contacts) -> None:
    """nu = C^T x with (C A E)^T x = E^T (J z + dt lam_bar), for the z whose inward half is in ws.dof.u;  then
    u -= d^-1 L J^T nu"""
    scale_free_motion(topology, ws, contacts)
    for c in loop(contacts.group[contacts.groups]):
        row = contacts.row[c]
        seen = seen_by(topology, c, contacts)
        if contacts.force_bar is not None:
            seen = seen + along_rows(row.R, force_bar(contacts, c))
        asked = contacts.friction.extend_transposed(row, seen)
        row.nu = asked.map(lambda x, on: x * on, row.on)
    for g in loop(contacts.groups):
        solver.solve_transposed(contacts, contacts.group[g], contacts.group[g + 1])
    for c in loop(contacts.group[contacts.groups]):
        row = contacts.row[c]
        row.nu = contacts.friction.restrict_transposed(row, row.nu)
    apply_impulses(topology, "nu", -1.0, ws, contacts)


def force_bar(contacts: Contacts, c: Any) -> Vec3:
    """The cotangent of the force of contact c on its body B; that of the impulse is R^T of it, over dt."""
    read: Callable[[], Vec3] = lambda: contacts.force_bar.struct(contacts.source[c] * 3, Vec3)  # noqa: E731
    return switch(contacts.of_joint[c], {0: read, 1: Vec3.zero})


def seen_by(topology: Topology, c: Any, contacts: Contacts) -> Vec3:
    """J x of the rows of contact c, for the x whose scaled inward half is in contacts.ut"""
    total = carry(Vec3.zero())
    for k, z in along_paths(topology, c, contacts):
        total.value = total.value + z * contacts.ut[k]
    return total.value


def accelerate_in_contact_vjp(
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
    """As `accelerate_vjp`, after the impulses were found; ws.v_next has the velocities the step led to.

    ws.link.y is -dt y in the letters of the theory, and ws.field.w the field of v+.
    """
    law, contacts = method.contact.law, method.contact.contacts
    clear_forces(topology, ws, bars.tangent)
    articulated.pull(topology, ws, qdd_bar)
    multipliers(topology, ws, contacts)
    articulated.push(topology, ws, ws.mu)

    def contact_bars() -> None:
        for c in loop(contacts.group[contacts.groups]):
            touching = partial(touching_bars, topology, const, law, c, q, ws, contacts, bars)
            limited = partial(_limited_bars, topology, law, c, ws, contacts, bars)
            switch(contacts.of_joint[c], {0: touching, 1: limited})

    balance_vjp(topology, const, method, q, v, u, ws, bars, contact_bars)


def approach(c: Any, ws: Workspace, contacts: Contacts) -> Any:
    """The normal velocity of contact c at the start of the step."""
    row = contacts.row[c]
    A, B = ws.link[contacts.link_a[c]], ws.link[contacts.link_b[c]]
    return dot(row.R.column(2), point_velocity(row.p, B.v) - point_velocity(row.p_a, A.v))


def touching_bars(
    topology: Topology, const: Constants, law: Law, c: Any, q: Reals, ws: Workspace, contacts: Contacts, bars: Bars
) -> None:
    """Take the contact force off its links, and say what gap, point, frame and the velocities there mean to poses,
    velocities and shapes.

    Three fields of link motions x are paired with forces k at the contact:  y with lam,  v+ with -nu  and, where the
    contact bounces,  v with -e nu  on the normal.
    """
    row = contacts.row[c]
    R, p, p_a, lam, nu = row.R, row.p, row.p_a, row.lam, row.nu * (1.0 / law.dt)

    # target velocity: position correction, or restitution
    rest, slope = rest_velocity(law, row.phi)
    g = approach(c, ws, contacts)
    bounce = select(bounces(law, row.phi, row.e, g, rest), 1.0, 0.0)
    phi_bar, e_bar = nu.x * slope * (1.0 - bounce), -(nu.x * g * bounce)

    frame_bar, p_b_bar, p_a_bar = Mat3.zero(), Vec3.zero(), Vec3.zero()
    zeta_a, zeta_b = Force.zero(), Force.zero()
    for field, of_x, k in (
        ("y", "F", lam * (-1.0 / law.dt)),
        ("w", "w_bar", -nu),
        ("v", "v_bar", Vec3(-(row.e * nu.x * bounce), 0.0, 0.0)),
    ):
        on, force = ws.field if field == "w" else ws.link, world_force(R, k)
        A, B = on[contacts.link_a[c]], on[contacts.link_b[c]]
        of_a, of_b = getattr(A, field), getattr(B, field)
        on_b, on_a = at_point(p, force, Vec3.zero()), -at_point(p_a, force, Vec3.zero())
        # x_bar += J^T k: for y that is the contact force among the forces F of the world
        setattr(B, of_x, getattr(B, of_x) + on_b)
        setattr(A, of_x, getattr(A, of_x) + on_a)
        # the motion of a link turns with it
        zeta_b, zeta_a = zeta_b + cross_force(of_b, on_b), zeta_a + cross_force(of_a, on_a)
        relative = point_velocity(p, of_b) - point_velocity(p_a, of_a)
        frame_bar = frame_bar + Mat3.columns(relative * k.y, relative * k.z, relative * k.x)
        p_b_bar, p_a_bar = p_b_bar + cross(force, of_b.w), p_a_bar - cross(force, of_a.w)
    ws.field[contacts.link_b[c]].zeta += zeta_b
    ws.field[contacts.link_a[c]].zeta += zeta_a
    A, B = ws.link[contacts.link_a[c]], ws.link[contacts.link_b[c]]
    rho = along_rows(R, (point_velocity(p, B.y) - point_velocity(p_a, A.y)) * (-1.0 / law.dt))  # J y + lam_bar
    if contacts.force_bar is not None:
        f_bar = force_bar(contacts, c) * (1.0 / law.dt)
        rho = rho + along_rows(R, f_bar)
        frame_bar = frame_bar + Mat3.columns(f_bar * lam.y, f_bar * lam.z, f_bar * lam.x)
    mu_bar = lam.x * (row.side.y * rho.y + row.side.z * rho.z)
    shape_bars(topology, const, c, q, ws, contacts, frame_bar, p_a_bar, p_b_bar, (phi_bar, mu_bar, e_bar), bars)


def shape_bars(
    topology: Topology,
    const: Constants,
    c: Any,
    q: Reals,
    ws: Workspace,
    contacts: Contacts,
    frame_bar: Mat3,
    p_a_bar: Vec3,
    p_b_bar: Vec3,
    numbers: tuple[Any, Any, Any],
    bars: Bars,
) -> None:
    """From the cotangents of a contact's frame, its point seen from both sides, and (gap, friction, restitution), to the
    poses of its links (zeta, o_bar) and to the parameters of its shapes."""
    k, row = contacts.pair[c], contacts.row[c]
    i, j = contacts.link_a[c], contacts.link_b[c]
    phi_bar, mu_bar, e_bar = numbers
    pair, apart = pair_of(topology, const, contacts, k, q)
    point = point_of(const, contacts, contacts.source[c])
    n_bar = axis_frame_vjp(row.R.column(2), frame_bar)
    of = gap_vjp(contacts.kind[k], pair, point, Gap(phi_bar, p_b_bar + p_a_bar, n_bar))
    on_a = Force(of.A.n + cross(apart, of.A.f), of.A.f)
    ws.field[j].zeta += of.B
    ws.field[i].zeta += on_a
    ws.tree[topology.tree[j]].o_bar += p_a_bar - of.A.f
    ws.tree[topology.tree[i]].o_bar += of.A.f - p_a_bar
    if bars.const is not None:
        a, b = contacts.a[k], contacts.b[k]
        shape_a, shape_b = const.shape[a], const.shape[b]
        bar_a, bar_b = bars.const.shape[a], bars.const.shape[b]
        bar_a.X += force_to_child(contacts.placed[a].X, on_a)
        bar_b.X += force_to_child(contacts.placed[b].X, of.B)
        bar_a.size += of.size_a
        bar_b.size += of.size_b
        first = larger(shape_a.friction, shape_b.friction)
        bar_a.friction += mu_bar * first
        bar_b.friction += mu_bar * (1.0 - first)
        first = larger(shape_a.restitution, shape_b.restitution)
        bar_a.restitution += e_bar * first
        bar_b.restitution += e_bar * (1.0 - first)
        contacts.add_vertex(bars.const, c, of.vertex)


def larger(a: Any, b: Any) -> Any:
    """How much of max(a, b) is a's: all, nothing, or half if they are equal."""
    return select(a > b, 1.0, select(a < b, 0.0, 0.5))


def _limited_bars(
    topology: Topology,
    law: Law,
    c: Any,
    ws: Workspace,
    contacts: Contacts,
    bars: Bars,
) -> None:
    """phi = +-(q - limit);  row 0 sees +-v, row 1 sees v"""
    row, i = contacts.row[c], contacts.link_b[c]
    k, sign, nu = topology.link_v[i], row.R.xx, row.nu * (1.0 / law.dt)
    _, slope = rest_velocity(law, row.phi)
    bars.v[k] = bars.v[k] - (sign * nu.x + nu.y)
    dry_bar = row.side.y * ws.mu[k]  # bound = dt dry, and J y = mu/dt
    limit_bars(topology, c, contacts, nu.x * slope, dry_bar, bars)


def limit_bars(
    topology: Topology,
    c: Any,
    contacts: Contacts,
    phi_bar: Any,
    dry_bar: Any,
    bars: Bars,
) -> None:
    """From the cotangents of a joint's gap and dry friction to its position and parameters."""
    i, sign = contacts.link_b[c], contacts.row[c].R.xx
    k = topology.link_v[i]
    bars.tangent[k] = bars.tangent[k] + sign * phi_bar
    if bars.const is not None:
        bar = bars.const.link[i]
        low = select(sign > 0.0, 1.0, 0.0)
        bar.low -= phi_bar * low
        bar.high += phi_bar * (1.0 - low)
        bar.dry += dry_bar
