"""Kernels of rollouts and their adjoints: all steps of a pack of robots in one call.

A stretch is a number of steps of which only the first state is kept. If stretches are longer than one step (`strided`), the
adjoint runs each of them again inside the kernel.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..compiler import (
    INT,
    PACKED,
    REAL,
    ROBOTS,
    WORK,
    ArgumentKind,
    Kernel,
    Reals,
    carry,
    copy,
    local,
    loop,
    maximum,
    minimum,
    sqrt,
    target,
)
from ..physics.constraints.hard.solver import worse
from ..physics.constraints.report import REPORT, report
from ..physics.context import Step
from ..physics.joints import coordinates
from ..physics.step import accelerations, step, step_vjp
from .key import KernelKey, with_inputs


@cache
def rollout_kernel(key: KernelKey) -> Kernel:
    """Kernel of `stretches` steps from row 0 of (q, v, act); states are written to the next rows.

    Strided: `stretches` of `length` steps each.
    """

    def body(**a: Any) -> None:
        s = key.step(a)
        get_state(s, a, 0)
        clear_status(s)
        for n in loop(a["stretches"]):
            for t in loop(n * a["length"], (n + 1) * a["length"]) if key.strided else (n,):
                step(with_inputs(s, t, a))
            put_state(s, a, n + 1)
        report_status(s, a)

    own: dict[str, ArgumentKind] = {
        "stretches": INT,
        **({"length": INT} if key.strided else {}),
        **dict.fromkeys((*key.state, "u"), ROBOTS),
        **({"status": ROBOTS} if key.contact else {}),
    }
    return Kernel("rollout", body, key.signature() | own, key.target)


@cache
def rollout_vjp_kernel(key: KernelKey) -> Kernel:
    """Kernel of the adjoint of a rollout: converts the cotangent of the last state into that of the first, and accumulates the
    cotangents of controls, wrenches and constants.

    (q, v, act) hold all states of `length` steps. If strided, they are a buffer of that size, and q_kept, v_kept and act_kept
    hold the first state of each of `stretches` segments: a segment is run again, then differentiated. q_bars, v_bars and
    act_bars, of all states, are read if `every`. If conditioned, the cotangent of the state is clipped to the norm `clip`, if
    `clipped`, and multiplied by `decay` before each segment of `length` steps, all of whose states are given.
    """

    def body(**a: Any) -> None:
        s = key.step(a)
        s = s.at(bars=key.bars(s, a.get("const_bar")))
        length = a["length"]
        take_bars(s, a)
        for n in loop(a["stretches"], inwards=True) if key.strided or key.conditioned else (0,):
            if key.strided:
                _recompute_stretch(s, n, a)
            if key.conditioned:
                condition_cotangent(s, a)
            for j in loop(length, inwards=True):
                t = n * length + j
                _step_vjp(s, j if key.strided else t, t, a)
                for _ in loop(a["every"]):
                    add_state_bars(s, t, a)
        give_bars(s, a)

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys(("length", "every"), INT),
        **dict.fromkeys((*key.state, "u", "u_bar"), ROBOTS),
        **{f"{name}_{what}": ROBOTS for name in key.state for what in ("bars", "bar")},
        **({"stretches": INT} | {f"{name}_kept": ROBOTS for name in key.state} if key.strided else {}),
        **({"stretches": INT, "clipped": INT, "clip": REAL, "decay": REAL} if key.conditioned else {}),
        **({"const_bar": PACKED} if key.with_params else {}),
        **({"wrench_bar": ROBOTS} if key.wrench else {}),
        **({"health": ROBOTS} if key.contact else {}),
        **({"force_bars": ROBOTS, "force_bar": WORK} if key.force_bars else {}),
    }
    return Kernel("rollout_vjp", body, key.signature(key.taped) | own, key.target)


def take_bars(s: Step, a: dict[str, Any]) -> None:
    """Load the cotangent of the last state and the health so far, at the start of an adjoint."""
    if s.constraints is not None:
        status, health = s.constraints.status, a["health"]
        status[0], status[1], status[2] = health[0], health[1], 0.0
    for name, bars, n in s.state_bars:
        copy(a[f"{name}_bar"], bars, n)


def give_bars(s: Step, a: dict[str, Any]) -> None:
    """Store the cotangent of the first state and the health, at the end of an adjoint."""
    for name, bars, n in s.state_bars:
        copy(bars, a[f"{name}_bar"], n)
    if s.constraints is not None:
        a["health"][0], a["health"][1] = s.constraints.status[0], s.constraints.status[1]


def condition_cotangent(s: Step, a: dict[str, Any]) -> None:
    """Clip and decay the cotangent of the state before a segment of the backward pass."""
    parts = [(bars, n) for _, bars, n in s.state_bars]
    for _ in loop(a["clipped"]):
        total = carry(0.0)
        for bars, n in parts:
            for k in loop(n):
                total.value = total.value + bars[k] * bars[k]
        share = minimum(1.0, a["clip"] / maximum(sqrt(total.value), 1e-30))
        for bars, n in parts:
            for k in loop(n):
                bars[k] = bars[k] * share
    for bars, n in parts:
        for k in loop(n):
            bars[k] = bars[k] * a["decay"]


def _step_vjp(s: Step, j: Any, t: Any, a: dict[str, Any]) -> None:
    """Run the adjoint of step t, whose state is row j; store cotangents of its controls and wrenches."""
    adjoint_of_step(s, j, t, a)
    nu, nw = s.model.nu, s.model.nb * 6
    copy(s.bars.u, a["u_bar"].shifted(t * nu), nu)
    if s.bars.wrench is not None:
        copy(s.bars.wrench, a["wrench_bar"].shifted(t * nw), nw)


def adjoint_of_step(s: Step, j: Any, t: Any, a: dict[str, Any]) -> None:
    """Return the adjoint of step t, whose state is row j."""
    nv, nu, nw = s.model.nv, s.model.nu, s.model.nb * 6
    here = at_row(with_inputs(s, t, a), a, j).at(v_next=local(a["v"].shifted((j + 1) * nv), s.ws.v_after, nv))
    for k in loop(nu):
        s.bars.u[k] = 0.0
    if s.bars.wrench is not None:
        for k in loop(nw):
            s.bars.wrench[k] = 0.0
    if s.constraints is not None and "force_bars" in a:
        size = s.constraints.all_points * 3
        s.constraints.force_bar = local(a["force_bars"].shifted(t * size), a["force_bar"], size)
    step_vjp(here)
    if target().tangents:
        coordinates.normalize_vjp(s, a["q"].shifted(j * s.model.nq), s.bars.q)


def _recompute_stretch(s: Step, n: Any, a: dict[str, Any]) -> None:
    """Write the states of stretch n, from its first, to (q, v, act)."""
    length, nv, s = a["length"], s.model.nv, s.at(bars=None)  # a step as any other
    get_state(s, a, n, "_kept")
    put_state(s, a, 0)
    for j in loop(length - 1):
        step(with_inputs(s, n * length + j, a))
        put_state(s, a, j + 1)
    copy(a["v_kept"].shifted((n + 1) * nv), s.ws.v, nv)  # all that is read of the state after the last step
    copy(s.ws.v, a["v"].shifted(length * nv), nv)


@cache
def contacts_kernel(key: KernelKey) -> Kernel:
    """Kernel of a row of REPORT for every candidate contact point and every step of a trajectory."""

    def body(**a: Any) -> None:
        s = key.step(a)
        size = s.constraints.all_points * REPORT.size
        clear_status(s)
        for t in loop(a["steps"]):
            here = at_row(with_inputs(s, t, a), a, t)
            accelerations(here)
            report(here, a["row"])
            copy(a["row"], a["out"].shifted(t * size), size)

    own: dict[str, ArgumentKind] = {"steps": INT, "row": WORK, **dict.fromkeys((*key.state, "u", "out"), ROBOTS)}
    return Kernel("contacts", body, key.signature() | own, key.target)


def normalized(s: Step, q: Reals) -> Reals:
    """Return a copy of q with normalized quaternions in scratch; its tangents are those of q/|q|."""
    if q is not s.ws.q:
        copy(q, s.ws.q, s.model.nq)
    coordinates.normalize(s, s.ws.q)
    return s.ws.q


def at_row(s: Step, a: dict[str, Any], row: Any) -> Step:
    """Return the step at a row of the states."""
    here = s.at(**{name: local(a[name].shifted(row * n), getattr(s.ws, name), n) for name, _, n in s.state})
    return here.at(q=normalized(s, here.q)) if target().tangents else here  # which are those of q/|q|


def get_state(s: Step, a: dict[str, Any], row: Any, what: str = "") -> None:
    """Load the state from a row of q, v and act, or of the arrays with suffix `what`."""
    for name, x, n in s.state:
        copy(a[name + what].shifted(row * n), x, n)


def put_state(s: Step, a: dict[str, Any], row: Any) -> None:
    for name, x, n in s.state:
        copy(x, a[name].shifted(row * n), n)


def add_state_bars(s: Step, t: Any, a: dict[str, Any]) -> None:
    """Add the cotangents of a loss with respect to state t."""
    for name, bars, n in s.state_bars:
        add_bars(a[f"{name}_bars"].shifted(t * n), getattr(s.ws, name), bars, n)


def clear_status(s: Step) -> None:
    if s.constraints is not None:
        s.constraints.status[0], s.constraints.status[2] = 0.0, 0.0


def report_status(s: Step, a: dict[str, Any]) -> None:
    """Update the worst status of all steps so far."""
    if s.constraints is not None:
        worst, status = a["status"], s.constraints.status
        worst[0], worst[1] = worse(worst[0], status[0]), maximum(worst[1], status[2])


def add_bars(source: Reals, scratch: Reals, bars: Reals, n: Any) -> None:
    copy(source, scratch, n)
    for k in loop(n):
        bars[k] = bars[k] + scratch[k]
