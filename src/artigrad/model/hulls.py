"""Convex hulls: vertices among many points, and their connectivity.

A kernel finds the vertex furthest along a direction by moving from vertex to vertex, so it needs neighbors; contact
patches need faces. Both are integers of the model. The positions of vertices are in `params.vertex`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FLAT = 1e-10  # relative to the size of the points: distance within which a point is in a plane
FLAT_EDGE = 1e-7  # distance within which it does not matter which vertex is the furthest
EVEN = 1e-5  # distance within which triangles form one face
LARGE = 8  # largest number of vertices of a face
DIRECTIONS = 512  # directions in which the hull of few vertices is compared with that of all


class Hull(NamedTuple):
    """Connectivity of a hull, by indices of points.

    Attributes:
        neighbors: Neighbors of each vertex; a point inside the hull has none.
        faces: Vertices of each face, counter-clockwise seen from outside. Fewer than three points have one face, a flat
            polygon has two.
    """

    neighbors: tuple[tuple[int, ...], ...] = ()
    faces: tuple[tuple[int, ...], ...] = ()


def triangles(points: np.ndarray) -> np.ndarray:
    """Return the triangles (n, 3) of the convex hull, oriented outwards; none if all points are in a plane.

    Points are added one at a time: the triangles visible from a point are replaced by a cone from their boundary to it.
    """
    start = _tetrahedron(points)
    if start is None:
        return np.zeros((0, 3), int)
    size, center = float(np.ptp(points, axis=0).max()), points[start].mean(0)
    a, b, c, d = start
    faces = np.array([(a, b, c), (a, c, d), (a, d, b), (b, d, c)])
    normal = _normals(points, faces)
    inwards = np.sum(normal * (points[faces[:, 0]] - center), 1) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    normal[inwards] *= -1
    far = np.argsort(-np.linalg.norm(points - center, axis=1), kind="stable")
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
    """Return four points far apart; None if all are in a plane."""
    size = float(np.ptp(points, axis=0).max())
    a = int(np.argmin(points[:, 0]))
    b = int(np.argmax(np.linalg.norm(points - points[a], axis=1)))
    area = np.linalg.norm(np.cross(points - points[a], points[b] - points[a]), axis=1)
    c = int(np.argmax(area))
    height = np.abs((points - points[a]) @ np.cross(points[b] - points[a], points[c] - points[a]))
    d = int(np.argmax(height))
    return [a, b, c, d] if height[d] > FLAT * size * max(float(area[c]), FLAT * size * size) else None


def hull_of(points: np.ndarray) -> Hull:
    """Compute the connectivity of the convex hull of some points."""
    faces = triangles(points)
    if len(faces) == 0:
        return _flat(points)
    return Hull(neighbors_of(points, faces), tuple(_faces(points, faces, EVEN)))


def neighbors_of(points: np.ndarray, faces: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Return the neighbors of each point on a surface of triangles (n, 3).

    Edges inside flat faces are omitted: the ascent needs none. Around a large face there are shortcuts over 2, 4, 8,
    ... vertices, so that it takes few steps.
    """
    near: list[set[int]] = [set() for _ in points]
    for ring in _faces(points, faces, FLAT_EDGE):
        n = len(ring)
        for step in (2**k for k in range(n.bit_length()) if 2**k == 1 or (n > LARGE and 2 ** (k + 1) <= n)):
            for k, i in enumerate(ring):
                j = ring[(k + step) % n]
                near[i].add(j)
                near[j].add(i)
    return tuple(tuple(sorted(x)) for x in near)


def _faces(points: np.ndarray, faces: np.ndarray, flat: float) -> list[tuple[int, ...]]:
    """Return the outlines of flat faces, within this fraction of the size, on a surface of triangles.

    Flat areas around a protruding vertex stay triangles.
    """
    size, count = float(np.ptp(points, axis=0).max()), len(points)
    normal = _normals(points, faces)
    corner = faces.ravel()
    ahead, behind = np.roll(faces, -1, axis=1).ravel(), np.roll(faces, 1, axis=1).ravel()
    key, back = corner * count + ahead, ahead * count + corner
    order = np.argsort(key)
    twin = order[np.searchsorted(key[order], back)]  # adjacent triangle of each edge
    own = np.arange(len(corner)) // 3
    height = np.abs(np.sum(normal[own] * (points[behind[twin]] - points[corner]), 1))
    level = (height <= flat * size) & (height[twin] <= flat * size)
    area = np.linalg.norm(
        np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]]), axis=1
    )
    out, seen = list[tuple[int, ...]](), np.zeros(len(faces), bool)
    alone = ~level.reshape(-1, 3).any(1)
    out += [tuple(f) for f in faces[alone].tolist()]
    for seed in np.argsort(-area).tolist():
        if alone[seed] or seen[seed]:
            continue
        seen[seed], waiting, group = True, [seed], list[int]()
        while waiting:
            group.append(waiting.pop())
            for e in range(3 * group[-1], 3 * group[-1] + 3):
                other = int(own[twin[e]])
                if (
                    level[e]
                    and not seen[other]
                    and _within(points[faces[other]] - points[faces[seed, 0]], normal[seed], flat * size)
                ):
                    seen[other] = True
                    waiting.append(other)
        rings = _outlines(faces[group])
        out += rings if len(rings) == 1 else [tuple(f) for f in faces[group].tolist()]
    return out


def _within(d: np.ndarray, normal: np.ndarray, height: float) -> bool:
    return bool((np.abs(d @ normal) <= height).all())


def _outlines(faces: np.ndarray) -> list[tuple[int, ...]]:
    """Return the boundary of some connected triangles: one polygon, or several if it has a hole or meets itself at a
    vertex."""
    edges = {(f[i], f[(i + 1) % 3]) for f in faces.tolist() for i in range(3)}
    after: dict[int, list[int]] = {}
    for i, j in edges:
        if (j, i) not in edges:
            after.setdefault(i, []).append(j)
    rings = list[tuple[int, ...]]()
    for start in after:
        ring = [start]
        while after[ring[-1]]:
            ahead = after[ring[-1]].pop()
            if ahead in ring:
                k = ring.index(ahead)
                rings.append(tuple(ring[k:]))
                del ring[k + 1 :]
            else:
                ring.append(ahead)
    return rings


def _flat(points: np.ndarray) -> Hull:
    """Return the outline of points in a plane, in order; of points on a line, the two ends."""
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
    """Return the vertices of a convex outline, counter-clockwise (Andrew's monotone chain)."""
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


def thinned(points: np.ndarray, most: int) -> np.ndarray:
    """Reduce many points to few, by repeatedly adding the one that protrudes most.

    The support function h(d) = max_i d . x_i is compared in many directions.
    """
    i = np.arange(DIRECTIONS) + 0.5
    z, angle = 1 - 2 * i / DIRECTIONS, np.pi * (1 + 5**0.5) * i
    d = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z])
    reach = points @ d
    h = reach.max(0)
    kept = [int(np.argmax(points @ np.array([0.0, 0.0, -1.0])))]
    while len(kept) < most:
        short = h - reach[kept].max(0)
        worst = int(np.argmax(short))
        if short[worst] <= 0:
            break
        kept.append(int(np.argmax(reach[:, worst])))
    return points[sorted(kept)]
