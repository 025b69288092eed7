"""Visual: appearance of a body; Mount: pose of a camera. Physics does not use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# kinds, and the meaning of `size`, m
KINDS = {
    "plane": "half extents along x and y, 0 for endless",
    "sphere": "radius",
    "capsule": "radius, half length between the centers of its caps, along z",
    "cylinder": "radius, half length, along z",
    "box": "half edges along x, y, z",
    "ellipsoid": "half axes along x, y, z",
    "mesh": "nothing: vertices are to scale",
}


@dataclass(frozen=True, eq=False)
class Visual:
    """Visual shape fixed to a body.

    Attributes:
        body: Index into `model.bodies`, -1 for the world.
        kind: One of KINDS.
        size: See KINDS, m.
        position: (3,) m, of its frame in the body frame.
        quaternion: (4,) w x y z, of its frame in the body frame.
        rgba: Each 0 to 1.
        mesh: Vertices (n, 3) in m, in its own frame, and faces (m, 3), indices of vertices; of a mesh only.
    """

    body: int
    kind: str
    size: tuple[float, ...] = ()
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    rgba: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 1.0)
    mesh: tuple[np.ndarray, np.ndarray] | None = None


class Mount(NamedTuple):
    """Camera fixed to a body; it views along -z, with y up.

    Attributes:
        name: Name.
        body: Index into `model.bodies`, -1 for the world.
        position: m, in the body frame.
        quaternion: w x y z, in the body frame.
        fov: Vertical field of view, degrees.
    """

    name: str
    body: int
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    fov: float
