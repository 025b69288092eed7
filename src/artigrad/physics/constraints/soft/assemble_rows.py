"""Stage 3 under the soft law: which rows there are, and with what reference and stiffness.

Equalities come first, then contacts, limits, dry friction, motors, and what ties several joints. A row that is there for a
neighbour in the pack has no stiffness, so no force, and changes none of a robot's bits.
"""

from __future__ import annotations

from ....compiler import counter
from ...context import Step
from .contact_rows import touch
from .equality_rows import hold
from .limit_rows import stop_joints
from .motor_rows import drive_joints
from .multi_dof_rows import combine
from .soft_problem import SINGLES
from .stiff_rows import start_probe


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
