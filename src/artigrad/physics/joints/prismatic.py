"""Prismatic joint: translation along the z axis of the joint frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..spatial import Motion, Transform, Vec3
from .joint import Joint

if TYPE_CHECKING:
    from ..context import Step


class Prismatic(Joint):
    name, mjcf = "prismatic", "slide"
    straight, axial, travel = 1, True, 1.0

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """X' = X translated by q z,  S = [0 ; z]"""
        va = s.model.link_v[i]
        z = X.R.column(2)
        S = Motion(Vec3.zero(), z)
        s.dof[va].S = S
        return Transform(X.R, X.r + z * s.q[s.model.link_q[i]]), S * s.v[va]

    def columns(self, s: Step, i: Any) -> list[Motion]:
        return [s.dof[s.model.link_v[i]].S]

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        return np.concatenate([np.zeros(3), axis])[:, None]
