"""Records of convex hulls in saved files, exact to the last digit.

MuJoCo's compiler moves the vertices of a mesh into its principal axes, rounds them to single precision and recomputes
their hull. A saved file therefore also stores each hull as a custom text of MJCF, which MuJoCo ignores. It is used if
the mesh and its pose are unchanged.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from ..model.hulls import Hull
from ..model.model import Model, Surface
from ..model.params import Params
from ..model.quaternions import matrix
from .mujoco_api import mujoco

PREFIX = "hull:"  # followed by the name of the geom
CLOSE = 1e-5  # relative to the size of a mesh: single precision, rotated and translated


class HullRecord(NamedTuple):
    """A shape that is the convex hull of points, as arguments of `ModelBuilder.add_convex_hull`."""

    position: np.ndarray
    rotation: np.ndarray
    points: np.ndarray
    hull: Hull
    surface: Surface | None
    half_axes: np.ndarray
    fluid: tuple[np.ndarray, ...] | None


def write(model: Model, params: Params, s: int) -> str:
    """Return shape s as text."""
    first, count = model.shapes.vertices[s]
    hull, surface = model.shapes.hulls[s], model.shapes.surfaces[s]
    own: dict[str, Any] = {
        "position": params.shape_position[s].tolist(),
        "rotation": params.shape_rotation[s].tolist(),
        "points": params.vertex[first : first + count].tolist(),
        "neighbours": hull.neighbors,
        "faces": hull.faces,
        "half_axes": params.shape_size[s].tolist(),
    }
    if surface is not None:
        own["surface"] = {"vertices": surface.vertices.tolist(), "faces": surface.faces.tolist()}
    if s in model.shapes.wet:
        n = model.shapes.wet.index(s)
        own["fluid"] = [params[key][n].tolist() for key in ("fluid_coefficients", "virtual_mass", "virtual_inertia")]
    return json.dumps(own, separators=(",", ":"))


def custom_text(m: Any, name: str) -> str:
    """Return a custom text of a compiled file; empty if there is none of this name."""
    mj = mujoco()
    k = mj.mj_name2id(m, mj.mjtObj.mjOBJ_TEXT, name)
    if k < 0:
        return ""
    first = int(m.text_adr[k])
    return bytes(m.text_data[first : first + int(m.text_size[k])]).rstrip(b"\0").decode()


def read(m: Any, g: int, name: str) -> HullRecord | None:
    """Return the record of geom g of a compiled file; None if it has none, or one of another mesh or place."""
    try:
        own = json.loads(custom_text(m, PREFIX + name))
        found = HullRecord(
            np.array(own["position"], float),
            np.array(own["rotation"], float),
            np.array(own["points"], float).reshape(-1, 3),
            Hull(*(tuple(tuple(int(i) for i in x) for x in own[key]) for key in ("neighbours", "faces"))),
            _surface(own.get("surface")),
            np.array(own["half_axes"], float),
            tuple(np.array(x, float) for x in own["fluid"]) if "fluid" in own else None,
        )
    except (ValueError, KeyError, TypeError):
        return None
    return found if _of_this_mesh(m, g, found) else None


def in_its_axes(m: Any, g: int, record: HullRecord, motion: np.ndarray) -> np.ndarray:
    """Return a velocity and an angular velocity about the origin of geom g, which MuJoCo moved, in the record's axes."""
    R, there = matrix(m.geom_quat[g]), matrix(record.rotation)
    v, w = R @ motion[:3], R @ motion[3:]
    return np.concatenate([there.T @ (v + np.cross(w, record.position - m.geom_pos[g])), there.T @ w])


def _surface(given: dict[str, Any] | None) -> Surface | None:
    return None if given is None else Surface(np.array(given["vertices"], float), np.array(given["faces"], int))


def _of_this_mesh(m: Any, g: int, found: HullRecord) -> bool:
    """Return True if the compiled vertices are those that were written, at the same pose in the body."""
    k = int(m.geom_dataid[g])
    start = int(m.mesh_vertadr[k])
    compiled = np.array(m.mesh_vert[start : start + m.mesh_vertnum[k]], float)
    written = found.points if found.surface is None else found.surface.vertices
    if written.shape != compiled.shape or len(found.hull.neighbors) != len(found.points):
        return False
    here = m.geom_pos[g] + compiled @ matrix(m.geom_quat[g]).T
    there = found.position + written @ matrix(found.rotation).T
    size = float(np.ptp(here, axis=0).max(initial=0.0)) + float(np.abs(here).max(initial=0.0))
    return bool(np.abs(here - there).max(initial=0.0) <= CLOSE * size)
