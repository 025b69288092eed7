"""The Jacobian of one step: the step once, then its adjoint for every direction of the next state.

The adjoint at the solution leaves the factor, the contacts and the kinematics of the step as they are, so that all
directions share them; others fill the workspace anew for each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..joints import coordinates
from ..physics.step import step, step_vjp
from ..staging import ROBOTS, WORK, ArgumentKind, Kernel, copy, loop, target
from .key import KernelKey


@cache
def jacobian_kernel(key: KernelKey) -> Kernel:
    """Kernel: A (2 nv, 2 nv) and B (2 nv, nu) of one step: dx' = A dx + B du on the tangent space, x = (q, v)."""

    def body(**a: Any) -> None:
        s = key.step(a)
        nq, nv, nu = s.model.nq, s.model.nv, s.model.nu
        direction, q_next, v_next, bars = a["direction"], a["q_next"], s.ws.v_after, key.bars(s, None)
        if s.constraints is not None:
            for k in range(3):
                s.constraints.status[k] = 0.0
        for source, copies, n in ((a["q"], (s.q, q_next), nq), (a["v"], (s.v, v_next), nv), (a["u"], (s.u,), nu)):
            for place in copies:
                copy(source, place, n)
        if target().tangents:  # which are those of q/|q|
            for q in (s.q, q_next):
                coordinates.normalise(s, q)
        step(s.at(q=q_next, v=v_next))

        shared = key.options.integrator != "rk4" and not key.taped
        here = s.at(v_next=v_next, bars=bars, filled=shared)
        for k in loop(2 * nv):
            for i in loop(2 * nv):
                direction[i] = 0.0
            direction[k] = 1.0
            for i in loop(nq):
                bars.q[i] = 0.0
            coordinates.to_ambient(s, q_next, direction, bars.q)
            for i in loop(nv):
                bars.v[i] = direction[nv + i]
            for i in loop(nu):
                bars.u[i] = 0.0
            step_vjp(here)
            coordinates.to_tangent(s, s.q, bars.q, direction)
            for i in loop(nv):
                direction[nv + i] = bars.v[i]
            copy(direction, a["A"].shifted(2 * k * nv), 2 * nv)
            copy(bars.u, a["B"].shifted(k * nu), nu)

        if s.constraints is not None:
            a["status"][0], a["status"][1] = s.constraints.status[0], s.constraints.status[2]

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys(("q", "v", "u", "A", "B"), ROBOTS),
        **dict.fromkeys(("direction", "q_next"), WORK),
        **({"status": ROBOTS} if key.contact else {}),
    }
    return Kernel("jacobian", body, key.signature(key.taped) | own, key.target)
