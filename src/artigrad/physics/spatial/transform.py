"""Rigid transforms X = (R, r): child axes and origin, in the parent. A point maps as x_parent = r + R x_child.

The cotangent of a transform is that of its twist on the child side (theory 0.1): R -> R exp(th), r -> r + R rho. It is a
`Force` in the child frame, so that every adjoint below is one cross product.
"""

from __future__ import annotations

from typing import Any

from ...compiler import StagingError, Struct, vjp_of
from .motion import Force, Motion, cross_force
from .rotations import Quat, quat_matrix, quat_normalize, quat_to_ambient
from .vectors import Mat3, Vec3, cross


class Transform(Struct):
    """Pose of a child frame in its parent. `X @ Y` is the pose of Y in the parent of X, for Y given in the frame of X."""

    R: Mat3
    r: Vec3

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Transform):
            return compose(self, other)
        raise StagingError(
            f"a Transform times a {type(other).__name__}: name the map (to_child, to_parent, force_to_parent, ...)"
        )

    @staticmethod
    def identity() -> Transform:
        return Transform(Mat3.identity(), Vec3.zero())


def to_child(X: Transform, m: Motion) -> Motion:
    """y = X m, apply: a motion in parent coordinates, expressed in the child frame  (1.2)"""
    return Motion(X.R.T @ m.w, X.R.T @ (m.v - cross(X.r, m.w)))


@vjp_of(to_child)
def to_child_vjp(X: Transform, m: Motion, y_bar: Force) -> tuple[Force, Force]:
    return -cross_force(to_child(X, m), y_bar), force_to_parent(X, y_bar)


def to_parent(X: Transform, m: Motion) -> Motion:
    """y = X^-1 m, apply inverse  (1.3)"""
    w = X.R @ m.w
    return Motion(w, X.R @ m.v + cross(X.r, w))


@vjp_of(to_parent)
def to_parent_vjp(X: Transform, m: Motion, y_bar: Force) -> tuple[Force, Force]:
    g = force_to_child(X, y_bar)
    return cross_force(m, g), g


def force_to_parent(X: Transform, f: Force) -> Force:
    """y = X^T f, apply transpose: a force in child coordinates, expressed in the parent frame  (1.4)"""
    Rf = X.R @ f.f
    return Force(X.R @ f.n + cross(X.r, Rf), Rf)


@vjp_of(force_to_parent)
def force_to_parent_vjp(X: Transform, f: Force, y_bar: Motion) -> tuple[Force, Motion]:
    k = to_child(X, y_bar)
    return -cross_force(k, f), k


def force_to_child(X: Transform, f: Force) -> Force:
    """y = X^-T f, apply inverse transpose  (1.5)"""
    return Force(X.R.T @ (f.n - cross(X.r, f.f)), X.R.T @ f.f)


@vjp_of(force_to_child)
def force_to_child_vjp(X: Transform, f: Force, y_bar: Motion) -> tuple[Force, Motion]:
    return cross_force(y_bar, force_to_child(X, f)), to_parent(X, y_bar)


def compose(X: Transform, Y: Transform) -> Transform:
    """Z = X then Y, outwards: R = X.R Y.R, r = X.r + X.R Y.r  (1.6)"""
    return Transform(X.R @ Y.R, X.r + X.R @ Y.r)


@vjp_of(compose)
def compose_vjp(X: Transform, Y: Transform, z_bar: Force) -> tuple[Force, Force]:
    return force_to_parent(Y, z_bar), z_bar


def invert(X: Transform) -> Transform:
    """Y = X^-1 = (R^T, -R^T r)  (1.7)"""
    return Transform(X.R.T, -(X.R.T @ X.r))


@vjp_of(invert)
def invert_vjp(X: Transform, y_bar: Force) -> Force:
    return -force_to_child(X, y_bar)


def pose(position: Vec3, rotation: Quat) -> Transform:
    """Transform of a position and a quaternion of any norm."""
    return Transform(quat_matrix(quat_normalize(rotation)), position)


@vjp_of(pose)
def pose_vjp(position: Vec3, rotation: Quat, x_bar: Force) -> tuple[Vec3, Quat]:
    """Adjoint of `pose`: position_bar = R rho_bar;  rotation_bar from th_bar  (1.8, 1.20)"""
    return quat_matrix(quat_normalize(rotation)) @ x_bar.f, quat_to_ambient(rotation, x_bar.n)
