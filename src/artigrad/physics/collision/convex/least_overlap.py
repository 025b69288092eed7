"""Least overlap of two convex cores, separated or not, by support functions alone: GJK from outside  (theory 6.9).

K = A - B, h(n) = max over K of n . w: the overlap along n (negative: a distance). The result is the n of least h. For every
n the point x = (h(n) + eps) n is outside K, at least eps from it. x is projected onto K by GJK; the resulting direction n'
= (x - v)/|x - v| has h(n') <= h(n) - (h + eps)(1 - n . n'). If that is less, x moves; otherwise n is a (local) minimum. If
h is clearly negative, x = 0: this is plain GJK, and the minimum is global. K never contains x: there is no polytope
expansion and no full tetrahedron, and a SIMD lane stores three points of K.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, carry, clamp, loop, maximum, minimum, select, sqrt, target, to_real, when_any
from ...spatial import Vec3, cross, dot, norm
from .hull_tables import Corner
from .solids import Solid

FAR = 1e9
OFF = (
    1e-3  # m, offset of x from K; less after some iterations, since an iteration rotates n by about offset / size of K
)
NEARER = {"f64": ((16, 1e-5), (28, 1e-6)), "f32": ((16, 1e-4),)}
NEAR = {"f64": 1e-6, "f32": 1e-4}  # m, distance beyond which x = 0
SHARP = {
    "f64": 1e-12,
    "f32": 2e-6,
}  # m, tolerance of the overlap: for vertices and edges the search finds the exact features
LOOSE = {"f64": 1e-5, "f32": 1e-5}  # m, the same for curved surfaces, where Newton's method follows
FLAT = {"f64": 1e-12, "f32": 1e-6}  # squared sine at a vertex below which a triangle is degenerate
STUCK = {"f64": 1.0 - 1e-14, "f32": 1.0 - 1e-6}  # ratio of squared distances above which an iteration made no progress
TURNS = 40
STARTS = 3  # starting directions among axes
DEEP = 0.05  # fraction of the smaller solid's size: overlap beyond which the search restarts from axes
SAME = 0.97  # cosine above which two starts most likely lead to the same minimum
SHORT = 1e-4  # squared length below which a product of axes has no direction
LIGHT = 1e-7  # weight below which a point of a search is ignored
ASIDE = 0.1  # rad, turn from a normal at an edge or a vertex of K
SURE = 0.9  # safety factor of the radius of a disc
CLOSE = {"f64": 1e-7, "f32": 2e-6}  # m, distance of its center to h n, for any tolerance of the search


class Search(Linear):
    """State of a search.

    Attributes:
        w0, w1, w2: Points of K.
        a0, a1, a2: Points of A that they belong to.
        l0, l1, l2: Weights.
        of_a, of_b: Indices of the vertices of A and B.
        x: Point outside K.
        d: x - v, v the nearest point of K.
        n: Best normal.
        h: Overlap along n.
    """

    w0: Vec3
    w1: Vec3
    w2: Vec3
    a0: Vec3
    a1: Vec3
    a2: Vec3
    l0: float
    l1: float
    l2: float
    of_a: Vec3
    of_b: Vec3
    x: Vec3
    d: Vec3
    n: Vec3
    h: float


def _nearest(W: list[Vec3], x: Vec3) -> tuple[list[Any], Vec3]:
    """Return the weights of the point of the tetrahedron W nearest to x (outside of it), and x minus that point.

    All edges with their ends and all faces are tested; a degenerate edge is treated as its end, a degenerate face is
    skipped.
    """
    E = [w - x for w in W]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    edge = {(i, j): W[j] - W[i] for i, j in pairs}
    square = {ij: dot(e, e) for ij, e in edge.items()}
    down = {(i, j): -dot(E[i], edge[i, j]) for i, j in pairs}  # towards x, along the edge
    best, kept = FAR, [1.0, 0.0, 0.0, 0.0]

    def offer(d2: Any, weights: dict[int, Any]) -> None:
        nonlocal best, kept
        less = d2 < best
        best = select(less, d2, best)
        kept = [select(less, weights.get(k, 0.0), old) for k, old in enumerate(kept)]

    for i, j in pairs:
        t = clamp(down[i, j] / maximum(square[i, j], 1e-30), 0.0, 1.0)
        v = E[i] + edge[i, j] * t
        offer(dot(v, v), {i: 1.0 - t, j: t})
    for i, j, k in ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)):
        e, f = edge[i, j], edge[i, k]
        ee, ff, ef = square[i, j], square[i, k], dot(e, f)
        det = ee * ff - ef * ef
        wide = det > FLAT[target().dtype] * ee * ff
        inverse = 1.0 / select(wide, det, 1.0)
        s = (ff * down[i, j] - ef * down[i, k]) * inverse
        t = (ee * down[i, k] - ef * down[i, j]) * inverse
        inside = minimum(minimum(s, t), 1.0 - s - t) > 0.0
        v = E[i] + e * s + f * t
        offer(select(wide & inside, dot(v, v), FAR), {i: 1.0 - s - t, j: s, k: t})
    return kept, -(E[0] * kept[0] + E[1] * kept[1] + E[2] * kept[2] + E[3] * kept[3])


def _outside(h: Any, n: Vec3, off: Any = OFF) -> Vec3:
    """Return the point x for a normal with overlap h."""
    return n * select(h > -NEAR[target().dtype], h + off, 0.0)


def _turn(s: Search, at: tuple[Corner, Corner], n: Vec3, tolerance: Any, off: Any) -> tuple[Search, Any]:
    """One iteration: add the support point along n. Return the new state, and 1 if the search continues."""
    a3, w3 = at[0].p, at[0].p - at[1].p
    h = dot(n, w3)
    slack = h - dot(n, s.x) + norm(s.d)  # possible decrease of the distance
    better = h < s.h
    gain = select(better, s.h - h, 0.0)
    n_new, h_new = select(better, n, s.n), select(better, h, s.h)
    x_new = _outside(h_new, n_new, off)
    shift = x_new - s.x
    (l3, l0, l1, l2), d = _nearest([w3, s.w0, s.w1, s.w2], x_new)
    stuck = dot(d, d) > dot(s.d, s.d) * STUCK[target().dtype]
    unsettled = select(slack > tolerance, select(stuck, 0.0, 1.0), 0.0)
    on = select(gain > tolerance, 1.0, select(dot(shift, shift) > tolerance * tolerance, 1.0, unsettled))
    # one of the four points has no weight: it is dropped, the oldest first
    keep_all_old = (l0 > 0.0) & (l1 > 0.0) & (l2 > 0.0)
    drop2 = l2 <= 0.0
    drop1 = drop2 | (l1 <= 0.0)

    def kept(p3: Any, p0: Any, p1: Any, p2: Any) -> tuple[Any, Any, Any]:
        return select(keep_all_old, p0, p3), select(drop1, p0, p1), select(drop2, p1, p2)

    W, A, L = kept(w3, s.w0, s.w1, s.w2), kept(a3, s.a0, s.a1, s.a2), kept(l3, l0, l1, l2)
    of_a, of_b = (Vec3(*kept(c.number, *old.leaves())) for c, old in zip(at, (s.of_a, s.of_b), strict=True))
    return Search(*W, *A, *L, of_a, of_b, x_new, d, n_new, h_new), on


def _search(A: Solid, B: Solid, start: Vec3, tolerance: Any, enough: Any) -> Search:
    """Search from one direction until the overlap is minimal, or some direction has a distance of `enough`."""
    one, other = A.corner(start), B.corner(-start)
    a, w = one.p, one.p - other.p
    h = dot(w, start)
    x = _outside(h, start)
    of_a, of_b = (Vec3(c.number, c.number, c.number) for c in (one, other))
    state = carry(Search(w, w, w, a, a, a, 1.0, 0.0, 0.0, of_a, of_b, x, x - w, start, h))
    live = carry(select(-h < enough, 1.0, 0.0))
    for k in loop(TURNS):
        for _ in when_any(live.value > 0.5):
            off: Any = OFF
            for turn, less in NEARER[target().dtype]:
                off = select(to_real(k) < turn - 0.5, off, less)
            now, on = state.value, live.value > 0.5
            n = now.d / maximum(norm(now.d), 1e-30)
            after, go = _turn(now, (A.corner(n), B.corner(-n)), n, tolerance, off)
            state.value, live.value = select(on, after, now), select(on & (-after.h < enough), go, 0.0)
    return state.value


def box_axis(A: Solid, B: Solid) -> tuple[Any, Vec3]:
    """Return (distance, axis from A to B) of the bounding boxes of the two cores, along the best of their six face axes.

    It is a lower bound of the distance of the cores, and the start of the search.
    """
    c = B.to_world(B.center) - A.to_world(A.center)
    Q = (A.X.R.T @ B.X.R).map(abs)
    best, n = -FAR, Vec3(0.0, 0.0, 1.0)
    for X, own, reach in ((A.X, A.extent, Q @ B.extent), (B.X, B.extent, Q.T @ A.extent)):
        along = (X.R.T @ c).leaves()
        for k, (t, h, r) in enumerate(zip(along, own.leaves(), reach.leaves(), strict=True)):
            distance, axis = abs(t) - h - r, X.R.column(k)
            more = distance > best
            best, n = select(more, distance, best), select(more, select(t < 0.0, -axis, axis), n)
    return best, n


def _certain(A: Solid, B: Solid, s: Search, tolerance: Any) -> Any:
    """Return True if no direction can have less overlap than the one found  (theory 6.12).

    K contains a disc of radius r across n around h n, so another such direction is within 2 atan(h/r) of -n; a point of K
    far enough behind rules it out.
    """
    inside = A.to_world(A.inner) - B.to_world(B.inner)
    behind, h = -dot(inside, s.n), s.h
    aside = inside + s.n * behind
    e, f, g = s.w1 - s.w0, s.w2 - s.w0, s.w2 - s.w1
    area = cross(e, f)
    sides = [l * l / maximum(dot(edge, edge), 1e-30) for l, edge in ((s.l0, g), (s.l1, f), (s.l2, e))]
    square = SURE * SURE * dot(area, area) * minimum(minimum(sides[0], sides[1]), sides[2])
    r, left = sqrt(square), s.x - s.d - s.n * h
    deep = (square - h * h) * behind - 2.0 * h * r * sqrt(dot(aside, aside)) > h * (square + h * h)
    close = maximum(tolerance, CLOSE[target().dtype])
    return deep & (dot(left, left) < 10.0 * close * close)


def _by_centers(A: Solid, B: Solid, by_box: Vec3) -> list[Vec3]:
    """Return the line of centers, and its part across the axis of the boxes."""
    c = B.to_world(B.center) - A.to_world(A.center)
    square = dot(c, c)
    apart = square > 1e-12
    along = select(apart, c / sqrt(select(apart, square, 1.0)), by_box)
    aside = along - by_box * dot(along, by_box)
    length = norm(aside)
    return [along, select(length > 0.1, aside / maximum(length, 0.1), along)]


def _by_axes(A: Solid, B: Solid, found: Search) -> list[Vec3]:
    """Return the STARTS directions of least overlap among the axes of both frames and their products, least first."""
    c = B.to_world(B.center) - A.to_world(A.center)
    of_a, of_b = ([X.R.column(k) for k in range(3)] for X in (A.X, B.X))
    axes = [*of_a, *of_b, *(cross(a, b) for a in of_a for b in of_b)]
    state = carry(tuple((found.n, FAR + 0.0 * found.h) for _ in range(STARTS)))
    for k in loop(len(axes)):
        axis = _chosen(axes, k)
        square = dot(axis, axis)
        n = axis * (select(dot(axis, c) < 0.0, -1.0, 1.0) / sqrt(maximum(square, SHORT)))
        new = (square > SHORT) & (dot(n, found.n) < SAME)
        h, kept = select(new, dot(n, A.support(n) - B.support(-n)), FAR), list[tuple[Vec3, Any]]()
        for old_n, old_h in state.value:  # insertion into the sorted list
            less = h < old_h
            kept.append((select(less, n, old_n), select(less, h, old_h)))
            n, h = select(less, old_n, n), select(less, old_h, h)
        state.value = tuple(kept)
    return [n for n, _ in state.value]


def _chosen(directions: list[Vec3], k: Any) -> Vec3:
    """Return the direction with index k."""
    out = directions[0]
    for number, other in enumerate(directions):
        out = select(abs(to_real(k) - float(number)) < 0.5, other, out)
    return out


def least_overlap(A: Solid, B: Solid, by_box: Vec3, tolerance: Any, enough: Any) -> Search:
    """Find the least overlap, from several starting directions.

    The search starts from the axis of the boxes. If the cores overlap and a lower minimum is possible, it restarts from the
    line of centers, and in deep overlap from the axes of the solids. It stops once the cores are known to be further apart
    than `enough` (not negative). Of an overlap at a vertex or an edge of K, where a search that starts in line with it stays
    although any turn is less, each restart includes directions to both sides.
    """
    best = carry(_search(A, B, by_box, tolerance, enough))
    open_ = carry(_unsettled(A, B, best.value, tolerance))

    def go_on(starts: list[Vec3]) -> None:
        for k in loop(len(starts) + 2):
            beside = to_real(k) > len(starts) - 0.5
            asked = select(beside, open_.value * _on_edge(best.value), open_.value) > 0.5
            for _ in when_any(asked):
                aside = _beside(best.value, select(to_real(k) > len(starts) + 0.5, -ASIDE, ASIDE))
                found = _search(A, B, select(beside, aside, _chosen(starts, k)), tolerance, enough)
                lower = found.h < best.value.h - select(beside, tolerance, 0.0)
                lower = lower & asked  # another SIMD lane may be the only active one
                best.value = select(lower, found, best.value)
                open_.value = open_.value * _unsettled(A, B, best.value, tolerance)

    for _ in when_any(open_.value > 0.5):
        go_on(_by_centers(A, B, by_box))
        open_.value = select(best.value.h > DEEP * minimum(_widest(A), _widest(B)), open_.value, 0.0)
        for _ in when_any(open_.value > 0.5):
            go_on(_by_axes(A, B, best.value))
    return best.value


def _on_edge(s: Search) -> Any:
    """Return 1 if the nearest point of K is on an edge or a vertex of the search's triangle."""
    return select(minimum(minimum(s.l0, s.l1), s.l2) > LIGHT, 0.0, 1.0)


def _beside(s: Search, angle: Any) -> Vec3:
    """Return the normal of a search turned by a small angle about an edge of K, or about any axis at a vertex."""
    edges = ((s.w1 - s.w0, s.l0 * s.l1), (s.w2 - s.w0, s.l0 * s.l2), (s.w2 - s.w1, s.l1 * s.l2))
    across = cross(s.n, select(abs(s.n.x) < 0.6, Vec3(1.0, 0.3, 0.1), Vec3(0.3, 1.0, 0.1)))
    for edge, weight in edges:
        aside = cross(s.n, edge)
        across = select((weight > 0.0) & (dot(aside, aside) > SHORT * dot(edge, edge)), aside, across)
    n = s.n + across * (angle / maximum(norm(across), 1e-30))
    return n / norm(n)


def _widest(s: Solid) -> Any:
    """Largest half edge of the bounding box of a core."""
    x, y, z = s.extent.leaves()
    return maximum(maximum(x, y), z)


def _unsettled(A: Solid, B: Solid, s: Search, tolerance: Any) -> Any:
    """Return 1 if another direction may have less overlap."""
    return select((s.h <= 0.0) | _certain(A, B, s, tolerance), 0.0, 1.0)
