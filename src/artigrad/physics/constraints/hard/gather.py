"""Stage 3 under the hard law: which rows there are. They are gathered so that the work follows what touches, not what could.

A candidate is kept when it is near for any robot of the pack; for a robot for which it is not, its impulse comes out zero
and changes none of its bits.
"""

from __future__ import annotations

from ....compiler import counter, loop
from ...context import Step
from ..narrowphase import place_shapes
from .islands import find_islands
from .kinds import KINDS


def gather(s: Step) -> None:
    """Gaps, points and frames of all that is near, group by group and kind by kind."""
    problem = s.constraints
    place_shapes(s)
    count = counter(0)
    for g in loop(problem.groups):
        problem.group[g] = count.value
        for k, kind in enumerate(KINDS):
            kind.gather(s, g, count, k)
    problem.group[problem.groups] = count.value
    find_islands(s)
