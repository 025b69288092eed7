"""Candidates: the pairs of a model taken apart into single points that may touch, in groups that may push each other."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

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
from .routines import CONVEX, NEAREST, ON_FIELD, ROUTINES, SLOTS, UNDER_FIELD, routine_of

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
    crowds = _crowds(model)
    pairs = sorted(shapes.pairs, key=lambda p: (root(tree[p[1]] or tree[p[0]]), crowds.get(p, 0)))
    group = [root(tree[b] or tree[a]) for a, b in pairs]
    limited.sort(key=lambda i: root(int(links.tree[i])))
    limited_group = [root(int(links.tree[i])) for i in limited]
    number = {g: k for k, g in enumerate(sorted({*group, *limited_group}))}
    of_link = np.array([number.get(root(int(t)), -1) for t in links.tree])
    routines = [routine_of(model, a, b) for a, b in pairs]
    points = [ROUTINES[r].points(model, a, b) for r, (a, b) in zip(routines, pairs, strict=True)]
    every = [point for of_pair in points for point in of_pair]

    def column(values: list[int]) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    return Candidates(
        routine=column(routines),
        a=column([a for a, _ in pairs]),
        b=column([b for _, b in pairs]),
        turned=column([int((shapes.kind[a], a) > (shapes.kind[b], b)) for a, b in pairs]),
        group=column([number[g] for g in group]),
        crowd=column([crowds.get(p, 0) for p in pairs]),
        first=np.cumsum([0, *map(len, points)]).astype(np.int32),
        feature=np.array(every or [(0.0, 0.0, 0.0)], float),
        limited=column(limited),
        limited_group=column([number[g] for g in limited_group]),
        groups=len(number),
        links=[np.flatnonzero(of_link == k) for k in range(len(number))],
    )


def _crowds(model: Model) -> dict[tuple[int, int], int]:
    """The crowds of a model: for each pair in one its number."""
    shapes, link = model.shapes, model.links.of_body
    ends = {
        (a, b): (int(link[shapes.body[a] + 1]), int(link[shapes.body[b] + 1]))
        for a, b in shapes.pairs
        if not {shapes.kind[a], shapes.kind[b]} & {PLANE, HEIGHT_FIELD}  # these have no end
    }
    many = [links for links, count in sorted(Counter(ends.values()).items()) if count >= CROWD]
    return {pair: many.index(links) + 1 for pair, links in ends.items() if links in many}


def routines_of(model: Model) -> frozenset[int]:
    """The routines that its pairs need: what its kernels are compiled for."""
    return frozenset(routine_of(model, a, b) for a, b in model.shapes.pairs)


def solids_of(model: Model) -> frozenset[int]:
    """The kinds of solids in pairs of solids of any kinds, and in pairs with height fields; and how the furthest corners of
    hulls are found."""
    kind, general = model.shapes.kind, (CONVEX, NEAREST, ON_FIELD, UNDER_FIELD)
    pairs = [pair for pair in model.shapes.pairs if routine_of(model, *pair) in general]
    return frozenset(kind[k] for pair in pairs for k in pair if kind[k] in SOLIDS) | ways_of(model)


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
