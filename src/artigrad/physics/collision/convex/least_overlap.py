"""The least overlap of two convex cores, apart or not, by nothing but support functions: GJK from outside  (theory 6.9).

K = A - B, h(n) = max over K of n . w: the overlap along n (negative: a gap). Wanted is the n of least h. For every n the point
x = (h(n) + eps) n lies outside K, at least eps from it. So x is projected on K by GJK; the direction n' = (x - v)/|x - v| that
this finds has h(n') <= h(n) - (h + eps)(1 - n . n'). Where that is less, x moves; where it is not, n is a (local) minimum. If
h is clearly negative, x = 0: GJK as usual, and the minimum is the global one. K never contains x: there is no polytope to
expand and no full tetrahedron, and a lane keeps three points of K.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, carry, clamp, loop, maximum, minimum, select, sqrt, target, to_real, when_any
from ...spatial import Vec3, cross, dot, norm
from .hull_tables import Corner
from .solids import Solid

FAR = 1e9
OFF = 1e-3  # m, how far x stays off K; less after so many turns, since a step turns n by about an offset of K over it
NEARER = {"f64": ((16, 1e-5), (28, 1e-6)), "f32": ((16, 1e-4),)}
NEAR = {"f64": 1e-6, "f32": 1e-4}  # m, a gap beyond this is measured from x = 0
SHARP = {"f64": 1e-12, "f32": 2e-6}  # m, what the overlap may be off: of corners and edges a search finds the very ones
LOOSE = {"f64": 1e-5, "f32": 1e-5}  # m, the same where surfaces are curved and Newton's method gives the rest
FLAT = {"f64": 1e-12, "f32": 1e-6}  # squared sine in a corner below which a triangle is none
STUCK = {"f64": 1.0 - 1e-14, "f32": 1.0 - 1e-6}  # of the squared distance: no nearer than before
TURNS = 40
STARTS = 3  # of a search among axes
DEEP = 0.05  # of the size of the smaller solid, an overlap beyond which it begins from them
SAME = 0.97  # cosine between two directions from which a search goes to one minimum, most likely
SHORT = 1e-4  # squared length below which a product of axes is no direction
SURE = 0.9  # of the radius of a disc, what is counted on
CLOSE = {"f64": 1e-7, "f32": 2e-6}  # m, how near its middle is to h n, however sharp a search is


class Search(Linear):
    """Where a search stands: three points of K with those of A they came from and their weights; which corners of A and of B
    they came from; x and x - v; and the best normal with its overlap."""

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
    """Weights of the point of the tetrahedron W that is nearest to x (outside of it), and x minus that point. All edges with
    their ends and all faces are tried; a degenerate edge is its end, a degenerate face is passed over."""
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
    return n * select(h > -NEAR[target().dtype], h + off, 0.0)


def _turn(s: Search, at: tuple[Corner, Corner], n: Vec3, tolerance: Any, off: Any) -> tuple[Search, Any]:
    """One more point of K, the support along n: the search after it, and 1 where it goes on."""
    a3, w3 = at[0].p, at[0].p - at[1].p
    h = dot(n, w3)
    slack = h - dot(n, s.x) + norm(s.d)  # how much nearer K can still be than v
    better = h < s.h
    gain = select(better, s.h - h, 0.0)
    n_new, h_new = select(better, n, s.n), select(better, h, s.h)
    x_new = _outside(h_new, n_new, off)
    shift = x_new - s.x
    (l3, l0, l1, l2), d = _nearest([w3, s.w0, s.w1, s.w2], x_new)
    stuck = dot(d, d) > dot(s.d, s.d) * STUCK[target().dtype]
    unsettled = select(slack > tolerance, select(stuck, 0.0, 1.0), 0.0)
    on = select(gain > tolerance, 1.0, select(dot(shift, shift) > tolerance * tolerance, 1.0, unsettled))
    # one of the four has no weight: it goes, the oldest first
    keep_all_old = (l0 > 0.0) & (l1 > 0.0) & (l2 > 0.0)
    drop2 = l2 <= 0.0
    drop1 = drop2 | (l1 <= 0.0)

    def kept(p3: Any, p0: Any, p1: Any, p2: Any) -> tuple[Any, Any, Any]:
        return select(keep_all_old, p0, p3), select(drop1, p0, p1), select(drop2, p1, p2)

    W, A, L = kept(w3, s.w0, s.w1, s.w2), kept(a3, s.a0, s.a1, s.a2), kept(l3, l0, l1, l2)
    of_a, of_b = (Vec3(*kept(c.number, *old.leaves())) for c, old in zip(at, (s.of_a, s.of_b), strict=True))
    return Search(*W, *A, *L, of_a, of_b, x_new, d, n_new, h_new), on


def _search(A: Solid, B: Solid, start: Vec3, tolerance: Any, enough: Any) -> Search:
    """From one direction, until the overlap is the least, or some direction shows a gap of `enough`."""
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
    """(gap, axis from A to B) of the boxes around the two cores, along that of their six face axes where they are furthest
    apart: a bound on the gap of the cores, and where the search starts."""
    c = B.to_world(B.centre) - A.to_world(A.centre)
    Q = (A.X.R.T @ B.X.R).map(abs)
    best, n = -FAR, Vec3(0.0, 0.0, 1.0)
    for X, own, reach in ((A.X, A.extent, Q @ B.extent), (B.X, B.extent, Q.T @ A.extent)):
        along = (X.R.T @ c).leaves()
        for k, (t, h, r) in enumerate(zip(along, own.leaves(), reach.leaves(), strict=True)):
            gap, axis = abs(t) - h - r, X.R.column(k)
            more = gap > best
            best, n = select(more, gap, best), select(more, select(t < 0.0, -axis, axis), n)
    return best, n


def _certain(A: Solid, B: Solid, s: Search, tolerance: Any) -> Any:
    """Where no direction has less overlap than the one that was found  (theory 6.12).

    K holds a disc of radius r across n around h n, so another such direction is within 2 atan(h/r) of -n; and there a point
    of K that lies deep enough behind has more."""
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


def _by_centres(A: Solid, B: Solid, by_box: Vec3) -> list[Vec3]:
    """The line of centres, and its part across the axis of the boxes."""
    c = B.to_world(B.centre) - A.to_world(A.centre)
    square = dot(c, c)
    apart = square > 1e-12
    along = select(apart, c / sqrt(select(apart, square, 1.0)), by_box)
    aside = along - by_box * dot(along, by_box)
    length = norm(aside)
    return [along, select(length > 0.1, aside / maximum(length, 0.1), along)]


def _by_axes(A: Solid, B: Solid, found: Search) -> list[Vec3]:
    """Of the axes of the two frames and their products, those of least overlap, the least one first."""
    c = B.to_world(B.centre) - A.to_world(A.centre)
    of_a, of_b = ([X.R.column(k) for k in range(3)] for X in (A.X, B.X))
    axes = [*of_a, *of_b, *(cross(a, b) for a in of_a for b in of_b)]
    state = carry(tuple((found.n, FAR + 0.0 * found.h) for _ in range(STARTS)))
    for k in loop(len(axes)):
        axis = _chosen(axes, k)
        square = dot(axis, axis)
        n = axis * (select(dot(axis, c) < 0.0, -1.0, 1.0) / sqrt(maximum(square, SHORT)))
        new = (square > SHORT) & (dot(n, found.n) < SAME)
        h, kept = select(new, dot(n, A.support(n) - B.support(-n)), FAR), list[tuple[Vec3, Any]]()
        for old_n, old_h in state.value:  # the new one goes in where it belongs, and those behind it move on
            less = h < old_h
            kept.append((select(less, n, old_n), select(less, h, old_h)))
            n, h = select(less, old_n, n), select(less, old_h, h)
        state.value = tuple(kept)
    return [n for n, _ in state.value]


def _chosen(directions: list[Vec3], k: Any) -> Vec3:
    """The one of this number."""
    out = directions[0]
    for number, other in enumerate(directions):
        out = select(abs(to_real(k) - float(number)) < 0.5, other, out)
    return out


def least_overlap(A: Solid, B: Solid, by_box: Vec3, tolerance: Any, enough: Any) -> Search:
    """From the axis of the boxes and, where the cores overlap and there may be a lower minimum, from others: by their centres,
    and if they are deep in each other by their axes. Cores further apart than `enough`, which is not negative, are left once
    that is known."""
    best = carry(_search(A, B, by_box, tolerance, enough))
    open_ = carry(_unsettled(A, B, best.value, tolerance))

    def go_on(starts: list[Vec3]) -> None:
        for k in loop(len(starts)):
            for _ in when_any(open_.value > 0.5):
                found = _search(A, B, _chosen(starts, k), tolerance, enough)
                lower = (found.h < best.value.h) & (open_.value > 0.5)  # a neighbour may be the only one that asks
                best.value = select(lower, found, best.value)
                open_.value = open_.value * _unsettled(A, B, best.value, tolerance)

    for _ in when_any(open_.value > 0.5):
        go_on(_by_centres(A, B, by_box))
        open_.value = select(best.value.h > DEEP * minimum(_widest(A), _widest(B)), open_.value, 0.0)
        for _ in when_any(open_.value > 0.5):
            go_on(_by_axes(A, B, best.value))
    return best.value


def _widest(s: Solid) -> Any:
    """Half the longest edge of the box around a core."""
    x, y, z = s.extent.leaves()
    return maximum(maximum(x, y), z)


def _unsettled(A: Solid, B: Solid, s: Search, tolerance: Any) -> Any:
    """1 where another direction may have less overlap."""
    return select((s.h <= 0.0) | _certain(A, B, s, tolerance), 0.0, 1.0)
