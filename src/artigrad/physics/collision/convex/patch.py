"""Where two solids lie flat on each other: up to four points of the area that their faces or edges share  (theory 6.10).

What of each solid lies on the other (`lying.py`) is a ring of corners (`rings.py`). A face cuts the ring of the other solid
(`clip.py`), both projected along its own normal; of two faces that of the earlier solid, as MuJoCo counts. Of more than four
corners of the area four are kept (`spread.py`), and of an edge its two ends. From its place on the face that cuts, the gap of a
point is measured along the normal of the other face, if there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Layout, Linear, Table, carry, clamp, maximum, minimum, select, sqrt, target, to_real, when_any
from ...spatial import Vec3, dot
from .clip import ASIDE, Area, clip
from .contact_features import Lying, lying
from .contact_polygon import Frame, RingOf, RingPlane, Rings, area, flat2, frame, plane, rearrange
from .contact_record import Slots
from .hull_tables import Corner
from .manifold_reduction import spread
from .solids import Solid
from .witness import Facet

DISTINCT = 1e-4  # m, shorter edges are points
CROSSES = 1e-6  # sine between two edges, at least, for their crossing to be asked of them


class Spot(Linear):
    """A point of a patch: its gap, where on the other ring, 1 if it is real; and of the subject and the other ring up to three
    corners, and along how many directions these let it slip."""

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


class Held(Linear):
    """Normals of a patch: its own, and that of the face that cuts, which is another one if there are two; how many there are;
    and 1 where A's ring is cut."""

    n: Vec3
    m: Vec3
    faces: float
    cut_a: float


def _held(A: Solid, f: Frame, counts: tuple[Any, Any], areas: tuple[Vec3, Vec3]) -> Held:
    """Of two rings with these corners and areas."""
    a, b = (select(count > 2.5, 1.0, 0.0) for count in counts)
    units = [x / sqrt(maximum(dot(x, x), 1e-30)) for x in areas]
    both, any_ = a + b > 1.5, a + b > 0.5
    cut_a = select(both, A.later, 1.0 - a)
    of_a = select(both, A.later, a)
    n, m = (
        select(any_, f.e * u.x + f.f * u.y + f.n * u.z, f.n)
        for u in (select(of_a > 0.5, *units), select(cut_a > 0.5, units[1], units[0]))
    )
    return Held(n, m, a + b, cut_a)


class FourOf(Linear):
    """Numbers of four corners of an area, and how many of them count."""

    first: float
    second: float
    third: float
    fourth: float
    count: float


# How far it is to where something else lies flat; what an area was made of: corners of the ring that was cut and of the other,
# and 1 where the other is above; corners of the area, how many of them count, and the four that are kept; and the plane of the
# other ring.
MADE = Layout(room=float, small=float, large=float, side=float, many=float, count=float, four=FourOf, plane=RingPlane)


def _chosen(polygon: Area, order: Table, many: Any, gap: Any, within: Any, line: Any) -> tuple[FourOf, Any]:
    """Four of the corners of an area with gaps below `within`, and how many there are; of an edge the two that are furthest
    apart."""
    total = carry(0.0 * many)
    for k in polygon.below(many):
        v = polygon.rows[k].at
        order.place("at", total.value, polygon.size, Corner(Vec3(v.x, v.y, 0.0), to_real(k)))
        total.value = total.value + select((to_real(k) < many) & (gap(v) < within), 1.0, 0.0)
    count = total.value

    def corner(k: Any) -> Corner:
        return order.pick("at", select(k < count, k, k - count), polygon.size)

    four = spread(corner, count, Vec3(0.0, 0.0, 1.0), polygon.blocks, free=True)
    kept = carry(FourOf(*(c.number for c in four), select(count < 4.0, count, 4.0)))
    for _ in when_any(line):
        kept.value = select(line, _ends(polygon, order, count), kept.value)
    return kept.value, count


def _ends(polygon: Area, order: Table, count: Any) -> FourOf:
    """The first of the corners of an edge, and the furthest from it. Where only the place counts at which the edge leaves the
    other ring, that is met there and back: two points of one place, as in MuJoCo."""
    first = order[0].at
    far = carry((first.number, 0.0 * count))
    for k in polygon.below(count):
        (number, most), new = far.value, order[k].at
        square = flat2(new.p - first.p)
        more = (to_real(k) < count) & (square > most)
        far.value = select(more, new.number, number), select(more, square, most)
    return FourOf(first.number, far.value[0], first.number, first.number, minimum(count, 2.0))


def _spot(polygon: Area, many: Any, number: Any, planes: tuple[RingPlane, RingPlane], scale: Any) -> Spot:
    """A corner of the area with the corners of both rings that it slips along: 0 a corner of the subject, 1 a crossing of two
    edges, 2 a corner of the other ring. scale: of a gap, from how much higher the other ring is."""
    (small, large), rings = planes, polygon.rings
    v, last = polygon.around(many, number)
    leaves, comes = polygon.on_subject(v), polygon.on_subject(last)
    of_small, of_large = leaves & comes, select(leaves | comes, 0.0, 1.0) > 0.5
    of = select(leaves, v.out, select(comes, last.out, 0.0))
    second = to_real(rings.size)
    by = select(comes, v.out, last.out)  # the other ring goes the other way round: its corner begins the edge
    mine = select(of_small, second, by)
    (s0, a0, n0), (s1, a1, n1), (l0, b0, m0), (l1, b1, m1) = (
        tuple(rings.rows.pick(name, k, rings.size * 2) for name in ("own", "at", "number"))
        for k in (of, of + 1.0, mine, mine + 1.0)
    )
    x, y, low, high = _crossing(v.x, v.y, (a0, a1), (b0, b1))
    kind = select(of_small, 0.0, select(of_large, 2.0, 1.0))
    x, y = select(of_small, a0.x, select(of_large, b0.x, x)), select(of_small, a0.y, select(of_large, b0.y, y))
    low = select(of_small, a0.z, select(of_large, small.height(x, y), low))
    high = select(of_large, b0.z, select(of_small, large.height(x, y), high))
    return Spot(
        (high - low) * scale,
        x,
        y,
        high,
        1.0,
        select(of_large, small.p0, s0),
        select(of_large, small.p1, s1),
        small.p2,
        kind,
        select(of_large, small.numbers, Vec3(n0, n1, n1)),
        select(of_small, large.p0, l0),
        select(of_small, large.p1, l1),
        large.p2,
        2.0 - kind,
        select(of_small, large.numbers, Vec3(m0, m1, m1)),
    )


def _crossing(x: Any, y: Any, one: tuple[Vec3, Vec3], other: tuple[Vec3, Vec3]) -> tuple[Any, ...]:
    """Where two edges cross in the projection, near (x, y), and their heights there."""
    (a, a1), (b, b1) = one, other
    d, e, r = a1 - a, b1 - b, b - a
    det = d.x * e.y - d.y * e.x
    clear = abs(det) > CROSSES * sqrt(maximum(flat2(d) * flat2(e), 1e-30))
    beyond = 2.0 * ASIDE[target().dtype] / sqrt(maximum(flat2(d), 1e-30))  # nearly parallel edges may cross far away
    s = clamp((r.x * e.y - r.y * e.x) / select(clear, det, 1.0), -beyond, 1.0 + beyond)
    x, y = select(clear, a.x + d.x * s, x), select(clear, a.y + d.y * s, y)

    def height(p: Vec3, g: Vec3) -> Any:
        return p.z + g.z * ((x - p.x) * g.x + (y - p.y) * g.y) / maximum(flat2(g), 1e-30)

    return x, y, height(a, d), height(b, e)


class Patch(NamedTuple):
    """The area that A and B share: its corners, how many there are and which of them are kept; the planes of both rings, and
    the factor of `_spot`; the frame of the projection and the normals; what of A and of B lies on the other."""

    area: Area
    many: Any
    four: FourOf
    planes: tuple[RingPlane, RingPlane]
    scale: Any
    frame: Frame
    held: Held
    lying: tuple[Lying, Lying]

    def spot(self, k: Any) -> Spot:
        """The k-th of those corners that are kept; one that is not real where there are fewer."""
        number, *others = self.four.leaves()[:4]
        for j, other in enumerate(others, 1):
            number = select(k > j - 0.5, other, number)
        real, found = k < self.four.count - 0.5, carry(Spot.zero())
        for _ in when_any(real):
            spot = _spot(self.area, self.many, number, self.planes, self.scale)
            found.value = select(real, spot, Spot.zero())
        return found.value


def patch(solids: tuple[Solid, Solid], facets: tuple[Facet, Facet], f: Frame, within: Any, slots: Slots) -> Patch:
    """From the features that touch, and the frame of their normal. within: the gap beyond which none counts."""
    (A, B), (fa, fb) = solids, facets
    rings = Rings(slots.corners, slots.blocks)
    of_a, of_b = RingOf(A, rings, 0), RingOf(B, rings, rings.size)
    on_b, on_a, slots.made[0].room = lying(A, fa, B, fb, f.n)
    n_a, n_b = of_a.fill(f, on_b, 1.0), of_b.fill(f, on_a, -1.0)
    areas = area(rings, 0, n_a) * -1.0, area(rings, rings.size, n_b)  # A's ring goes clockwise, B's counter-clockwise
    held = _held(A, f, (n_a, n_b), areas)
    cut_a, new = held.cut_a > 0.5, frame(A, f.o, held.m)
    turn = f.to(new)
    rearrange(rings, maximum(n_a, n_b), turn, 1.0 - held.cut_a)
    counts = select(cut_a, n_a, n_b), select(cut_a, n_b, n_a)
    normals = select(cut_a, *areas), select(cut_a, areas[1], areas[0])
    small = plane(rings, 0, counts[0], turn @ normals[0])
    large = plane(rings, rings.size, counts[1], turn @ normals[1])
    some = (held.faces > 0.5) & large.wide() & (flat2(small.far - small.at) > DISTINCT * DISTINCT)
    side = select(cut_a, 1.0, -1.0)
    polygon, scale = Area(slots.polygon, rings), side * dot(held.n, held.m)
    kept = carry((0.0 * n_a, FourOf.zero()))
    for _ in when_any(some):
        many = clip(polygon, counts, side)
        gap = lambda v: (large.height(v.x, v.y) - v.z) * scale  # noqa: E731
        chosen, total = _chosen(polygon, slots.order, many, gap, within, counts[0] < 2.5)
        made = slots.made[0]
        made.small, made.large, made.side, made.plane = *counts, side, large
        made.many, made.count, made.four = many, total, chosen
        kept.value = many, select(some, chosen, FourOf.zero())
    return Patch(polygon, kept.value[0], kept.value[1], (small, large), scale, new, held, (on_b, on_a))
