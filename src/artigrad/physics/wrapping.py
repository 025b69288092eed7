"""Wrapping: where a string between two points touches a sphere or a cylinder that is in its way, and the adjoint.

In the plane across the cylinder, or through the centre of the sphere and both points, with normal n, a string touches a
circle of radius r at

    w = (r^2 p + k r sqrt(p.p - r^2) n x p)/(p.p)        k = 1 or -1, for each end p, from the centre

and goes around it by the angle between. Inside a hollow shape it touches at one point, where it is reflected. Along the axis of
a cylinder it rises evenly. Whether it wraps, and on which side, is MuJoCo's choice, and is not differentiated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..spatial import Vec3, cross, dot
from ..staging import arctan2, carry, loop, maximum, minimum, select, sincos, sqrt

TINY = 1e-15
TAU = 6.283185307179586
ROUNDS, ENOUGH = 20, 1e-6  # of Newton's method for a string inside


class Around(NamedTuple):
    """A shape to wrap around. centre, axis (of a cylinder) and radius; sided: whether `side` says on which side to go, both
    from the centre. cylinder: whether it is one, known while staging."""

    cylinder: bool
    axis: Vec3
    radius: Any
    side: Vec3
    sided: Any


class Touch(NamedTuple):
    """on: whether the string wraps. first, last: where it touches, from the centre; arc: the angle between; long: its length
    from end to end."""

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
    """(a x b) . n"""
    return dot(n, cross(a, b))


class _Plane:
    """The ends in the plane of the circle, and its normal."""

    def __init__(self, shape: Around, u: Vec3, v: Vec3):
        self.shape, self.ends = shape, (u, v)
        if shape.cylinder:
            self.n = shape.axis
        else:
            c = cross(u, v)
            self.size = _norm(c)
            self.plain = self.size > 2e-15
            self.n = select(self.plain, c / self.size, _across(u))
        self.heights = tuple(dot(self.n, p) if shape.cylinder else 0.0 for p in (u, v))
        self.u, self.v = (p - self.n * z for p, z in zip((u, v), self.heights, strict=True))

    def vjp(self, u_bar: Vec3, v_bar: Vec3, n_bar: Vec3, heights_bar: tuple[Any, Any]) -> tuple[Vec3, Vec3, Vec3]:
        """The cotangents of both ends and of the axis."""
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


def _across(u: Vec3) -> Vec3:
    """A unit vector across u, where both ends are on one line through the centre of a sphere."""
    x, y, z = (maximum(a, -a) for a in (u.x, u.y, u.z))
    most_y, most_z = (y > x) & (y > z), (z > x) & (z > y)
    other = select(most_y, Vec3(1.0, 0.0, 1.0), select(most_z, Vec3(1.0, 1.0, 0.0), Vec3(0.0, 1.0, 1.0)))
    c = cross(u, other)
    return c / _norm(c)


def _tangent(p: Vec3, n: Vec3, r: Any, k: Any) -> Vec3:
    """w = (r^2 p + k r sqrt(p.p - r^2) n x p)/(p.p)"""
    square = maximum(dot(p, p), 1e-30)
    return (p * (r * r) + cross(n, p) * (k * r * sqrt(maximum(square - r * r, 1e-30)))) / square


def _tangent_vjp(p: Vec3, n: Vec3, r: Any, k: Any, w_bar: Vec3) -> tuple[Vec3, Vec3, Any]:
    """The cotangents of p, n and r."""
    square = maximum(dot(p, p), 1e-30)
    s, m = sqrt(maximum(square - r * r, 1e-30)), cross(n, p)
    a, b = r * r / square, k * r * s / square
    a_bar, b_bar, m_bar = dot(p, w_bar), dot(m, w_bar), w_bar * b
    square_bar = (k * r / (2.0 * s * square) - b / square) * b_bar - a / square * a_bar
    r_bar = 2.0 * r / square * a_bar + k * (s - r * r / s) / square * b_bar
    return w_bar * a + cross(m_bar, n) + p * (2.0 * square_bar), cross(p, m_bar), r_bar


def _crossing(n: Vec3, a: Vec3, b: Vec3, c: Vec3, d: Vec3) -> Any:
    """Whether the pieces from a to b and from c to d cross."""
    ab, cd, ca = b - a, d - c, a - c
    det = _turned(n, ab, cd)
    safe = select(maximum(det, -det) > TINY, det, 1.0)
    x, y = _turned(n, cd, ca) / safe, _turned(n, ab, ca) / safe
    return (maximum(det, -det) > TINY) & (x >= 0.0) & (x <= 1.0) & (y >= 0.0) & (y <= 1.0)


def _angle(y: Any, x: Any) -> Any:
    """Of (x, y), within pi either way."""
    a = arctan2(maximum(y, -y), maximum(maximum(x, -x), 1e-30))
    a = select(x < 0.0, 0.5 * TAU - a, a)
    return select(y < 0.0, -a, a)


def _arc(n: Vec3, first: Vec3, last: Vec3, k: Any) -> Any:
    """The angle from the first to the last point around the circle, on the way that a string with sign k takes."""
    angle = k * _angle(_turned(n, first, last), dot(first, last))
    return select(angle < 0.0, angle + TAU, angle)


def _arc_vjp(n: Vec3, first: Vec3, last: Vec3, k: Any, bar: Any) -> tuple[Vec3, Vec3, Vec3]:
    """The cotangents of n, the first and the last point."""
    y, x = _turned(n, first, last), dot(first, last)
    size = maximum(x * x + y * y, 1e-30)
    y_bar, x_bar = k * x / size * bar, -(k * y / size * bar)
    first_bar = cross(last, n) * y_bar + last * x_bar
    return cross(first, last) * y_bar, first_bar, cross(n, first) * y_bar + first * x_bar


def _outside(plane: _Plane, shape: Around) -> tuple[Any, Any]:
    """Whether the string wraps, and the sign of its first tangent."""
    n, u, v, r = plane.n, plane.u, plane.v, shape.radius
    d = v - u
    share = maximum(0.0, minimum(1.0, -dot(d, u) / maximum(dot(d, d), 1e-30)))
    near = u + d * share
    side = shape.side - n * dot(n, shape.side)
    # a straight string that misses the circle, on the side away from where it shall go, has to go around
    whole = _turned(n, u, v)
    behind = (_turned(n, side, u) * whole > 0.0) & (_turned(n, v, side) * whole > 0.0)
    blocked = (dot(near, near) <= r * r) | ((shape.sided > 0.5) & behind)
    far = (dot(u, u) >= r * r) & (dot(v, v) >= r * r)
    goodness, cut = [], []
    for k in (-1.0, 1.0):
        first, last = _tangent(u, n, r, k), _tangent(v, n, r, -k)
        middle, apart = first + last, first - last
        by_side = dot(middle, side) / _norm(middle)
        cut.append(_crossing(n, u, first, v, last))
        goodness.append(select(cut[-1], -1e4, select(shape.sided > 0.5, by_side, -dot(apart, apart))))
    one = goodness[0] > goodness[1]
    crossed = select(one, select(cut[0], 1.0, 0.0), select(cut[1], 1.0, 0.0)) > 0.5
    return blocked & far & (r > TINY) & select_not(crossed), select(one, -1.0, 1.0)


def select_not(mask: Any) -> Any:
    return select(mask, 0.0, 1.0) > 0.5


def _arcsin(x: Any) -> Any:
    return _angle(x, sqrt(maximum(1.0 - x * x, 0.0)))


def _inside(plane: _Plane, r: Any) -> tuple[Any, Vec3]:
    """Whether a string inside wraps, and where it touches:  asin(A z) + asin(B z) - 2 asin z + G = 0  for the sine z of the
    angle at which it meets the wall, from 1 downwards."""
    n, u, v = plane.n, plane.u, plane.v
    a, b, d = _norm(u), _norm(v), v - u
    square = dot(d, d)
    share = -dot(d, u) / maximum(square, 1e-30)
    near = u + d * share
    hits = (square > TINY) & (share > 0.0) & (share < 1.0) & (_norm(near) <= r)
    cosine = (a * a + b * b - square) / (2.0 * a * b)
    wraps = (a > r) & (b > r) & (r > TINY) & select_not(hits) & (cosine > -1.0 + TINY)
    A, B, c = r / a, r / b, maximum(-1.0, minimum(1.0, cosine))
    G = _angle(sqrt(maximum(1.0 - c * c, 0.0)), c)

    def error(z: Any) -> Any:
        return _arcsin(A * z) + _arcsin(B * z) - 2.0 * _arcsin(z) + G

    start = 1.0 - 1e-7 + 0.0 * r
    z, going = carry(start), carry(select((cosine < 1.0 - TINY) & (error(start) <= 0.0), 1.0, 0.0))
    for _ in loop(ROUNDS):
        now = z.value
        slope = sum(w / maximum(TINY, sqrt(maximum(1.0 - (w * now) * (w * now), 0.0))) for w in (A, B))
        slope = slope - 2.0 / maximum(TINY, sqrt(maximum(1.0 - now * now, 0.0)))
        after = now - error(now) / select(slope < -TINY, slope, -1.0)
        on = (going.value > 0.5) & (slope < -TINY) & (after < now) & (error(after) <= ENOUGH)
        z.value, going.value = select(on, after, now), select(on, 1.0, 0.0)
    f = error(z.value)
    found = maximum(f, -f) <= ENOUGH
    ahead = _turned(n, u, v) > 0.0
    begin, w = select(ahead, u / a, v / b), select(ahead, A, B)
    sine, cos = sincos(_arcsin(z.value) - _arcsin(w * z.value))
    point = (begin * cos + cross(n, begin) * sine) * r
    middle = u + v
    return wraps, select(found, point, middle * (r / _norm(middle)))


def _inside_vjp(plane: _Plane, r: Any, w: Vec3, w_bar: Vec3) -> tuple[Vec3, Vec3, Vec3, Any]:
    """The cotangents of both ends, n and r, where the path is reflected: with e = w/r and t = n x e,
    g = t . (a + b) = 0  for the directions a and b from the ends to w."""
    n, e = plane.n, w / r
    t = cross(n, e)
    parts = []
    for p in (plane.u, plane.v):
        d = w - p
        long = _norm(d)
        parts.append((d / long, long))
    total = parts[0][0] + parts[1][0]

    def over(x: Vec3) -> Vec3:
        """(1 - a a^T) x/|a| + (1 - b b^T) x/|b|"""
        return sum(((x - d * dot(d, x)) / long for d, long in parts), Vec3.zero())

    turn = r * dot(t, over(t)) - dot(e, total)
    lam = -(r * dot(t, w_bar)) / select(maximum(turn, -turn) > TINY, turn, 1.0)
    u_bar, v_bar = (-((t - d * dot(d, t)) / long) * lam for d, long in parts)
    # n: w stays across it; what of w changes along the axis is of no length
    n_bar = -(e * (r * dot(n, w_bar))) + (cross(e, total) - e * dot(n, over(t) * r)) * lam
    return u_bar, v_bar, n_bar, dot(e, w_bar) + lam * dot(t, over(e))


# -- both ----------------------------------------------------------------------------------------------------------------------
class _Path:
    """All that is known of a string; off where it does not wrap, with ends that harm nobody."""

    def __init__(self, shape: Around, u: Vec3, v: Vec3):
        r = shape.radius
        plane = _Plane(shape, u, v)
        hollow = (shape.sided > 0.5) & (dot(shape.side, shape.side) < r * r)
        on_outside, self.k = _outside(plane, shape)
        on_inside, point = _inside(plane, r)
        far = (dot(u, u) > 1e-30) & (dot(v, v) > 1e-30)
        self.hollow = hollow
        self.on = far & ((hollow & on_inside) | (select_not(hollow) & on_outside))
        away = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0)
        safe = [select(self.on, p, x * (2.0 * r + 1.0)) for p, x in zip((u, v), away, strict=True)]
        self.shape, self.r = shape, r
        plane = self.plane = _Plane(shape, safe[0], safe[1])
        inside = self.point = select(self.on & hollow, point, plane.u * (r / _norm(plane.u)))
        n = plane.n
        self.first = select(hollow, inside, _tangent(plane.u, n, r, self.k))
        self.last = select(hollow, inside, _tangent(plane.v, n, r, -self.k))
        self.arc = select(hollow, 0.0, _arc(n, self.first, self.last, self.k))
        self.a, self.c = plane.u - self.first, plane.v - self.last
        self.A, self.C = _norm(self.a), _norm(self.c)
        self.P = self.A + r * self.arc + self.C
        z0, z1 = plane.heights
        self.rise = z1 - z0
        self.f0, self.f1 = self.A / self.P, (self.A + r * self.arc) / self.P

    def touch(self) -> Touch:
        n, z0 = self.plane.n, self.plane.heights[0]
        first, last = self.first, self.last
        if self.shape.cylinder:
            first, last = first + n * (z0 + self.rise * self.f0), last + n * (z0 + self.rise * self.f1)
        return Touch(self.on, first, last, self.arc, sqrt(self.P * self.P + self.rise * self.rise))

    def by_radius(self) -> Any:
        """How the length changes with the radius: by the arc, or inside by what the wall is pushed."""
        push = dot(self.point / self.r, -(self.a / self.A) - self.c / self.C)
        planar = select(self.hollow, push, self.arc)
        return planar * (self.P / sqrt(self.P * self.P + self.rise * self.rise))

    def vjp(self, first_bar: Vec3, last_bar: Vec3) -> TouchBars:
        """From the cotangents of both points."""
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
        ui, vi, ni, ri = _inside_vjp(plane, r, self.point, first_bar + last_bar)
        u_bar, v_bar = u_bar + select(self.hollow, ui, ub), v_bar + select(self.hollow, vi, vb)
        n_bar = n_bar + select(self.hollow, ni, nb + nb1)
        r_bar = r_bar + select(self.hollow, ri, rb + rb1)
        return TouchBars(*plane.vjp(u_bar, v_bar, n_bar, heights_bar), r_bar)


def path_around(shape: Around, u: Vec3, v: Vec3) -> _Path:
    """The path of a string between two points, from the centre of the shape."""
    return _Path(shape, u, v)
