"""Three-dimensional vectors and matrices. A cotangent has the type of its value."""

from __future__ import annotations

from typing import Any, overload

from ...compiler import Linear, StagingError, sqrt, vjp_of


class Vec3(Linear):
    """Three-dimensional vector."""

    x: float
    y: float
    z: float


class Sym3(Linear):
    """Symmetric 3x3 matrix of six values. The cotangent of an off-diagonal value is that of both entries."""

    xx: float
    yy: float
    zz: float
    xy: float
    xz: float
    yz: float

    def __matmul__(self, a: Vec3) -> Vec3:
        return sym_apply(self, a)


class Mat3(Linear):
    """3x3 matrix by rows; also the type of rotations."""

    xx: float
    xy: float
    xz: float
    yx: float
    yy: float
    yz: float
    zx: float
    zy: float
    zz: float

    @property
    def T(self) -> Mat3:
        m = self.leaves()
        return Mat3(*(m[3 * c + r] for r in range(3) for c in range(3)))

    def column(self, c: int) -> Vec3:
        m = self.leaves()
        return Vec3(m[c], m[3 + c], m[6 + c])

    @staticmethod
    def columns(a: Vec3, b: Vec3, c: Vec3) -> Mat3:
        return Mat3(a.x, b.x, c.x, a.y, b.y, c.y, a.z, b.z, c.z)

    @staticmethod
    def identity() -> Mat3:
        return Mat3(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)

    @overload
    def __matmul__(self, other: Vec3) -> Vec3: ...
    @overload
    def __matmul__(self, other: Mat3) -> Mat3: ...
    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Vec3):
            return mat_apply(self, other)
        if isinstance(other, Mat3):
            return mat_product(self, other)
        raise StagingError(f"a Mat3 times a {type(other).__name__}: only Vec3 and Mat3 stand right of @")


# -- products of vectors -----------------------------------------------------------------------------------------------
def dot(a: Vec3, b: Vec3) -> float:
    """y = a . b"""
    return a.x * b.x + a.y * b.y + a.z * b.z


@vjp_of(dot)
def dot_vjp(a: Vec3, b: Vec3, y_bar: float) -> tuple[Vec3, Vec3]:
    return b * y_bar, a * y_bar


def cross(a: Vec3, b: Vec3) -> Vec3:
    """y = a x b"""
    return Vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@vjp_of(cross)
def cross_vjp(a: Vec3, b: Vec3, y_bar: Vec3) -> tuple[Vec3, Vec3]:
    return cross(b, y_bar), cross(y_bar, a)


def outer(a: Vec3, b: Vec3) -> Mat3:
    """Y = a b^T"""
    return Mat3(*(x * y for x in a.leaves() for y in b.leaves()))


@vjp_of(outer)
def outer_vjp(a: Vec3, b: Vec3, y_bar: Mat3) -> tuple[Vec3, Vec3]:
    return y_bar @ b, y_bar.T @ a


def norm(a: Vec3) -> float:
    """y = |a|; not differentiable at zero."""
    return sqrt(dot(a, a))


@vjp_of(norm)
def norm_vjp(a: Vec3, y_bar: float) -> Vec3:
    return a * (y_bar / norm(a))


def normalize(a: Vec3) -> Vec3:
    """n = a / |a|"""
    return a / norm(a)


@vjp_of(normalize)
def normalize_vjp(a: Vec3, n_bar: Vec3) -> Vec3:
    """a_bar = (n_bar - n (n . n_bar)) / |a|"""
    n = normalize(a)
    return (n_bar - n * dot(n, n_bar)) / norm(a)


# -- matrices ----------------------------------------------------------------------------------------------------------
def mat_apply(A: Mat3, x: Vec3) -> Vec3:
    """y = A x"""
    m = A.leaves()
    return Vec3(*(m[r] * x.x + m[r + 1] * x.y + m[r + 2] * x.z for r in (0, 3, 6)))


@vjp_of(mat_apply)
def mat_apply_vjp(A: Mat3, x: Vec3, y_bar: Vec3) -> tuple[Mat3, Vec3]:
    return outer(y_bar, x), A.T @ y_bar


def mat_product(A: Mat3, B: Mat3) -> Mat3:
    """Y = A B"""
    a, b = A.leaves(), B.leaves()
    return Mat3(
        *(a[3 * r] * b[c] + a[3 * r + 1] * b[3 + c] + a[3 * r + 2] * b[6 + c] for r in range(3) for c in range(3))
    )


@vjp_of(mat_product)
def mat_product_vjp(A: Mat3, B: Mat3, y_bar: Mat3) -> tuple[Mat3, Mat3]:
    return y_bar @ B.T, A.T @ y_bar


def sym_apply(S: Sym3, x: Vec3) -> Vec3:
    """y = S x"""
    return Vec3(
        S.xx * x.x + S.xy * x.y + S.xz * x.z,
        S.xy * x.x + S.yy * x.y + S.yz * x.z,
        S.xz * x.x + S.yz * x.y + S.zz * x.z,
    )


@vjp_of(sym_apply)
def sym_apply_vjp(S: Sym3, x: Vec3, y_bar: Vec3) -> tuple[Sym3, Vec3]:
    return sym_outer(y_bar, x), S @ y_bar


def sym_outer(a: Vec3, b: Vec3) -> Sym3:
    """Six values of (a b^T + b a^T)/2, off-diagonals doubled: <sym_outer(a, b), S> = a . (S b)"""
    return Sym3(
        a.x * b.x,
        a.y * b.y,
        a.z * b.z,
        a.x * b.y + a.y * b.x,
        a.x * b.z + a.z * b.x,
        a.y * b.z + a.z * b.y,
    )


@vjp_of(sym_outer)
def sym_outer_vjp(a: Vec3, b: Vec3, y_bar: Sym3) -> tuple[Vec3, Vec3]:
    return y_bar @ b, y_bar @ a


def rotate(R: Mat3, S: Sym3) -> Sym3:
    """S' = R S R^T"""
    rows = [Vec3(*R.leaves()[r : r + 3]) for r in (0, 3, 6)]
    a, b, c = (S @ row for row in rows)
    x, y, z = rows
    return Sym3(dot(a, x), dot(b, y), dot(c, z), dot(a, y), dot(a, z), dot(b, z))


@vjp_of(rotate)
def rotate_vjp(R: Mat3, S: Sym3, y_bar: Sym3) -> tuple[Mat3, Sym3]:
    """R_bar = 2 K R S,  S_bar = R^T K R  with K the symmetric matrix of the cotangent (half of each off-diagonal)."""
    K, M = cotangent_matrix(y_bar), matrix(S)
    P = R.T @ K @ R
    return (K @ R @ M) * 2.0, Sym3(P.xx, P.yy, P.zz, P.xy + P.yx, P.xz + P.zx, P.yz + P.zy)


def matrix(S: Sym3) -> Mat3:
    """Return the full matrix of six values."""
    return Mat3(S.xx, S.xy, S.xz, S.xy, S.yy, S.yz, S.xz, S.yz, S.zz)


@vjp_of(matrix)
def matrix_vjp(S: Sym3, y_bar: Mat3) -> Sym3:
    y = y_bar
    return Sym3(y.xx, y.yy, y.zz, y.xy + y.yx, y.xz + y.zx, y.yz + y.zy)


def cotangent_matrix(S_bar: Sym3) -> Mat3:
    """Symmetric matrix K with <K, dS> = S_bar . dS, for the cotangent of six values."""
    s = S_bar
    return matrix(Sym3(s.xx, s.yy, s.zz, s.xy * 0.5, s.xz * 0.5, s.yz * 0.5))


def axial(B: Mat3) -> Vec3:
    """ax(B) with <B, hat(a)> = ax(B) . a  (theory 1.1)"""
    return Vec3(B.zy - B.yz, B.xz - B.zx, B.yx - B.xy)


@vjp_of(axial)
def axial_vjp(B: Mat3, y_bar: Vec3) -> Mat3:
    return hat(y_bar)


def hat(a: Vec3) -> Mat3:
    """Matrix of the cross product a x"""
    return Mat3(0.0, -a.z, a.y, a.z, 0.0, -a.x, -a.y, a.x, 0.0)


@vjp_of(hat)
def hat_vjp(a: Vec3, y_bar: Mat3) -> Vec3:
    return axial(y_bar)
