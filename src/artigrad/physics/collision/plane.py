"""Plane against everything: each point of the other shape that may meet it is a ball with a place and a radius."""

from __future__ import annotations

from ...spatial import Vec3, dot
from ...staging import vjp_of
from .gap import ZERO, Gap, PairBars, Pose, moved, turned


def plane_ball(o: Vec3, n: Vec3, c: Vec3, r: float) -> Gap:
    """phi = n . (c - o) - r,  p = c - (r + phi/2) n: halfway between the surfaces  (theory 6.2)"""
    phi = dot(n, c - o) - r
    return Gap(phi, c - n * (r + 0.5 * phi), n, ZERO)


@vjp_of(plane_ball)
def plane_ball_vjp(o: Vec3, n: Vec3, c: Vec3, r: float, y_bar: Gap) -> tuple[Vec3, Vec3, Vec3, float]:
    d = c - o
    depth = r + 0.5 * (dot(n, d) - r)
    along = dot(n, y_bar.p)
    phi_bar = y_bar.phi - 0.5 * along
    return -(n * phi_bar), y_bar.n + d * phi_bar - y_bar.p * depth, y_bar.p + n * phi_bar, -(along + phi_bar)


def _meet(A: Pose, B: Pose, l: Vec3, r: float) -> Gap:
    """The plane of A against a ball of radius r at l in the frame of B."""
    return plane_ball(A.r, A.R.column(2), B.r + B.R @ l, r)


def _meet_vjp(A: Pose, B: Pose, l: Vec3, r: float, y_bar: Gap) -> tuple[PairBars, Vec3, float]:
    """The cotangents of both poses, of l and of r."""
    n, c = A.R.column(2), B.r + B.R @ l
    o_bar, n_bar, c_bar, r_bar = plane_ball_vjp(A.r, n, c, r, y_bar)
    return PairBars(moved(A.r, o_bar) + turned(n, n_bar), ZERO, moved(c, c_bar), ZERO, ZERO), B.R.T @ c_bar, r_bar


def plane_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    return _meet(A, B, ZERO, size_b.x)


@vjp_of(plane_sphere)
def plane_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, _, r = _meet_vjp(A, B, ZERO, size_b.x, y_bar)
    return bars._replace(size_b=Vec3(r, 0.0, 0.0))


def plane_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (0, 0, +-1): one of its ends. A tangent lies along the capsule."""
    met = _meet(A, B, Vec3(0.0, 0.0, at.z * size_b.y), size_b.x)
    return Gap(met.phi, met.p, met.n, B.R.column(2))


@vjp_of(plane_capsule)
def plane_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, l, r = _meet_vjp(A, B, Vec3(0.0, 0.0, at.z * size_b.y), size_b.x, y_bar)
    B_bar = bars.B + turned(B.R.column(2), y_bar.t)
    return bars._replace(B=B_bar, size_b=Vec3(r, at.z * l.z, 0.0), at=Vec3(0.0, 0.0, size_b.y * l.z))


def plane_box(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (+-1, +-1, +-1): a corner"""
    return _meet(A, B, at.map(lambda f, s: f * s, size_b), 0.0)


@vjp_of(plane_box)
def plane_box_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, l, _ = _meet_vjp(A, B, at.map(lambda f, s: f * s, size_b), 0.0, y_bar)
    return bars._replace(size_b=at.map(lambda f, x: f * x, l), at=size_b.map(lambda s, x: s * x, l))


def _on_rim(size: Vec3, at: Vec3) -> Vec3:
    return Vec3(at.x * size.x, at.y * size.x, at.z * size.y)


def plane_cylinder(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (cos t, sin t, +-1): a point of a rim"""
    return _meet(A, B, _on_rim(size_b, at), 0.0)


@vjp_of(plane_cylinder)
def plane_cylinder_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, l, _ = _meet_vjp(A, B, _on_rim(size_b, at), 0.0, y_bar)
    at_bar = Vec3(size_b.x * l.x, size_b.x * l.y, size_b.y * l.z)
    return bars._replace(size_b=Vec3(at.x * l.x + at.y * l.y, at.z * l.z, 0.0), at=at_bar)


def plane_point(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at: a vertex"""
    return _meet(A, B, at, 0.0)


@vjp_of(plane_point)
def plane_point_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, l, _ = _meet_vjp(A, B, at, 0.0, y_bar)
    return bars._replace(at=l)
