"""Stage 3 under the soft law: which rows there are, and with what reference and stiffness.

Equalities come first, then contacts, limits, dry friction, motors, and what ties several joints. A row that is there for a
neighbour in the pack has no stiffness, so no force, and changes none of a robot's bits.
"""

from __future__ import annotations

from ....staging import counter
from ...context import Step
from .combo_rows import combine
from .contact_rows import touch
from .held_rows import hold
from .motor_rows import drive_joints
from .soft_problem import SINGLES
from .stiff_rows import start_probe
from .stop_rows import stop_joints


def start_rows(s: Step) -> None:
    """Fill the tables of rows for this state."""
    problem = s.constraints
    problem.coupled[0] = 0.0 if problem.has("loose") else 1.0
    if problem.has("stiff"):
        start_probe(s)
    counts = tuple(counter(0) for _ in range(4))
    hold(s, counts)
    touch(s, counts)
    stop_joints(s, counts[SINGLES])
    drive_joints(s, counts[SINGLES])
    for k, count in enumerate(counts):
        problem.count[k] = count.value
    combine(s)
