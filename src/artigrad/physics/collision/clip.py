"""The area that two rings share: one of them, the subject, is cut by each edge of the other in turn  (theory 6.10).

MuJoCo does the same (Sutherland and Hodgman's way), and the order in which corners are left decides which of many are kept.
A corner of the area knows the edge that begins there: `out` is its number on the subject, or RING plus that on the other ring.
With the edge that ends there this says what the corner is: a corner of either ring, or a crossing of two edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...staging import (
    Layout,
    Linear,
    Reals,
    Table,
    carry,
    clamp,
    loop,
    maximum,
    minimum,
    select,
    target,
    to_real,
    when_any,
)
from .rings import RING, STRIDE

MOST = 2 * RING  # corners of an area
SLACK = {"f64": 1e-9, "f32": 1e-6}  # m, by which the other ring is widened, so that rounding does not cut
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, an edge that is none


class Vertex(Linear):
    """A corner of an area: where in the projection, how high on the subject, and the edge that begins there."""

    x: float
    y: float
    z: float
    out: float


POLYGON = Layout(at=Vertex)
PAGE = MOST + 1  # rows of a polygon; there are two
ORDER = Layout(number=float)  # of those corners of an area that count, MOST of them


def clip(rows: Table, polygon: Table, counts: tuple[Any, Any], side: Any) -> Any:
    """Cut the ring in the first rows by the one after it, `counts` corners each, into the first page of the polygon; returns
    how many corners it has. side: 1 where the other ring goes counter-clockwise, else -1."""
    for k in loop(STRIDE):
        at = rows[k].at
        polygon[k].at = Vertex(at.x, at.y, at.z, to_real(k))
    many = carry(counts[0])
    for j in loop(RING):
        for _ in when_any(to_real(j) < counts[1]):
            many.value = _cut(rows, polygon, j, many.value, (to_real(j) < counts[1], side))
    return many.value


def _cut(rows: Table, polygon: Table, j: Any, many: Any, how: tuple[Any, Any]) -> Any:
    """By edge j of the other ring, where it is one; to the second page, and back."""
    a, b = rows[j + STRIDE].at, rows[j + 1 + STRIDE].at
    counts, side = how
    dx, dy = (b.x - a.x) * side, (b.y - a.y) * side
    length2, level, slack = dx * dx + dy * dy, LEVEL[target().dtype], SLACK[target().dtype]
    cuts = counts & (length2 > level * level)
    least = -slack * maximum(abs(dx), abs(dy))
    fresh = Reals(polygon.memory, polygon.start + PAGE * POLYGON.size)
    for k in corners_below(many, MOST, 2):
        polygon[k + PAGE].at = Vertex(0.0, 0.0, 0.0, 0.0)
    made = carry(0.0 * dx)

    def emit(there: Any, v: Vertex) -> None:
        there = there & (made.value < minimum(many + 2.0, float(MOST)) - 0.5)
        kept = Vertex.from_leaves(select(there, x, 0.0) for x in v.leaves())
        fresh.scatter_add_row(made.value, MOST, kept)
        made.value = made.value + select(there, 1.0, 0.0)

    for k in corners_below(many, MOST):
        there = cuts & (to_real(k) < many)
        p, q = polygon[k].at, select(to_real(k) < many - 1.5, polygon[k + 1].at, polygon[0].at)
        room_p, room_q = (dx * (v.y - a.y) - dy * (v.x - a.x) for v in (p, q))  # inside while above zero
        in_p, in_q = room_p > least, room_q > least
        apart = abs(select(in_p, 1.0, 0.0) - select(in_q, 1.0, 0.0)) > 0.5
        drop = room_p - room_q
        t = clamp(room_p / select(apart & (abs(drop) > 0.0), drop, 1.0), 0.0, 1.0)
        for _ in when_any(there & apart):
            out = select(in_p, to_real(j) + float(RING), p.out)
            emit(there & apart, Vertex(p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t, p.z + (q.z - p.z) * t, out))
        emit(there & in_q, q)
    for k in corners_below(select(cuts, made.value, 0.0), MOST):
        old, new = polygon[k].at, polygon[k + PAGE].at
        polygon[k].at = select(cuts, new, old)
    return select(cuts, made.value, many)


def corners_below(count: Any, most: int, more: int = 0) -> Iterator[Any]:
    """Numbers of corners, as far as any robot of the pack has some, and a few more."""
    for k in loop(most):
        for _ in when_any(to_real(k) < count + float(more)):
            yield k


def around(polygon: Table, many: Any, number: Any) -> tuple[Vertex, Vertex]:
    """A corner of the area, and the one before it."""
    before = select(number > 0.5, number - 1.0, maximum(many - 1.0, 0.0))
    return polygon.pick("at", number, MOST), polygon.pick("at", before, MOST)


def corner_kind(polygon: Table, many: Any, number: Any) -> Any:
    """What a corner of the area is: 0 a corner of the subject, 1 a crossing of two edges, 2 a corner of the other ring."""
    v, last = around(polygon, many, number)
    return select(v.out < RING - 0.5, 0.0, 1.0) + select(last.out < RING - 0.5, 0.0, 1.0)
