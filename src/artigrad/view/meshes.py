"""Triangle meshes: the common input of all renderers. Primitives, arrows, and meshes from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.hulls import triangles

ROUND = 24  # facets around a cylinder
BALL = 48  # around spheres, whose outline would show fewer
CREASE = 0.7  # cosine of the angle beyond which two faces meet in an edge instead of a smooth surface


class Mesh(NamedTuple):
    """Triangles with a normal at each vertex, f32. faces (m, 3): vertex indices, counterclockwise from outside."""

    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray

    def moved(self, position: Any, rotation: np.ndarray) -> Mesh:
        """Rotate by a matrix, then translate."""
        R = rotation.astype(np.float32)
        p = np.asarray(position, np.float32)
        return Mesh(self.vertices @ R.T + p, self.normals @ R.T, self.faces)


def merged(meshes: Sequence[Mesh]) -> Mesh:
    """Merge several meshes into one."""
    if not meshes:
        return Mesh(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32))
    starts = np.cumsum([0, *(len(m.vertices) for m in meshes)])
    faces = [m.faces + s for m, s in zip(meshes, starts, strict=False)]
    return Mesh(
        np.concatenate([m.vertices for m in meshes]),
        np.concatenate([m.normals for m in meshes]),
        np.concatenate(faces).astype(np.int32),
    )


def z_towards(direction: Any) -> np.ndarray:
    """Rotation that takes z to the given direction."""
    z = np.asarray(direction, float) / np.linalg.norm(direction)
    x = np.cross([0.0, 1.0, 0.0] if abs(z[1]) < 0.9 else [1.0, 0.0, 0.0], z)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z], axis=1)


def revolved(profile: Any, normals: Any, around: int = ROUND) -> Mesh:
    """Surface of revolution around z: profile (n, 2) of radius and height from bottom to top, normals (n, 2) likewise."""
    profile, normals = np.asarray(profile, float), np.asarray(normals, float)
    angle = np.linspace(0.0, 2 * np.pi, around, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (a, 2)

    def turn(rows: np.ndarray) -> np.ndarray:
        sides = rows[:, None, :1] * ring[None]
        up = np.broadcast_to(rows[:, None, 1:], (*sides.shape[:2], 1))
        return np.concatenate([sides, up], axis=2).reshape(-1, 3).astype(np.float32)

    n = len(profile)
    below, k = np.meshgrid(np.arange(n - 1), np.arange(around), indexing="ij")
    a, b = below * around + k, below * around + (k + 1) % around
    c, d = a + around, b + around
    faces = np.concatenate([np.stack([a, b, d], -1).reshape(-1, 3), np.stack([a, d, c], -1).reshape(-1, 3)])
    vertices = turn(profile)
    corner = vertices[faces]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    return Mesh(vertices, turn(normals), faces[area > 1e-7 * area.max()].astype(np.int32))


def sphere(size: Any) -> Mesh:
    return capsule((size[0], 0.0), BALL)


def capsule(size: Any, around: int = ROUND) -> Mesh:
    """Capsule along z, from its radius and half length."""
    radius, half = float(size[0]), float(size[1])
    angle = np.linspace(-np.pi / 2, np.pi / 2, around // 2 + 1)
    low, high = angle[angle <= 1e-9], angle[angle >= -1e-9]
    outwards = np.concatenate([low, high])
    normal = np.stack([np.cos(outwards), np.sin(outwards)], axis=1)
    shift = np.concatenate([np.full(len(low), -half), np.full(len(high), half)])
    return revolved(radius * normal + np.stack([0 * shift, shift], axis=1), normal, around)


def cylinder(size: Any) -> Mesh:
    """Cylinder along z, from its radius and half length."""
    return cone_frustum(float(size[0]), float(size[0]), -float(size[1]), float(size[1]))


def cone_frustum(low_radius: float, high_radius: float, low: float, high: float) -> Mesh:
    """Closed frustum around z from height `low` to `high`."""
    slope = np.array([high - low, low_radius - high_radius])
    slope = slope / np.linalg.norm(slope)
    profile = [(0, low), (low_radius, low), (low_radius, low), (high_radius, high), (high_radius, high), (0, high)]
    return revolved(profile, [(0, -1), (0, -1), slope, slope, (0, 1), (0, 1)])


def ellipsoid(size: Any) -> Mesh:
    """Ellipsoid, from three radii."""
    ball, radii = sphere((1.0,)), np.asarray(size[:3], np.float32)
    normals = ball.normals / radii
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(ball.vertices * radii, normals, ball.faces)


def box(size: Any) -> Mesh:
    """Box, from three half edges."""
    corners: list[np.ndarray] = []
    normals: list[np.ndarray] = []
    faces: list[list[int]] = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            n, s, t = np.zeros(3), np.zeros(3), np.zeros(3)
            n[axis], s[(axis + 1) % 3], t[(axis + 2) % 3] = sign, 1.0, sign
            faces += [[len(corners) + k for k in face] for face in ((0, 1, 2), (0, 2, 3))]
            corners += [n - s - t, n + s - t, n + s + t, n - s + t]
            normals += [n] * 4
    scaled = np.array(corners) * np.asarray(size[:3], float)
    return Mesh(scaled.astype(np.float32), np.array(normals, np.float32), np.array(faces, np.int32))


def rounded_box(size: Any, radius: float) -> Mesh:
    """Box with rounded edges: each point of a fine box projected to the given distance from a smaller box."""
    half = np.asarray(size, float)
    inner = half - radius
    steps = np.array([-1.0, -0.6, 0.0, 0.0, 0.6, 1.0])
    low = np.arange(5)
    corners: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    for axis in range(3):
        s, t = (axis + 1) % 3, (axis + 2) % 3
        for sign in (-1.0, 1.0):
            i, j = np.meshgrid(np.arange(6), np.arange(6), indexing="ij")
            p = np.zeros((6, 6, 3))
            p[..., axis] = sign * half[axis]
            p[..., s] = (np.sign(i - 2.5) * inner[s]) + steps[i] * radius
            p[..., t] = sign * ((np.sign(j - 2.5) * inner[t]) + steps[j] * radius)
            a = 6 * low[:, None] + low[None] + 36 * len(corners)
            quad = np.stack([a, a + 6, a + 7, a, a + 7, a + 1], -1).reshape(-1, 3)
            corners.append(p.reshape(-1, 3))
            faces.append(quad)
    points = np.concatenate(corners)
    middle = np.clip(points, -inner, inner)
    normals = points - middle
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(
        (middle + radius * normals).astype(np.float32),
        normals.astype(np.float32),
        np.concatenate(faces).astype(np.int32),
    )


def plane(size: Any) -> Mesh:
    """Thin slab with its upper side at z = 0; half edges x and y, by default 5 m."""
    x, y = (float(s) if s > 0 else 5.0 for s in (*size[:2], 0.0, 0.0)[:2])
    slab = box((x, y, 0.005))
    return slab.moved((0.0, 0.0, -0.005), np.eye(3))


def height_field(heights: np.ndarray, size: Any) -> Mesh:
    """Height field (rows along y, columns along x), solid down to the base. size: half extents, depth of its base."""
    rows, cols = heights.shape
    x, y = np.meshgrid(np.linspace(-size[0], size[0], cols), np.linspace(-size[1], size[1], rows))
    above = np.stack([x, y, heights], -1).reshape(-1, 3)
    below = above * (1.0, 1.0, 0.0) - (0.0, 0.0, float(size[2]))
    k = np.arange(rows * cols).reshape(rows, cols)
    a, b, c, d = (part.ravel() for part in (k[:-1, :-1], k[:-1, 1:], k[1:, 1:], k[1:, :-1]))
    top = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    n, rim = rows * cols, np.concatenate([k[0, :-1], k[:-1, -1], k[-1, :0:-1], k[:0:-1, 0]])
    ahead = np.roll(rim, -1)
    sides = np.concatenate([np.stack([rim, rim + n, ahead + n], 1), np.stack([rim, ahead + n, ahead], 1)])
    w, e, f, g = (int(i) + n for i in (k[0, 0], k[0, -1], k[-1, -1], k[-1, 0]))
    return from_triangles(np.concatenate([above, below]), np.concatenate([top, sides, [[w, g, f], [w, f, e]]]))


def hull(points: np.ndarray, rings: Sequence[Sequence[int]] = ()) -> Mesh:
    """Convex hull of points; of coplanar ones their bounding box. rings: its faces, if known."""
    p = np.asarray(points, float)
    faces = (
        [(ring[0], *ring[k : k + 2]) for ring in rings for k in range(1, len(ring) - 1)]
        if len(rings) > 3
        else triangles(p)
    )
    if len(faces) == 0:
        low, high = p.min(0), p.max(0)
        return box(np.maximum((high - low) / 2, 1e-4)).moved((low + high) / 2, np.eye(3))
    return from_triangles(p, faces)


def from_triangles(vertices: Any, faces: Any) -> Mesh:
    """Mesh from a file: normals are smooth, except across edges."""
    points, same = np.unique(np.asarray(vertices, np.float32).reshape(-1, 3), axis=0, return_inverse=True)
    faces = same.reshape(-1)[np.asarray(faces, np.int64).reshape(-1, 3)]
    a, b, c = (points[faces[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    length = np.linalg.norm(n, axis=1)
    faces, n, length = faces[length > 0], n[length > 0], length[length > 0]
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, faces[:, k], n)
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-30)
    flat = (n / length[:, None])[:, None]  # (m, 1, 3)
    smooth = total[faces]
    corner = np.where((smooth * flat).sum(2, keepdims=True) > CREASE, smooth, flat)
    rows = np.concatenate([points[faces], corner], axis=2).reshape(-1, 6).astype(np.float32)
    unique, index = np.unique(rows, axis=0, return_inverse=True)
    return Mesh(unique[:, :3].copy(), unique[:, 3:].copy(), index.reshape(-1, 3).astype(np.int32))


def arrow(point: Any, vector: Any, radius: float) -> Mesh:
    """Return an arrow from a point along a vector."""
    length = float(np.linalg.norm(vector))
    head = min(4.0 * radius, 0.6 * length)
    shaft = cone_frustum(radius, radius, 0.0, length - head)
    tip = cone_frustum(2.2 * radius, 0.0, length - head, length)
    return merged([shaft, tip]).moved(point, z_towards(vector))


# kind of a shape or visual -> its mesh, from its size
PRIMITIVES = {
    "plane": plane,
    "sphere": sphere,
    "capsule": capsule,
    "box": box,
    "cylinder": cylinder,
    "ellipsoid": ellipsoid,
}


def primitive(kind: str, size: Any) -> Mesh:
    if kind not in PRIMITIVES:
        raise InputError(
            f"nothing is known about drawing a '{kind}'; there are {', '.join(PRIMITIVES)}, mesh and points"
        )
    return PRIMITIVES[kind](size)
