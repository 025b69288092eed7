"""Free joint: position and rotation of a root; linear velocity in world axes, angular velocity in body axes.

The origin of the tree moves with the body. In tree coordinates its position is therefore zero, and the dynamics do not
depend on its position in the world. With linear velocity in world axes the momentum of free flight is exact for a body
whose frame is at its center of mass, and accurate to the order of the step for others  (theory 7.5).

The joint is equivalent to three translations followed by a spherical joint: `before` returns the motion of the translations
alone, and cotangents of the translations are those of the whole subtree.

S is orthonormal, [0 R; 1 0], so that eliminating the joint is a solve with the 6x6 inertia.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler import Reals
from ..spatial import Articulated, Force, Mat3, Motion, Quat, Transform, Vec3, cross_motion, quat_matrix, quat_normalize
from ..spatial.vectors import matrix
from .joint import Extra, Joint, Put

if TYPE_CHECKING:
    from ..context import Step


def shifts(own: Motion) -> Motion:
    """Return the translational motion of the body, in the axes before its rotation."""
    return Motion(Vec3.zero(), own.v)


class Free(Joint):
    name, mjcf = "free", "free"
    straight, quaternion, floating = 3, True, True

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """X' = (R(q), 0),  velocity [R w ; v]"""
        qa, va = s.model.link_q[i], s.model.link_v[i]
        R = quat_matrix(quat_normalize(s.q.struct(qa + 3, Quat)))
        return Transform(R, Vec3.zero()), Motion(R @ s.v.struct(va + 3, Vec3), s.v.struct(va, Vec3))

    def columns(self, s: Step, i: Any) -> list[Motion]:
        R, zero = s.link[i].X.R, Vec3.zero()
        along = [Motion(zero, e) for e in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))]
        return along + [Motion(R.column(k), zero) for k in range(3)]

    def apply(self, s: Step, i: Any, rows: tuple[Reals, ...]) -> tuple[Motion, ...]:
        X, va = s.link[i].X, s.model.link_v[i]
        return tuple(Motion(X.R @ x.struct(va + 3, Vec3), x.struct(va, Vec3)) for x in rows)

    def add_projections(self, s: Step, i: Any, each: tuple[tuple[Force, Reals], ...]) -> None:
        X, va = s.link[i].X, s.model.link_v[i]
        for f, out in each:
            out.put(va, out.struct(va, Vec3) + f.f)
            out.put(va + 3, out.struct(va + 3, Vec3) + X.R.T @ f.n)

    def eliminate(self, s: Step, i: Any, IA: Articulated, extra: Extra) -> Articulated:
        """Factor IA + extra = L^T D L, unrolled; row j of `dof` stores the column of L and 1/D. Nothing is added to the world.

        The extra is the same for all columns, unless dampers are nonlinear.
        """
        va, dof = s.model.link_v[i], s.dof
        A, B, C = matrix(IA.A).leaves(), IA.B.leaves(), matrix(IA.C).leaves()
        K = [A[3 * r : 3 * r + 3] + B[3 * r : 3 * r + 3] for r in range(3)]
        K += [B[r::3] + C[3 * r : 3 * r + 3] for r in range(3)]
        if s.has("spring"):
            self._add_each(K, s.link[i].X.R, extra)
        else:
            for j in range(6):
                K[j][j] = K[j][j] + extra(0)
        for j in reversed(range(6)):
            dinv = 1.0 / K[j][j]
            column = [K[r][j] for r in range(j)]
            dof[va + j].U = Force.from_leaves(column + [0.0] * (6 - j))
            dof[va + j].dinv = dinv
            for r in range(j):
                a = column[r] * dinv
                for k in range(r + 1):
                    K[r][k] = K[r][k] - a * column[k]
                    K[k][r] = K[r][k]
        return Articulated.zero()

    @staticmethod
    def _add_each(K: list[list[Any]], R: Mat3, extra: Extra) -> None:
        """K += S diag(extra) S^T: translations are along world axes, rotations about body axes."""
        columns = [R.column(k).leaves() for k in range(3)]
        for r in range(3):
            K[3 + r][3 + r] = K[3 + r][3 + r] + extra(r)
            for c in range(3):
                for k in range(3):
                    K[r][c] = K[r][c] + columns[k][r] * columns[k][c] * extra(3 + k)

    def solve_inward(self, s: Step, i: Any, F: Force, b: Reals) -> Force:
        """u = D^-1 L^-T (S b - F): S b is the wrench of the joint's own forces"""
        X, va = s.link[i].X, s.model.link_v[i]
        w = (Force(X.R @ b.struct(va + 3, Vec3), b.struct(va, Vec3)) - F).leaves()
        for j in reversed(range(6)):
            row = s.dof[va + j]
            column = row.U.leaves()
            u = w[j] * row.dinv
            row.u = u
            for k in range(j):
                w[k] = w[k] - column[k] * u
        return Force.zero()

    def solve_outward(self, s: Step, i: Any, a: tuple[Motion, ...], u: Any, rows: tuple[Reals, ...]) -> Any:
        """a = L^-1 u, the acceleration of the body;  x = S^T a"""
        X, va = s.link[i].X, s.model.link_v[i]

        def of(x: Reals) -> Motion:
            inward, found = u or x.__getitem__, list[Any]()
            for j in range(6):
                row = s.dof[va + j]
                column, total = row.U.leaves(), 0.0
                for k in range(j):
                    total = total + column[k] * found[k]
                found.append(inward(va + j) - total * row.dinv)
            motion = Motion.from_leaves(found)
            x.put(va, motion.v)
            x.put(va + 3, X.R.T @ motion.w)
            return motion

        return tuple(of(x) for x in rows)

    def path_rows(self, s: Step, i: Any, rows: tuple[Force, ...], root: Reals, put: Put) -> tuple[Force, ...]:
        """L^-T of forces on the body, entry by entry; no force on the world."""
        va, w = s.model.link_v[i], [f.leaves() for f in rows]
        for j in reversed(range(6)):
            dof, scale = s.dof[va + j], root[va + j]
            column = dof.U.leaves()
            put(va + j, [x[j] * scale for x in w])
            for x in w:
                u = x[j] * dof.dinv
                for k in range(j):
                    x[k] = x[k] - column[k] * u
        return tuple(Force.zero() for _ in rows)

    def before(self, s: Step, i: Any, parent: Motion, own: Motion) -> Motion:
        return shifts(own)

    def before_all(self, s: Step, i: Any, with_w: bool) -> tuple[Motion, Motion, Motion, Motion]:
        """Return motions before the joint, with the acceleration without the term v_0 x v of the rotation."""
        link = s.link[i]
        v, a, y = link.v, link.a, link.y
        v_0 = shifts(v)
        w = s.field[i].w if with_w else Motion.zero()
        return v_0, shifts(a - cross_motion(v_0, v)), shifts(y), shifts(w)

    def beyond(self, total: tuple[Motion, ...], own: tuple[Motion, ...]) -> tuple[Motion, ...]:
        return tuple(x - shifts(y) for x, y in zip(total, own, strict=True))

    def add_bars(self, s: Step, i: Any, forces: tuple[Force, Force, Force], o_bar: Vec3) -> None:
        """Add to the cotangents of coordinates and velocities.

        The translations carry the rotation, so that the cotangent of their velocities is that of the whole subtree,
        `total`. They move the origin of the tree and nothing relative to it.
        """
        relative, total, xi = forces
        self.add_projections(s, i, ((Force(relative.n, total.f), s.bars.v), (Force(xi.n, o_bar), s.bars.tangent)))

    def add_pose_bars(self, s: Step, i: Any, xi: Force, o_bar: Vec3) -> None:
        self.add_projection(s, i, Force(xi.n, o_bar), s.bars.tangent)

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        return np.eye(6)
