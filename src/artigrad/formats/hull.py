"""Convex hull of a mesh of a compiled file, as computed by MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.hulls import Hull, hull_of, neighbors_of, thinned

MOST = 64  # vertices of a mesh without contact


def hull_in(m: Any, k: int) -> tuple[np.ndarray, Hull]:
    """Return the vertices (n, 3) of the hull of mesh k, and their connectivity."""
    start = int(m.mesh_vertadr[k])
    vertices = np.array(m.mesh_vert[start : start + m.mesh_vertnum[k]], float)
    graph = int(m.mesh_graphadr[k])
    if graph < 0:  # of a visual mesh without contact
        points = np.unique(vertices, axis=0)
        points = points if len(points) <= MOST else thinned(points, MOST)
        return points, hull_of(points)
    count, sides = (int(x) for x in m.mesh_graph[graph : graph + 2])
    table = m.mesh_graph[graph + 2 :]
    corners = table[count : 2 * count]
    number = np.full(len(vertices), -1)
    number[corners] = np.arange(count)
    triangles = number[table[3 * count + 3 * sides : 3 * count + 6 * sides].reshape(-1, 3)]
    faces = []
    for f in range(int(m.mesh_polyadr[k]), int(m.mesh_polyadr[k] + m.mesh_polynum[k])):
        at = int(m.mesh_polyvertadr[f])
        faces.append(tuple(number[m.mesh_polyvert[at : at + m.mesh_polyvertnum[f]]].tolist()))
    return vertices[corners], Hull(neighbors_of(vertices[corners], triangles), tuple(faces))
