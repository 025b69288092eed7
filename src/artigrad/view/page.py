"""A motion as one HTML file that plays from disk: the player, and arrays in it, compressed."""

from __future__ import annotations

import base64
import gzip
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..model.quaternions import of_matrix
from .frames import Frames, Framing
from .look import ARROW_RADIUS, AZIMUTH, ELEVATION, LIGHT, VIEW_ANGLE, camera_distance, force_scale, tile_length
from .meshes import Mesh, cone_frustum, merged
from .scenery import Scene


class Blob:
    """Arrays one after the other; `add` says where one lies: kind, first byte, how many numbers."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, array: np.ndarray, kind: str) -> list[Any]:
        data = np.ascontiguousarray(array, f"<{kind}").tobytes()
        place = [kind, self.size, array.size]
        data += b"\0" * (-len(data) % 4)  # each begins at a whole word
        self.pieces.append(data)
        self.size += len(data)
        return place

    def text(self) -> str:
        return base64.b64encode(gzip.compress(b"".join(self.pieces), 9, mtime=0)).decode()


def save_page(path: Path, name: str, scene: Scene, motion: Frames, framing: Framing) -> None:
    """Write the page. Poses are kept to a tenth of a millimetre for a robot of a few metres, angles to 1e-4."""
    blob = Blob()
    header = _header(blob, scene, motion, framing)
    here = files(__package__)
    filled = (here / "page.html").read_text(encoding="utf-8")
    values = {
        "title": html.escape(name),
        "header": json.dumps(header, separators=(",", ":")).replace("<", "\\u003c"),
        "data": blob.text(),
        "player": (here / "player.js").read_text(encoding="utf-8"),
    }
    for key, value in values.items():
        filled = filled.replace("{{" + key + "}}", value)
    path.write_text(filled, encoding="utf-8")


def _header(blob: Blob, scene: Scene, motion: Frames, framing: Framing) -> dict[str, Any]:
    drawn = sorted({part.body for part in scene.parts})  # bodies with nothing to show are left out
    rows = [body + 1 for body in drawn]
    parts = [
        {"pose": drawn.index(p.body), "rgba": [round(x, 4) for x in p.rgba], **_mesh(blob, p.mesh)} for p in scene.parts
    ]
    header = {
        "frames": len(motion.times),
        "duration": float(motion.times[-1]),
        "bodies": len(drawn),
        "position": blob.add(motion.position[:, rows], "f4"),
        "turn": blob.add((of_matrix(motion.rotation[:, rows]) * 32767).round(), "i2"),
        "focus": blob.add(framing.focus, "f4"),
        "radius": framing.radius,
        "floor": framing.floor,
        "tile": tile_length(framing),
        "light": LIGHT.tolist(),
        "angle": float(VIEW_ANGLE),
        "camera": {"around": AZIMUTH, "up": ELEVATION, "distance": camera_distance(framing)},
        "parts": parts,
    }
    if motion.forces:
        vectors = [f.vectors * force_scale(motion, framing) for f in motion.forces]
        rows_of = [np.concatenate([f.points, v], axis=1) for f, v in zip(motion.forces, vectors, strict=True)]
        shaft = cone_frustum(ARROW_RADIUS, ARROW_RADIUS, 0.0, 0.75)
        unit = merged([shaft, cone_frustum(2.2 * ARROW_RADIUS, 0.0, 0.75, 1.0)])  # the player stretches it
        first = np.cumsum([0, *map(len, rows_of)])
        header["arrow"] = {
            **_mesh(blob, unit),
            "force": blob.add(np.concatenate(rows_of), "f4"),
            "first": blob.add(first, "u4"),
        }
    return header


def _mesh(blob: Blob, mesh: Mesh) -> dict[str, Any]:
    normals = np.pad((mesh.normals * 127).round(), ((0, 0), (0, 1)))
    return {
        "vertices": blob.add(mesh.vertices, "f4"),
        "normals": blob.add(normals, "i1"),
        "faces": blob.add(mesh.faces, "u4"),
    }
