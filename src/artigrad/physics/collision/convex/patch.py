"""Contact patch of two solids with aligned faces or edges: up to four points of the shared area  (theory 6.10).

`contact_features.py` selects the features, and `contact_polygon.py` converts each into a polygon. A face clips the polygon
of the other solid (`clip.py`); both are projected along the normal of that face. If both features are faces, the face of
the solid that MuJoCo counts first clips. `manifold_reduction.py` keeps four of more than four vertices; of an edge the two
ends remain. The distance of a point is measured from the clipping face along the normal of the other face, if there is one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Layout, Linear, Table, carry, clamp, maximum, minimum, select, sqrt, target, to_real, when_any
from ...spatial import Vec3, dot
from .clip import ASIDE, ClippedPolygon, clip
from .contact_features import ContactFeature, contact_features
from .contact_polygon import (
    Frame,
    PolygonBuilder,
    PolygonPair,
    PolygonPlane,
    flat2,
    frame,
    plane,
    rearrange,
    vector_area,
)
from .contact_record import Slots
from .hull_tables import Corner
from .manifold_reduction import reduce_manifold
from .solids import Solid
from .witness import Facet

DISTINCT = 1e-4  # m, length below which an edge is a point
CROSSES = 1e-6  # least sine between two edges for their intersection to be computed


class PatchPoint(Linear):
    """Point of a contact patch.

    Attributes:
        phi: Distance.
        x, y, height: Position on the other polygon.
        real: 1 if the point exists.
        small0, small1, small2: Vertices of its feature on the subject.
        small_flat: Number of its sliding directions.
        small_numbers: Indices of these vertices.
        large0, large1, large2, large_flat, large_numbers: The same of the other polygon.
    """

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


class PatchNormals(Linear):
    """Normals of a contact patch.

    Attributes:
        n: Contact normal.
        m: Normal of the clipping face; it differs from n if both features are faces.
        faces: Number of faces.
        cut_a: 1 if A's polygon is clipped.
    """

    n: Vec3
    m: Vec3
    faces: float
    cut_a: float


def _patch_normals(A: Solid, f: Frame, counts: tuple[Any, Any], areas: tuple[Vec3, Vec3]) -> PatchNormals:
    """Normals of a patch of two polygons with these vertex counts and vector areas."""
    a, b = (select(count > 2.5, 1.0, 0.0) for count in counts)
    units = [x / sqrt(maximum(dot(x, x), 1e-30)) for x in areas]
    both, any_ = a + b > 1.5, a + b > 0.5
    cut_a = select(both, A.later, 1.0 - a)
    of_a = select(both, A.later, a)
    n, m = (
        select(any_, f.e * u.x + f.f * u.y + f.n * u.z, f.n)
        for u in (select(of_a > 0.5, *units), select(cut_a > 0.5, units[1], units[0]))
    )
    return PatchNormals(n, m, a + b, cut_a)


class QuadIndices(Linear):
    """Indices of up to four vertices of an intersection, and their number."""

    first: float
    second: float
    third: float
    fourth: float
    count: float


# Contact patch of a pair: distance to another choice of features (margin); vertex counts of the clipped polygon (small) and
# the other
# (large); 1 if the other is above (side); vertices of the intersection (many), those that count (count), the four kept
# (quad); plane of the
# other polygon.
PATCH_RECORD = Layout(
    margin=float, small=float, large=float, side=float, many=float, count=float, quad=QuadIndices, plane=PolygonPlane
)


def _chosen(
    clipped: ClippedPolygon, order: Table, many: Any, distance: Any, within: Any, line: Any
) -> tuple[QuadIndices, Any]:
    """Return four vertices of an intersection with distances below `within`, and their total; of an edge the ends."""
    total = carry(0.0 * many)
    for k in clipped.below(many):
        v = clipped.rows[k].at
        order.place("at", total.value, clipped.size, Corner(Vec3(v.x, v.y, 0.0), to_real(k)))
        total.value = total.value + select((to_real(k) < many) & (distance(v) < within), 1.0, 0.0)
    count = total.value

    def corner(k: Any) -> Corner:
        return order.pick("at", select(k < count, k, k - count), clipped.size)

    quad = reduce_manifold(corner, count, Vec3(0.0, 0.0, 1.0), clipped.blocks, free=True)
    kept = carry(QuadIndices(*(c.number for c in quad), select(count < 4.0, count, 4.0)))
    for _ in when_any(line):
        kept.value = select(line, _ends(clipped, order, count), kept.value)
    return kept.value, count


def _ends(clipped: ClippedPolygon, order: Table, count: Any) -> QuadIndices:
    """Return the first vertex of an edge and the one furthest from it.

    If only the intersection with the border counts, it occurs twice: two points at one position, as in MuJoCo.
    """
    first = order[0].at
    far = carry((first.number, 0.0 * count))
    for k in clipped.below(count):
        (number, most), new = far.value, order[k].at
        square = flat2(new.p - first.p)
        more = (to_real(k) < count) & (square > most)
        far.value = select(more, new.number, number), select(more, square, most)
    return QuadIndices(first.number, far.value[0], first.number, first.number, minimum(count, 2.0))


def _patch_point(
    clipped: ClippedPolygon, many: Any, number: Any, planes: tuple[PolygonPlane, PolygonPlane], scale: Any
) -> PatchPoint:
    """Return a vertex of the intersection with its sliding directions on both polygons. scale: of the distance, per height."""
    (small, large), polygons = planes, clipped.polygons
    v, last = clipped.around(many, number)
    leaves, comes = clipped.on_subject(v), clipped.on_subject(last)
    of_small, of_large = leaves & comes, select(leaves | comes, 0.0, 1.0) > 0.5
    of = select(leaves, v.out, select(comes, last.out, 0.0))
    second = to_real(polygons.size)
    by = select(comes, v.out, last.out)  # the other polygon has the opposite orientation: its vertex begins the edge
    mine = select(of_small, second, by)
    (s0, a0, n0), (s1, a1, n1), (l0, b0, m0), (l1, b1, m1) = (
        tuple(polygons.rows.pick(name, k, polygons.size * 2) for name in ("own", "at", "number"))
        for k in (of, of + 1.0, mine, mine + 1.0)
    )
    x, y, low, high = _crossing(v.x, v.y, (a0, a1), (b0, b1))
    kind = select(of_small, 0.0, select(of_large, 2.0, 1.0))
    x, y = select(of_small, a0.x, select(of_large, b0.x, x)), select(of_small, a0.y, select(of_large, b0.y, y))
    low = select(of_small, a0.z, select(of_large, small.height(x, y), low))
    high = select(of_large, b0.z, select(of_small, large.height(x, y), high))
    return PatchPoint(
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
    """Return the intersection of two edges in the projection, near (x, y), and their heights there."""
    (a, a1), (b, b1) = one, other
    d, e, r = a1 - a, b1 - b, b - a
    det = d.x * e.y - d.y * e.x
    clear = abs(det) > CROSSES * sqrt(maximum(flat2(d) * flat2(e), 1e-30))
    # intersections of nearly parallel edges are bounded
    beyond = 2.0 * ASIDE[target().dtype] / sqrt(maximum(flat2(d), 1e-30))
    s = clamp((r.x * e.y - r.y * e.x) / select(clear, det, 1.0), -beyond, 1.0 + beyond)
    x, y = select(clear, a.x + d.x * s, x), select(clear, a.y + d.y * s, y)

    def height(p: Vec3, g: Vec3) -> Any:
        return p.z + g.z * ((x - p.x) * g.x + (y - p.y) * g.y) / maximum(flat2(g), 1e-30)

    return x, y, height(a, d), height(b, e)


class Patch(NamedTuple):
    """Shared area of A and B.

    Attributes:
        clipped: Intersection of both polygons.
        many: Number of its vertices.
        quad: The vertices kept.
        planes: Planes of both polygons.
        scale: Factor of `_patch_point`.
        frame: Axes of the projection.
        held: Normals.
        contact_features: Features of A and of B.
    """

    clipped: ClippedPolygon
    many: Any
    quad: QuadIndices
    planes: tuple[PolygonPlane, PolygonPlane]
    scale: Any
    frame: Frame
    held: PatchNormals
    contact_features: tuple[ContactFeature, ContactFeature]

    def point(self, k: Any) -> PatchPoint:
        """Return the k-th of the vertices kept; `real` is 0 beyond the last."""
        number, *others = self.quad.leaves()[:4]
        for j, other in enumerate(others, 1):
            number = select(k > j - 0.5, other, number)
        real, found = k < self.quad.count - 0.5, carry(PatchPoint.zero())
        for _ in when_any(real):
            point = _patch_point(self.clipped, self.many, number, self.planes, self.scale)
            found.value = select(real, point, PatchPoint.zero())
        return found.value


def patch(solids: tuple[Solid, Solid], facets: tuple[Facet, Facet], f: Frame, within: Any, slots: Slots) -> Patch:
    """Compute the contact patch around touching features.

    Args:
        solids: A and B.
        facets: Touching features.
        f: Axes of a projection along the contact normal.
        within: Largest distance of a point, m.
        slots: Scratch.
    """
    (A, B), (fa, fb) = solids, facets
    polygons = PolygonPair(slots.corners, slots.blocks)
    of_a, of_b = PolygonBuilder(A, polygons, 0), PolygonBuilder(B, polygons, polygons.size)
    on_b, on_a, slots.patch_record[0].margin = contact_features(A, fa, B, fb, f.n)
    n_a, n_b = of_a.fill(f, on_b, 1.0), of_b.fill(f, on_a, -1.0)
    areas = (
        vector_area(polygons, 0, n_a) * -1.0,
        vector_area(polygons, polygons.size, n_b),
    )  # A's polygon is clockwise, B's counter-clockwise
    held = _patch_normals(A, f, (n_a, n_b), areas)
    cut_a, new = held.cut_a > 0.5, frame(A, f.o, held.m)
    turn = f.to(new)
    rearrange(polygons, maximum(n_a, n_b), turn, 1.0 - held.cut_a)
    counts = select(cut_a, n_a, n_b), select(cut_a, n_b, n_a)
    normals = select(cut_a, *areas), select(cut_a, areas[1], areas[0])
    small = plane(polygons, 0, counts[0], turn @ normals[0])
    large = plane(polygons, polygons.size, counts[1], turn @ normals[1])
    some = (held.faces > 0.5) & large.wide() & (flat2(small.far - small.at) > DISTINCT * DISTINCT)
    side = select(cut_a, 1.0, -1.0)
    clipped, scale = ClippedPolygon(slots.clipped, polygons), side * dot(held.n, held.m)
    kept = carry((0.0 * n_a, QuadIndices.zero()))
    for _ in when_any(some):
        many = clip(clipped, counts, side)
        distance = lambda v: (large.height(v.x, v.y) - v.z) * scale  # noqa: E731
        chosen, total = _chosen(clipped, slots.order, many, distance, within, counts[0] < 2.5)
        record = slots.patch_record[0]
        record.small, record.large, record.side, record.plane = *counts, side, large
        record.many, record.count, record.quad = many, total, chosen
        kept.value = many, select(some, chosen, QuadIndices.zero())
    return Patch(clipped, kept.value[0], kept.value[1], (small, large), scale, new, held, (on_b, on_a))
