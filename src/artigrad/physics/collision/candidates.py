"""Candidate contact points: the shape pairs of a model, split into points and sorted into groups that can interact."""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...compiler import Layout, Table
from ...model.model import HEIGHT_FIELD, PLANE, Model
from .convex.clip import ORDER, POLYGON
from .convex.contact_polygon import CORNER
from .convex.contact_record import CONTACT, CONVEX_CONTACT, HULL_CONTACT, Slots
from .convex.height_field import WINDOW
from .convex.hull_tables import BLOCK, ring_blocks, ways_of
from .convex.patch import PATCH_RECORD
from .convex.solids import SOLIDS
from .routines import CONVEX, NEAREST, ON_FIELD, ROUTINES, SLOTS, UNDER_FIELD, routines_by_pair

GROUP_SIZE = 12  # number of pairs between two links from which on their bounding boxes are tested first


class Candidates(NamedTuple):
    """Pairs of shapes with their candidate points, and joints with limits, sorted by group.

    Pairs of one group are contiguous, and so are the pairs of one pair group within it. All arrays have one entry per pair
    unless noted.
    """

    routine: np.ndarray  # index into ROUTINES
    a: np.ndarray
    b: np.ndarray
    swapped: np.ndarray  # 1 if MuJoCo orders the two shapes of the pair the other way round
    group: np.ndarray
    pair_group: np.ndarray  # pair group, counted from 1; 0: none
    first: np.ndarray  # first point of each pair; the last entry is the number of points
    feature: np.ndarray  # (n, 3), of each point: its direction in the frame of B, to be scaled by the sizes of B
    limited: np.ndarray  # links whose joint has a limit or dry friction, sorted by group
    limited_group: np.ndarray
    groups: int
    links: list[np.ndarray]  # links of each group, root first


_kept: WeakKeyDictionary[Model, Candidates] = WeakKeyDictionary()


def candidates(model: Model) -> Candidates:
    """Return all pairs and all limited joints, sorted by group; cached. Trees that can touch each other form one group."""
    found = _kept.get(model)
    if found is None:
        found = _kept[model] = _find_candidates(model)
    return found


def _find_candidates(model: Model) -> Candidates:
    """Compute the candidates of a model."""
    shapes, links = model.shapes, model.links
    pairs = shapes.pair_array
    of_shape = links.of_body[np.array(shapes.body, int) + 1]
    tree = np.append(links.tree[of_shape], 0)[pairs] if len(pairs) else np.zeros((0, 2), int)
    limited = [int(links.of_body[i + 1]) for i in shapes.limited]
    roots = _roots(tree, links.trees)
    pair_group = _pair_groups(model, of_shape)
    group = roots[np.where(tree[:, 1] > 0, tree[:, 1], tree[:, 0])]
    order = np.lexsort((pair_group, group))
    (a, b), group, pair_group = pairs[order].T, group[order], pair_group[order]
    limited.sort(key=lambda i: roots[links.tree[i]])
    limited_group = roots[links.tree[limited]]
    numbers = np.unique(np.concatenate([group, limited_group]))
    number = np.full(links.trees + 1, -1)
    number[numbers] = np.arange(len(numbers))
    of_link = number[roots[links.tree]]
    kind, rank = np.array(shapes.kind, int), np.arange(len(shapes.kind))
    swapped = (kind[a] > kind[b]) | ((kind[a] == kind[b]) & (rank[a] > rank[b]))
    routine = routines_by_pair(model, a, b)
    first, feature = _points(model, a, b, routine)

    def column(values: Any) -> np.ndarray:
        return np.append(values, 0).astype(np.int32)

    return Candidates(
        routine=column(routine),
        a=column(a),
        b=column(b),
        swapped=column(swapped),
        group=column(number[group]),
        pair_group=column(pair_group),
        first=first.astype(np.int32),
        feature=feature if len(feature) else np.zeros((1, 3)),
        limited=column(limited),
        limited_group=column(number[limited_group]),
        groups=len(numbers),
        links=[np.flatnonzero(of_link == k) for k in range(len(numbers))],
    )


def _roots(tree: np.ndarray, trees: int) -> np.ndarray:
    """Return the representative of the group of each tree; entry 0 is the world, which belongs to no group."""
    parent = list(range(trees + 1))

    def root(t: int) -> int:
        while parent[t] != t:
            t = parent[t]
        return t

    both = tree[(tree > 0).all(1)]
    _, first = np.unique(both[:, 0] * (trees + 1) + both[:, 1], return_index=True)
    left = len(np.unique(both)) - 1  # largest number of merges of two groups
    for t in both[np.sort(first)].tolist():
        if left == 0:
            break
        one, other = root(t[0]), root(t[1])
        left -= one != other
        parent[one] = other
    return np.array([root(t) for t in range(trees + 1)])


def _points(model: Model, a: np.ndarray, b: np.ndarray, routine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first point of each pair, and the features of all points."""
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


def _pair_groups(model: Model, of_shape: np.ndarray) -> np.ndarray:
    """Return the pair group of each pair, from 1; 0: none. A pair group is the set of pairs between two links, if large."""
    shapes, pairs = model.shapes, model.shapes.pair_array
    endless = np.isin(np.array(shapes.kind, int)[pairs], (PLANE, HEIGHT_FIELD)).any(1)
    ends = np.append(of_shape, 0)[pairs]
    _, place, count = np.unique(ends[~endless], axis=0, return_inverse=True, return_counts=True)
    number = np.cumsum(count >= GROUP_SIZE) * (count >= GROUP_SIZE)
    out = np.zeros(len(pairs), int)
    out[~endless] = number[place.reshape(-1)] if len(number) else 0
    return out


def routines_of(model: Model) -> frozenset[int]:
    """Return the routines that the pairs of a model need. Kernels are compiled for these only."""
    return frozenset(np.unique(candidates(model).routine[:-1]).tolist())


def solids_of(model: Model) -> frozenset[int]:
    """Return the kinds of solids in pairs of general solids or with height fields, and the search methods of hulls."""
    kind, general = model.shapes.kind, (CONVEX, NEAREST, ON_FIELD, UNDER_FIELD)
    c = candidates(model)
    ours = np.isin(c.routine[:-1], general)
    found = np.unique(np.array(kind, int)[np.concatenate([c.a[:-1][ours], c.b[:-1][ours]])]).tolist()
    return frozenset(k for k in found if k in SOLIDS) | ways_of(model)


def contact_layout(routines: frozenset[int]) -> Layout:
    """Return the smallest layout that has all fields the given routines keep of a contact."""
    kept = {name for r in routines for name in ROUTINES[r].kept}
    return next(layout for layout in (CONTACT, HULL_CONTACT, CONVEX_CONTACT) if kept.issubset(layout.fields))


def contact_sizes(model: Model, contacts: int) -> dict[str, int]:
    """Return the sizes of the scratch for jointly computed points: the slots of one pair, and the records of contacts."""
    routines = routines_of(model)
    if not any(ROUTINES[r].collide for r in routines):
        return {"slots": 0, "contact_records": 0}
    return {"slots": slots_size(model, routines), "contact_records": contacts * contact_layout(routines).size}


def slots_size(model: Model, routines: frozenset[int]) -> int:
    """Return the size of the scratch of one pair."""
    layout = contact_layout(routines)
    patch = (
        PATCH_RECORD.size + WINDOW.size + 2 * ring_blocks(model) * BLOCK * (CORNER.size + 2 * POLYGON.size + ORDER.size)
    )
    return SLOTS * layout.size + (patch if layout is CONVEX_CONTACT else 0)


def slots_in(memory: Any, routines: frozenset[int], blocks: Any) -> Slots:
    """Return the slots of one pair in a memory of that size. blocks: blocks of a polygon."""
    rows = Table(memory, contact_layout(routines))
    patch_record = Table(memory, PATCH_RECORD, SLOTS * rows.layout.size)
    window = Table(memory, WINDOW, patch_record.start + PATCH_RECORD.size)
    both = blocks * (2 * BLOCK)  # rows of two polygons
    corners = Table(memory, CORNER, window.start + WINDOW.size)
    clipped = Table(memory, POLYGON, both * CORNER.size + corners.start)
    order = Table(memory, ORDER, both * (2 * POLYGON.size) + clipped.start)
    return Slots(rows, patch_record, window, corners, clipped, order, blocks)


def contact_names(model: Model) -> tuple[tuple[str, str], ...]:
    """Return the names of the two shapes of every candidate point."""
    c, names = candidates(model), model.shapes.names
    count = np.diff(c.first)
    return tuple((names[a], names[b]) for a, b, n in zip(c.a, c.b, count, strict=False) for _ in range(n))
