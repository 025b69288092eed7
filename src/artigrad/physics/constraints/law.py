"""Stage 4: the accelerations of a step with all its constraints, and what their adjoint is made of.

Which law a kernel has is decided here, while staging: none for a model that can touch nothing, else the hard one with its
adjoint at the solution (`implicit`) or of the sweeps (`reverse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...staging import Reals, minimum
from ..context import Step
from ..dynamics import articulated
from ..dynamics.forward_dynamics import FACTOR, forces, free_accelerations, free_multipliers
from ..kinematics import kinematics
from .gather import collide
from .hard import implicit, reverse, solver
from .hard.rows import apply_impulses, delassus, rows


def constrain(s: Step) -> None:
    """ws.qdd = the accelerations over the next step, those of the rows included."""
    if s.constraints is None:
        free_accelerations(s)
        return
    find_impulses(s)
    apply_impulses(s, "lam", 1.0 / s.dt)
    articulated.solve_outward(s, s.ws.qdd)


def find_impulses(s: Step, tape: bool = False) -> None:
    """Impulses lam of all contacts; leaves the factor, and the inward half of the solve for the free motion."""
    problem, options = s.constraints, s.options
    articulated.factor_solve_inward(s, s.ws.tau)
    if tape:
        articulated.solve_outward(s, problem.free)
    rows(s)
    delassus(s)
    tolerance = problem.options.tolerance
    if options.solver == "hybrid":
        solver.hybrid(problem, tolerance)
    else:
        solver.gauss_seidel(problem, options.sweeps, tolerance, tape, factored=options.gradient == "implicit")


class Adjoint(NamedTuple):
    """What a law says to the adjoint of accelerations; see `step.accelerations_vjp`.

    recompute(s): fills the workspace with what the others read of the step. multipliers(s, qdd_bar): ws.mu, of the balance
    of forces, and those of the rows. bars(s): what the rows say to poses, velocities and parameters, between the two
    halves of the adjoint of inverse dynamics. rest(s): what is left after it.
    """

    recompute: Callable[[Step], None]
    multipliers: Callable[[Step, Reals], None]
    bars: Callable[[Step], None] | None = None
    rest: Callable[[Step], None] | None = None


def adjoint_of(s: Step) -> Adjoint:
    """The adjoint of the law that this step has."""
    return ADJOINTS[s.options.gradient] if s.constraints is not None else FREE


def recompute_factor(s: Step) -> None:
    """Without rows the accelerations are known: no forces, no solve."""
    kinematics(s)
    FACTOR[s.options.factor].factor(s)


def recompute_impulses(s: Step, tape: bool = False) -> None:
    """Stages 1 to 4 up to the impulses; with a tape of the sweeps, and the free accelerations kept, if asked for."""
    kinematics(s)
    forces(s)
    collide(s)
    find_impulses(s, tape)


def _recompute(s: Step, tape: bool = False) -> None:
    recompute_impulses(s, tape)
    status = s.constraints.status
    status[1] = minimum(status[1], solver.margin(s.constraints))  # the least of all steps


FREE = Adjoint(recompute_factor, free_multipliers)
ADJOINTS = {
    "implicit": Adjoint(_recompute, implicit.multipliers, implicit.bars),
    "reverse": Adjoint(
        lambda s: _recompute(s, tape=True), reverse.multipliers, rest=reverse.jacobian_and_mass_matrix_bars
    ),
}
