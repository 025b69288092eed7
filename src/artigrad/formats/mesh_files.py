"""Conversion of meshes that MuJoCo's compiler cannot read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelError

READ = (".stl", ".obj", ".msh")
MORE = (".dae", ".glb", ".gltf", ".ply", ".off", ".3mf")  # formats read by trimesh
PARTS = (b"o ", b"g ", b"usemtl ")  # keyword of a further object in an OBJ file
MOST = 200_000  # largest number of faces of an STL file


class Unreadable(ModelError):
    """Unreadable mesh, with the reason."""


def remade(path: Path) -> tuple[str, bytes] | None:
    """Return (suffix, content) of a mesh for the compiler; None if it can read the file itself.

    The compiler reads the first object of an OBJ file, if its faces are all written alike; binary STL, and STL with not
    too many faces.
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
    """Merge the objects of an OBJ file; without normals if only some vertices have them."""
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
    """Return the vertices of triangles (n, 3, 3) of an STL file in ASCII or too large; None for any other, of which only
    the head is read."""
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
    """Return (vertices, faces) with each vertex once."""
    vertices, index = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    return vertices, index.reshape(-1, 3)


def _by_trimesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return (vertices, faces) of all objects of a file, placed."""
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
    """Return a mesh in MuJoCo's own format: four counts, coordinates, faces."""
    counts = np.array([len(vertices), 0, 0, len(faces)], "<i4")
    return counts.tobytes() + vertices.astype("<f4").tobytes() + faces.astype("<i4").tobytes()
