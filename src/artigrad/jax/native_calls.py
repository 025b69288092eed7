"""Steps, rollouts and functions of a state as native calls (`xla_call`), under the simulator's own parameters or others
(`native_params`)."""

from __future__ import annotations

from functools import cache, partial
from math import inf, prod

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..kernels.jacobian import jacobian_kernel
from ..kernels.queries import QUERIES, query_kernel, query_vjp_kernel
from ..kernels.rollout import rollout_kernel, rollout_vjp_kernel
from ..model.state import State
from ..physics.collision.contact_geometry import FAR
from ..physics.constraints.narrowphase import LOST
from ..simulate.arrays import Axes
from ..simulate.engine import Inputs
from ..simulate.function import Call
from ..simulate.simulator import Simulator
from ..simulate.state_functions import output_views, stored_entry_of
from ..simulate.step_functions import no_vjp
from . import gpu_handler, native_params, xla_handler
from .gpu_call import call_on
from .mesh_axes import varying_alike
from .native_params import Sets, any_params, const_bar_place, const_places, fixed, sets_of
from .xla_call import NativeCall, Place, kept_by_simulator
from .xla_handler import AFTER, BEFORE
from .xla_interface import UnknownInterfaceError


def _told(sim: Simulator) -> float:
    """Status beyond which Python is called: a pair that presses where no joint moves, or a contact that found no place."""
    return 0.0 if sim.engine.reports_static_contacts else 0.5 * LOST


# -- rollouts ------------------------------------------------------------------------------------------------------------
@kept_by_simulator
def _rollout(sim: Simulator, wrench: bool, own: Sets) -> NativeCall:
    """(q, v [, act], u [, wrench] [, status] [, const]) -> (q_all, v_all [, act_all] [, status])"""
    m, engine, forward = sim.model, sim.engine, sim.engine.law.reported_forward
    given = [
        *(Place(k, lambda T, n=n: (n,), copy_to=f"{k}_all", finite=True) for k, n in _sizes(sim)),  # type: ignore[misc]
        Place("u", lambda T: (T, m.nu), "u", finite=True),
        *([Place("wrench", lambda T: (T, m.nb, 6), "wrench", finite=True)] if wrench else []),
    ]
    found = [Place(f"{k}_all", lambda T, n=n: (T + 1, n), k) for k, n in _sizes(sim)]  # type: ignore[misc]
    if engine.constrained:
        limits = sim.checks.negligible if forward else inf, _told(sim)
        given.append(Place("no_status", lambda T: (2,), copy_to="status"))
        found.append(Place("status", lambda T: (2,), "status", limits=limits))

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == AFTER:
            engine.check_contact_buffer(rows["status"])
            if forward:  # whose adjoint does not solve again, and has nothing to report
                sim.checks.warn_if_rollout_unsolved(rows["status"][:, 0])
            return
        sim.checks.state(State(*(rows[k] for k, _ in _sizes(sim))))
        for name in ("u", "wrench"):
            if name in rows:
                sim.checks.array(name, rows[name])

    call = call_on(sim)(
        sim,
        lambda batch: engine.bound_kernel(rollout_kernel, _inputs(sim, batch, wrench, own), False, strided=False),
        (given + const_places(sim, own), found),
        "stretches",
        fixed(sim, own),
        check,
    )
    call.check_quaternions()
    return call


@kept_by_simulator
def _rollout_vjp(sim: Simulator, wrench: bool, every: bool, own: Sets, with_params: bool) -> NativeCall:
    """(states, u [, wrench] [, cotangents of states], of the last [, health] [, const]) -> (those of the first, u_bar
    [, wrench_bar] [, health] [, const_bar]). every: whether all states have cotangents; else all but v have rows of all but the
    last."""
    m, engine, forward = sim.model, sim.engine, sim.engine.law.reported_forward
    given = [
        *(Place(f"{k}_all", lambda T, n=n, k=k: (T + (every or k == "v"), n), k) for k, n in _sizes(sim)),  # type: ignore[misc]
        Place("u", lambda T: (T, m.nu), "u"),
        *([Place("wrench", lambda T: (T, m.nb, 6), "wrench")] if wrench else []),
    ]
    if every:
        given += [Place(f"{k}_bars", lambda T, n=n: (T + 1, n), f"{k}_bars") for k, n in _sizes(sim)]  # type: ignore[misc]
    given += [Place(f"{k}_last", lambda T, n=n: (n,), copy_to=f"{k}_bar") for k, n in _sizes(sim)]  # type: ignore[misc]
    found = [
        Place(f"{k}_bar", lambda T, n=n: (n,), f"{k}_bar", None if every else f"{k}_bars", finite=True)  # type: ignore[misc]
        for k, n in _sizes(sim)
    ]
    found.append(Place("u_bar", lambda T: (T, m.nu), "u_bar", finite=True))
    if wrench:
        found.append(Place("wrench_bar", lambda T: (T, m.nb, 6), "wrench_bar"))
    if engine.constrained:
        given.append(Place("no_health", lambda T: (2,), copy_to="health"))
        found.append(Place("health", lambda T: (2,), "health", limits=(inf if forward else sim.checks.negligible, inf)))

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            return
        if "health" in rows and not forward:
            sim.checks.warn_if_unsolved(rows["health"][:, 0])
        sim.checks.finite([rows[f"{k}_bar"] for k in (*(k for k, _ in _sizes(sim)), "u")], len(rows["q_bar"]))

    flags = {"with_params": with_params, "force_bars": False, "strided": False}
    return call_on(sim)(
        sim,
        lambda batch: engine.bound_kernel(rollout_vjp_kernel, _inputs(sim, batch, wrench, own), True, None, **flags),
        (given + const_places(sim, own), found + [const_bar_place(sim)] * with_params),
        "length",
        fixed(sim, own, every=int(every)),
        check,
    )


@kept_by_simulator
def _linearize(sim: Simulator, own: Sets) -> NativeCall:
    """(q, v [, act], u [, status] [, const]) -> (A, B [, status])"""
    m, engine = sim.model, sim.engine
    n = 2 * m.nv + m.na
    given = [Place(k, lambda T, n=n: (n,), k, finite=True) for k, n in (*_sizes(sim), ("u", m.nu))]  # type: ignore[misc]
    found = [Place("A", lambda T: (n, n), "A"), Place("B", lambda T: (n, m.nu), "B")]
    if engine.constrained:
        given.append(Place("no_status", lambda T: (2,), copy_to="status"))
        found.append(Place("status", lambda T: (2,), "status", limits=(sim.checks.negligible, _told(sim))))

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == AFTER:
            engine.check_contact_buffer(rows["status"])
            sim.checks.warn_if_unsolved(rows["status"][:, 0])
            return
        _check_state(sim, rows)

    scratch = {"direction": n, "q_next": m.nq} | ({"act_next": m.na} if m.na else {})
    call = call_on(sim)(
        sim,
        lambda batch: engine.bound_kernel(jacobian_kernel, _inputs(sim, batch, False, own), True, scratch),
        (given + const_places(sim, own), found),
        None,
        fixed(sim, own),
        check,
    )
    call.check_quaternions()
    return call


def _sizes(sim: Simulator) -> list[tuple[str, int]]:
    """The parts of a state, and how many numbers each has."""
    m = sim.model
    return [("q", m.nq), ("v", m.nv), *([("act", m.na)] if m.na else [])]


def _inputs(sim: Simulator, batch: int, wrench: bool, own: Sets) -> Inputs:
    """Inputs of the kind that the kernel is for."""
    u = np.zeros((1, sim.model.nu), sim.real)
    return Inputs(batch, u, np.zeros((1, sim.model.nb, 6), sim.real) if wrench else None, any_params(sim, own))


# -- functions of a state --------------------------------------------------------------------------------------------------
def _query_inputs(sim: Simulator, name: str) -> list[Place]:
    sizes = (*_sizes(sim), ("x", max(1, QUERIES[name].x_size(sim.model))))
    return [Place(k, lambda size, n=n: (n,), k, finite=True) for k, n in sizes]  # type: ignore[misc]


def _check_state(sim: Simulator, rows: dict[str, np.ndarray]) -> None:
    sim.checks.state(State(*(rows[k] for k, _ in _sizes(sim))))
    for name in ("u", "x", "out_bar"):
        if name in rows:
            sim.checks.array(name, rows[name])


@kept_by_simulator
def _query(sim: Simulator, name: str, own: Sets) -> NativeCall:
    """(q, v, x [, const]) -> out"""

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            _check_state(sim, rows)

    call = call_on(sim)(
        sim,
        lambda batch: sim.engine.query_kernel(query_kernel, name, batch, any_params(sim, own)),
        (_query_inputs(sim, name) + const_places(sim, own), [Place("out", lambda size: (size,), "out")]),
        "size",
        fixed(sim, own),
        check,
    )
    call.check_quaternions()
    return call


@kept_by_simulator
def _query_vjp(sim: Simulator, name: str, own: Sets, with_params: bool) -> NativeCall:
    """(q, v, x, out_bar [, const]) -> (q_bar, v_bar, x_bar [, const_bar])"""
    sizes = (*_sizes(sim), ("x", QUERIES[name].x_size(sim.model)))
    given = [*_query_inputs(sim, name), Place("out_bar", lambda size: (size,), "out_bar")]
    found = [Place(f"{k}_bar", lambda size, n=n: (n,), f"{k}_bar", finite=True) for k, n in sizes]  # type: ignore[misc]

    def check(when: int, rows: dict[str, np.ndarray]) -> None:
        if when == BEFORE:
            _check_state(sim, rows)
        else:
            sim.checks.finite(list(rows.values()), len(rows["q_bar"]))

    call = call_on(sim)(
        sim,
        lambda batch: sim.engine.query_vjp_kernel(
            query_vjp_kernel, name, batch, any_params(sim, own), with_params=with_params
        ),
        (given + const_places(sim, own), found + [const_bar_place(sim)] * with_params),
        "size",
        fixed(sim, own),
        check,
    )
    call.check_quaternions()
    return call


def _kernel(call: Call) -> str:
    """Name of the kernel of a function of a state."""
    assert call.function.query is not None
    return call.function.query


def _query_operands(call: Call, x: dict[str, Array]) -> tuple[Axes, list[Array]]:
    """Leading axes; q, v and what else a query reads, one zero if that is nothing."""
    extra, lead = call.function.argument, x["q"].shape[:-1]
    empty = extra is None or not x[extra].shape[-1]
    state = [x[k] for k, _ in _sizes(call.sim)]
    return lead, [*state, jnp.zeros((*lead, 1), x["q"].dtype) if empty or extra is None else x[extra]]


def _unpacked(call: Call, rows: Array) -> list[Array]:
    """Results of a function from those of its kernel; linear."""
    lead, sim = rows.shape[:-1], call.sim
    if call.name == "outputs":
        views = output_views(sim.model, rows.reshape(prod(lead), rows.shape[-1]))
        return [views[name].reshape(*lead, *shape) for name, shape in call.outputs.items()]
    if call.name == "mass_matrix":
        none = jnp.zeros((*lead, 1), rows.dtype)
        return [jnp.concatenate([rows, none], -1)[..., stored_entry_of(sim.engine)]]
    return [rows]


def _query_forward(call: Call, x: dict[str, Array]) -> list[Array]:
    name, (lead, operands), (own, const) = _kernel(call), _query_operands(call, x), _given_params(call, x)
    (rows,) = _query(call.sim, name, own)(lead, QUERIES[name].size(call.sim.model), *operands, *const)
    return _unpacked(call, rows)


def _query_backward(
    call: Call, known: dict[str, Array], bars: dict[str, Array], wanted: tuple[str, ...]
) -> dict[str, Array]:
    name, extra, (lead, operands) = _kernel(call), call.function.argument, _query_operands(call, known)
    (own, const), with_params = _given_params(call, known, wanted), "params" in wanted
    size, dtype = QUERIES[name].size(call.sim.model), operands[0].dtype
    given = [bars.get(k, jnp.zeros((*lead, *shape), dtype)) for k, shape in call.outputs.items()]
    empty, *given = varying_alike([jnp.zeros((*lead, size), dtype), *given])
    _, pack = jax.vjp(partial(_unpacked, call), empty)
    results = _query_vjp(call.sim, name, own, with_params)(lead, size, *operands, *pack(given), *const)
    names = [k for k, _ in _sizes(call.sim)]
    found = dict(zip(names, results, strict=False)) | ({} if extra is None else {extra: results[len(names)]})
    if with_params:
        found["params"] = native_params.params_bar(call.sim, known["params"], lead, own, results[-1])
    return found


# -- what JAX calls ------------------------------------------------------------------------------------------------------
def serves(call: Call, on_host: bool) -> bool:
    """Return True if there is a native call for this, on the platform of XLA."""
    known = (call.name in ("step", "rollout", "linearize") or call.function.query) and call.sim.backend == "native"
    return bool(known) and call.sim.checks.on_host == on_host and call.options is None and available(on_host)


def _sets(call: Call, x: dict[str, Array], wanted: tuple[str, ...]) -> Sets:
    """Return the kind of parameter sets of a call; gradients of sets with several axes are per robot."""
    return sets_of(x.get("params"), _lead(call, x), every="params" in wanted)


def _lead(call: Call, x: dict[str, Array]) -> Axes:
    """The leading axes of robots."""
    axes = {**call.kept_axes, **call.inputs}
    name = next(name for name in x if name != "params")
    return tuple(x[name].shape[: x[name].ndim - axes[name]])


def _given_params(call: Call, x: dict[str, Array], wanted: tuple[str, ...] = ()) -> tuple[Sets, list[Array]]:
    """Return the kind of parameter sets, and constants derived from them as an operand; none for those of the simulator."""
    own = _sets(call, x, wanted)
    return own, [] if own is None else [native_params.constants(call.sim, x["params"], _lead(call, x), own)]


@cache
def available(on_host: bool = True) -> bool:
    """Return True if this jaxlib accepts the handlers."""
    try:
        xla_handler.register() if on_host else gpu_handler.register()
    except UnknownInterfaceError:
        return False
    return True


def forward(call: Call, x: dict[str, Array], *, wanted: tuple[str, ...]) -> list[Array]:
    """The outputs of a function."""
    if call.function.query is not None:
        return _query_forward(call, x)
    lead, state = x["q"].shape[:-1], [x[k] for k, _ in _sizes(call.sim)]
    own, const = _given_params(call, x)
    status = [jnp.zeros((*lead, 2), x["q"].dtype)] if call.sim.engine.constrained else []
    if call.name == "linearize":
        return _linearize(call.sim, own)(lead, 1, *state, x["u"], *status, *const)[:2]
    one, u, wrench = call.name == "step", x["u"], x.get("wrench")
    if one:
        u, wrench = u[..., None, :], None if wrench is None else wrench[..., None, :, :]
    pushed = [] if wrench is None else [wrench]
    run = _rollout(call.sim, wrench is not None, own)
    found = run(lead, call.steps, *state, u, *pushed, *status, *const)[: len(state)]
    return [y[..., 1, :] for y in found] if one else list(found)


def backward(call: Call, known: dict[str, Array], bars: dict[str, Array], *, wanted: tuple[str, ...]) -> list[Array]:
    """The cotangents of its inputs."""
    if call.name == "linearize":
        no_vjp(call, {}, {}, False)
    if call.function.query is not None:
        of_inputs = _query_backward(call, known, bars, wanted)
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
    (own, const), with_params = _given_params(call, known, wanted), "params" in wanted
    run = _rollout_vjp(call.sim, wrench is not None, not one, own, with_params)
    results = run(lead, call.steps, *states, u, *pushed, *given, *health, *const)
    found, (u_bar, *rest) = dict(zip(names, results, strict=False)), results[len(names) :]
    found["u"] = u_bar[..., 0, :] if one else u_bar
    if wrench is not None:
        found["wrench"] = rest[0][..., 0, :, :] if one else rest[0]
    if with_params:
        found["params"] = native_params.params_bar(call.sim, known["params"], lead, own, results[-1])
    return [found[name] for name in wanted]
