"""Where two solids lie flat on each other: up to four points of the area that their faces or edges share  (theory 6.10).

What of a solid looks along its normal, within TILT, is a ring of up to sixteen corners in order: of a cylinder sixteen on its
rim, or its line; of a hull the face around its furthest corner; else the furthest points in eight directions around the normal,
some of them the same. Of two faces that of the later solid holds the normal, as in MuJoCo. Both rings are projected along it,
and the smaller one is cut by the larger. Corners of the shared area are starts and ends of the cut edges, and corners of the
larger ring inside the smaller. Where there are none of the latter the others stand in order around the area, and four are kept
as MuJoCo keeps them (`spread.py`), from the deepest on. Else four are kept by reductions: the deepest, the one furthest from
it, and the largest triangle on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import cos, pi, sin
from typing import Any, NamedTuple

from ...model.model import CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Vec3, cross, dot
from ...staging import (
    Layout,
    Linear,
    Reals,
    Row,
    Table,
    carry,
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
from .gap import FAR
from .hull_tables import Corner
from .meeting import Slots
from .solids import SOLIDS, Solid, core_support
from .spread import spread

RING = 16
AROUND = 8  # directions around a normal
STRIDE = RING + 1  # rows of a ring: its first corner stands after its last one, and in all rows beyond
TILT = 0.087  # sine of 5 degrees: MuJoCo's limit for features that lie flat
SLACK = {"f64": 1e-9, "f32": 1e-6}  # m, by which the larger ring is widened
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, an edge that runs along another
ROUGH = 1e-4  # m, by which a face may not be flat
DISTINCT = 1e-4  # m, nearer points are one
THIN = 1e-3  # share of its squared length below which the area of a ring is none
DEEPER = (
    3e-4  # m, by which the nearest points of the solids must be deeper than all of the patch to be one of its points
)
CLEARLY = 1.0 + 1e-5  # by which a corner is further than one before it, so that rounding does not choose
LEAN = 1e-7  # of its place, by which a corner is deeper than one that is as deep, so that rounding does not choose

CORNER = Layout(at=Vec3, own=Vec3, number=float)  # projected (height last), in the frame of its solid, which of a hull
# A candidate: where, its gap and whether it is real; 0 a corner of the smaller ring, 1 an edge cut by one of the larger, 2 a
# corner of the larger ring; which corner or edge, and which edge cuts
CROSSING = Layout(x=float, y=float, phi=float, height=float, real=float, kind=float, of=float, by=float)
CROSSINGS = 3 * RING
ORDER = Layout(number=float)  # of the candidates around the area, 2 * RING of them


class Frame(Linear):
    """Axes of the projection: two across the normal, and the normal; and their origin."""

    o: Vec3
    e: Vec3
    f: Vec3
    n: Vec3

    def project(self, v: Vec3) -> Vec3:
        d = v - self.o
        return Vec3(dot(d, self.e), dot(d, self.f), dot(d, self.n))


class Spot(Linear):
    """A point of a patch: its gap, where, 1 if it is real; and of the smaller and the larger ring up to three corners, and
    along how many directions these let it slip."""

    phi: float
    x: float
    y: float
    height: float
    real: float
    small0: Vec3
    small1: Vec3
    small2: Vec3
    small_flat: float
    small_numbers: Vec3
    large0: Vec3
    large1: Vec3
    large2: Vec3
    large_flat: float
    large_numbers: Vec3


def frame(A: Solid, o: Vec3, n: Vec3) -> Frame:
    """The first axis is fixed in A, so that rounding does not choose it."""
    x, y = A.X.R.column(0), A.X.R.column(1)
    along = select(abs(dot(x, n)) < 0.8, x, y)
    e = along - n * dot(n, along)
    e = e / sqrt(dot(e, e))
    return Frame(o, e, cross(n, e), n)


def _ring(s: Solid, frame: Frame, sign: float, rows: Table, first: int) -> Any:
    """The corners of what looks along sign * n, counter-clockwise about the normal of the frame: fills its rows, and returns
    how many there are."""

    def furthest(x: Any, y: Any) -> Corner:
        return core_support(s, s.X.R.T @ (frame.n * sign + (frame.e * x + frame.f * y) * TILT))

    def others() -> Any:
        return _around(s, frame, rows, first, AROUND, furthest)

    def point() -> Any:
        return _around(s, frame, rows, first, AROUND, lambda x, y: Corner(Vec3.zero(), 0.0))

    def cylinder() -> Any:
        return _cylinder(s, frame, sign, rows, first)

    def hull() -> Any:
        out = s.X.R.T @ (frame.n * sign)
        face, cosine = s.hull.face_towards(s.hull.furthest(out).number, out)
        begin, end = s.hull.span(s.hull.faces, face)
        every, faces_it = end - begin, cosine > 1.0 - 0.5 * TILT * TILT
        count = minimum(every, float(RING))
        number = carry(float(AROUND) + 0.0 * cosine)
        for _ in when_any(cosine <= 1.0 - 0.5 * TILT * TILT):
            number.value = others()
        for _ in when_any(faces_it):
            for k in loop(STRIDE):
                at = select(to_real(k) < count, to_real(k), 0.0)
                at = at if sign > 0.0 else select(at > 0.5, count - at, 0.0)  # faces go round as seen from outside
                own = s.hull.corner(s.hull.table.gather(begin + floor(at * every / count), s.hull.size))
                row = rows[k + first]
                row.own, row.number = select(faces_it, own.p, row.own), select(faces_it, own.number, row.number)
                row.at = select(faces_it, frame.project(s.to_world(own.p)), row.at)
        return select(faces_it, count, number.value)

    cases = dict.fromkeys(SOLIDS, others) | {CYLINDER: cylinder, SPHERE: point, ELLIPSOID: point, POINTS: hull}
    return s.by_kind(cases)


def _around(s: Solid, frame: Frame, rows: Table, first: int, count: int, corner: Callable[[Any, Any], Corner]) -> Any:
    """A ring of as many corners at equal angles around the normal, by their cosines and sines; returns how many there are."""
    turn, (c, d) = carry((1.0, 0.0)), (cos(2.0 * pi / count), sin(2.0 * pi / count))
    for k in loop(count):
        (x, y), row = turn.value, rows[k + first]
        at = corner(x, y)
        row.own, row.at, row.number = at.p, frame.project(s.to_world(at.p)), at.number
        turn.value = (x * c - y * d, x * d + y * c)
    start = rows[first]
    for k in loop(count, STRIDE):
        row = rows[k + first]
        row.own, row.at, row.number = start.own, start.at, start.number
    return float(count) + 0.0 * frame.n.x


def _cylinder(s: Solid, frame: Frame, sign: float, rows: Table, first: int) -> Any:
    return _around(s, frame, rows, first, RING, lambda x, y: Corner(_on_cylinder(s, frame, sign, x, y), 0.0))


def _on_cylinder(s: Solid, frame: Frame, sign: float, x: Any, y: Any) -> Vec3:
    """A corner of the ring of a cylinder, for an angle (cosine, sine) around the normal: on its rim, fixed in it, or an end of
    its line."""
    l, r = s.X.R.T @ (frame.n * sign), s.size.x
    rho = sqrt(maximum(l.x * l.x + l.y * l.y, 1e-20))
    end = select(l.z < 0.0, -s.size.y, s.size.y)
    ahead = select(dot(s.X.R.column(2), frame.e * x + frame.f * y) < 0.0, -s.size.y, s.size.y)
    line = Vec3(l.x * (r / rho), l.y * (r / rho), select(abs(l.z) < TILT, ahead, end))
    return select(rho < TILT, Vec3(x * r, y * select(l.z * sign < 0.0, -r, r), end), line)


def _area(rows: Table, first: int) -> Vec3:
    """Twice the vector area of a ring."""
    o, total = rows[first].at, carry(Vec3.zero())
    for k in loop(1, RING - 1):
        total.value = total.value + cross(rows[k + first].at - o, rows[k + first + 1].at - o)
    return total.value


def _flat2(v: Vec3) -> Any:
    return v.x * v.x + v.y * v.y


class Plane(Linear):
    """The plane of a ring as a height over the projection: a corner, the one furthest from it, and the normal; and three
    corners that span it, in the frame of the solid, with their numbers."""

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


def _plane(rows: Table, first: int, normal: Vec3) -> Plane:
    """Spanned by the first corner, the one furthest from it, and the one that makes the largest triangle with these. Its normal
    is that of these three, since a face need not be flat, and as long as the one that is given."""
    o = rows[first]
    origin, own = o.at, o.own
    far, wide = carry((0.0, origin, Corner(own, o.number))), carry((0.0, origin, Corner(own, o.number)))
    for k in loop(1, RING):
        row = rows[k + first]
        d = _flat2(row.at - origin)
        best, at, p = far.value
        more = d > best * CLEARLY
        far.value = (select(more, d, best), select(more, row.at, at), select(more, Corner(row.own, row.number), p))
    along = far.value[1] - origin
    for k in loop(1, RING):
        row = rows[k + first]
        d = row.at - origin
        area, (best, at, p) = abs(along.x * d.y - along.y * d.x), wide.value
        more = area > best * CLEARLY
        wide.value = (select(more, area, best), select(more, row.at, at), select(more, Corner(row.own, row.number), p))
    p1, p2 = far.value[2], wide.value[2]
    three = cross(along, wide.value[1] - origin)
    spans = abs(three.z) > THIN * _flat2(along)
    normal = select(spans, three * (normal.z / select(spans, three.z, 1.0)), normal)
    return Plane(origin, far.value[1], normal, own, p1.p, p2.p, Vec3(o.number, p1.number, p2.number))


def _cut(rows: Table, out: Table, planes: tuple[Plane, Plane], counts: tuple[Any, Any], swap: Any) -> None:
    """All candidates. The smaller ring lies in the first rows, the larger in those after; swap: 1 where A's is the smaller, -1
    where B's is; gaps are heights of B over A. A line goes there and back: its ends are starts on the other way."""
    line = planes[0].normal.z <= THIN * _flat2(planes[0].far - planes[0].at)
    slack, level, (small, large) = SLACK[target().dtype], LEVEL[target().dtype], planes
    for k in loop(CROSSINGS):
        out[k].real = 0.0
    for k in _corners(counts[0]):
        p, q = rows[k].at, rows[k + 1].at
        g = q - p
        cut = carry((0.0, 1.0, 0.0, 0.0))  # start, end, and the edges that make them
        for j in _corners(counts[1]):
            a, b = rows[j + STRIDE].at, rows[j + 1 + STRIDE].at
            dx, dy = b.x - a.x, b.y - a.y
            length = sqrt(dx * dx + dy * dy)
            edge = length > level
            nx, ny = dy / select(edge, length, 1.0), -(dx / select(edge, length, 1.0))  # outwards
            room = nx * (a.x - p.x) + ny * (a.y - p.y) + slack  # inside while room - t rate >= 0
            rate = nx * g.x + ny * g.y
            t = room / select(abs(rate) > level, rate, 1.0)
            start, end, start_by, end_by = cut.value
            number = to_real(j)
            later = edge & (rate < -level) & (t > start)
            sooner = edge & (rate > level) & (t < end)
            never = edge & (abs(rate) <= level) & (room < 0.0)
            end_t = select(sooner, t, end)
            cut.value = (
                select(later, t, start),
                select(never, -1.0, end_t),
                select(later, number, start_by),
                select(sooner, number, end_by),
            )
        start, end, start_by, end_by = cut.value
        some = select((start <= end) & (maximum(abs(g.x), abs(g.y)) > level), 1.0, 0.0)
        for offset, t, by, whole in ((0, start, start_by, start <= 0.0), (RING, end, end_by, end < 0.0)):
            at = p + g * t
            high = large.height(at.x, at.y)
            row = out[k + offset]
            row.x, row.y, row.phi, row.height = at.x, at.y, (high - at.z) * swap, 0.5 * (high + at.z)
            row.real = some if offset == 0 else some * select(line, 0.0, select(end < 1.0 - 1e-9, 1.0, 0.0))
            row.kind, row.of, row.by = select(whole, 0.0, 1.0), to_real(k), by
    for k in _corners(counts[1]):
        at = rows[k + STRIDE].at
        worst = carry(-FAR)
        for j in _corners(counts[0]):
            a, b = rows[j].at, rows[j + 1].at
            dx, dy = b.x - a.x, b.y - a.y
            edge = maximum(abs(dx), abs(dy)) > level
            outside = dy * (at.x - a.x) - dx * (at.y - a.y)
            worst.value = maximum(worst.value, select(edge, outside, -FAR))
        low = small.height(at.x, at.y)
        row = out[k + 2 * RING]
        row.x, row.y, row.phi, row.height = at.x, at.y, (at.z - low) * swap, 0.5 * (at.z + low)
        row.real, row.kind, row.of, row.by = select(worst.value < 0.0, 1.0, 0.0), 2.0, to_real(k), 0.0


def _corners(count: Any) -> Iterator[Any]:
    """Numbers of corners, as far as any robot of the pack has some."""
    for k in loop(RING):
        for _ in when_any(to_real(k) < count):
            yield k


class Pick(Linear):
    """A candidate that was picked: its number, its score, where it is and its gap."""

    number: float
    score: float
    x: float
    y: float
    phi: float


def _pick(out: Table, within: tuple[Any, Any], score: Callable[[Row], Any]) -> Pick:
    """The candidate with the highest score whose gap is within bounds."""
    best = carry(Pick(0.0, -FAR, 0.0, 0.0, FAR))
    for k in loop(CROSSINGS):
        row = out[k]
        for _ in when_any(row.real > 0.5):
            now, this = best.value, Pick(to_real(k), score(row), row.x, row.y, row.phi)
            best.value = select(_counts(row, within) & (this.score > now.score), this, now)
    return best.value


def _counts(row: Row, within: tuple[Any, Any]) -> Any:
    """Whether a candidate is one, with its gap within bounds."""
    return (row.real > 0.5) & (row.phi < within[1]) & (row.phi > within[0] - ROUGH - 0.02 * abs(within[0]))


def _spot(rows: Table, out: Table, number: Any, real: Any, planes: tuple[Plane, Plane]) -> Spot:
    """A candidate with the corners that it slips along."""
    small, large = planes
    x, y, phi, height, kind, of, by = (
        out.pick(name, number, CROSSINGS) for name in ("x", "y", "phi", "height", "kind", "of", "by")
    )
    of_small, of_large = kind < 0.5, kind > 1.5
    mine = select(of_large, of, by) + STRIDE
    (s0, n0), (s1, n1), (l0, m0), (l1, m1) = (
        (rows.pick("own", k, 2 * STRIDE), rows.pick("number", k, 2 * STRIDE)) for k in (of, of + 1.0, mine, mine + 1.0)
    )
    return Spot(
        phi,
        x,
        y,
        height,
        select(real, 1.0, 0.0),
        select(of_large, small.p0, s0),
        select(of_large, small.p1, s1),
        small.p2,
        kind,
        select(of_large, small.numbers, Vec3(n0, n1, small.numbers.z)),
        select(of_small, large.p0, l0),
        select(of_small, large.p1, l1),
        large.p2,
        2.0 - kind,
        select(of_small, large.numbers, Vec3(m0, m1, large.numbers.z)),
    )


def _swapped(rows: Table, by: Any) -> None:
    """Exchange the two rings where `by` holds."""
    for k in loop(STRIDE):
        one, other = rows[k], rows[k + STRIDE]
        a, b, c, d = one.at, other.at, one.own, other.own
        one.at, other.at = select(by, b, a), select(by, a, b)
        one.own, other.own = select(by, d, c), select(by, c, d)
        e, f = one.number, other.number
        one.number, other.number = select(by, f, e), select(by, e, f)


class Kept(Linear):
    """Numbers of four candidates, 1 for each of them that counts, and the least gap of all."""

    first: float
    second: float
    third: float
    fourth: float
    some: float
    two: float
    three: float
    four: float
    deepest: float

    def numbers(self) -> tuple[Any, ...]:
        return self.first, self.second, self.third, self.fourth

    def counting(self) -> tuple[Any, ...]:
        return self.some, self.two, self.three, self.four


def _kept(numbers: Iterable[Any], real: Iterable[Any], deepest: Any) -> Kept:
    return Kept(*numbers, *(select(ok, 1.0, 0.0) for ok in real), deepest)


def _in_order(out: Table, order: Table, within: tuple[Any, Any]) -> tuple[Kept, Any]:
    """Four of the candidates on the smaller ring, which stand in order around the area; and 1 where a corner of the larger ring
    is among the candidates, so that they are not all."""
    count, deep, more = carry(0.0 * within[0]), carry((FAR + 0.0 * within[0], 0.0, FAR)), carry(0.0 * within[0])
    for k in loop(2 * RING):
        order[k].number = 0.0
    numbers = Reals(order.memory, order.start)
    for k in loop(RING):
        for half in (0, RING):
            row = out[k + half]
            for _ in when_any(row.real > 0.5):
                there, (lowest, at, phi) = _counts(row, within), deep.value
                numbers.scatter_add(count.value, 2 * RING, select(there, to_real(k) + float(half), 0.0))
                leaned = row.phi - LEAN * (row.x + 0.5 * row.y)
                lower = there & (leaned < lowest)
                deep.value = (
                    select(lower, leaned, lowest),
                    select(lower, count.value, at),
                    select(lower, row.phi, phi),
                )
                count.value = count.value + select(there, 1.0, 0.0)
    for k in loop(2 * RING, CROSSINGS):
        for _ in when_any(out[k].real > 0.5):
            more.value = maximum(more.value, select(_counts(out[k], within), 1.0, 0.0))
    total, start = count.value, deep.value[1]

    def corner(k: Any) -> Corner:
        at = start + k
        number = numbers.gather(select(at < total, at, at - total), 2 * RING)
        x, y = (out.pick(name, number, CROSSINGS) for name in ("x", "y"))
        return Corner(Vec3(x, y, 0.0), number)

    four = spread(corner, total, Vec3(0.0, 0.0, 1.0), 2 * RING // 8)
    return _kept((c.number for c in four), (total > k + 0.5 for k in range(4)), deep.value[2]), more.value


def _by_reductions(out: Table, within: tuple[Any, Any]) -> Kept:
    """The deepest of all candidates, the one furthest from it, and those that make the largest triangles on either side."""
    first = _pick(out, within, lambda c: LEAN * (c.x + 0.5 * c.y) - c.phi)
    second = _pick(out, within, lambda c: _square(c.x - first.x, c.y - first.y))
    dx, dy = second.x - first.x, second.y - first.y

    def beside(c: Row) -> Any:
        return dx * (c.y - first.y) - dy * (c.x - first.x)

    left, right = _pick(out, within, beside), _pick(out, within, lambda c: -beside(c))
    apart = DISTINCT * sqrt(_square(dx, dy))
    real = (first.score > -0.5 * FAR, second.score > DISTINCT * DISTINCT, left.score > apart, right.score > apart)
    return _kept((pick.number for pick in (first, second, left, right)), real, first.phi)


class Held(Linear):
    """What holds the normal of a patch: the normal; 1 where it is a face of A's, 0 where one of B's; three corners of it, in
    the frame of its solid, and their numbers."""

    n: Vec3
    of_a: float
    p0: Vec3
    p1: Vec3
    p2: Vec3
    numbers: Vec3


def _held(A: Solid, B: Solid, f: Frame, rows: Table) -> tuple[Held, Any]:
    """Of two faces that of the later solid, else the only one there is; and where there is one, and two look at each other
    within TILT."""
    planes = [_plane(rows, first, _area(rows, first)) for first in (0, STRIDE)]
    wide = [p.normal.z > THIN * _flat2(p.far - p.at) for p in planes]
    units = [p.normal / sqrt(maximum(dot(p.normal, p.normal), 1e-30)) for p in planes]
    both = wide[0] & wide[1]
    of_a = select(both, A.later, select(wide[0], 1.0, 0.0))
    own, plane = select(of_a > 0.5, units[0], units[1]), select(of_a > 0.5, planes[0], planes[1])
    apart = cross(units[0], units[1])
    ok = (wide[0] | wide[1]) & (select(both, dot(apart, apart), 0.0) < TILT * TILT)
    n = f.e * own.x + f.f * own.y + f.n * own.z
    return Held(select(ok, n, f.n), of_a, plane.p0, plane.p1, plane.p2, plane.numbers), ok


def _turned(s: Solid, sign: float, rows: Table, first: int, frames: tuple[Frame, Frame]) -> None:
    """Project a ring on another plane; the line of a cylinder is elsewhere for another normal."""
    old, new = frames
    axes = [Vec3(dot(x, old.e), dot(x, old.f), dot(x, old.n)) for x in (new.e, new.f, new.n)]

    def others() -> None:
        for k in loop(STRIDE):
            at = rows[k + first].at
            rows[k + first].at = Vec3(*(dot(axis, at) for axis in axes))

    def cylinder() -> None:
        _cylinder(s, new, sign, rows, first)

    s.by_kind(dict.fromkeys(SOLIDS, others) | {CYLINDER: cylinder})


class Patch(NamedTuple):
    """Four spots of the area that A and B share and the frame of its projection, 1 where A's ring is the smaller one, else 0,
    the least gap, and what holds the normal."""

    spots: list[Spot]
    frame: Frame
    a_small: Any
    deepest: Any
    held: Held


def patch(A: Solid, B: Solid, f: Frame, within: tuple[Any, Any], slots: Slots) -> Patch:
    """within: the gap of the solids, which the area is not below but by what its faces are not flat; and the gap beyond which
    none counts."""
    rows, out = slots.corners, slots.crossings
    n_a, n_b = _ring(A, f, 1.0, rows, 0), _ring(B, f, -1.0, rows, STRIDE)
    held, ok = _held(A, B, f, rows)
    new = frame(A, f.o, held.n)
    _turned(A, 1.0, rows, 0, (f, new))
    _turned(B, -1.0, rows, STRIDE, (f, new))
    a_larger = _area(rows, 0).z > _area(rows, STRIDE).z
    _swapped(rows, a_larger)
    counts = select(a_larger, n_b, n_a), select(a_larger, n_a, n_b)
    small_area, large_area = _area(rows, 0), _area(rows, STRIDE)
    planes = small, large = _plane(rows, 0, small_area), _plane(rows, STRIDE, large_area)
    length2, reach2 = _flat2(small.far - small.at), _flat2(large.far - large.at)
    some = ok & (large_area.z > THIN * reach2) & (length2 > DISTINCT * DISTINCT)
    _cut(rows, out, planes, counts, select(a_larger, -1.0, 1.0))
    ordered, more = _in_order(out, slots.order, within)
    chosen = carry(ordered)
    for _ in when_any(more > 0.5):
        chosen.value = select(more > 0.5, _by_reductions(out, within), chosen.value)
    found = chosen.value
    numbers = zip(found.numbers(), found.counting(), strict=True)
    spots = [_spot(rows, out, k, some & (count > 0.5), planes) for k, count in numbers]
    return Patch(spots, new, select(a_larger, 0.0, 1.0), select(some, found.deepest, FAR), held)


def _square(x: Any, y: Any) -> Any:
    return x * x + y * y
