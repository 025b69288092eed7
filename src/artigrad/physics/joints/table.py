"""Table of joint types, one record each. Other code calls the record and never tests for a type by name."""

from __future__ import annotations

import numpy as np

from .free import Free
from .joint import Joint
from .prismatic import Prismatic
from .revolute import Revolute
from .spherical import Spherical


class Fixed(Joint):
    """Bodies on fixed joints are one link: the physics never meets it."""

    name = "fixed"

    def motions(self, axis: np.ndarray, anchor: np.ndarray) -> np.ndarray:
        return np.zeros((6, 0))


JOINTS: dict[str, Joint] = {joint.name: joint for joint in (Fixed(), Revolute(), Prismatic(), Spherical(), Free())}
MOVING: tuple[Joint, ...] = tuple(joint for joint in JOINTS.values() if joint.nv)  # a kind is a place in this tuple
KIND: dict[str, int] = {joint.name: k for k, joint in enumerate(MOVING)}
BY_MJCF: dict[str, Joint] = {joint.mjcf: joint for joint in MOVING if joint.mjcf is not None}
EITHER_AXIAL = " or ".join(joint.name for joint in MOVING if joint.axial)  # for messages
