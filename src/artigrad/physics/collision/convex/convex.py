"""Contact of two convex solids: least overlap by support functions, exact features, and the contact patch around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ....compiler import Row, carry, loop, maximum, minimum, select, sqrt, target, to_real, when_any
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Force, Mat3, Vec3, cross, dot
from ..contact_geometry import FAR, ZERO, ContactGeometry, PairBars, point_to_pose_bar
from .contact_features import ContactFeature
from .contact_polygon import Frame, frame
from .contact_record import CornerBars, Slots, slip
from .coplanar import whole_feature
from .least_overlap import LOOSE, SHARP, Search, box_axis, least_overlap
from .patch import PatchNormals, PatchPoint, patch
from .solids import CURVED, SOLIDS, Solid
from .witness import (
    PARALLEL,
    RIM,
    SHORT,
    Facet,
    Witness,
    crossing_edges,
    features,
    fixed_normal,
    on_feature,
    refine,
    solve,
    weights,
    witness_of,
)

SLOTS = 4
EXACT = {"f64": 1e-10, "f32": 2e-5}  # m, deviation between the overlap of the features and that of the solids
LEVEL = {"f64": 1e-9, "f32": 1e-5}  # sine of a line and an edge to the face on which they lie
LINES = frozenset({CAPSULE, CYLINDER})
AT_VERTEX = 1e-8  # m, distance of a line to a vertex over which it passes
FLUSH = 3e-7  # sine of the normal to a cylinder's axis below which its end counts as level
MOVES = {"f64": 1e-7, "f32": 1e-4}  # last change of the normal below which Newton's method has converged
ROUNDS = 3  # of Newton's method
ROUGHLY = {"f64": 1e-6, "f32": 2e-5}  # m, the same for the last attempt


def find_contact(A: Solid, B: Solid, axis: Vec3, ask: tuple[Any, Any]) -> tuple[Facet, Facet, Vec3, Any]:
    """Return the touching features, the normal, and whether the solids are near enough.

    Solids with vertices and edges need the search only; for curved surfaces Newton's method follows.

    Args:
        A, B: Solids.
        axis: Direction at which the search begins, from A to B.
        ask: Mask, and largest distance of the cores.
    """
    if (A.among | B.among) & CURVED:
        return _find_curved(A, B, axis, ask)
    active, enough = ask
    search = least_overlap(A, B, axis, SHARP[target().dtype], enough)
    fa, fb = _whole_features(A, B, *features(A, B, search), search.n)
    return fa, fb, fixed_normal(witness_of(A, fa, B, fb, search.n)), active & (-search.h < enough)


def _whole_features(A: Solid, B: Solid, fa: Facet, fb: Facet, n: Vec3) -> tuple[Facet, Facet]:
    """Extend both features to the flat faces that contain them."""
    return whole_feature(A, fa, n), whole_feature(B, fb, -n)


def _find_curved(A: Solid, B: Solid, axis: Vec3, ask: tuple[Any, Any]) -> tuple[Facet, Facet, Vec3, Any]:
    """Search, then Newton's method.

    The Newton result is accepted if the overlap along its normal equals the one of its equations and is not larger than
    that of the search, and if its points are on their features. Otherwise, as beside nearly flat faces of a mesh, a sharper
    search precedes it.
    """
    kind, loose, (active, enough) = target().dtype, maximum(_curved(A), _curved(B)), ask
    state = carry((Facet.zero(), Facet.zero(), axis, select(active, 1.0, 0.0), 0.0 * axis.x))
    for k in loop(2):
        for _ in when_any(state.value[3] > 0.5):
            fa, fb, n, open_, there = state.value
            search = least_overlap(A, B, n, select(loose > to_real(k), LOOSE[kind], SHARP[kind]), enough)
            near = (open_ > 0.5) & (-search.h < enough)
            state.value = (fa, fb, n, select(near, open_, 0.0), there)
            for _ in when_any(near):
                exact = select(to_real(k) < 0.5, EXACT[kind], ROUGHLY[kind])
                *now, good = _refined(A, B, search, near, (exact, to_real(k) > 0.5))
                found = (*now, select(good, 0.0, 1.0), 1.0)
                state.value = tuple(select(near, x, y) for x, y in zip(found, state.value, strict=True))
    fa, fb, n, _, there = state.value
    return *_whole_features(A, B, fa, fb, n), n, there > 0.5


def _refined(A: Solid, B: Solid, search: Search, near: Any, ask: tuple[Any, Any]) -> tuple[Facet, Facet, Vec3, Any]:
    """Newton's method from the result of a search, continued until it has converged.

    It is continued only from an accepted result: from a rough one it may end at another stationary point.

    Args:
        A, B: Solids.
        search: Result of the search.
        near: Mask.
        ask: Largest deviation of the overlap, and whether points may be beside their features.

    Returns:
        Features, normal, and whether the result is accepted; otherwise they are those of the search.
    """
    kind, (exact, beside) = target().dtype, ask
    converged = MOVES[kind] * MOVES[kind]
    state = carry((*features(A, B, search), search.n, 0.0 * search.h, 1.0 + 0.0 * search.h))
    for k in loop(ROUNDS):
        fa, fb, n, accepted, moved = state.value
        goes_on = near & ((to_real(k) < 0.5) | ((accepted > 0.5) & (moved > converged)))
        for _ in when_any(goes_on):
            ra, rb, better, change = refine(A, fa, B, fb, n)
            c = witness_of(A, ra, B, rb, better)
            off = abs(dot(better, B.support(-better) - A.support(better)) - c.g)
            good = goes_on & (off < exact) & (c.g + EXACT[kind] > -search.h)
            good = good & (beside | (on_feature(A, ra) & on_feature(B, rb)))
            old = fa, fb, n, accepted, select(goes_on, 0.0, moved)
            state.value = tuple(select(good, x, y) for x, y in zip((ra, rb, better, 1.0, change), old, strict=True))
    fa, fb, n, accepted, _ = state.value
    return fa, fb, n, accepted > 0.5


def _curved(s: Solid) -> Any:
    """Return 1 for a solid with curved surfaces."""
    flat: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
    return s.by_kind(flat | dict.fromkeys(CURVED, lambda: 1.0))


def convex(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    """Compute the points of a pair. The distance of unused slots, and of solids further apart than `near`, is FAR."""
    _collide(A, B, near, [slots.rows[k] for k in range(SLOTS)], lambda fa, fb, n: _fill(A, B, (fa, fb, n), near, slots))


def nearest(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    """Compute the nearest or deepest points of a pair only."""
    row = slots.rows[0]
    _collide(A, B, near, [row], lambda fa, fb, n: put_witness(row, A, B, fa, fb, n))


def _collide(A: Solid, B: Solid, near: Any, rows: list[Row], fill: Callable[[Facet, Facet, Vec3], None]) -> None:
    """Fill rows if the solids are nearer than `near`."""
    bound, axis = box_axis(A, B)
    for row in rows:
        row.phi = FAR
    reach = near + A.radius + B.radius
    for _ in when_any(bound < reach):
        close = (bound < reach) & (_distance_along_centers(A, B) < reach + ROUGHLY[target().dtype])
        for _ in when_any(close):
            fa, fb, n, there = find_contact(A, B, axis, (close, maximum(reach, 0.0)))
            for _ in when_any(there):
                fill(fa, fb, n)
                for row in rows:
                    row.phi = select(there, row.phi, FAR)


def _distance_along_centers(A: Solid, B: Solid) -> Any:
    """Distance of the cores along the line of centers, a lower bound that is sharp for round solids; -FAR without a line."""
    c = B.to_world(B.center) - A.to_world(A.center)
    square = dot(c, c)
    apart = square > SHORT
    n = c / sqrt(select(apart, square, 1.0))
    return select(apart, dot(n, B.support(-n) - A.support(n)), -FAR)


def _fill(A: Solid, B: Solid, touch: tuple[Facet, Facet, Vec3], near: Any, slots: Slots) -> None:
    """Fill the slots with the points of two solids nearer than `near`, given the touching features."""
    ra, rb, (fa, fb, n) = A.radius, B.radius, touch
    c = witness_of(A, fa, B, fb, n, RIM[target().dtype])
    phi, f = c.g - ra - rb, frame(A, c.a, c.n)
    flat = patch((A, B), (fa, fb), f, near, slots)
    f, held = flat.frame, flat.held
    lines = [
        _if_cylinder(x, select(abs(feature.count - 2.0) < 0.5, 1.0, 0.0))
        for x, feature in zip((A, B), flat.contact_features, strict=True)
    ]
    for k in loop(SLOTS):
        row, point = slots.rows[k], flat.point(to_real(k))
        only = flat.quad.count + to_real(k) < 0.5  # no patch: nearest points of the solids
        _put(row, c, fa, fb)
        _put_patch_point(row, A, B, point, held)
        row.a_line, row.b_line = lines
        row.a_face, row.b_face = (feature.face for feature in flat.contact_features)
        on_face = f.o + f.e * point.x + f.f * point.y + f.n * point.height
        along = held.n * (select(held.cut_a > 0.5, -0.5, 0.5) * point.phi)
        row.by_a, row.patch = 1.0 - held.cut_a, select(only, 0.0, held.faces)
        row.n, row.m = select(only, c.n, held.n), select(only, c.n, held.m)
        row.phi = select(only, phi, select(point.real > 0.5, point.phi, FAR))
        row.p = select(only, c.a + c.n * (ra + 0.5 * phi), on_face + along)
        if (A.among | B.among) & {CYLINDER}:
            _fix_normal_by_end(A, B, row, f, held, flat.contact_features)
    if (A.among | B.among) & LINES:
        _fix_normal_by_crossing(A, B, slots)


def _fix_normal_by_end(
    A: Solid, B: Solid, row: Row, f: Frame, held: PatchNormals, features: tuple[ContactFeature, ContactFeature]
) -> None:
    """Let the end of a cylinder on which a line lies determine the side of the line, if it ends on the rim.

    The rim of an end that is level to rounding has no curvature, and a rim and the end of a line do not determine a normal.
    A level end rotates the normal as a face does; at a larger tilt the line keeps the normal across it.
    """
    lines = [
        _if_line(x, select(abs(feature.count - 2.0) < 0.5, 1.0, 0.0))
        for x, feature in zip((A, B), features, strict=True)
    ]
    ends = [_if_cylinder(s, line) for s, line in ((B, lines[0]), (A, lines[1]))]
    lies = (ends[0] + ends[1] > 0.5) & (abs(row.patch - 1.0) < 0.5)
    aside = cross(row.w, held.n)
    square = dot(aside, aside)
    level, rims = lies & (square < FLUSH * FLUSH), lies & (row.k1 + row.k2 < 0.5) & (dot(row.w, held.n) > 0.0)
    axis, other = select(lines[0] > 0.5, A.X.R.column(2), B.X.R.column(2)), select(lines[0] > 0.5, 1.0, 0.0)
    row.w = select(level, held.n, row.w)
    row.e1, row.e2 = select(level, f.e, select(rims, axis, row.e1)), select(level, f.f, row.e2)
    row.e1_of = select(level, row.by_a, select(rims, other, row.e1_of))
    row.e2_of = select(level, row.by_a, row.e2_of)
    row.k1, row.k2 = select(level | rims, 1.0, row.k1), select(level, 1.0, row.k2)


def _fix_normal_by_crossing(A: Solid, B: Solid, slots: Slots) -> None:
    """Let a line and an edge determine the normal of the nearest points.

    This applies where a line is parallel to a face and leaves it over an edge: if the line tilts, the nearest points are at
    the crossing. Edges that are not parallel at both ends have different normals: the gradient is that of one tilt, and the
    margin is zero. A line that leaves the face over a vertex has the mean of both edges: the direction across it.
    """
    first, level = slots.rows[0], LEVEL[target().dtype]
    of_a, of_b, crossing = crossing_edges(A, B, first)
    of_a, of_b = _across_at_vertex(A, B, first, of_a, of_b)
    flat = (abs(dot(of_a, first.n)) < level) & (abs(dot(of_b, first.n)) < level)
    held = crossing & flat & (abs(dot(first.n, cross(of_a, of_b))) > PARALLEL)
    a, b = (first.s0, first.s1, first.s2, 1.0, first.s_numbers), (first.t0, first.t1, first.t2, 1.0, first.t_numbers)
    for k in loop(SLOTS):
        row = slots.rows[k]
        row.e1, row.e2 = select(held, of_a, row.e1), select(held, of_b, row.e2)
        row.e1_of, row.e2_of = select(held, 1.0, row.e1_of), select(held, 0.0, row.e2_of)
        row.k1, row.k2 = select(held, 1.0, row.k1), select(held, 1.0, row.k2)
        old_a, old_b = _witness_corners(row)
        row.a0, row.a1, row.a2, row.a_flat, row.a_numbers = (select(held, x, y) for x, y in zip(a, old_a, strict=True))
        row.b0, row.b1, row.b2, row.b_flat, row.b_numbers = (select(held, x, y) for x, y in zip(b, old_b, strict=True))


def _across_at_vertex(A: Solid, B: Solid, row: Row, of_a: Vec3, of_b: Vec3) -> tuple[Vec3, Vec3]:
    """Replace the edge of a hull or box by the direction across the line, if the line passes over an end of the edge."""

    def at_end(s: Solid, p0: Vec3, p1: Vec3) -> Any:
        off = [row.p - s.to_world(p) for p in (p0, p1)]
        aside = [x - row.n * dot(row.n, x) for x in off]
        there = minimum(*(dot(x, x) for x in aside)) < AT_VERTEX * AT_VERTEX
        none: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
        return s.by_kind(none | dict.fromkeys((BOX, POINTS), lambda: select(there, 1.0, 0.0))) > 0.5

    a, b = cross(row.n, of_b), cross(row.n, of_a)
    return select(at_end(A, row.s0, row.s1), a, of_a), select(at_end(B, row.t0, row.t1), b, of_b)


def put_witness(row: Row, A: Solid, B: Solid, fa: Facet, fb: Facet, n: Vec3) -> None:
    """Write the nearest points, without a patch."""
    ra, rb, c = A.radius, B.radius, witness_of(A, fa, B, fb, n, RIM[target().dtype])
    _put(row, c, fa, fb)
    row.phi = c.g - ra - rb
    row.p = c.a + c.n * (ra + 0.5 * row.phi)


def _if_cylinder(s: Solid, x: Any) -> Any:
    """Return x for a cylinder, else 0."""
    cases: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
    return s.by_kind(cases | {CYLINDER: lambda: x})


def _if_line(s: Solid, x: Any) -> Any:
    """Return x for a capsule or cylinder, else 0."""
    cases: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
    return s.by_kind(cases | dict.fromkeys(LINES, lambda: x))


def _put(row: Row, c: Witness, fa: Facet, fb: Facet) -> None:
    """Write the nearest points and both features."""
    row.n, row.w, row.g, row.a, row.b, row.CA, row.CB = c.n, c.n, c.g, c.a, c.b, c.CA, c.CB
    row.e1, row.e2, row.e1_of, row.e2_of, row.k1, row.k2 = c.e1, c.e2, c.e1_of, c.e2_of, c.k1, c.k2
    row.a0, row.a1, row.a2, row.a_flat, row.a_numbers = fa.p0, fa.p1, fa.p2, fa.k, fa.numbers
    row.b0, row.b1, row.b2, row.b_flat, row.b_numbers = fb.p0, fb.p1, fb.p2, fb.k, fb.numbers


def _put_patch_point(row: Row, A: Solid, B: Solid, point: PatchPoint, held: PatchNormals) -> None:
    """Write the vertices of a patch point and its two sliding directions.

    On a face the directions are in the plane of its polygon; its vertices are in that plane up to the face's unevenness.
    """
    swap = held.cut_a > 0.5
    small = (point.small0, point.small1, point.small2, point.small_flat, point.small_numbers)
    large = (point.large0, point.large1, point.large2, point.large_flat, point.large_numbers)
    row.s0, row.s1, row.s2, row.s_flat, row.s_numbers = (select(swap, x, y) for x, y in zip(small, large, strict=True))
    row.t0, row.t1, row.t2, row.t_flat, row.t_numbers = (select(swap, y, x) for x, y in zip(small, large, strict=True))
    s1, s2 = (A.X.R @ _unit(p - row.s0) for p in (row.s1, row.s2))
    t1, t2 = (B.X.R @ _unit(p - row.t0) for p in (row.t1, row.t2))
    a_face, b_face = row.s_flat > 1.5, row.t_flat > 1.5
    row.f1, row.f1_of = select(b_face, t1, s1), select(b_face, 0.0, 1.0)
    row.f2, row.f2_of = select(a_face, s2, select(b_face, t2, t1)), select(a_face, 1.0, 0.0)
    normal = select(a_face, select(swap, held.n, held.m), select(swap, held.m, held.n))
    row.f1, row.f2 = (select(a_face | b_face, f - normal * dot(normal, f), f) for f in (row.f1, row.f2))


def _unit(v: Vec3) -> Vec3:
    return v / sqrt(maximum(dot(v, v), SHORT))


# -- the adjoint -----------------------------------------------------------------------------------------------------------
_Corners = tuple[Vec3, Vec3, Vec3, Any, Vec3]  # vertices of a feature, its number of flat directions, and their indices


class _Side(NamedTuple):
    """Cotangents on one solid.

    Attributes:
        normal: Contact normal.
        at: Contact point.
        bar: Cotangent of the point.
        turn: Cotangent of the rotation times the normal.
        radius: Cotangent of the radius.
        mu1, mu2: Multipliers of the normal's constraints along the first and second edge.
    """

    normal: Vec3
    at: Vec3
    bar: Vec3
    turn: Vec3
    radius: Any = 0.0
    mu1: Any = 0.0
    mu2: Any = 0.0


def _witness_sides(row: Row, ra: Any, rb: Any, y_bar: ContactGeometry) -> tuple[_Side, _Side]:
    """Cotangents on both solids from that of the nearest points."""
    n = row.w
    c = Witness(n, row.g, row.a, row.b, row.CA, row.CB, row.e1, row.e2, row.k1, row.k2, row.e1_of, row.e2_of)
    along = y_bar.phi + 0.5 * dot(n, y_bar.p)
    z = y_bar.n + y_bar.p * (ra + 0.5 * (row.g - ra - rb)) + c.CA @ y_bar.p
    z = z - n * dot(n, z)
    seen = [dot(e, y_bar.p) * of * k for e, of, k in ((c.e1, c.e1_of, c.k1), (c.e2, c.e2_of, c.k2))]
    y, m1, m2 = solve(c, z, *seen)
    m1, m2 = m1 * c.k1, m2 * c.k2
    on_b = y + n * along
    turn_a = c.CA @ (y - y_bar.p) + c.e1 * (m1 * c.e1_of) + c.e2 * (m2 * c.e2_of)
    turn_b = c.CB @ y + c.e1 * (m1 * (1.0 - c.e1_of)) + c.e2 * (m2 * (1.0 - c.e2_of))
    face_b = 1.0 - c.e1_of  # else B's edge is second
    one = _Side(n, c.a, y_bar.p - on_b, turn_a, dot(n, y_bar.p) - along, m1 * c.e1_of, m2 * c.e2_of)
    return one, _Side(n, c.b, on_b, turn_b, -along, m1 * face_b + m2 * (1.0 - c.e2_of) * c.e1_of, m2 * face_b)


class _PatchBars(NamedTuple):
    """Cotangents of a patch point: on both solids, of its normal n, of the clipping face's normal m, and of the witness
    normal
    w."""

    one: _Side
    other: _Side
    n: Vec3
    m: Vec3
    w: Vec3


def _patch_bars(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> _PatchBars:
    """Cotangents of a patch point.

    With a on the clipping face, b on the other solid above it along m, and s their distance: phi = n . (b - a), p = a + n
    phi/2  (theory 6.10). The line of a capsule or cylinder is the one on the side of w.
    """
    n, m, w, by_a, side = row.n, row.m, row.w, row.by_a > 0.5, 2.0 * row.by_a - 1.0
    s = row.phi / dot(n, m)
    press = y_bar.phi + side * 0.5 * dot(n, y_bar.p)
    cut_bar = n * (press * side)
    face_bar, face = y_bar.p - cut_bar, row.p - n * (0.5 * side * row.phi)
    cut = face + m * (side * s)
    (a, b), (a_bar, b_bar) = ((select(by_a, x, y), select(by_a, y, x)) for x, y in ((face, cut), (face_bar, cut_bar)))
    y = slip(row, m, a_bar, b_bar)
    a_bar, b_bar = a_bar - y, b_bar + y
    bent_a, bent_b = _bent(A, row.CA, row.a_line, a_bar), _bent(B, row.CB, row.b_line, b_bar)
    return _PatchBars(
        _Side(w, a, a_bar, -bent_a, dot(_across(A, w), a_bar)),
        _Side(w, b, b_bar, bent_b, -dot(_across(B, w), b_bar)),
        y_bar.n + y_bar.p * (0.5 * side * row.phi) + m * (press * s),
        y * -s,
        bent_a - bent_b,
    )


def _across(s: Solid, x: Vec3) -> Vec3:
    """Part of x across the axis of a solid."""
    axis = s.X.R.column(2)
    return x - axis * dot(axis, x)


def _bent(s: Solid, curvature: Mat3, line: Any, bar: Vec3) -> Vec3:
    """Cotangent of the normal from that of a point on the line of a capsule or cylinder on the normal's side."""
    none: dict[int, Callable[[], Vec3]] = {k: lambda: ZERO for k in SOLIDS}
    lines = {CAPSULE: lambda: _across(s, bar) * s.size.x, CYLINDER: lambda: (curvature @ bar) * line}
    return s.by_kind(none | lines)


def _tilts(row: Row, bars: _PatchBars) -> tuple[Vec3, Vec3]:
    """Cotangents of the normals of the touching faces of A and B, directed from A to B."""
    by_a, two = row.by_a > 0.5, row.patch > 1.5
    cuts, cut = bars.m + select(two, ZERO, bars.n), select(two, bars.n, ZERO)
    return select(by_a, cuts, cut), select(by_a, cut, cuts)


def _face_normals(row: Row) -> tuple[Vec3, Vec3]:
    """Normals of the touching faces of A and B, directed from A to B."""
    by_a = row.by_a > 0.5
    return select(by_a, row.m, row.n), select(by_a, row.n, row.m)


def _sides(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> tuple[list[_Side], list[_Side], tuple[Vec3, Vec3]]:
    """Return the contributions of nearest points, patch point and face tilts on A, on B, and the cotangents of face normals."""
    bars = _patch_bars(A, B, row, _where(row.patch > 0.5, y_bar))
    rest, tilts = _where(row.patch < 0.5, y_bar), _tilts(row, bars)
    tilt_a, tilt_b = (_Side(n, s.X.r, ZERO, tilt) for s, n, tilt in zip((A, B), _face_normals(row), tilts, strict=True))
    a, b = _witness_sides(row, A.radius, B.radius, ContactGeometry(rest.phi, rest.p, rest.n + bars.w, ZERO))
    return [a, bars.one, tilt_a], [b, bars.other, tilt_b], tilts


def _where(mask: Any, y_bar: ContactGeometry) -> ContactGeometry:
    """Return y_bar where the mask is true, else zero."""
    return select(mask, y_bar, ContactGeometry.zero())


def _size_bar(s: Solid, side: _Side, n: Vec3) -> Vec3:
    """Cotangent of the size from that of a core point at a fixed outward normal n, and from that of the radius."""
    z, at, w, l = s.size, s.to_own(side.at), s.X.R.T @ side.bar, s.X.R.T @ n

    def ellipsoid() -> Vec3:
        k = l.map(lambda x, a: x * a, z)
        square = dot(k, k)
        N, pressed = sqrt(square), dot(at, w)
        return z.map(lambda a, x, y: 2.0 * a * x * y / N - pressed * a * x * x / square, l, w)

    return s.by_kind(
        {
            SPHERE: lambda: Vec3(side.radius, 0.0, 0.0),
            CAPSULE: lambda: Vec3(side.radius, at.z / z.y * w.z, 0.0),
            ELLIPSOID: ellipsoid,
            CYLINDER: lambda: Vec3((at.x * w.x + at.y * w.y) / z.x, at.z / z.y * w.z, 0.0),
            BOX: lambda: z.map(lambda a, x, y: x / a * y, at, w),
            POINTS: lambda: ZERO,
        }
    )


def convex_vjp(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """Cotangents of poses and sizes of both solids from that of one point."""
    return _pair_bars(A, B, _sides(A, B, row, y_bar)[:2])


def witness_vjp(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """The adjoint without contact patches."""
    a, b = _witness_sides(row, A.radius, B.radius, y_bar)
    return _pair_bars(A, B, ([a], [b]))


def _pair_bars(A: Solid, B: Solid, both: tuple[list[_Side], list[_Side]]) -> PairBars:
    """Sum the contributions of all sides to the cotangents of poses and sizes."""
    bars = list[tuple[Force, Vec3]]()
    for s, sides, sign in zip((A, B), both, (1.0, -1.0), strict=True):
        pose_bar, size_bar = Force.zero(), ZERO
        for side in sides:
            pose_bar = pose_bar + point_to_pose_bar(side.at, side.bar) + Force(cross(side.normal, side.turn), ZERO)
            size_bar = size_bar + _size_bar(s, side, side.normal * sign)
        bars.append((pose_bar, size_bar))
    (A_bar, size_a), (B_bar, size_b) = bars
    return PairBars(A_bar, size_a, B_bar, size_b, ZERO)


def corner_bars(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> tuple[CornerBars, CornerBars]:
    """Cotangents of the vertices of both solids.

    A point is a mean of its vertices, or is on the plane of a face, whose normal is that of its vector area. Edges that
    determine the normal rotate it as their ends move.
    """
    of_a, of_b, tilts = _sides(A, B, row, y_bar)
    own, faces, out = _patch_corners(row), (row.a_face, row.b_face), list[CornerBars]()
    for k, (s, sides, sign) in enumerate(zip((A, B), (of_a, of_b), (1.0, -1.0), strict=True)):
        witness, point, _tilt = sides
        p0, p1, p2, flat, numbers = own[k]
        normal, on_face = _face_normals(row)[k], flat > 1.5
        push = dot(normal, point.bar)
        leant = select(on_face, (point.at - s.to_world(p0)) * -push, ZERO)
        pressed = point._replace(bar=select(on_face, normal * push, point.bar))
        single = select(on_face, 0.0, flat)  # on a face, the first vertex represents the plane
        corners = [_witness_corners(row)[k], (p0, p1, p2, single, numbers)]
        bars = _corners_of(s, [witness, pressed], corners)
        out.append(bars._replace(face=faces[k], normal_bar=s.X.R.T @ (tilts[k] + leant) * sign))
    return out[0], out[1]


def witness_corner_bars(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> tuple[CornerBars, CornerBars]:
    """Cotangents of the vertices of both solids, without contact patches."""
    (a, b), (of_a, of_b) = _witness_sides(row, A.radius, B.radius, y_bar), _witness_corners(row)
    return _corners_of(A, [a], [of_a]), _corners_of(B, [b], [of_b])


def _witness_corners(row: Row) -> tuple[_Corners, _Corners]:
    """Vertices of the features of the nearest points."""
    return (row.a0, row.a1, row.a2, row.a_flat, row.a_numbers), (row.b0, row.b1, row.b2, row.b_flat, row.b_numbers)


def _patch_corners(row: Row) -> tuple[_Corners, _Corners]:
    """Vertices of the sliding directions of a patch point."""
    return (row.s0, row.s1, row.s2, row.s_flat, row.s_numbers), (row.t0, row.t1, row.t2, row.t_flat, row.t_numbers)


def _corners_of(s: Solid, sides: list[_Side], own: list[_Corners]) -> CornerBars:
    """Cotangents of the vertices of one solid."""
    at, bars, numbers = list[Vec3](), list[Vec3](), list[Any]()
    for side, (p0, p1, p2, flat, of) in zip(sides, own, strict=True):
        w, n = s.X.R.T @ side.bar, s.X.R.T @ side.normal
        s1, s2 = weights(s.to_own(side.at) - p0, p1 - p0, p2 - p0, flat)
        d1, d2 = (sqrt(maximum(dot(d, d), SHORT)) for d in (p1 - p0, p2 - p0))
        turn1, turn2 = n * (-side.mu1 / d1), n * (-side.mu2 / d2)
        at += [p0, p1, p2]
        numbers += of.leaves()
        bars += [w * (1.0 - s1 - s2) - turn1 - turn2, w * s1 + turn1, w * s2 + turn2]
    return CornerBars(tuple(at), tuple(bars), tuple(numbers))
