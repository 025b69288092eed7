"""Joint: the interface of all joint types, and the operations that follow from the columns of S.

A joint maps coordinates to a pose and velocities linearly to a motion, S v, in world axes about the origin of its tree. Its
axes are rigid in the parent or in the child: in the first case they move with the parent alone; in the second they also
rotate with the joint itself, but that term vanishes because  S v x S v = 0. In both cases the time derivative of S v at
constant v is the cross product of the parent's motion with it, and rotating all that a joint carries is one rigid motion.
A joint with an axis that is rigid in neither (a universal joint in one piece) is not supported; it is two joints with a
massless body between (`ModelBuilder.add_universal` adds them).

The coordinates are `straight` additive ones, followed by a quaternion if there is one; velocities have the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...compiler import Reals
from ..spatial import Articulated, Force, Motion, Transform, Vec3, articulated_outer, power

if TYPE_CHECKING:
    from ..context import Step

Put = Callable[[Any, list[Any]], None]
Pairs = Sequence[tuple[Motion, Motion, Force]]
Extra = Callable[[int], Any]  # what stands on the diagonal beside S^T I S, by column


class Joint:
    """Joint type: its record, its pose and columns, and the operations derived from them.

    In the functions, i is the link that the joint moves; several vectors at a time are tuples.
    """

    name: ClassVar[str]
    mjcf: ClassVar[str | None] = None  # what MuJoCo calls it
    straight: ClassVar[int] = 0  # coordinates that add
    quaternion: ClassVar[bool] = False  # whether a quaternion follows them
    axial: ClassVar[bool] = False  # one axis, along z of its frame: may have a spring, limits, dry friction, motors
    angular: ClassVar[bool] = False  # whether that one coordinate is an angle
    floating: ClassVar[bool] = False  # the root of a tree whose coordinates give its pose: it has no placement
    travel: ClassVar[float | str] = (
        0.0  # along its one axis per unit of its coordinate; or the name of a field of Params
    )
    feature: ClassVar[str | None] = None  # of models with such a joint, for which alone it is compiled

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.straight + 4 * self.quaternion

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.straight + 3 * self.quaternion

    @property
    def limitable(self) -> bool:
        """True if the joint can have a limit, of its one coordinate or of its angle."""
        return self.axial or (self.quaternion and not self.floating)

    @property
    def zero(self) -> tuple[float, ...]:
        """Coordinates of the zero configuration."""
        return (0.0,) * self.straight + ((1.0, 0.0, 0.0, 0.0) if self.quaternion else ())

    # -- defined by each joint type ----------------------------------------------------------------------------------
    def prepare(self, s: Step, i: Any) -> None:
        """Compute the terms that depend on the coordinates alone, before the recursion along the tree."""

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """Return the pose after the joint, whose frame before it is X, and the velocity that the joint adds."""
        raise NotImplementedError

    def columns(self, s: Step, i: Any) -> list[Motion]:
        """S, one motion per velocity."""
        raise NotImplementedError

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        """Return the allowed motions (angular, linear at the origin of the body) as columns, in the frame of the body."""
        raise NotImplementedError

    def travel_of(self, p: Any, i: int) -> Any:
        """Travel of the joint of body i under Params p, of one or several sets."""
        return p[self.travel][..., i] if isinstance(self.travel, str) else self.travel

    # -- S and its transpose -----------------------------------------------------------------------------------------
    def apply(self, s: Step, i: Any, rows: tuple[Reals, ...]) -> tuple[Motion, ...]:
        """S x of each x"""
        va, S = s.model.link_v[i], self.columns(s, i)

        def of(x: Reals) -> Motion:
            total = S[0] * x[va]
            for k, column in enumerate(S[1:], start=1):
                total = total + column * x[va + k]
            return total

        return tuple(of(x) for x in rows)

    def add_projection(self, s: Step, i: Any, f: Force, out: Reals) -> None:
        """out += S^T f"""
        self.add_projections(s, i, ((f, out),))

    def add_projections(self, s: Step, i: Any, each: tuple[tuple[Force, Reals], ...]) -> None:
        """out += S^T f for each (f, out)"""
        va, columns = s.model.link_v[i], self.columns(s, i)
        for f, out in each:
            for k, S in enumerate(columns):
                out[va + k] = out[va + k] + power(S, f)

    # -- elimination from the tree: one column at a time is the same as the block at once, without inverting a matrix ----
    def eliminate(self, s: Step, i: Any, IA: Articulated, extra: Extra) -> Articulated:
        """U = IA S,  1/d = 1/(S . U + extra);  articulated inertia for the parent: IA - U U^T/d  (theory 3.4, 3.5)"""
        va, S = s.model.link_v[i], self.columns(s, i)
        for k in reversed(range(len(S))):
            row = s.dof[va + k]
            U = IA @ S[k]
            dinv = 1.0 / (power(S[k], U) + extra(k))
            row.U, row.dinv = U, dinv
            IA = IA - articulated_outer(U, dinv)
        return IA

    def solve_inward(self, s: Step, i: Any, F: Force, b: Reals) -> Force:
        """u = (b - S . F)/d;  the force on the parent: F + U u"""
        va, S = s.model.link_v[i], self.columns(s, i)
        for k in reversed(range(len(S))):
            row = s.dof[va + k]
            u = (b[va + k] - power(S[k], F)) * row.dinv
            row.u = u
            F = F + row.U * u
        return F

    def solve_outward(self, s: Step, i: Any, a: tuple[Motion, ...], u: Any, rows: tuple[Reals, ...]) -> Any:
        """x = u - U . a/d, in each of `rows`;  the motion after the joint: a + S x.

        u: function of the index; None if the result of the inward pass is in the place of the result.
        """
        va, S = s.model.link_v[i], self.columns(s, i)

        def of(a: Motion, x: Reals) -> Motion:
            inward = u or x.__getitem__
            for k, column in enumerate(S):
                row = s.dof[va + k]
                xk = inward(va + k) - power(a, row.U) * row.dinv
                x[va + k] = xk
                a = a + column * xk
            return a

        return tuple(of(one, x) for one, x in zip(a, rows, strict=True))

    def path_rows(self, s: Step, i: Any, rows: tuple[Force, ...], root: Reals, put: Put) -> tuple[Force, ...]:
        """Propagate forces on the link one step along a path, an application of L.

        The entries  z = sqrt(1/d) S . f  of the rows are passed to put(k, entries); the forces on the parent are returned.
        root: sqrt(1/d).
        """
        va, S = s.model.link_v[i], self.columns(s, i)
        for k in reversed(range(len(S))):
            dof, scale = s.dof[va + k], root[va + k]
            z = [power(S[k], f) for f in rows]
            put(va + k, [x * scale for x in z])
            rows = tuple(f - dof.U * (x * dof.dinv) for f, x in zip(rows, z, strict=True))
        return rows

    # -- the motion in which its axes are fixed ------------------------------------------------------------------------
    def before(self, s: Step, i: Any, parent: Motion, own: Motion) -> Motion:
        """Return the motion of the axes of the joint, for a field that is `parent` on the parent and `own` after the joint."""
        return parent

    def before_all(self, s: Step, i: Any, with_w: bool) -> tuple[Motion, Motion, Motion, Motion]:
        """`before` of velocity, acceleration, and the fields y and w (zero without it)."""
        p = s.model.parent[i]
        link = s.link[p]
        return link.v, link.a, link.y, s.field[p].w if with_w else Motion.zero()

    def beyond(self, total: tuple[Motion, ...], own: tuple[Motion, ...]) -> tuple[Motion, ...]:
        """Return motions `total`, which begin with those of the joint, in the axes that the joint moves."""
        return total

    # -- cotangents ------------------------------------------------------------------------------------------------------
    def add_bars(self, s: Step, i: Any, forces: tuple[Force, Force, Force], o_bar: Vec3) -> None:
        """v_bar += S^T relative,  q_bar += S^T xi  for forces (relative, total, xi)"""
        relative, _, xi = forces
        self.add_projections(s, i, ((relative, s.bars.v), (xi, s.bars.tangent)))

    def add_pose_bars(self, s: Step, i: Any, xi: Force, o_bar: Vec3) -> None:
        """q_bar += S^T xi"""
        self.add_projection(s, i, xi, s.bars.tangent)

    def add_parameter_bars(self, s: Step, i: Any, xi: Force, pairs: Pairs) -> None:
        """Add to the cotangents of parameters on which S itself depends. xi: cotangent of a rigid motion of all beyond the
        joint. pairs: each motion field that S x adds to, before the joint and beyond it, and the cotangent of S x."""
