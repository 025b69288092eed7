"""Visual: what a body looks like; Mount: from where a camera looks. Physics never reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# kinds and what `size` means, in metres
KINDS = {
    "plane": "half extents along x and y, 0 for endless",
    "sphere": "radius",
    "capsule": "radius, half length between the centres of its caps, along z",
    "cylinder": "radius, half length, along z",
    "box": "half edges along x, y, z",
    "ellipsoid": "half axes along x, y, z",
    "mesh": "nothing: vertices are to scale",
}


@dataclass(frozen=True, eq=False)
class Visual:
    """One thing to draw, fixed to a body.

    body: index into `model.bodies`, -1 for the world. kind: one of KINDS. size: what KINDS says, metres. position (3,) in
    metres and quaternion (4,) w x y z: of its frame in the body frame. rgba: each 0 to 1. mesh: vertices (n, 3) in
    metres, in its own frame, and faces (m, 3), indices of vertices; of a mesh only.
    """

    body: int
    kind: str
    size: tuple[float, ...] = ()
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    rgba: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 1.0)
    mesh: tuple[np.ndarray, np.ndarray] | None = None


class Mount(NamedTuple):
    """A camera fixed to a body (-1: the world). position: m, and quaternion w x y z of its frame in the body's; it looks along
    -z and y is up. fov: degrees from top to bottom."""

    name: str
    body: int
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    fov: float
