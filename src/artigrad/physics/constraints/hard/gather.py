"""Stage 3 under the hard law: collection of the rows, so that the work follows what touches, not what could.

A candidate is kept if it is near for any robot of the SIMD pack. For a robot for which it is not, its impulse is zero and
changes none of its bits.
"""

from __future__ import annotations

from ....compiler import counter, loop
from ...context import Step
from ..narrowphase import place_shapes
from .islands import find_islands
from .kinds import KINDS


def gather(s: Step) -> None:
    """Compute gaps, points and frames of all near contacts, by group and kind."""
    problem = s.constraints
    place_shapes(s)
    count = counter(0)
    for g in loop(problem.groups):
        problem.group[g] = count.value
        for k, kind in enumerate(KINDS):
            kind.gather(s, g, count, k)
    problem.group[problem.groups] = count.value
    find_islands(s)
