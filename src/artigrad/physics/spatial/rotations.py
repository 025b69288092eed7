"""Quaternions (w, x, y, z) and rotations. Tangents of a rotation are on the body side: R -> R exp(th)  (theory 1.16-1.20)."""

from __future__ import annotations

from typing import Any

from ...compiler import Linear, arctan2, cotangent_excess, half_angle, maximum, select, sqrt, target, vjp_of
from .vectors import Mat3, Vec3, axial, cross, dot, hat

ACROSS = {"f64": 1e-16, "f32": 1e-6}  # squared length below which a component of a direction counts as rounding


class Quat(Linear):
    """Quaternion (w, u); a rotation once normalized."""

    w: float
    x: float
    y: float
    z: float

    @property
    def u(self) -> Vec3:
        return Vec3(self.x, self.y, self.z)

    @staticmethod
    def of(w: float, u: Vec3) -> Quat:
        return Quat(w, u.x, u.y, u.z)

    @property
    def conjugate(self) -> Quat:
        return Quat(self.w, -self.x, -self.y, -self.z)

    def __matmul__(self, other: Quat) -> Quat:
        return quat_product(self, other)


def quat_product(a: Quat, b: Quat) -> Quat:
    """c = a (x) b  (1.18)"""
    return Quat.of(a.w * b.w - dot(a.u, b.u), b.u * a.w + a.u * b.w + cross(a.u, b.u))


@vjp_of(quat_product)
def quat_product_vjp(a: Quat, b: Quat, c_bar: Quat) -> tuple[Quat, Quat]:
    return c_bar @ b.conjugate, a.conjugate @ c_bar


def quat_dot(a: Quat, b: Quat) -> float:
    return a.w * b.w + dot(a.u, b.u)


def quat_normalize(q: Quat) -> Quat:
    """n = q / |q|  (1.17)"""
    return q * (1.0 / sqrt(quat_dot(q, q)))


@vjp_of(quat_normalize)
def quat_normalize_vjp(q: Quat, n_bar: Quat) -> Quat:
    s = 1.0 / sqrt(quat_dot(q, q))
    n = q * s
    return (n_bar - n * quat_dot(n, n_bar)) * s


def quat_matrix(q: Quat) -> Mat3:
    """R(q), the quadratic form 1 - 2(|u|^2 1 - u u^T) + 2 w hat(u); a rotation if |q| = 1  (1.16)"""
    w, x, y, z = q.leaves()
    return Mat3(
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@vjp_of(quat_matrix)
def quat_matrix_vjp(q: Quat, R_bar: Mat3) -> Quat:
    """q_bar = 2 (u . ax(R_bar) ; w ax(R_bar) + (R_bar + R_bar^T) u - 2 tr(R_bar) u)"""
    a = axial(R_bar)
    trace = R_bar.xx + R_bar.yy + R_bar.zz
    u_bar = a * q.w + (R_bar + R_bar.T) @ q.u - q.u * (2.0 * trace)
    return Quat.of(dot(q.u, a), u_bar) * 2.0


def quat_exp(phi: Vec3) -> Quat:
    """e = (cos(t/2), k phi), t = |phi|, k = sin(t/2)/t  (1.19)"""
    c, k, _ = half_angle(dot(phi, phi))
    return Quat.of(c, phi * k)


@vjp_of(quat_exp)
def quat_exp_vjp(phi: Vec3, e_bar: Quat) -> Vec3:
    """phi_bar = k u_bar + (kappa (phi . u_bar) - k/2 w_bar) phi"""
    _, k, kappa = half_angle(dot(phi, phi))
    return e_bar.u * k + phi * (kappa * dot(phi, e_bar.u) - 0.5 * k * e_bar.w)


def quat_log(q: Quat) -> Vec3:
    """Rotation vector of a unit quaternion, with an angle in [-pi, pi]; not differentiated here."""
    flip = select(q.w < 0.0, -1.0, 1.0)
    u, w = q.u * flip, q.w * flip
    sine = sqrt(maximum(dot(u, u), 1e-30))
    return u * select(sine > 1e-12, 2.0 * arctan2(sine, w) / sine, 2.0)


def quat_to_ambient(q: Quat, th_bar: Vec3) -> Quat:
    """Ambient cotangent of q from the tangent one: 2 q (x) (0, th_bar) / |q|^2, orthogonal to q  (1.20)"""
    return (q @ Quat.of(0.0, th_bar)) * (2.0 / quat_dot(q, q))


def quat_rate(q: Quat, w: Vec3) -> Quat:
    """dq/dt = 1/2 q (x) (0, w), w in body axes  (1.20)"""
    return (q @ Quat.of(0.0, w)) * 0.5


@vjp_of(quat_rate)
def quat_rate_vjp(q: Quat, w: Vec3, y_bar: Quat) -> tuple[Quat, Vec3]:
    half = y_bar * 0.5
    return half @ Quat.of(0.0, w).conjugate, (q.conjugate @ half).u


def rotation_vector_rate(phi: Vec3, w: Vec3) -> Vec3:
    """Derivative of phi when exp(phi) rotates with body angular velocity w: w + phi x w/2 + C phi x (phi x w)  (theory 7.4)"""
    C, _ = cotangent_excess(dot(phi, phi))
    side = cross(phi, w)
    return w + side * 0.5 + cross(phi, side) * C


@vjp_of(rotation_vector_rate)
def rotation_vector_rate_vjp(phi: Vec3, w: Vec3, y_bar: Vec3) -> tuple[Vec3, Vec3]:
    C, C_rate = cotangent_excess(dot(phi, phi))
    side, side_bar = cross(phi, w), cross(y_bar, phi)
    stretch = 2.0 * C_rate * dot(cross(phi, side), y_bar)
    phi_bar = cross(w, y_bar) * 0.5 + (cross(side, y_bar) + cross(w, side_bar)) * C + phi * stretch
    return phi_bar, y_bar + side_bar * 0.5 + cross(side_bar, phi) * C


def axis_frame(n: Vec3) -> Mat3:
    """Rotation whose third column is the unit vector n: the smallest rotation from +z or, for n_z < -1/2, from -z  (6.6)"""
    s = select(n.z < -0.5, -1.0, 1.0)
    kap = 1.0 / (1.0 + s * n.z)
    u = Vec3(n.x, n.y, n.z + s)
    t1 = Vec3(1.0, 0.0, 0.0) - u * (n.x * kap)
    t2 = (Vec3(0.0, 1.0, 0.0) - u * (n.y * kap)) * s
    return Mat3.columns(t1, t2, n)


@vjp_of(axis_frame)
def axis_frame_vjp(n: Vec3, R_bar: Mat3) -> Vec3:
    s = select(n.z < -0.5, -1.0, 1.0)
    kap = 1.0 / (1.0 + s * n.z)
    u = Vec3(n.x, n.y, n.z + s)
    t1_bar, t2_bar = R_bar.column(0), R_bar.column(1) * s
    q1, q2 = -dot(t1_bar, u), -dot(t2_bar, u)
    direct = t1_bar * (-(n.x * kap)) + t2_bar * (-(n.y * kap))
    turn = Vec3(q1 * kap, q2 * kap, -(s * kap * kap) * (q1 * n.x + q2 * n.y))
    return R_bar.column(2) + direct + turn


def twist_to_matrix(R: Mat3, th_bar: Vec3) -> Mat3:
    """Ambient cotangent of R from the body-side tangent one: 1/2 R hat(th_bar)  (1.8)"""
    return (R @ hat(th_bar)) * 0.5


def matrix_to_twist(R: Mat3, R_bar: Mat3) -> Vec3:
    """th_bar = ax(R^T R_bar)  (1.8)"""
    return axial(R.T @ R_bar)


def contact_frame(n: Vec3, along: Vec3) -> Mat3:
    """Contact frame in MuJoCo's convention, with columns n, t1, t2  (6.7).

    t1 is `along` (if its norm is above 1/2 and it is not parallel to n), else the y axis, else (where n is near y) the z
    axis, minus its component along n; t2 = n x t1.
    """
    t1, _ = _beside(n, along)
    u = t1 - n * dot(n, t1)
    t1 = u / sqrt(dot(u, u))
    return Mat3.columns(n, t1, cross(n, t1))


def _beside(n: Vec3, along: Vec3) -> tuple[Vec3, Any]:
    """Return t1 before normalization, and 1 if it is derived from `along`."""
    near = abs(n.y) < 0.5
    axis = Vec3(0.0, select(near, 1.0, 0.0), select(near, 0.0, 1.0))
    across = cross(n, along)
    given = (dot(along, along) > 0.25) & (dot(across, across) > ACROSS[target().dtype])
    return select(given, along, axis), given


@vjp_of(contact_frame)
def contact_frame_vjp(n: Vec3, along: Vec3, R_bar: Mat3) -> tuple[Vec3, Vec3]:
    given, by_along = _beside(n, along)
    u = given - n * dot(n, given)
    inverse = 1.0 / sqrt(dot(u, u))
    t1 = u * inverse
    n_bar, t1_bar, t2_bar = (R_bar.column(k) for k in range(3))
    n_bar = n_bar + cross(t1, t2_bar)  # t2 = n x t1
    t1_bar = t1_bar + cross(t2_bar, n)
    u_bar = (t1_bar - t1 * dot(t1, t1_bar)) * inverse
    n_bar = n_bar - given * dot(n, u_bar) - u_bar * dot(n, given)
    along_bar = u_bar - n * dot(n, u_bar)
    return n_bar, select(by_along, along_bar, Vec3.zero())


def quat_of_matrix(R: Mat3) -> Quat:
    """Unit quaternion of a rotation, computed from its largest entry; the sign is arbitrary."""
    w, x, y, z = 1.0 + R.xx + R.yy + R.zz, 1.0 + R.xx - R.yy - R.zz, 1.0 - R.xx + R.yy - R.zz, 1.0 - R.xx - R.yy + R.zz
    a, b, c = R.zy - R.yz, R.xz - R.zx, R.yx - R.xy
    d, e, f = R.yx + R.xy, R.xz + R.zx, R.zy + R.yz
    by_w, by_x, by_y, by_z = Quat(w, a, b, c), Quat(a, x, d, e), Quat(b, d, y, f), Quat(c, e, f, z)
    first = select(w > x, w, x)
    second = select(y > z, y, z)
    large = select(w > x, by_w, by_x)
    other = select(y > z, by_y, by_z)
    picked, size = select(first > second, large, other), select(first > second, first, second)
    return picked * (0.5 / sqrt(size))
