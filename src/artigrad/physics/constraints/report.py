"""Contact output of a step: one row per candidate point, in the order of `contact_names`.

The cotangents of this output enter the adjoint of a step together with those of the next state; see `force_bar` of the
row types.
"""

from __future__ import annotations

from ...compiler import Layout, Reals, Table, loop
from ..collision.contact_geometry import FAR
from ..context import Step
from ..spatial import Vec3
from .hard.kinds import of_kind
from .soft.contact_rows import report_contact
from .soft.families import POINT, WRENCH, families

# Force on body B and point, world axes; distance; force along normal and tangents; normal; torque at the point (condim
# 4 and 6); first
# tangent.
REPORT = Layout(force=Vec3, point=Vec3, gap=float, along=Vec3, normal=Vec3, torque=Vec3, tangent=Vec3)


def report(s: Step, out: Reals) -> None:
    """Fill `out` after the accelerations are computed."""
    problem, table = s.constraints, Table(out.memory, REPORT, out.start)
    soft = s.options.law == "soft"
    for k in loop(problem.all_points):
        row = table[k]
        row.force, row.point, row.gap = Vec3.zero(), Vec3.zero(), FAR if soft else problem.options.near
        row.along, row.normal, row.torque, row.tangent = (Vec3.zero() for _ in range(4))
    if not soft:
        for c in loop(problem.count):
            of_kind("report", s, c, table)
        return
    for family in (f for f in families(s) if f in (POINT, WRENCH)):
        for n, row in family.blocks(s):
            write = lambda family=family, n=n, row=row: report_contact(s, family, n, row, table)  # noqa: E731
            family.by_kind(s, n, write, lambda: None)
