"""Rasterization of triangles in NumPy: the visible triangle of each pixel. No display, no GPU.

A triangle is cut into rows of pixels, and all rows of all triangles into pixels, as arrays; the nearest triangle of each
pixel wins. Values interpolated over a triangle are affine functions of the pixel, given by one triple of coefficients.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Seen(NamedTuple):
    """Visible surfaces: flat indices of the covered pixels, and a row of `planes` for each."""

    pixel: np.ndarray
    triangle: np.ndarray  # counts the triangles of `planes`
    nearness: np.ndarray
    planes: Planes


class Planes(NamedTuple):
    """Triangles that face the camera.

    Attributes:
        inverse: (3, 3, m), maps (x, y, 1) to the weights of the three vertices.

    Triangles are the last axis everywhere: NumPy is several times slower at sums over a last axis of three.
    """

    face: np.ndarray
    inverse: np.ndarray


def rasterize(points: np.ndarray, nearness: np.ndarray, faces: np.ndarray, width: int, height: int) -> Seen:
    """Rasterize triangles.

    points (n, 2) in pixels, y downwards; nearness (n,): positive, increasing towards the camera, and affine over the
    image (1/depth of a perspective view, or a constant minus the depth of a parallel one).
    """
    planes = _planes(points, nearness, faces, width, height)
    corners = np.ascontiguousarray(faces[planes.face].T)
    triangle, row = _rows(points[:, 1][corners], height)
    left, right = _spans(np.take(planes.inverse, triangle, axis=2), row, width)
    count = np.maximum(right - left, 0)
    triangle, row, left, count = (x[count > 0] for x in (triangle, row, left, count))
    depth = np.einsum("km,kcm->cm", nearness[corners], planes.inverse)  # nearness = depth . (x, y, 1)
    slope = depth[0, triangle]
    at_left = slope * (left + 0.5) + depth[1, triangle] * (row + 0.5) + depth[2, triangle]

    which = np.repeat(np.arange(len(row), dtype=np.int32), count)
    along = np.arange(len(which), dtype=np.int32) - np.repeat(np.cumsum(count, dtype=np.int32) - count, count)
    pixel = (row * width + left)[which] + along
    close = at_left.astype(np.float32)[which] + slope.astype(np.float32)[which] * along.astype(np.float32)
    # bits of positive floats are ordered like the floats: one integer holds nearness and triangle
    key = np.maximum(close, 1e-20).view(np.uint32).astype(np.uint64) << np.uint64(32)
    key |= triangle.astype(np.uint64)[which]
    front = np.zeros(width * height, np.uint64)
    np.maximum.at(front, pixel, key)
    shown = np.flatnonzero(front)
    key = front[shown]
    won = (key & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return Seen(shown, won, (key >> np.uint64(32)).astype(np.uint32).view(np.float32), planes)


def _planes(points: np.ndarray, nearness: np.ndarray, faces: np.ndarray, width: int, height: int) -> Planes:
    """Discard triangles that face away, are outside or extend behind the camera."""
    corners = np.ascontiguousarray(faces.T)  # else the result of indexing has a slow memory layout
    x, y = points[:, 0][corners], points[:, 1][corners]
    area = (x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])
    inside = (x.max(0) > 0) & (x.min(0) < width) & (y.max(0) > 0) & (y.min(0) < height)
    face = np.flatnonzero((area < -1e-9) & inside & (nearness[corners].min(0) > 0))
    x, y, area = x[:, face], y[:, face], area[face]
    inverse = np.empty((3, 3, len(face)))
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        inverse[k, 0] = (y[i] - y[j]) / area
        inverse[k, 1] = (x[j] - x[i]) / area
        inverse[k, 2] = (x[i] * y[j] - x[j] * y[i]) / area
    return Planes(face, inverse)


def _rows(y: np.ndarray, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of pixels whose centers a triangle may cover: triangle and row."""
    first = np.clip(np.ceil(y.min(0) - 0.5), 0, height).astype(np.int32)
    end = np.clip(np.floor(y.max(0) - 0.5) + 1, 0, height).astype(np.int32)
    count = np.maximum(end - first, 0)
    triangle = np.repeat(np.arange(len(count)), count)
    return triangle, np.arange(len(triangle)) - np.repeat(np.cumsum(count) - count - first, count)


def _spans(inverse: np.ndarray, row: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first pixel and one past the last where all three weights are positive."""
    slope = inverse[:, 0]
    rest = inverse[:, 1] * (row + 0.5) + inverse[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = -rest / slope
    low = np.where(slope > 0, zero, np.where((slope == 0) & (rest < 0), np.inf, -np.inf)).max(0)
    high = np.where(slope < 0, zero, np.inf).min(0)
    left = np.clip(np.ceil(low - 0.5), 0, width).astype(np.int32)
    return left, np.clip(np.ceil(high - 0.5), 0, width).astype(np.int32)


def weights(seen: Seen, width: int) -> np.ndarray:
    """Return the barycentric weights of each covered pixel in its triangle, (3, n)."""
    x, y = seen.pixel % width + 0.5, seen.pixel // width + 0.5
    inverse = np.take(seen.planes.inverse, seen.triangle, axis=2)
    return inverse[:, 0] * x + inverse[:, 1] * y + inverse[:, 2]
