"""One step, and the same step backwards. Read this first.

    stage           reads           writes                                 where
    1 kinematics    q, v            poses, axes, velocities, inertias      kinematics.py
    2 forces        q, v, u         forces on links and in joints          dynamics/
    3 collide       poses           which rows there are: gaps, frames     collision/, constraints/gather.py
    4 constrain     forces, rows    accelerations                          constraints/law.py
    5 integrate     q, v, qdd       the next q and v                       integrate.py

A step updates q and v in place; its adjoint turns the cotangents of the next state into those of the present one, in
place. Only q, v and u of a step are kept: the adjoint runs what it needs of stages 1 to 4 again. A model that can touch
nothing has no stage 3, and stage 4 is one solve.
"""

from __future__ import annotations

from ..staging import Reals
from .constraints.gather import collide
from .constraints.law import adjoint_of, constrain
from .context import Step
from .dynamics.forward_dynamics import forces, joint_forces_vjp, moving_fields
from .dynamics.inverse_dynamics import inward_vjp, outward_vjp
from .dynamics.wrenches import subtract_wrenches, wrenches_vjp
from .integrate import INTEGRATORS
from .kinematics import kinematics


def accelerations(s: Step) -> None:
    """ws.qdd at (q, v, u)"""
    kinematics(s)  # 1
    forces(s)  # 2
    collide(s)  # 3
    constrain(s)  # 4


def accelerations_vjp(s: Step, qdd_bar: Reals) -> None:
    """Adds to the cotangents of v, u and constants; sets that of q (tangent). ws.qdd is known.

    One solve gives multipliers mu of the balance of forces; then the adjoint of that balance, whose outward half finds what
    forces on links mean, and whose inward half takes everything to the joints. Contacts and wrenches speak in between.
    """
    law = adjoint_of(s)
    if not s.filled:
        law.recompute(s)
    law.multipliers(s, qdd_bar)  # 4
    outward_vjp(s, s.ws.qdd, s.ws.mu, -1.0)  # 2
    in_world = law.bars is not None or s.wrench is not None
    if in_world:
        moving_fields(s, s.v_next if law.bars is not None else None)
        subtract_wrenches(s)
        wrenches_vjp(s)
    if law.bars is not None:
        law.bars(s)  # 4, 3
    inward_vjp(s, in_world)  # 2, 1
    joint_forces_vjp(s)  # 2
    if law.rest is not None:
        law.rest(s)


def step(s: Step) -> None:
    """(q, v) <- the state one dt later under control u"""
    INTEGRATORS[s.options.integrator].forward(s, accelerations)  # 5


def step_vjp(s: Step) -> None:
    """(bars.q, bars.v): those of the next state come in, those of the present one go out; adds to bars.u and bars.const."""
    INTEGRATORS[s.options.integrator].backward(s, accelerations, accelerations_vjp)  # 5
