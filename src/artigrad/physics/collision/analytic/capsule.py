"""Capsule with sphere or capsule: closest points of segments  (theory 6.3, 6.4).

The parameter of a closest point at the end of its segment is constant. Parallel segments touch at two points, the ends of
the interval in which they are side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Linear, clamp, minimum, select, sqrt, target, vjp_of
from ...spatial import Force, Vec3, cross, dot, norm
from ..contact_geometry import (
    ASIDE,
    FAR,
    ZERO,
    ContactGeometry,
    PairBars,
    Pose,
    axis_to_pose_bar,
    least_of,
    point_to_pose_bar,
)
from .sphere import ball_ball, ball_ball_vjp

PARALLEL = {"f64": 1e-9, "f32": 1e-5}  # squared sine of the angle between two axes below which rounding decides


def _inside(s: Any) -> Any:
    """Return 1 where 0 < s < 1, else 0."""
    return select(s > 0.0, select(s < 1.0, 1.0, 0.0), 0.0)


def on_segment(a: Vec3, e: Vec3, x: Vec3) -> Vec3:
    """Return the point of the segment a + s e, 0 <= s <= 1, that is closest to x."""
    return a + e * clamp(dot(x - a, e) / dot(e, e), 0.0, 1.0)


@vjp_of(on_segment)
def on_segment_vjp(a: Vec3, e: Vec3, x: Vec3, y_bar: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    """Adjoint of `on_segment`."""
    t, E = x - a, dot(e, e)
    s = clamp(dot(t, e) / E, 0.0, 1.0)
    s_bar = dot(y_bar, e) * _inside(s) / E
    x_bar = e * s_bar
    return y_bar - x_bar, y_bar * s + (t - e * (2.0 * s)) * s_bar, x_bar


class Closest(Linear):
    """Two points, one on each of two segments."""

    x: Vec3
    y: Vec3


class _Parameters(NamedTuple):
    """Parameters s, t of two points a + s e and b + t f; free_s, free_t: 1 if not clamped; parallel: if the segments are."""

    s: Any
    t: Any
    free_s: Any
    free_t: Any
    parallel: Any


def _parameters(a: Vec3, e: Vec3, b: Vec3, f: Vec3, end: Any) -> _Parameters:
    """Parameters of the closest points of two segments.

    Of parallel segments, those of one end of the interval where they are side by side: the end with the first (end = 0) or
    the last (1) point of b + t f.
    """
    r = a - b
    A, F, c, g, h = dot(e, e), dot(f, f), dot(e, r), dot(f, r), dot(e, f)
    det = A * F - h * h
    parallel = det <= PARALLEL[target().dtype] * (A * F)
    s = clamp((h * g - c * F) / select(parallel, 1.0, det), 0.0, 1.0)
    t = (h * s + g) / F
    s = select(t < 0.0, clamp(-c / A, 0.0, 1.0), select(t > 1.0, clamp((h - c) / A, 0.0, 1.0), s))
    # ties of ends of parallel segments: decided as if the second segment were displaced along itself
    aside, last = ASIDE[target().dtype], select(end < 0.5, 0.0, 1.0)
    beside = (h * last - c) / A
    by_end = select(parallel, _inside(beside + select(h < 0.0, -aside, aside) / sqrt(A)), 0.0) > 0.5
    s = select(parallel, clamp(beside, 0.0, 1.0), s)
    t = (h * s + g) / F
    off = t - select(parallel, aside / sqrt(F), 0.0)
    t = clamp(select(by_end, last, t), 0.0, 1.0)
    free_s, free_t = select(parallel, select(by_end, 1.0, 0.0), _inside(s)), select(by_end, 0.0, _inside(off))
    return _Parameters(s, t, free_s, free_t, parallel)


def between_segments(a: Vec3, e: Vec3, b: Vec3, f: Vec3, end: float) -> Closest:
    """Closest points of a + s e and b + t f; of parallel segments, those at one end of the interval side by side."""
    found = _parameters(a, e, b, f, end)
    return Closest(a + e * found.s, b + f * found.t)


@vjp_of(between_segments)
def between_segments_vjp(
    a: Vec3, e: Vec3, b: Vec3, f: Vec3, end: float, y_bar: Closest
) -> tuple[Vec3, Vec3, Vec3, Vec3, float]:
    """Adjoint of `between_segments`.

    The free parameters solve H (s, t) = ... with H = [A -h; -h F]; w = -H^-1 (s_bar, t_bar) on the free ones.
    """
    found = _parameters(a, e, b, f, end)
    s, t, free_s, free_t = found.s, found.t, found.free_s, found.free_t
    A, F, h = dot(e, e), dot(f, f), dot(e, f)
    s_bar, t_bar = dot(y_bar.x, e) * free_s, dot(y_bar.y, f) * free_t
    H_s, H_t, off = A * free_s + (1.0 - free_s), F * free_t + (1.0 - free_t), -(h * free_s * free_t)
    det = H_s * H_t - off * off
    w_s, w_t = (off * t_bar - H_t * s_bar) / det, (off * s_bar - H_s * t_bar) / det
    D = (a - b) + e * s - f * t
    pull = e * w_s - f * w_t  # the cotangent of D
    a_bar, b_bar = y_bar.x + pull, y_bar.y - pull
    return a_bar, y_bar.x * s + pull * s + D * w_s, b_bar, y_bar.y * t - pull * t - D * w_t, 0.0


def _axis(X: Pose, size: Vec3) -> tuple[Vec3, Vec3]:
    """Return the first end and the direction of a capsule's axis."""
    l = X.R.column(2) * size.y
    return X.r - l, l + l


def _axis_vjp(X: Pose, size: Vec3, a: Vec3, e: Vec3) -> tuple[Force, Any]:
    """Cotangents of pose and half length from those of the axis' first end and direction."""
    z = X.R.column(2)
    l_bar = e + e - a
    half_bar = z.x * l_bar.x + z.y * l_bar.y + z.z * l_bar.z
    return point_to_pose_bar(X.r, a) + axis_to_pose_bar(z, l_bar * size.y), half_bar


def capsule_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a capsule and a sphere."""
    return ball_ball(on_segment(*_axis(A, size_a), B.r), size_a.x, B.r, size_b.x)


@vjp_of(capsule_sphere)
def capsule_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `capsule_sphere`."""
    a, e = _axis(A, size_a)
    x = on_segment(a, e, B.r)
    x_bar, ra_bar, c_bar, rb_bar = ball_ball_vjp(x, size_a.x, B.r, size_b.x, y_bar)
    a_bar, e_bar, more = on_segment_vjp(a, e, B.r, x_bar)
    A_bar, half_bar = _axis_vjp(A, size_a, a_bar, e_bar)
    return PairBars(
        A_bar, Vec3(ra_bar, half_bar, 0.0), point_to_pose_bar(B.r, c_bar + more), Vec3(rb_bar, 0.0, 0.0), ZERO
    )


def capsule_sphere_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Distance to the ball being over an end of the axis, or on the axis."""
    a, e = _axis(A, size_a)
    return minimum(_from_ends(dot(B.r - a, e) / dot(e, e), e), norm(B.r - on_segment(a, e, B.r)))


def _from_ends(s: Any, e: Vec3) -> Any:
    """Distance of a + s e from the nearer end of the segment, on its line."""
    return minimum(abs(s), abs(1.0 - s)) * norm(e)


def capsule_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of two capsules. feature.x = 0: the closest points; 1: the second point of parallel ones."""
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near = between_segments(a, e, b, f, feature.x)
    contact = ball_ball(near.x, size_a.x, near.y, size_b.x)
    there = select(_parameters(a, e, b, f, feature.x).parallel, 0.0, feature.x) < 0.5
    return ContactGeometry(select(there, contact.phi, FAR), contact.p, contact.n, ZERO)


@vjp_of(capsule_capsule)
def capsule_capsule_vjp(
    A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry
) -> PairBars:
    """Adjoint of `capsule_capsule`."""
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near = between_segments(a, e, b, f, feature.x)
    there = select(_parameters(a, e, b, f, feature.x).parallel, 0.0, feature.x) < 0.5
    seen = ContactGeometry(select(there, y_bar.phi, 0.0), y_bar.p, y_bar.n, ZERO)
    x_bar, ra_bar, z_bar, rb_bar = ball_ball_vjp(near.x, size_a.x, near.y, size_b.x, seen)
    a_bar, e_bar, b_bar, f_bar, _ = between_segments_vjp(a, e, b, f, feature.x, Closest(x_bar, z_bar))
    A_bar, half_a = _axis_vjp(A, size_a, a_bar, e_bar)
    B_bar, half_b = _axis_vjp(B, size_b, b_bar, f_bar)
    return PairBars(A_bar, Vec3(ra_bar, half_a, 0.0), B_bar, Vec3(rb_bar, half_b, 0.0), ZERO)


def capsule_capsule_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Distance to a point reaching or leaving an end of its axis, to intersecting axes, and to parallel axes."""
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near, r, A2, F2 = _parameters(a, e, b, f, feature.x), a - b, dot(e, e), dot(f, f)
    s, t = (dot(e, f) * near.t - dot(e, r)) / A2, (dot(e, f) * near.s + dot(f, r)) / F2  # each optimal for the other
    ends = minimum(_from_ends(s, e), _from_ends(t, f))
    last = select(feature.x < 0.5, 0.0, 1.0)
    beside = (dot(e, f) * last - dot(e, r)) / A2  # parallel axes: parameter beside the end of B that counts
    of_parallel = minimum(_from_ends(beside, e), select(_inside(beside) > 0.5, FAR, _from_ends(t, f)))
    ends = select(near.parallel, of_parallel, ends)
    apart = norm(r + e * near.s - f * near.t)
    parallel = abs(norm(cross(e, f)) / sqrt(A2 * F2) - PARALLEL[target().dtype] ** 0.5) * sqrt(minimum(A2, F2))
    return least_of(ends, apart, parallel)
