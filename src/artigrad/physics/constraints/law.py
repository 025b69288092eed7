"""Stage 4 of a step: table of the constraint laws, each with its accelerations and the parts of its adjoint.

The law of a kernel is fixed while staging: none for a model without constraints; the soft one; or the hard one, with
its adjoint at the solution (`implicit`) or through the sweeps (`reverse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...compiler import Reals, copy
from ..context import Step
from ..dynamics import articulated
from ..dynamics.forward_dynamics import FACTOR, forces, free_accelerations, free_multipliers
from ..margin import keep_speed
from ..transmissions.transmission import kinematics
from .hard import implicit, reverse, solver
from .hard.gather import gather
from .hard.rows import apply_impulses, delassus, rows
from .soft import adjoint, noslip_adjoint
from .soft.adhesion import apply_adhesion
from .soft.assemble_rows import assemble_rows
from .soft.newton import newton
from .soft.noslip import noslip


class Law(NamedTuple):
    """Constraint law; see `step` for the order of calls.

    Attributes:
        collide: Finds the rows of a state.
        constrain: Computes ws.qdd, with the forces of all rows.
        recompute: Fills the workspace with everything the adjoint reads of a step.
        multipliers: Called as multipliers(s, qdd_bar); computes ws.mu, the multipliers of the equation of motion, and
            those of the rows.
        bars: Adds the cotangents of rows to those of poses, velocities and parameters, between both halves of the
            adjoint of inverse dynamics.
        field: Returns the joint-space vector whose link motions the rows are paired with.
        moves: True if that vector is a velocity.
        rest: Adds the remaining cotangents afterwards.
        corrects: Step and law of an inner solution that this law corrects, for its own adjoint.
        prepare: Does after a step what `recompute` does beyond the step itself.
    """

    collide: Callable[[Step], None]
    constrain: Callable[[Step], None]
    recompute: Callable[[Step], None]
    multipliers: Callable[[Step, Reals], None]
    bars: Callable[[Step], None] | None = None
    field: Callable[[Step], Reals] | None = None
    moves: bool = True
    rest: Callable[[Step], None] | None = None
    corrects: tuple[Callable[[Step], Step], Law] | None = None
    prepare: Callable[[Step], None] | None = None


def law_of(s: Step) -> Law:
    """Return the law of this step."""
    if s.constraints is None:
        return FREE
    if s.options.law == "hard":
        return HARD[s.options.gradient]
    return NOSLIP if s.options.noslip else SOFT


# -- no rows -------------------------------------------------------------------------------------------------------------
def _nothing(s: Step) -> None:
    pass


def recompute_factor(s: Step) -> None:
    """Recompute kinematics and factor. Without rows the accelerations are known."""
    kinematics(s)
    FACTOR[s.options.factor].factor(s)


FREE = Law(_nothing, free_accelerations, recompute_factor, free_multipliers)


# -- the soft law --------------------------------------------------------------------------------------------------------
def _soft_constrain(s: Step) -> None:
    apply_adhesion(s)
    newton(s)
    copy(s.constraints.accel, s.ws.qdd, s.model.nv)


SOFT = Law(
    assemble_rows,
    _soft_constrain,
    adjoint.recompute,
    adjoint.multipliers,
    adjoint.bars,
    field=lambda s: s.ws.qdd,
    moves=False,
)


# -- the soft law with noslip sweeps
# -------------------------------------------------------------------------------------
def _noslip_constrain(s: Step) -> None:
    apply_adhesion(s)
    newton(s)
    noslip(s)
    copy(s.constraints.accel, s.ws.qdd, s.model.nv)


NEWTON = SOFT._replace(multipliers=lambda s, _: noslip_adjoint.newton_multipliers(s))
NOSLIP = SOFT._replace(
    constrain=_noslip_constrain,
    recompute=noslip_adjoint.recompute,
    multipliers=noslip_adjoint.multipliers,
    rest=noslip_adjoint.sweep_bars,
    corrects=(noslip_adjoint.at_newton, NEWTON),
)


# -- the hard law --------------------------------------------------------------------------------------------------------
def _hard_constrain(s: Step) -> None:
    find_impulses(s)
    apply_impulses(s, "lam", 1.0 / s.dt)
    articulated.solve_outward(s, s.ws.qdd)


def find_impulses(s: Step, tape: bool = False) -> None:
    """Compute the impulses lam of all contacts. Leaves the factor and the inward half of the solve for the free motion."""
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


def recompute_impulses(s: Step, tape: bool = False) -> None:
    """Run stages 1 to 4 up to the impulses; with tape, record the sweeps and the free accelerations."""
    kinematics(s)
    forces(s)
    gather(s)
    find_impulses(s, tape)


def _recompute(s: Step, tape: bool = False) -> None:
    recompute_impulses(s, tape)
    _prepare(s)


def _prepare(s: Step) -> None:
    if s.options.solver == "hybrid":
        solver.factor_at_solution(s.constraints)
    keep_speed(s, solver.margin(s.constraints))


HARD = {
    "implicit": Law(
        gather,
        _hard_constrain,
        _recompute,
        implicit.multipliers,
        implicit.bars,
        field=lambda s: s.v_next,
        prepare=_prepare,
    ),
    "reverse": Law(
        gather,
        _hard_constrain,
        lambda s: _recompute(s, tape=True),
        reverse.multipliers,
        rest=reverse.jacobian_and_mass_matrix_bars,
    ),
}
