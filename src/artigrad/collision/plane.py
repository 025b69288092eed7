"""Plane against a ball: the one routine behind plane-sphere, plane-capsule (two ends) and plane-box (corners)."""

from __future__ import annotations

from ..spatial import Vec3, dot
from ..staging import vjp_of
from .gap import Gap


def plane_ball(o: Vec3, n: Vec3, c: Vec3, r: float) -> Gap:
    """phi = n . (c - o) - r,  p = c - (r + phi/2) n: halfway between the surfaces  (theory 6.2)"""
    phi = dot(n, c - o) - r
    return Gap(phi, c - n * (r + 0.5 * phi), n)


@vjp_of(plane_ball)
def plane_ball_vjp(o: Vec3, n: Vec3, c: Vec3, r: float, y_bar: Gap) -> tuple[Vec3, Vec3, Vec3, float]:
    d = c - o
    depth = r + 0.5 * (dot(n, d) - r)
    along = dot(n, y_bar.p)
    phi_bar = y_bar.phi - 0.5 * along
    return -(n * phi_bar), y_bar.n + d * phi_bar - y_bar.p * depth, y_bar.p + n * phi_bar, -(along + phi_bar)
