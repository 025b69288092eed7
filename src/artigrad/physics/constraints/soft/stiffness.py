"""Stiffness of a block of rows at a point, in world axes, and its action on link motions  (theory 9.6).

A block maps the relative motion of two links at a point, a translation u and a rotation w, to a force and a torque. For
a link whose motion is given about the origin of its tree, the point at p moves by u = v + w x p.
"""

from __future__ import annotations

from ....compiler import Linear
from ...spatial import Articulated, Force, Mat3, Motion, Sym3, Vec3
from ...spatial.vectors import hat, matrix, rotate


class Six(Linear):
    """Translation and rotation, or force and torque, along the rows of a block."""

    lin: Vec3
    ang: Vec3


class Stiff(Linear):
    """Symmetric matrix from (translation, rotation) to (force, torque): [ll la; la^T aa]"""

    ll: Sym3
    la: Mat3
    aa: Sym3

    def __matmul__(self, y: Six) -> Six:
        return Six(self.ll @ y.lin + self.la @ y.ang, self.la.T @ y.lin + self.aa @ y.ang)


class Cross(Linear):
    """Matrix from the motion of one link to the force on another: [ww wv; vw vv]"""

    ww: Mat3
    wv: Mat3
    vw: Mat3
    vv: Mat3

    def __matmul__(self, m: Motion) -> Force:
        return Force(self.ww @ m.w + self.wv @ m.v, self.vw @ m.w + self.vv @ m.v)


def in_world(R: Mat3, K: Sym3) -> Sym3:
    """R K R^T"""
    return rotate(R, K)


def stiff_in_world(R: Mat3, E: Mat3, K: Stiff) -> Stiff:
    """Stiffness in world axes. The columns of R are the translational rows, those of E the rotational ones."""
    return Stiff(rotate(R, K.ll), R @ K.la @ E.T, rotate(E, K.aa))


def of_point(K: Sym3, p: Vec3) -> Articulated:
    """Stiffness of a link with a spring K at p: [-p^ K p^, p^ K; (p^ K)^T, K]"""
    arm = hat(p) @ matrix(K)  # p^ K
    turned = hat(p) @ arm.T  # p^ (p^ K)^T = -p^ K p^
    return Articulated(_symmetric(turned), arm, K)


def of_wrench(K: Stiff, p: Vec3) -> Articulated:
    """Stiffness of a link with a translational and rotational spring at p."""
    full = cross_wrench(K, p, p)
    return Articulated(_symmetric(full.ww), full.wv, K.ll)


def cross_point(K: Sym3, p: Vec3, q: Vec3) -> Cross:
    """Matrix from the motion of a link at q to the force on a link at p: [-p^ K q^, p^ K; -K q^, K]"""
    full, P, Q = matrix(K), hat(p), hat(q)
    arm, lever = P @ full, full @ Q
    return Cross(-(P @ lever), arm, -lever, full)


def cross_wrench(K: Stiff, p: Vec3, q: Vec3) -> Cross:
    """Matrix of `cross_point` with rotations: [aa - la^T q^ + p^ la - p^ ll q^, la^T + p^ ll; la - ll q^, ll]"""
    P, Q, ll, aa = hat(p), hat(q), matrix(K.ll), matrix(K.aa)
    vw = K.la - ll @ Q
    return Cross(aa - K.la.T @ Q + P @ vw, K.la.T + P @ ll, vw, ll)


def _symmetric(A: Mat3) -> Sym3:
    """Symmetric matrix with the upper entries of A."""
    return Sym3(A.xx, A.yy, A.zz, A.xy, A.xz, A.yz)
