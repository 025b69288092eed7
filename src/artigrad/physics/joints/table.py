"""Table of joint types, one record each. Other code calls the record and never tests for a type by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from .free import Free
from .joint import Joint
from .prismatic import Prismatic
from .revolute import Revolute
from .screw import Screw
from .spherical import Spherical


class Fixed(Joint):
    """Fixed joint. Bodies connected by fixed joints are one link, so that the physics has no fixed joints."""

    name = "fixed"

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        return np.zeros((6, 0))


JOINTS: dict[str, Joint] = {
    joint.name: joint for joint in (Fixed(), Revolute(), Prismatic(), Spherical(), Free(), Screw())
}
MOVING: tuple[Joint, ...] = tuple(joint for joint in JOINTS.values() if joint.nv)  # a kind is a place in this tuple
KIND: dict[str, int] = {joint.name: k for k, joint in enumerate(MOVING)}
BY_MJCF: dict[str, Joint] = {joint.mjcf: joint for joint in MOVING if joint.mjcf is not None}


def compiled(has: Callable[[str], bool], joints: Iterable[Joint] = MOVING) -> dict[int, Joint]:
    """Return the joints of a table that a kernel has, by index. has: whether it is compiled with a feature."""
    return {k: joint for k, joint in enumerate(joints) if joint.feature is None or has(joint.feature)}


EITHER_AXIAL = " or ".join(joint.name for joint in MOVING if joint.axial)  # for messages
