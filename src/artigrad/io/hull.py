"""The corners of a mesh that may touch a plane: those of its convex hull, as many as pay."""

from __future__ import annotations

from typing import Any

import numpy as np

DIRECTIONS = 512  # in which the surface of the few corners is compared with that of all


def corners(m: Any, k: int, most: int) -> tuple[np.ndarray, float]:
    """At most `most` corners of mesh k of a compiled file, and how far their hull is inside the mesh's own, in metres."""
    points = _hull(m, k)
    return (points, 0.0) if len(points) <= most else thinned(points, most)


def _hull(m: Any, k: int) -> np.ndarray:
    """Vertices of the convex hull that MuJoCo made; all vertices where it made none."""
    start = int(m.mesh_vertadr[k])
    vertices = np.array(m.mesh_vert[start : start + m.mesh_vertnum[k]], float)
    graph = int(m.mesh_graphadr[k])
    if graph < 0:
        return np.unique(vertices, axis=0)
    count = int(m.mesh_graph[graph])
    return vertices[m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]]


def thinned(points: np.ndarray, most: int) -> tuple[np.ndarray, float]:
    """Few of many points, by adding the one that sticks out most; and how far the worst of the others sticks out.

    h(d) = max_i d . x_i is where the surface is in direction d: it is compared in many directions.
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
    return points[sorted(kept)], float((h - reach[kept].max(0)).max())
