"""Rows of the contact problem: J along each contact's paths through the factor, the velocities they see, and A.

With Mt^-1 = L^T d^-1 L from the articulated-body factor, Z = d^-1/2 L J^T has entries only along the path from a contact
to its root, and  A = J Mt^-1 J^T + softness = Z^T Z + softness.  J itself is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import joints
from ..spatial import Force, Mat3, Vec3, at_point, dot, point_velocity
from ..spatial.vectors import outer
from ..staging import Reals, carry, climb, loop, select, sqrt, switch, to_real
from ..staging.memory import Row
from ..tables import Topology, Workspace
from .gather import Law
from .tables import A_SIDE, B_SIDE, Contacts


def directions(R: Mat3) -> tuple[Vec3, Vec3, Vec3]:
    """Normal and two tangents of a contact's frame."""
    return R.column(2), R.column(0), R.column(1)


def rows(topology: Topology, law: Law, v: Reals, ws: Workspace, contacts: Contacts) -> None:
    """For every contact: Z of both sides, and b = J v + dt J qdd_free - beta."""
    for k in loop(topology.nv):
        contacts.root[k] = sqrt(ws.dof[k].dinv)
    scale_free_motion(topology, ws, contacts)
    for c in loop(contacts.group[contacts.groups]):
        row = contacts.row[c]
        R, phi = row.R, row.phi

        def touching(c: Any = c, R: Mat3 = R, row: Row = row) -> tuple[Vec3, Vec3]:
            d = directions(R)
            seen, free = Vec3.zero(), carry(Vec3.zero())
            for side, sign in ((A_SIDE, -1.0), (B_SIDE, 1.0)):
                i, p = contacts.link(c, side), row.p if side == B_SIDE else row.p_a
                velocity = point_velocity(p, ws.link[i].v) * sign
                seen = seen + Vec3(*(dot(x, velocity) for x in d))
                _path(topology, i, tuple(at_point(p, x * sign, Vec3.zero()) for x in d), c, side, ws, contacts, free)
            return seen, free.value

        def limited(c: Any = c, R: Mat3 = R) -> tuple[Vec3, Vec3]:
            i = contacts.link_b[c]
            k, free = topology.link_v[i], carry(Vec3.zero())
            entries = (R.xx, 1.0, 0.0)
            dof = ws.dof[k]
            _put(topology, k, [x * contacts.root[k] for x in entries], c, B_SIDE, ws, contacts, free)
            forces = tuple(-(dof.U * (dof.dinv * x)) for x in entries)
            _path(topology, topology.parent[i], forces, c, B_SIDE, ws, contacts, free)
            return Vec3(R.xx * v[k], v[k], 0.0), free.value

        seen, free = switch(contacts.of_joint[c], {0: touching, 1: limited})
        beta = target_velocity(law, phi, row.e, seen.x)
        row.b = seen + free * law.dt - Vec3(beta, 0.0, 0.0)


def target_velocity(law: Law, phi: Any, e: Any, g: Any) -> Any:
    """beta: the normal velocity that a closed contact shall have.

    It rests at depth `slop`: within the surface the error shrinks by `erp` a step, beta = -erp (phi + slop)/dt, and above
    it the gap may close at once, beta = -phi/dt more. The only kink is at phi = 0, where nothing rests. A contact that
    would close in this step, faster than the threshold, bounces if that is more:  beta = -e g.
    """
    rest, _ = rest_velocity(law, phi)
    return select(bounces(law, phi, e, g, rest), -(e * g), rest)


def bounces(law: Law, phi: Any, e: Any, g: Any, rest: Any) -> Any:
    """Whether restitution decides the velocity of a contact."""
    return (e > 0.0) & (phi + law.dt * g < 0.0) & (g < -law.threshold) & (-(e * g) > rest)


def rest_velocity(law: Law, phi: Any) -> tuple[Any, Any]:
    """What position correction wants, and its derivative with respect to the gap."""
    inside, above = -(law.erp * (phi + law.slop)) / law.dt, -(phi + law.erp * law.slop) / law.dt
    return select(phi > 0.0, above, inside), select(phi > 0.0, -1.0 / law.dt, -law.erp / law.dt)


def _path(
    topology: Topology,
    i: Any,
    forces: tuple[Force, ...],
    c: Any,
    side: int,
    ws: Workspace,
    contacts: Contacts,
    free: carry,
) -> None:
    """Take three forces on link i to its root; entries go to Z, and what the free motion makes of them to `free`."""
    f = carry(forces)

    def put(k: Any, entries: list[Any]) -> None:
        _put(topology, k, entries, c, side, ws, contacts, free)

    for n in climb(topology.parent, i):
        f.value = joints.path_rows(topology, n, f.value, ws, put)


def _put(
    topology: Topology, k: Any, entries: list[Any], c: Any, side: int, ws: Workspace, contacts: Contacts, free: carry
) -> None:
    at = contacts.z(c, side, topology.dof_depth[k])
    contacts.Z.put(at, Vec3(*entries))
    free.value = free.value + Vec3(*entries) * contacts.ut[k]


def scale_free_motion(topology: Topology, ws: Workspace, contacts: Contacts) -> None:
    """ut = d^1/2 u, with which Z^T ut is what the rows see of the motion whose inward half is in ws.dof.u"""
    for k in loop(topology.nv):
        contacts.ut[k] = ws.dof[k].u / contacts.root[k]


def delassus(law: Law, contacts: Contacts, nl: Any) -> None:
    """A for all pairs of contacts of a group, and the inverse of its diagonal."""
    for c in loop(contacts.group[contacts.groups]):
        for d in loop(contacts.start[c], c + 1):
            total = carry(Mat3.zero())
            for s in (A_SIDE, B_SIDE):
                for t in (A_SIDE, B_SIDE):
                    i, j = contacts.link(c, s), contacts.link(d, t)
                    for k in loop(contacts.common[i * nl + j]):
                        x = contacts.Z.struct(contacts.z(c, s, k), Vec3)
                        y = contacts.Z.struct(contacts.z(d, t, k), Vec3)
                        total.value = total.value + outer(x, y)
            contacts.A.put(contacts.block(c, d), total.value)
            contacts.A.put(contacts.block(d, c), total.value.T)
        at = contacts.block(c, c)
        own = contacts.A.struct(at, Mat3)
        spare = law.softness + own.yy * to_real(contacts.of_joint[c])  # a joint has no third row: it is like the second
        full = own + Mat3(law.softness, 0.0, 0.0, 0.0, law.softness, 0.0, 0.0, 0.0, spare)
        contacts.A.put(at, full)
        contacts.row[c].inv = contacts.friction.steps(full)


def along_paths(topology: Topology, c: Any, contacts: Contacts) -> Iterator[tuple[Any, Vec3]]:
    """Each degree of freedom that contact c reaches, and its entries of Z."""
    for side in (A_SIDE, B_SIDE):
        for n in climb(topology.parent, contacts.link(c, side)):
            va = topology.link_v[n]
            for k in loop(va, va + topology.link_nv[n]):
                yield k, contacts.Z.struct(contacts.z(c, side, topology.dof_depth[k]), Vec3)


def apply_impulses(topology: Topology, x: str, scale: Any, ws: Workspace, contacts: Contacts) -> None:
    """u += scale * d^-1 L J^T x, with x a field of the contact rows."""
    for c in loop(contacts.group[contacts.groups]):
        value = getattr(contacts.row[c], x) * scale
        for k, z in along_paths(topology, c, contacts):
            ws.dof[k].u += contacts.root[k] * dot(z, value)
