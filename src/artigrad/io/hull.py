"""The convex hull of a mesh of a compiled file, as MuJoCo made it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.hulls import Hull, hull_of


def hull_in(m: Any, k: int) -> tuple[np.ndarray, Hull]:
    """The corners (n, 3) of mesh k, and how they hang together."""
    start = int(m.mesh_vertadr[k])
    vertices = np.array(m.mesh_vert[start : start + m.mesh_vertnum[k]], float)
    graph = int(m.mesh_graphadr[k])
    if graph < 0:  # it was compiled for something that touches nothing
        points = np.unique(vertices, axis=0)
        return points, hull_of(points)
    count, table = int(m.mesh_graph[graph]), m.mesh_graph[graph + 2 :]
    first, corners, lists = table[:count], table[count : 2 * count], table[2 * count :]
    number = {int(v): i for i, v in enumerate(corners)}
    neighbours = []
    for at in first.tolist():
        end = at
        while lists[end] >= 0:
            end += 1
        neighbours.append(tuple(lists[at:end].tolist()))
    faces = []
    for f in range(int(m.mesh_polyadr[k]), int(m.mesh_polyadr[k] + m.mesh_polynum[k])):
        at = int(m.mesh_polyvertadr[f])
        faces.append(tuple(number[int(v)] for v in m.mesh_polyvert[at : at + m.mesh_polyvertnum[f]]))
    return vertices[corners], Hull(tuple(neighbours), tuple(faces))
