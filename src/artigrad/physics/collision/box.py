"""Sphere and capsule against box, in the box's own axes  (theory 6.5).

Outside, the closest point of the box; inside, the nearest face. On the planes where the nearest face changes, and along
edges and corners, the normal is not differentiable. A capsule touches with two balls on its axis: the one nearest to the box,
and the far end of what lies over the same face.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...spatial import Force, Vec3, cross, dot
from ...staging import clamp, maximum, minimum, select, sqrt, target, vjp_of
from .gap import FAR, ZERO, Gap, PairBars, Pose, moved, turned


def _sign(x: Any) -> Any:
    return select(x < 0.0, -1.0, 1.0)


def _setting(h: Vec3, c: Vec3) -> tuple[Vec3, Vec3, Any, Vec3, Any]:
    """(closest point k, which axes are clamped, whether outside, normal, distance of the centre to the surface)"""
    k = c.map(lambda x, b: clamp(x, -b, b), h)
    clamped = c.map(lambda x, b: select(abs(x) > b, 1.0, 0.0), h)
    d = c - k
    L2 = dot(d, d)
    outside = L2 > 0.0
    L = sqrt(select(outside, L2, 1.0))
    depth = h.map(lambda b, x: b - abs(x), c)  # to each face, if inside
    x_first = select(depth.x < depth.y, select(depth.x < depth.z, 1.0, 0.0), 0.0)
    y_first = (1.0 - x_first) * select(depth.y < depth.z, 1.0, 0.0)
    face = Vec3(x_first * _sign(c.x), y_first * _sign(c.y), (1.0 - x_first - y_first) * _sign(c.z))
    least = x_first * depth.x + y_first * depth.y + (1.0 - x_first - y_first) * depth.z
    return k, clamped, outside, select(outside, d / L, face), select(outside, L, -least)


def box_ball(h: Vec3, c: Vec3, r: float) -> Gap:
    """A box with half sizes h at the origin and a ball at c."""
    k, _, outside, n, distance = _setting(h, c)
    phi = distance - r
    p = select(outside, (k + c - n * r) * 0.5, c - n * (r + 0.5 * phi))
    return Gap(phi, p, n, ZERO)


@vjp_of(box_ball)
def box_ball_vjp(h: Vec3, c: Vec3, r: float, y_bar: Gap) -> tuple[Vec3, Vec3, float]:
    _, clamped, outside, n, distance = _setting(h, c)
    along = dot(n, y_bar.p)
    # outside: only clamped axes turn the normal
    g = y_bar.n - y_bar.p * (0.5 * r)
    L = select(outside, distance, 1.0)
    d_bar = (n * y_bar.phi + (g - n * dot(n, g)) / L).map(lambda x, m: x * m, clamped)
    c_out = y_bar.p.map(lambda x, m, d: x - 0.5 * x * m + d, clamped, d_bar)
    h_out = y_bar.p.map(lambda x, m, d, s: _sign(s) * (0.5 * x * m - d), clamped, d_bar, c)
    # inside: the face's axis alone
    k = y_bar.phi - 0.5 * along
    c_in = y_bar.p + n * k
    h_in = n.map(lambda x: -(abs(x) * k))
    r_bar = select(outside, -(y_bar.phi + 0.5 * along), -(along + k))
    return select(outside, h_out, h_in), select(outside, c_out, c_in), r_bar


class BesideBall(NamedTuple):
    """A solid of some size, in its own axes, and a ball (centre, radius): the gap and its adjoint; and both in the world."""

    ball: Callable[[Vec3, Vec3, Any], Gap]
    ball_vjp: Callable[[Vec3, Vec3, Any, Gap], tuple[Vec3, Vec3, Any]]

    def sphere(self, A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Gap:
        found = self.ball(size_a, A.R.T @ (B.r - A.r), size_b.x)
        return Gap(found.phi, A.r + A.R @ found.p, A.R @ found.n, ZERO)

    def sphere_vjp(self, A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, y_bar: Gap) -> PairBars:
        R = A.R
        c = R.T @ (B.r - A.r)
        own = self.ball(size_a, c, size_b.x)
        local = Gap(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n, ZERO)
        h_bar, c_bar, r_bar = self.ball_vjp(size_a, c, size_b.x, local)
        centre_bar = R @ c_bar
        turn = R @ (cross(own.p, local.p) + cross(own.n, local.n) + cross(c_bar, c))
        A_bar = moved(A.r, y_bar.p - centre_bar) + Force(turn, Vec3.zero())
        return PairBars(A_bar, h_bar, moved(B.r, centre_bar), Vec3(r_bar, 0.0, 0.0), ZERO)


BOX = BesideBall(box_ball, box_ball_vjp)


def box_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    return BOX.sphere(A, size_a, B, size_b)


@vjp_of(box_sphere)
def box_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    return BOX.sphere_vjp(A, size_a, B, size_b, y_bar)


# -- capsule ---------------------------------------------------------------------------------------------------------------
LEVEL = {"f64": 1e-14, "f32": 1e-8}  # m^2, slope of the squared distance that counts as none
SHORT = 1e-6  # of the half length: nearer points of a capsule are one
ALONG = 1e-12  # m, a move across a face that counts as none


def _beyond(h: Vec3, x: Vec3) -> Vec3:
    """From the closest point of the box to x."""
    return x.map(lambda a, b: a - clamp(a, -b, b), h)


def _slabs(h: Vec3, c: Vec3, e: Vec3) -> tuple[Vec3, Vec3]:
    """Where c + t e enters and leaves the slab of each pair of faces."""
    safe = e.map(lambda x: select(abs(x) > ALONG, x, ALONG))
    ends = [c.map(lambda x, b, g, s=s: (s * b - x) / g, h, safe) for s in (-1.0, 1.0)]
    return ends[0].map(minimum, ends[1]), ends[0].map(maximum, ends[1])


class _Ball(NamedTuple):
    """A point c + t e of a capsule's axis: t, 1 where it is held at an end of the axis, and whether it counts."""

    t: Any
    held: Any
    there: Any


def _nearest(h: Vec3, c: Vec3, e: Vec3) -> Any:
    """t of the point c + t e, -1 <= t <= 1, that is nearest to the box.

    The slope of the squared distance rises with t and is linear between the places where a coordinate enters or leaves the
    box. Its zero lies between the last place where it is not positive and the first where it is not negative; where it is
    zero over a stretch (axis and face parallel), the stretch's end is taken.
    """
    level = LEVEL[target().dtype]
    places = [clamp(x, -1.0, 1.0) for end in _slabs(h, c, e) for x in end.leaves()]
    first, last = (dot(_beyond(h, c + e * t), e) for t in (-1.0, 1.0))
    low, low_slope, high, high_slope = -1.0, first, 1.0, last
    for t, slope in [*((t, dot(_beyond(h, c + e * t), e)) for t in places), (1.0, last)]:
        lower = (slope <= level) & (t > low)
        low, low_slope = select(lower, t, low), select(lower, slope, low_slope)
        upper = (slope >= -level) & (t < high)
        high, high_slope = select(upper, t, high), select(upper, slope, high_slope)
    rise = high_slope - low_slope
    root = low - low_slope * (high - low) / select(rise > 0.0, rise, 1.0)
    inside = select(low < high, clamp(root, -1.0, 1.0), low)
    return select(first > level, -1.0, select(last < -level, 1.0, inside))


def _far_end(h: Vec3, c: Vec3, e: Vec3, t: Any) -> tuple[Any, Any]:
    """(s, whether it counts): the other end of what of the axis lies over the face that c + t e is over."""
    out = (c + e * t).map(lambda x, b: abs(x) - b, h)
    x_face = (out.x >= out.y) & (out.x >= out.z)
    x_on = select(x_face, 1.0, 0.0)
    y_on = select(out.y >= out.z, 1.0 - x_on, 0.0)
    over = Vec3(x_on, y_on, 1.0 - x_on - y_on)
    enters, leaves = _slabs(h, c, e)
    first, last = -1.0, 1.0
    for on, begin, end in zip(over.leaves(), enters.leaves(), leaves.leaves(), strict=True):
        first, last = maximum(first, select(on > 0.5, -1.0, begin)), minimum(last, select(on > 0.5, 1.0, end))
    s = select(abs(last - t) > abs(first - t), last, first)
    return s, (last > first) & (abs(s - t) > SHORT)


def _ball(h: Vec3, c: Vec3, e: Vec3, which: Any) -> _Ball:
    """The first (which = 0) or second (1) ball of a capsule that touches a box."""
    t = _nearest(h, c, e)
    s, two = _far_end(h, c, e, t)
    second = which > 0.5
    x = select(second & two, s, t)
    return _Ball(x, select(abs(x) < 1.0, 0.0, 1.0), select(second, select(two, 1.0, 0.0), 1.0) > 0.5)


def box_segment(h: Vec3, c: Vec3, e: Vec3, r: float, which: float) -> Gap:
    """A box at the origin, and the first or second ball of a capsule c + t e, -1 <= t <= 1."""
    ball = _ball(h, c, e, which)
    met = box_ball(h, c + e * ball.t, r)
    return Gap(select(ball.there, met.phi, FAR), met.p, met.n, ZERO)


@vjp_of(box_segment)
def box_segment_vjp(
    h: Vec3, c: Vec3, e: Vec3, r: float, which: float, y_bar: Gap
) -> tuple[Vec3, Vec3, Vec3, float, float]:
    """t is held at an end; or the slope is zero there: e . (x - k) = 0 with k the closest point of the box; or c + t e is
    where the axis enters a slab."""
    ball = _ball(h, c, e, which)
    t = ball.t
    x = c + e * t
    seen = Gap(select(ball.there, y_bar.phi, 0.0), y_bar.p, y_bar.n, ZERO)
    h_bar, x_bar, r_bar = box_ball_vjp(h, x, r, seen)
    t_bar = dot(e, x_bar) * (1.0 - ball.held)
    clamped = x.map(lambda a, b: select(abs(a) > b, 1.0, 0.0), h)
    steep = e.map(lambda a, m: a * m, clamped)  # dt = -(d e . (x - k) + steep . (dc + t de - sign dh)) / steep . e
    bend = dot(steep, e)
    by_slope = select((which > 0.5) & ball.there, 0.0, bend) > ALONG
    w = select(by_slope, -t_bar / select(by_slope, bend, 1.0), 0.0)
    near = x.map(lambda a, b: abs(abs(a) - b), h)  # the slab: dt = (sign dh - dc - t de) / e of its axis
    reach = near.map(lambda a, g: select(abs(g) > ALONG, a, FAR), e)
    on_x = select((reach.x <= reach.y) & (reach.x <= reach.z), 1.0, 0.0)
    on_y = select(reach.y <= reach.z, 1.0 - on_x, 0.0)
    axis = Vec3(on_x, on_y, 1.0 - on_x - on_y)
    slab = axis.map(lambda on, g: on * select(by_slope, 0.0, -t_bar) / select(abs(g) > ALONG, g, 1.0), e)
    pull = steep * w + slab  # the cotangent of x at fixed t
    total = x_bar + pull
    return (
        h_bar - pull.map(lambda a, b: a * _sign(b), x),
        total,
        total * t + _beyond(h, x) * w,
        r_bar,
        0.0,
    )


def box_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at.x = 0: the ball of the capsule nearest to the box; 1: the far end over the same face, if there is one."""
    R = A.R
    met = box_segment(size_a, R.T @ (B.r - A.r), R.T @ (B.R.column(2) * size_b.y), size_b.x, at.x)
    return Gap(met.phi, A.r + R @ met.p, R @ met.n, ZERO)


@vjp_of(box_capsule)
def box_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    R, z = A.R, B.R.column(2)
    c, e = R.T @ (B.r - A.r), R.T @ (z * size_b.y)
    met = box_segment(size_a, c, e, size_b.x, at.x)
    own = Gap(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n, ZERO)
    h_bar, c_bar, e_bar, r_bar, _ = box_segment_vjp(size_a, c, e, size_b.x, at.x, own)
    centre_bar, axis_bar = R @ c_bar, R @ e_bar
    turn = R @ (cross(met.p, own.p) + cross(met.n, own.n) + cross(c_bar, c) + cross(e_bar, e))
    A_bar = moved(A.r, y_bar.p - centre_bar) + Force(turn, Vec3.zero())
    B_bar = moved(B.r, centre_bar) + turned(z, axis_bar * size_b.y)
    return PairBars(A_bar, h_bar, B_bar, Vec3(r_bar, dot(z, axis_bar), 0.0), ZERO)
