"""Stage 3 under the soft law: the active rows with reference and stiffness.

The order is equalities, contacts, limits, dry friction, motors, rows on several degrees of freedom. A row that exists
only because of another SIMD lane has zero stiffness, so it has no force and changes no bit of this lane.
"""

from __future__ import annotations

from ....compiler import counter
from ...context import Step
from .contact_rows import add_contact_rows
from .equality_rows import add_equality_rows
from .limit_rows import add_limit_rows
from .motor_rows import add_motor_rows
from .multi_dof_rows import add_multi_dof_rows
from .soft_problem import SINGLES
from .stiff_rows import start_probe


def assemble_rows(s: Step) -> None:
    """Fill the tables of rows for this state."""
    problem = s.constraints
    problem.coupled[0] = 0.0 if problem.has("uncoupled") else 1.0
    if problem.has("stiff"):
        start_probe(s)
    counts = tuple(counter(0) for _ in range(4))
    add_equality_rows(s, counts)
    add_contact_rows(s, counts)
    add_limit_rows(s, counts[SINGLES])
    add_motor_rows(s, counts[SINGLES])
    for k, count in enumerate(counts):
        problem.count[k] = count.value
    add_multi_dof_rows(s)
