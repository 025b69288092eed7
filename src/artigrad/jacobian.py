"""The Jacobian of one step: the step once, then its adjoint for every direction of the next state.

The adjoint at the solution leaves the factor, the contacts and the kinematics of the step as they are, so that all
directions share them; others fill the workspace anew for each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from . import integrate, joints
from .rollout import Variant
from .staging import ROBOTS, WORK, Kernel, Reals, copy, loop
from .staging.kernel import Kind
from .step import method_of
from .tables import Bars


def jacobian_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: A (2 nv, 2 nv) and B (2 nv, nu) of one step: dx' = A dx + B du on the tangent space, x = (q, v)."""
    return _jacobian_kernel(variant.staged, work)


@cache
def _jacobian_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    options = variant.options

    def body(
        dt: Any,
        const: Reals,
        q: Reals,
        v: Reals,
        u: Reals,
        A: Reals,
        B: Reals,
        direction: Reals,
        q_next: Reals,
        **rest: Any,
    ) -> None:
        topology, constants, ws, touch = variant.take(dt, const, rest)
        nq, nv, nu = topology.nq, topology.nv, topology.nu
        forward, backward = integrate.FORWARD[options.integrator], integrate.BACKWARD[options.integrator]
        method = method_of(options, dt, touch)
        if touch is not None:
            for k in range(3):
                touch.contacts.status[k] = 0.0

        ws.v_next = ws.v_after
        for source, copies, n in ((q, (ws.q, q_next), nq), (v, (ws.v, ws.v_next), nv), (u, (ws.u,), nu)):
            for place in copies:
                copy(source, place, n)
        forward(topology, constants, method, dt, q_next, ws.v_next, ws.u, ws)

        method = method._replace(filled=options.integrator != "rk4" and options.gradient == "implicit")
        bars = Bars(ws.tangent_bar, ws.v_bar, ws.u_bar, None)
        for k in loop(2 * nv):
            for i in loop(2 * nv):
                direction[i] = 0.0
            direction[k] = 1.0
            for i in loop(nq):
                ws.q_bar[i] = 0.0
            joints.lift(topology, q_next, direction, ws.q_bar)
            for i in loop(nv):
                ws.v_bar[i] = direction[nv + i]
            for i in loop(nu):
                ws.u_bar[i] = 0.0
            backward(topology, constants, method, dt, ws.q, ws.v, ws.u, ws, ws.q_bar, bars)
            joints.drop(topology, ws.q, ws.q_bar, direction)
            for i in loop(nv):
                direction[nv + i] = ws.v_bar[i]
            copy(direction, A.shifted(2 * k * nv), 2 * nv)
            copy(ws.u_bar, B.shifted(k * nu), nu)

        if touch is not None:
            rest["status"][0], rest["status"][1] = touch.contacts.status[0], touch.contacts.status[2]

    own: dict[str, Kind] = {
        **dict.fromkeys(("q", "v", "u", "A", "B"), ROBOTS),
        **dict.fromkeys(("direction", "q_next"), WORK),
        **({"status": ROBOTS} if variant.contact else {}),
    }
    taped = options.gradient == "reverse"
    return Kernel("jacobian", body, variant.signature(work, taped) | own, variant.target)
