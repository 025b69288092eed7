"""Forward dynamics, (M + armature + h damping) qdd = tau - ID(q, v, 0), and its adjoint  (theory 3.1-3.3).

The adjoint does not differentiate M or its factor: one solve with the factor gives multipliers mu, followed by the adjoint
of the equation of motion,

    ID(q, v, qdd) + damping and springs - actuators - wrenches - constraints = 0,

in the order outward pass, forces of the environment on links, inward pass, joint forces.
"""

from __future__ import annotations

from types import ModuleType

from ...compiler import Reals, loop
from .. import joints
from ..context import Step
from ..kinematics import clear_pose_bars
from ..spatial import Motion
from . import articulated, sparse
from .actuation import actuation, actuation_vjp
from .fluid_and_gravcomp import subtract_fluid_and_gravcomp
from .gravity_compensation import subtract_actuator_gravcomp, subtract_actuator_gravcomp_vjp
from .inverse_dynamics import link_forces
from .passive import passive, passive_vjp, tendons, tendons_vjp
from .springs import springs, springs_vjp
from .wrenches import subtract_wrenches

FACTOR: dict[str, ModuleType] = {"articulated": articulated, "sparse": sparse}


def forces(s: Step) -> None:
    """Stage 2: forces on links (s.link.F: bias minus wrenches, fluid and gravity compensation) and in joints (ws.tau).

    ws.tau has springs, damping and actuators.
    """
    link_forces(s, None)
    subtract_wrenches(s)
    subtract_fluid_and_gravcomp(s)
    passive(s, s.ws.tau)
    springs(s, s.ws.tau)
    tendons(s, s.ws.tau)
    actuation(s, s.ws.tau)
    subtract_actuator_gravcomp(s, s.ws.tau)


def free_accelerations(s: Step) -> None:
    """Compute ws.qdd, the joint accelerations under these forces only; keeps the factor."""
    FACTOR[s.options.factor].factor_solve(s, s.ws.tau, s.ws.qdd)


def free_multipliers(s: Step, qdd_bar: Reals) -> None:
    """Compute ws.mu = Mt^-1 qdd_bar  (theory 3.2)."""
    if s.implicit_terms is not None:  # the integrator has overwritten the factor
        FACTOR[s.options.factor].factor(s)
    articulated.clear_forces(s)
    FACTOR[s.options.factor].solve(s, qdd_bar, s.ws.mu)


def moving_fields(s: Step, x: Reals | None) -> None:
    """Compute w_i = w_p + S_i x, zero without x, and clear the cotangents of poses and of w."""
    clear_pose_bars(s, "w_bar")
    s.field[0].w = Motion.zero()
    for i in loop(1, s.model.nl):
        w = Motion.zero() if x is None else s.field[s.model.parent[i]].w + joints.apply(s, i, x)
        s.field[i].w = w


def joint_forces_vjp(s: Step) -> None:
    """Adjoint of joint forces at multipliers ws.mu: actuators, springs, damping, and the diagonal of Mt."""
    diagonal_bars(s, s.ws.qdd, s.ws.mu)
    actuation_vjp(s, s.ws.mu)
    subtract_actuator_gravcomp_vjp(s, s.ws.mu)
    passive_vjp(s, s.ws.mu)
    springs_vjp(s, s.ws.mu)
    tendons_vjp(s, s.ws.mu)


def diagonal_bars(s: Step, qdd: Reals, tau_bar: Reals) -> None:
    """Adjoint of the diagonal of Mt: armature_bar -= tau_bar qdd,  damping_bar -= damping_dt tau_bar qdd."""
    if s.bars.const is None:
        return
    for i in loop(1, s.model.nl):
        bar, va = s.bars.const.link[i], s.model.link_v[i]
        for k in loop(s.model.link_nv[i]):
            product = tau_bar[va + k] * qdd[va + k]
            bar.armature = bar.armature - product
            bar.damping = bar.damping - s.damping_dt * product
