"""Contact laws: their stages in a step, and what kernels, simulators and frameworks need of them.

A law is a record `Law` in `LAWS`; no other module asks which law it is. A step has the `Stages` of its law: none for a model
without constraint rows; those of the soft law, with or without sweeps against creep; those of the hard law with its adjoint
at the solution (`implicit`) or of the sweeps (`reverse`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...compiler import ArgumentKind, Reals, Table, copy
from ...model.model import Model
from ...model.options import HardOptions, Options, SoftOptions
from ..context import Step
from ..dynamics import articulated
from ..dynamics.forward_dynamics import FACTOR, forces, free_accelerations, free_multipliers
from ..features import Features
from ..margin import keep_speed
from ..transmissions.transmission import kinematics
from .hard import contact_problem, implicit, limitations, reverse, solver
from .hard.gather import gather
from .hard.kinds import report_rows
from .hard.margin import margin
from .hard.restitution import bound_energy
from .hard.rows import apply_impulses, delassus, rows
from .soft import adjoint, contact_rows, noslip_adjoint, soft_problem
from .soft.adhesion import apply_adhesion
from .soft.assemble_rows import assemble_rows
from .soft.newton import newton
from .soft.noslip import check_noslip, noslip
from .soft.slip_problem import slip_arguments, slip_signature, take_noslip


class Stages(NamedTuple):
    """Functions of a law in a step and in its adjoint; see `step`.

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
    corrects: tuple[Callable[[Step], Step], Stages] | None = None
    prepare: Callable[[Step], None] | None = None


class Law(NamedTuple):
    """A contact law, beside its options (`SoftOptions`, `HardOptions`).

    Attributes:
        stages: Stages of a step, given the options of the law.
        integers: Integer arguments that all kernels of a model share, given model, options and dtype.
        room: Number of points that may be near at a time, and number of all points, given these integers.
        scratch: Sizes of scratch arrays and numbers of the options, given model, these integers, options, dtype, and whether
            there is a backward pass.
        signature: Kinds of all these arguments, given the options of the law and whether there is a tape.
        take: Constraint rows inside a kernel (`SoftProblem`, `ContactProblem`), picked out of its arguments, given these, the
            options and the features of the kernel.
        report: Function that fills the rows of a contact report (`report.REPORT`).
        features: Kinds of rows that a model may have, for which kernels are compiled.
        check: Function that raises an InputError if a model or the options have something that the law has not.
        integrator: Only integrator of a model with constraint rows, or None.
        damping_in_factor: True if damping at the end of a step may be part of the factor of the mass matrix.
        impedances: True if rows have `solref` and `solimp`.
        restitution: True if shapes may have restitution.
        shared_stops: True if one row serves the limit and the dry friction of a joint.
        impulses: True if contacts act by impulses over a step, so that there are no accelerations at a state.
        in_mujoco: True if MuJoCo has this law.
        reported_forward: True if the forward pass reports steps that were not solved; otherwise the backward pass does.
        accepted: Violation that a solver accepts as solved whatever the precision, None if only zero, given the options.
        violation_unit: Text behind a violation in a message.
        remedy: Remedy of steps that were not solved, given the options of the law.
    """

    stages: Callable[[Any], Stages]
    integers: Callable[[Model, Options, np.dtype], dict[str, Any]]
    room: Callable[[dict[str, Any]], tuple[int, int]]
    scratch: Callable[[Model, dict[str, Any], Options, np.dtype, bool], dict[str, Any]]
    signature: Callable[[Any, bool], dict[str, ArgumentKind]]
    take: Callable[[dict[str, Any], Options, Features], Any]
    report: Callable[[Step, Table], None]
    features: Callable[[Model], frozenset[str]]
    check: Callable[[Model, Any], None]
    integrator: str | None
    damping_in_factor: bool
    impedances: bool
    restitution: bool
    shared_stops: bool
    impulses: bool
    in_mujoco: bool
    reported_forward: bool
    accepted: Callable[[Any], float | None]
    violation_unit: str
    remedy: Callable[[Any], str]


def law_of(options: Options) -> Law:
    """Return the law of these options."""
    return LAWS[options.law.name]


def stages_of(s: Step) -> Stages:
    """Return the stages of a step."""
    return FREE if s.constraints is None else law_of(s.options).stages(s.options.law)


# -- no rows -------------------------------------------------------------------------------------------------------------
def _nothing(s: Step) -> None:
    pass


def recompute_factor(s: Step) -> None:
    """Recompute kinematics and factor. Without rows the accelerations are known."""
    kinematics(s)
    FACTOR[s.options.factor].factor(s)


FREE = Stages(_nothing, free_accelerations, recompute_factor, free_multipliers)


# -- the soft law --------------------------------------------------------------------------------------------------------
def _soft_constrain(s: Step) -> None:
    apply_adhesion(s)
    newton(s)
    copy(s.constraints.accel, s.ws.qdd, s.model.nv)


SOFT_STAGES = Stages(
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


NEWTON = SOFT_STAGES._replace(multipliers=lambda s, _: noslip_adjoint.newton_multipliers(s))
NOSLIP = SOFT_STAGES._replace(
    constrain=_noslip_constrain,
    recompute=noslip_adjoint.recompute,
    multipliers=noslip_adjoint.multipliers,
    rest=noslip_adjoint.sweep_bars,
    corrects=(noslip_adjoint.at_newton, NEWTON),
)


def _soft_scratch(
    model: Model, integers: dict[str, Any], options: Options, dtype: np.dtype, backward: bool
) -> dict[str, Any]:
    slips = slip_arguments(model, integers, options, dtype) if options.soft.noslip else {}
    return soft_problem.soft_work(model, integers) | slips


def _take_soft(arguments: dict[str, Any], options: Options, features: Features) -> soft_problem.SoftProblem:
    more = take_noslip(arguments) if options.soft.noslip else {}
    return soft_problem.SoftProblem.take(arguments, features, options.cone, options.soft.iterations, more)


SOFT = Law(
    stages=lambda options: NOSLIP if options.noslip else SOFT_STAGES,
    integers=lambda model, options, dtype: soft_problem.soft_arguments(model, options.contact_limit, dtype),
    room=lambda integers: (integers["s_capacity"] + integers["s_wide_capacity"], integers["s_first_point"][-1]),
    scratch=_soft_scratch,
    signature=lambda options, taped: soft_problem.soft_signature() | (slip_signature() if options.noslip else {}),
    take=_take_soft,
    report=contact_rows.report_rows,
    features=soft_problem.soft_features,
    check=check_noslip,
    integrator=None,
    damping_in_factor=False,
    impedances=True,
    restitution=False,
    shared_stops=False,
    impulses=False,
    in_mujoco=True,
    reported_forward=True,
    accepted=lambda options: 0.0,
    violation_unit=" of the constraint forces",
    remedy=lambda options: "more iterations or a smaller dt solve it",
)


# -- the hard law --------------------------------------------------------------------------------------------------------
def _hard_constrain(s: Step) -> None:
    find_impulses(s)
    apply_impulses(s, "lam", 1.0 / s.dt)
    articulated.solve_outward(s, s.ws.qdd)


def find_impulses(s: Step, tape: bool = False) -> None:
    """Compute the impulses lam of all contacts. Leaves the factor and the inward half of the solve for the free motion."""
    problem, options = s.constraints, s.options.hard
    articulated.factor_solve_inward(s, s.ws.tau)
    if tape:
        articulated.solve_outward(s, problem.free)
    rows(s)
    delassus(s)
    tolerance = problem.options.tolerance
    if options.solver == "hybrid":
        solver.hybrid(problem, tolerance, bound_energy)
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
    if s.options.hard.solver == "hybrid":
        solver.factor_at_solution(s.constraints)
    keep_speed(s, margin(s, factored=s.options.hard.gradient == "implicit"))


HARD_STAGES = {
    "implicit": Stages(
        gather,
        _hard_constrain,
        _recompute,
        implicit.multipliers,
        implicit.bars,
        field=lambda s: s.v_next,
        prepare=_prepare,
    ),
    "reverse": Stages(
        gather,
        _hard_constrain,
        lambda s: _recompute(s, tape=True),
        reverse.multipliers,
        rest=reverse.jacobian_and_mass_matrix_bars,
    ),
}


def _hard_scratch(
    model: Model, integers: dict[str, Any], options: Options, dtype: np.dtype, backward: bool
) -> dict[str, Any]:
    work = contact_problem.contact_work(model, integers)
    if backward and options.law.taped:
        work |= contact_problem.reverse_work(model, integers, options.hard.sweeps)
    return work | {"contact_options": np.array(options.hard.numbers, dtype)}


REMEDIES = {
    "hybrid": "a larger softness or a smaller dt solves more",
    "gauss_seidel": "take more sweeps, solver='hybrid', or gradient='reverse', which is exact for the sweeps that were run",
}
HARD = Law(
    stages=lambda options: HARD_STAGES[options.gradient],
    integers=lambda model, options, dtype: contact_problem.contact_arguments(model, options.contact_limit, dtype),
    room=lambda integers: (integers["c_limit"].sum(), integers["c_first_point"][-1]),
    scratch=_hard_scratch,
    signature=lambda options, taped: contact_problem.contact_signature(taped),
    take=lambda arguments, options, features: contact_problem.ContactProblem.take(
        arguments, options.cone, features.routines, features.solids
    ),
    report=report_rows,
    features=lambda model: frozenset(),
    check=limitations.check_model,
    integrator="euler",
    damping_in_factor=True,
    impedances=False,
    restitution=True,
    shared_stops=True,
    impulses=True,
    in_mujoco=False,
    reported_forward=False,
    accepted=lambda options: None if options.solver == "hybrid" else options.tolerance,
    violation_unit=" m/s",
    remedy=lambda options: REMEDIES[options.solver],
)

LAWS = {SoftOptions.name: SOFT, HardOptions.name: HARD}
