"""Kernel of a rollout under linear feedback about a reference, for the line search of iLQR: one robot per step length.

u[t] = clamp(u_ref[t] + share k[t] + K[t] (x (-) x_ref[t]), low, high),   x = (q, v, act) on the tangent space
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..compiler import INT, ROBOTS, SHARED, WORK, ArgumentKind, Kernel, Reals, carry, clamp, copy, loop
from ..physics.context import Step
from ..physics.joints import coordinates
from ..physics.spatial import Quat, quat_log
from ..physics.step import step
from .key import KernelKey
from .rollout import clear_status, get_state, put_state, report_status


@cache
def feedback_rollout(key: KernelKey) -> Kernel:
    """Kernel of a closed-loop rollout: `steps` controls, each held for `hold` steps, from row 0 of (q, v, act).

    States are written to the next rows, controls to u.
    """

    def body(**a: Any) -> None:
        s, away = key.step(a), a["away"]
        nq, nv, nu = s.model.nq, s.model.nv, s.model.nu
        n = 2 * nv + s.model.na if key.features.has("activation") else 2 * nv
        get_state(s, a, 0)
        clear_status(s)
        for t in loop(a["controls"]):
            _difference(s, a["q_ref"].shifted(t * nq), away)
            first: Any = nv
            for name, x, size in s.state[1:]:
                for k in loop(size):
                    away[first + k] = x[k] - a[f"{name}_ref"][t * size + k]
                first = first + size
            for j in loop(nu):
                at = t * nu + j
                total = carry(a["u_ref"][at] + a["share"][0] * a["push"][at])
                for k in loop(n):
                    total.value = total.value + a["gain"][at * n + k] * away[k]
                s.ws.u[j] = clamp(total.value, a["low"][j], a["high"][j])
            copy(s.ws.u, a["u"].shifted(t * nu), nu)
            for i in loop(a["hold"]):
                step(s)
                put_state(s, a, t * a["hold"] + i + 1)
        report_status(s, a)

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys(("controls", "hold"), INT),
        **dict.fromkeys((*key.state, *(f"{name}_ref" for name in key.state)), ROBOTS),
        **dict.fromkeys(("u", "u_ref", "push", "gain", "share"), ROBOTS),
        **dict.fromkeys(("low", "high"), SHARED),
        "away": WORK,
        **({"status": ROBOTS} if key.contact else {}),
    }
    return Kernel("feedback_rollout", body, key.signature() | own, key.target)


def _difference(s: Step, q_ref: Reals, out: Reals) -> None:
    """Compute out = q (-) q_ref."""

    def number(a: Any, k: Any) -> None:
        out[k] = s.q[a] - q_ref[a]

    def quaternion(a: Any, k: Any) -> None:
        out.put(k, quat_log(q_ref.struct(a, Quat).conjugate @ s.q.struct(a, Quat)))

    coordinates.each(s, number, quaternion)
