"""Motion of one link under joint velocities, and the adjoint of its pairing with a force."""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, carry, climb
from .. import joints
from ..context import Step
from ..kinematics import add_placement_bar
from ..spatial import Force, Motion, Vec3, cross_force


def motion_of(s: Step, link: Any, x: Reals) -> Motion:
    """Motion of a link under joint velocities x."""
    total = carry(Motion.zero())
    for i in climb(s.model.parent, link):
        total.value = total.value + joints.apply(s, i, x)
    return total.value


def add_path_bars(s: Step, link: Any, x: Reals, W: Motion, F: Force, zeta: Force) -> None:
    """Add to the cotangents of the poses of all joints before a link, for the pairing of its motion W under x with F.

    zeta is the cotangent of a rigid motion of the link with W rotated along.
    """
    rest = carry(W)
    for i in climb(s.model.parent, link):
        own = rest.value
        above = own - joints.apply(s, i, x)
        xi = zeta - cross_force(joints.before(s, i, above, own), F)
        joints.add_pose_bars(s, i, xi, Vec3.zero())
        joints.add_parameter_bars(s, i, xi, ((above, own, F),))
        add_placement_bar(s, i, xi, Vec3.zero())
        rest.value = above
