"""Forward mode of the functions that `differentiable` describes, and of their adjoints.

`forward_jvp`: how what a function gives changes with its inputs. `backward_jvp`: how the cotangents of its inputs change with
what the adjoint reads, which makes products with Hessians. A change that is None is zero. Arrays have any leading axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import InputError
from ..model.state import State
from .arrays import Axes, leading, params_bar, params_of, spread_params
from .cotangents import LossBars
from .device_boundary import presented
from .differentiable import Call, Rows, here, input_rows
from .engine import Inputs
from .kernel_jvp import Direction, contacts_jvp, jacobian_jvp, query_jvp, query_vjp_jvp, rollout_jvp, rollout_vjp_jvp
from .results import Contacts, Outputs
from .simulator import Simulator

Jvp = Callable[[Call, Rows, Rows], tuple[Any, ...]]
VjpJvp = Callable[[Call, Rows, Rows, Rows, Rows, bool], Rows]


def forward_jvp(call: Call, kept: Sequence[Any], d_inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The changes of the outputs, with all leading axes. kept: what the adjoint reads, which is enough."""
    known, moved = (
        dict(zip(call.kept_axes, kept, strict=True)),
        dict(zip(call.inputs, d_inputs, strict=True)),
    )
    axes = call.kept_axes | call.inputs
    lead = leading(*((x, axes[name]) for given in (known, moved) for name, x in given.items()))
    rows, d_rows = _with_params(call, known, moved, lead, False)
    found = _forward(call.sim, call, rows, d_rows)
    return tuple(x.reshape((*lead, *x.shape[1:])) for x in found)


def backward_jvp(
    call: Call,
    kept: Sequence[Any],
    bars: Sequence[Any],
    d_kept: Sequence[Any],
    d_bars: Sequence[Any],
    with_params: bool,
) -> tuple[Any, ...]:
    """The changes of the cotangents of the inputs, with all leading axes; of the parameters with their own."""
    check_second(call)
    known, moved = (dict(zip(call.kept_axes, x, strict=True)) for x in (kept, d_kept))
    named_bars, moved_bars = (dict(zip(call.outputs, x, strict=True)) for x in (bars, d_bars))
    named = [(x, call.kept_axes[name]) for given in (known, moved) for name, x in given.items()]
    named += [(x, call.bar_axes[name]) for given in (named_bars, moved_bars) for name, x in given.items()]
    lead = leading(*named)
    rows, d_rows = _with_params(call, known, moved, lead, with_params)
    both_bars = [input_rows(x.values(), call.bar_axes, lead) for x in (named_bars, moved_bars)]
    found = _backward(call.sim, call, rows, both_bars[0], d_rows, both_bars[1], with_params)
    out = {name: x.reshape((*lead, *x.shape[1:])) for name, x in found.items() if x is not None and name != "params"}
    if found.get("params") is not None:
        out["params"] = params_bar(found["params"].flat, known["params"], lead)
    return tuple(out.get(name) for name in call.inputs)


def check_second(call: Call) -> None:
    """Refuse to go forward over the adjoint of a function that has no such thing."""
    if call.options is not None:
        raise InputError("gradients with decay, clip or truncate are not those of the rollout, and have no Hessian")
    if call.name not in VJP_JVPS:
        name = "a rollout with checkpoints" if call.name == "last" else call.name
        raise InputError(f"{name} has first derivatives only: take differences of its gradient for second ones")


def _with_params(call: Call, x: Rows, d: Rows, lead: Axes, own: bool) -> tuple[Rows, Rows]:
    """Arrays and their changes as rows; parameters of both are one set, or one per robot. own: ask for the latter."""
    flat, d_flat = x["params"], d["params"]
    sets = [prod(lead[: y.ndim - 1]) if own else prod(y.shape[:-1]) for y in (flat, d_flat) if y is not None]
    several = any(n > 1 for n in sets)
    axes = call.kept_axes | call.inputs
    rows, moved = ({k: input_rows([y], {k: axes[k]}, lead)[k] for k, y in z.items() if k != "params"} for z in (x, d))
    rows["params"] = params_of(call.sim, flat, lead, several)
    moved["params"] = None if d_flat is None else spread_params(np.asarray(d_flat, float), lead, several)
    return rows, moved


@presented
def _forward(sim: Simulator, call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    return JVPS[call.name](call, x, d)


@presented
def _backward(sim: Simulator, call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    return VJP_JVPS[call.name](call, x, bars, d, d_bars, with_params)


def _given(call: Call, x: Any) -> Any:
    return None if x is None else here(call, x)


def _direction(call: Call, d: Rows) -> Direction:
    named = {k: _given(call, d.get(k)) for k in ("q", "v", "act", "u", "wrench")}
    return Direction(**named, params=d["params"])


def _inputs(call: Call, x: Rows) -> Inputs:
    return Inputs(len(x["u"]), here(call, x["u"]), _given(call, x.get("wrench")), x["params"])


# -- steps -------------------------------------------------------------------------------------------------------------
def _timed(x: Rows) -> Rows:
    """The inputs of a single step with an axis for time."""
    return x | {name: None if x[name] is None else x[name][:, None] for name in ("u", "wrench")}


def _rollout(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    states = _parts(call, x, "_all")
    return tuple(rollout_jvp(call.sim.engine, _inputs(call, x), states, _direction(call, d)))


def _step(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    states = _state(call, x).map(lambda y: y[:, None])
    found = rollout_jvp(call.sim.engine, _inputs(call, _timed(x)), states, _direction(call, _timed(d)))
    return tuple(y[:, 1] for y in found)


def _last(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    """With all states, which forward mode has no use for but to pass by."""
    start = State(x["q"], x["v"], x.get("act"))
    traj = call.sim.rollout(start, x["u"], params=x["params"], wrench=x["wrench"])
    found = rollout_jvp(call.sim.engine, _inputs(call, x), traj.every_state(), _direction(call, d))
    return tuple(y[:, -1] for y in found)


def _contacts(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    rows = contacts_jvp(call.sim.engine, _inputs(call, _timed(x)), _state(call, x), _direction(call, _timed(d)))[:, 0]
    parts = (rows[..., a:b] for a, b in ((7, 10), (10, 13), (13, 16)))
    return tuple(Contacts(rows[..., :3], rows[..., 3:6], rows[..., 6], *parts))


def _linearize(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    x, d = x | {"wrench": None}, d | {"wrench": None}
    return jacobian_jvp(call.sim.engine, _inputs(call, _timed(x)), _state(call, x), _direction(call, _timed(d)))


def _parts(call: Call, x: Rows, what: str = "") -> State:
    """The parts of a state, and what is behind their names."""
    return State(*(here(call, x[name + what]) for name in State._fields if name + what in x))


def _state(call: Call, x: Rows) -> State:
    return _parts(call, x)


def _loss(call: Call, bars: Rows, what: str) -> LossBars:
    return LossBars(*(_given(call, bars.get(name + what)) for name in State._fields))


def _rollout_back(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    engine, inputs = call.sim.engine, _inputs(call, x)
    states = _parts(call, x, "_all")
    moved = State(*(_moved(call, d[name], y) for name, y in states.named("_all").items()))
    both = [_loss(call, own, "_all") for own in (bars, d_bars)]
    found, _ = rollout_vjp_jvp(engine, inputs, (states, moved), (both[0], both[1]), _direction(call, d), with_params)
    return found.named()


def _moved(call: Call, d: Any, like: Any) -> Any:
    """A change, or zeros."""
    return call.sim.engine.device.zeros(like.shape) if d is None else here(call, d)


def _through_one_step(
    call: Call, x: Rows, d: Rows, v_next: tuple[Any, Any], bars: tuple[LossBars, LossBars], with_params: bool
) -> Rows:
    """v_next: velocities after the step, and their changes."""
    engine, state = call.sim.engine, _state(call, x)
    v = state.v
    shape = (len(v), 2, v.shape[1])
    rows = [engine.device.zeros(shape) for _ in range(2)]
    for to, now, after in zip(rows, (v, _given(call, d["v"])), v_next, strict=True):
        for k, y in enumerate((now, after)):
            if y is not None:
                to[:, k] = y
    others = {name: y for name, y in state.named().items() if name != "v"}
    states = (
        State(v=rows[0], **{name: y[:, None] for name, y in others.items()}),
        State(v=rows[1], **{name: _moved(call, d[name], y)[:, None] for name, y in others.items()}),
    )
    inputs, direction = _inputs(call, _timed(x)), _direction(call, _timed(d))
    found, _ = rollout_vjp_jvp(engine, inputs, states, bars, direction, with_params)
    return found.named() | {k: None if y is None else y[:, 0] for k, y in (("u", found.u), ("wrench", found.wrench))}


def _step_back(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    after = here(call, x["v_next"]), _given(call, d["v_next"])
    both = [_loss(call, own, "_next") for own in (bars, d_bars)]
    return _through_one_step(call, x, d, after, (both[0], both[1]), with_params)


def _contacts_back(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    after = call.sim.step(State(x["q"], x["v"], x.get("act")), x["u"], params=x["params"], wrench=x["wrench"])
    _, d_after, *_ = _step(call, x, d)
    both = [
        LossBars(force=None if own["force"] is None else here(call, own["force"])[:, None]) for own in (bars, d_bars)
    ]
    return _through_one_step(call, x, d, (here(call, after.v), d_after), (both[0], both[1]), with_params)


# -- functions of a state ----------------------------------------------------------------------------------------------
def _ask(name: str, x_name: str | None, unpacked: Callable[[Simulator, Any], tuple[Any, ...]]) -> Jvp:
    """A query. x_name: of what it reads beside the state. unpacked: rows as the function gives them."""

    def jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
        direction = _state_direction(call, d, x_name)
        rows = query_jvp(call.sim.engine, name, _state(call, x), _entries(call, x, x_name), x["params"], direction)
        return unpacked(call.sim, rows)

    return jvp


def _entries(call: Call, x: Rows, name: str | None) -> Any:
    """What a query reads beside the state, if anything; one number where there are none."""
    if name is None or x[name] is None:
        return None
    return here(call, x[name]) if x[name].shape[-1] else call.sim.engine.device.zeros((len(x[name]), 1))


def _state_direction(call: Call, d: Rows, x_name: str | None) -> Direction:
    named = {name: _given(call, d.get(name)) for name in State._fields}
    return Direction(**named, params=d["params"], x=_entries(call, d, x_name))


def _ask_back(name: str, x_name: str | None, packed: Callable[[Simulator, Rows, int], Any]) -> VjpJvp:
    """The adjoint of a query. packed: cotangents of what the function gives as rows."""

    def vjp_jvp(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
        sim, count = call.sim, len(x["q"])
        rows = [packed(sim, {k: _given(call, y) for k, y in own.items()}, count) for own in (bars, d_bars)]
        given = (_state(call, x), _entries(call, x, x_name), x["params"], (rows[0], rows[1]))
        found = query_vjp_jvp(sim.engine, name, *given, _state_direction(call, d, x_name), with_params)
        out = found.state.named() | {"params": found.params}
        return out | ({x_name: found.x if found.x.shape[-1] else x[x_name]} if x_name else {})

    return vjp_jvp


def _whole(name: str) -> Callable[[Simulator, Rows, int], Any]:
    """Cotangents of a function that gives one vector."""
    return lambda sim, bars, count: sim.engine.device.zeros((count, sim.model.nv)) if bars[name] is None else bars[name]


def _sensors(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    """By their adjoint, number by number: readings are few, and their adjoints are short. On the host."""
    sim, device, count = call.sim._on_host, call.sim.engine.device, len(x["q"])
    given = {k: device.host(here(call, x[k])) for k in (*State._fields, "u") if k in x}
    moved = {k: device.host(here(call, d[k])) for k in given if d[k] is not None and d[k].shape[-1]}
    found = []
    for name, shape in call.outputs.items():
        n = prod(shape)
        rows = {k: np.repeat(y, n, 0) for k, y in given.items()}
        state = State(*(rows[k] for k in State._fields if k in rows))
        bars = {name: np.tile(np.eye(n), (count, 1)).reshape(count * n, *shape)}
        # one set of parameters per row, so that each row has a gradient of its own
        own = _repeated(x["params"], n if x["params"].batch is not None else count * n)
        grad = sim.sensors_vjp(state, bars, rows["u"], params=own)
        pieces = [(getattr(grad, k), y) for k, y in moved.items()]
        if d["params"] is not None:
            assert grad.params is not None
            pieces.append((grad.params.flat, np.broadcast_to(d["params"], (count, sim.model.param_size))))
        total = sum((g * np.repeat(y, n, 0)).sum(1) for g, y in pieces)
        found.append(device.array(np.full(count * n, total, sim.real).reshape(count, *shape)))
    return tuple(found)


def _repeated(params: Any, n: int) -> Any:
    return type(params)(params.model, np.repeat(np.atleast_2d(params.flat), n, 0), checked=params.checked)


JVPS: dict[str, Jvp] = {
    "step": _step,
    "rollout": _rollout,
    "last": _last,
    "contacts": _contacts,
    "linearize": _linearize,
    "outputs": _ask("outputs", None, lambda sim, rows: tuple(Outputs(**sim._outputs_of(rows)))),
    "sensors": _sensors,
    "mass_matrix": _ask("mass_matrix", None, lambda sim, rows: (sim._matrix_of(rows),)),
    "inverse_dynamics": _ask("inverse_dynamics", "a", lambda sim, rows: (rows,)),
    "forward_dynamics": _ask("acceleration", "u", lambda sim, rows: (rows,)),
}
VJP_JVPS: dict[str, VjpJvp] = {
    "step": _step_back,
    "rollout": _rollout_back,
    "contacts": _contacts_back,
    "outputs": _ask_back("outputs", None, lambda sim, bars, count: sim._rows_of_outputs(bars, count)),
    "mass_matrix": _ask_back("mass_matrix", None, lambda sim, bars, count: sim._rows_of_matrix(bars["M"], count)),
    "inverse_dynamics": _ask_back("inverse_dynamics", "a", _whole("force")),
    "forward_dynamics": _ask_back("acceleration", "u", _whole("a")),
}
