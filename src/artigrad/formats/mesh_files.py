"""Meshes that MuJoCo's compiler does not read as they are: made into ones that it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError

READ = (".stl", ".obj", ".msh")
MORE = (".dae", ".glb", ".gltf", ".ply", ".off", ".3mf")  # read by trimesh
PARTS = (b"o ", b"g ", b"usemtl ")  # what begins another object of an OBJ file
MOST = 200_000  # faces of an STL file


class Unreadable(ModelError):
    """A mesh that cannot be read, and why."""


def remade(path: Path) -> tuple[str, bytes] | None:
    """(suffix, content) of a mesh as the compiler wants it; None where the file is so already.

    The compiler reads the first object of an OBJ file, if its faces are all written alike; binary STL, and STL of not too many
    faces.
    """
    suffix = path.suffix.lower()
    if suffix in MORE:
        return ".msh", _msh(*_by_trimesh(path))
    if suffix not in READ:
        raise Unreadable(f"not one of {' '.join((*READ, *MORE))}")
    if suffix == ".obj":
        return _obj(path)
    if suffix == ".stl":
        triangles = _stl(path)
        return None if triangles is None else (".msh", _msh(*_joined(triangles)))
    return None


def _obj(path: Path) -> tuple[str, bytes] | None:
    """An OBJ file of several objects as one; where only some corners have normals, all without."""
    lines = path.read_bytes().splitlines(keepends=True)
    faces = [line for line in lines if line.startswith(b"f ")]
    mixed = len({corner.count(b"/") for face in faces for corner in face.split()[1:]}) > 1
    if not mixed and sum(line.startswith(PARTS) for line in lines) < 2:
        return None
    lines = [line for line in lines if not line.startswith(PARTS)]
    if mixed:
        lines = [line for line in lines if not line.startswith((b"vn ", b"vt ", b"f "))]
        lines += [b"f " + b" ".join(corner.split(b"/")[0] for corner in face.split()[1:]) + b"\n" for face in faces]
    return ".obj", b"".join(lines)


def _stl(path: Path) -> np.ndarray | None:
    """Corners of triangles (n, 3, 3) of an STL file that is text, or too large; None of any other: only its head is read."""
    with path.open("rb") as file:
        head = file.read(84)
    count = int.from_bytes(head[80:84], "little")
    if path.stat().st_size == 84 + 50 * count:
        return np.fromfile(path, _FACE, offset=84)["corners"] if count > MOST else None
    if not head.lstrip().startswith(b"solid"):
        return None
    lines = (line.split() for line in path.read_bytes().splitlines())
    try:
        corners = [[float(x) for x in words[1:]] for words in lines if words and words[0] == b"vertex"]
        return np.array(corners).reshape(-1, 3, 3)
    except ValueError:
        raise Unreadable("a text STL whose vertices are not three numbers each, three to a face") from None


_FACE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("unused", "<u2")])


def _joined(triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, faces), with each vertex once."""
    vertices, index = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    return vertices, index.reshape(-1, 3)


def _by_trimesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, faces) of all that a file has, where it puts it."""
    try:
        import trimesh
    except ImportError:
        raise Unreadable(f"{path.suffix} is read by trimesh: pip install 'artigrad[meshes]'") from None
    try:
        mesh: Any = trimesh.load(path, force="mesh")
    except Exception as problem:
        raise Unreadable(f"trimesh cannot read it: {problem}") from None
    if not len(mesh.faces):
        raise Unreadable("it has no faces")
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def _msh(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """In MuJoCo's own format: four counts, coordinates, faces."""
    counts = np.array([len(vertices), 0, 0, len(faces)], "<i4")
    return counts.tobytes() + vertices.astype("<f4").tobytes() + faces.astype("<i4").tobytes()
