"""Surface velocities of shapes at rest, such as conveyor belts and turntables, and their adjoint.

    sigma(x) = v + w x (x - o)     of a shape: v and w in its axes, o its origin

A contact uses the surface velocity of B relative to A along its tangents, and the relative spin about its normal.
Velocities along the normal are those of the bodies only.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Row
from ...context import Step
from ...spatial import Force, Mat3, Transform, Vec3, cross, force_to_child
from .stiffness import Six


class _Surface:
    """Surface velocity of one shape of pair k at a point about the origin of its link's tree, world axes."""

    def __init__(self, s: Step, shape: Any, p: Vec3):
        own = s.const.surface[shape]
        self.shape, self.link, self.X = shape, s.model.shape_link[shape], s.constraints.placed[shape].X
        X: Transform = self.X
        self.v, self.w, self.arm = X.R @ own.v, X.R @ own.w, p - X.r
        self.velocity = self.v + cross(self.w, self.arm)

    def vjp(self, s: Step, force: Vec3, torque: Vec3) -> Vec3:
        """Add the cotangents of velocity and spin to those of the shape's pose and constants; return that of the point."""
        w_bar = cross(self.arm, force) + torque
        o_bar = cross(self.w, force)
        zeta = Force(cross(self.v, force) + cross(self.w, w_bar) + cross(self.X.r, o_bar), o_bar)
        s.field[self.link].zeta += zeta
        if s.bars.const is not None:
            s.bars.const.shape[self.shape].X += force_to_child(self.X, zeta)
            s.bars.const.surface[self.shape].v += self.X.R.T @ force
            s.bars.const.surface[self.shape].w += self.X.R.T @ w_bar
        return -o_bar


def _both(s: Step, k: Any, row: Row) -> tuple[_Surface, _Surface]:
    problem = s.constraints
    return _Surface(s, problem.a[k], row.p_a), _Surface(s, problem.b[k], row.p)


def drift(s: Step, k: Any, row: Row, wide: bool) -> Any:
    """Relative surface velocity at a contact of pair k, in the contact frame."""
    A, B = _both(s, k, row)
    seen = row.R.T @ (B.velocity - A.velocity)
    lin = Vec3(0.0, seen.y, seen.z)
    return Six(lin, Vec3((row.R.T @ (B.w - A.w)).x, 0.0, 0.0)) if wide else lin


def drift_vjp(s: Step, k: Any, row: Row, bar: Any) -> tuple[Mat3, Vec3, Vec3]:
    """Add to the cotangents of poses and constants; return those of the frame, and of the point as part of B and of A."""
    A, B = _both(s, k, row)
    wide = isinstance(bar, Six)
    lin, spin = (bar.lin, bar.ang.x) if wide else (bar, 0.0)
    along, turn = B.velocity - A.velocity, B.w - A.w
    force, torque = row.R @ Vec3(0.0, lin.y, lin.z), row.R.column(0) * spin
    frame_bar = Mat3.columns(turn * spin, along * lin.y, along * lin.z)
    return frame_bar, B.vjp(s, force, torque), A.vjp(s, -force, -torque)
