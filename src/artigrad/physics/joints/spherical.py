"""Spherical joint: rotation as a quaternion; velocities in body axes.

The quaternion may have any norm: the pose is that of q/|q|, so that the gradient with respect to q is orthogonal to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..spatial import Motion, Quat, Transform, Vec3, cross, quat_matrix, quat_normalize
from .joint import Joint

if TYPE_CHECKING:
    from ..context import Step


class Spherical(Joint):
    name, mjcf = "spherical", "ball"
    quaternion = True

    def kinematics(self, s: Step, i: Any, X: Transform) -> tuple[Transform, Motion]:
        """X' = X R(q),  S = [R ; r x R]: the body's axes"""
        R = X.R @ quat_matrix(quat_normalize(s.q.struct(s.model.link_q[i], Quat)))
        w = R @ s.v.struct(s.model.link_v[i], Vec3)
        return Transform(R, X.r), Motion(w, cross(X.r, w))

    def columns(self, s: Step, i: Any) -> list[Motion]:
        X = s.link[i].X
        return [Motion(X.R.column(k), cross(X.r, X.R.column(k))) for k in range(3)]

    def motions(self, axis: np.ndarray, anchor: np.ndarray, travel: float) -> np.ndarray:
        x, y, z = anchor
        return np.concatenate([np.eye(3), [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]])
