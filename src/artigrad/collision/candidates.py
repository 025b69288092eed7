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
) = range(ROUTINE_COUNT := 9)
RIM = 8  # points on each rim of a cylinder


class Candidates(NamedTuple):
    """What may touch: pairs of shapes, each with its points; and the limited joints. Groups are contiguous."""

    kind: np.ndarray  # of each pair: its routine
    a: np.ndarray
    b: np.ndarray
    group: np.ndarray
    first: np.ndarray  # point of each pair, and the number of all points
    vertex: np.ndarray  # of each point
    feature: np.ndarray  # (n, 3): times the lengths of B, where the point is in its frame
    limited: np.ndarray  # links whose joint has a limit or dry friction, ordered by group
    limited_group: np.ndarray
    groups: int
    links: list[np.ndarray]  # of each group, from the roots outwards


def candidates(model: Model) -> Candidates:
    """All pairs, and the limited joints, sorted by the group of trees they belong to."""
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
    pairs = sorted(shapes.pairs, key=lambda p: root(tree[p[1]] or tree[p[0]]))
    group = [root(tree[b] or tree[a]) for a, b in pairs]
    limited.sort(key=lambda i: root(int(links.tree[i])))
    limited_group = [root(int(links.tree[i])) for i in limited]
    number = {g: k for k, g in enumerate(sorted({*group, *limited_group}))}
    of_link = np.array([number.get(root(int(t)), -1) for t in links.tree])
    points = [_points(model, a, b) for a, b in pairs]
    every = [point for of_pair in points for point in of_pair]

    def column(values: list[int]) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    return Candidates(
        kind=column([of_pair[0][0] for of_pair in points]),
        a=column([a for a, _ in pairs]),
        b=column([b for _, b in pairs]),
        group=column([number[g] for g in group]),
        first=np.cumsum([0, *map(len, points)]).astype(np.int32),
        vertex=column([vertex for _, vertex, _ in every]),
        feature=np.array([feature for _, _, feature in every] or [(0.0, 0.0, 0.0)], float),
        limited=column(limited),
        limited_group=column([number[g] for g in limited_group]),
        groups=len(number),
        links=[np.flatnonzero(of_link == k) for k in range(len(number))],
    )


def contact_names(model: Model) -> tuple[tuple[str, str], ...]:
    """The two shapes of every point that may touch, in the order of the points."""
    c, names = candidates(model), model.shapes.names
    count = np.diff(c.first)
    return tuple((names[a], names[b]) for a, b, n in zip(c.a, c.b, count, strict=False) for _ in range(n))


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
