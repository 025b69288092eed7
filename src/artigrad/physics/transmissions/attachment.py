"""Attachments of transmissions: sites on links, and projection of forces there onto joints.

A transmission with forces F on links has the moment that these exert on the joints. In backward passes, with x the
cotangent of the moment and W the motions of links under the joint velocities x,  moment . x  is the sum of  W . F,
whose adjoint is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...compiler import carry, climb, loop
from .. import joints
from ..context import Step
from ..kinematics import add_placement_bar, origin
from ..spatial import Force, Motion, Transform, Vec3, at_point, compose, cross, cross_force, force_to_child


def entries(s: Step, t: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (entry, degree of freedom) of transmission t."""
    for e in loop(s.model.line_entry[t], s.model.line_entry[t + 1]):
        yield e, s.model.entry_dof[e]


class End:
    """Site at which a transmission pulls: its link, its pose about the origin of its tree, and its position in the world."""

    def __init__(self, s: Step, frame: Any):
        self.frame, self.link = frame, s.model.frame_link[frame]
        self.X: Transform = compose(s.link[self.link].X, s.const.frame[frame].X)
        self.world = origin(s, s.model.tree[self.link]) + self.X.r


def clear_path(s: Step, link: Any) -> None:
    """Set ws.dense to zero for all joints between a link and the world."""
    for i in climb(s.model.parent, link):
        va = s.model.link_v[i]
        for k in loop(va, va + s.model.link_nv[i]):
            s.ws.dense[k] = 0.0


def project(s: Step, link: Any, F: Force) -> None:
    """Add to ws.dense the joint forces of a force on a link."""
    for i in climb(s.model.parent, link):
        joints.add_projection(s, i, F, s.ws.dense)


def motion(s: Step, link: Any) -> Motion:
    """Motion of a link under the joint velocities ws.dense."""
    total = carry(Motion.zero())
    for i in climb(s.model.parent, link):
        total.value = total.value + joints.apply(s, i, s.ws.dense)
    return total.value


def spread(s: Step, t: Any) -> None:
    """Set ws.dense to the cotangents of the moment."""
    for e, k in entries(s, t):
        s.ws.dense[k] = s.ws.moment_bar[e]


def add_bars(s: Step, link: Any, W: Motion, F: Force, zeta: Force, o_bar: Vec3) -> None:
    """Add to the cotangents of the poses of all joints before a link, for the pairing W . F.

    zeta is the explicit cotangent of a rigid motion of the link with all that is on it (W rotated along); each joint
    subtracts the part of W before it.
    """
    rest = carry(W)
    for i in climb(s.model.parent, link):
        own = rest.value
        above = own - joints.apply(s, i, s.ws.dense)
        xi = zeta - cross_force(joints.before(s, i, above, own), F)
        joints.add_pose_bars(s, i, xi, o_bar)
        joints.add_parameter_bars(s, i, xi, ((above, own, F),))
        add_placement_bar(s, i, xi, o_bar)
        rest.value = above


def add_frame_bars(s: Step, end: End, W: Motion, F: Force, moved: Force, o_bar: Vec3) -> None:
    """Add the cotangents for the pairing W . F of a force that is not fixed to the link, and for the pose of `end`.

    moved: Cotangent of a rigid motion of the frame `end`. o_bar: its part for displacements of the tree's origin.
    """
    add_bars(s, end.link, W, F, moved + cross_force(W, F), o_bar)
    if s.bars.const is not None:
        s.bars.const.frame[end.frame].X += force_to_child(end.X, moved)


# -- all attachments of a path at once ---------------------------------------------------------------------------------------
def start_pulls(s: Step, t: Any) -> None:
    """Store the motions of all links that carry attachments of path t under the cotangents of its moment; clear their sums."""
    pull = s.ws.pull
    pull[0].W, pull[0].F, pull[0].zeta, pull[0].o_bar = Motion.zero(), Force.zero(), Force.zero(), Vec3.zero()
    for i in _links(s, t):
        va, row = s.model.link_v[i], pull[i]
        for k in loop(va, va + s.model.link_nv[i]):
            s.ws.dense[k] = 0.0
        row.F, row.zeta, row.o_bar = Force.zero(), Force.zero(), Vec3.zero()
    spread(s, t)
    for i in _links(s, t, outwards=True):
        pull[i].W = pull[s.model.parent[i]].W + joints.apply(s, i, s.ws.dense)


def add_pull(s: Step, end: End, F: Force, moved: Force, o_bar: Vec3) -> None:
    """Add the cotangents of `add_frame_bars` for a path, between `start_pulls` and `finish_pulls`."""
    row = s.ws.pull[end.link]
    row.F, row.zeta, row.o_bar = row.F + F, row.zeta + moved + cross_force(row.W, F), row.o_bar + o_bar
    if s.bars.const is not None:
        s.bars.const.frame[end.frame].X += force_to_child(end.X, moved)


def add_end_pull(s: Step, end: End, force: Vec3, o_bar: Vec3) -> None:
    """Add the cotangents of a force at the site, whose world position has the cotangent o_bar."""
    p = end.X.r
    p_bar = o_bar + cross(force, s.ws.pull[end.link].W.w)  # point_velocity = v + w x p
    add_pull(s, end, at_point(p, force, Vec3.zero()), Force(cross(p, p_bar), p_bar), o_bar)


def finish_pulls(s: Step, t: Any) -> None:
    """Add to the cotangents of the poses of all joints that carry attachments of path t, as `add_bars` does of one."""
    pull = s.ws.pull
    for i in _links(s, t):
        own, parent = pull[i], pull[s.model.parent[i]]
        F, zeta, o_bar = own.F, own.zeta, own.o_bar
        xi = zeta - cross_force(joints.before(s, i, parent.W, own.W), F)
        joints.add_pose_bars(s, i, xi, o_bar)
        joints.add_parameter_bars(s, i, xi, ((parent.W, own.W, F),))
        add_placement_bar(s, i, xi, o_bar)
        parent.F, parent.zeta, parent.o_bar = parent.F + F, parent.zeta + zeta, parent.o_bar + o_bar


def _links(s: Step, t: Any, outwards: bool = False) -> Iterator[Any]:
    """Yield the links between the attachments of path t and the world, inwards by default."""
    for e in loop(s.model.line_link[t], s.model.line_link[t + 1], inwards=outwards):
        yield s.model.path_link[e]
