"""Sphere and cylinder: in the half plane of the axis and the ball, a cylinder is a rectangle  (theory 6.5).

Outside, the closest point; inside, the nearest of side and ends. On the axis the side has no direction: the x axis replaces
it, held constant. Over an end this has no effect: the point there moves with the ball in every direction.
"""

from __future__ import annotations

from typing import Any

from ....compiler import minimum, select, sqrt, vjp_of
from ...spatial import Vec3
from ..contact_geometry import FAR, ZERO, ContactGeometry, PairBars, Pose
from .box import BesideBall, box_ball, box_ball_margin, box_ball_vjp
from .sphere import TINY


def _half_plane(c: Vec3) -> tuple[Any, Vec3, Any]:
    """Return the distance of c from the z axis, the unit vector u from the axis to it, and the inverse of the distance or 0."""
    square = c.x * c.x + c.y * c.y
    off = square > TINY * TINY
    rho = sqrt(select(off, square, 1.0))
    u = Vec3(select(off, c.x / rho, 1.0), select(off, c.y / rho, 0.0), 0.0)
    return select(off, rho, 0.0), u, select(off, 1.0 / rho, 0.0)


def _rectangle(size: Vec3) -> Vec3:
    """Half sizes of the cylinder's section as a box without bounds along y."""
    return Vec3(size.x, FAR, size.y)


def cylinder_ball(size: Vec3, c: Vec3, r: float) -> ContactGeometry:
    """Contact geometry of a cylinder (radius, half length) along z at the origin and a ball at c."""
    rho, u, _ = _half_plane(c)
    contact = box_ball(_rectangle(size), Vec3(rho, 0.0, c.z), r)
    p, n = (u * x.x + Vec3(0.0, 0.0, x.z) for x in (contact.p, contact.n))
    return ContactGeometry(contact.phi, p, n, ZERO)


@vjp_of(cylinder_ball)
def cylinder_ball_vjp(size: Vec3, c: Vec3, r: float, y_bar: ContactGeometry) -> tuple[Vec3, Vec3, float]:
    """Adjoint of `cylinder_ball`."""
    rho, u, inverse = _half_plane(c)
    h, flat = _rectangle(size), Vec3(rho, 0.0, c.z)
    contact = box_ball(h, flat, r)

    def along(x: Vec3) -> Any:
        return u.x * x.x + u.y * x.y

    in_plane = (Vec3(along(x), 0.0, x.z) for x in (y_bar.p, y_bar.n))
    h_bar, flat_bar, r_bar = box_ball_vjp(h, flat, r, ContactGeometry(y_bar.phi, *in_plane, ZERO))
    u_bar = y_bar.p * select(inverse > 0.0, contact.p.x * inverse, 1.0) + y_bar.n * (contact.n.x * inverse)
    turn = u_bar - u * along(u_bar)
    c_bar = Vec3(u.x * flat_bar.x + turn.x, u.y * flat_bar.x + turn.y, flat_bar.z)
    return Vec3(h_bar.x, h_bar.z, 0.0), c_bar, r_bar


CYLINDER = BesideBall(cylinder_ball, cylinder_ball_vjp)


def cylinder_sphere(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
    """Contact geometry of a cylinder and a sphere."""
    return CYLINDER.sphere(A, size_a, B, size_b)


@vjp_of(cylinder_sphere)
def cylinder_sphere_vjp(
    A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry
) -> PairBars:
    """Adjoint of `cylinder_sphere`."""
    return CYLINDER.sphere_vjp(A, size_a, B, size_b, y_bar)


def cylinder_sphere_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
    """Feature margin of the rectangle, and the distance to the axis if the side touches."""
    rho, _, _ = _half_plane(A.R.T @ (B.r - A.r))
    c, h = Vec3(rho, 0.0, (A.R.T @ (B.r - A.r)).z), _rectangle(size_a)
    return minimum(box_ball_margin(h, c), select(abs(box_ball(h, c, 0.0).n.x) > 0.0, rho, FAR))
