"""Features of two touching solids that are aligned, as MuJoCo selects them: two faces, an edge and a face, or none  (theory
6.10).

Candidates are the features that touch or are adjacent: a face; both faces of an edge; at a vertex the face most aligned
with the contact normal, and its edges. The two faces, one of each solid, that are most antiparallel are chosen if they are
within FACE. Faces not aligned with the contact normal are excluded: the sides of two boxes in line are as antiparallel as
top and bottom.

Otherwise an edge is chosen if it is parallel to a face of the other solid within EDGE: the face that touches, or the first
at the vertex that touches. The axis line of a capsule or cylinder is such an edge too; if it touches a vertex, the first
parallel face there counts in any direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Linear, maximum, minimum, select, sqrt
from ....model.model import BOX, CAPSULE, CYLINDER, POINTS
from ...spatial import Vec3, dot
from ..contact_geometry import FAR, chord, least_of
from .solids import SOLIDS, Solid
from .witness import Facet

FACE = 0.996  # least cosine between the normals of aligned faces, MuJoCo's
EDGE = 0.0888  # largest sine between an edge and a face parallel to it, MuJoCo's
ALONG = 0.7  # least cosine between these and the contact normal
LEVEL = 1.0 - 1e-9  # cosine between a face and the contact normal from which on the face is the touching feature
ALIKE = 1e-6  # weight that decides between pairs equal up to rounding
TILT = (2.0 - 2.0 * FACE) ** 0.5  # chord of the angle FACE
UP = Vec3(0.0, 0.0, 1.0)


class ContactFeature(Linear):
    """Feature of a solid in a contact patch.

    Attributes:
        count: 3 for a face, 2 for an edge, 1 for neither.
        normal: Outward normal of the face, in the frame of the solid.
        face: Index of the face.
        p0, p1: Ends of the edge, in the frame of the solid.
        numbers: Indices of the ends among the vertices of a hull.
    """

    count: float
    normal: Vec3
    face: float
    p0: Vec3
    p1: Vec3
    numbers: Vec3


class Faces(Linear):
    """Two candidate faces of a solid, or one twice.

    Attributes:
        n1, n2: Outward normals, in the frame of the solid.
        f1, f2: Indices.
        real: 1 if the solid has a face there.
        two: 1 if there are two.
        next: Chord by which another face is less aligned with the contact normal.
    """

    n1: Vec3
    n2: Vec3
    f1: float
    f2: float
    real: float
    two: float
    next: float


class Edge(Linear):
    """Candidate edge of a solid.

    Attributes:
        on: 1 if parallel to the first of two faces, 2 to the second, 0 to none.
        p0, p1: Ends, in the frame of the solid.
        numbers: Their indices.
        off: Distance of the sine of this or another edge to EDGE.
    """

    on: float
    p0: Vec3
    p1: Vec3
    numbers: Vec3
    off: float


def _is_edge(f: Facet) -> Any:
    return (f.k > 0.5) & (f.k < 1.5)


def faces_of(s: Solid, f: Facet, out: Vec3) -> Faces:
    """Return the candidate faces around the touching feature. out: outward contact normal in the frame of the solid."""
    edge = _is_edge(f)

    def box() -> Faces:
        level, x, y, z = out.map(abs), Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), UP
        by_x, by_y = (level.x >= level.y) & (level.x >= level.z), (level.y >= level.z) & (level.x < level.y)
        axis = select(by_x, x, select(by_y, y, z))
        best, way = axis * select(dot(axis, out) < 0.0, -1.0, 1.0), (f.p1 - f.p0).map(abs)
        side = f.p0.map(lambda p: select(p < 0.0, -1.0, 1.0))
        along_x, along_z = (way.x >= way.y) & (way.x >= way.z), (way.z > way.x) & (way.z > way.y)
        first = select(along_x, Vec3(0.0, side.y, 0.0), Vec3(side.x, 0.0, 0.0))
        second = select(along_z, Vec3(0.0, side.y, 0.0), Vec3(0.0, 0.0, side.z))
        return Faces(select(edge, first, best), select(edge, second, best), 0.0, 0.0, 1.0, select(edge, 1.0, 0.0), FAR)

    def cylinder() -> Faces:
        end, looks = UP * select(out.z < 0.0, -1.0, 1.0), select(abs(out.z) > EDGE, 1.0, 0.0)
        return Faces(end, end, 0.0, 0.0, select(edge, 0.0, looks), 0.0, FAR)

    def hull() -> Faces:
        best, cosine, other = s.hull.face_towards(f.numbers.x, out)
        one, two = s.hull.faces_at_edge(f.numbers.x, f.p1 - f.p0, edge)
        f1, f2 = select(edge, one, best), select(edge, two, best)
        n1, n2 = (s.hull.normal(k) for k in (f1, f2))
        further = select(f.k < 0.5, chord(other) - chord(cosine), FAR)
        return Faces(n1, n2, f1, f2, select(cosine > -1.5, 1.0, 0.0), select(edge, 1.0, 0.0), further)

    none: dict[int, Callable[[], Faces]] = {k: lambda: Faces(UP, UP, 0.0, 0.0, 0.0, 0.0, FAR) for k in SOLIDS}
    return s.by_kind(none | {BOX: box, CYLINDER: cylinder, POINTS: hull})


def under_line(s: Solid, f: Facet, line: Vec3, out: Vec3, faces: Faces) -> Faces:
    """Return the faces of a solid to which a line may be parallel, in its frame.

    At a vertex it is the first parallel face, unless another one is aligned with the contact normal.
    """
    at_corner = f.k < 0.5

    def first(normal: Vec3, number: Any, found: Any) -> Faces:
        own = Faces(normal, normal, number, number, found, 0.0, FAR)
        return select(at_corner, own, faces)

    def box() -> Faces:
        side = f.p0.map(lambda p: select(p < 0.0, -1.0, 1.0))
        rank = line.map(lambda l, d, o: select(abs(l) < EDGE, select(d * o > LEVEL, 2.0, 1.0), 0.0), side, out)
        best = maximum(maximum(rank.x, rank.y), rank.z)
        other = select(rank.y > best - 0.5, Vec3(0.0, side.y, 0.0), Vec3(0.0, 0.0, side.z))
        normal = select(rank.x > best - 0.5, Vec3(side.x, 0.0, 0.0), other)
        return first(normal, 0.0, minimum(best, 1.0))

    def hull() -> Faces:
        number, found = s.hull.first_face_along(f.numbers.x, line, EDGE, (out, LEVEL), at_corner)
        return first(s.hull.normal(number), number, found)

    same: dict[int, Callable[[], Faces]] = {k: lambda: faces for k in SOLIDS}
    return s.by_kind(same | {BOX: box, POINTS: hull})


def _if_line(s: Solid, one: Any, other: Any) -> Any:
    """Return `one` for a capsule or cylinder, else `other`."""
    cases: dict[int, Callable[[], Any]] = {k: lambda: other for k in SOLIDS}
    return s.by_kind(cases | dict.fromkeys((CAPSULE, CYLINDER), lambda: one))


def edge_on(s: Solid, f: Facet, other: Solid, faces: Faces, n: Vec3) -> Edge:
    """Return the edge of a solid that is parallel to one of two faces of the other; of the edges at a vertex, to the first
    face.

    An edge parallel to another edge is parallel to both its faces, so faces not aligned with n are excluded. For the line
    of a capsule or cylinder they count, after a face aligned with n. n: normal out of the other solid.
    """
    n1, n2 = (other.X.R @ x for x in (faces.n1, faces.n2))
    looks = [dot(x, n) for x in (n1, n2)]
    n1, n2 = (s.X.R.T @ x for x in (n1, n2))
    of_corner, which = select(looks[0] > ALONG, n1, n2), select(looks[0] > ALONG, 1.0, 2.0)
    at_edge, at_corner = _is_edge(f), (f.k < 0.5) & ((looks[0] > ALONG) | (looks[1] > ALONG))

    def of_line(p0: Vec3, p1: Vec3, numbers: Vec3, least: float = ALONG) -> Edge:
        way = p1 - p0
        length = sqrt(maximum(dot(way, way), 1e-30))
        first, second = (
            select(look > least, abs(dot(way, x)) / length, FAR) for x, look in zip((n1, n2), looks, strict=True)
        )
        better = (second < EDGE) & (looks[1] > LEVEL) & (looks[0] < LEVEL)
        on = select((first < EDGE) & (select(better, 1.0, 0.0) < 0.5), 1.0, select(second < EDGE, 2.0, 0.0))
        off = minimum(abs(first - EDGE), select(first < EDGE, FAR, abs(second - EDGE)))
        return Edge(on, p0, p1, numbers, off)

    def where(at: Any, e: Edge) -> Edge:
        return Edge(select(at, e.on, 0.0), e.p0, e.p1, e.numbers, select(at, e.off, FAR))

    def box() -> Edge:
        x, y, z = of_corner.map(abs).leaves()
        by_x, by_y = x < EDGE, (y < EDGE) & (x >= EDGE)
        p = f.p0
        other = Vec3(select(by_x, -p.x, p.x), select(by_y, -p.y, p.y), select(by_x | by_y, p.z, -p.z))
        on = select(least_of(x, y, z) < EDGE, which, 0.0)
        off = least_of(*(abs(a - EDGE) for a in (x, y, z)))
        return select(at_edge, of_line(f.p0, f.p1, f.numbers), where(at_corner, Edge(on, p, other, f.numbers, off)))

    def hull() -> Edge:
        number, found, off = s.hull.first_level(f.numbers.x, of_corner, EDGE, at_corner)
        numbers = Vec3(f.numbers.x, number, number)
        corner = Edge(found * which, f.p0, s.hull.corner(number).p, numbers, off)
        return select(at_edge, of_line(f.p0, f.p1, f.numbers), where(at_corner, corner))

    def capsule() -> Edge:
        end = Vec3(0.0, 0.0, select(f.at.z < 0.0, -s.size.y, s.size.y))
        return of_line(end, -end, Vec3.zero(), -2.0)

    none: dict[int, Callable[[], Edge]] = {k: lambda: where(f.k > 9.0, Edge.zero()) for k in SOLIDS}
    lines = {CAPSULE: capsule, CYLINDER: lambda: where(f.k < 1.5, of_line(-UP, UP, Vec3.zero(), -2.0))}
    return s.by_kind(none | {BOX: box, POINTS: hull} | lines)


class _Pair(Linear):
    """Most antiparallel pair of faces: index of the face of A and of B, 0 or 1; cosine; cosine of the next pair; and rank."""

    a: float
    b: float
    cosine: float
    next: float
    rank: float


def _pair(of_a: Faces, a: list[Vec3], of_b: Faces, b: list[Vec3], n: Vec3) -> _Pair:
    """Return the most antiparallel pair of faces among those aligned with the contact normal n.

    Of equally antiparallel pairs the one most aligned with n is returned; for parallel edges all four pairs are equal. a,
    b: the normals, common axes.
    """
    best = _Pair(0.0, 0.0, -2.0, -2.0, -3.0)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        out_a, out_b = dot(n, a[i]), -dot(n, b[j])
        there = ((of_a.two if i else 1.0) * (of_b.two if j else 1.0) > 0.5) & (minimum(out_a, out_b) > ALONG)
        cosine = select(there, -dot(a[i], b[j]), -2.0)
        rank = cosine + ALIKE * (out_a + out_b)
        next_ = maximum(best.next, minimum(best.cosine, cosine))
        found = _Pair(float(i), float(j), cosine, next_, rank)
        old = _Pair(best.a, best.b, best.cosine, next_, best.rank)
        best = select(rank > best.rank, found, old)
    return best


def _under(s: Solid, f: Facet, faces: Faces, n: Vec3, other: Solid) -> tuple[Faces, Any]:
    """Return the faces of s to which an edge of `other` may be parallel, and whether one may be.

    Around an edge or a face that touches these are its faces; at a vertex, the face aligned with n, or any face for a line.
    n: normal out of s.
    """
    line = s.X.R.T @ other.X.R.column(2)
    under = _if_line(other, under_line(s, f, line, s.X.R.T @ n, faces), faces)
    looks = (f.k > 0.5) | (dot(n, s.X.R @ faces.n1) > FACE) | (_if_line(other, 1.0, 0.0) > 0.5)
    return under, (under.real > 0.5) & looks


def _reach(s: Solid) -> Any:
    """Largest half extent of a solid's bounding box."""
    return maximum(maximum(s.extent.x, s.extent.y), s.extent.z)


def contact_features(A: Solid, fa: Facet, B: Solid, fb: Facet, n: Vec3) -> tuple[ContactFeature, ContactFeature, Any]:
    """Return the features of A and of B in a contact patch, and the distance, m, to a different choice.

    fa, fb: touching features. n: contact normal from A to B.
    """
    of_a, of_b = faces_of(A, fa, A.X.R.T @ n), faces_of(B, fb, -(B.X.R.T @ n))
    a, b = ([s.X.R @ x for x in (f.n1, f.n2)] for s, f in ((A, of_a), (B, of_b)))
    pair, real = _pair(of_a, a, of_b, b, n), of_a.real * of_b.real > 0.5
    both = real & (pair.cosine > FACE)

    (under_a, may_b), (under_b, may_a) = _under(A, fa, of_a, n, B), _under(B, fb, of_b, -n, A)
    on_b, on_a = edge_on(A, fa, B, under_b, -n), edge_on(B, fb, A, under_a, n)
    may_a, may_b = may_a & (fa.k < 1.5), may_b & (fb.k < 1.5)
    edge_a, edge_b = may_a & (on_b.on > 0.5), may_b & (on_a.on > 0.5)
    # A's edge: the feature of lower dimension, or of the first solid, unless only the other edge is on a touching face
    before = select(A.later < 0.5, fb.k - fa.k, fa.k - fb.k - 1.0) > -0.5
    level_a = dot(n, A.X.R @ select(on_a.on > 1.5, under_a.n2, under_a.n1)) > LEVEL
    level_b = -dot(n, B.X.R @ select(on_b.on > 1.5, under_b.n2, under_b.n1)) > LEVEL
    before = select(level_a & edge_b, select(level_b & before, 1.0, 0.0), select(before, 1.0, 0.0)) > 0.5
    by_a = edge_a & (before | (select(edge_b, 0.0, 1.0) > 0.5))
    by_b = edge_b & (select(by_a, 0.0, 1.0) > 0.5)

    turned = select(real, abs(chord(pair.cosine) - TILT), FAR)
    among = least_of(of_a.next, of_b.next, chord(pair.next) - chord(pair.cosine))
    sloped = minimum(select(may_a, on_b.off, FAR), select(may_b, on_a.off, FAR))
    angle = minimum(turned, select(both, among, sloped))
    margin = select(angle < FAR, angle * minimum(_reach(A), _reach(B)), FAR)
    return (
        _feature(select(both, of_a, under_a), select(both, pair.a, on_a.on - 1.0), both | by_b, on_b, by_a),
        _feature(select(both, of_b, under_b), select(both, pair.b, on_b.on - 1.0), both | by_a, on_a, by_b),
        margin,
    )


def _feature(faces: Faces, which: Any, flat: Any, edge: Edge, feature: Any) -> ContactFeature:
    """Return the feature chosen of a solid."""
    second = which > 0.5
    count = select(flat, 3.0, select(feature, 2.0, 1.0))
    normal, face = select(second, faces.n2, faces.n1), select(second, faces.f2, faces.f1)
    return ContactFeature(count, normal, face, edge.p0, edge.p1, edge.numbers)
