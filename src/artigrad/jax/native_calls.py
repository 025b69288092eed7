"""Steps, rollouts and functions of a state as native calls from XLA's own threads, without Python: the same kernels, the same
bits.

A `NativeCall` describes one of them to the handler (`xla_handler`). Its block, and all that it points to, stays for good: a
compiled program of JAX may call it until the process ends.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import inf, prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..kernels.jacobian import jacobian_kernel
from ..kernels.queries import QUERIES, query_kernel, query_vjp_kernel
from ..kernels.rollout import rollout_kernel, rollout_vjp_kernel
from ..model.state import State
from ..physics.collision.gap import FAR
from ..simulate import differentiable
from ..simulate.arrays import Axes
from ..simulate.checks import UNIT_TOLERANCE
from ..simulate.differentiable import Call
from ..simulate.engine import Inputs
from ..simulate.simulator import Simulator
from . import xla_handler
from .xla_handler import AFTER, BEFORE, PROCESS, TARGET, Ask, CallBlock
from .xla_interface import UnknownInterfaceError


@dataclass(frozen=True)
class Place:
    """An operand or result of a call: the shape of a row for so many steps, and what the handler does with it."""

    name: str
    shape: Callable[[int], Axes]
    slot: str | None = None  # the kernel's argument that it is
    other_slot: str | None = None  # another that may lie there too
    copy_to: str | None = None  # the result to whose front it is copied
    finite: bool = False
    limits: tuple[float, float] | None = None  # of the two numbers of a row, beyond which Python is asked


class NativeCall:
    """A kernel of a simulator with its operands and results. steps: its argument that the number of steps is, if it has one.
    look(when, rows): looks at rows by name, and raises or warns."""

    def __init__(
        self,
        sim: Simulator,
        bound: Callable[[int], Any],
        places: tuple[list[Place], list[Place]],
        steps: str | None,
        constants: dict[str, int],
        look: Callable[[int, dict[str, np.ndarray]], None],
    ):
        self.sim, self.places, self._look = sim, places, look
        self._keep: list[Any] = []
        self._texts: deque[Any] = deque(maxlen=64)
        block = self._block = CallBlock(operands=len(places[0]), results=len(places[1]), item=sim.real.itemsize)
        for k, batch in enumerate((1, 2)):
            found = bound(batch)
            kernel, const = found.kernel, sim.engine.constants(sim.params, batch)
            table = (ctypes.c_int64 * (len(found.words) + 1))(*found.words)  # the last is for what no kernel reads
            kernel.put(table, "const", const)
            for name, value in constants.items():
                kernel.put(table, name, value)
            variant = block.variants[k]
            variant.entry, variant.scratch, variant.lanes = kernel.address, found.scratch, kernel.target.lanes
            variant.table = ctypes.addressof(table)
            self._keep += [found, const, table]
        block.words, block.threads = len(table), sim.engine.threads
        block.steps_slot = len(table) - 1 if steps is None else kernel.slot(steps)
        names = [place.name for place in (*places[0], *places[1])]
        for k, place in enumerate((*places[0], *places[1])):
            row = block.arrays[k]
            row.own, row.finite, row.limited = len(place.shape(1)), place.finite, place.limits is not None
            row.limits[:] = place.limits or (inf, inf)
            row.slot, row.other_slot = (-1 if s is None else kernel.slot(s) for s in (place.slot, place.other_slot))
            row.copy_to = -1 if place.copy_to is None else names.index(place.copy_to, len(places[0]))
        self._ask = Ask(self._answer)
        block.ask = ctypes.cast(self._ask, ctypes.c_void_p).value or 0

    def check_quaternions(self) -> None:
        """Those of the first operand must have length one."""
        starts = [a for a, _ in self.sim.checks.quaternions]
        self._starts = (ctypes.c_int64 * len(starts))(*starts)
        self._block.quaternions, self._block.quaternion_starts = len(starts), ctypes.addressof(self._starts)
        self._block.lengths[:] = [(1.0 - UNIT_TOLERANCE) ** 2, (1.0 + UNIT_TOLERANCE) ** 2]

    def __call__(self, lead: Axes, steps: int, *operands: Array) -> list[Array]:
        """Results with these leading axes."""
        like = [jax.ShapeDtypeStruct((*lead, *place.shape(steps)), self.sim.real) for place in self.places[1]]
        about = {"block": ctypes.addressof(self._block), "process": PROCESS, "steps": steps}
        run = jax.ffi.ffi_call(TARGET, like, vmap_method="broadcast_all")
        return list(run(*operands, **{name: np.int64(x) for name, x in about.items()}))

    def _answer(self, when: int, batch: int, steps: int, data: Any) -> int:
        """What the handler asks: the address of a sentence if the call has to fail, else 0."""
        try:
            rows = {}
            for k, place in enumerate((*self.places[0], *self.places[1])):
                if (k < len(self.places[0])) == (when == BEFORE):
                    rows[place.name] = _view(data[k], (batch, *place.shape(steps)), self.sim.real)
            self._look(when, rows)
        except Exception as e:
            text = ctypes.create_string_buffer(str(e).encode())
            self._texts.append(text)  # until XLA has copied it
            return ctypes.addressof(text)
        return 0


def _view(address: int, shape: Axes, dtype: np.dtype) -> np.ndarray:
    """An array on memory of XLA."""
    size = int(np.prod(shape)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


# -- rollouts ------------------------------------------------------------------------------------------------------------
@cache
def _rollout(sim: Simulator, wrench: bool) -> NativeCall:
    """(q, v [, act], u [, wrench] [, status]) -> (q_all, v_all [, act_all] [, status])"""
    m, engine, soft = sim.model, sim.engine, sim.options.law == "soft"
    given = [
        *(Place(k, lambda T, n=n: (n,), copy_to=f"{k}_all", finite=True) for k, n in _sizes(sim)),  # type: ignore[misc]
        Place("u", lambda T: (T, m.nu), "u", finite=True),
        *([Place("wrench", lambda T: (T, m.nb, 6), "wrench", finite=True)] if wrench else []),
    ]
    found = [Place(f"{k}_all", lambda T, n=n: (T + 1, n), k) for k, n in _sizes(sim)]  # type: ignore[misc]
    if engine.constrained:
        limits = sim.checks.negligible if soft else inf, 0.0
        given.append(Place("no_status", lambda T: (2,), copy_to="status"))
        found.append(Place("status", lambda T: (2,), "status", limits=limits))

    def look(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == AFTER:
            engine.check_table(rows["status"])
            if soft:  # whose adjoint does not solve again, and has nothing to tell
                sim.checks.warn_if_unsolved(rows["status"][:, 0])
            return
        sim.checks.state(State(*(rows[k] for k, _ in _sizes(sim))))
        for name in ("u", "wrench"):
            if name in rows:
                sim.checks.numbers(name, rows[name])

    call = NativeCall(
        sim,
        lambda batch: engine.bound(rollout_kernel, _inputs(sim, batch, wrench), False, strided=False),
        (given, found),
        "stretches",
        {},
        look,
    )
    call.check_quaternions()
    return call


@cache
def _rollout_vjp(sim: Simulator, wrench: bool, every: bool) -> NativeCall:
    """(states, u [, wrench] [, cotangents of states], of the last [, health]) -> (those of the first, u_bar [, wrench_bar]
    [, health]). every: whether all states have cotangents; else all but v have rows of all but the last."""
    m, engine, soft = sim.model, sim.engine, sim.options.law == "soft"
    given = [
        *(Place(f"{k}_all", lambda T, n=n, k=k: (T + (every or k == "v"), n), k) for k, n in _sizes(sim)),  # type: ignore[misc]
        Place("u", lambda T: (T, m.nu), "u"),
        *([Place("wrench", lambda T: (T, m.nb, 6), "wrench")] if wrench else []),
    ]
    if every:
        given += [Place(f"{k}_bars", lambda T, n=n: (T + 1, n), f"{k}_bars", finite=True) for k, n in _sizes(sim)]  # type: ignore[misc]
    given += [Place(f"{k}_last", lambda T, n=n: (n,), copy_to=f"{k}_bar", finite=True) for k, n in _sizes(sim)]  # type: ignore[misc]
    found = [
        Place(f"{k}_bar", lambda T, n=n: (n,), f"{k}_bar", None if every else f"{k}_bars", finite=True)  # type: ignore[misc]
        for k, n in _sizes(sim)
    ]
    found.append(Place("u_bar", lambda T: (T, m.nu), "u_bar", finite=True))
    if wrench:
        found.append(Place("wrench_bar", lambda T: (T, m.nb, 6), "wrench_bar"))
    if engine.constrained:
        given.append(Place("no_health", lambda T: (2,), copy_to="health"))
        found.append(Place("health", lambda T: (2,), "health", limits=(inf if soft else sim.checks.negligible, inf)))

    def look(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            for name, x in rows.items():
                if name.endswith(("_bars", "_last")):
                    sim.checks.numbers(f"{name.split('_')[0]}_bar", x)
            return
        if "health" in rows and not soft:
            sim.checks.warn_if_unsolved(rows["health"][:, 0])
        sim.checks.finite([rows[f"{k}_bar"] for k in (*(k for k, _ in _sizes(sim)), "u")], len(rows["q_bar"]))

    flags = {"with_params": False, "force_bars": False, "strided": False}
    return NativeCall(
        sim,
        lambda batch: engine.bound(rollout_vjp_kernel, _inputs(sim, batch, wrench), True, None, **flags),
        (given, found),
        "length",
        {"every": int(every)},
        look,
    )


@cache
def _linearize(sim: Simulator) -> NativeCall:
    """(q, v [, act], u [, status]) -> (A, B [, status])"""
    m, engine = sim.model, sim.engine
    n = 2 * m.nv + m.na
    given = [Place(k, lambda T, n=n: (n,), k, finite=True) for k, n in (*_sizes(sim), ("u", m.nu))]  # type: ignore[misc]
    found = [Place("A", lambda T: (n, n), "A"), Place("B", lambda T: (n, m.nu), "B")]
    if engine.constrained:
        given.append(Place("no_status", lambda T: (2,), copy_to="status"))
        found.append(Place("status", lambda T: (2,), "status", limits=(sim.checks.negligible, 0.0)))

    def look(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == AFTER:
            engine.check_table(rows["status"])
            sim.checks.warn_if_unsolved(rows["status"][:, 0])
            return
        _look_at_state(sim, rows)

    scratch = {"direction": n, "q_next": m.nq} | ({"act_next": m.na} if m.na else {})
    call = NativeCall(
        sim,
        lambda batch: engine.bound(jacobian_kernel, _inputs(sim, batch, False), True, scratch),
        (given, found),
        None,
        {},
        look,
    )
    call.check_quaternions()
    return call


def _sizes(sim: Simulator) -> list[tuple[str, int]]:
    """The parts of a state, and how many numbers each has."""
    m = sim.model
    return [("q", m.nq), ("v", m.nv), *([("act", m.na)] if m.na else [])]


def _inputs(sim: Simulator, batch: int, wrench: bool) -> Inputs:
    """Inputs of the kind that the kernel is for."""
    u = np.zeros((1, sim.model.nu), sim.real)
    return Inputs(batch, u, np.zeros((1, sim.model.nb, 6), sim.real) if wrench else None, sim.params)


# -- functions of a state --------------------------------------------------------------------------------------------------
QUERY_OF = {  # the kernel of each function, and what it reads beside the state
    "outputs": ("outputs", None),
    "mass_matrix": ("mass_matrix", None),
    "inverse_dynamics": ("inverse_dynamics", "a"),
    "forward_dynamics": ("acceleration", "u"),
}


def _query_inputs(sim: Simulator, name: str) -> list[Place]:
    sizes = (*_sizes(sim), ("x", max(1, QUERIES[name].x_size(sim.model))))
    return [Place(k, lambda size, n=n: (n,), k, finite=True) for k, n in sizes]  # type: ignore[misc]


def _look_at_state(sim: Simulator, rows: dict[str, np.ndarray]) -> None:
    sim.checks.state(State(*(rows[k] for k, _ in _sizes(sim))))
    for name in ("u", "x", "out_bar"):
        if name in rows:
            sim.checks.numbers(name, rows[name])


@cache
def _query(sim: Simulator, name: str) -> NativeCall:
    """(q, v, x) -> out"""

    def look(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            _look_at_state(sim, rows)

    call = NativeCall(
        sim,
        lambda batch: sim.engine.query_kernel(query_kernel, name, batch, sim.params),
        (_query_inputs(sim, name), [Place("out", lambda size: (size,), "out")]),
        "size",
        {},
        look,
    )
    call.check_quaternions()
    return call


@cache
def _query_vjp(sim: Simulator, name: str) -> NativeCall:
    """(q, v, x, out_bar) -> (q_bar, v_bar, x_bar)"""
    sizes = (*_sizes(sim), ("x", QUERIES[name].x_size(sim.model)))
    given = [*_query_inputs(sim, name), Place("out_bar", lambda size: (size,), "out_bar", finite=True)]
    found = [Place(f"{k}_bar", lambda size, n=n: (n,), f"{k}_bar", finite=True) for k, n in sizes]  # type: ignore[misc]

    def look(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            _look_at_state(sim, rows)
        else:
            sim.checks.finite(list(rows.values()), len(rows["q_bar"]))

    call = NativeCall(
        sim,
        lambda batch: sim.engine.query_vjp_kernel(query_vjp_kernel, name, batch, sim.params, with_params=False),
        (given, found),
        "size",
        {},
        look,
    )
    call.check_quaternions()
    return call


def _query_operands(call: Call, x: dict[str, Array]) -> tuple[Axes, list[Array]]:
    """Leading axes; q, v and what else a query reads, one zero if that is nothing."""
    extra, lead = QUERY_OF[call.name][1], x["q"].shape[:-1]
    empty = extra is None or not x[extra].shape[-1]
    state = [x[k] for k, _ in _sizes(call.sim)]
    return lead, [*state, jnp.zeros((*lead, 1), x["q"].dtype) if empty or extra is None else x[extra]]


def _unpacked(call: Call, rows: Array) -> list[Array]:
    """What a kernel wrote, as the function gives it; linear."""
    lead, sim = rows.shape[:-1], call.sim
    if call.name == "outputs":
        views = sim._outputs_of(rows.reshape(prod(lead), rows.shape[-1]))
        return [views[name].reshape(*lead, *shape) for name, shape in call.outputs.items()]
    if call.name == "mass_matrix":
        none = jnp.zeros((*lead, 1), rows.dtype)
        return [jnp.concatenate([rows, none], -1)[..., sim._stored_entry_of]]
    return [rows]


def _query_forward(call: Call, x: dict[str, Array]) -> list[Array]:
    name, (lead, operands) = QUERY_OF[call.name][0], _query_operands(call, x)
    (rows,) = _query(call.sim, name)(lead, QUERIES[name].size(call.sim.model), *operands)
    return _unpacked(call, rows)


def _query_backward(call: Call, known: dict[str, Array], bars: dict[str, Array]) -> dict[str, Array]:
    (name, extra), (lead, operands) = QUERY_OF[call.name], _query_operands(call, known)
    size, dtype = QUERIES[name].size(call.sim.model), operands[0].dtype
    given = [bars.get(k, jnp.zeros((*lead, *shape), dtype)) for k, shape in call.outputs.items()]
    _, pack = jax.vjp(partial(_unpacked, call), jnp.zeros((*lead, size), dtype))
    *state_bars, x_bar = _query_vjp(call.sim, name)(lead, size, *operands, *pack(given))
    found = dict(zip((k for k, _ in _sizes(call.sim)), state_bars, strict=True))
    return found | ({} if extra is None else {extra: x_bar})


# -- what JAX calls ------------------------------------------------------------------------------------------------------
def serves(call: Call, groups: list[dict[str, Array]], wanted: tuple[str, ...]) -> bool:
    """Whether there is a native call for this, under the simulator's own parameters."""
    plain = "params" not in groups[0] and call.tricks is None
    known = call.name in ("step", "rollout", "linearize", *QUERY_OF) and plain and call.sim.backend == "native"
    return known and available()


@cache
def available() -> bool:
    """Whether this jaxlib takes our handler."""
    try:
        xla_handler.register()
    except UnknownInterfaceError:
        return False
    return True


def forward(call: Call, x: dict[str, Array], *, wanted: tuple[str, ...]) -> list[Array]:
    """The outputs of a function."""
    if call.name in QUERY_OF:
        return _query_forward(call, x)
    lead, state = x["q"].shape[:-1], [x[k] for k, _ in _sizes(call.sim)]
    status = [jnp.zeros((*lead, 2), x["q"].dtype)] if call.sim.engine.constrained else []
    if call.name == "linearize":
        return _linearize(call.sim)(lead, 1, *state, x["u"], *status)[:2]
    one, u, wrench = call.name == "step", x["u"], x.get("wrench")
    if one:
        u, wrench = u[..., None, :], None if wrench is None else wrench[..., None, :, :]
    pushed = [] if wrench is None else [wrench]
    found = _rollout(call.sim, wrench is not None)(lead, call.steps, *state, u, *pushed, *status)[: len(state)]
    return [y[..., 1, :] for y in found] if one else list(found)


def backward(call: Call, known: dict[str, Array], bars: dict[str, Array], *, wanted: tuple[str, ...]) -> list[Array]:
    """The cotangents of its inputs."""
    if call.name == "linearize":
        differentiable.no_vjp(call, {}, {}, False)
    if call.name in QUERY_OF:
        of_inputs = _query_backward(call, known, bars)
        return [of_inputs[name] for name in wanted]
    names = [k for k, _ in _sizes(call.sim)]
    one, u, wrench = call.name == "step", known["u"], known.get("wrench")
    lead = u.shape[: u.ndim - call.inputs["u"]]
    given = [bars.get(name, jnp.zeros((*lead, *shape), u.dtype)) for name, shape in call.outputs.items()]
    if one:
        states = [known[k][..., None, :] for k in names]
        states[1] = jnp.stack([known["v"], known["v_next"]], -2)
        u, wrench = u[..., None, :], None if wrench is None else wrench[..., None, :, :]
    else:
        states = [known[f"{k}_all"] for k in names]
        given = [*given, *(bar[..., -1, :] for bar in given)]
    health = [jnp.broadcast_to(jnp.array([0.0, FAR], u.dtype), (*lead, 2))] if call.sim.engine.constrained else []
    pushed = [] if wrench is None else [wrench]
    run = _rollout_vjp(call.sim, wrench is not None, not one)
    results = run(lead, call.steps, *states, u, *pushed, *given, *health)
    found, (u_bar, *rest) = dict(zip(names, results, strict=False)), results[len(names) :]
    found["u"] = u_bar[..., 0, :] if one else u_bar
    if wrench is not None:
        found["wrench"] = rest[0][..., 0, :, :] if one else rest[0]
    return [found[name] for name in wanted]
