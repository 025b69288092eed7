"""Wrapping of a string around a sphere or a cylinder between two points, and its adjoint.

In the plane across the cylinder, or through the center of the sphere and both points, with normal n, the string touches
a circle of radius r at

    w = (r^2 p + k r sqrt(p.p - r^2) n x p)/(p.p)        k = 1 or -1, for each end p, from the center

and follows it by the angle between. Inside a hollow shape it touches at one point, where it is reflected. Along the
axis of a cylinder it rises uniformly. Whether it wraps, and on which side, is MuJoCo's choice, and is not
differentiated. Neither is the point of contact of an end within 5e-9 r of the surface, where its derivative is
unbounded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiler import arctan2, carry, loop, maximum, minimum, select, sincos, sqrt, when_any
from ..spatial import Vec3, cross, dot

TINY = 1e-15
IN_LINE = 1e-12  # sine below which ends are in line with the center: rounding tilts the normal of their plane
TAU = 6.283185307179586
ON_AXIS = 1e-12  # m: a side site nearer to a cylinder's axis is on it, and is treated as on the x axis
ROUNDS = 20  # Newton iterations for a string inside
CLEAR = 1.0 + 1e-12  # multiple of r beyond which an end is outside a hollow shape
NEAR = 1e-8  # fraction of r^2 by which |p|^2 must exceed it for the point of contact to be differentiated


class Around(NamedTuple):
    """Wrapping shape.

    Attributes:
        cylinder: True for a cylinder around z, False for a sphere; constant while staging.
        axes: x, y, z of its frame.
        radius: m.
        side: A point from the center that decides the side, if `sided`.
        sided: 1 if there is a side site.
    """

    cylinder: bool
    axes: tuple[Vec3, Vec3, Vec3]
    radius: Any
    side: Vec3
    sided: Any


class Touch(NamedTuple):
    """Contact of a string and a shape.

    Attributes:
        on: Whether the string wraps.
        first, last: First and last point of contact, from the center.
        arc: Angle between them, rad.
        long: Length of the string from end to end, m.
    """

    on: Any
    first: Vec3
    last: Vec3
    arc: Any
    long: Any


class TouchBars(NamedTuple):
    """Cotangents of both ends, of the axis and of the radius."""

    u: Vec3
    v: Vec3
    axis: Vec3
    radius: Any


def _norm(x: Vec3) -> Any:
    return sqrt(maximum(dot(x, x), 1e-30))


def _turned(n: Vec3, a: Vec3, b: Vec3) -> Any:
    """Return (a x b) . n."""
    return dot(n, cross(a, b))


class _Plane:
    """Projections of the ends onto the plane of the circle, and its normal."""

    def __init__(self, shape: Around, u: Vec3, v: Vec3):
        self.shape, self.ends = shape, (u, v)
        if shape.cylinder:
            self.n = shape.axes[2]
        else:
            c = cross(u, v)
            self.size = _norm(c)
            self.plain = (self.size > TINY) & (self.size > IN_LINE * sqrt(dot(u, u) * dot(v, v)))
            self.n = select(self.plain, c / self.size, _across(u, shape.axes))
        self.heights = tuple(dot(self.n, p) if shape.cylinder else 0.0 for p in (u, v))
        self.u, self.v = (p - self.n * z for p, z in zip((u, v), self.heights, strict=True))

    def vjp(self, u_bar: Vec3, v_bar: Vec3, n_bar: Vec3, heights_bar: tuple[Any, Any]) -> tuple[Vec3, Vec3, Vec3]:
        """Cotangents of both ends and of the axis."""
        (u, v), n = self.ends, self.n
        if self.shape.cylinder:
            out = []
            for p, z, bar, z_bar in zip((u, v), self.heights, (u_bar, v_bar), heights_bar, strict=True):
                along = dot(n, bar)
                out.append(bar - n * along + n * z_bar)
                n_bar = n_bar - bar * z - p * along + p * z_bar
            return out[0], out[1], n_bar
        c_bar = select(self.plain, (n_bar - n * dot(n, n_bar)) / self.size, Vec3.zero())
        return u_bar + cross(v, c_bar), v_bar + cross(c_bar, u), Vec3.zero()


def _across(u: Vec3, axes: tuple[Vec3, Vec3, Vec3]) -> Vec3:
    """A unit vector perpendicular to u, for ends on one line through the center of a sphere."""
    x, y, z = (maximum(a, -a) for a in (dot(u, axis) for axis in axes))
    most_y, most_z = (y > x) & (y > z), (z > x) & (z > y)
    other = select(most_y, axes[0] + axes[2], select(most_z, axes[0] + axes[1], axes[1] + axes[2]))
    c = cross(u, other)
    return c / _norm(c)


def _free(p: Vec3, r: Any) -> Any:
    """Length of the tangent from a point to the circle."""
    return sqrt(maximum(dot(p, p) - r * r, 1e-30))


def _tangent(p: Vec3, n: Vec3, r: Any, k: Any) -> Vec3:
    """w = (r^2 p + k r sqrt(p.p - r^2) n x p)/(p.p)"""
    square = maximum(dot(p, p), 1e-30)
    return (p * (r * r) + cross(n, p) * (k * r * _free(p, r))) / square


def _tangent_vjp(p: Vec3, n: Vec3, r: Any, k: Any, w_bar: Vec3) -> tuple[Vec3, Vec3, Any]:
    """Cotangents of p, n and r."""
    square = maximum(dot(p, p), 1e-30)
    s, m = _free(p, r), cross(n, p)
    over_s = select(s * s > NEAR * (r * r), 1.0 / s, 0.0)
    a, b = r * r / square, k * r * s / square
    a_bar, b_bar, m_bar = dot(p, w_bar), dot(m, w_bar), w_bar * b
    square_bar = (0.5 * k * r * over_s / square - b / square) * b_bar - a / square * a_bar
    r_bar = 2.0 * r / square * a_bar + k * (s - r * r * over_s) / square * b_bar
    return w_bar * a + cross(m_bar, n) + p * (2.0 * square_bar), cross(p, m_bar), r_bar


def _angle(y: Any, x: Any) -> Any:
    """Angle of (x, y), within pi."""
    a = arctan2(maximum(y, -y), maximum(maximum(x, -x), 1e-30))
    a = select(x < 0.0, 0.5 * TAU - a, a)
    return select(y < 0.0, -a, a)


def _arc_vjp(n: Vec3, first: Vec3, last: Vec3, k: Any, bar: Any) -> tuple[Vec3, Vec3, Vec3]:
    """Cotangents of n, the first and the last point."""
    y, x = _turned(n, first, last), dot(first, last)
    size = maximum(x * x + y * y, 1e-30)
    y_bar, x_bar = k * x / size * bar, -(k * y / size * bar)
    first_bar = cross(last, n) * y_bar + last * x_bar
    return cross(first, last) * y_bar, first_bar, cross(n, first) * y_bar + first * x_bar


def _outside(plane: _Plane, shape: Around) -> tuple[Any, Any, Any]:
    """Return whether the string wraps, whether it goes the long way, and the angle between the points of contact.

    It goes the long way if the side site is in the wedge opposite to both ends. Otherwise it goes the short way, if the
    straight line meets the circle: if the angle between the ends at the center exceeds that of both tangents.
    """
    n, u, v, r = plane.n, plane.u, plane.v, shape.radius
    d = v - u
    side = shape.side - n * dot(n, shape.side)
    if shape.cylinder:
        side = select(dot(side, side) > ON_AXIS * ON_AXIS, side, shape.axes[0])
    whole = _turned(n, u, v)
    behind = (shape.sided > 0.5) & (_turned(n, side, u) * whole > 0.0) & (_turned(n, v, side) * whole > 0.0)
    apart = _angle(maximum(whole, -whole), dot(u, v))
    spans = arctan2(_free(u, r), r) + arctan2(_free(v, r), r)
    arc = select(behind, TAU - apart, apart) - spans
    far = (dot(u, u) >= r * r) & (dot(v, v) >= r * r)
    return (arc > 0.0) & far & (r > TINY) & (dot(d, d) > TINY), behind, arc


def select_not(mask: Any) -> Any:
    """Negation of a mask."""
    return select(mask, 0.0, 1.0) > 0.5


def _inside(plane: _Plane, r: Any) -> tuple[Any, Vec3]:
    """Return whether a string inside wraps, and its point of reflection.

    It meets the wall at the angle x to the radius with asin(A sin x) + asin(B sin x) - 2 x + G = 0,  A = r/|u|, B =
    r/|v|, G the angle between both ends. The left side is decreasing and concave, so Newton's method from pi/2
    converges monotonically.
    """
    n, u, v = plane.n, plane.u, plane.v
    a, b, d = _norm(u), _norm(v), v - u
    square = dot(d, d)
    share = -dot(d, u) / maximum(square, 1e-30)
    near = u + d * share
    hits = (square > TINY) & (share > 0.0) & (share < 1.0) & (_norm(near) <= r)
    wraps = (a > r * CLEAR) & (b > r * CLEAR) & (r > TINY) & select_not(hits)
    turn = _turned(n, u, v)
    G = _angle(maximum(turn, -turn), dot(u, v))
    shares = [(r / p, (p - r) * (p + r) / (p * p)) for p in (a, b)]  # A and 1 - A^2

    def angles(sine: Any, cos: Any) -> list[tuple[Any, Any]]:
        """Return asin(A sin x) and its derivative, for both ends."""
        roots = [sqrt(maximum(cos * cos + rest * (sine * sine), 1e-30)) for _, rest in shares]
        return [(arctan2(w * sine, root), w * cos / root) for (w, _), root in zip(shares, roots, strict=True)]

    x = carry(0.25 * TAU + 0.0 * r)
    for _ in loop(ROUNDS):
        now = x.value
        (one, slope_one), (two, slope_two) = angles(*sincos(now))
        error, slope = one + two - 2.0 * now + G, slope_one + slope_two - 2.0
        x.value = maximum(0.0, minimum(now, now - error / minimum(slope, -TINY)))
    (one, _), (two, _) = angles(*sincos(x.value))
    ahead = turn > 0.0
    begin = select(ahead, u / a, v / b)
    sine, cos = sincos(x.value - select(ahead, one, two))
    return wraps, (begin * cos + cross(n, begin) * sine) * r


def _inside_vjp(plane: _Plane, r: Any, w: Vec3, w_bar: Vec3) -> tuple[Vec3, Vec3, Vec3, Any]:
    """Cotangents of both ends, n and r, for a reflected path.

    With e = w/r and t = n x e,  g = t . (a + b) = 0  for the directions a and b from the ends to w. In a sphere also  n
    . (a + b) = 0,  so that w does not depend on the plane, which two ends in one direction leave undetermined.
    """
    n, e = plane.n, w / r
    t = cross(n, e)
    parts = []
    for p in (plane.u, plane.v):
        d = w - p
        long = _norm(d)
        parts.append((d / long, long))
    total = parts[0][0] + parts[1][0]
    pressed = -dot(e, total)

    def over(x: Vec3) -> Vec3:
        """Return (1 - a a^T) x/|a| + (1 - b b^T) x/|b|."""
        return sum(((x - d * dot(d, x)) / long for d, long in parts), Vec3.zero())

    turn = r * dot(t, over(t)) + pressed
    lam = -(r * dot(t, w_bar)) / select(maximum(turn, -turn) > TINY, turn, 1.0)
    moved = t * lam
    # n: w stays perpendicular to it; its change along the axis does not affect the length
    n_bar = -(e * (r * dot(n, w_bar))) + (cross(e, total) - e * dot(n, over(t) * r)) * lam
    if not plane.shape.cylinder:
        tilt = r * (1.0 / parts[0][1] + 1.0 / parts[1][1]) + pressed
        moved = moved - n * (r * dot(n, w_bar) / select(tilt > TINY, tilt, 1.0))
        n_bar = Vec3.zero()
    u_bar, v_bar = (-((moved - d * dot(d, moved)) / long) for d, long in parts)
    return u_bar, v_bar, n_bar, dot(e, w_bar) + lam * dot(t, over(e))


# -- both ----------------------------------------------------------------------------------------------------------------------
class _Path:
    """Path of a string; if it does not wrap, harmless ends replace the given ones."""

    def __init__(self, shape: Around, u: Vec3, v: Vec3):
        r = shape.radius
        plane = _Plane(shape, u, v)
        hollow = (shape.sided > 0.5) & (dot(shape.side, shape.side) < r * r)
        on_outside, long_way, arc = _outside(plane, shape)
        on_inside, point = carry(0.0 * r), carry(u * 0.0)
        for _ in when_any(hollow):
            wraps, reflected = _inside(plane, r)
            on_inside.value, point.value = select(wraps, 1.0, 0.0), reflected
        far = (dot(u, u) > 1e-30) & (dot(v, v) > 1e-30)
        self.hollow = hollow
        self.on = far & ((hollow & (on_inside.value > 0.5)) | (select_not(hollow) & on_outside))
        away = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
        safe = [select(self.on, p, x * (2.0 * r + 1.0)) for p, x in zip((u, v), away, strict=True)]
        self.shape, self.r = shape, r
        plane = self.plane = _Plane(shape, safe[0], safe[1])
        inside = self.point = select(self.on & hollow, point.value, plane.u * (r / _norm(plane.u)))
        n = plane.n
        self.k = select(long_way, -1.0, 1.0) * select(_turned(n, plane.u, plane.v) < 0.0, -1.0, 1.0)
        self.first = select(hollow, inside, _tangent(plane.u, n, r, self.k))
        self.last = select(hollow, inside, _tangent(plane.v, n, r, -self.k))
        self.arc = select(self.on & select_not(hollow), arc, 0.0)
        self.a, self.c = plane.u - self.first, plane.v - self.last
        self.A, self.C = _norm(self.a), _norm(self.c)
        self.P = self.A + r * self.arc + self.C
        z0, z1 = plane.heights
        self.rise = z1 - z0
        self.f0, self.f1 = self.A / self.P, (self.A + r * self.arc) / self.P

    def touch(self) -> Touch:
        """Points of contact and length."""
        n, z0 = self.plane.n, self.plane.heights[0]
        first, last = self.first, self.last
        if self.shape.cylinder:
            first, last = first + n * (z0 + self.rise * self.f0), last + n * (z0 + self.rise * self.f1)
        return Touch(self.on, first, last, self.arc, sqrt(self.P * self.P + self.rise * self.rise))

    def directions(self) -> tuple[Vec3, Vec3]:
        """Unit directions of the string between its ends and the shape, from the first end on; at the surface, along it."""
        n, r = self.plane.n, self.r
        first = select(self.hollow, -(self.a / self.A), cross(n, self.first) * (self.k / r))
        last = select(self.hollow, self.c / self.C, cross(n, self.last) * (self.k / r))
        if not self.shape.cylinder:
            return first, last
        size = sqrt(self.P * self.P + self.rise * self.rise)
        return (first * self.P + n * self.rise) / size, (last * self.P + n * self.rise) / size

    def by_radius(self) -> Any:
        """Derivative of the length with respect to the radius: the arc, or inside the displacement of the wall."""
        push = dot(self.point / self.r, -(self.a / self.A) - self.c / self.C)
        planar = select(self.hollow, push, self.arc)
        return planar * (self.P / sqrt(self.P * self.P + self.rise * self.rise))

    def vjp(self, first_bar: Vec3, last_bar: Vec3) -> TouchBars:
        """Cotangents from those of both points of contact."""
        first_bar, last_bar = (select(self.on, x, Vec3.zero()) for x in (first_bar, last_bar))
        plane, r, n = self.plane, self.r, self.plane.n
        u_bar, v_bar, n_bar = Vec3.zero(), Vec3.zero(), Vec3.zero()
        r_bar, heights_bar = 0.0, (0.0, 0.0)
        if self.shape.cylinder:
            z0 = plane.heights[0]
            along0, along1 = dot(n, first_bar), dot(n, last_bar)
            n_bar = first_bar * (z0 + self.rise * self.f0) + last_bar * (z0 + self.rise * self.f1)
            heights_bar = (
                along0 * (1.0 - self.f0) + along1 * (1.0 - self.f1),
                along0 * self.f0 + along1 * self.f1,
            )
            f0_bar, f1_bar = along0 * self.rise, along1 * self.rise
            P_bar = -(self.f0 * f0_bar + self.f1 * f1_bar) / self.P
            B_bar = f1_bar / self.P + P_bar
            a_bar, c_bar = self.a * ((f0_bar / self.P + B_bar) / self.A), self.c * (P_bar / self.C)
            u_bar, first_bar = u_bar + a_bar, first_bar - a_bar
            v_bar, last_bar = v_bar + c_bar, last_bar - c_bar
            B_bar = select(self.hollow, 0.0, B_bar)
            r_bar = self.arc * B_bar
            more, *points = _arc_vjp(n, self.first, self.last, self.k, r * B_bar)
            n_bar, first_bar, last_bar = n_bar + more, first_bar + points[0], last_bar + points[1]
        ub, nb, rb = _tangent_vjp(plane.u, n, r, self.k, first_bar)
        vb, nb1, rb1 = _tangent_vjp(plane.v, n, r, -self.k, last_bar)
        bars = [carry(x) for x in (ub, vb, nb + nb1, rb + rb1)]
        for _ in when_any(self.hollow):
            for bar, inside in zip(bars, _inside_vjp(plane, r, self.point, first_bar + last_bar), strict=True):
                bar.value = select(self.hollow, inside, bar.value)
        u_bar, v_bar = u_bar + bars[0].value, v_bar + bars[1].value
        n_bar, r_bar = n_bar + bars[2].value, r_bar + bars[3].value
        return TouchBars(*plane.vjp(u_bar, v_bar, n_bar, heights_bar), r_bar)


def path_around(shape: Around, u: Vec3, v: Vec3) -> _Path:
    """Path of a string between two points, relative to the center of the shape."""
    return _Path(shape, u, v)
