"""One step and its adjoint. Read this first.

    stage           reads           writes                                 where
    1 kinematics    q, v            poses, axes, velocities, inertias      kinematics.py, transmissions/
    2 forces        q, v, u         forces on links and in joints          dynamics/
    3 collide       poses           active constraint rows                 collision/, constraints/
    4 constrain     forces, rows    accelerations                          constraints/law.py
    5 integrate     q, v, qdd       the next q and v, and activations      integrate.py

A step updates the state in place; its adjoint replaces the cotangents of the next state by those of the present one, in
place. Only the state and u of a step are stored: the adjoint recomputes what it needs of stages 1 to 4. A model without
constraints has no stage 3, and its stage 4 is one solve.
"""

from __future__ import annotations

from ..compiler import Reals
from .constraints.law import Stages, stages_of
from .context import Step
from .dynamics.fluid_and_gravcomp import fluid_and_gravcomp_vjp, subtract_fluid_and_gravcomp
from .dynamics.forward_dynamics import forces, joint_forces_vjp, moving_fields
from .dynamics.inverse_dynamics import inward_vjp, outward_vjp
from .dynamics.wrenches import subtract_wrenches, wrenches_vjp
from .integrate import INTEGRATORS, Accelerations
from .transmissions.transmission import clear_line_bars, kinematics, lines_vjp


def accelerations(s: Step) -> None:
    """Compute ws.qdd at (q, v, u)."""
    law = stages_of(s)
    kinematics(s)  # 1
    forces(s)  # 2
    law.collide(s)  # 3
    law.constrain(s)  # 4


def recompute(s: Step) -> None:
    """Fill the workspace with everything the adjoint of `accelerations` reads, except ws.qdd."""
    stages_of(s).recompute(s)


def prepare_adjoint(s: Step) -> None:
    """After a forward step, compute the part of the result of `recompute` that the step does not leave in the workspace."""
    law = stages_of(s)
    if law.prepare is not None:
        law.prepare(s)


def accelerations_vjp(s: Step, qdd_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v, u and constants, given ws.qdd and the result of `recompute`.

    Solves once for the multipliers mu of the equation of motion, then runs the adjoint of inverse dynamics: a
    root-to-tip sweep for the cotangents of link forces and a tip-to-root sweep onto the joints. Constraint rows and
    external wrenches add theirs between the sweeps.
    """
    law = stages_of(s)
    _balance_vjp(s, law, qdd_bar)
    if law.corrects is not None:
        before, corrected = law.corrects
        _balance_vjp(before(s), corrected, qdd_bar)


def _balance_vjp(s: Step, law: Stages, qdd_bar: Reals) -> None:
    """Adjoint of the equation of motion under one law."""
    in_world = law.bars is not None or s.wrench is not None or s.has("compensation", "fluid")
    if in_world:
        moving_fields(s, law.field(s) if law.field is not None else None)
    clear_line_bars(s)
    law.multipliers(s, qdd_bar)  # 4
    outward_vjp(s, s.ws.qdd, s.ws.mu, -1.0)  # 2
    subtract_wrenches(s)
    subtract_fluid_and_gravcomp(s)
    wrenches_vjp(s)
    fluid_and_gravcomp_vjp(s)
    if law.bars is not None:
        law.bars(s)  # 4, 3
    inward_vjp(s, in_world, law.moves)  # 2, 1
    joint_forces_vjp(s)  # 2
    lines_vjp(s)  # 1
    if law.rest is not None:
        law.rest(s)


def step(s: Step) -> None:
    """Replace (q, v, act) by the state one dt later under control u."""
    INTEGRATORS[s.options.integrator].forward(s, ACCELERATIONS)  # 5


def step_vjp(s: Step) -> None:
    """Replace (bars.q, bars.v, bars.act) of the next state by those of the present one; add to bars.u and bars.const."""
    INTEGRATORS[s.options.integrator].backward(s, ACCELERATIONS)  # 5


ACCELERATIONS = Accelerations(accelerations, recompute, accelerations_vjp)
