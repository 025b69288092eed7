"""Exact features of two touching solids, and the derivative of the nearest points and their normal  (theory 6.8).

A feature is a vertex, an edge, a face, a curved surface, or the side line or rim of a cylinder. For fixed features the
conditions in `contact_record.py` are smooth equations: Newton's method on them extends the few digits of a search to all,
and its matrix is also that of the adjoint. Degenerate cases have a bounded result: of parallel edges A's alone rotates the
normal; the contact on a rim that is flat on something to rounding moves along it no faster than at a tilt of RIM; radius of
curvature plus distance is at least PIVOT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Linear, Row, carry, loop, maximum, minimum, select, sqrt
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Mat3, Vec3, cross, dot
from ..contact_geometry import FAR
from .least_overlap import Search
from .solids import SOLIDS, Solid

BESIDE = 1e-6  # distance by which a point may be outside its feature, m or as a fraction
WEIGHT = 1e-7  # weight below which a point of a search is ignored
RIM = {"f64": 1e-9, "f32": 1e-5}  # tilt of a rim to the normal below which rounding decides where it touches
FINE = 1e-6  # the same in Newton's method, whose range of convergence is as small as the tilt
PIVOT = 1e-4  # m
PARALLEL = 1e-4  # sine below which two edges are parallel
WIDE = 1e-2  # sine above which two edges determine the normal better than the search
SHORT = 1e-12  # m^2, squared length below which an edge does not exist
ROUND = 0.9999  # fraction of a cylinder's squared radius within which a point is inside its end
UPRIGHT = 0.999  # least squared cosine between a cylinder's end and the normal
NEWTON = 3  # iterations


class Facet(Linear):
    """Feature of a solid, in its frame.

    Attributes:
        at: Contact point.
        p0, p1, p2: Vertices, of which k + 1 count; the feature is flat along p1 - p0 and p2 - p0.
        k: Dimension: 0 vertex, 1 edge, 2 face.
        round: 1 for the side or rim of a cylinder.
        numbers: Indices of the vertices of a hull.
    """

    at: Vec3
    p0: Vec3
    p1: Vec3
    p2: Vec3
    k: float
    round: float
    numbers: Vec3


class Witness(Linear):
    """Nearest points of two cores and the constraints of their normal, common axes.

    Attributes:
        n: Normal.
        g: Distance.
        a, b: Points.
        CA, CB: Curvatures.
        e1, e2: Unit directions perpendicular to the normal.
        k1, k2: 1 if the direction is active.
        e1_of, e2_of: 1 if the direction is A's, 0 if B's.
    """

    n: Vec3
    g: float
    a: Vec3
    b: Vec3
    CA: Mat3
    CB: Mat3
    e1: Vec3
    e2: Vec3
    k1: float
    k2: float
    e1_of: float
    e2_of: float


def feature(
    s: Solid, points: tuple[Vec3, Vec3, Vec3], weights: tuple[Any, Any, Any], of: Vec3, outwards: Vec3
) -> Facet:
    """Return the feature spanned by the points of a search.

    Args:
        s: Solid.
        points: Points of the core, common axes.
        weights: Their weights.
        of: Their indices.
        outwards: Outward normal, common axes.
    """
    P = [s.to_own(p) for p in points]
    W = [select(w > WEIGHT, w, 0.0) for w in weights]
    at = (P[0] * W[0] + P[1] * W[1] + P[2] * W[2]) / (W[0] + W[1] + W[2])

    def on_line() -> Any:
        """Return 1 if both ends of the axis are among the points."""
        low = high = 0.0
        for p, w in zip(P, W, strict=True):
            low, high = low + select(p.z < 0.0, w, 0.0), high + select(p.z < 0.0, 0.0, w)
        return select(low * high > 0.0, 1.0, 0.0)

    def smooth() -> Facet:
        return Facet(at, at, at, at, 0.0, 0.0, Vec3.zero())

    def capsule() -> Facet:
        end = Vec3(0.0, 0.0, s.size.y)
        return Facet(at, -end, end, end, on_line(), 0.0, Vec3.zero())

    def cylinder() -> Facet:
        line, upright = on_line(), dot(outwards, s.X.R.column(2))
        inside = at.x * at.x + at.y * at.y < ROUND * s.size.x * s.size.x
        end = select(inside & (upright * upright > UPRIGHT), 1.0 - line, 0.0)
        x, y, z = (Vec3(*(float(i == k) for k in range(3))) for i in range(3))
        return Facet(at, at, at + select(line > 0.5, z, x), at + y, line + 2.0 * end, 1.0 - end, Vec3.zero())

    def corners() -> Facet:
        p0, n0 = (select(W[0] > 0.0, x, select(W[1] > 0.0, y, z)) for x, y, z in (P, of.leaves()))
        d1, d2 = (select(w > 0.0, p - p0, Vec3.zero()) for p, w in zip(P[1:], W[1:], strict=True))
        far = dot(d1, d1) > SHORT
        first, second = select(far, d1, d2), select(far, d2, Vec3.zero())
        area, square = cross(first, second), dot(first, first)
        edge = select(square > SHORT, 1.0, 0.0)
        face = select(dot(area, area) > PARALLEL * PARALLEL * square * maximum(dot(second, second), SHORT), edge, 0.0)
        return Facet(at, p0, p0 + first, p0 + second, edge + face, 0.0, Vec3(n0, select(far, of.y, of.z), of.z))

    cases = {SPHERE: smooth, ELLIPSOID: smooth, CAPSULE: capsule, CYLINDER: cylinder, BOX: corners, POINTS: corners}
    return s.by_kind(cases)


def _core_point(s: Solid, f: Facet, l: Vec3) -> Vec3:
    """Point of the core for an outward normal l with the flat coordinates kept, in the frame of the solid."""
    z = s.size

    def ellipsoid() -> Vec3:
        k = l.map(lambda x, a: x * a, z)
        return k.map(lambda x, a: x * a, z) / sqrt(dot(k, k))

    def cylinder() -> Vec3:
        rho = sqrt(maximum(l.x * l.x + l.y * l.y, 1e-20))
        return select(f.round > 0.5, Vec3(l.x / rho * z.x, l.y / rho * z.x, f.at.z), f.at)

    cases = {k: lambda: f.at for k in SOLIDS} | {ELLIPSOID: ellipsoid, CYLINDER: cylinder}
    return s.by_kind(cases)


def _curvature(s: Solid, f: Facet, l: Vec3, least: Any) -> Mat3:
    """Hessian of the core's support function, common axes."""
    z, R = s.size, s.X.R

    def ellipsoid() -> Mat3:
        k = l.map(lambda x, a: x * a, z)
        N = sqrt(dot(k, k))
        a, q = (k.map(lambda x, y: x * y, z) / N).leaves(), [x * x for x in z.leaves()]
        own = Mat3(*((q[i] if i == j else 0.0) / N - a[i] * a[j] / N for i in range(3) for j in range(3)))
        return R @ own @ R.T

    def cylinder() -> Mat3:
        rho = sqrt(maximum(l.x * l.x + l.y * l.y, least * least))
        c, x, y = z.x / rho * f.round, l.x / rho, l.y / rho
        own = Mat3(c * y * y, -(c * x * y), 0.0, -(c * x * y), c * x * x, 0.0, 0.0, 0.0, 0.0)
        return R @ own @ R.T

    cases = dict.fromkeys(SOLIDS, Mat3.zero) | {ELLIPSOID: ellipsoid, CYLINDER: cylinder}
    return s.by_kind(cases)


def _unit(v: Vec3) -> Vec3:
    """Unit vector along v."""
    return v / sqrt(maximum(dot(v, v), SHORT))


def witness_of(A: Solid, fa: Facet, B: Solid, fb: Facet, n: Vec3, least: Any = FINE) -> Witness:
    """Nearest points of two features with normal n, and the constraints of n: a face of A, else one of B, else an edge of
    each.

    least: Least tilt assumed for the curvature of a rim.
    """
    la, lb = A.X.R.T @ n, B.X.R.T @ -n
    a, b = A.to_world(_core_point(A, fa, la)), B.to_world(_core_point(B, fb, lb))
    a1, a2 = (A.X.R @ _unit(p - fa.p0) for p in (fa.p1, fa.p2))
    b1, b2 = (B.X.R @ _unit(p - fb.p0) for p in (fb.p1, fb.p2))
    face_a, face_b = fa.k > 1.5, fb.k > 1.5
    either = face_a | face_b
    e1 = select(face_a, a1, select(face_b, b1, a1))
    e2 = select(face_a, a2, select(face_b, b2, b1))
    k1 = select(either, 1.0, select(fa.k > 0.5, 1.0, 0.0))
    k2 = select(either, 1.0, select(fb.k > 0.5, 1.0, 0.0))
    across = abs(dot(n, cross(e1, e2))) > PARALLEL
    k2 = select(across, k2, k2 * (1.0 - k1))
    e1_of = select(face_a, 1.0, select(face_b, 0.0, 1.0))
    return Witness(
        n,
        dot(n, b - a),
        a,
        b,
        _curvature(A, fa, la, least),
        _curvature(B, fb, lb, least),
        e1,
        e2,
        k1,
        k2,
        e1_of,
        select(face_a, 1.0, 0.0),
    )


def fixed_normal(c: Witness) -> Vec3:
    """Normal perpendicular to the two active directions; with fewer, the normal unchanged."""
    across = cross(c.e1, c.e2)
    length = sqrt(maximum(dot(across, across), SHORT))
    n = across * (select(dot(across, c.n) < 0.0, -1.0, 1.0) / length)
    return select((c.k1 * c.k2 > 0.5) & (length > WIDE), n, c.n)


def solve(c: Witness, y: Vec3, r1: Any, r2: Any) -> tuple[Vec3, Any, Any]:
    """Solve [M E; E^T 0] (x, l) = (y, r) in the plane across n, M = C_A + C_B + g, for up to two directions E."""
    n, k1, k2 = c.n, c.k1, c.k2
    aside = select(abs(n.x) < 0.6, Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0))
    e = select(k1 > 0.5, c.e1, select(k2 > 0.5, c.e2, cross(n, aside)))
    e = _unit(e - n * dot(n, e))
    f = cross(n, e)
    M = c.CA + c.CB
    Me, Mf = M @ e, M @ f
    m00, m01, m11 = dot(e, Me) + c.g, dot(e, Mf), dot(f, Mf) + c.g
    y0, y1 = dot(e, y), dot(f, y)
    # no direction: x = M^-1 y
    det = maximum(m00 * m11 - m01 * m01, PIVOT * PIVOT)
    none = ((m11 * y0 - m01 * y1) / det, (m00 * y1 - m01 * y0) / det)
    # one direction, e
    first = k1 > 0.5
    along = select(first, dot(c.e1, e), dot(c.e2, e))
    along = select(abs(along) > 0.5, along, 1.0)
    s0 = select(first, r1, r2) / along
    s1 = (y1 - m01 * s0) / maximum(m11, PIVOT)
    push = (y0 - m00 * s0 - m01 * s1) / along
    # two directions determine x
    q0, q1 = dot(c.e2, e), dot(c.e2, f)
    q1 = select(abs(q1) > 0.5 * PARALLEL, q1, 1.0)
    t0 = r1 / along
    t1 = (r2 - q0 * t0) / q1
    push2 = (y1 - m01 * t0 - m11 * t1) / q1
    push1 = (y0 - m00 * t0 - m01 * t1 - q0 * push2) / along
    both, some = k1 * k2 > 0.5, k1 + k2 > 0.5
    x0, x1 = select(both, t0, select(some, s0, none[0])), select(both, t1, select(some, s1, none[1]))
    l1 = select(both, push1, select(first, push, 0.0))
    l2 = select(both, push2, select(first, 0.0, select(k2 > 0.5, push, 0.0)))
    return e * x0 + f * x1, l1, l2


def refine(A: Solid, fa: Facet, B: Solid, fb: Facet, n: Vec3) -> tuple[Facet, Facet, Vec3, Any]:
    """Newton's method on the conditions of the features. Return the features with their points, the normal, and the square
    of its last change."""

    def at_point(f: Facet, at: Vec3) -> Facet:
        return Facet(at, f.p0, f.p1, f.p2, f.k, f.round, f.numbers)

    state = carry((fa.at, fb.at, n, 0.0 * n.x))
    for _ in loop(NEWTON):
        a, b, m, _ = state.value
        c = witness_of(A, at_point(fa, a), B, at_point(fb, b), m)
        r = c.b - c.a
        dn, l1, l2 = solve(c, r - m * dot(m, r), -dot(c.e1, m), -dot(c.e2, m))
        slip_a = c.e1 * (l1 * c.e1_of) + c.e2 * (l2 * c.e2_of)
        slip_b = c.e1 * (l1 * (1.0 - c.e1_of)) + c.e2 * (l2 * (1.0 - c.e2_of))
        state.value = (a + A.X.R.T @ slip_a, b - B.X.R.T @ slip_b, _unit(m + dn), dot(dn, dn))
    a, b, m, moved = state.value
    return at_point(fa, a), at_point(fb, b), m, moved


def features(A: Solid, B: Solid, s: Search) -> tuple[Facet, Facet]:
    """Return the features of both solids at the result of a search."""
    shares = (s.l0, s.l1, s.l2)
    of_a = (s.a0, s.a1, s.a2)
    of_b = (s.a0 - s.w0, s.a1 - s.w1, s.a2 - s.w2)
    return feature(A, of_a, shares, s.of_a, s.n), feature(B, of_b, shares, s.of_b, -s.n)


def weights(x: Vec3, e: Vec3, f: Vec3, flat: Any) -> tuple[Any, Any]:
    """Return (s, t) with x = s e + t f; t = 0 on an edge, both zero at a vertex."""
    ee, ff, ef, xe, xf = dot(e, e), dot(f, f), dot(e, f), dot(x, e), dot(x, f)
    det = ee * ff - ef * ef
    face = (flat > 1.5) & (det > SHORT * SHORT)
    inverse = 1.0 / select(face, det, 1.0)
    s = select(face, (ff * xe - ef * xf) * inverse, xe / maximum(ee, SHORT))
    return select(flat > 0.5, s, 0.0), select(face, (ee * xf - ef * xe) * inverse, 0.0)


def on_feature(s: Solid, f: Facet) -> Any:
    """Return True if the point is between the vertices of its feature."""
    z = s.size

    def cylinder() -> Any:
        inside = (abs(f.at.z) < z.y + BESIDE) & (f.at.x * f.at.x + f.at.y * f.at.y < (z.x + BESIDE) * (z.x + BESIDE))
        return select(inside, 1.0, 0.0)

    def corners() -> Any:
        x, y = weights(f.at - f.p0, f.p1 - f.p0, f.p2 - f.p0, f.k)
        return select(minimum(minimum(x, y), 1.0 - x - y) > -BESIDE, 1.0, 0.0)

    smooth: dict[int, Callable[[], Any]] = {k: lambda: 1.0 for k in SOLIDS}
    return s.by_kind(smooth | dict.fromkeys((CAPSULE, BOX, POINTS), corners) | {CYLINDER: cylinder}) > 0.5


# -- edges that cross ----------------------------------------------------------------------------------------------------------
def crossing_edges(A: Solid, B: Solid, row: Row) -> tuple[Vec3, Vec3, Any]:
    """Return the directions of the edges of A and of B at a point of a patch, and whether two edges cross there.

    The end of a cylinder has the direction of its rim where the other edge crosses it, not that of its polygon.
    """
    of_a, of_b = A.X.R @ _unit(row.s1 - row.s0), B.X.R @ _unit(row.t1 - row.t0)
    crossing = (abs(row.s_flat - 1.0) < 0.5) & (abs(row.t_flat - 1.0) < 0.5) & (row.phi < 0.5 * FAR) & (row.patch > 0.5)
    return _rim_direction(A, row.p, of_a, of_b), _rim_direction(B, row.p, of_b, of_a), crossing


def _rim_direction(s: Solid, p: Vec3, own: Vec3, other: Vec3) -> Vec3:
    """Direction of an edge of s; on the end of a cylinder, of its rim where a line along `other` near p crosses it."""

    def cylinder() -> Vec3:
        x, u, r = s.to_own(p), s.X.R.T @ other, s.size.x
        length = sqrt(maximum(u.x * u.x + u.y * u.y, SHORT))
        ux, uy = u.x / length, u.y / length
        off, along = x.y * ux - x.x * uy, select(x.x * ux + x.y * uy < 0.0, -1.0, 1.0)
        along = along * sqrt(maximum(r * r - off * off, 0.0))
        rim = s.X.R @ Vec3(-(ux * off + uy * along), ux * along - uy * off, 0.0)
        return select(abs(dot(own, s.X.R.column(2))) < 0.5, _unit(rim), own)

    cases: dict[int, Callable[[], Vec3]] = {k: lambda: own for k in SOLIDS}
    return s.by_kind(cases | {CYLINDER: cylinder})
