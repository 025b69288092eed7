"""Sphere against box, in the box's own axes  (theory 6.5).

Outside, the closest point of the box; inside, the nearest face. On the planes where the nearest face changes, and along
edges and corners, the normal is not differentiable.
"""

from __future__ import annotations

from typing import Any

from ...spatial import Force, Vec3, cross, dot
from ...staging import clamp, select, sqrt, vjp_of
from .gap import ZERO, Gap, PairBars, Pose, moved


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


def box_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    found = box_ball(size_a, A.R.T @ (B.r - A.r), size_b.x)
    return Gap(found.phi, A.r + A.R @ found.p, A.R @ found.n, ZERO)


@vjp_of(box_sphere)
def box_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    R = A.R
    c = R.T @ (B.r - A.r)
    own = box_ball(size_a, c, size_b.x)
    local = Gap(y_bar.phi, R.T @ y_bar.p, R.T @ y_bar.n, ZERO)
    h_bar, c_bar, r_bar = box_ball_vjp(size_a, c, size_b.x, local)
    centre_bar = R @ c_bar
    turn = R @ (cross(own.p, local.p) + cross(own.n, local.n) + cross(c_bar, c))
    A_bar = moved(A.r, y_bar.p - centre_bar) + Force(turn, Vec3.zero())
    return PairBars(A_bar, h_bar, moved(B.r, centre_bar), Vec3(r_bar, 0.0, 0.0), ZERO)
