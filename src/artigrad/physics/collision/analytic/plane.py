"""Plane against everything: each point of the other shape that may meet it is a ball with a place and a radius."""

from __future__ import annotations

from typing import Any

from ....compiler import select, target, vjp_of
from ...spatial import Force, Vec3, cross, dot, norm
from ..gap import FAR, ZERO, Gap, PairBars, Pose, moved, turned


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


def meet_bars(A: Pose, B: Pose, l: Vec3, r: float, y_bar: Gap) -> tuple[PairBars, Vec3, float]:
    """The cotangents of both poses, of l and of r."""
    n, c = A.R.column(2), B.r + B.R @ l
    o_bar, n_bar, c_bar, r_bar = plane_ball_vjp(A.r, n, c, r, y_bar)
    return PairBars(moved(A.r, o_bar) + turned(n, n_bar), ZERO, moved(c, c_bar), ZERO, ZERO), B.R.T @ c_bar, r_bar


def plane_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    return _meet(A, B, ZERO, size_b.x)


@vjp_of(plane_sphere)
def plane_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, _, r = meet_bars(A, B, ZERO, size_b.x, y_bar)
    return bars._replace(size_b=Vec3(r, 0.0, 0.0))


def plane_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (0, 0, +-1): one of its ends. A tangent lies along the capsule."""
    met = _meet(A, B, Vec3(0.0, 0.0, at.z * size_b.y), size_b.x)
    return Gap(met.phi, met.p, met.n, B.R.column(2))


@vjp_of(plane_capsule)
def plane_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    bars, l, r = meet_bars(A, B, Vec3(0.0, 0.0, at.z * size_b.y), size_b.x, y_bar)
    B_bar = bars.B + turned(B.R.column(2), y_bar.t)
    return bars._replace(B=B_bar, size_b=Vec3(r, at.z * l.z, 0.0), at=Vec3(0.0, 0.0, size_b.y * l.z))


def plane_box(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (+-1, +-1, +-1): a corner. Those above the centre never touch, however deep the box is."""
    l = at.map(lambda f, s: f * s, size_b)
    met = _meet(A, B, l, 0.0)
    above = dot(A.R.column(2), B.R @ l) > 0.0
    return Gap(select(above, FAR, met.phi), met.p, met.n, ZERO)


@vjp_of(plane_box)
def plane_box_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    l = at.map(lambda f, s: f * s, size_b)
    above = dot(A.R.column(2), B.R @ l) > 0.0
    seen = Gap(select(above, 0.0, y_bar.phi), y_bar.p, y_bar.n, ZERO)
    bars, l_bar, _ = meet_bars(A, B, l, 0.0, seen)
    return bars._replace(size_b=at.map(lambda f, x: f * x, l_bar), at=size_b.map(lambda s, x: s * x, l_bar))


def plane_box_room(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Any:
    """To where the corner is as high as the centre."""
    return abs(dot(A.R.column(2), B.R @ at.map(lambda f, s: f * s, size_b)))


def plane_ellipsoid(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """The lowest point: l = -D^2 m/|D m| with D the half axes and m the plane's normal, in the frame of B"""
    m = B.R.T @ A.R.column(2)
    k = m.map(lambda x, a: x * a, size_b)
    l = k.map(lambda x, a: x * a, size_b) * (-1.0 / norm(k))
    return _meet(A, B, l, 0.0)


@vjp_of(plane_ellipsoid)
def plane_ellipsoid_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    n = A.R.column(2)
    m = B.R.T @ n
    k = m.map(lambda x, a: x * a, size_b)
    inverse = 1.0 / norm(k)
    l = k.map(lambda x, a: x * a, size_b) * -inverse
    bars, l_bar, _ = meet_bars(A, B, l, 0.0, y_bar)
    # l = -D k/|k|,  k = D m
    scaled = l_bar.map(lambda x, a: x * a, size_b)
    k_bar = (k * (dot(k, scaled) * inverse * inverse) - scaled) * inverse
    size_bar = k.map(lambda x, lb, kb, y: kb * y - lb * x * inverse, l_bar, k_bar, m)
    m_bar = B.R @ k_bar.map(lambda x, a: x * a, size_b)
    turn = Force(cross(n, m_bar), ZERO)  # of n against B
    return bars._replace(A=bars.A + turn, B=bars.B - turn, size_b=size_bar)


# Sine of the tilt below which a cylinder stands on its end: the direction that goes down is lost in rounding, and its adjoint
# divides by the tilt what the forces of the rim leave of each other.
FLAT = {"f64": 1e-8, "f32": 1e-5}


def _lowest(A: Pose, B: Pose) -> tuple[Vec3, Vec3, Any, Vec3]:
    """(z, u, |w|, n) of a cylinder B over the plane of A: z its axis towards the plane; u = w/|w|, w = (n x z) x z = z (n . z)
    - n, the direction in its disc that goes down (standing: its x axis). The products keep u in the disc at any tilt, where
    the difference would be left with nothing but rounding along z."""
    n, axis = A.R.column(2), B.R.column(2)
    z = select(dot(n, axis) > 0.0, -axis, axis)
    w = cross(cross(n, z), z)
    L = norm(w)
    tilted = FLAT[target().dtype] < L
    return z, select(tilted, w / select(tilted, L, 1.0), B.R.column(0)), L, n


def plane_cylinder(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
    """at = (cos t, sin t, +-1): a point of the lower or upper rim, its angle counted from the lowest one"""
    z, u, _, n = _lowest(A, B)
    d = z * (size_b.y * at.z) + (u * at.x + cross(u, z) * at.y) * size_b.x
    return plane_ball(A.r, n, B.r + d, 0.0)


@vjp_of(plane_cylinder)
def plane_cylinder_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
    z, u, L, n = _lowest(A, B)
    v = cross(u, z)
    d = z * (size_b.y * at.z) + (u * at.x + v * at.y) * size_b.x
    o_bar, n_bar, d_bar, _ = plane_ball_vjp(A.r, n, B.r + d, 0.0, y_bar)
    along = Vec3(dot(u, d_bar), dot(v, d_bar), dot(z, d_bar))
    size_bar = Vec3(at.x * along.x + at.y * along.y, at.z * along.z, 0.0)
    at_bar = Vec3(size_b.x * along.x, size_b.x * along.y, size_b.y * along.z)
    u_bar, v_bar, z_bar = d_bar * (at.x * size_b.x), d_bar * (at.y * size_b.x), d_bar * (at.z * size_b.y)
    u_bar, z_bar = u_bar + cross(z, v_bar), z_bar + cross(v_bar, u)  # v = u x z
    tilted = FLAT[target().dtype] < L
    w_bar = select(tilted, (u_bar - u * dot(u, u_bar)) / select(tilted, L, 1.0), ZERO)  # u = w/|w|
    k_bar = dot(w_bar, z)  # w = z k - n,  k = n . z
    z_bar, n_bar = z_bar + w_bar * dot(n, z) + n * k_bar, n_bar - w_bar + z * k_bar
    B_bar = moved(B.r, d_bar) + turned(z, z_bar) + turned(u, select(tilted, ZERO, u_bar))
    return PairBars(moved(A.r, o_bar) + turned(n, n_bar), ZERO, B_bar, size_bar, at_bar)


def plane_cylinder_room(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Any:
    """Of the points of the triangle, to where it lies and the other rim is the lower one."""
    z, _, _, n = _lowest(A, B)
    return select(at.x < 0.0, abs(size_b.y * dot(n, z)), FAR)


def plane_cylinder_turn(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Any:
    """To where it stands and its points turn about its axis at once with the direction of the tilt. Three points of one rim,
    a third of a turn apart, that press alike do the same wherever they are: their places add up to nothing, and the squares of
    these to the same along all directions."""
    return size_b.x * _lowest(A, B)[2]
