"""Which candidates touch: contacts are gathered so that the work follows what touches, not what could.

A candidate is kept when any robot of the pack is within the margin; for a robot that is not, its impulse comes out zero
and changes none of its bits. Limits and dry friction of joints enter as contacts of a joint with itself: the first row is
the nearer limit, the second the dry friction.
"""

from __future__ import annotations

from typing import Any

from ..collision.collide import Pair, gap
from ..outputs import origin
from ..spatial import Mat3, Transform, Vec3, axis_frame
from ..staging import Reals, counter, loop, maximum, minimum, select, when_any
from ..tables import Constants, Topology, Workspace
from .tables import Contacts

FAR = 1e3  # a gap that is never closed, and finite


class Law:
    """How contact behaves beside the parameters of the shapes; numbers of Options."""

    def __init__(self, dt: Any, numbers: Reals):
        self.dt = dt
        self.margin, self.erp, self.slop, self.softness, self.threshold, self.tolerance = (numbers[k] for k in range(6))


def pair_of(
    topology: Topology, const: Constants, contacts: Contacts, k: Any, q: Reals, ws: Workspace
) -> tuple[Pair, Vec3]:
    """The shapes of candidate k in their places about the origin of B's tree, and that origin minus the one of A's."""
    a, b = contacts.a[k], contacts.b[k]
    i, j = topology.shape_link[a], topology.shape_link[b]
    apart = origin(topology, const, topology.tree[j], q) - origin(topology, const, topology.tree[i], q)
    shape_a, shape_b = const.shape[a], const.shape[b]
    A, B = ws.link[i].X @ shape_a.X, ws.link[j].X @ shape_b.X
    feature = contacts.feature.struct(k * 3, Vec3)

    def vertex() -> Vec3:
        return const.vertex[contacts.vertex[k]].p

    return Pair(Transform(A.R, A.r - apart), shape_a.size, B, shape_b.size, feature, vertex), apart


def within(phi: Any, law: Law) -> Any:
    """The gap, or one that never closes where it is beyond the margin: a neighbour in the pack made us look at it."""
    return select(phi < law.margin, phi, FAR)


def gather(topology: Topology, const: Constants, law: Law, q: Reals, ws: Workspace, contacts: Contacts) -> None:
    """Fill contacts.row for all that is near, group by group."""
    count = counter(0)
    for g in loop(contacts.groups):
        contacts.group[g] = count.value
        for k in loop(contacts.first[g], contacts.first[g + 1]):
            pair, apart = pair_of(topology, const, contacts, k, q, ws)
            found = gap(contacts.kind[k], pair)
            for _ in when_any(found.phi < law.margin):
                n = count.value
                row, a, b = contacts.row[n], contacts.a[k], contacts.b[k]
                row.phi, row.p, row.p_a, row.R = within(found.phi, law), found.p, found.p + apart, axis_frame(found.n)
                row.mu = maximum(const.shape[a].friction, const.shape[b].friction)
                row.e = maximum(const.shape[a].restitution, const.shape[b].restitution)
                row.bound = 0.0
                contacts.link_a[n], contacts.link_b[n] = topology.shape_link[a], topology.shape_link[b]
                contacts.source[n], contacts.of_joint[n] = k, 0
                contacts.start[n], contacts.in_group[n] = contacts.group[g], g
                count.value = n + 1
        for k in loop(contacts.limit_first[g], contacts.limit_first[g + 1]):
            i = contacts.limit[k]
            own, x = const.link[i], q[topology.link_q[i]]
            below, above = x - own.low, own.high - x
            phi = minimum(minimum(below, above), FAR)
            wanted = select(phi < law.margin, 1.0, select(own.dry > 0.0, 1.0, 0.0))
            for _ in when_any(wanted > 0.5):
                n = count.value
                row = contacts.row[n]
                sign = select(below < above, 1.0, -1.0)
                row.p = row.p_a = Vec3.zero()
                row.phi, row.R = within(phi, law), Mat3(sign, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
                row.mu, row.e, row.bound = 0.0, 0.0, own.dry * law.dt
                contacts.link_a[n], contacts.link_b[n] = 0, i
                contacts.source[n], contacts.of_joint[n] = k, 1
                contacts.start[n], contacts.in_group[n] = contacts.group[g], g
                count.value = n + 1
    contacts.group[contacts.groups] = count.value
