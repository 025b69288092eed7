"""Translation: three shifts along the world's axes; the first half of a free joint.

The origin of the tree moves along, so in the tree's own coordinates nothing moves: the pose is the identity and the
dynamics do not depend on where in the world a free body is. Linear velocity in world axes makes the momentum of free
flight exact (theory 7.5).
"""

from __future__ import annotations

from typing import Any

from ..spatial import Motion, Transform, Vec3
from ..staging import Reals, Table


def kinematics(X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table) -> tuple[Transform, Motion]:
    """X' = X,  S_k = [0 ; e_k]"""
    axes = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)
    for k, e in enumerate(axes):
        dof[va + k].S = Motion(Vec3.zero(), e)
    return X, Motion(Vec3.zero(), v.struct(va, Vec3))
