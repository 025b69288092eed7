"""What of a solid lies on another, as a ring of corners: those of a face, both ends of an edge or line, or a point.

Corners go round as seen from inside the solid, from the same one on as MuJoCo's: which four of many are kept depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin
from typing import Any, NamedTuple

from ....compiler import Layout, Linear, Table, carry, floor, loop, maximum, minimum, select, sqrt, to_real, when_any
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Mat3, Vec3, cross, dot
from ..gap import ZERO
from .contact_features import Lying
from .hull_tables import BLOCK, END, Corner
from .solids import Solid

CLEARLY = 1.0 + 1e-5  # by which a corner is further than one before it, so that rounding does not choose
THIN = 1e-3  # share of its squared length below which the area of a ring is none

CORNER = Layout(at=Vec3, own=Vec3, number=float)  # projected (height last), in the frame of its solid, which of a hull


def numbers_below(count: Any, blocks: Any, more: int = 0) -> Iterator[Any]:
    """Of corners, as far as any robot of the pack has some, and a few more; at most those in so many blocks."""
    for block in loop(blocks):
        first = block * BLOCK
        for _ in when_any(to_real(first) < count + float(more)):
            for j in loop(BLOCK):
                k = first + j
                for _ in when_any(to_real(k) < count + float(more)):
                    yield k


class Frame(Linear):
    """Axes of the projection: two across the normal, and the normal; and their origin."""

    o: Vec3
    e: Vec3
    f: Vec3
    n: Vec3

    def project(self, v: Vec3) -> Vec3:
        d = v - self.o
        return Vec3(dot(d, self.e), dot(d, self.f), dot(d, self.n))

    def to(self, other: Frame) -> Mat3:
        """From coordinates in these axes to those in others about the same origin."""
        return Mat3(*(dot(x, y) for x in (other.e, other.f, other.n) for y in (self.e, self.f, self.n)))


def frame(A: Solid, o: Vec3, n: Vec3) -> Frame:
    """The first axis is fixed in A, so that rounding does not choose it."""
    x, y = A.X.R.column(0), A.X.R.column(1)
    along = select(abs(dot(x, n)) < 0.8, x, y)
    e = along - n * dot(n, along)
    e = e / sqrt(dot(e, e))
    return Frame(o, e, cross(n, e), n)


class Rings(NamedTuple):
    """Rows of two rings, blocks of each. The first corner of a ring stands once more after its last one; what is beyond means
    nothing."""

    rows: Table
    blocks: Any

    @property
    def size(self) -> Any:
        """Rows of one."""
        return self.blocks * BLOCK

    def below(self, count: Any, more: int = 0) -> Iterator[Any]:
        return numbers_below(count, self.blocks, more)


class RingOf:
    """The ring of a solid in its rows, from the first on."""

    def __init__(self, s: Solid, rings: Rings, first: Any):
        self.s, self.rings, self.rows, self.first = s, rings, rings.rows, first

    def fill(self, f: Frame, lies: Lying, sign: float) -> Any:
        """Fill the rows with what lies on the other solid, which is along sign * n from where they touch; returns how many
        corners it has. The line of a capsule or cylinder is the one that looks along there."""
        out, count = self.s.X.R.T @ (f.n * sign), lies.count
        ends = [Corner(lies.p0, lies.numbers.x), Corner(lies.p1, lies.numbers.y)]
        cases = {
            SPHERE: lambda: self._few(f, [Corner(Vec3.zero(), 0.0)], 1.0 + 0.0 * out.x),
            ELLIPSOID: lambda: self._few(f, [Corner(Vec3.zero(), 0.0)], 1.0 + 0.0 * out.x),
            CAPSULE: lambda: self._few(f, ends, count, self._side_of_capsule(f) * sign),
            BOX: lambda: self._box(f, lies.normal, ends, count),
            CYLINDER: lambda: self._cylinder(f, out, select(count > 2.5, float(END), count)),
            POINTS: lambda: self._hull(f, lies, count),
        }
        return self.s.by_kind(cases)

    def _put(self, f: Frame, k: Any, corner: Corner, above: Vec3 = ZERO) -> None:
        """above: from the core to the surface, in the projection."""
        row = self.rows[k + self.first]
        row.own, row.at, row.number = corner.p, f.project(self.s.to_world(corner.p)) + above, corner.number

    def _side_of_capsule(self, f: Frame) -> Vec3:
        """From its axis along what of the normal is across it."""
        axis = self.s.X.R.column(2)
        x, y, z = (dot(axis, e) for e in (f.e, f.f, f.n))
        return Vec3(-(x * z), -(y * z), 1.0 - z * z) * self.s.size.x

    def _few(self, f: Frame, corners: list[Corner], count: Any, above: Vec3 = ZERO) -> Any:
        """Of these corners as many as count; rows after them have the first."""
        for k, corner in enumerate(corners):
            self._put(f, k, corner if k == 0 else select(count > k + 0.5, corner, corners[0]), above)
        start, last = self.rows[self.first], self.rows[self.first + len(corners)]
        last.own, last.at, last.number = start.own, start.at, start.number
        return count

    def _box(self, f: Frame, normal: Vec3, ends: list[Corner], count: Any) -> Any:
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
        """With as many corners: all of an end, both of its line, or the lowest of its rim."""
        r, h = self.s.size.x, self.s.size.y
        up = select(out.z < 0.0, -1.0, 1.0)
        rho = sqrt(maximum(out.x * out.x + out.y * out.y, 1e-20))
        side, flat = Vec3(out.x * (r / rho), out.y * (r / rho), up * h), count > 2.5
        turn, (c, d) = carry((1.0, 0.0)), (cos(2.0 * pi / END), sin(2.0 * pi / END))
        for k in self.rings.below(count, 1):
            x, y = turn.value
            again = to_real(k) > count - 0.5
            u, v = select(again, 1.0, x), select(again, 0.0, y)
            other = (abs(to_real(k) - 1.0) < 0.5) & (count > 1.5)
            line = Vec3(side.x, side.y, select(other, -side.z, side.z))
            self._put(f, k, Corner(select(flat, Vec3(u * r, -(v * up * r), up * h), line), 0.0))
            turn.value = (x * c - y * d, x * d + y * c)
        return count

    def _hull(self, f: Frame, lies: Lying, count: Any) -> Any:
        hull, flat = self.s.hull, count > 2.5
        begin, end = hull.span(hull.faces, lies.face)
        every = end - begin
        count = select(flat, minimum(every, to_real(self.rings.size) - 1.0), count)
        for k in self.rings.below(count, 1):
            at = select(to_real(k) < count, to_real(k), 0.0)
            number = carry(select(at > 0.5, lies.numbers.y, lies.numbers.x))
            for _ in when_any(flat):
                place = end - 1.0 - floor(at * every / count)
                number.value = select(flat, hull.table.gather(place, hull.size), number.value)
            self._put(f, k, hull.corner(number.value))
        return count


def area(rings: Rings, first: Any, count: Any) -> Vec3:
    """Twice the vector area of a ring."""
    o, total = rings.rows[first].at, carry(Vec3.zero())
    for k in rings.below(count - 1.0):
        one, next_ = (rings.rows[first + k + j].at - o for j in range(2))
        total.value = total.value + select(to_real(k) < count - 1.0, cross(one, next_), ZERO)
    return total.value


def flat2(v: Vec3) -> Any:
    """Its squared length in the projection."""
    return v.x * v.x + v.y * v.y


class RingPlane(Linear):
    """The plane of a ring as a height over the projection: a corner, the one furthest from it, and the normal; both and one
    aside of them in the frame of the solid, with their numbers."""

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
        """Whether its ring has an area."""
        return self.normal.z > THIN * flat2(self.far - self.at)


def plane(rings: Rings, first: Any, count: Any, normal: Vec3) -> RingPlane:
    """With the first corner, the one furthest from it, and the one that makes the largest triangle with these."""
    rows = rings.rows
    o = rows[first]
    origin, own = o.at, o.own
    far, wide = carry((0.0, origin, Corner(own, o.number))), carry((0.0, Corner(own, o.number)))
    for k in rings.below(count):
        row = rows[k + first]
        d = flat2(row.at - origin)
        best, at, p = far.value
        more = (to_real(k) < count) & (d > best * CLEARLY)
        far.value = (select(more, d, best), select(more, row.at, at), select(more, Corner(row.own, row.number), p))
    along = far.value[1] - origin
    for k in rings.below(count):
        row = rows[k + first]
        d = row.at - origin
        area, (best, p) = abs(along.x * d.y - along.y * d.x), wide.value
        more = (to_real(k) < count) & (area > best * CLEARLY)
        wide.value = (select(more, area, best), select(more, Corner(row.own, row.number), p))
    p1, p2 = far.value[2], wide.value[1]
    numbers = Vec3(o.number, p1.number, p2.number)
    return RingPlane(origin, far.value[1], normal, own, p1.p, p2.p, numbers)


def rearrange(rings: Rings, most: Any, turn: Mat3, swap: Any) -> None:
    """Project two rings on another plane, and exchange them where `swap` is 1. most: corners of either."""
    other_way = swap > 0.5
    for k in rings.below(most, 1):
        one, other = rings.rows[k], rings.rows[rings.size + k]
        values = [[turn @ one.at, turn @ other.at], [one.own, other.own], [one.number, other.number]]
        one.at, one.own, one.number = (select(other_way, b, a) for a, b in values)
        other.at, other.own, other.number = (select(other_way, a, b) for a, b in values)
