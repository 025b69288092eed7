"""Free: position and rotation of a root; linear velocity in world axes, angular velocity in the body's axes.

The origin of the tree moves along with the body, so in the tree's own coordinates its position is zero and the dynamics
do not depend on where in the world it is. Linear velocity in world axes makes the momentum of free flight exact for a
body whose frame sits in its centre of mass, and right to the order of the step for others  (theory 7.5).

The joint acts like three shifts followed by a spherical joint: `before` gives what the shifts alone do.

S is orthonormal, [0 R; 1 0], so eliminating the joint is solving with the 6x6 inertia itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spatial import Articulated, Force, Motion, Quat, Transform, Vec3, cross_motion, quat_matrix, quat_normalise
from ..spatial.vectors import matrix
from ..staging import Reals, Table


def kinematics(X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table) -> tuple[Transform, Motion]:
    """X' = (R(q), 0),  velocity [R w ; v]"""
    R = quat_matrix(quat_normalise(q.struct(qa + 3, Quat)))
    return Transform(R, Vec3.zero()), Motion(R @ v.struct(va + 3, Vec3), v.struct(va, Vec3))


def columns(X: Transform) -> list[Motion]:
    zero = Vec3.zero()
    shifts = [Motion(zero, e) for e in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))]
    return shifts + [Motion(X.R.column(k), zero) for k in range(3)]


def before(own: Motion) -> Motion:
    """What a motion of the body is before its rotation: the shifts alone."""
    return Motion(Vec3.zero(), own.v)


def before_all(v: Motion, a: Motion, y: Motion) -> tuple[Motion, Motion, Motion]:
    """`before` of velocity, acceleration (without the part v_0 x v that the rotation adds) and another motion."""
    v_0 = before(v)
    return v_0, before(a - cross_motion(v_0, v)), before(y)


def apply(X: Transform, x: Reals, va: Any) -> Motion:
    """S x"""
    return Motion(X.R @ x.struct(va + 3, Vec3), x.struct(va, Vec3))


def add_projection(X: Transform, f: Force, va: Any, out: Reals) -> None:
    """out += S^T f"""
    out.put(va, out.struct(va, Vec3) + f.f)
    out.put(va + 3, out.struct(va + 3, Vec3) + X.R.T @ f.n)


def eliminate(IA: Articulated, extra: Any, va: Any, dof: Table) -> None:
    """IA + extra 1 = L^T D L, unrolled; row j of `dof` keeps the column of L and 1/D."""
    A, B, C = matrix(IA.A).leaves(), IA.B.leaves(), matrix(IA.C).leaves()
    K = [A[3 * r : 3 * r + 3] + B[3 * r : 3 * r + 3] for r in range(3)]
    K += [B[r::3] + C[3 * r : 3 * r + 3] for r in range(3)]
    for j in range(6):
        K[j][j] = K[j][j] + extra
    for j in reversed(range(6)):
        dinv = 1.0 / K[j][j]
        column = [K[i][j] for i in range(j)]
        dof[va + j].U = Force.from_leaves(column + [0.0] * (6 - j))
        dof[va + j].dinv = dinv
        for i in range(j):
            a = column[i] * dinv
            for k in range(i + 1):
                K[i][k] = K[i][k] - a * column[k]
                K[k][i] = K[i][k]


def pull(X: Transform, F: Force, b: Reals, va: Any, dof: Table) -> None:
    """u = D^-1 L^-T (S b - F): S b is the wrench of the joint's own forces"""
    w = (Force(X.R @ b.struct(va + 3, Vec3), b.struct(va, Vec3)) - F).leaves()
    for j in reversed(range(6)):
        row, column = dof[va + j], dof[va + j].U.leaves()
        u = w[j] * row.dinv
        row.u = u
        for i in range(j):
            w[i] = w[i] - column[i] * u


def push(X: Transform, va: Any, dof: Table, u: Callable[[Any], Any], x: Reals) -> Motion:
    """a = L^-1 u, the acceleration of the body;  x = S^T a"""
    a: list[Any] = []
    for j in range(6):
        row, column = dof[va + j], dof[va + j].U.leaves()
        total: Any = 0.0
        for i in range(j):
            total = total + column[i] * a[i]
        a.append(u(va + j) - total * row.dinv)
    motion = Motion.from_leaves(a)
    x.put(va, motion.v)
    x.put(va + 3, X.R.T @ motion.w)
    return motion


def path_rows(rows: tuple[Force, ...], va: Any, ws: Any, put: Any) -> None:
    """L^-T of forces on the body, entry by entry."""
    w = [f.leaves() for f in rows]
    for j in reversed(range(6)):
        dof, root = ws.dof[va + j], ws.root[va + j]
        column = dof.U.leaves()
        put(va + j, [x[j] * root for x in w])
        for x in w:
            u = x[j] * dof.dinv
            for i in range(j):
                x[i] = x[i] - column[i] * u
