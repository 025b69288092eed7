"""Quaternions (w, x, y, z) and rotations. Tangents of a rotation are on the body side: R -> R exp(th)  (theory 1.16-1.20)."""

from __future__ import annotations

from ..staging import Linear, half_angle, select, sqrt, vjp_of
from .vectors import Mat3, Vec3, axial, cross, dot, hat


class Quat(Linear):
    """A quaternion; a rotation once normalised."""

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


def quat_normalise(q: Quat) -> Quat:
    """n = q / |q|  (1.17)"""
    return q * (1.0 / sqrt(quat_dot(q, q)))


@vjp_of(quat_normalise)
def quat_normalise_vjp(q: Quat, n_bar: Quat) -> Quat:
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


def quat_to_ambient(q: Quat, th_bar: Vec3) -> Quat:
    """The ambient cotangent of q for a tangent one: 2 q (x) (0, th_bar) / |q|^2, orthogonal to q  (1.20)"""
    return (q @ Quat.of(0.0, th_bar)) * (2.0 / quat_dot(q, q))


def quat_rate(q: Quat, w: Vec3) -> Quat:
    """dq/dt = 1/2 q (x) (0, w), w in body axes  (7.4)"""
    return (q @ Quat.of(0.0, w)) * 0.5


@vjp_of(quat_rate)
def quat_rate_vjp(q: Quat, w: Vec3, y_bar: Quat) -> tuple[Quat, Vec3]:
    half = y_bar * 0.5
    return half @ Quat.of(0.0, w).conjugate, (q.conjugate @ half).u


def axis_frame(n: Vec3) -> Mat3:
    """A rotation whose third column is the unit vector n: the least turn from +z or, for n_z < -1/2, from -z  (6.6)"""
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
    """An ambient cotangent of R for a body-side tangent one: 1/2 R hat(th_bar)  (1.8)"""
    return (R @ hat(th_bar)) * 0.5


def matrix_to_twist(R: Mat3, R_bar: Mat3) -> Vec3:
    """th_bar = ax(R^T R_bar)  (1.8)"""
    return axial(R.T @ R_bar)
