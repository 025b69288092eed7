"""Stage 5: integrators, each above its adjoint. Rotations advance by the exponential map  (theory 7.1, 7.3, 7.4).

The adjoints find the velocities that the step led to in ws.v_next: they are kept anyway, and spare a solve.
"""

from __future__ import annotations

from typing import Any

from . import joints
from .contact.stage import total_acceleration, total_acceleration_vjp
from .dynamics import Method, accelerate, accelerate_vjp
from .options import Options
from .staging import Reals, copy, loop, switch
from .tables import Bars, Constants, Topology, Workspace


def damping_dt(options: Options, dt: Any) -> Any:
    """Over which time damping acts implicitly: a step of Euler's methods, none of rk4."""
    return 0.0 if options.integrator == "rk4" else dt


def _known_accelerations(topology: Topology, dt: Any, v: Reals, ws: Workspace) -> None:
    """qdd = (v+ - v)/dt: a step's accelerations, read off the velocities it led to  (rounding: eps |v|/dt)."""
    rate = 1.0 / dt
    for k in loop(topology.nv):
        ws.qdd[k] = (ws.v_next[k] - v[k]) * rate


def semi_implicit(
    topology: Topology, const: Constants, method: Method, dt: Any, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """v+ = v + dt qdd,   q+ = q (+) dt v+"""
    total_acceleration(topology, const, method, q, v, u, ws)
    for k in loop(topology.nv):
        v[k] = v[k] + dt * ws.qdd[k]
    joints.integrate(topology, q, v, dt)


def semi_implicit_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    dt: Any,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    q_bar: Reals,
    bars: Bars,
) -> None:
    _known_accelerations(topology, dt, v, ws)
    joints.integrate_vjp(topology, q, ws.v_next, dt, q_bar, bars.v)
    for k in loop(topology.nv):
        ws.qdd_bar[k] = dt * bars.v[k]
    total_acceleration_vjp(topology, const, method, q, v, u, ws, ws.qdd_bar, bars)
    joints.lift(topology, q, bars.tangent, q_bar)


def explicit(
    topology: Topology, const: Constants, method: Method, dt: Any, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """q+ = q (+) dt v,   v+ = v + dt qdd"""
    total_acceleration(topology, const, method, q, v, u, ws)
    joints.integrate(topology, q, v, dt)
    for k in loop(topology.nv):
        v[k] = v[k] + dt * ws.qdd[k]


def explicit_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    dt: Any,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    q_bar: Reals,
    bars: Bars,
) -> None:
    _known_accelerations(topology, dt, v, ws)
    for k in loop(topology.nv):
        ws.qdd_bar[k] = dt * bars.v[k]
    joints.integrate_vjp(topology, q, v, dt, q_bar, bars.v)
    total_acceleration_vjp(topology, const, method, q, v, u, ws, ws.qdd_bar, bars)
    joints.lift(topology, q, bars.tangent, q_bar)


# rk4: weight of stage s in the sum, and how far along stage s-1 its state is taken
_WEIGHT = {0: lambda: 1 / 6, 1: lambda: 1 / 3, 2: lambda: 1 / 3, 3: lambda: 1 / 6}
_NODE = {0: lambda: 0.0, 1: lambda: 0.5, 2: lambda: 0.5, 3: lambda: 1.0, 4: lambda: 0.0}


def rk4(
    topology: Topology, const: Constants, method: Method, dt: Any, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """The classical method of order four on (q, v), quaternions ambient inside and normalised at the end."""
    _rk4_stages(topology, const, method, dt, q, v, u, ws)
    copy(ws.v_sum, v, topology.nv)
    joints.normalised(topology, ws.q_sum, q)


def _rk4_stages(
    topology: Topology, const: Constants, method: Method, dt: Any, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """The states of the four stages in rows of ws.q_stage and ws.v_stage, and the sum before normalising."""
    nq, nv = topology.nq, topology.nv
    for k in loop(nq):
        ws.q_rate[k], ws.q_sum[k] = 0.0, q[k]
    for k in loop(nv):
        ws.qdd[k], ws.v_sum[k] = 0.0, v[k]
    for s in loop(4):
        weight, ahead = dt * switch(s, _WEIGHT), dt * switch(s, _NODE)
        q_s, v_s = ws.q_stage.shifted(s * nq), ws.v_stage.shifted(s * nv)
        for k in loop(nq):
            q_s[k] = q[k] + ahead * ws.q_rate[k]
        for k in loop(nv):
            v_s[k] = v[k] + ahead * ws.qdd[k]
        joints.rate(topology, q_s, v_s, ws.q_rate)
        accelerate(topology, const, method, q_s, v_s, u, ws)
        for k in loop(nq):
            ws.q_sum[k] = ws.q_sum[k] + weight * ws.q_rate[k]
        for k in loop(nv):
            ws.v_sum[k] = ws.v_sum[k] + weight * ws.qdd[k]


def rk4_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    dt: Any,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    q_bar: Reals,
    bars: Bars,
) -> None:
    """Stages backwards; (ws.q_stage_bar, ws.v_stage_bar) is the cotangent of the state of stage s+1, then of s."""
    nq, nv = topology.nq, topology.nv
    _rk4_stages(topology, const, method, dt, q, v, u, ws)
    joints.normalised_vjp(topology, ws.q_sum, q_bar)
    for k in loop(nq):
        ws.q_out_bar[k], ws.q_stage_bar[k] = q_bar[k], 0.0
    for k in loop(nv):
        ws.v_out_bar[k], ws.v_stage_bar[k] = bars.v[k], 0.0
    for s in loop(4, inwards=True):
        weight, ahead = dt * switch(s, _WEIGHT), dt * switch(s + 1, _NODE)
        q_s, v_s = ws.q_stage.shifted(s * nq), ws.v_stage.shifted(s * nv)
        for k in loop(nq):
            ws.q_rate[k] = weight * ws.q_out_bar[k] + ahead * ws.q_stage_bar[k]
            ws.q_stage_bar[k] = 0.0
        for k in loop(nv):
            ws.qdd_bar[k] = weight * ws.v_out_bar[k] + ahead * ws.v_stage_bar[k]
            ws.v_stage_bar[k] = 0.0
        joints.rate_vjp(topology, q_s, v_s, ws.q_rate, ws.q_stage_bar, ws.v_stage_bar)
        accelerate(topology, const, method, q_s, v_s, u, ws)
        accelerate_vjp(topology, const, method, q_s, v_s, u, ws, ws.qdd_bar, bars._replace(v=ws.v_stage_bar))
        joints.lift(topology, q_s, bars.tangent, ws.q_stage_bar)
        for k in loop(nq):
            q_bar[k] = q_bar[k] + ws.q_stage_bar[k]
        for k in loop(nv):
            bars.v[k] = bars.v[k] + ws.v_stage_bar[k]


FORWARD = {"semi_implicit": semi_implicit, "explicit": explicit, "rk4": rk4}
BACKWARD = {"semi_implicit": semi_implicit_vjp, "explicit": explicit_vjp, "rk4": rk4_vjp}
