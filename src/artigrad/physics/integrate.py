"""Stage 5: integrators, each above its adjoint. Rotations advance by the exponential map  (theory 7.1, 7.3, 7.4).

An integrator is given how accelerations are found, and how they are differentiated. The adjoints find the velocities that the
step led to in s.v_next: they are kept anyway, and spare a solve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..joints import coordinates
from ..staging import Reals, copy, loop, switch
from .context import Step

Forward = Callable[[Step], None]
Backward = Callable[[Step, Reals], None]


class Integrator(NamedTuple):
    """forward(s, accelerations); backward(s, accelerations, accelerations_vjp). implicit_damping: whether joint damping is
    taken over the step, in the factor."""

    forward: Callable[[Step, Forward], None]
    backward: Callable[[Step, Forward, Backward], None]
    implicit_damping: bool = True


def _known_accelerations(s: Step) -> None:
    """qdd = (v+ - v)/dt: a step's accelerations, read off the velocities it led to  (rounding: eps |v|/dt)."""
    rate = 1.0 / s.dt
    for k in loop(s.model.nv):
        s.ws.qdd[k] = (s.v_next[k] - s.v[k]) * rate


def semi_implicit(s: Step, accelerations: Forward) -> None:
    """v+ = v + dt qdd,   q+ = q (+) dt v+"""
    accelerations(s)
    for k in loop(s.model.nv):
        s.v[k] = s.v[k] + s.dt * s.ws.qdd[k]
    coordinates.integrate(s, s.q, s.v)


def semi_implicit_vjp(s: Step, accelerations: Forward, accelerations_vjp: Backward) -> None:
    _known_accelerations(s)
    coordinates.integrate_vjp(s, s.q, s.v_next, s.bars.q, s.bars.v)
    for k in loop(s.model.nv):
        s.ws.qdd_bar[k] = s.dt * s.bars.v[k]
    accelerations_vjp(s, s.ws.qdd_bar)
    coordinates.to_ambient(s, s.q, s.bars.tangent, s.bars.q)


def explicit(s: Step, accelerations: Forward) -> None:
    """q+ = q (+) dt v,   v+ = v + dt qdd"""
    accelerations(s)
    coordinates.integrate(s, s.q, s.v)
    for k in loop(s.model.nv):
        s.v[k] = s.v[k] + s.dt * s.ws.qdd[k]


def explicit_vjp(s: Step, accelerations: Forward, accelerations_vjp: Backward) -> None:
    _known_accelerations(s)
    for k in loop(s.model.nv):
        s.ws.qdd_bar[k] = s.dt * s.bars.v[k]
    coordinates.integrate_vjp(s, s.q, s.v, s.bars.q, s.bars.v)
    accelerations_vjp(s, s.ws.qdd_bar)
    coordinates.to_ambient(s, s.q, s.bars.tangent, s.bars.q)


# rk4: weight of stage k in the sum, and how far along stage k-1 its state is taken
_WEIGHT = {0: lambda: 1 / 6, 1: lambda: 1 / 3, 2: lambda: 1 / 3, 3: lambda: 1 / 6}
_NODE = {0: lambda: 0.0, 1: lambda: 0.5, 2: lambda: 0.5, 3: lambda: 1.0, 4: lambda: 0.0}


def rk4(s: Step, accelerations: Forward) -> None:
    """The classical method of order four on (q, v), quaternions ambient inside and normalised at the end."""
    _rk4_stages(s, accelerations)
    copy(s.ws.v_sum, s.v, s.model.nv)
    coordinates.normalised(s, s.ws.q_sum, s.q)


def _rk4_stages(s: Step, accelerations: Forward) -> None:
    """The states of the four stages in rows of ws.q_stage and ws.v_stage, and the sum before normalising."""
    nq, nv, ws = s.model.nq, s.model.nv, s.ws
    for i in loop(nq):
        ws.q_rate[i], ws.q_sum[i] = 0.0, s.q[i]
    for i in loop(nv):
        ws.qdd[i], ws.v_sum[i] = 0.0, s.v[i]
    for k in loop(4):
        weight, ahead = s.dt * switch(k, _WEIGHT), s.dt * switch(k, _NODE)
        stage = s.at(q=ws.q_stage.shifted(k * nq), v=ws.v_stage.shifted(k * nv))
        for i in loop(nq):
            stage.q[i] = s.q[i] + ahead * ws.q_rate[i]
        for i in loop(nv):
            stage.v[i] = s.v[i] + ahead * ws.qdd[i]
        coordinates.rate(s, stage.q, stage.v, ws.q_rate)
        accelerations(stage)
        for i in loop(nq):
            ws.q_sum[i] = ws.q_sum[i] + weight * ws.q_rate[i]
        for i in loop(nv):
            ws.v_sum[i] = ws.v_sum[i] + weight * ws.qdd[i]


def rk4_vjp(s: Step, accelerations: Forward, accelerations_vjp: Backward) -> None:
    """Stages backwards; (ws.q_stage_bar, ws.v_stage_bar) is the cotangent of the state of stage k+1, then of k."""
    nq, nv, ws, bars = s.model.nq, s.model.nv, s.ws, s.bars
    _rk4_stages(s, accelerations)
    coordinates.normalised_vjp(s, ws.q_sum, bars.q)
    for i in loop(nq):
        ws.q_out_bar[i], ws.q_stage_bar[i] = bars.q[i], 0.0
    for i in loop(nv):
        ws.v_out_bar[i], ws.v_stage_bar[i] = bars.v[i], 0.0
    for k in loop(4, inwards=True):
        weight, ahead = s.dt * switch(k, _WEIGHT), s.dt * switch(k + 1, _NODE)
        q_k, v_k = ws.q_stage.shifted(k * nq), ws.v_stage.shifted(k * nv)
        stage = s.at(q=q_k, v=v_k, bars=bars._replace(v=ws.v_stage_bar), filled=True)
        for i in loop(nq):
            ws.q_rate[i] = weight * ws.q_out_bar[i] + ahead * ws.q_stage_bar[i]
            ws.q_stage_bar[i] = 0.0
        for i in loop(nv):
            ws.qdd_bar[i] = weight * ws.v_out_bar[i] + ahead * ws.v_stage_bar[i]
            ws.v_stage_bar[i] = 0.0
        coordinates.rate_vjp(s, stage.q, stage.v, ws.q_rate, ws.q_stage_bar, ws.v_stage_bar)
        accelerations(stage)
        accelerations_vjp(stage, ws.qdd_bar)
        coordinates.to_ambient(s, stage.q, bars.tangent, ws.q_stage_bar)
        for i in loop(nq):
            bars.q[i] = bars.q[i] + ws.q_stage_bar[i]
        for i in loop(nv):
            bars.v[i] = bars.v[i] + ws.v_stage_bar[i]


INTEGRATORS = {
    "semi_implicit": Integrator(semi_implicit, semi_implicit_vjp),
    "explicit": Integrator(explicit, explicit_vjp),
    "rk4": Integrator(rk4, rk4_vjp, implicit_damping=False),
}
