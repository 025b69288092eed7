"""Data of the player (meshes, poses, forces, plots) as JSON and compressed arrays, and the page that contains it.

A saved page contains a whole motion; a served page begins with the current frame and receives the following ones.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..model.quaternions import of_matrix
from .frames import Forces, Frames, Framing
from .meshes import Mesh, cone_frustum, merged, sphere
from .scenery import Part, Scene
from .style import ARROW_RADIUS, AZIMUTH, ELEVATION, LIGHT, VIEW_ANGLE, camera_distance, force_scale, tile_length


class Drawing(NamedTuple):
    """Data of a page. header: its contents and their locations in the data; data: all arrays, compressed, in base64."""

    header: dict[str, Any]
    data: str

    def json(self) -> str:
        """Return header and data in the form that the player requests."""
        return json.dumps({"header": self.header, "data": self.data}, separators=(",", ":"))


class Blob:
    """Concatenated arrays. `add` returns the location of one: dtype, first byte, length. Equal arrays are stored once."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self._known: dict[bytes, list[Any]] = {}

    def add(self, array: np.ndarray, kind: str) -> list[Any]:
        data = np.ascontiguousarray(array, f"<{kind}").tobytes()
        data += b"\0" * (-len(data) % 4)  # each begins at a multiple of the word size
        if data not in self._known:
            self._known[data] = [kind, self.size, array.size]
            self.pieces.append(data)
            self.size += len(data)
        return [kind, self._known[data][1], array.size]

    def text(self) -> str:
        return base64.b64encode(gzip.compress(b"".join(self.pieces), 9, mtime=0)).decode()


def save_page(path: Path, name: str, scene: Scene, motion: Frames, framing: Framing) -> None:
    """Write the page of a trajectory. Poses are stored to a tenth of a millimeter for a robot of a few meters, angles to
    1e-4."""
    path.write_text(page(name, drawing(scene, motion, framing)), encoding="utf-8")


def page(name: str, shown: Drawing) -> str:
    """Return the player with its data."""
    here = files(__package__)
    filled = (here / "page.html").read_text(encoding="utf-8")
    values = {
        "title": html.escape(name),
        "header": json.dumps(shown.header, separators=(",", ":")).replace("<", "\\u003c"),
        "data": shown.data,
        "player": (here / "player.js").read_text(encoding="utf-8"),
    }
    for key, value in values.items():
        filled = filled.replace("{{" + key + "}}", value)
    return filled


def drawing(scene: Scene, motion: Frames, framing: Framing, scale: float | None = None) -> Drawing:
    """Return the data of a scene and its trajectory. scale: m/N, of force arrows; by default most of the trajectory's
    fit."""
    blob, radius = Blob(), framing.radius
    shaft = cone_frustum(ARROW_RADIUS, ARROW_RADIUS, 0.0, 0.75)
    header = {
        "frames": len(motion.times),
        "duration": float(motion.times[-1]),
        "bodies": motion.position.shape[1],
        "position": blob.add(motion.position, "f4"),
        "turn": blob.add((of_matrix(motion.rotation) * 32767).round(), "i2"),
        "focus": blob.add(framing.focus, "f4"),
        "radius": radius,
        "floor": framing.floor,
        "tile": tile_length(framing),
        "light": LIGHT.tolist(),
        "angle": float(VIEW_ANGLE),
        "camera": {"around": AZIMUTH, "up": ELEVATION, "distance": camera_distance(framing)},
        "looks": [_part(blob, part) for part in scene.parts],
        "shapes": [_part(blob, part) for part in scene.shapes],
        "masses": [[body + 1, *(round(float(x), 5) for x in place)] for body, place in scene.masses],
        "arrow": _mesh(
            blob, merged([shaft, cone_frustum(2.2 * ARROW_RADIUS, 0.0, 0.75, 1.0)])
        ),  # stretched by the player
        "ball": _mesh(blob, sphere((1.0,))),
    }
    if motion.forces:
        rows = [force_rows(f, force_scale(motion, framing) if scale is None else scale) for f in motion.forces]
        first = np.cumsum([0, *map(len, rows)])
        header["force"] = {"rows": blob.add(np.concatenate(rows), "f4"), "first": blob.add(first, "u4")}
    return Drawing(header, blob.text())


def force_rows(forces: Forces, scale: float) -> np.ndarray:
    """Return (n, 6): point of each force, and its arrow, m."""
    return np.concatenate([forces.points, forces.vectors * scale], axis=1)


def moment(motion: Frames, focus: np.ndarray, scale: float) -> dict[str, str]:
    """Return the first frame of a trajectory as one message: camera focus, positions, quaternions, forces."""
    pose = [focus, motion.position[0].ravel(), of_matrix(motion.rotation[0]).ravel()]
    message = {"pose": _text(np.concatenate(pose))}
    if motion.forces:
        message["force"] = _text(force_rows(motion.forces[0], scale))
    return message


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array, "<f4").tobytes()).decode()


def _part(blob: Blob, part: Part) -> dict[str, Any]:
    return {"pose": part.body + 1, "rgba": [round(x, 4) for x in part.rgba], **_mesh(blob, part.mesh)}


def _mesh(blob: Blob, mesh: Mesh) -> dict[str, Any]:
    normals = np.pad((mesh.normals * 32767).round(), ((0, 0), (0, 1)))
    return {
        "vertices": blob.add(mesh.vertices, "f4"),
        "normals": blob.add(normals, "i2"),
        "faces": blob.add(mesh.faces, "u4"),
    }
