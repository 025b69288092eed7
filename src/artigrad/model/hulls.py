"""Convex hulls: which of many points are corners, and how these hang together.

A kernel finds the furthest corner in a direction by going from corner to corner, so it needs to know neighbours; what lies
flat on something is a face. Both are integers of the model. Where corners are is in `params.vertex`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FLAT = 1e-10  # of the size of the points: what is this near to a plane lies in it
LEVEL = 1.0 - 1e-8  # cosine between two triangles that are of one face


class Hull(NamedTuple):
    """By numbers of corners: the neighbours of each, and the corners of each face, counter-clockwise seen from outside. A point
    inside has no neighbours. Fewer than three points have one face, a flat ring has two."""

    neighbours: tuple[tuple[int, ...], ...] = ()
    faces: tuple[tuple[int, ...], ...] = ()


def triangles(points: np.ndarray) -> np.ndarray:
    """The surface of the convex hull (n, 3), outwards; none if all points lie in a plane. One point after the other: where it
    sees triangles from outside, these make way for a cone from their rim to it."""
    start = _tetrahedron(points)
    if start is None:
        return np.zeros((0, 3), int)
    size, centre = float(np.ptp(points, axis=0).max()), points[start].mean(0)
    a, b, c, d = start
    faces = np.array([(a, b, c), (a, c, d), (a, d, b), (b, d, c)])
    normal = _normals(points, faces)
    inwards = np.sum(normal * (points[faces[:, 0]] - centre), 1) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    normal[inwards] *= -1
    far = np.argsort(-np.linalg.norm(points - centre, axis=1), kind="stable")
    for k in far:
        above = np.sum(normal * (points[k] - points[faces[:, 0]]), 1) > FLAT * size
        if not above.any():
            continue
        edges = {(int(f[i]), int(f[i - 2])) for f in faces[above] for i in range(3)}
        cone = np.array([(i, j, int(k)) for i, j in edges if (j, i) not in edges])
        faces = np.concatenate([faces[~above], cone])
        normal = np.concatenate([normal[~above], _normals(points, cone)])
    return faces


def _normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (points[faces[:, k]] for k in range(3))
    n = np.cross(b - a, c - a)
    return n / np.maximum(np.linalg.norm(n, axis=1, keepdims=True), 1e-300)


def _tetrahedron(points: np.ndarray) -> list[int] | None:
    """Four points that are far apart, or None where all lie in a plane."""
    size = float(np.ptp(points, axis=0).max())
    a = int(np.argmin(points[:, 0]))
    b = int(np.argmax(np.linalg.norm(points - points[a], axis=1)))
    area = np.linalg.norm(np.cross(points - points[a], points[b] - points[a]), axis=1)
    c = int(np.argmax(area))
    height = np.abs((points - points[a]) @ np.cross(points[b] - points[a], points[c] - points[a]))
    d = int(np.argmax(height))
    return [a, b, c, d] if height[d] > FLAT * size * max(float(area[c]), FLAT * size * size) else None


def hull_of(points: np.ndarray) -> Hull:
    """How the corners among some points hang together."""
    faces = triangles(points)
    if len(faces) == 0:
        return _flat(points)
    near: list[set[int]] = [set() for _ in points]
    for f in faces.tolist():
        for i in range(3):
            near[f[i]].update(f[:i] + f[i + 1 :])
    return Hull(tuple(tuple(sorted(x)) for x in near), tuple(_merged(points, faces)))


def _merged(points: np.ndarray, faces: np.ndarray) -> list[tuple[int, ...]]:
    """Faces of triangles, those that lie in one plane together."""
    normal = _normals(points, faces)
    owner = {(int(f[i]), int(f[i - 2])): k for k, f in enumerate(faces) for i in range(3)}
    group, out = np.full(len(faces), -1), list[tuple[int, ...]]()
    for k in range(len(faces)):
        if group[k] >= 0:
            continue
        group[k], waiting, own = k, [k], list[int]()
        while waiting:
            own.append(waiting.pop())
            for i in range(3):
                other = owner[int(faces[own[-1]][i - 2]), int(faces[own[-1]][i])]
                if group[other] < 0 and normal[other] @ normal[k] > LEVEL:
                    group[other] = k
                    waiting.append(other)
        edges = {(int(faces[t][i]), int(faces[t][i - 2])) for t in own for i in range(3)}
        after = {i: j for i, j in edges if (j, i) not in edges}
        ring = [next(iter(after))]
        while (ahead := after[ring[-1]]) != ring[0]:
            ring.append(ahead)
        out.append(tuple(ring))
    return out


def _flat(points: np.ndarray) -> Hull:
    """Of points in a plane: the corners of their outline, one after the other; of those on a line the two ends."""
    around = points - points.mean(0)
    axes = np.linalg.svd(around)[2]
    x, y = around @ axes[0], around @ axes[1]
    if np.ptp(x) == 0:
        ring = [0]
    elif np.ptp(y) <= FLAT * np.ptp(x):
        ring = [int(np.argmin(x)), int(np.argmax(x))]
    else:
        ring = _outline(x, y)
    near = [set[int]() for _ in points]
    for i, j in zip(ring, ring[1:] + ring[:1], strict=True):
        near[i].add(j)
        near[j].add(i)
    both = (tuple(ring), tuple(ring[::-1])) if len(ring) > 2 else (tuple(ring),)
    return Hull(tuple(tuple(sorted(x - {k})) for k, x in enumerate(near)), both)


def _outline(x: np.ndarray, y: np.ndarray) -> list[int]:
    """The corners of a convex outline, counter-clockwise (Andrew's chain)."""
    order = np.lexsort((y, x)).tolist()
    level = FLAT * float(np.ptp(x)) ** 2

    def half(numbers: list[int]) -> list[int]:
        out = list[int]()
        for k in numbers:
            while len(out) > 1:
                i, j = out[-2:]
                if (x[j] - x[i]) * (y[k] - y[i]) - (y[j] - y[i]) * (x[k] - x[i]) > level:
                    break
                out.pop()
            out.append(k)
        return out[:-1]

    return half(order) + half(order[::-1])
