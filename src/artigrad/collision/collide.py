"""Stage 3: the gap of one candidate, and the way back to poses and sizes of its two shapes.

Each pair of shapes is one routine with its adjoint, in the table at the end. Geometry is done about the origin of B's
tree, so that numbers stay the size of the robot.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..spatial import Force, Transform, Vec3, cross, dot
from ..staging import sqrt, switch
from .box import box_ball, box_ball_vjp
from .candidates import (
    BOX_SPHERE,
    CAPSULE_CAPSULE,
    CAPSULE_SPHERE,
    PLANE_BOX,
    PLANE_CAPSULE,
    PLANE_CYLINDER,
    PLANE_POINT,
    PLANE_SPHERE,
    SPHERE_SPHERE,
)
from .capsule import Closest, between_segments, between_segments_vjp, on_segment, on_segment_vjp
from .gap import Gap
from .plane import plane_ball, plane_ball_vjp
from .sphere import ball_ball, ball_ball_vjp


class Pair(NamedTuple):
    """Two shapes in their places."""

    A: Transform
    size_a: Vec3
    B: Transform
    size_b: Vec3


class Point(NamedTuple):
    """The point of B that meets a plane: `feature` times B's lengths, or `vertex()`."""

    feature: Vec3
    vertex: Callable[[], Vec3]


class PairBars(NamedTuple):
    """Cotangents of a pair: of the poses as forces of a rigid motion (about the common origin), and of lengths."""

    A: Force
    size_a: Vec3
    B: Force
    size_b: Vec3
    vertex: Vec3


def distance(kind: Any, place: Callable[[], Pair], radius_a: Any, radius_b: Any) -> Any:
    """A lower bound of the gap, by the spheres around the shapes; for spheres themselves the gap is as cheap."""

    def from_plane() -> Any:
        A, _, B, _ = place()
        return dot(A.R.column(2), B.r - A.r) - radius_b

    def between() -> Any:
        A, _, B, _ = place()
        apart = B.r - A.r
        return sqrt(dot(apart, apart)) - radius_a - radius_b

    bounds = {k: from_plane if k in FEATURES else between for k in ROUTINES}
    return switch(kind, bounds | dict.fromkeys((PLANE_SPHERE, SPHERE_SPHERE), lambda: -FAR))


def gap(kind: Any, pair: Pair, point: Point) -> Gap:
    """How far apart the shapes of a pair are, where, and in which direction."""
    return switch(kind, {k: partial(r.forward, pair, point) for k, r in ROUTINES.items()})


def gap_vjp(kind: Any, pair: Pair, point: Point, y_bar: Gap) -> PairBars:
    """The cotangents of a pair for that of its gap."""
    return PairBars(*switch(kind, {k: partial(_plain, r.vjp, pair, point, y_bar) for k, r in ROUTINES.items()}))


def _plain(vjp: Callable[[Pair, Point, Gap], PairBars], pair: Pair, point: Point, y_bar: Gap) -> tuple[Any, ...]:
    return tuple(vjp(pair, point, y_bar))


def _at(x: Vec3, x_bar: Vec3) -> Force:
    """What the cotangent of a point of a body is for the body's pose."""
    return Force(cross(x, x_bar), x_bar)


def _turned(u: Vec3, u_bar: Vec3) -> Force:
    """What the cotangent of an axis of a body is for the body's pose."""
    return Force(cross(u, u_bar), Vec3.zero())


ZERO = Vec3.zero()
FAR = 1e9  # m


# -- planes --------------------------------------------------------------------------------------------------------------
class Feature(NamedTuple):
    """The point of a shape that may meet a plane, in its own frame, and its radius; and the way back to its lengths."""

    place: Callable[[Pair, Point], tuple[Vec3, Any]]
    back: Callable[[Pair, Point, Vec3, Any], tuple[Vec3, Vec3]]  # (size_bar, vertex_bar)


FEATURES = {
    PLANE_SPHERE: Feature(
        lambda p, at: (ZERO, p.size_b.x),
        lambda p, at, l, r: (Vec3(r, 0.0, 0.0), ZERO),
    ),
    PLANE_CAPSULE: Feature(
        lambda p, at: (Vec3(0.0, 0.0, at.feature.z * p.size_b.y), p.size_b.x),
        lambda p, at, l, r: (Vec3(r, at.feature.z * l.z, 0.0), ZERO),
    ),
    PLANE_BOX: Feature(
        lambda p, at: (at.feature.map(lambda f, s: f * s, p.size_b), 0.0),
        lambda p, at, l, r: (at.feature.map(lambda f, x: f * x, l), ZERO),
    ),
    PLANE_CYLINDER: Feature(
        lambda p, at: (Vec3(at.feature.x * p.size_b.x, at.feature.y * p.size_b.x, at.feature.z * p.size_b.y), 0.0),
        lambda p, at, l, r: (Vec3(at.feature.x * l.x + at.feature.y * l.y, at.feature.z * l.z, 0.0), ZERO),
    ),
    PLANE_POINT: Feature(lambda p, at: (at.vertex(), 0.0), lambda p, at, l, r: (ZERO, l)),
}


def plane_feature(feature: Feature, pair: Pair, point: Point) -> Gap:
    l, r = feature.place(pair, point)
    return plane_ball(pair.A.r, pair.A.R.column(2), pair.B.r + pair.B.R @ l, r)


def plane_feature_vjp(feature: Feature, pair: Pair, point: Point, y_bar: Gap) -> PairBars:
    A, B = pair.A, pair.B
    l, r = feature.place(pair, point)
    n, c = A.R.column(2), B.r + B.R @ l
    o_bar, n_bar, c_bar, r_bar = plane_ball_vjp(A.r, n, c, r, y_bar)
    size_bar, vertex_bar = feature.back(pair, point, B.R.T @ c_bar, r_bar)
    return PairBars(_at(A.r, o_bar) + _turned(n, n_bar), ZERO, _at(c, c_bar), size_bar, vertex_bar)


# -- spheres, capsules, boxes ----------------------------------------------------------------------------------------------
def sphere_sphere(p: Pair, at: Point) -> Gap:
    return ball_ball(p.A.r, p.size_a.x, p.B.r, p.size_b.x)


def sphere_sphere_vjp(p: Pair, at: Point, y_bar: Gap) -> PairBars:
    a, ra, b, rb = ball_ball_vjp(p.A.r, p.size_a.x, p.B.r, p.size_b.x, y_bar)
    return PairBars(_at(p.A.r, a), Vec3(ra, 0.0, 0.0), _at(p.B.r, b), Vec3(rb, 0.0, 0.0), ZERO)


def _axis(X: Transform, size: Vec3) -> tuple[Vec3, Vec3]:
    """First end and direction of a capsule's axis."""
    l = X.R.column(2) * size.y
    return X.r - l, l + l


def _axis_back(X: Transform, size: Vec3, a: Vec3, e: Vec3) -> tuple[Force, Any]:
    """Pose and half length from the cotangents of the axis' first end and direction."""
    z = X.R.column(2)
    l_bar = e + e - a
    half_bar = z.x * l_bar.x + z.y * l_bar.y + z.z * l_bar.z
    return _at(X.r, a) + _turned(z, l_bar * size.y), half_bar


def capsule_sphere(p: Pair, at: Point) -> Gap:
    return ball_ball(on_segment(*_axis(p.A, p.size_a), p.B.r), p.size_a.x, p.B.r, p.size_b.x)


def capsule_sphere_vjp(p: Pair, at: Point, y_bar: Gap) -> PairBars:
    a, e = _axis(p.A, p.size_a)
    x = on_segment(a, e, p.B.r)
    x_bar, ra_bar, c_bar, rb_bar = ball_ball_vjp(x, p.size_a.x, p.B.r, p.size_b.x, y_bar)
    a_bar, e_bar, more = on_segment_vjp(a, e, p.B.r, x_bar)
    A_bar, half_bar = _axis_back(p.A, p.size_a, a_bar, e_bar)
    return PairBars(A_bar, Vec3(ra_bar, half_bar, 0.0), _at(p.B.r, c_bar + more), Vec3(rb_bar, 0.0, 0.0), ZERO)


def capsule_capsule(p: Pair, at: Point) -> Gap:
    near = between_segments(*_axis(p.A, p.size_a), *_axis(p.B, p.size_b))
    return ball_ball(near.x, p.size_a.x, near.y, p.size_b.x)


def capsule_capsule_vjp(p: Pair, at: Point, y_bar: Gap) -> PairBars:
    (a, e), (b, f) = _axis(p.A, p.size_a), _axis(p.B, p.size_b)
    near = between_segments(a, e, b, f)
    x_bar, ra_bar, z_bar, rb_bar = ball_ball_vjp(near.x, p.size_a.x, near.y, p.size_b.x, y_bar)
    a_bar, e_bar, b_bar, f_bar = between_segments_vjp(a, e, b, f, Closest(x_bar, z_bar))
    A_bar, half_a = _axis_back(p.A, p.size_a, a_bar, e_bar)
    B_bar, half_b = _axis_back(p.B, p.size_b, b_bar, f_bar)
    return PairBars(A_bar, Vec3(ra_bar, half_a, 0.0), B_bar, Vec3(rb_bar, half_b, 0.0), ZERO)


def box_sphere(p: Pair, at: Point) -> Gap:
    found = box_ball(p.size_a, p.A.R.T @ (p.B.r - p.A.r), p.size_b.x)
    return Gap(found.phi, p.A.r + p.A.R @ found.p, p.A.R @ found.n)


def box_sphere_vjp(p: Pair, at: Point, y_bar: Gap) -> PairBars:
    A, R = p.A, p.A.R
    c = R.T @ (p.B.r - A.r)
    own = box_ball(p.size_a, c, p.size_b.x)
    local = Gap(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n)
    h_bar, c_bar, r_bar = box_ball_vjp(p.size_a, c, p.size_b.x, local)
    centre_bar = R @ c_bar
    turn = R @ (cross(own.p, local.p) + cross(own.n, local.n) + cross(c_bar, c))
    A_bar = _at(A.r, y_bar.p - centre_bar) + Force(turn, Vec3.zero())
    return PairBars(A_bar, h_bar, _at(p.B.r, centre_bar), Vec3(r_bar, 0.0, 0.0), ZERO)


class Routine(NamedTuple):
    forward: Callable[[Pair, Point], Gap]
    vjp: Callable[[Pair, Point, Gap], PairBars]


ROUTINES: dict[int, Routine] = {
    **{k: Routine(partial(plane_feature, f), partial(plane_feature_vjp, f)) for k, f in FEATURES.items()},
    SPHERE_SPHERE: Routine(sphere_sphere, sphere_sphere_vjp),
    CAPSULE_SPHERE: Routine(capsule_sphere, capsule_sphere_vjp),
    CAPSULE_CAPSULE: Routine(capsule_capsule, capsule_capsule_vjp),
    BOX_SPHERE: Routine(box_sphere, box_sphere_vjp),
}
