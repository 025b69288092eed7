"""Sphere and sphere  (theory 6.1)."""

from __future__ import annotations

from typing import Any

from ....compiler import select, sqrt, vjp_of
from ...spatial import Vec3, dot, norm
from ..contact_geometry import ZERO, ContactGeometry, PairBars, Pose, point_to_pose_bar

TINY = 1e-12  # m; centers nearer than this have no direction: the normal is e_z, held constant


def ball_ball(a: Vec3, ra: float, b: Vec3, rb: float) -> ContactGeometry:
    """L = |b - a|,  n = (b - a)/L,  phi = L - ra - rb,  p = a + (ra + phi/2) n"""
    d = b - a
    L = sqrt(dot(d, d))
    n = select(L > TINY, d / select(L > TINY, L, 1.0), Vec3(0.0, 0.0, 1.0))
    phi = L - ra - rb
    return ContactGeometry(phi, a + n * (ra + 0.5 * phi), n, ZERO)


@vjp_of(ball_ball)
def ball_ball_vjp(a: Vec3, ra: float, b: Vec3, rb: float, y_bar: ContactGeometry) -> tuple[Vec3, float, Vec3, float]:
    """Adjoint of `ball_ball`."""
    d = b - a
    L = sqrt(dot(d, d))
    apart = L > TINY
    inverse = select(apart, 1.0 / select(apart, L, 1.0), 0.0)
    n = select(apart, d * inverse, Vec3(0.0, 0.0, 1.0))
    phi = L - ra - rb
    along = dot(n, y_bar.p)
    phi_bar = y_bar.phi + 0.5 * along
    n_bar = y_bar.n + y_bar.p * (ra + 0.5 * phi)
    d_bar = n * phi_bar + (n_bar - n * dot(n, n_bar)) * inverse
    return y_bar.p - d_bar, along - phi_bar, d_bar, -phi_bar


def sphere_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of two spheres."""
    return ball_ball(A.r, size_a.x, B.r, size_b.x)


@vjp_of(sphere_sphere)
def sphere_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `sphere_sphere`."""
    a, ra, b, rb = ball_ball_vjp(A.r, size_a.x, B.r, size_b.x, y_bar)
    return PairBars(point_to_pose_bar(A.r, a), Vec3(ra, 0.0, 0.0), point_to_pose_bar(B.r, b), Vec3(rb, 0.0, 0.0), ZERO)


def sphere_sphere_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Distance of the centers: at 0 the normal is undefined."""
    return norm(B.r - A.r)
