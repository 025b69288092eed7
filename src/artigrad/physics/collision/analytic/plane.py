"""Plane and any other primitive: each candidate point of the other shape is a ball with a position and a radius."""

from __future__ import annotations

from typing import Any

from ....compiler import select, target, vjp_of
from ...spatial import Force, Vec3, cross, dot, norm
from ..contact_geometry import FAR, ZERO, ContactGeometry, PairBars, Pose, axis_to_pose_bar, point_to_pose_bar


def plane_ball(o: Vec3, n: Vec3, c: Vec3, r: float) -> ContactGeometry:
    """phi = n . (c - o) - r,  p = c - (r + phi/2) n: midway between the surfaces  (theory 6.2)"""
    phi = dot(n, c - o) - r
    return ContactGeometry(phi, c - n * (r + 0.5 * phi), n, ZERO)


@vjp_of(plane_ball)
def plane_ball_vjp(o: Vec3, n: Vec3, c: Vec3, r: float, y_bar: ContactGeometry) -> tuple[Vec3, Vec3, Vec3, float]:
    """Adjoint of `plane_ball`."""
    d = c - o
    depth = r + 0.5 * (dot(n, d) - r)
    along = dot(n, y_bar.p)
    phi_bar = y_bar.phi - 0.5 * along
    return -(n * phi_bar), y_bar.n + d * phi_bar - y_bar.p * depth, y_bar.p + n * phi_bar, -(along + phi_bar)


def _collide(A: Pose, B: Pose, l: Vec3, r: float) -> ContactGeometry:
    """Contact geometry of the plane of A and a ball of radius r at l in the frame of B."""
    return plane_ball(A.r, A.R.column(2), B.r + B.R @ l, r)


def plane_point_bars(A: Pose, B: Pose, l: Vec3, r: float, y_bar: ContactGeometry) -> tuple[PairBars, Vec3, float]:
    """Return the cotangents of both poses, of l and of r."""
    n, c = A.R.column(2), B.r + B.R @ l
    o_bar, n_bar, c_bar, r_bar = plane_ball_vjp(A.r, n, c, r, y_bar)
    return (
        PairBars(
            point_to_pose_bar(A.r, o_bar) + axis_to_pose_bar(n, n_bar), ZERO, point_to_pose_bar(c, c_bar), ZERO, ZERO
        ),
        B.R.T @ c_bar,
        r_bar,
    )


def plane_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a plane and a sphere."""
    return _collide(A, B, ZERO, size_b.x)


@vjp_of(plane_sphere)
def plane_sphere_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `plane_sphere`."""
    bars, _, r = plane_point_bars(A, B, ZERO, size_b.x, y_bar)
    return bars._replace(size_b=Vec3(r, 0.0, 0.0))


def plane_capsule(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a plane and one end of a capsule, feature = (0, 0, +-1). The tangent is the capsule's axis."""
    contact = _collide(A, B, Vec3(0.0, 0.0, feature.z * size_b.y), size_b.x)
    return ContactGeometry(contact.phi, contact.p, contact.n, B.R.column(2))


@vjp_of(plane_capsule)
def plane_capsule_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `plane_capsule`."""
    bars, l, r = plane_point_bars(A, B, Vec3(0.0, 0.0, feature.z * size_b.y), size_b.x, y_bar)
    B_bar = bars.B + axis_to_pose_bar(B.R.column(2), y_bar.t)
    return bars._replace(B=B_bar, size_b=Vec3(r, feature.z * l.z, 0.0), feature=Vec3(0.0, 0.0, size_b.y * l.z))


def plane_box(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a plane and a vertex of a box, feature = (+-1, +-1, +-1).

    Vertices above the center never touch, at any penetration.
    """
    l = feature.map(lambda f, s: f * s, size_b)
    contact = _collide(A, B, l, 0.0)
    above = dot(A.R.column(2), B.R @ l) > 0.0
    return ContactGeometry(select(above, FAR, contact.phi), contact.p, contact.n, ZERO)


@vjp_of(plane_box)
def plane_box_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `plane_box`."""
    l = feature.map(lambda f, s: f * s, size_b)
    above = dot(A.R.column(2), B.R @ l) > 0.0
    seen = ContactGeometry(select(above, 0.0, y_bar.phi), y_bar.p, y_bar.n, ZERO)
    bars, l_bar, _ = plane_point_bars(A, B, l, 0.0, seen)
    return bars._replace(size_b=feature.map(lambda f, x: f * x, l_bar), feature=size_b.map(lambda s, x: s * x, l_bar))


def plane_box_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Height difference of the vertex and the center."""
    return abs(dot(A.R.column(2), B.R @ feature.map(lambda f, s: f * s, size_b)))


def plane_ellipsoid(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry at the lowest point l = -D^2 m/|D m|, D the half axes and m the plane's normal in the frame of B."""
    m = B.R.T @ A.R.column(2)
    k = m.map(lambda x, a: x * a, size_b)
    l = k.map(lambda x, a: x * a, size_b) * (-1.0 / norm(k))
    return _collide(A, B, l, 0.0)


@vjp_of(plane_ellipsoid)
def plane_ellipsoid_vjp(
    A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry
) -> PairBars:
    """Adjoint of `plane_ellipsoid`."""
    n = A.R.column(2)
    m = B.R.T @ n
    k = m.map(lambda x, a: x * a, size_b)
    inverse = 1.0 / norm(k)
    l = k.map(lambda x, a: x * a, size_b) * -inverse
    bars, l_bar, _ = plane_point_bars(A, B, l, 0.0, y_bar)
    # l = -D k/|k|,  k = D m
    scaled = l_bar.map(lambda x, a: x * a, size_b)
    k_bar = (k * (dot(k, scaled) * inverse * inverse) - scaled) * inverse
    size_bar = k.map(lambda x, lb, kb, y: kb * y - lb * x * inverse, l_bar, k_bar, m)
    m_bar = B.R @ k_bar.map(lambda x, a: x * a, size_b)
    turn = Force(cross(n, m_bar), ZERO)  # of n relative to B
    return bars._replace(A=bars.A + turn, B=bars.B - turn, size_b=size_bar)


# Sine of the tilt below which a cylinder stands on its end: the downward direction is lost in rounding, and the
# adjoint would divide the unbalanced part of the rim forces by the tilt.
FLAT = {"f64": 1e-8, "f32": 1e-5}


def _lowest(A: Pose, B: Pose) -> tuple[Vec3, Vec3, Any, Vec3]:
    """Return (z, u, |w|, n) of a cylinder B over the plane of A.

    z is its axis towards the plane; u = w/|w|, w = (n x z) x z = z (n . z) - n, the downward direction in its disc
    (standing upright: its x axis). The cross products keep u in the disc at any tilt; in the difference only rounding error
    would remain along z.
    """
    n, axis = A.R.column(2), B.R.column(2)
    z = select(dot(n, axis) > 0.0, -axis, axis)
    w = cross(cross(n, z), z)
    L = norm(w)
    tilted = FLAT[target().dtype] < L
    return z, select(tilted, w / select(tilted, L, 1.0), B.R.column(0)), L, n


def plane_cylinder(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact of a plane and a rim point, feature = (cos t, sin t, +-1), lower or upper rim, t from the lowest point."""
    z, u, _, n = _lowest(A, B)
    d = z * (size_b.y * feature.z) + (u * feature.x + cross(u, z) * feature.y) * size_b.x
    return plane_ball(A.r, n, B.r + d, 0.0)


@vjp_of(plane_cylinder)
def plane_cylinder_vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `plane_cylinder`."""
    z, u, L, n = _lowest(A, B)
    v = cross(u, z)
    d = z * (size_b.y * feature.z) + (u * feature.x + v * feature.y) * size_b.x
    o_bar, n_bar, d_bar, _ = plane_ball_vjp(A.r, n, B.r + d, 0.0, y_bar)
    along = Vec3(dot(u, d_bar), dot(v, d_bar), dot(z, d_bar))
    size_bar = Vec3(feature.x * along.x + feature.y * along.y, feature.z * along.z, 0.0)
    at_bar = Vec3(size_b.x * along.x, size_b.x * along.y, size_b.y * along.z)
    u_bar, v_bar, z_bar = d_bar * (feature.x * size_b.x), d_bar * (feature.y * size_b.x), d_bar * (feature.z * size_b.y)
    u_bar, z_bar = u_bar + cross(z, v_bar), z_bar + cross(v_bar, u)  # v = u x z
    tilted = FLAT[target().dtype] < L
    w_bar = select(tilted, (u_bar - u * dot(u, u_bar)) / select(tilted, L, 1.0), ZERO)  # u = w/|w|
    k_bar = dot(w_bar, z)  # w = z k - n,  k = n . z
    z_bar, n_bar = z_bar + w_bar * dot(n, z) + n * k_bar, n_bar - w_bar + z * k_bar
    B_bar = (
        point_to_pose_bar(B.r, d_bar) + axis_to_pose_bar(z, z_bar) + axis_to_pose_bar(u, select(tilted, ZERO, u_bar))
    )
    return PairBars(point_to_pose_bar(A.r, o_bar) + axis_to_pose_bar(n, n_bar), ZERO, B_bar, size_bar, at_bar)


def plane_cylinder_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Distance of the triangle's points to the pose lying flat, where the lower rim changes."""
    z, _, _, n = _lowest(A, B)
    return select(feature.x < 0.0, abs(size_b.y * dot(n, z)), FAR)


def plane_cylinder_symmetric_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Any:
    """Distance to the upright pose, where the points rotate about the axis with the direction of the tilt.

    Three points of one rim, 120 degrees apart, with equal forces have the same effect wherever they are: their positions
    sum to zero, and the squares of these are equal in all directions.
    """
    return size_b.x * _lowest(A, B)[2]
