"""Intersection of two polygons: the subject is clipped by each edge of the other in turn (Sutherland-Hodgman)  (theory 6.10).

MuJoCo does the same, and the order of the remaining vertices decides which of many are kept. A vertex of the intersection
stores the edge that begins at it: `out` is the index of that edge on the subject, or its index on the other polygon plus
the number of rows of the first. Together with the edge that ends there this gives the type of the vertex: a vertex of
either polygon, or an intersection of two edges.

Vertices of one polygon on edges of the other are ties; in exact alignment all are. They are decided as after one small
displacement (`ASIDE`) of the whole subject, larger than rounding, so that all vertices of the intersection move as on one
side of the tie. A line is displaced along itself, so that it stays over an edge on which it lies.
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
from .contact_polygon import PolygonPair, numbers_below
from .hull_tables import BLOCK, Corner

ASIDE = {
    "f64": 1e-7,
    "f32": 1e-6,
}  # m, virtual displacement of the subject that decides ties; vertices in files are f32
# its direction: parallel to no side of a box or of a regular polygon with as many vertices as a cylinder's end
TURNED = (0.86, 0.51)
SLACK = {
    "f64": 1e-9,
    "f32": 1e-7,
}  # m, by which the other polygon is widened, so that rounding does not clip along the displacement
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, length below which an edge is ignored


class Vertex(Linear):
    """Vertex of an intersection: position in the projection, height on the subject, and the edge that begins there."""

    x: float
    y: float
    z: float
    out: float


POLYGON = Layout(at=Vertex)
ORDER = Layout(at=Corner)  # vertices near enough to count: position in the projection, and index


class ClippedPolygon(NamedTuple):
    """Two pages of vertices, each with the rows of two polygons: the intersection so far, and the result of the next cut."""

    rows: Table
    polygons: PolygonPair

    @property
    def blocks(self) -> Any:
        return self.polygons.blocks * 2

    @property
    def size(self) -> Any:
        """Rows of a page."""
        return self.blocks * BLOCK

    def below(self, count: Any) -> Iterator[Any]:
        return numbers_below(count, self.blocks)

    def turn(self, page: counter) -> tuple[Table, Table]:
        """Swap pages: return the page of the current intersection and the page for the next one."""
        here = page.value * self.size
        there = self.size - here
        page.value = 1 - page.value
        one, other = (Table(self.rows.memory, POLYGON, at * POLYGON.size + self.rows.start) for at in (here, there))
        return one, other

    def corner(self, number: Any) -> Vertex:
        return self.rows.pick("at", number, self.size)

    def around(self, many: Any, number: Any) -> tuple[Vertex, Vertex]:
        """Return a vertex and the one before it."""
        return self.corner(number), self.corner(select(number > 0.5, number - 1.0, maximum(many - 1.0, 0.0)))

    def on_subject(self, v: Vertex) -> Any:
        """Return True if the edge that begins at v belongs to the subject."""
        return v.out < to_real(self.polygons.size) - 0.5

    def kind(self, many: Any, number: Any) -> Any:
        """Return the type of a vertex: 0 of the subject, 1 an intersection of two edges, 2 of the other polygon."""
        one, other = (select(self.on_subject(v), 0.0, 1.0) for v in self.around(many, number))
        return one + other


def clip(clipped: ClippedPolygon, counts: tuple[Any, Any], side: Any) -> Any:
    """Clip the first polygon by the second and return the number of vertices of the intersection.

    A cut starts at the second vertex and ends at the first. A cut that removes nothing only rotates the vertices; these
    rotations are accumulated and applied when needed.

    Args:
        clipped: Memory of the intersection, with both polygons.
        counts: Numbers of vertices of both polygons.
        side: 1 if the second polygon is counter-clockwise, else -1.
    """
    polygons, page = clipped.polygons, counter(0)  # current page
    for k in polygons.below(counts[0]):
        at = polygons.rows[k].at
        clipped.rows[k].at = Vertex(at.x, at.y, at.z, to_real(k))
    many, waits = carry(counts[0]), carry(0.0 * counts[0])
    aside = _aside(polygons, counts[0])
    for j in polygons.below(counts[1]):
        edge = _Edge.of(clipped, j, side, aside)
        active, outside = (to_real(j) < counts[1]) & edge.real, carry(-1.0 + 0.0 * counts[0])
        for k in clipped.below(many.value):
            off = edge.least - edge.offset(clipped.rows[page.value * clipped.size + k].at)
            outside.value = select(to_real(k) < many.value, maximum(outside.value, off), outside.value)
        for _ in when_any(active & (outside.value >= 0.0)):
            _move_on(clipped, page, many.value, waits.value)
            many.value = _cut(clipped, page, edge, many.value, active)
            waits.value = -1.0 + 0.0 * waits.value
        waits.value = maximum(waits.value + select(active, 1.0, 0.0), 0.0)
    _move_on(clipped, page, many.value, waits.value)
    for _ in loop(page.value):
        for k in clipped.below(many.value):
            clipped.rows[k].at = clipped.rows[page.value * clipped.size + k].at
    return many.value


def _aside(polygons: PolygonPair, count: Any) -> tuple[Any, Any]:
    """Virtual displacement of the subject that decides ties."""
    way = polygons.rows[1].at - polygons.rows[0].at
    inverse = 1.0 / sqrt(maximum(way.x * way.x + way.y * way.y, 1e-30))
    far, line = ASIDE[target().dtype], count < 2.5
    x, y = (select(line, w * inverse, t) * far for w, t in zip((way.x, way.y), TURNED, strict=True))
    return x, y


class _Edge(NamedTuple):
    """Edge of the second polygon, displaced: start a, direction (dx, dy), least offset of interior points, index, and
    validity."""

    a: Vec3
    dx: Any
    dy: Any
    least: Any
    number: Any
    real: Any

    @classmethod
    def of(cls, clipped: ClippedPolygon, j: Any, side: Any, aside: tuple[Any, Any]) -> _Edge:
        kind, number = target().dtype, clipped.polygons.size + j
        a, b = (clipped.polygons.rows[number + k].at for k in range(2))
        dx, dy = (b.x - a.x) * side, (b.y - a.y) * side
        real = dx * dx + dy * dy > LEVEL[kind] * LEVEL[kind]
        a = a - Vec3(*aside, 0.0)
        return cls(a, dx, dy, -SLACK[kind] * maximum(abs(dx), abs(dy)), number, real)

    def offset(self, v: Vertex) -> Any:
        """Signed area between the edge and v: positive inside."""
        return self.dx * (v.y - self.a.y) - self.dy * (v.x - self.a.x)


def _move_on(clipped: ClippedPolygon, page: counter, many: Any, by: Any) -> None:
    """Rotate the vertices by `by` positions, onto the other page."""
    for _ in when_any(by > 0.5):
        here, there = clipped.turn(page)
        for k in clipped.below(many):
            at = to_real(k) + by
            there[k].at = here.pick("at", at - many * floor((at + 0.5) / maximum(many, 1.0)), clipped.size)


def _cut(clipped: ClippedPolygon, page: counter, edge: _Edge, many: Any, active: Any) -> Any:
    """Clip by an edge of the second polygon, onto the other page, in lanes where `active` is 1."""
    here, there = clipped.turn(page)
    made, keeps = carry(0.0 * many), select(active, 0.0, 1.0) > 0.5

    def emit(real: Any, v: Vertex) -> None:
        there.place("at", made.value, clipped.size, v)  # if not real, the next one overwrites it
        made.value = made.value + select(real, 1.0, 0.0)

    first = here[0].at
    last = carry((first, edge.offset(first)))
    for k in clipped.below(many):
        real, (p, offset_p) = to_real(k) < many, last.value
        q = select(to_real(k) < many - 1.5, here[k + 1].at, first)
        offset_q = edge.offset(q)
        last.value = q, offset_q
        in_p, in_q = offset_p > edge.least, offset_q > edge.least
        apart = real & active & (abs(select(in_p, 1.0, 0.0) - select(in_q, 1.0, 0.0)) > 0.5)
        for _ in when_any(apart):
            drop = offset_p - offset_q
            t = clamp(offset_p / select(apart & (abs(drop) > 0.0), drop, 1.0), 0.0, 1.0)
            out = select(in_p, to_real(edge.number), p.out)
            emit(apart, Vertex(p.x + (q.x - p.x) * t, p.y + (q.y - p.y) * t, p.z + (q.z - p.z) * t, out))
        emit(real & (keeps | in_q), select(keeps, p, q))
    return minimum(made.value, to_real(clipped.size))
