"""Box and box: separating axis of least overlap of fifteen, then face clipping or two edges.

The rules of choice are MuJoCo's: an edge axis must beat the best face, and the face is used if the two axes are within 8
degrees and the edge is not 5 % better. The vertices of the clipped face are twelve candidates, each with its own slot, of
which at most eight exist: every edge of the incident face, clipped to the reference rectangle, has a start and, if it
leaves the rectangle, an end; and the corners of the rectangle may be inside the incident face.

Boxes in exact alignment are ties: whose edge ends the face on either side, and whose face is the reference. Each tie is
decided as after one small displacement of the whole box, the same for all points and larger than rounding: of the incident
face by `ASIDE`, of any tilt by `TILTED`. Therefore the number of points on either side of an alignment is the number at it,
and their motions are jointly those of one side. If both sides agree on the force of the points on the boxes, so does the
gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ....compiler import Row, clamp, maximum, minimum, select, sqrt, target
from ...spatial import Force, Mat3, Vec3, cross, dot
from ..contact_geometry import ASIDE, FAR, ContactGeometry, PairBars, least_of, point_to_pose_bar
from ..convex.contact_record import Slots, fixed_normal_vjp, slip
from ..convex.feature_margin import beside
from ..convex.solids import Solid

SLOTS = 12
ALIGNED = 0.99  # cosine above which a face and an edge axis are one direction
BETTER = 0.05  # fraction of the depth by which an edge must then be better
TOUCHING = {
    "f64": 1e-9,
    "f32": 1e-6,
}  # m, least difference, so that rounding does not decide at depth 0
CLEAR = 1e-6  # relative amount by which an edge must beat a face
PARALLEL = {"f64": 1e-12, "f32": 1e-6}  # squared sine below which two edges have no common normal
LEVEL = {"f64": 1e-12, "f32": 1e-7}  # m, an edge parallel to a side of the rectangle
WAY = (1.0, 0.6)  # direction of the virtual displacement of the incident face over the reference face
TILTED = {"f64": 1e-9, "f32": 1e-6}  # rad, virtual tilt of one box relative to the other
FIRST = {
    "f64": 7.3137e-12,
    "f32": 1.73137e-7,
}  # m, by which a face of B must be better than one of A; TILTED times no difference of usual sizes
FURTHER = 1.0 + 1e-6  # least ratio of extents
AROUND = ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))  # corners of a rectangle


def _is(code: Any, value: float) -> Any:
    """Return 1 if a code has this value, else 0."""
    return select(abs(code - value) < 0.5, 1.0, 0.0)


def _unit(code: Any) -> Vec3:
    """Unit vector along the axis with this number."""
    return Vec3(*(_is(code, float(k)) for k in range(3)))


def _third(code: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x, y or z for code 0, 1 or 2."""
    return select(code < 0.5, x, select(code < 1.5, y, z))


def _towards(v: Vec3, code: Any) -> Vec3:
    """Coordinates in cyclically permuted axes, of which the one with this code is z."""
    return Vec3(_third(code, v.y, v.z, v.x), _third(code, v.z, v.x, v.y), _third(code, v.x, v.y, v.z))


def _from(v: Vec3, code: Any) -> Vec3:
    """The inverse of `_towards`."""
    return Vec3(_third(code, v.z, v.y, v.x), _third(code, v.x, v.z, v.y), _third(code, v.y, v.x, v.z))


class _Setting(NamedTuple):
    """Two boxes: half sizes a, b; axes R of B in A; center of B relative to A in the axes of A (t) and of B (u)."""

    a: Vec3
    b: Vec3
    R: Mat3
    t: Vec3
    u: Vec3


class _Axis(NamedTuple):
    """Separating axis: signed distance along it and code; of two edges the numbers of both, and the axis in A."""

    apart: Any
    code: Any
    other: Any = 0.0
    n: Vec3 = Vec3(0.0, 0.0, 1.0)


def _face_axes(s: _Setting) -> list[_Axis]:
    """Return the axes of faces: codes 0 to 2 of A, 3 to 5 of B."""
    Q = s.R.map(abs)
    sides = ((0.0, s.t, s.a, Q @ s.b), (3.0, s.u, s.b, Q.T @ s.a))
    return [
        _Axis(abs(x) - h - r, first + k)
        for first, t, own, reach in sides
        for k, (x, h, r) in enumerate(zip(t.leaves(), own.leaves(), reach.leaves(), strict=True))
    ]


def _best_face(s: _Setting) -> tuple[_Axis, Any]:
    """Return the face axis of least overlap after a small virtual tilt, and whether the tilt decided between A and B.

    Of two aligned faces this is the larger one, if it covers the other; it stays the best under any tilt.
    """
    kind, axes = target().dtype, _face_axes(s)
    aside = s.R.map(lambda x: 1.0 - abs(x))
    reaches = (*(aside @ s.b).leaves(), *(aside.T @ s.a).leaves())
    ranks = [axis.apart - TILTED[kind] * reach for axis, reach in zip(axes, reaches, strict=True)]

    def best_of(own: list[int]) -> tuple[_Axis, Any]:
        axis, most = axes[own[0]], ranks[own[0]]
        for k in own[1:]:
            more = ranks[k] > most
            most = select(more, ranks[k], most)
            axis = _Axis(select(more, axes[k].apart, axis.apart), select(more, axes[k].code, axis.code))
        return axis, most

    (of_a, most_a), (of_b, most_b) = best_of([0, 1, 2]), best_of([3, 4, 5])
    by_a = most_b <= most_a + FIRST[kind]
    near = TILTED[kind] * (s.a.x + s.a.y + s.a.z + s.b.x + s.b.y + s.b.z)
    best = _Axis(select(by_a, of_a.apart, of_b.apart), select(by_a, of_a.code, of_b.code))
    return best, abs(of_a.apart - of_b.apart) < near


def _edge_axes(s: _Setting) -> Iterator[_Axis]:
    """Yield the nine axes perpendicular to an edge of A and an edge of B."""
    units = [Vec3(*(float(i == k) for k in range(3))) for i in range(3)]
    for i, axis in enumerate(units):
        for j in range(3):
            n = cross(axis, s.R.column(j))
            square = dot(n, n)
            crossing = square > PARALLEL[target().dtype]  # else face axes cover this direction
            n = n * (1.0 / sqrt(select(crossing, square, 1.0)))
            along = dot(n, s.t)
            reach = dot(n.map(abs), s.a) + dot((s.R.T @ n).map(abs), s.b)
            apart = select(crossing, abs(along) - reach, -FAR)
            yield _Axis(apart, float(i), float(j), select(along < 0.0, -n, n))


def _best_edge(s: _Setting) -> _Axis:
    """Return the edge axis of least overlap."""
    best = _Axis(-FAR, 0.0)
    for axis in _edge_axes(s):
        more = axis.apart > best.apart
        best = _Axis(*(select(more, x, y) for x, y in zip(axis, best, strict=True)))
    return best


def _normal(s: _Setting, face: _Axis) -> Vec3:
    """Normal of a face, in A."""
    return select(face.code < 2.5, _unit(face.code), s.R @ _unit(face.code - 3.0))


def _by_edge(s: _Setting, face: _Axis, edge: _Axis) -> Any:
    """Return True if two edges touch, not a face."""
    aligned = abs(dot(_normal(s, face), edge.n)) > ALIGNED
    wins = (edge.apart - CLEAR * abs(edge.apart)) > face.apart
    enough = edge.apart > face.apart + BETTER * abs(face.apart) + TOUCHING[target().dtype]
    return select(wins, select(aligned, select(enough, 1.0, 0.0), 1.0), 0.0) > 0.5


class _Edges(NamedTuple):
    """Contact of two edges: distance, point, directions of both edges, all in A; and the distance of the points to the ends."""

    distance: Any
    p: Vec3
    e: Vec3
    f: Vec3
    margin: Any


def _edges(s: _Setting, edge: _Axis) -> _Edges:
    """Closest points of the two edges of an edge axis."""
    e, f = _unit(edge.code), s.R @ _unit(edge.other)

    def corner(n: Vec3, h: Vec3, along: Vec3) -> Vec3:
        """Midpoint of the edge that is furthest along n."""
        return n.map(lambda x, a, on: select(on > 0.5, 0.0, select(x < 0.0, -a, a)), h, along)

    a = corner(edge.n, s.a, e)
    b = s.t + s.R @ corner(-(s.R.T @ edge.n), s.b, _unit(edge.other))
    half_a, half_b = _third(edge.code, *s.a.leaves()), _third(edge.other, *s.b.leaves())
    d = b - a
    k, along_e, along_f = dot(e, f), dot(e, d), dot(f, d)
    x = clamp((along_e - k * along_f) / maximum(1.0 - k * k, PARALLEL[target().dtype]), -half_a, half_a)
    y = clamp(k * x - along_f, -half_b, half_b)
    x = clamp(along_e + k * y, -half_a, half_a)
    a, b = a + e * x, b + f * y
    margin = minimum(*(abs(half - abs(t)) for half, t in ((half_a, along_e + k * y), (half_b, k * x - along_f))))
    return _Edges(dot(b - a, edge.n), (a + b) * 0.5, e, f, margin)


class _Faces(NamedTuple):
    """Reference face as a rectangle of half sizes h about z = 0, and incident face as o + x u + y v, |x|, |y| <= 1.

    Attributes:
        h: Half sizes of the rectangle; z points away from its box.
        o, u, v: Center and half edges of the incident face.
        to_box: Conversion from these axes to those of the reference box.
        depth: Distance from the center of that box to the face.
        lead: Difference of alignment between the incident face and the next one.
    """

    h: Vec3
    o: Vec3
    u: Vec3
    v: Vec3
    to_box: Callable[[Vec3], Vec3]
    depth: Any
    lead: Any


def _faces(s: _Setting, face: _Axis) -> tuple[_Faces, Any]:
    """Return the two faces, and whether the reference is A's."""
    own = face.code < 2.5
    code = select(own, face.code, face.code - 3.0)
    G, c = select(own, s.R, s.R.T), _towards(select(own, s.t, -s.u), code)
    h, other = _towards(select(own, s.a, s.b), code), select(own, s.b, s.a)
    side = select(c.z < 0.0, -1.0, 1.0)

    def up(v: Vec3) -> Vec3:
        return Vec3(v.x, v.y, v.z * side)

    x, y, z = (up(_towards(G.column(k), code)) for k in range(3))
    steep = select(abs(z.z) > maximum(abs(x.z), abs(y.z)), 2.0, select(abs(y.z) > abs(x.z), 1.0, 0.0))

    def pick(p: Vec3, q: Vec3, r: Vec3) -> Vec3:
        return select(steep < 0.5, p, select(steep < 1.5, q, r))

    u, v, w = pick(y, z, x), pick(z, x, y), pick(x, y, z)
    half = _towards(other, steep)
    lead = abs(w.z) - maximum(abs(u.z), abs(v.z))
    w = w * select(w.z > 0.0, -half.z, half.z)  # down to the face towards the reference
    o = up(c) + w - Vec3(0.0, 0.0, h.z)
    return _Faces(h, o, u * half.x, v * half.y, lambda q: _from(up(q), code), h.z, lead), own


class _Corner(NamedTuple):
    """Vertex of the clipped face: 1 if it exists, position, two sliding directions, and 1 for each that belongs to the
    reference."""

    real: Any
    at: Vec3
    f1: Vec3
    f2: Vec3
    of1: Any
    of2: Any


X, Y = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)


def _aside() -> tuple[float, float]:
    """Virtual displacement of the incident face that decides ties."""
    x, y = (w * ASIDE[target().dtype] for w in WAY)
    return x, y


def _cut_edge(f: _Faces, p: Vec3, g: Vec3) -> list[_Corner]:
    """Clip the edge p + t g, 0 <= t <= 1, by the rectangle: its start, and its end if it leaves the rectangle.

    Which sides clip is decided with the edge displaced; the intersections are those of the edge itself.
    """
    start, end, at_start, at_end = 0.0, 1.0, 0.0, 1.0
    start_x = end_x = 0.0  # 1 where a side at x = +-h cuts
    for axis, (x, gx, h, aside) in enumerate(zip((p.x, p.y), (g.x, g.y), (f.h.x, f.h.y), _aside(), strict=True)):
        flat = abs(gx) < LEVEL[target().dtype]
        inverse = 1.0 / select(flat, 1.0, gx)
        shift = aside * inverse
        one, two = (-h - x) * inverse, (h - x) * inverse
        least, most = minimum(one, two), maximum(one, two)
        inside = abs(x + aside) <= h
        low = select(flat, select(inside, -FAR, FAR), least - shift)
        high = select(flat, select(inside, FAR, -FAR), most - shift)
        later, sooner = low > start, high < end
        start, end = select(later, low, start), select(sooner, high, end)
        at_start, at_end = select(later, least, at_start), select(sooner, most, at_end)
        mark = 1.0 - axis
        start_x, end_x = select(later, mark, start_x), select(sooner, mark, end_x)
    some = select(start < end, 1.0, 0.0)
    beyond = 2.0 * ASIDE[target().dtype] / maximum(abs(g.x) + abs(g.y), LEVEL[target().dtype])
    at_start, at_end = (clamp(t, -beyond, 1.0 + beyond) for t in (at_start, at_end))  # bounded if nearly parallel
    whole = select(start > 0.0, 0.0, 1.0)  # the start is a vertex of the incident face
    first = _Corner(
        some,
        p + g * at_start,
        select(whole > 0.5, X, g),
        select(whole + start_x > 0.5, Y, X),
        whole,
        1.0,
    )
    there = some * select(end < 1.0, 1.0, 0.0)
    last = _Corner(there, p + g * at_end, g, select(end_x > 0.5, Y, X), 0.0, 1.0)
    return [first, last]


def _incident(f: _Faces) -> list[Vec3]:
    """Vertices of the incident face."""
    return [f.o + f.u * x + f.v * y for x, y in AROUND]


def _cut(f: _Faces) -> list[_Corner]:
    """Return the twelve candidate vertices."""
    ring = _incident(f)
    out = [c for k in range(4) for c in _cut_edge(f, ring[k], ring[(k + 1) % 4] - ring[k])]
    det = f.u.x * f.v.y - f.u.y * f.v.x
    inverse = 1.0 / select(abs(det) > 1e-30, det, 1.0)

    def along(x: Any, y: Any) -> tuple[Any, Any]:
        """Coordinates along u and v of a position relative to o."""
        return (x * f.v.y - y * f.v.x) * inverse, (f.u.x * y - f.u.y * x) * inverse

    aside_u, aside_v = along(*_aside())
    for sx, sy in AROUND:
        along_u, along_v = along(f.h.x * sx - f.o.x, f.h.y * sy - f.o.y)
        inside = select(maximum(abs(along_u - aside_u), abs(along_v - aside_v)) < 1.0, 1.0, 0.0)
        at = Vec3(f.h.x * sx, f.h.y * sy, f.o.z + along_u * f.u.z + along_v * f.v.z)
        out.append(_Corner(inside, at, f.u, f.v, 0.0, 0.0))
    return out


def _setting(one: Solid, other: Solid) -> _Setting:
    """Relative position and axes of two boxes."""
    A, B = one.X, other.X
    d = B.r - A.r
    return _Setting(one.size, other.size, A.R.T @ B.R, A.R.T @ d, B.R.T @ d)


def box_box(one: Solid, other: Solid, near: Any, slots: Slots) -> None:
    """Compute the twelve points of a pair; the distance of those that do not exist is FAR."""
    A, B, s = one.X, other.X, _setting(one, other)
    (face, tie), edge = _best_face(s), _best_edge(s)
    by_edge = _by_edge(s, face, edge)
    edge_phi, edge_p, *directions, _ = _edges(s, edge)
    edge_n, edge_e, edge_f = (A.R @ v for v in (edge.n, *directions))

    f, own = _faces(s, face)
    R, r = select(own, A.R, B.R), select(own, A.r, B.r)
    of_reference, of_incident = select(own, 1.0, 0.0), select(own, 0.0, 1.0)

    def world(v: Vec3) -> Vec3:
        return R @ f.to_box(v)

    normal = world(Vec3(0.0, 0.0, 1.0)) * select(own, 1.0, -1.0)
    x_axis, y_axis = world(X), world(Y)
    n = select(by_edge, edge_n, normal)
    e1_of, e2_of = _owners(f, of_reference, tie)
    e1, e2 = select(by_edge, edge_e, x_axis), select(by_edge, edge_f, y_axis)
    for k, corner in enumerate(_cut(f)):
        row = slots.rows[k]
        phi, p = corner.at.z, r + world(Vec3(corner.at.x, corner.at.y, f.depth + 0.5 * corner.at.z))
        phi = select(corner.real > 0.5, phi, FAR)
        f1, f2 = world(corner.f1), world(corner.f2)
        of1 = select(corner.of1 > 0.5, of_reference, of_incident)
        of2 = of_reference if corner.of2 else of_incident
        if k == 0:  # the single point of two edges
            phi, p = select(by_edge, edge_phi, phi), select(by_edge, A.r + A.R @ edge_p, p)
            f1, f2 = select(by_edge, edge_e, f1), select(by_edge, edge_f, f2)
            of1, of2 = select(by_edge, 1.0, of1), select(by_edge, 0.0, of2)
        else:
            phi = select(by_edge, FAR, phi)
        row.phi, row.p, row.n = phi, p, n
        row.f1, row.f2, row.f1_of, row.f2_of = f1, f2, of1, of2
        row.e1, row.e2 = e1, e2
        row.e1_of, row.e2_of = select(by_edge, 1.0, e1_of), select(by_edge, 0.0, e2_of)


def _owners(f: _Faces, of_reference: Any, tie: Any) -> tuple[Any, Any]:
    """Return 1 for each axis of the reference face about which A's face determines the normal.

    In a tie it is the face that extends further along the other axis: a tilt leaves it the best on both sides.
    """
    out = []
    for h, o, u, v in zip(f.h.leaves()[:2], f.o.leaves()[:2], f.u.leaves()[:2], f.v.leaves()[:2], strict=True):
        further = tie & (abs(u) + abs(v) - abs(o) > h * FURTHER)
        out.append(select(further, 1.0 - of_reference, of_reference))
    return out[0], out[1]


def box_box_vjp(one: Solid, other: Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """Cotangents of the poses and half sizes of both boxes from that of one point."""
    n, phi, p = row.n, row.phi, row.p
    on_b = n * (y_bar.phi + 0.5 * dot(n, y_bar.p))
    y = slip(row, n, y_bar.p - on_b, on_b)
    a_bar, b_bar = y_bar.p - on_b - y, on_b + y
    turn_a, turn_b = fixed_normal_vjp(row, y_bar.n + y_bar.p * (0.5 * phi) - y * phi)
    a, b = p - n * (0.5 * phi), p + n * (0.5 * phi)

    def bars(box: Solid, at: Vec3, bar: Vec3, turn: Vec3) -> tuple[Force, Vec3]:
        size_bar = box.to_own(at).map(lambda x, h, w: x / h * w, box.size, box.X.R.T @ bar)
        return point_to_pose_bar(at, bar) + Force(cross(n, turn), Vec3.zero()), size_bar

    A_bar, size_a = bars(one, a, a_bar, turn_a)
    B_bar, size_b = bars(other, b, b_bar, turn_b)
    return PairBars(A_bar, size_a, B_bar, size_b, Vec3.zero())


# -- feature margin ------------------------------------------------------------------------------------------------------
def box_box_margin(one: Solid, other: Solid, near: Any, slots: Slots) -> Any:
    """Distance to another separating axis, a vertex entering or leaving the clipped face, or a point at an end of its edge."""
    s = _setting(one, other)
    (face, _), edge = _best_face(s), _best_edge(s)
    f, _ = _faces(s, face)
    by_face = least_of(_faces_margin(s, face, f), f.lead * least_of(*f.h.leaves()), _corners_margin(f, near))
    by_edge = minimum(_edges(s, edge).margin, edge.apart - _second(edge, _edge_axes(s)))
    return minimum(select(_by_edge(s, face, edge), by_edge, by_face), _rule_margin(s, face, edge))


def _second(best: _Axis, axes: Iterator[_Axis]) -> Any:
    """Signed distance along the second best axis."""
    second: Any = -FAR
    for axis in axes:
        own = (abs(axis.code - best.code) < 0.5) & (abs(axis.other - best.other) < 0.5)
        second = maximum(second, select(own, -FAR, axis.apart))
    return second


def _faces_margin(s: _Setting, face: _Axis, f: _Faces) -> Any:
    """Distance to another face becoming the best.

    Of two aligned faces one of which covers the other, the larger stays the best under any tilt.
    """
    covered, normal, margin = _covers(f), _normal(s, face), FAR + 0.0 * face.apart
    for axis in _face_axes(s):
        flat = abs(dot(normal, _normal(s, axis))) > ALIGNED
        margin = minimum(
            margin, select(flat & (covered | (abs(axis.code - face.code) < 0.5)), FAR, face.apart - axis.apart)
        )
    return margin


def _covers(f: _Faces) -> Any:
    """Return True if one of both faces covers the other."""
    inside = least_of(*(minimum(f.h.x - abs(p.x), f.h.y - abs(p.y)) for p in _incident(f)))
    det = f.u.x * f.v.y - f.u.y * f.v.x
    inverse = 1.0 / select(abs(det) > 1e-30, det, 1.0)
    around = FAR + 0.0 * det
    for sx, sy in AROUND:
        x, y = f.h.x * sx - f.o.x, f.h.y * sy - f.o.y
        along_u, along_v = (x * f.v.y - y * f.v.x) * inverse, (f.u.x * y - f.u.y * x) * inverse
        around = least_of(around, 1.0 - abs(along_u), 1.0 - abs(along_v))
    return maximum(inside, around) > 0.0


def _corners_margin(f: _Faces, near: Any) -> Any:
    """Distance to a vertex of one face crossing an edge of the other."""
    ring, rectangle, margin = _incident(f), [Vec3(f.h.x * x, f.h.y * y, 0.0) for x, y in AROUND], FAR + 0.0 * f.o.x
    for k in range(4):
        for j in range(4):
            margin = minimum(margin, beside(ring[k], rectangle[j], rectangle[(j + 1) % 4], -1.0, near))
            margin = minimum(margin, beside(rectangle[j], ring[k], ring[(k + 1) % 4], 1.0, near))
    return margin


def _rule_margin(s: _Setting, face: _Axis, edge: _Axis) -> Any:
    """Distance to a change of the result of `_by_edge`."""
    cosine, size = abs(dot(_normal(s, face), edge.n)), least_of(*s.a.leaves(), *s.b.leaves())
    enough = face.apart + BETTER * abs(face.apart)
    between = (edge.apart > face.apart) & (edge.apart < enough)  # here the angle decides
    by_depth = abs(edge.apart - select(cosine > ALIGNED, enough, face.apart))
    return minimum(by_depth, select(between, abs(cosine - ALIGNED) * size, FAR))
