"""Candidates: the pairs of a model taken apart into single points that may touch, in groups that may push each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model import BOX, CAPSULE, CYLINDER, PLANE, POINTS, SPHERE, Model

# routines of single points: what `collide` branches on
(
    PLANE_SPHERE,
    PLANE_CAPSULE,
    PLANE_BOX,
    PLANE_CYLINDER,
    PLANE_POINT,
    SPHERE_SPHERE,
    CAPSULE_SPHERE,
    CAPSULE_CAPSULE,
    BOX_SPHERE,
) = range(9)
RIM = 8  # points on each rim of a cylinder


class Candidates(NamedTuple):
    """One row per point; groups are contiguous. A shape's own lengths times `feature` give the point in its frame."""

    kind: np.ndarray
    a: np.ndarray
    b: np.ndarray
    vertex: np.ndarray
    feature: np.ndarray  # (n, 3)
    group: np.ndarray
    limited: np.ndarray  # links whose joint has a limit or dry friction, ordered by group
    limited_group: np.ndarray
    groups: int


def candidates(model: Model) -> Candidates:
    """All single points of all pairs, and the limited joints, sorted by the group of trees they belong to."""
    shapes, links = model.shapes, model.links
    tree = [int(links.tree[links.of_body[b + 1]]) for b in shapes.body]
    limited = [int(links.of_body[i + 1]) for i in shapes.limited]
    parent = list(range(links.trees + 1))  # trees that may touch each other are one group

    def root(t: int) -> int:
        while parent[t] != t:
            t = parent[t]
        return t

    for a, b in shapes.pairs:
        if tree[a] and tree[b]:
            parent[root(tree[a])] = root(tree[b])
    rows = []
    for a, b in shapes.pairs:
        group = root(tree[b] or tree[a])
        for kind, vertex, feature in _points(model, a, b):
            rows.append((group, kind, a, b, vertex, feature))
    rows.sort(key=lambda r: r[0])
    limited.sort(key=lambda i: root(int(links.tree[i])))
    used = sorted({r[0] for r in rows} | {root(int(links.tree[i])) for i in limited})
    number = {g: k for k, g in enumerate(used)}

    def column(k: int) -> np.ndarray:
        return np.array([r[k] for r in rows] + [0], np.int32)

    return Candidates(
        kind=column(1),
        a=column(2),
        b=column(3),
        vertex=column(4),
        feature=np.array([r[5] for r in rows] or [(0.0, 0.0, 0.0)], float),
        group=np.array([number[r[0]] for r in rows] + [0], np.int32),
        limited=np.array([*limited, 0], np.int32),
        limited_group=np.array([*(number[root(int(links.tree[i]))] for i in limited), 0], np.int32),
        groups=len(used),
    )


def _points(model: Model, a: int, b: int) -> list[tuple[int, int, tuple[float, float, float]]]:
    """(routine, vertex, feature) of each point of a pair."""
    kinds, none = (model.shapes.kind[a], model.shapes.kind[b]), (0.0, 0.0, 0.0)
    if kinds[0] != PLANE:
        table = {
            (SPHERE, SPHERE): SPHERE_SPHERE,
            (CAPSULE, SPHERE): CAPSULE_SPHERE,
            (CAPSULE, CAPSULE): CAPSULE_CAPSULE,
            (BOX, SPHERE): BOX_SPHERE,
        }
        return [(table[kinds], 0, none)]
    if kinds[1] == SPHERE:
        return [(PLANE_SPHERE, 0, none)]
    if kinds[1] == CAPSULE:
        return [(PLANE_CAPSULE, 0, (0.0, 0.0, s)) for s in (-1.0, 1.0)]
    if kinds[1] == BOX:
        signs = (-1.0, 1.0)
        return [(PLANE_BOX, 0, (x, y, z)) for x in signs for y in signs for z in signs]
    if kinds[1] == CYLINDER:
        angles = 2 * np.pi * np.arange(RIM) / RIM
        return [(PLANE_CYLINDER, 0, (float(np.cos(t)), float(np.sin(t)), s)) for t in angles for s in (-1.0, 1.0)]
    assert kinds[1] == POINTS
    first, count = model.shapes.vertices[b]
    return [(PLANE_POINT, first + k, none) for k in range(count)]
