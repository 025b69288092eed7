"""Contact output of a step: one row per candidate point, in the order of `contact_names`.

The cotangents of this output enter the adjoint of a step together with those of the next state; see `force_bar` of the
row types.
"""

from __future__ import annotations

from ...compiler import Layout, Reals, Table
from ..context import Step
from ..spatial import Vec3
from .law import law_of

# Force on body B and point, world axes; distance; force along normal and tangents; normal; torque at the point (condim
# 4 and 6); first
# tangent.
REPORT = Layout(force=Vec3, point=Vec3, gap=float, along=Vec3, normal=Vec3, torque=Vec3, tangent=Vec3)


def report(s: Step, out: Reals) -> None:
    """Fill `out` after the accelerations are computed."""
    law_of(s.options).report(s, Table(out.memory, REPORT, out.start))
