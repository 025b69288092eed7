"""Contact polygons to be clipped: the vertices of a face, the two ends of an edge or axis line, or one point.

Vertices are ordered as seen from inside the solid and begin at MuJoCo's first one; the choice of four among many depends on
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin
from typing import Any, NamedTuple

from ....compiler import Layout, Linear, Table, carry, floor, loop, maximum, minimum, select, sqrt, to_real, when_any
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Mat3, Vec3, cross, dot
from ..contact_geometry import ZERO
from .contact_features import ContactFeature
from .hull_tables import BLOCK, END, Corner
from .solids import Solid

CLEARLY = 1.0 + 1e-5  # ratio by which a vertex must be further than an earlier one, so that rounding does not decide
THIN = 1e-3  # fraction of its squared length below which the area of a polygon is zero

# position in the projection (height last) and in the frame of the solid, index of a hull's vertex
CORNER = Layout(at=Vec3, own=Vec3, number=float)


def numbers_below(count: Any, blocks: Any, more: int = 0) -> Iterator[Any]:
    """Yield vertex indices below count + more of any SIMD lane, at most those in `blocks` blocks."""
    for block in loop(blocks):
        first = block * BLOCK
        for _ in when_any(to_real(first) < count + float(more)):
            for j in loop(BLOCK):
                k = first + j
                for _ in when_any(to_real(k) < count + float(more)):
                    yield k


class Frame(Linear):
    """Axes of a projection: origin, two axes across the normal, and the normal."""

    o: Vec3
    e: Vec3
    f: Vec3
    n: Vec3

    def project(self, v: Vec3) -> Vec3:
        d = v - self.o
        return Vec3(dot(d, self.e), dot(d, self.f), dot(d, self.n))

    def to(self, other: Frame) -> Mat3:
        """Rotation from coordinates in these axes to those in others about the same origin."""
        return Mat3(*(dot(x, y) for x in (other.e, other.f, other.n) for y in (self.e, self.f, self.n)))


def frame(A: Solid, o: Vec3, n: Vec3) -> Frame:
    """Return the axes of a projection along n. The first axis is fixed in A, so that rounding does not decide it."""
    x, y = A.X.R.column(0), A.X.R.column(1)
    along = select(abs(dot(x, n)) < 0.8, x, y)
    e = along - n * dot(n, along)
    e = e / sqrt(dot(e, e))
    return Frame(o, e, cross(n, e), n)


class PolygonPair(NamedTuple):
    """Rows of two polygons, `blocks` blocks each. The first vertex is repeated after the last; rows beyond are undefined."""

    rows: Table
    blocks: Any

    @property
    def size(self) -> Any:
        """Rows of one polygon."""
        return self.blocks * BLOCK

    def below(self, count: Any, more: int = 0) -> Iterator[Any]:
        return numbers_below(count, self.blocks, more)


class PolygonBuilder:
    """Writer of the polygon of a solid's feature into its rows, beginning at `first`."""

    def __init__(self, s: Solid, polygons: PolygonPair, first: Any):
        self.s, self.polygons, self.rows, self.first = s, polygons, polygons.rows, first

    def fill(self, f: Frame, feature: ContactFeature, sign: float) -> Any:
        """Fill the rows with the polygon of a feature and return the number of vertices.

        sign * f.n points out of the solid. The line of a capsule or cylinder is the one on that side.
        """
        out, count = self.s.X.R.T @ (f.n * sign), feature.count
        ends = [Corner(feature.p0, feature.numbers.x), Corner(feature.p1, feature.numbers.y)]
        cases = {
            SPHERE: lambda: self._few(f, [Corner(Vec3.zero(), 0.0)], 1.0 + 0.0 * out.x),
            ELLIPSOID: lambda: self._few(f, [Corner(Vec3.zero(), 0.0)], 1.0 + 0.0 * out.x),
            CAPSULE: lambda: self._few(f, ends, count, self._side_of_capsule(f) * sign),
            BOX: lambda: self._box(f, feature.normal, ends, count),
            CYLINDER: lambda: self._cylinder(f, out, select(count > 2.5, float(END), count)),
            POINTS: lambda: self._hull(f, feature, count),
        }
        return self.s.by_kind(cases)

    def _put(self, f: Frame, k: Any, corner: Corner, above: Vec3 = ZERO) -> None:
        """Write one vertex. above: vector from the core to the surface, in the projection."""
        row = self.rows[k + self.first]
        row.own, row.at, row.number = corner.p, f.project(self.s.to_world(corner.p)) + above, corner.number

    def _side_of_capsule(self, f: Frame) -> Vec3:
        """Vector from the axis to the surface, along the part of the normal across the axis."""
        axis = self.s.X.R.column(2)
        x, y, z = (dot(axis, e) for e in (f.e, f.f, f.n))
        return Vec3(-(x * z), -(y * z), 1.0 - z * z) * self.s.size.x

    def _few(self, f: Frame, corners: list[Corner], count: Any, above: Vec3 = ZERO) -> Any:
        """Write the first `count` of these vertices; the rows after them repeat the first."""
        for k, corner in enumerate(corners):
            self._put(f, k, corner if k == 0 else select(count > k + 0.5, corner, corners[0]), above)
        start, last = self.rows[self.first], self.rows[self.first + len(corners)]
        last.own, last.at, last.number = start.own, start.at, start.number
        return count

    def _box(self, f: Frame, normal: Vec3, ends: list[Corner], count: Any) -> Any:
        """Write the four vertices of a face of a box, or the ends of an edge."""
        size, level, face = self.s.size, normal.map(abs), count > 2.5
        on_x, on_y, on_z = level.x > 0.5, level.y > 0.5, level.z > 0.5
        sign = normal.map(lambda x: select(x < 0.0, -1.0, 1.0))
        corners = []
        for k, (u, v) in enumerate(((-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))):
            x = select(on_z, sign.z * u, u)
            y = select(on_z, v, select(on_x, v, sign.y))
            z = select(on_x, -(sign.x * u), select(on_y, -(sign.y * v), sign.z))
            of_face = Vec3(select(on_x, sign.x, x) * size.x, y * size.y, z * size.z)
            corners.append(Corner(select(face, of_face, ends[k if k < 2 else 0].p), 0.0))
        return self._few(f, corners, select(face, 4.0, count))

    def _cylinder(self, f: Frame, out: Vec3, count: Any) -> Any:
        """Write a cylinder's end circle, its side line, or the lowest rim point, by count."""
        r, h = self.s.size.x, self.s.size.y
        up = select(out.z < 0.0, -1.0, 1.0)
        rho = sqrt(maximum(out.x * out.x + out.y * out.y, 1e-20))
        side, flat = Vec3(out.x * (r / rho), out.y * (r / rho), up * h), count > 2.5
        turn, (c, d) = carry((1.0, 0.0)), (cos(2.0 * pi / END), sin(2.0 * pi / END))
        for k in self.polygons.below(count, 1):
            x, y = turn.value
            again = to_real(k) > count - 0.5
            u, v = select(again, 1.0, x), select(again, 0.0, y)
            other = (abs(to_real(k) - 1.0) < 0.5) & (count > 1.5)
            line = Vec3(side.x, side.y, select(other, -side.z, side.z))
            self._put(f, k, Corner(select(flat, Vec3(u * r, -(v * up * r), up * h), line), 0.0))
            turn.value = (x * c - y * d, x * d + y * c)
        return count

    def _hull(self, f: Frame, feature: ContactFeature, count: Any) -> Any:
        """Write the vertices of a face of a hull, evenly sampled if there are too many, or the ends of an edge."""
        hull, flat = self.s.hull, count > 2.5
        begin, end = hull.span(hull.faces, feature.face)
        every = end - begin
        count = select(flat, minimum(every, to_real(self.polygons.size) - 1.0), count)
        for k in self.polygons.below(count, 1):
            at = select(to_real(k) < count, to_real(k), 0.0)
            number = carry(select(at > 0.5, feature.numbers.y, feature.numbers.x))
            for _ in when_any(flat):
                place = end - 1.0 - floor(at * every / count)
                number.value = select(flat, hull.table.gather(place, hull.size), number.value)
            self._put(f, k, hull.corner(number.value))
        return count


def vector_area(polygons: PolygonPair, first: Any, count: Any) -> Vec3:
    """Return twice the vector area of a polygon."""
    o, total = polygons.rows[first].at, carry(Vec3.zero())
    for k in polygons.below(count - 1.0):
        one, next_ = (polygons.rows[first + k + j].at - o for j in range(2))
        total.value = total.value + select(to_real(k) < count - 1.0, cross(one, next_), ZERO)
    return total.value


def flat2(v: Vec3) -> Any:
    """Squared length in the projection."""
    return v.x * v.x + v.y * v.y


class PolygonPlane(Linear):
    """Plane of a polygon as a height over the projection.

    Attributes:
        at: A vertex.
        far: The vertex furthest from it.
        normal: Normal of the plane.
        p0, p1, p2: Both vertices and one aside of their line, in the frame of the solid.
        numbers: Their indices.
    """

    at: Vec3
    far: Vec3
    normal: Vec3
    p0: Vec3
    p1: Vec3
    p2: Vec3
    numbers: Vec3

    def height(self, x: Any, y: Any) -> Any:
        n, a = self.normal, self.at
        flat = abs(n.z) > 1e-30
        return a.z - (n.x * (x - a.x) + n.y * (y - a.y)) / select(flat, n.z, 1.0)

    def wide(self) -> Any:
        """Return True if the polygon has an area."""
        return self.normal.z > THIN * flat2(self.far - self.at)


def plane(polygons: PolygonPair, first: Any, count: Any, normal: Vec3) -> PolygonPlane:
    """Plane of a polygon, through its first vertex, the furthest from it, and the one that spans the largest triangle."""
    rows = polygons.rows
    o = rows[first]
    origin, own = o.at, o.own
    far, wide = carry((0.0, origin, Corner(own, o.number))), carry((0.0, Corner(own, o.number)))
    for k in polygons.below(count):
        row = rows[k + first]
        d = flat2(row.at - origin)
        best, at, p = far.value
        more = (to_real(k) < count) & (d > best * CLEARLY)
        far.value = (select(more, d, best), select(more, row.at, at), select(more, Corner(row.own, row.number), p))
    along = far.value[1] - origin
    for k in polygons.below(count):
        row = rows[k + first]
        d = row.at - origin
        area, (best, p) = abs(along.x * d.y - along.y * d.x), wide.value
        more = (to_real(k) < count) & (area > best * CLEARLY)
        wide.value = (select(more, area, best), select(more, Corner(row.own, row.number), p))
    p1, p2 = far.value[2], wide.value[1]
    numbers = Vec3(o.number, p1.number, p2.number)
    return PolygonPlane(origin, far.value[1], normal, own, p1.p, p2.p, numbers)


def rearrange(polygons: PolygonPair, most: Any, turn: Mat3, swap: Any) -> None:
    """Rotate two polygons into another projection, and exchange them where `swap` is 1. most: largest vertex count of both."""
    other_way = swap > 0.5
    for k in polygons.below(most, 1):
        one, other = polygons.rows[k], polygons.rows[polygons.size + k]
        values = [[turn @ one.at, turn @ other.at], [one.own, other.own], [one.number, other.number]]
        one.at, one.own, one.number = (select(other_way, b, a) for a, b in values)
        other.at, other.own, other.number = (select(other_way, a, b) for a, b in values)
