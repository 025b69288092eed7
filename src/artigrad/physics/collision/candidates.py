"""Candidates: the pairs of a model taken apart into single points that may touch, in groups that may push each other."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...compiler import Layout, Table
from ...model.model import HEIGHT_FIELD, PLANE, Model
from .convex.clip import ORDER, POLYGON
from .convex.contact_polygon import CORNER
from .convex.contact_record import HULL_MEETING, MEETING, SOLID_MEETING, Slots
from .convex.height_field import WINDOW
from .convex.hull_tables import BLOCK, ring_blocks, ways_of
from .convex.patch import MADE
from .convex.solids import SOLIDS
from .routines import CONVEX, NEAREST, ON_FIELD, ROUTINES, SLOTS, UNDER_FIELD, routines_by_pair

CROWD = 12  # pairs between two links from which on they are looked at only where the boxes around them are near


class Candidates(NamedTuple):
    """What may touch: pairs of shapes, each with its points; and the limited joints. Groups are contiguous, and crowds in
    them."""

    routine: np.ndarray  # of each pair
    a: np.ndarray
    b: np.ndarray
    turned: np.ndarray  # 1 where MuJoCo has the two shapes of a pair the other way round
    group: np.ndarray
    crowd: np.ndarray  # that each pair belongs to, counted from 1; 0: none
    first: np.ndarray  # point of each pair, and the number of all points
    feature: np.ndarray  # (n, 3), of each point: times the lengths of B, where it is in its frame
    limited: np.ndarray  # links whose joint has a limit or dry friction, ordered by group
    limited_group: np.ndarray
    groups: int
    links: list[np.ndarray]  # of each group, from the roots outwards


_kept: WeakKeyDictionary[Model, Candidates] = WeakKeyDictionary()


def candidates(model: Model) -> Candidates:
    """All pairs, and the limited joints, sorted by the group of trees they belong to; found once."""
    found = _kept.get(model)
    if found is None:
        found = _kept[model] = _find_candidates(model)
    return found


def _find_candidates(model: Model) -> Candidates:
    shapes, links = model.shapes, model.links
    pairs = shapes.pair_array
    of_shape = links.of_body[np.array(shapes.body, int) + 1]
    tree = np.append(links.tree[of_shape], 0)[pairs] if len(pairs) else np.zeros((0, 2), int)
    limited = [int(links.of_body[i + 1]) for i in shapes.limited]
    roots = _roots(tree, links.trees)
    crowd = _crowds(model, of_shape)
    group = roots[np.where(tree[:, 1] > 0, tree[:, 1], tree[:, 0])]
    order = np.lexsort((crowd, group))
    (a, b), group, crowd = pairs[order].T, group[order], crowd[order]
    limited.sort(key=lambda i: roots[links.tree[i]])
    limited_group = roots[links.tree[limited]]
    numbers = np.unique(np.concatenate([group, limited_group]))
    number = np.full(links.trees + 1, -1)
    number[numbers] = np.arange(len(numbers))
    of_link = number[roots[links.tree]]
    kind, rank = np.array(shapes.kind, int), np.arange(len(shapes.kind))
    turned = (kind[a] > kind[b]) | ((kind[a] == kind[b]) & (rank[a] > rank[b]))
    routine = routines_by_pair(model, a, b)
    first, feature = _points(model, a, b, routine)

    def column(values: Any) -> np.ndarray:
        return np.append(values, 0).astype(np.int32)

    return Candidates(
        routine=column(routine),
        a=column(a),
        b=column(b),
        turned=column(turned),
        group=column(number[group]),
        crowd=column(crowd),
        first=first.astype(np.int32),
        feature=feature if len(feature) else np.zeros((1, 3)),
        limited=column(limited),
        limited_group=column(number[limited_group]),
        groups=len(numbers),
        links=[np.flatnonzero(of_link == k) for k in range(len(numbers))],
    )


def _roots(tree: np.ndarray, trees: int) -> np.ndarray:
    """Of each tree, the one that stands for all that may touch each other; the world is none."""
    parent = list(range(trees + 1))

    def root(t: int) -> int:
        while parent[t] != t:
            t = parent[t]
        return t

    both = tree[(tree > 0).all(1)]
    _, first = np.unique(both[:, 0] * (trees + 1) + both[:, 1], return_index=True)
    left = len(np.unique(both)) - 1  # so often two groups become one, at most
    for t in both[np.sort(first)].tolist():
        if left == 0:
            break
        one, other = root(t[0]), root(t[1])
        left -= one != other
        parent[one] = other
    return np.array([root(t) for t in range(trees + 1)])


def _points(model: Model, a: np.ndarray, b: np.ndarray, routine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the points of each pair start, and their features."""
    alike = {r: np.array(ROUTINES[r].features, float) for r in np.unique(routine).tolist() if not ROUTINES[r].each}
    count = np.zeros(len(routine), int)
    for r, features in alike.items():
        count[routine == r] = len(features)
    others = {
        k: np.array(ROUTINES[routine[k]].points(model, int(a[k]), int(b[k])), float).reshape(-1, 3)
        for k in np.flatnonzero(~np.isin(routine, list(alike))).tolist()
    }
    for k, features in others.items():
        count[k] = len(features)
    first = np.concatenate([[0], np.cumsum(count)])
    feature = np.zeros((first[-1], 3))
    for r, features in alike.items():
        at = first[:-1][routine == r]
        feature[at[:, None] + np.arange(len(features))] = features
    for k, features in others.items():
        feature[first[k] : first[k + 1]] = features
    return first, feature


def _crowds(model: Model, of_shape: np.ndarray) -> np.ndarray:
    """The number of the crowd that each pair of a model belongs to, from 1; 0: none."""
    shapes, pairs = model.shapes, model.shapes.pair_array
    endless = np.isin(np.array(shapes.kind, int)[pairs], (PLANE, HEIGHT_FIELD)).any(1)
    ends = np.append(of_shape, 0)[pairs]
    _, place, count = np.unique(ends[~endless], axis=0, return_inverse=True, return_counts=True)
    number = np.cumsum(count >= CROWD) * (count >= CROWD)
    out = np.zeros(len(pairs), int)
    out[~endless] = number[place.reshape(-1)] if len(number) else 0
    return out


def routines_of(model: Model) -> frozenset[int]:
    """The routines that its pairs need: what its kernels are compiled for."""
    return frozenset(np.unique(candidates(model).routine[:-1]).tolist())


def solids_of(model: Model) -> frozenset[int]:
    """The kinds of solids in pairs of solids of any kinds, and in pairs with height fields; and how the furthest corners of
    hulls are found."""
    kind, general = model.shapes.kind, (CONVEX, NEAREST, ON_FIELD, UNDER_FIELD)
    c = candidates(model)
    ours = np.isin(c.routine[:-1], general)
    found = np.unique(np.array(kind, int)[np.concatenate([c.a[:-1][ours], c.b[:-1][ours]])]).tolist()
    return frozenset(k for k in found if k in SOLIDS) | ways_of(model)


def meeting_layout(routines: frozenset[int]) -> Layout:
    """What is kept of a point of a pair whose points are found together."""
    kept = {name for r in routines for name in ROUTINES[r].kept}
    return next(layout for layout in (MEETING, HULL_MEETING, SOLID_MEETING) if kept.issubset(layout.fields))


def meeting_sizes(model: Model, contacts: int) -> dict[str, int]:
    """Sizes of the scratch for such pairs: what is being met, and what contacts keep of it."""
    routines = routines_of(model)
    if not any(ROUTINES[r].collide for r in routines):
        return {"slots": 0, "met": 0}
    layout = meeting_layout(routines)
    size = layout.size
    patch = MADE.size + WINDOW.size + 2 * ring_blocks(model) * BLOCK * (CORNER.size + 2 * POLYGON.size + ORDER.size)
    return {"slots": SLOTS * size + (patch if layout is SOLID_MEETING else 0), "met": contacts * size}


def slots_in(memory: Any, routines: frozenset[int], blocks: Any) -> Slots:
    """The scratch of a pair whose points are found together, in memory of that size; blocks: of a ring of corners."""
    rows = Table(memory, meeting_layout(routines))
    made = Table(memory, MADE, SLOTS * rows.layout.size)
    window = Table(memory, WINDOW, made.start + MADE.size)
    both = blocks * (2 * BLOCK)  # rows of two rings
    corners = Table(memory, CORNER, window.start + WINDOW.size)
    polygon = Table(memory, POLYGON, both * CORNER.size + corners.start)
    order = Table(memory, ORDER, both * (2 * POLYGON.size) + polygon.start)
    return Slots(rows, made, window, corners, polygon, order, blocks)


def contact_names(model: Model) -> tuple[tuple[str, str], ...]:
    """The two shapes of every point that may touch, in the order of the points."""
    c, names = candidates(model), model.shapes.names
    count = np.diff(c.first)
    return tuple((names[a], names[b]) for a, b, n in zip(c.a, c.b, count, strict=False) for _ in range(n))
