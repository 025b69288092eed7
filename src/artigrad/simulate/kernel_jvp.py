"""How rollouts, Jacobians, contacts and functions of a state change along a direction of their inputs, and how gradients do.

The kernels are those of the calls themselves, on values that come with their changes (`kernels.forward_mode`), so that there is
nothing here to differentiate by hand. What comes here was checked, and has a batch axis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..kernels.derived_constants import prepare_jvp, prepare_vjp_jvp
from ..kernels.forward_mode import (
    contacts_tangent_kernel,
    jacobian_tangent_kernel,
    query_tangent_kernel,
    query_vjp_tangent_kernel,
    rollout_tangent_kernel,
    rollout_vjp_tangent_kernel,
)
from ..kernels.queries import QUERIES
from ..model.params import Params
from ..model.state import State
from ..physics.constraints.report import REPORT
from ..physics.tables import constants_size
from .cotangents import Cotangents, LossBars, StepsGradient
from .engine import Engine, Inputs, QueryBars


class Direction(NamedTuple):
    """Changes of what goes in, with a batch axis: q (B, nq), v (B, nv), act (B, na), u (B, T, nu), wrench (B, T, nb, 6), x of a
    query; of flat parameters (n,), or (B, n) where every robot has its own. None does not change."""

    q: Any = None
    v: Any = None
    act: Any = None
    u: Any = None
    wrench: Any = None
    params: np.ndarray | None = None
    x: Any = None


def _or_zeros(engine: Engine, x: Any, shape: tuple[int, ...]) -> Any:
    return engine.device.zeros(shape) if x is None else x


def _d_constants(engine: Engine, params: Params, batch: int, d: Direction) -> dict[str, Any]:
    """Their changes, if they have any."""
    if d.params is None:
        return {}
    with engine.device.settled():
        made = prepare_jvp(params, d.params, engine.options, batch, engine.threads, engine.device)
    return {"d_const": made}


def _d_inputs(engine: Engine, inputs: Inputs, d: Direction, first: int, end: int) -> dict[str, Any]:
    """Of controls and wrenches in the steps first .. end."""
    m, steps = engine.model, inputs.steps
    u = _or_zeros(engine, d.u, (inputs.batch, steps, m.nu))
    found = {"d_u": u[:, first:end]}
    if inputs.wrench is not None:
        found["d_wrench"] = _or_zeros(engine, d.wrench, (inputs.batch, steps, m.nb, 6))[:, first:end]
    return found


def rollout_jvp(engine: Engine, inputs: Inputs, states: State, d: Direction) -> State:
    """The changes of all states of a rollout, (B, T+1, n)."""
    m, batch, T, device = engine.model, inputs.batch, inputs.steps, engine.device
    moved = State(*(device.zeros((batch, T + 1, n)) for n in (m.nq, m.nv, m.na)))
    for name, to in moved.named().items():
        if getattr(d, name) is not None:
            to[:, 0] = getattr(d, name)
    moving = d.params is not None
    kernel = engine.bound(rollout_tangent_kernel, inputs, False, with_params=moving, moving_params=moving)
    more = {"const": engine.constants(inputs.params, batch)} | _d_constants(engine, inputs.params, batch, d)

    def run(a: int, b: int) -> None:
        rows = {name: x[:, a:] for name, x in (states.named() | _changes(moved)).items()}
        given = engine.inputs_of(inputs, a, b) | _d_inputs(engine, inputs, d, a, b)
        kernel(batch, engine.threads, steps=b - a, **rows, **given, **more)

    engine.sliced("tangent", T, batch, run)
    return moved


def _changes(moved: State) -> dict[str, Any]:
    """By the names that kernels have for them."""
    return {f"d_{name}": x for name, x in moved.named().items()}


def rollout_vjp_jvp(
    engine: Engine,
    inputs: Inputs,
    states: tuple[State, State],
    bars: tuple[LossBars, LossBars],
    d: Direction,
    with_params: bool,
) -> tuple[StepsGradient, Any]:
    """How the cotangents of what went in change, for states, cotangents and inputs that do; and the least margin. states,
    bars: themselves, and their changes; q of the states may lack the last row."""
    batch, T = inputs.batch, inputs.steps
    rows, d_rows = states
    back, d_back = (Cotangents(engine, inputs, x, with_params) for x in _alike(engine, inputs, bars))
    moving = d.params is not None
    flags = back.flags(with_params)
    flags["with_params"] |= moving
    kernel = engine.bound(rollout_vjp_tangent_kernel, inputs, True, back.scratch, **flags, moving_params=moving)
    more = {"const": engine.constants(inputs.params, batch)} | _d_constants(engine, inputs.params, batch, d)
    if engine.constrained:
        more["health"] = back.health
    if flags["with_params"] and not with_params:
        shape = kernel.kernel.packed_shape(batch, constants_size(engine.model, bars=True))
        more |= {name: engine.device.packed_zeros(shape) for name in ("const_bar", "d_const_bar")}

    def run(a: int, b: int) -> None:  # counted from the end
        first, end = T - b, T - a
        own = rows.named() | _changes(d_rows)
        given = engine.inputs_of(inputs, first, end) | _d_inputs(engine, inputs, d, first, end)
        d_bars = {f"d_{name}": x for name, x in d_back.bars(first, end).items()}
        kernel(
            batch,
            engine.threads,
            every=back.every,
            length=b - a,
            **{name: x[:, first:] for name, x in own.items()},
            **given,
            **back.bars(first, end),
            **d_bars,
            **more,
        )

    engine.sliced("tangent backward", T, batch, run)
    params = None
    if with_params:
        setting = (engine.options, batch, engine.threads, engine.device)
        params = prepare_vjp_jvp(inputs.params, d.params, *setting, back.const_bar, d_back.const_bar)
    found = StepsGradient(d_back.state_bar, d_back.u_bar, d_back.wrench_bar, params)
    return found, back.health[:, 1]


def _alike(engine: Engine, inputs: Inputs, bars: tuple[LossBars, LossBars]) -> list[LossBars]:
    """Cotangents and their changes, both of all states or both of the last, and both of forces if one is."""
    m, batch, rows = engine.model, inputs.batch, inputs.steps + 1
    every = any(x is not None and x.ndim == 3 for own in bars for x in own[:3])
    force = next((x.shape for own in bars if (x := own.force) is not None), None)

    def spread(x: Any, n: int) -> Any:
        if x is None:
            return engine.device.zeros((batch, rows, n) if every else (batch, n))
        if not every or x.ndim == 3:
            return x
        whole = engine.device.zeros((batch, rows, n))
        whole[:, -1] = x
        return whole

    return [
        LossBars(
            spread(own.q, m.nq),
            spread(own.v, m.nv),
            spread(own.act, m.na),
            own.force if force is None or own.force is not None else engine.device.zeros(force),
        )
        for own in bars
    ]


def jacobian_jvp(engine: Engine, inputs: Inputs, state: State, d: Direction) -> tuple[Any, Any]:
    """The changes of A and B."""
    m, batch, moving = engine.model, inputs.batch, d.params is not None
    n = 2 * m.nv + m.na
    A, B, d_A, d_B = (engine.device.empty((batch, n, width)) for width in (n, m.nu, n, m.nu))
    scratch = {"direction": n, "q_next": m.nq} | ({"act_next": m.na} if m.na else {})
    kernel = engine.bound(jacobian_tangent_kernel, inputs, True, scratch, with_params=moving, moving_params=moving)
    kernel(
        batch,
        engine.threads,
        **_start(engine, state, d),
        **engine.inputs_of(inputs, 0, 1),
        **_d_inputs(engine, inputs, d, 0, 1),
        const=engine.constants(inputs.params, batch),
        **_d_constants(engine, inputs.params, batch, d),
        **({"status": engine.new_status(batch)} if engine.constrained else {}),
        A=A,
        B=B,
        d_A=d_A,
        d_B=d_B,
    )
    return d_A, d_B


def contacts_jvp(engine: Engine, inputs: Inputs, state: State, d: Direction) -> Any:
    """The changes of the report of the first step, (B, 1, points, 16)."""
    batch, moving, points = inputs.batch, d.params is not None, len(engine.contact_names)
    out, d_out = (engine.device.empty((batch, 1, points, REPORT.size)) for _ in range(2))
    scratch = {"row": points * REPORT.size}
    engine.bound(contacts_tangent_kernel, inputs, False, scratch, with_params=moving, moving_params=moving)(
        batch,
        engine.threads,
        steps=1,
        **_start(engine, state, d),
        **engine.inputs_of(inputs, 0, 1),
        **_d_inputs(engine, inputs, d, 0, 1),
        const=engine.constants(inputs.params, batch),
        **_d_constants(engine, inputs.params, batch, d),
        out=out,
        d_out=d_out,
    )
    return d_out


def _start(engine: Engine, state: State, d: Direction) -> dict[str, Any]:
    """A state and its changes."""
    named = state.named()
    return named | {f"d_{name}": _or_zeros(engine, getattr(d, name), x.shape) for name, x in named.items()}


def query_jvp(engine: Engine, name: str, state: State, x: Any, params: Params, d: Direction) -> Any:
    """The changes of a function of many states, (n, size)."""
    batch, moving = len(state.q), d.params is not None
    out, d_out = (engine.device.empty((batch, QUERIES[name].size(engine.model))) for _ in range(2))
    kernel = engine.query_kernel(query_tangent_kernel, name, batch, params, moving_params=moving)
    kernel(batch, engine.threads, **_query_arguments(engine, state, x, params, d), out=out, d_out=d_out)
    return d_out


def query_vjp_jvp(
    engine: Engine,
    name: str,
    state: State,
    x: Any,
    params: Params,
    bars: tuple[Any, Any],
    d: Direction,
    with_params: bool,
) -> QueryBars:
    """How its cotangents change; bars: those of what it gives, and their changes."""
    m, batch, device = engine.model, len(state.q), engine.device
    flags = {"with_params": True, "moving_params": d.params is not None}
    kernel = engine.query_vjp_kernel(query_vjp_tangent_kernel, name, batch, params, **flags)
    sizes = {"q": m.nq, "v": m.nv, "x": QUERIES[name].x_size(m)} | ({"act": m.na} if m.na else {})
    found = {f"{d_}{k}_bar": device.empty((batch, n)) for k, n in sizes.items() for d_ in ("", "d_")}
    shape = kernel.kernel.packed_shape(batch, constants_size(m, bars=True))
    const_bar, d_const_bar = device.packed_zeros(shape), device.packed_zeros(shape)
    kernel(
        batch,
        engine.threads,
        **_query_arguments(engine, state, x, params, d),
        out_bar=bars[0],
        d_out_bar=bars[1],
        const_bar=const_bar,
        d_const_bar=d_const_bar,
        **found,
    )
    moved = None
    if with_params:
        setting = (engine.options, batch, engine.threads, device)
        moved = prepare_vjp_jvp(params, d.params, *setting, const_bar, d_const_bar)
    state_bar = State(found["d_q_bar"], found["d_v_bar"], found.get("d_act_bar"))
    return QueryBars(state_bar, found["d_x_bar"], moved)


def _query_arguments(engine: Engine, state: State, x: Any, params: Params, d: Direction) -> dict[str, Any]:
    batch = len(state.q)
    x = engine.device.zeros((batch, 1)) if x is None else x
    const = {"const": engine.constants(params, batch)} | _d_constants(engine, params, batch, d)
    return _start(engine, state, d) | {"x": x, "d_x": _or_zeros(engine, d.x, x.shape)} | const
