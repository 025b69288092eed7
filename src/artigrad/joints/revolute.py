"""Revolute: a turn about the z axis of the joint frame."""

from __future__ import annotations

from typing import Any

from ..spatial import Mat3, Motion, Transform, cross
from ..staging import Reals, Table, sincos


def prepare(q: Reals, qa: Any, va: Any, dof: Table) -> None:
    """sin q and cos q"""
    row = dof[va]
    row.sin, row.cos = sincos(q[qa])


def kinematics(X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table) -> tuple[Transform, Motion]:
    """X' = X Rz(q),  S = [z ; r x z]"""
    s, c = dof[va].sin, dof[va].cos
    x, y, z = (X.R.column(k) for k in range(3))
    S = Motion(z, cross(X.r, z))
    dof[va].S = S
    return Transform(Mat3.columns(x * c + y * s, y * c - x * s, z), X.r), S * v[va]
