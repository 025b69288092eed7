"""Revolute joint: rotation about the z axis of the joint frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...compiler import sincos
from ..spatial import Mat3, Motion, Transform, cross
from .joint import Joint

if TYPE_CHECKING:
    from ..context import Step


class Revolute(Joint):
    name = "revolute"
    mjcf: ClassVar[str | None] = "hinge"
    straight, axial, angular = 1, True, True

    def prepare(self, s: Step, i: Any) -> None:
        """Compute sin q and cos q."""
        row = s.dof[s.model.link_v[i]]
        row.sin, row.cos = sincos(s.q[s.model.link_q[i]])

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """X' = X Rz(q),  S = [z ; r x z]"""
        va = s.model.link_v[i]
        sin, cos = s.dof[va].sin, s.dof[va].cos
        x, y, z = (X.R.column(k) for k in range(3))
        S = Motion(z, cross(X.r, z))
        s.dof[va].S = S
        return Transform(Mat3.columns(x * cos + y * sin, y * cos - x * sin, z), X.r), S * s.v[va]

    def columns(self, s: Step, i: Any) -> list[Motion]:
        return [s.dof[s.model.link_v[i]].S]

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        return np.concatenate([axis, np.cross(anchor, axis) + travel * axis])[:, None]
