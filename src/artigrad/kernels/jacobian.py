"""Jacobian of one step: the step once, then its adjoint for every direction of the next state.

The adjoint at the solution does not modify the factor, the contacts and the kinematics of the step, so that all directions
share them. Other adjoints recompute the workspace for each direction.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..compiler import ROBOTS, WORK, ArgumentKind, Kernel, copy, loop, target
from ..physics.constraints.law import law_of
from ..physics.joints import coordinates
from ..physics.step import prepare_adjoint, step, step_vjp
from .key import KernelKey


@cache
def jacobian_kernel(key: KernelKey) -> Kernel:
    """Kernel of A (n, n) and B (n, nu) of one step: dx' = A dx + B du on the tangent space, x = (q, v, act), n = 2 nv + na."""

    def body(**a: Any) -> None:
        s = key.step(a)
        nq, nv, nu = s.model.nq, s.model.nv, s.model.nu
        direction, bars = a["direction"], key.bars(s, None)
        parts, n = [(nv, bars.v, nv)], 2 * nv  # of a direction behind that of q
        if key.features.has("activation"):
            parts, n = [*parts, (n, bars.act, s.model.na)], n + s.model.na
        after = {"q": a["q_next"], "v": s.ws.v_after} | (
            {"act": a["act_next"]} if key.features.has("activation") else {}
        )
        if s.constraints is not None:
            for k in range(3):
                s.constraints.status[k] = 0.0
        copy(a["u"], s.u, nu)
        for name, x, size in s.state:
            copy(a[name], x, size)
            copy(a[name], after[name], size)
        if target().tangents:  # which are those of q/|q|
            for q in (s.q, after["q"]):
                coordinates.normalize(s, q)
        step(s.at(**after))

        shared = key.options.integrator != "rk4" and law_of(key.options).stages(key.options.law).rest is None
        here = s.at(v_next=after["v"], bars=bars, filled=shared)
        if shared:
            prepare_adjoint(here)
        for k in loop(n):
            for i in loop(n):
                direction[i] = 0.0
            direction[k] = 1.0
            for i in loop(nq):
                bars.q[i] = 0.0
            coordinates.to_ambient(s, after["q"], direction, bars.q)
            for first, own, size in parts:
                for i in loop(size):
                    own[i] = direction[first + i]
            for i in loop(nu):
                bars.u[i] = 0.0
            step_vjp(here)
            coordinates.to_tangent(s, s.q, bars.q, direction)
            for first, own, size in parts:
                for i in loop(size):
                    direction[first + i] = own[i]
            copy(direction, a["A"].shifted(k * n), n)
            copy(bars.u, a["B"].shifted(k * nu), nu)

        if s.constraints is not None:
            a["status"][0], a["status"][1] = s.constraints.status[0], s.constraints.status[2]

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys((*key.state, "u", "A", "B"), ROBOTS),
        **dict.fromkeys(("direction", *(f"{name}_next" for name in key.state if name != "v")), WORK),
        **({"status": ROBOTS} if key.contact else {}),
    }
    return Kernel("jacobian", body, key.signature(key.taped) | own, key.target)
