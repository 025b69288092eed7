"""Contact forces as an output of a step: one row for every point that may touch, in the order of `contact_names`.

Their cotangents enter the adjoints of a step beside those of the next state: see `force_bar` of the kinds of rows.
"""

from __future__ import annotations

from ...spatial import Vec3
from ...staging import Layout, Reals, Table, loop
from ..context import Step
from .kinds import of_kind

REPORT = Layout(force=Vec3, point=Vec3, gap=float)


def report(s: Step, out: Reals) -> None:
    """Fill `out` after the impulses were found."""
    problem, table = s.constraints, Table(out.memory, REPORT, out.start)
    for k in loop(problem.points):
        row = table[k]
        row.force, row.point, row.gap = Vec3.zero(), Vec3.zero(), problem.options.near
    for c in loop(problem.count):
        of_kind("report", s, c, table)
