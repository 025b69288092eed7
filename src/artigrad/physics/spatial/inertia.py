"""Inertias: of a rigid body (ten parameters about the frame's origin) and articulated (a symmetric 6x6 matrix)."""

from __future__ import annotations

from ...compiler import Linear, vjp_of
from .motion import Force, Motion
from .rotations import matrix_to_twist
from .transform import Transform
from .vectors import Mat3, Sym3, Vec3, cotangent_matrix, cross, dot, matrix, outer, rotate, sym_outer


class Inertia(Linear):
    """Mass m, first moment h = m c, rotational inertia J about the frame's origin."""

    m: float
    h: Vec3
    J: Sym3

    def __matmul__(self, x: Motion) -> Force:
        return momentum(self, x)


def momentum(I: Inertia, x: Motion) -> Force:
    """y = I x = [J w + h x v ; m v - h x w]  (1.12)"""
    return Force(I.J @ x.w + cross(I.h, x.v), x.v * I.m - cross(I.h, x.w))


@vjp_of(momentum)
def momentum_vjp(I: Inertia, x: Motion, y_bar: Motion) -> tuple[Inertia, Force]:
    return inertia_pairing(x, y_bar), I @ y_bar


def inertia_pairing(x: Motion, y: Motion) -> Inertia:
    """Cotangent of I in y . (I x), symmetric in x and y: par(x, y) of (1.12)."""
    return Inertia(dot(x.v, y.v), cross(x.v, y.w) + cross(y.v, x.w), sym_outer(x.w, y.w))


def inertia_at_origin(m: float, c: Vec3, Ic: Sym3) -> Inertia:
    """(m, c, Ic about the center of mass) -> (m, m c, Ic + m (|c|^2 1 - c c^T))  (1.13)"""
    d = dot(c, c)
    point = Sym3(d - c.x * c.x, d - c.y * c.y, d - c.z * c.z, -(c.x * c.y), -(c.x * c.z), -(c.y * c.z))
    return Inertia(m, c * m, Ic + point * m)


@vjp_of(inertia_at_origin)
def inertia_at_origin_vjp(m: float, c: Vec3, Ic: Sym3, I_bar: Inertia) -> tuple[float, Vec3, Sym3]:
    """m_bar, c_bar, Ic_bar, with T(x) = tr(K) x - K x:  m_bar = m'_bar + h_bar . c + c . T(c),  c_bar = m h_bar + 2 m T(c)"""
    Tc = _moment(cotangent_matrix(I_bar.J), c)
    return I_bar.m + dot(I_bar.h, c) + dot(c, Tc), (I_bar.h + Tc * 2.0) * m, I_bar.J


def shift(X: Transform, I: Inertia) -> Inertia:
    """I' = X^T I X, congruence: a child's inertia in parent coordinates  (1.14)"""
    r, k, J = X.r, X.R @ I.h, rotate(X.R, I.J)
    u = k + r * (0.5 * I.m)  # r k^T + k r^T + m r r^T = r u^T + u r^T
    twice = r + r
    d = dot(twice, u)
    J = Sym3(
        J.xx + d - twice.x * u.x,
        J.yy + d - twice.y * u.y,
        J.zz + d - twice.z * u.z,
        J.xy - r.x * u.y - r.y * u.x,
        J.xz - r.x * u.z - r.z * u.x,
        J.yz - r.y * u.z - r.z * u.y,
    )
    return Inertia(I.m, k + r * I.m, J)


@vjp_of(shift)
def shift_vjp(X: Transform, I: Inertia, y_bar: Inertia) -> tuple[Force, Inertia]:
    """k_bar = h'_bar + 2 T(r), then R_bar = k_bar h^T + 2 K R J,  r_bar = m h'_bar + 2 T(k) + 2 m T(r)  (1.14)"""
    r, k, K = X.r, X.R @ I.h, cotangent_matrix(y_bar.J)
    Tr, Tk = _moment(K, r), _moment(K, k)
    k_bar = y_bar.h + Tr * 2.0
    R_bar = outer(k_bar, I.h) + (K @ X.R @ matrix(I.J)) * 2.0
    r_bar = y_bar.h * I.m + (Tk + Tr * I.m) * 2.0
    P = X.R.T @ K @ X.R
    J_bar = Sym3(P.xx, P.yy, P.zz, P.xy + P.yx, P.xz + P.zx, P.yz + P.zy)
    I_bar = Inertia(y_bar.m + dot(y_bar.h, r) + dot(r, Tr), X.R.T @ k_bar, J_bar)
    return Force(matrix_to_twist(X.R, R_bar), X.R.T @ r_bar), I_bar


def _moment(K: Mat3, x: Vec3) -> Vec3:
    """T(x) = tr(K) x - K x"""
    return x * (K.xx + K.yy + K.zz) - K @ x


class Articulated(Linear):
    """Symmetric 6x6 matrix [A B; B^T C] from motions to forces."""

    A: Sym3
    B: Mat3
    C: Sym3

    def __matmul__(self, x: Motion) -> Force:
        return articulated_apply(self, x)

    @staticmethod
    def of(I: Inertia) -> Articulated:
        """Return the matrix of the inertia of a rigid body."""
        h, m = I.h, I.m
        return Articulated(I.J, Mat3(0.0, -h.z, h.y, h.z, 0.0, -h.x, -h.y, h.x, 0.0), Sym3(m, m, m, 0.0, 0.0, 0.0))


def articulated_apply(I: Articulated, x: Motion) -> Force:
    """y = [A w + B v ; B^T w + C v]"""
    return Force(I.A @ x.w + I.B @ x.v, I.B.T @ x.w + I.C @ x.v)


@vjp_of(articulated_apply)
def articulated_apply_vjp(I: Articulated, x: Motion, y_bar: Motion) -> tuple[Articulated, Force]:
    I_bar = Articulated(sym_outer(y_bar.w, x.w), outer(y_bar.w, x.v) + outer(x.w, y_bar.v), sym_outer(y_bar.v, x.v))
    return I_bar, I @ y_bar


def articulated_outer(U: Force, s: float) -> Articulated:
    """Y = s U U^T"""
    n, f = U.n * s, U.f * s
    half = Sym3(n.x * U.n.x, n.y * U.n.y, n.z * U.n.z, n.x * U.n.y, n.x * U.n.z, n.y * U.n.z)
    low = Sym3(f.x * U.f.x, f.y * U.f.y, f.z * U.f.z, f.x * U.f.y, f.x * U.f.z, f.y * U.f.z)
    return Articulated(half, outer(n, U.f), low)


@vjp_of(articulated_outer)
def articulated_outer_vjp(U: Force, s: float, y_bar: Articulated) -> tuple[Motion, float]:
    """U_bar and s_bar, with Q = Y_bar + Y_bar^T:  U_bar = s Q U,  s_bar = U . Y_bar U"""
    A, C = cotangent_matrix(y_bar.A), cotangent_matrix(y_bar.C)
    n = (A @ U.n) * 2.0 + y_bar.B @ U.f
    f = (C @ U.f) * 2.0 + y_bar.B.T @ U.n
    return Motion(n * s, f * s), 0.5 * (dot(U.n, n) + dot(U.f, f))
