"""Many steps, and back. One kernel runs a whole rollout of a pack of robots; policies decide which states are kept.

The gradient is the same to the bit under every policy: a state that was not kept is computed again by the same steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import comb
from typing import Any, Protocol

from .contact import Touch, impulses_again
from .contact.gather import Law
from .contact.report import REPORT, report
from .contact.solver import worse
from .contact.tables import Contacts, contact_signature
from .errors import InputError
from .options import Options
from .staging import INT, PACKED, REAL, ROBOTS, SHARED, WORK, Kernel, Reals, Target, copy, local, loop, maximum
from .staging.kernel import Kind
from .step import method_of, step, step_vjp
from .tables import TOPOLOGY, Bars, Constants, Topology, Workspace


# -- kernels -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Variant:
    """What shapes a kernel of this library: method, target, and which inputs a robot has of its own."""

    options: Options
    target: Target
    own_params: bool = False
    wrench: bool = False
    with_params: bool = False
    contact: bool = False
    force_bars: bool = False
    strided: bool = False

    @property
    def staged(self) -> Variant:
        """Without what is a run-time argument, so that it does not compile anew."""
        return replace(self, options=self.options.structure)

    def signature(self, work: tuple[str, ...], taped: bool = False) -> dict[str, Kind]:
        """What all kernels of steps take: the model and its constants, dt, wrenches, contact, scratch."""
        return {
            **TOPOLOGY,
            "dt": REAL,
            "const": PACKED if self.own_params else SHARED,
            **({"wrench": ROBOTS} if self.wrench else {}),
            **(contact_signature(taped) | {"law": SHARED} if self.contact else {}),
            **dict.fromkeys(work, WORK),
        }

    def take(self, dt: Any, const: Reals, rest: dict[str, Any]) -> tuple[Topology, Constants, Workspace, Touch | None]:
        """The same inside a kernel; `rest` keeps what is the kernel's own, and the wrenches."""
        topology, ws = Topology.take(rest), Workspace(rest, self.wrench)
        return topology, Constants(topology, const), ws, contact_of(self, dt, rest)


def contact_of(variant: Variant, dt: Any, arguments: dict[str, Any]) -> Touch | None:
    """Contact of a kernel, if it has any."""
    if not variant.contact:
        return None
    options = variant.options
    return Touch(
        Law(dt, arguments.pop("law")),
        options.solver,
        options.sweeps,
        options.gradient,
        Contacts.take(arguments, options.cone),
    )


def rollout_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: `stretches` steps from row 0 of (q, v); the state after each goes to the next row. Strided: each is of `length`
    steps."""
    return _rollout_kernel(variant.staged, work)


@cache
def _rollout_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    def body(dt: Any, stretches: Any, const: Reals, q: Reals, v: Reals, u: Reals, **rest: Any) -> None:
        topology, constants, ws, touch = variant.take(dt, const, rest)
        nq, nv = topology.nq, topology.nv
        copy(q, ws.q, nq)
        copy(v, ws.v, nv)
        if touch is not None:
            touch.contacts.status[0], touch.contacts.status[2] = 0.0, 0.0
        for s in loop(stretches):
            for t in loop(s * rest["length"], (s + 1) * rest["length"]) if variant.strided else (s,):
                u_t = inputs(topology, t, u, rest.get("wrench"), ws)
                step(topology, constants, variant.options, dt, ws.q, ws.v, u_t, ws, touch)
            copy(ws.q, q.shifted((s + 1) * nq), nq)
            copy(ws.v, v.shifted((s + 1) * nv), nv)
        if touch is not None:
            worst, full = rest["status"], touch.contacts.status[2]
            worst[0], worst[1] = worse(worst[0], touch.contacts.status[0]), maximum(worst[1], full)

    own: dict[str, Kind] = {
        "stretches": INT,
        **({"length": INT} if variant.strided else {}),
        **dict.fromkeys(("q", "v", "u"), ROBOTS),
        **({"status": ROBOTS} if variant.contact else {}),
    }
    return Kernel("rollout", body, variant.signature(work) | own, variant.target)


def inputs(topology: Topology, t: Any, u: Reals, wrench: Reals | None, ws: Workspace) -> Reals:
    """The controls of step t, to be read many times; its wrenches, if there are any, go to ws.wrench."""
    if wrench is not None:
        copy(wrench.shifted(t * topology.nb * 6), ws.wrench, topology.nb * 6)
    return local(u.shifted(t * topology.nu), ws.u, topology.nu)


def rollout_vjp_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: turns the cotangent of the last state of a trajectory into that of the first, and gathers the others.

    (q, v) are all states of `length` steps. Strided, they are room for as many, and (q_kept, v_kept) have the first states
    of `stretches`: each stretch is run again, then differentiated.
    """
    return _rollout_vjp_kernel(variant.staged, work)


@cache
def _rollout_vjp_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    def body(
        dt: Any,
        length: Any,
        every: Any,
        const: Reals,
        q: Reals,
        v: Reals,
        u: Reals,
        q_bars: Reals,
        v_bars: Reals,
        q_bar: Reals,
        v_bar: Reals,
        u_bar: Reals,
        **rest: Any,
    ) -> None:
        topology, constants, ws, touch = variant.take(dt, const, rest)
        wrench = rest.get("wrench")
        const_bar = Constants(topology, rest["const_bar"], bars=True) if variant.with_params else None
        bars = Bars(ws.tangent_bar, ws.v_bar, ws.u_bar, const_bar)
        if touch is not None:
            status, health = touch.contacts.status, rest["health"]
            status[0], status[1], status[2] = health[0], health[1], 0.0
        nq, nv, nu, nw = topology.nq, topology.nv, topology.nu, topology.nb * 6
        points = touch.contacts.points if touch is not None else 0

        def run_again(s: Any) -> None:
            copy(rest["q_kept"].shifted(s * nq), ws.q, nq)
            copy(rest["v_kept"].shifted(s * nv), ws.v, nv)
            copy(ws.q, q, nq)
            copy(ws.v, v, nv)
            for j in loop(length - 1):
                u_t = inputs(topology, s * length + j, u, wrench, ws)
                step(topology, constants, variant.options, dt, ws.q, ws.v, u_t, ws, touch)
                copy(ws.q, q.shifted((j + 1) * nq), nq)
                copy(ws.v, v.shifted((j + 1) * nv), nv)
            copy(rest["v_kept"].shifted((s + 1) * nv), ws.v, nv)  # all that is read of the state after the last step
            copy(ws.v, v.shifted(length * nv), nv)

        copy(q_bar, ws.q_bar, nq)
        copy(v_bar, ws.v_bar, nv)
        for s in loop(rest["stretches"], inwards=True) if variant.strided else (0,):
            if variant.strided:
                run_again(s)
            for j in loop(length, inwards=True):
                t = s * length + j
                q_t = local(q.shifted(j * nq), ws.q, nq)
                v_t = local(v.shifted(j * nv), ws.v, nv)
                u_t = inputs(topology, t, u, wrench, ws)
                ws.v_next = local(v.shifted((j + 1) * nv), ws.v_after, nv)
                for k in loop(nu):
                    ws.u_bar[k] = 0.0
                if wrench is not None:
                    for k in loop(nw):
                        ws.wrench_bar[k] = 0.0
                if touch is not None and variant.force_bars:
                    bars_t = rest["force_bars"].shifted(t * points * 3)
                    touch.contacts.force_bar = local(bars_t, rest["force_bar"], points * 3)
                step_vjp(topology, constants, variant.options, dt, q_t, v_t, u_t, ws, ws.q_bar, bars, touch)
                copy(ws.u_bar, u_bar.shifted(t * nu), nu)
                if wrench is not None:
                    copy(ws.wrench_bar, rest["wrench_bar"].shifted(t * nw), nw)
                for _ in loop(every):
                    copy(q_bars.shifted(t * nq), ws.q, nq)
                    copy(v_bars.shifted(t * nv), ws.v, nv)
                    for k in loop(nq):
                        ws.q_bar[k] = ws.q_bar[k] + ws.q[k]
                    for k in loop(nv):
                        ws.v_bar[k] = ws.v_bar[k] + ws.v[k]
        copy(ws.q_bar, q_bar, nq)
        copy(ws.v_bar, v_bar, nv)
        if touch is not None:
            rest["health"][0], rest["health"][1] = touch.contacts.status[0], touch.contacts.status[1]

    own: dict[str, Kind] = {
        **dict.fromkeys(("length", "every"), INT),
        **dict.fromkeys(("q", "v", "u", "q_bars", "v_bars", "q_bar", "v_bar", "u_bar"), ROBOTS),
        **({"stretches": INT} | dict.fromkeys(("q_kept", "v_kept"), ROBOTS) if variant.strided else {}),
        **({"const_bar": PACKED} if variant.with_params else {}),
        **({"wrench_bar": ROBOTS} if variant.wrench else {}),
        **({"health": ROBOTS} if variant.contact else {}),
        **({"force_bars": ROBOTS, "force_bar": WORK} if variant.force_bars else {}),
    }
    taped = variant.options.gradient == "reverse"
    return Kernel("rollout_vjp", body, variant.signature(work, taped) | own, variant.target)


def contacts_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: a row of REPORT for every point that may touch and every step of a trajectory."""
    return _contacts_kernel(variant.staged, work)


@cache
def _contacts_kernel(variant: Variant, work: tuple[str, ...]) -> Kernel:
    def body(
        dt: Any, steps: Any, const: Reals, q: Reals, v: Reals, u: Reals, out: Reals, row: Reals, **rest: Any
    ) -> None:
        topology, constants, ws, touch = variant.take(dt, const, rest)
        assert touch is not None
        method = method_of(variant.options, dt, touch)
        nq, nv, size = topology.nq, topology.nv, touch.contacts.points * REPORT.size
        touch.contacts.status[0], touch.contacts.status[2] = 0.0, 0.0
        for t in loop(steps):
            q_t, v_t = local(q.shifted(t * nq), ws.q, nq), local(v.shifted(t * nv), ws.v, nv)
            u_t = inputs(topology, t, u, rest.get("wrench"), ws)
            impulses_again(topology, constants, method, q_t, v_t, u_t, ws)
            report(topology, constants, touch.law, q_t, touch.contacts, row)
            copy(row, out.shifted(t * size), size)

    own: dict[str, Kind] = {"steps": INT, "row": WORK, **dict.fromkeys(("q", "v", "u", "out"), ROBOTS)}
    return Kernel("contacts", body, variant.signature(work) | own, variant.target)


# -- checkpoints ---------------------------------------------------------------------------------------------------------
class Checkpoints(Protocol):
    """A policy for which states a rollout keeps."""

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        """(block, snapshots): steps go in blocks, and the first states of at most so many blocks are kept at a time. If
        there is room for all of them that is all; else a binomial schedule says which, and what is run again."""
        ...


@dataclass(frozen=True)
class EveryStep:
    """Keep every state: nothing is computed twice, and `traj.q`, `traj.v` can be read."""

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        return 1, steps


@dataclass(frozen=True)
class EveryKth:
    """Keep every k-th state: memory falls by k, and k - 1 of k steps run once more on the way back."""

    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise InputError(f"EveryKth keeps a state every k >= 1 steps, not {self.k!r}")

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        return self.k, -(-steps // self.k)


@dataclass(frozen=True)
class Binomial:
    """Keep as many states as fit in `memory` ("64MB", or bytes), where binomial checkpointing wants them  (theory 8.2)."""

    memory: str | int

    def __post_init__(self) -> None:
        parse_bytes(self.memory)

    def plan(self, steps: int, state_bytes: int) -> tuple[int, int]:
        states = parse_bytes(self.memory) // max(state_bytes, 1)
        if states < 3:
            raise InputError(
                f"memory={self.memory!r} holds {states} states of {state_bytes} bytes; at least 3 are needed"
            )
        if states > steps:
            return 1, steps
        block = max(1, states // 2 - 1)
        return block, states - block - 1


def parse_bytes(memory: str | int) -> int:
    """Bytes of "64MB", "1.5 GB", "64MiB", "4096" or a number."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([kMG]?)(i?)B?\s*", str(memory), re.IGNORECASE)
    if match is None:
        raise InputError(f"memory is a number of bytes or a text like '64MB', not {memory!r}")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** ("", "K", "M", "G").index(match[2].upper()))


def split(length: int, snapshots: int) -> int:
    """How far to advance before the next snapshot, with `snapshots` places of which the first is taken  (theory 8.3)."""
    if snapshots <= 1:
        return length - 1
    r = 1
    while comb(snapshots + r, snapshots) < length:
        r += 1
    least = max(length - comb(snapshots + r - 1, snapshots - 1), comb(snapshots + r - 2, snapshots))
    return max(1, min(least, comb(snapshots + r - 1, snapshots), length - 1))


def forward_snapshots(blocks: int, snapshots: int) -> list[int]:
    """The blocks whose first state the forward pass keeps, in order; the first is always 0."""
    kept = [0]
    while len(kept) < snapshots and blocks - kept[-1] > 1:
        kept.append(kept[-1] + split(blocks - kept[-1], snapshots - len(kept) + 1))
    return kept


def reverse(
    blocks: int,
    snapshots: int,
    kept: dict[int, Any],
    advance: Callable[[Any, int, int], Any],
    block_vjp: Callable[[Any, int], None],
) -> None:
    """Visit all blocks from the last to the first. `kept` maps a block to its first state; `advance(state, a, b)` gives
    the state at block b from that at a; `block_vjp(state, b)` differentiates block b."""
    stack, end = sorted(kept), blocks
    while stack:
        start = stack[-1]
        if end - start == 1:
            block_vjp(kept[start], start)
            kept.pop(stack.pop())
            end = start
        elif len(stack) >= snapshots:
            block_vjp(advance(kept[start], start, end - 1), end - 1)
            end -= 1
        else:
            ahead = start + split(end - start, snapshots - len(stack) + 1)
            kept[ahead] = advance(kept[start], start, ahead)
            stack.append(ahead)
