"""Visual shapes of a compiled file, the geoms that MuJoCo draws by default; and its cameras."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from .compiler import HIDDEN
from .mujoco_api import GeomType
from .names import Names

# kind and number of entries of its size; a height field is drawn as its collision shape
KINDS: dict[int, tuple[str, int]] = {
    GeomType.PLANE: ("plane", 2),
    GeomType.SPHERE: ("sphere", 1),
    GeomType.CAPSULE: ("capsule", 2),
    GeomType.ELLIPSOID: ("ellipsoid", 3),
    GeomType.CYLINDER: ("cylinder", 2),
    GeomType.BOX: ("box", 3),
}
FIXED, PERSPECTIVE = 0, 0  # mjtCamLight, mjtProjection; cameras that track or target a body are not supported


def add_visuals(b: ModelBuilder, m: Any, names: Names) -> None:
    for g in range(m.ngeom):
        kind, count = KINDS.get(int(m.geom_type[g]), ("mesh", 0))
        if m.geom_group[g] >= HIDDEN or (kind == "mesh" and m.geom_type[g] != GeomType.MESH):
            continue
        b.add_visual(
            names.body[int(m.geom_bodyid[g])],
            kind,
            size=tuple(float(x) for x in m.geom_size[g, :count]),
            position=tuple(float(x) for x in m.geom_pos[g]),
            quaternion=tuple(float(x) for x in m.geom_quat[g]),
            rgba=tuple(float(x) for x in _color(m, g)),
            mesh=mesh_of(m, int(m.geom_dataid[g])) if kind == "mesh" else None,
        )


def _color(m: Any, g: int) -> np.ndarray:
    """Color of a geom: that of its material, unless it has its own."""
    plain = np.allclose(m.geom_rgba[g], (0.5, 0.5, 0.5, 1.0))
    return m.mat_rgba[m.geom_matid[g]] if plain and m.geom_matid[g] >= 0 else m.geom_rgba[g]


def mesh_of(m: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (n, 3) and faces (n, 3) of mesh k."""
    v, f = int(m.mesh_vertadr[k]), int(m.mesh_faceadr[k])
    vertices = np.array(m.mesh_vert[v : v + m.mesh_vertnum[k]], float)
    return vertices, np.array(m.mesh_face[f : f + m.mesh_facenum[k]], int)


def add_cameras(b: ModelBuilder, m: Any, names: Names) -> None:
    for c in range(m.ncam):
        if m.cam_mode[c] == FIXED and m.cam_projection[c] == PERSPECTIVE:
            place = {"position": m.cam_pos[c], "rotation": m.cam_quat[c]}
            b.add_camera(names.camera[c], names.body[int(m.cam_bodyid[c])], fov=float(m.cam_fovy[c]), **place)
