"""Where two solids lie flat on each other: up to four points of the area that their faces or edges share  (theory 6.10).

What of a solid looks along its normal, within TILT, is a ring of eight corners in order, some of them the same: the furthest
points in eight directions around the normal; of a cylinder its rim, or its line. Both rings are projected along the normal, and
the smaller one is cut by the larger. Corners of the shared area are starts and ends of the cut edges, and corners of the larger
ring inside the smaller: 24 candidates, of which four are kept by reductions, so that no list grows and every robot of a pack
does the same: the deepest, the one furthest from it, and the largest triangle on either side.
"""

from __future__ import annotations

from typing import Any

from ...model.model import CYLINDER, ELLIPSOID, SPHERE
from ...spatial import Vec3, cross, dot
from ...staging import Layout, Linear, Row, Table, carry, loop, maximum, select, sqrt, target, to_real
from .gap import FAR
from .hull_tables import Corner
from .meeting import Slots
from .solids import SOLIDS, Solid, core_support

RING = 8
STRIDE = RING + 1  # rows of a ring: its first corner stands after its last once more
TILT = 0.087  # sine of 5 degrees: MuJoCo's limit for features that lie flat
SLACK = {"f64": 1e-9, "f32": 1e-6}  # m, by which the larger ring is widened
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, an edge that runs along another
ROUGH = {"f64": 1e-7, "f32": 1e-5}  # m, what a gap may be off
DISTINCT = 1e-4  # m, nearer points are one
THIN = 1e-3  # share of its squared length below which the area of a ring is none
DEEPER = (
    1e-5  # m, by which the nearest points of the solids must be deeper than all of the patch to be one of its points
)

CORNER = Layout(at=Vec3, own=Vec3, number=float)  # projected (height last), in the frame of its solid, which of a hull
# A candidate: where, its gap and whether it is real; 0 a corner of the smaller ring, 1 an edge cut by one of the larger, 2 a
# corner of the larger ring; which corner or edge, and which edge cuts
CROSSING = Layout(x=float, y=float, phi=float, height=float, real=float, kind=float, of=float, by=float)
CROSSINGS = 3 * RING


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


def _ring(s: Solid, frame: Frame, sign: float, rows: Table, first: int) -> None:
    """The corners of what looks along sign * n, counter-clockwise about the normal of the frame."""
    turn = carry((1.0, 0.0))
    half = 0.5**0.5
    for k in loop(RING):
        c, d = turn.value
        corner = _corner(s, frame, sign, (c, d))
        row = rows[k + first]
        row.own, row.at, row.number = corner.p, frame.project(s.to_world(corner.p)), corner.number
        turn.value = (c * half - d * half, c * half + d * half)
    last = rows[first + RING]
    last.own, last.at, last.number = rows[first].own, rows[first].at, rows[first].number


def _corner(s: Solid, frame: Frame, sign: float, angle: tuple[Any, Any]) -> Corner:
    """In the frame of the solid, for an angle (cosine, sine) around the normal: its furthest point in that direction; of a
    cylinder one on its rim, fixed in it, or an end of its line."""
    c, d = angle
    across = frame.e * c + frame.f * d

    def cylinder() -> Corner:
        l, r = s.X.R.T @ (frame.n * sign), s.size.x
        rho = sqrt(maximum(l.x * l.x + l.y * l.y, 1e-20))
        end = select(l.z < 0.0, -s.size.y, s.size.y)
        ahead = select(dot(s.X.R.column(2), across) < 0.0, -s.size.y, s.size.y)
        line = Vec3(l.x * (r / rho), l.y * (r / rho), select(abs(l.z) < TILT, ahead, end))
        rim = Vec3(c * r, d * select(l.z * sign < 0.0, -r, r), end)
        return Corner(select(rho < TILT, rim, line), 0.0)

    def others() -> Corner:
        return core_support(s, s.X.R.T @ (frame.n * sign + across * TILT))

    def point() -> Corner:
        return Corner(Vec3.zero(), 0.0)

    return s.by_kind(dict.fromkeys(SOLIDS, others) | {CYLINDER: cylinder, SPHERE: point, ELLIPSOID: point})


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
    """Spanned by the first corner, the one furthest from it, and the one that makes the largest triangle with these."""
    o = rows[first]
    origin, own = o.at, o.own
    far, wide = carry((-1.0, origin, Corner(own, o.number))), carry((-1.0, Corner(own, o.number)))
    for k in loop(1, RING):
        row = rows[k + first]
        d = _flat2(row.at - origin)
        best, at, p = far.value
        more = d > best
        far.value = (select(more, d, best), select(more, row.at, at), select(more, Corner(row.own, row.number), p))
    along = far.value[1] - origin
    for k in loop(1, RING):
        row = rows[k + first]
        d = row.at - origin
        area, (best, p) = abs(along.x * d.y - along.y * d.x), wide.value
        more = area > best
        wide.value = (select(more, area, best), select(more, Corner(row.own, row.number), p))
    p1, p2 = far.value[2], wide.value[1]
    return Plane(origin, far.value[1], normal, own, p1.p, p2.p, Vec3(o.number, p1.number, p2.number))


def _cut(rows: Table, out: Table, small: Plane, large: Plane, swap: Any) -> None:
    """All candidates. The smaller ring lies in the first rows, the larger in those after; swap: 1 where A's is the smaller, -1
    where B's is; gaps are heights of B over A."""
    slack, level = SLACK[target().dtype], LEVEL[target().dtype]
    for k in loop(RING):
        p, q = rows[k].at, rows[k + 1].at
        g = q - p
        cut = carry((0.0, 1.0, 0.0, 0.0))  # start, end, and the edges that make them
        for j in loop(RING):
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
        some = select(start <= end, 1.0, 0.0)
        for offset, t, by, whole in ((0, start, start_by, start <= 0.0), (RING, end, end_by, end < 0.0)):
            at = p + g * t
            high = large.height(at.x, at.y)
            row = out[k + offset]
            row.x, row.y, row.phi, row.height = at.x, at.y, (high - at.z) * swap, 0.5 * (high + at.z)
            row.real = some if offset == 0 else some * select(end < 1.0 - 1e-9, 1.0, 0.0)
            row.kind, row.of, row.by = select(whole, 0.0, 1.0), to_real(k), by
    for k in loop(RING):
        at = rows[k + STRIDE].at
        worst = carry(-FAR)
        for j in loop(RING):
            a, b = rows[j].at, rows[j + 1].at
            dx, dy = b.x - a.x, b.y - a.y
            edge = maximum(abs(dx), abs(dy)) > level
            outside = dy * (at.x - a.x) - dx * (at.y - a.y)
            worst.value = maximum(worst.value, select(edge, outside, -FAR))
        low = small.height(at.x, at.y)
        row = out[k + 2 * RING]
        row.x, row.y, row.phi, row.height = at.x, at.y, (at.z - low) * swap, 0.5 * (at.z + low)
        row.real, row.kind, row.of, row.by = select(worst.value < 0.0, 1.0, 0.0), 2.0, to_real(k), 0.0


class Pick(Linear):
    """A candidate that was picked, and its score."""

    score: float
    x: float
    y: float
    phi: float
    height: float
    kind: float
    of: float
    by: float


def _pick(out: Table, within: tuple[Any, Any], score: Any) -> Pick:
    """The candidate with the highest score whose gap is within bounds."""
    least, near = within[0] - ROUGH[target().dtype], within[1]
    best = carry(Pick(-FAR, 0.0, 0.0, FAR, 0.0, 0.0, 0.0, 0.0))
    for k in loop(CROSSINGS):
        row, now = out[k], best.value
        real = select((row.phi < near) & (row.phi > least), row.real, 0.0) > 0.5
        this = Pick(score(row), row.x, row.y, row.phi, row.height, row.kind, row.of, row.by)
        best.value = select(real & (this.score > now.score), this, now)
    return best.value


def _spot(rows: Table, pick: Pick, real: Any, small: Plane, large: Plane) -> Spot:
    """A pick with the corners that it slips along."""
    none = Corner(Vec3.zero(), 0.0)
    edge = carry((none, none, none, none))
    for k in loop(RING):
        mine, cutter = abs(pick.of - to_real(k)) < 0.5, abs(pick.by - to_real(k)) < 0.5
        s0, s1, l0, l1 = edge.value
        large_corner = select(pick.kind > 1.5, select(mine, 1.0, 0.0), select(cutter, 1.0, 0.0)) > 0.5
        edge.value = (
            select(mine, _own(rows[k]), s0),
            select(mine, _own(rows[k + 1]), s1),
            select(large_corner, _own(rows[k + STRIDE]), l0),
            select(large_corner, _own(rows[k + 1 + STRIDE]), l1),
        )
    s0, s1, l0, l1 = edge.value
    of_small, of_large = pick.kind < 0.5, pick.kind > 1.5
    return Spot(
        pick.phi,
        pick.x,
        pick.y,
        pick.height,
        select(real, 1.0, 0.0),
        select(of_large, small.p0, s0.p),
        select(of_large, small.p1, s1.p),
        small.p2,
        pick.kind,
        select(of_large, small.numbers, Vec3(s0.number, s1.number, small.numbers.z)),
        select(of_small, large.p0, l0.p),
        select(of_small, large.p1, l1.p),
        large.p2,
        2.0 - pick.kind,
        select(of_small, large.numbers, Vec3(l0.number, l1.number, large.numbers.z)),
    )


def _own(row: Row) -> Corner:
    return Corner(row.own, row.number)


def _swapped(rows: Table, by: Any) -> None:
    """Exchange the two rings where `by` holds."""
    for k in loop(STRIDE):
        one, other = rows[k], rows[k + STRIDE]
        a, b, c, d = one.at, other.at, one.own, other.own
        one.at, other.at = select(by, b, a), select(by, a, b)
        one.own, other.own = select(by, d, c), select(by, c, d)
        e, f = one.number, other.number
        one.number, other.number = select(by, f, e), select(by, e, f)


def patch(A: Solid, B: Solid, f: Frame, within: tuple[Any, Any], slots: Slots) -> tuple[list[Spot], Any, Any]:
    """Four spots of the area that A and B share, 1 where A's ring is the smaller one, else 0, and the least gap.

    within: the gap of the solids, which the area can be below only by the plane of a ring that is not quite flat; and the
    gap beyond which none counts."""
    rows, out = slots.corners, slots.crossings
    _ring(A, f, 1.0, rows, 0)
    _ring(B, f, -1.0, rows, STRIDE)
    a_larger = _area(rows, 0).z > _area(rows, STRIDE).z
    _swapped(rows, a_larger)
    small_area, large_area = _area(rows, 0), _area(rows, STRIDE)
    small, large = _plane(rows, 0, small_area), _plane(rows, STRIDE, large_area)
    length2, reach2 = _flat2(small.far - small.at), _flat2(large.far - large.at)
    some = (large_area.z > THIN * reach2) & (length2 > DISTINCT * DISTINCT)
    swap = select(a_larger, -1.0, 1.0)
    _cut(rows, out, small, large, swap)

    first = _pick(out, within, lambda c: 1e-3 * (c.x + 1e-3 * c.y) - c.phi)
    second = _pick(out, within, lambda c: _square(c.x - first.x, c.y - first.y))
    dx, dy = second.x - first.x, second.y - first.y

    def beside(c: Row) -> Any:
        return dx * (c.y - first.y) - dy * (c.x - first.x)

    left, right = _pick(out, within, beside), _pick(out, within, lambda c: -beside(c))
    apart = DISTINCT * sqrt(_square(dx, dy))
    real = (
        first.score > -0.5 * FAR,
        second.score > DISTINCT * DISTINCT,
        left.score > apart,
        right.score > apart,
    )
    picks = (first, second, left, right)
    spots = [_spot(rows, pick, some & ok, small, large) for pick, ok in zip(picks, real, strict=True)]
    deepest = select(some, _pick(out, within, lambda c: -c.phi).phi, FAR)
    return spots, select(a_larger, 0.0, 1.0), deepest


def _square(x: Any, y: Any) -> Any:
    return x * x + y * y
