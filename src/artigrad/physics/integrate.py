"""Stage 5: integrators, each above its adjoint. Rotations advance by the exponential map  (theory 7.1, 7.3-7.6).

An integrator is given the computation of accelerations and its adjoint. The adjoints read the velocities after the step
from s.v_next: they are stored anyway, and this saves a solve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..compiler import Reals, copy, loop, switch
from ..model.options import Options
from ..model.transmissions import line_feature
from .context import Step
from .dynamics import activation
from .dynamics.circle import ANGULAR_GEARS
from .dynamics.implicit_forces import apply_implicit_forces, apply_implicit_forces_vjp, implicit_force_bars
from .features import Features
from .joints import coordinates
from .transmissions.transmission import kinematics

if TYPE_CHECKING:
    from .constraints.law import Law


class Accelerations(NamedTuple):
    """Computation of accelerations.

    Attributes:
        find: Computes ws.qdd.
        recompute: Fills the workspace for the adjoint.
        vjp: Called as vjp(s, qdd_bar); adds the cotangents.
    """

    find: Callable[[Step], None]
    recompute: Callable[[Step], None]
    vjp: Callable[[Step, Reals], None]


class Integrator(NamedTuple):
    """Integrator.

    Attributes:
        forward: One step.
        backward: Its adjoint.
        implicit_terms: Forces evaluated at the end of the step, see `implicit_forces`.
    """

    forward: Callable[[Step, Accelerations], None]
    backward: Callable[[Step, Accelerations], None]
    implicit_terms: Literal["damping", "fast", "full"] | None = None


# -- Euler -----------------------------------------------------------------------------------------------------------------
def euler(s: Step, accelerations: Accelerations) -> None:
    """v+ = v + dt w,   q+ = q (+) dt v+.  w: accelerations with implicit forces."""
    _find_implicit(s, accelerations)
    activation.advance(s)
    _advance(s, s.v, s.ws.qdd)
    coordinates.integrate(s, s.q, s.v)


def euler_vjp(s: Step, accelerations: Accelerations) -> None:
    """Adjoint of `euler`."""
    _start_backward(s, accelerations)
    coordinates.integrate_vjp(s, s.q, s.v_next, s.bars.q, s.bars.v)
    _implicit_vjp(s, accelerations)


def explicit(s: Step, accelerations: Accelerations) -> None:
    """q+ = q (+) dt v,   v+ = v + dt w."""
    _find_implicit(s, accelerations)
    activation.advance(s)
    coordinates.integrate(s, s.q, s.v)
    _advance(s, s.v, s.ws.qdd)


def explicit_vjp(s: Step, accelerations: Accelerations) -> None:
    """Adjoint of `explicit`."""
    _start_backward(s, accelerations)
    for k in loop(s.model.nv):  # that of v+, before the coordinates add to that of v
        s.ws.qdd_bar[k] = s.dt * s.bars.v[k]
    coordinates.integrate_vjp(s, s.q, s.v, s.bars.q, s.bars.v)
    _implicit_vjp(s, accelerations, found=True)


def _advance(s: Step, v: Reals, a: Reals) -> None:
    """Add dt a to v."""
    for k in loop(s.model.nv):
        v[k] = v[k] + s.dt * a[k]


def _find_implicit(s: Step, accelerations: Accelerations) -> None:
    """Compute the accelerations with implicit forces."""
    accelerations.find(s)
    if s.implicit_terms is not None:
        apply_implicit_forces(s)


def _start_backward(s: Step, accelerations: Accelerations) -> None:
    """Initialize a backward pass: clear the cotangent of q, recompute the step, and differentiate activations.

    The accelerations are derived from the velocities after the step:  w = (v+ - v)/dt  (rounding: eps |v|/dt).
    """
    rate = 1.0 / s.dt
    for k in loop(s.model.nv):
        s.bars.tangent[k] = 0.0
        s.ws.qdd[k] = (s.v_next[k] - s.v[k]) * rate
    if not s.filled:
        accelerations.recompute(s)
    activation.advance_vjp(s)


def _implicit_vjp(s: Step, accelerations: Accelerations, found: bool = False) -> None:
    """Propagate w_bar = dt v+_bar to all inputs. found: w_bar is already in ws.qdd_bar."""
    if not found:
        for k in loop(s.model.nv):
            s.ws.qdd_bar[k] = s.dt * s.bars.v[k]
    if s.implicit_terms is not None:
        apply_implicit_forces_vjp(s, s.ws.qdd_bar)
    accelerations.vjp(s, s.ws.qdd_bar)
    if s.implicit_terms is not None:
        implicit_force_bars(s)
    coordinates.to_ambient(s, s.q, s.bars.tangent, s.bars.q)


# -- Runge-Kutta -------------------------------------------------------------------------------------------------------------
# weight of stage k, and the time at which its state is taken, relative to dt
_WEIGHT = {0: lambda: 1 / 6, 1: lambda: 1 / 3, 2: lambda: 1 / 3, 3: lambda: 1 / 6}
_NODE = {0: lambda: 0.0, 1: lambda: 0.5, 2: lambda: 0.5, 3: lambda: 1.0}


def rk4(s: Step, accelerations: Accelerations) -> None:
    """Runge-Kutta method of order four, on coordinates by the method of Munthe-Kaas  (theory 7.4).

    Every stage is reached in one displacement from the initial state, and its velocities v_k become rates r_k of that
    displacement:

        q_k = q (+) dt n_k r_(k-1),   v_k = v + dt n_k a_(k-1);      q+ = q (+) dt sum w_k r_k,   v+ = v + dt sum w_k
        a_k
    """
    _rk4_stages(s, accelerations)
    _lengths_at_start(s)
    coordinates.integrate(s, s.q, s.ws.rate_mean)
    _advance(s, s.v, s.ws.a_mean)
    for k in loop(s.model.na) if s.has("activation") else ():
        s.act[k] = activation.advanced(s, k, s.ws.act_mean[k])


def _rk4_stages(s: Step, accelerations: Accelerations) -> None:
    """Compute the four stages and the weighted means of rates and accelerations.

    Stage k is in row k of ws.q_stage and ws.v_stage, and in row k + 1 of ws.rate_stage and ws.a_stage, whose row 0 is
    zero.
    """
    nq, nv, ws = s.model.nq, s.model.nv, s.ws
    for i in loop(nv):
        ws.rate_mean[i], ws.a_mean[i], ws.rate_stage[i], ws.a_stage[i] = 0.0, 0.0, 0.0, 0.0
    active = s.has("activation")
    for i in loop(s.model.na) if active else ():
        ws.act_mean[i], ws.act_rate[i] = 0.0, 0.0
    for k in loop(4):
        weight, stage = switch(k, _WEIGHT), _stage(s, k)
        before, rate = ws.rate_stage.shifted(k * nv), ws.rate_stage.shifted((k + 1) * nv)
        copy(s.q, stage.q, nq)
        copy(s.v, stage.v, nv)
        partly = _partly(s, k)
        coordinates.integrate(partly, stage.q, before)
        _advance(partly, stage.v, ws.a_stage.shifted(k * nv))
        coordinates.rate_along(partly, before, stage.v, rate)
        if active:
            _activation_stage(s, stage, k, partly.dt, weight)
        accelerations.find(stage)
        copy(ws.qdd, ws.a_stage.shifted((k + 1) * nv), nv)
        for i in loop(nv):
            ws.rate_mean[i] = ws.rate_mean[i] + weight * rate[i]
            ws.a_mean[i] = ws.a_mean[i] + weight * ws.qdd[i]


def _lengths_at_start(s: Step) -> None:
    """Compute lengths at the initial state, to which activations of angular servos are wrapped."""
    if s.has("activation") and s.has(*map(line_feature, ANGULAR_GEARS)):
        kinematics(s)


def _activation_stage(s: Step, stage: Step, k: Any, dt: Any, weight: Any) -> None:
    """Compute activations of stage k and their rates: row k of ws.act_stage, row k + 1 of ws.act_rate."""
    na, ws = s.model.na, s.ws
    for i in loop(na):
        stage.act[i] = s.act[i] + dt * ws.act_rate[k * na + i]
    for i in loop(na):
        rate = activation.rate(stage, i)
        ws.act_rate[(k + 1) * na + i] = rate
        ws.act_mean[i] = ws.act_mean[i] + weight * rate


def _activation_stage_vjp(s: Step, stage: Step, dt: Any, weight: Any) -> None:
    """Adjoint of `_activation_stage`: from bars.act and the cotangents of rates to the initial state and the stage
    before."""
    ws, bars = s.ws, s.bars
    for i in loop(s.model.na):
        activation.rate_vjp(stage, i, weight * ws.act_mean_bar[i] + ws.act_rate_bar[i])
        ws.act_start_bar[i] = ws.act_start_bar[i] + bars.act[i]
        ws.act_rate_bar[i] = dt * bars.act[i]


def _stage(s: Step, k: Any) -> Step:
    """Return the step at stage k."""
    here = s.at(q=s.ws.q_stage.shifted(k * s.model.nq), v=s.ws.v_stage.shifted(k * s.model.nv))
    return here.at(act=s.ws.act_stage.shifted(k * s.model.na)) if s.has("activation") else here


def _partly(s: Step, k: Any) -> Step:
    """Return the step with dt up to stage k."""
    return s.at(dt=s.dt * switch(k, _NODE))


def rk4_vjp(s: Step, accelerations: Accelerations) -> None:
    """Adjoint of `rk4`, stage by stage backwards.

    ws.rate_bar, ws.a_bar: cotangents of the rates and accelerations of stage k from stage k+1. ws.q_start_bar,
    ws.v_start_bar: cotangents of the initial state from all stages.
    """
    nq, nv, ws, bars = s.model.nq, s.model.nv, s.ws, s.bars
    _rk4_stages(s, accelerations)
    for i in loop(nv):
        ws.rate_mean_bar[i], ws.a_mean_bar[i] = 0.0, s.dt * bars.v[i]
        ws.rate_bar[i], ws.a_bar[i] = 0.0, 0.0
        ws.v_start_bar[i] = bars.v[i]
    coordinates.integrate_vjp(s, s.q, ws.rate_mean, bars.q, ws.rate_mean_bar)
    for i in loop(nq):
        ws.q_start_bar[i] = bars.q[i]
    active = s.has("activation")
    _lengths_at_start(s)
    for i in loop(s.model.na) if active else ():
        ws.act_start_bar[i], ws.act_mean_bar[i] = activation.advanced_vjp(s, i, ws.act_mean[i], bars.act[i])
        ws.act_rate_bar[i] = 0.0
    for k in loop(4, inwards=True):
        weight, partly, stage, before = switch(k, _WEIGHT), _partly(s, k), _stage(s, k), ws.rate_stage.shifted(k * nv)
        for i in loop(nq):
            bars.q[i] = 0.0
        for i in loop(s.model.na) if active else ():
            bars.act[i] = 0.0
        for i in loop(nv):
            ws.qdd[i] = ws.a_stage[(k + 1) * nv + i]
            ws.qdd_bar[i] = weight * ws.a_mean_bar[i] + ws.a_bar[i]
            ws.v_stage_bar[i] = weight * ws.rate_mean_bar[i] + ws.rate_bar[i]
            ws.rate_bar[i], bars.v[i], bars.tangent[i] = 0.0, 0.0, 0.0
        coordinates.rate_along_vjp(partly, before, stage.v, ws.v_stage_bar, ws.rate_bar, bars.v)
        accelerations.recompute(stage)
        accelerations.vjp(stage, ws.qdd_bar)
        if active:
            _activation_stage_vjp(s, stage, partly.dt, weight)
        coordinates.to_ambient(s, stage.q, bars.tangent, bars.q)
        for i in loop(nv):
            ws.v_start_bar[i] = ws.v_start_bar[i] + bars.v[i]
            ws.a_bar[i] = partly.dt * bars.v[i]
        coordinates.integrate_vjp(partly, s.q, before, bars.q, ws.rate_bar)
        for i in loop(nq):
            ws.q_start_bar[i] = ws.q_start_bar[i] + bars.q[i]
    copy(ws.q_start_bar, bars.q, nq)
    copy(ws.v_start_bar, bars.v, nv)
    if active:
        copy(ws.act_start_bar, bars.act, s.model.na)


INTEGRATORS = {
    "euler": Integrator(euler, euler_vjp, implicit_terms="damping"),
    "implicitfast": Integrator(euler, euler_vjp, implicit_terms="fast"),
    "implicit": Integrator(euler, euler_vjp, implicit_terms="full"),
    "rk4": Integrator(rk4, rk4_vjp),
    "explicit": Integrator(explicit, explicit_vjp, implicit_terms="damping"),
}


def damping_in_factor(options: Options, features: Features, law: Law | None) -> bool:
    """Return whether damping at the end of the step is part of the factor of the mass matrix.

    Args:
        options: Options.
        features: Features of the kernel.
        law: Law of the constraint rows, None without.
    """
    curved = features.has("spring") and law is None  # dampers whose rate changes with the velocity
    wanted = INTEGRATORS[options.integrator].implicit_terms == "damping"
    return wanted and options.implicit_damping and (law is None or law.damping_in_factor) and not curved


def implicit_terms(options: Options, features: Features, in_factor: bool) -> str | None:
    """Return the forces that the integrator evaluates at the end of the step, see `implicit_forces`.

    Args:
        options: Options.
        features: Features of the kernel.
        in_factor: True if damping is in the factor of the mass matrix instead.
    """
    wanted = INTEGRATORS[options.integrator].implicit_terms
    if wanted == "damping":
        return "damping" if features.has("damping") and options.implicit_damping and not in_factor else None
    if wanted == "fast":
        matrix = features.has("lone_link", "lines", "fluid")
        return "lone" if matrix else "fast" if features.has("damping", "actuators") else None
    return wanted
