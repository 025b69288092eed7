"""Which features of two solids touch, to the last digit; and how the witness and its normal change  (theory 6.8).

A feature is a corner, an edge, a face, a curved surface, or a cylinder's line or rim. With it fixed, the conditions of
`meeting` are smooth equations: Newton's method on them turns the few digits of a search into all, and the same matrix is that
of the adjoint. What is degenerate has a bounded answer: of parallel edges A's alone turns the normal; a rim nearly flat on
something runs round no faster than at a tilt of RHO; a radius of curvature plus gap is at least PIVOT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Linear, carry, loop, maximum, minimum, select, sqrt
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Mat3, Vec3, cross, dot
from .least_overlap import Search
from .solids import SOLIDS, Solid

BESIDE = 1e-6  # by which a point may be beside its feature, m or as a share
WEIGHT = 1e-7  # a point of a search with less does not count
RHO = 0.02
FINE = 1e-6  # the same where only the normal matters, not where on the rim it is
PIVOT = 1e-4  # m
PARALLEL = 1e-4  # sine below which two edges are one direction
WIDE = 1e-2  # sine above which the normal of two edges is better known from them than from the search
SHORT = 1e-12  # m^2, an edge that is none
ROUND = 0.9999  # share of a cylinder's squared radius within which a point is inside its end
UPRIGHT = 0.999  # squared cosine between a cylinder's end and the normal, at least
NEWTON = 3  # steps


class Facet(Linear):
    """Of a solid, in its frame: the point; up to three corners p0, p1, p2 of which k + 1 count, so that it is flat along
    p1 - p0 and p2 - p0; 1 where a cylinder touches with its side or rim; and the numbers of the corners of a hull."""

    at: Vec3
    p0: Vec3
    p1: Vec3
    p2: Vec3
    k: float
    round: float
    numbers: Vec3


class Hold(Linear):
    """What holds a normal, common axes: the points a and b of the cores, the gap between them, curvatures, and up to two unit
    directions at right angles to it (k: 1 where one counts; of: 1 for one of A's)."""

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
    """From the points that a search has kept, their numbers, and its normal out of the solid (common axes)."""
    P = [s.to_own(p) for p in points]
    W = [select(w > WEIGHT, w, 0.0) for w in weights]
    at = (P[0] * W[0] + P[1] * W[1] + P[2] * W[2]) / (W[0] + W[1] + W[2])

    def on_line() -> Any:
        """1 where both ends of the axis are among the points."""
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
    """The point of the core for a normal l out of it, flat coordinates kept, all in its frame."""
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
    """The Hessian of the core's support function, common axes."""
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
    return v / sqrt(maximum(dot(v, v), SHORT))


def hold(A: Solid, fa: Facet, B: Solid, fb: Facet, n: Vec3, least: Any = FINE) -> Hold:
    """What holds the normal n: a face of A's, else one of B's, else one edge of each; and curvatures, of a rim as if it were
    tilted by `least` at least."""
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
    return Hold(
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


def held_normal(c: Hold) -> Vec3:
    """The normal at right angles to the two directions that hold it, to the last digit; where there are fewer, as it was."""
    across = cross(c.e1, c.e2)
    length = sqrt(maximum(dot(across, across), SHORT))
    n = across * (select(dot(across, c.n) < 0.0, -1.0, 1.0) / length)
    return select((c.k1 * c.k2 > 0.5) & (length > WIDE), n, c.n)


def solve(c: Hold, y: Vec3, r1: Any, r2: Any) -> tuple[Vec3, Any, Any]:
    """[M E; E^T 0] (x, l) = (y, r) in the plane across n, M = C_A + C_B + g, for none, one or two directions E."""
    n, k1, k2 = c.n, c.k1, c.k2
    aside = select(abs(n.x) < 0.6, Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0))
    e = select(k1 > 0.5, c.e1, select(k2 > 0.5, c.e2, cross(n, aside)))
    e = _unit(e - n * dot(n, e))
    f = cross(n, e)
    M = c.CA + c.CB
    Me, Mf = M @ e, M @ f
    m00, m01, m11 = dot(e, Me) + c.g, dot(e, Mf), dot(f, Mf) + c.g
    y0, y1 = dot(e, y), dot(f, y)
    # none: x = M^-1 y
    det = maximum(m00 * m11 - m01 * m01, PIVOT * PIVOT)
    none = ((m11 * y0 - m01 * y1) / det, (m00 * y1 - m01 * y0) / det)
    # one: its direction is e
    first = k1 > 0.5
    along = select(first, dot(c.e1, e), dot(c.e2, e))
    along = select(abs(along) > 0.5, along, 1.0)
    s0 = select(first, r1, r2) / along
    s1 = (y1 - m01 * s0) / maximum(m11, PIVOT)
    push = (y0 - m00 * s0 - m01 * s1) / along
    # two: they say all of x
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


def refine(A: Solid, fa: Facet, B: Solid, fb: Facet, n: Vec3) -> tuple[Facet, Facet, Vec3]:
    """Newton's method on the conditions of the features: these with their points where they belong, and the normal."""

    def moved(f: Facet, at: Vec3) -> Facet:
        return Facet(at, f.p0, f.p1, f.p2, f.k, f.round, f.numbers)

    state = carry((fa.at, fb.at, n))
    for _ in loop(NEWTON):
        a, b, m = state.value
        c = hold(A, moved(fa, a), B, moved(fb, b), m)
        r = c.b - c.a
        dn, l1, l2 = solve(c, r - m * dot(m, r), -dot(c.e1, m), -dot(c.e2, m))
        slip_a = c.e1 * (l1 * c.e1_of) + c.e2 * (l2 * c.e2_of)
        slip_b = c.e1 * (l1 * (1.0 - c.e1_of)) + c.e2 * (l2 * (1.0 - c.e2_of))
        state.value = (a + A.X.R.T @ slip_a, b - B.X.R.T @ slip_b, _unit(m + dn))
    a, b, m = state.value
    return moved(fa, a), moved(fb, b), m


def features(A: Solid, B: Solid, s: Search) -> tuple[Facet, Facet]:
    """Of both solids, from what a search has kept."""
    shares = (s.l0, s.l1, s.l2)
    of_a = (s.a0, s.a1, s.a2)
    of_b = (s.a0 - s.w0, s.a1 - s.w1, s.a2 - s.w2)
    return feature(A, of_a, shares, s.of_a, s.n), feature(B, of_b, shares, s.of_b, -s.n)


def weights(x: Vec3, e: Vec3, f: Vec3, flat: Any) -> tuple[Any, Any]:
    """(s, t) with x = s e + t f; t = 0 on an edge, both zero at a corner."""
    ee, ff, ef, xe, xf = dot(e, e), dot(f, f), dot(e, f), dot(x, e), dot(x, f)
    det = ee * ff - ef * ef
    face = (flat > 1.5) & (det > SHORT * SHORT)
    inverse = 1.0 / select(face, det, 1.0)
    s = select(face, (ff * xe - ef * xf) * inverse, xe / maximum(ee, SHORT))
    return select(flat > 0.5, s, 0.0), select(face, (ee * xf - ef * xe) * inverse, 0.0)


def on_feature(s: Solid, f: Facet) -> Any:
    """Where the point lies between the corners of its feature."""
    z = s.size

    def cylinder() -> Any:
        inside = (abs(f.at.z) < z.y + BESIDE) & (f.at.x * f.at.x + f.at.y * f.at.y < (z.x + BESIDE) * (z.x + BESIDE))
        return select(inside, 1.0, 0.0)

    def corners() -> Any:
        x, y = weights(f.at - f.p0, f.p1 - f.p0, f.p2 - f.p0, f.k)
        return select(minimum(minimum(x, y), 1.0 - x - y) > -BESIDE, 1.0, 0.0)

    smooth: dict[int, Callable[[], Any]] = {k: lambda: 1.0 for k in SOLIDS}
    return s.by_kind(smooth | dict.fromkeys((CAPSULE, BOX, POINTS), corners) | {CYLINDER: cylinder}) > 0.5
