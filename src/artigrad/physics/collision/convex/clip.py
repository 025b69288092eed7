"""The area that two rings share: one of them, the subject, is cut by each edge of the other in turn  (theory 6.10).

MuJoCo does the same (Sutherland and Hodgman's way), and the order in which corners are left decides which of many are kept.
A corner of the area knows the edge that begins there: `out` is its number on the subject, or its number on the other ring after
all rows of the first. With the edge that ends there this says what the corner is: a corner of either ring, or a crossing of two
edges.

Corners of one ring on edges of the other are ties, in exact alignment all are. They are decided as after one small motion
(`ASIDE`) of the whole subject, which no rounding outweighs: corners of the area then move together as on one side of it. A line
moves along itself, so that it stays over an edge that it lies on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....compiler import (
    Layout,
    Linear,
    Table,
    carry,
    clamp,
    counter,
    floor,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
    target,
    to_real,
    when_any,
)
from ...spatial import Vec3
from .contact_polygon import Rings, numbers_below
from .hull_tables import BLOCK, Corner

ASIDE = {"f64": 1e-7, "f32": 1e-6}  # m, the motion of the subject that decides ties; vertices of files are of f32
TURNED = (0.86, 0.51)  # its direction: along no side of a box or of a regular ring of as many corners as cylinders have
SLACK = {
    "f64": 1e-9,
    "f32": 1e-7,
}  # m, by which the other ring is widened, so that rounding does not cut along the motion
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, an edge that is none


class Vertex(Linear):
    """A corner of an area: where in the projection, how high on the subject, and the edge that begins there."""

    x: float
    y: float
    z: float
    out: float


POLYGON = Layout(at=Vertex)
ORDER = Layout(at=Corner)  # those corners of an area that count: where in the projection, and their numbers


class Area(NamedTuple):
    """Two pages of corners, each with as many rows as two rings: the area, and what a cut makes of it."""

    rows: Table
    rings: Rings

    @property
    def blocks(self) -> Any:
        return self.rings.blocks * 2

    @property
    def size(self) -> Any:
        """Rows of a page."""
        return self.blocks * BLOCK

    def below(self, count: Any) -> Iterator[Any]:
        return numbers_below(count, self.blocks)

    def turn(self, page: counter) -> tuple[Table, Table]:
        """The page on which the area stands, and the other, on which it is to stand."""
        here = page.value * self.size
        there = self.size - here
        page.value = 1 - page.value
        one, other = (Table(self.rows.memory, POLYGON, at * POLYGON.size + self.rows.start) for at in (here, there))
        return one, other

    def corner(self, number: Any) -> Vertex:
        return self.rows.pick("at", number, self.size)

    def around(self, many: Any, number: Any) -> tuple[Vertex, Vertex]:
        """A corner, and the one before it."""
        return self.corner(number), self.corner(select(number > 0.5, number - 1.0, maximum(many - 1.0, 0.0)))

    def on_subject(self, v: Vertex) -> Any:
        """Whether the edge that begins there is one of the subject's."""
        return v.out < to_real(self.rings.size) - 0.5

    def kind(self, many: Any, number: Any) -> Any:
        """What a corner is: 0 a corner of the subject, 1 a crossing of two edges, 2 a corner of the other ring."""
        one, other = (select(self.on_subject(v), 0.0, 1.0) for v in self.around(many, number))
        return one + other


def clip(area: Area, counts: tuple[Any, Any], side: Any) -> Any:
    """Cut the first ring by the second, `counts` corners each; returns how many corners the area has. side: 1 where the second
    goes counter-clockwise, else -1. A cut begins with the second corner and ends with the first; one that takes nothing away
    does only that, which waits until there is need of it."""
    rings, page = area.rings, counter(0)  # where the area stands
    for k in rings.below(counts[0]):
        at = rings.rows[k].at
        area.rows[k].at = Vertex(at.x, at.y, at.z, to_real(k))
    many, waits = carry(counts[0]), carry(0.0 * counts[0])
    aside = _aside(rings, counts[0])
    for j in rings.below(counts[1]):
        edge = _Edge.of(area, j, side, aside)
        asked, outside = (to_real(j) < counts[1]) & edge.real, carry(-1.0 + 0.0 * counts[0])
        for k in area.below(many.value):
            off = edge.least - edge.room(area.rows[page.value * area.size + k].at)
            outside.value = select(to_real(k) < many.value, maximum(outside.value, off), outside.value)
        for _ in when_any(asked & (outside.value >= 0.0)):
            _move_on(area, page, many.value, waits.value)
            many.value = _cut(area, page, edge, many.value, asked)
            waits.value = -1.0 + 0.0 * waits.value
        waits.value = maximum(waits.value + select(asked, 1.0, 0.0), 0.0)
    _move_on(area, page, many.value, waits.value)
    for _ in loop(page.value):
        for k in area.below(many.value):
            area.rows[k].at = area.rows[page.value * area.size + k].at
    return many.value


def _aside(rings: Rings, count: Any) -> tuple[Any, Any]:
    """The motion of the subject that decides ties."""
    way = rings.rows[1].at - rings.rows[0].at
    inverse = 1.0 / sqrt(maximum(way.x * way.x + way.y * way.y, 1e-30))
    far, line = ASIDE[target().dtype], count < 2.5
    x, y = (select(line, w * inverse, t) * far for w, t in zip((way.x, way.y), TURNED, strict=True))
    return x, y


class _Edge(NamedTuple):
    """An edge of the second ring, moved back: where it begins and leads to, what corners inside have at least, its
    number, and whether it is one."""

    a: Vec3
    dx: Any
    dy: Any
    least: Any
    number: Any
    real: Any

    @classmethod
    def of(cls, area: Area, j: Any, side: Any, aside: tuple[Any, Any]) -> _Edge:
        kind, number = target().dtype, area.rings.size + j
        a, b = (area.rings.rows[number + k].at for k in range(2))
        dx, dy = (b.x - a.x) * side, (b.y - a.y) * side
        real = dx * dx + dy * dy > LEVEL[kind] * LEVEL[kind]
        a = a - Vec3(*aside, 0.0)
        return cls(a, dx, dy, -SLACK[kind] * maximum(abs(dx), abs(dy)), number, real)

    def room(self, v: Vertex) -> Any:
        return self.dx * (v.y - self.a.y) - self.dy * (v.x - self.a.x)


def _move_on(area: Area, page: counter, many: Any, by: Any) -> None:
    """Let the area begin that many corners later; on the other page."""
    for _ in when_any(by > 0.5):
        here, there = area.turn(page)
        for k in area.below(many):
            at = to_real(k) + by
            there[k].at = here.pick("at", at - many * floor((at + 0.5) / maximum(many, 1.0)), area.size)


def _cut(area: Area, page: counter, edge: _Edge, many: Any, asked: Any) -> Any:
    """By an edge of the second ring, where it is asked; to the other page."""
    here, there = area.turn(page)
    made, keeps = carry(0.0 * many), select(asked, 0.0, 1.0) > 0.5

    def emit(real: Any, v: Vertex) -> None:
        there.place("at", made.value, area.size, v)  # where it is not real the next one takes its place
        made.value = made.value + select(real, 1.0, 0.0)

    first = here[0].at
    last = carry((first, edge.room(first)))
    for k in area.below(many):
        real, (p, room_p) = to_real(k) < many, last.value
        q = select(to_real(k) < many - 1.5, here[k + 1].at, first)
        room_q = edge.room(q)
        last.value = q, room_q
        in_p, in_q = room_p > edge.least, room_q > edge.least
        apart = real & asked & (abs(select(in_p, 1.0, 0.0) - select(in_q, 1.0, 0.0)) > 0.5)
        for _ in when_any(apart):
            drop = room_p - room_q
            t = clamp(room_p / select(apart & (abs(drop) > 0.0), drop, 1.0), 0.0, 1.0)
            out = select(in_p, to_real(edge.number), p.out)
            emit(apart, Vertex(p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t, p.z + (q.z - p.z) * t, out))
        emit(real & (keeps | in_q), select(keeps, p, q))
    return minimum(made.value, to_real(area.size))
