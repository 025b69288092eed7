"""Capsule against sphere and capsule: the closest points of segments  (theory 6.3, 6.4).

Where a closest point sits at the end of its segment, its parameter is constant. Parallel segments touch at two points, the
ends of the stretch along which they lie side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Linear, clamp, minimum, select, sqrt, target, vjp_of
from ...spatial import Force, Vec3, cross, dot, norm
from ..gap import ASIDE, FAR, ZERO, Gap, PairBars, Pose, least_of, moved, turned
from .sphere import ball_ball, ball_ball_vjp

PARALLEL = {"f64": 1e-9, "f32": 1e-5}  # of the squared sine of the angle between two axes; below, rounding decides


def _inside(s: Any) -> Any:
    """1 where 0 < s < 1, else 0."""
    return select(s > 0.0, select(s < 1.0, 1.0, 0.0), 0.0)


def on_segment(a: Vec3, e: Vec3, x: Vec3) -> Vec3:
    """The point of the segment a + s e, 0 <= s <= 1, that is closest to x."""
    return a + e * clamp(dot(x - a, e) / dot(e, e), 0.0, 1.0)


@vjp_of(on_segment)
def on_segment_vjp(a: Vec3, e: Vec3, x: Vec3, y_bar: Vec3) -> tuple[Vec3, Vec3, Vec3]:
    t, E = x - a, dot(e, e)
    s = clamp(dot(t, e) / E, 0.0, 1.0)
    s_bar = dot(y_bar, e) * _inside(s) / E
    x_bar = e * s_bar
    return y_bar - x_bar, y_bar * s + (t - e * (2.0 * s)) * s_bar, x_bar


class Closest(Linear):
    """Two points of two segments."""

    x: Vec3
    y: Vec3


class _Parameters(NamedTuple):
    """Of two points a + s e and b + t f: where they are, 1 for those that are not held at an end, and parallel segments."""

    s: Any
    t: Any
    free_s: Any
    free_t: Any
    parallel: Any


def _parameters(a: Vec3, e: Vec3, b: Vec3, f: Vec3, end: Any) -> _Parameters:
    """Of the closest points; of parallel segments, of one end of the stretch where they lie side by side: that with the first
    (end = 0) or the last (1) point of b + t f."""
    r = a - b
    A, F, c, g, h = dot(e, e), dot(f, f), dot(e, r), dot(f, r), dot(e, f)
    det = A * F - h * h
    parallel = det <= PARALLEL[target().dtype] * (A * F)
    s = clamp((h * g - c * F) / select(parallel, 1.0, det), 0.0, 1.0)
    t = (h * s + g) / F
    s = select(t < 0.0, clamp(-c / A, 0.0, 1.0), select(t > 1.0, clamp((h - c) / A, 0.0, 1.0), s))
    # ends of parallel segments above each other: as if the second were moved along itself
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
    """The closest points of a + s e and b + t f; of parallel ones, those at one end of where they lie side by side."""
    at = _parameters(a, e, b, f, end)
    return Closest(a + e * at.s, b + f * at.t)


@vjp_of(between_segments)
def between_segments_vjp(
    a: Vec3, e: Vec3, b: Vec3, f: Vec3, end: float, y_bar: Closest
) -> tuple[Vec3, Vec3, Vec3, Vec3, float]:
    """The free parameters solve H (s, t) = ... with H = [A -h; -h F]; w = -H^-1 (s_bar, t_bar) on the free ones."""
    at = _parameters(a, e, b, f, end)
    s, t, free_s, free_t = at.s, at.t, at.free_s, at.free_t
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
    """First end and direction of a capsule's axis."""
    l = X.R.column(2) * size.y
    return X.r - l, l + l


def _axis_vjp(X: Pose, size: Vec3, a: Vec3, e: Vec3) -> tuple[Force, Any]:
    """Pose and half length from the cotangents of the axis' first end and direction."""
    z = X.R.column(2)
    l_bar = e + e - a
    half_bar = z.x * l_bar.x + z.y * l_bar.y + z.z * l_bar.z
    return moved(X.r, a) + turned(z, l_bar * size.y), half_bar


def capsule_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    return ball_ball(on_segment(*_axis(A, size_a), B.r), size_a.x, B.r, size_b.x)


@vjp_of(capsule_sphere)
def capsule_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    a, e = _axis(A, size_a)
    x = on_segment(a, e, B.r)
    x_bar, ra_bar, c_bar, rb_bar = ball_ball_vjp(x, size_a.x, B.r, size_b.x, y_bar)
    a_bar, e_bar, more = on_segment_vjp(a, e, B.r, x_bar)
    A_bar, half_bar = _axis_vjp(A, size_a, a_bar, e_bar)
    return PairBars(A_bar, Vec3(ra_bar, half_bar, 0.0), moved(B.r, c_bar + more), Vec3(rb_bar, 0.0, 0.0), ZERO)


def capsule_sphere_room(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Any:
    """To where the ball is over an end of the axis, or on it."""
    a, e = _axis(A, size_a)
    return minimum(_from_ends(dot(B.r - a, e) / dot(e, e), e), norm(B.r - on_segment(a, e, B.r)))


def _from_ends(s: Any, e: Vec3) -> Any:
    """How far a + s e is from both ends of the segment, on its line."""
    return minimum(abs(s), abs(1.0 - s)) * norm(e)


def capsule_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at.x = 0: the closest points. Parallel ones have a second point, at.x = 1."""
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near = between_segments(a, e, b, f, at.x)
    met = ball_ball(near.x, size_a.x, near.y, size_b.x)
    there = select(_parameters(a, e, b, f, at.x).parallel, 0.0, at.x) < 0.5
    return Gap(select(there, met.phi, FAR), met.p, met.n, ZERO)


@vjp_of(capsule_capsule)
def capsule_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near = between_segments(a, e, b, f, at.x)
    there = select(_parameters(a, e, b, f, at.x).parallel, 0.0, at.x) < 0.5
    seen = Gap(select(there, y_bar.phi, 0.0), y_bar.p, y_bar.n, ZERO)
    x_bar, ra_bar, z_bar, rb_bar = ball_ball_vjp(near.x, size_a.x, near.y, size_b.x, seen)
    a_bar, e_bar, b_bar, f_bar, _ = between_segments_vjp(a, e, b, f, at.x, Closest(x_bar, z_bar))
    A_bar, half_a = _axis_vjp(A, size_a, a_bar, e_bar)
    B_bar, half_b = _axis_vjp(B, size_b, b_bar, f_bar)
    return PairBars(A_bar, Vec3(ra_bar, half_a, 0.0), B_bar, Vec3(rb_bar, half_b, 0.0), ZERO)


def capsule_capsule_room(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Any:
    """To where a point comes to an end of its axis or leaves it, where the axes meet, and where they are parallel."""
    (a, e), (b, f) = _axis(A, size_a), _axis(B, size_b)
    near, r, A2, F2 = _parameters(a, e, b, f, at.x), a - b, dot(e, e), dot(f, f)
    s, t = (dot(e, f) * near.t - dot(e, r)) / A2, (dot(e, f) * near.s + dot(f, r)) / F2  # each the best for the other
    ends = minimum(_from_ends(s, e), _from_ends(t, f))
    last = select(at.x < 0.5, 0.0, 1.0)
    beside = (dot(e, f) * last - dot(e, r)) / A2  # of parallel axes, next to the end of B that counts
    of_parallel = minimum(_from_ends(beside, e), select(_inside(beside) > 0.5, FAR, _from_ends(t, f)))
    ends = select(near.parallel, of_parallel, ends)
    apart = norm(r + e * near.s - f * near.t)
    parallel = abs(norm(cross(e, f)) / sqrt(A2 * F2) - PARALLEL[target().dtype] ** 0.5) * sqrt(minimum(A2, F2))
    return least_of(ends, apart, parallel)
