"""One step, and the same step backwards. Read this first.

    stage           reads           writes                                 where
    1 kinematics    q, v            poses, axes, velocities, inertias      kinematics.py, lines.py
    2 forces        q, v, u         forces on links and in joints          dynamics/
    3 collide       poses           which rows there are: gaps, frames     collision/, constraints/
    4 constrain     forces, rows    accelerations                          constraints/law.py
    5 integrate     q, v, qdd       the next q and v, and activations      integrate.py

A step updates the state in place; its adjoint turns the cotangents of the next state into those of the present one, in
place. Only the state and u of a step are kept: the adjoint runs what it needs of stages 1 to 4 again. A model that can touch
nothing has no stage 3, and stage 4 is one solve.
"""

from __future__ import annotations

from ..compiler import Reals
from .constraints.law import Law, law_of
from .context import Step
from .dynamics.fluid_and_gravcomp import fluid_and_gravcomp_vjp, subtract_fluid_and_gravcomp
from .dynamics.forward_dynamics import forces, joint_forces_vjp, moving_fields
from .dynamics.inverse_dynamics import inward_vjp, outward_vjp
from .dynamics.wrenches import subtract_wrenches, wrenches_vjp
from .integrate import INTEGRATORS, Accelerations
from .transmissions.transmission import clear_line_bars, kinematics, lines_vjp


def accelerations(s: Step) -> None:
    """ws.qdd at (q, v, u)"""
    law = law_of(s)
    kinematics(s)  # 1
    forces(s)  # 2
    law.collide(s)  # 3
    law.constrain(s)  # 4


def recompute(s: Step) -> None:
    """Fill the workspace with what the adjoint of `accelerations` reads of them, but for ws.qdd."""
    law_of(s).recompute(s)


def accelerations_vjp(s: Step, qdd_bar: Reals) -> None:
    """Adds to the cotangents of q (tangent), v, u and constants. ws.qdd is known, and what `recompute` leaves.

    One solve gives multipliers mu of the balance of forces; then the adjoint of that balance, whose outward half finds what
    forces on links mean, and whose inward half takes everything to the joints. Rows and wrenches speak in between.
    """
    law = law_of(s)
    _balance_vjp(s, law, qdd_bar)
    if law.corrects is not None:
        before, corrected = law.corrects
        _balance_vjp(before(s), corrected, qdd_bar)


def _balance_vjp(s: Step, law: Law, qdd_bar: Reals) -> None:
    """The adjoint of the balance of forces under one law."""
    in_world = law.bars is not None or s.wrench is not None or bool(s.extras & {"compensation", "fluid"})
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
    """(q, v, act) <- the state one dt later under control u"""
    INTEGRATORS[s.options.integrator].forward(s, ACCELERATIONS)  # 5


def step_vjp(s: Step) -> None:
    """(bars.q, bars.v, bars.act): those of the next state come in, those of the present one go out; adds to bars.u and
    bars.const."""
    INTEGRATORS[s.options.integrator].backward(s, ACCELERATIONS)  # 5


ACCELERATIONS = Accelerations(accelerations, recompute, accelerations_vjp)
