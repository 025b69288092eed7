"""Which candidates touch: contacts are gathered so that the work follows what touches, not what could.

A candidate is kept when any robot of the pack is within the margin; for a robot that is not, its impulse comes out zero
and changes none of its bits. Limits and dry friction of joints enter as contacts of a joint with itself: the first row is
the nearer limit, the second the dry friction.
"""

from __future__ import annotations

from typing import Any

from ..collision.collide import Pair, Point, distance, gap
from ..collision.gap import Gap
from ..outputs import origin
from ..spatial import Mat3, Transform, Vec3, axis_frame
from ..staging import Reals, counter, loop, maximum, minimum, select, to_real, when_any
from ..tables import Constants, Topology, Workspace
from .tables import Contacts

FAR = 1e3  # a gap that is never closed, and finite


class Law:
    """How contact behaves beside the parameters of the shapes; numbers of Options."""

    def __init__(self, dt: Any, numbers: Reals):
        self.dt = dt
        self.margin, self.erp, self.slop, self.softness, self.threshold, self.tolerance = (numbers[k] for k in range(6))


def place_shapes(topology: Topology, const: Constants, ws: Workspace, contacts: Contacts) -> None:
    """The poses of all shapes, once for all their pairs."""
    for s in loop(topology.nshape):
        contacts.placed[s].X = ws.link[topology.shape_link[s]].X @ const.shape[s].X


def pair_of(topology: Topology, const: Constants, contacts: Contacts, k: Any, q: Reals) -> tuple[Pair, Vec3]:
    """The shapes of pair k in their places about the origin of B's tree, and that origin minus the one of A's."""
    a, b = contacts.a[k], contacts.b[k]
    i, j = topology.shape_link[a], topology.shape_link[b]
    apart = origin(topology, const, topology.tree[j], q) - origin(topology, const, topology.tree[i], q)
    A, B = contacts.placed[a].X, contacts.placed[b].X
    return Pair(Transform(A.R, A.r - apart), const.shape[a].size, B, const.shape[b].size), apart


def point_of(const: Constants, contacts: Contacts, k: Any) -> Point:
    """Point k of its pair."""
    return Point(contacts.feature.struct(k * 3, Vec3), lambda: const.vertex[contacts.vertex[k]].p)


def within(phi: Any, law: Law) -> Any:
    """The gap, or one that never closes where it is beyond the margin: a neighbour in the pack made us look at it."""
    return select(phi < law.margin, phi, FAR)


def _distance(topology: Topology, const: Constants, contacts: Contacts, k: Any, q: Reals) -> Any:
    """A lower bound of the gaps of pair k."""
    a, b = const.shape[contacts.a[k]], const.shape[contacts.b[k]]
    return distance(contacts.kind[k], lambda: pair_of(topology, const, contacts, k, q)[0], a.radius, b.radius)


def _touch(
    topology: Topology, const: Constants, law: Law, k: Any, m: Any, n: Any, found: Gap, apart: Vec3, contacts: Contacts
) -> None:
    """Point m of pair k becomes contact n."""
    row, a, b = contacts.row[n], contacts.a[k], contacts.b[k]
    row.phi, row.p, row.p_a, row.R = within(found.phi, law), found.p, found.p + apart, axis_frame(found.n)
    row.mu = maximum(const.shape[a].friction, const.shape[b].friction)
    row.e = maximum(const.shape[a].restitution, const.shape[b].restitution)
    row.bound = 0.0
    contacts.link_a[n], contacts.link_b[n] = topology.shape_link[a], topology.shape_link[b]
    contacts.pair[n], contacts.source[n], contacts.of_joint[n] = k, m, 0


def gather(topology: Topology, const: Constants, law: Law, q: Reals, ws: Workspace, contacts: Contacts) -> None:
    """Fill contacts.row for all that is near, group by group. Pairs whose bounding spheres are apart are passed over."""
    place_shapes(topology, const, ws, contacts)
    count = counter(0)
    for g in loop(contacts.groups):
        contacts.group[g] = count.value
        for k in loop(contacts.first[g], contacts.first[g + 1]):
            for _ in when_any(_distance(topology, const, contacts, k, q) < law.margin):
                for m in loop(contacts.point[k], contacts.point[k + 1]):
                    pair, apart = pair_of(topology, const, contacts, k, q)
                    found = gap(contacts.kind[k], pair, point_of(const, contacts, m))
                    near, n = found.phi < law.margin, count.value
                    for _ in when_any(near):
                        room = to_real(contacts.group[g] + contacts.most[g] - n) > 0.5
                        for _ in when_any(room):
                            _touch(topology, const, law, k, m, n, found, apart, contacts)
                            contacts.start[n], contacts.in_group[n] = contacts.group[g], g
                            count.value = n + 1
                        lost = select(near, 1.0, contacts.status[2])
                        contacts.status[2] = select(room, contacts.status[2], lost)
        contacts.joints[g] = count.value
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
                contacts.pair[n], contacts.source[n], contacts.of_joint[n] = 0, k, 1
                contacts.start[n], contacts.in_group[n] = contacts.group[g], g
                count.value = n + 1
    contacts.group[contacts.groups] = count.value
