"""Prismatic: a shift along the z axis of the joint frame."""

from __future__ import annotations

from typing import Any

from ..spatial import Motion, Transform, Vec3
from ..staging import Reals, Table


def kinematics(X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table) -> tuple[Transform, Motion]:
    """X' = X shifted by q z,  S = [0 ; z]"""
    z = X.R.column(2)
    S = Motion(Vec3.zero(), z)
    dof[va].S = S
    return Transform(X.R, X.r + z * q[qa]), S * v[va]
