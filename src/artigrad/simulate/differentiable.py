"""Functions of a simulator with their adjoints, described once: what PyTorch and JAX register.

A function reads named arrays, one row per robot, and gives a tuple of arrays. Its adjoint reads what is kept of both, and the
cotangents of what it gave; None there is zero. `forward` and `backward` are the two for arrays with any leading axes.

Not differentiated: of `contacts` all but the force in the world; the Jacobians of `linearize`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels.devices import all_finite, finite_rows
from ..model.params import Params
from ..model.state import State
from .arrays import Axes, in_rows, leading, params_bar, params_of
from .checkpoints import Checkpoints
from .cotangents import Cotangents, GradientOptions, LossBars
from .device_boundary import presented
from .engine import Inputs
from .results import Contacts, Outputs, StateGradient
from .simulator import Simulator

Rows = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A function of one simulator, and what of it is known before any array is: steps of a rollout, which states to keep,
    what keeps its gradients from growing at control steps, each of `hold` steps."""

    name: str
    sim: Simulator
    steps: int = 1
    checkpoints: Checkpoints | None = None
    options: GradientOptions | None = None
    hold: int = 1

    @property
    def function(self) -> Differentiable:
        return FUNCTIONS[self.name]

    def _there(self, name: str) -> bool:
        """Whether the model has what a name is of: not every one has activations."""
        return bool(self.sim.model.na) or not name.startswith("act")

    @cached_property
    def inputs(self) -> dict[str, int]:
        """Names of what it reads, and how many axes each has of its own."""
        return {name: axes for name, axes in self.function.inputs.items() if self._there(name)}

    @cached_property
    def outputs(self) -> dict[str, Axes]:
        """Names of what it gives, and the shape of each for one robot."""
        return {name: shape for name, shape in self.function.outputs(self).items() if self._there(name)}

    def kept(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[Any, ...]:
        """What the adjoint reads."""
        known = dict(zip(self.outputs, outputs, strict=True)) | dict(zip(self.inputs, inputs, strict=True))
        return tuple(known[name] for name in self.kept_axes)

    @cached_property
    def bar_axes(self) -> dict[str, int]:
        """How many axes each output has of its own, and its cotangent."""
        return {name: len(shape) for name, shape in self.outputs.items()}

    @cached_property
    def kept_axes(self) -> dict[str, int]:
        """The same of what the adjoint reads."""
        known = self.bar_axes | self.inputs
        return {name: known[name] for name in self.function.kept if self._there(name)}


CALLS = 256  # descriptions that are kept with a simulator: making one takes as long as a short step


def call_of(name: str, sim: Simulator, *about: Any) -> Call:
    """A call, and what follows from it, as it was described the last time."""
    known, key = sim.engine.calls, (name, *about)
    try:
        found = known.get(key)
    except TypeError:  # a policy of checkpoints that cannot be looked up
        return Call(name, sim, *about)
    if found is None:
        if len(known) >= CALLS:
            known.clear()
        found = known[key] = Call(name, sim, *about)
    return found


@dataclass(frozen=True)
class Differentiable:
    """inputs: names, and how many axes each has of its own; parameters are the last. outputs: shapes by name. kept: names of
    inputs and outputs that the adjoint reads. forward(call, inputs) and vjp(call, kept, bars, with_params) work on rows."""

    inputs: dict[str, int]
    outputs: Callable[[Call], dict[str, Axes]]
    kept: tuple[str, ...]
    forward: Callable[[Call, Rows], tuple[Any, ...]]
    vjp: Callable[[Call, Rows, Rows, bool], Rows]


def forward(call: Call, given: Sequence[Any]) -> tuple[Any, ...]:
    """The outputs of a function for its inputs, each with any leading axes; None for what is left out."""
    axes = call.inputs
    lead = leading(*zip(given, axes.values(), strict=True))
    rows = input_rows(given, axes, lead) | {"params": params_of(call.sim, given[-1], lead)}
    return tuple(x.reshape((*lead, *x.shape[1:])) for x in _forward(call.sim, call, rows))


def backward(call: Call, kept: Sequence[Any], bars: Sequence[Any], with_params: bool) -> tuple[Any, ...]:
    """The cotangents of the inputs, with all leading axes, for those of the outputs; of the parameters with their own."""
    axes = call.kept_axes
    lead = leading(*zip((*kept, *bars), (*axes.values(), *call.bar_axes.values()), strict=True))
    flat = dict(zip(axes, kept, strict=True))["params"]
    own = with_params and flat is not None and prod(lead[: flat.ndim - 1]) > 1
    rows = input_rows(kept, axes, lead) | {"params": params_of(call.sim, flat, lead, own)}
    bar_rows = input_rows(bars, call.bar_axes, lead)
    bad = _diverged(call, bar_rows)
    if bad is not None:
        bar_rows = {name: None if x is None else _filled(x, bad, 0.0) for name, x in bar_rows.items()}
    found = _backward(call.sim, call, rows, bar_rows, with_params)
    if bad is not None:
        found = _with_nan(call, found, bad)
    out = {name: x.reshape((*lead, *x.shape[1:])) for name, x in found.items() if x is not None and name != "params"}
    if found.get("params") is not None:
        out["params"] = params_bar(found["params"].flat, flat, lead)
    return tuple(out.get(name) for name in call.inputs)


def _diverged(call: Call, bars: Rows) -> Any:
    """Robots with a cotangent that is not finite, (batch,), None if there are none. Nobody waits for a GPU to find out."""
    given = [x for x in bars.values() if x is not None]
    if not given or not call.sim.checks.on_host:
        return None
    given = [np.asarray(x) for x in given]
    if all(map(all_finite, given)):
        return None
    return ~finite_rows([x.reshape(len(x), -1) for x in given], len(given[0]))


def _filled(x: Any, robots: Any, value: float) -> Any:
    """A copy with this value in the rows of some robots."""
    out = np.array(x)
    out[robots] = value
    return out


def _with_nan(call: Call, found: Rows, bad: Any) -> Rows:
    """Cotangents with NaN for the robots whose own were not finite; so is the sum over robots that share their parameters."""
    known = {name: np.asarray(x) for name, x in found.items() if x is not None and name != "params"}
    warned = not all(map(all_finite, known.values()))
    out: Rows = {**found, **{name: _filled(x, bad, np.nan) for name, x in known.items()}}
    params = found.get("params")
    if params is not None:
        flat = _filled(params.flat, bad, np.nan) if params.flat.ndim > 1 else np.full_like(params.flat, np.nan)
        out["params"] = Params.of(call.sim.model, flat)
    if not warned:
        call.sim.checks.finite([out[name] for name in known], len(bad))
    return out


def input_rows(arrays: Iterable[Any], axes: dict[str, int], lead: Axes) -> Rows:
    """Arrays by name, parameters apart."""
    named = zip(axes.items(), arrays, strict=True)
    return {name: None if x is None else in_rows(x, lead, own) for (name, own), x in named if name != "params"}


@presented
def _forward(sim: Simulator, call: Call, x: Rows) -> tuple[Any, ...]:
    return call.function.forward(call, x)


@presented
def _backward(sim: Simulator, call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    return call.function.vjp(call, x, bars, with_params)


# -- steps -------------------------------------------------------------------------------------------------------------
def _trajectory(call: Call, x: Rows, u: Any, wrench: Any) -> Any:
    """A rollout. It warns of what was not solved under the soft law, whose adjoint does not solve again."""
    return call.sim.rollout(_state(x), u, params=x["params"], wrench=wrench)


def _rollout(call: Call, x: Rows) -> tuple[Any, ...]:
    """(q, v)[t+1] = step((q, v)[t], u[t])"""
    return tuple(_trajectory(call, x, x["u"], x["wrench"]).kept[0])


def _rollout_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    states = State(*(here(call, x[name]) for name in ("q_all", "v_all", "act_all") if name in x))
    loss = LossBars(*(_bar(call, bars, name) for name in ("q_all", "v_all", "act_all")))
    return _through_steps(call, states, x["u"], x["wrench"], x["params"], loss, with_params)


def _step(call: Call, x: Rows) -> tuple[Any, ...]:
    """(q', v') = step(q, v, u)"""
    return tuple(_trajectory(call, x, *_one_step(x)).final)


def _step_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    loss = LossBars(*(_bar(call, bars, name) for name in ("q_next", "v_next", "act_next")))
    return _through_one_step(call, x, x["v_next"], loss, with_params)


def _last(call: Call, x: Rows) -> tuple[Any, ...]:
    """The last state alone; few others are kept while it runs, and none after."""
    return tuple(_checkpointed(call, x).final)


def _last_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    """The rollout once more, and back."""
    sim, traj = call.sim, _checkpointed(call, x)
    grad = sim.vjp(traj, bars["q_last"], bars["v_last"], act_bar=bars.get("act_last"), with_params=with_params)
    found = {"q": grad.q0, "v": grad.v0, "act": grad.act0, "u": grad.u, "wrench": grad.wrench, "params": grad.params}
    return {name: bar for name, bar in found.items() if name in call.inputs}


def _checkpointed(call: Call, x: Rows) -> Any:
    given = {"params": x["params"], "wrench": x["wrench"], "checkpoints": call.checkpoints}
    return call.sim.rollout(_state(x), x["u"], **given)


def _contacts(call: Call, x: Rows) -> tuple[Any, ...]:
    """Forces, places, gaps and normals in the step that begins at a state."""
    return tuple(part[:, 0] for part in call.sim.contacts(_trajectory(call, x, *_one_step(x))))


def _contacts_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    for name in Contacts._fields[1:]:
        if bars[name] is not None and (not call.sim.checks.on_host or bars[name].any()):
            raise InputError(f"the {name} of contacts has no gradient: build the loss on their force, or on outputs")
    force_bar = _bar(call, bars, "force")
    after = call.sim.step(_state(x), x["u"], params=x["params"], wrench=x["wrench"])
    loss = LossBars(force=None if force_bar is None else force_bar[:, None])
    return _through_one_step(call, x, after.v, loss, with_params)


def _through_one_step(call: Call, x: Rows, v_next: Any, loss: LossBars, with_params: bool) -> Rows:
    """The adjoint of a single step, of whose next state the velocities are known."""
    device, (batch, nv) = call.sim.engine.device, x["v"].shape
    speeds = device.empty((batch, 2, nv))
    speeds[:, 0], speeds[:, 1] = here(call, x["v"]), here(call, v_next)
    states = State(here(call, x["q"])[:, None], speeds, here(call, x["act"])[:, None] if "act" in x else None)
    found = _through_steps(call, states, *_one_step(x), x["params"], loss, with_params)
    return found | {k: None if found[k] is None else found[k][:, 0] for k in ("u", "wrench")}


def _through_steps(
    call: Call, states: State, u: Any, wrench: Any, params: Params, loss: LossBars, with_params: bool
) -> Rows:
    """The adjoint of the steps with these states; of the last one only v is read. Inputs were checked on the forward pass.
    Where a gradient is not to be trusted the host warns; nobody waits for a GPU to do so."""
    sim, (batch, steps) = call.sim, u.shape[:2]
    inputs = Inputs(batch, here(call, u), None if wrench is None else here(call, wrench), params)
    back = Cotangents(sim.engine, inputs, loss, with_params, options=call.options, hold=call.hold)
    back.segment(states, 0, steps)
    found = back.params_gradient()
    if sim.checks.on_host:
        sim.checks.warn_if_unsolved(back.health[:, 0])
        pieces = [*back.state_bar, back.u_bar]
        sim.checks.finite(pieces if found is None else [*pieces, found.flat], batch)
    return {**back.state_bar.named(), "u": back.u_bar, "wrench": back.wrench_bar, "params": found}


def _linearize(call: Call, x: Rows) -> tuple[Any, ...]:
    return call.sim.linearize(_state(x), x["u"], params=x["params"])


def no_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    raise InputError(
        "the Jacobians of linearize have no gradient, which would be a second derivative: take differences of them"
    )


# -- functions of a state ----------------------------------------------------------------------------------------------
def _outputs(call: Call, x: Rows) -> tuple[Any, ...]:
    return tuple(call.sim.outputs(_state(x), params=x["params"]))


def _outputs_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    return _bars_of(x, call.sim.outputs_vjp(_state(x), Outputs(**bars), params=x["params"], with_params=with_params))


def _mass_matrix(call: Call, x: Rows) -> tuple[Any, ...]:
    return (call.sim.mass_matrix(_state(x), params=x["params"]),)


def _mass_matrix_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    given = {"params": x["params"], "with_params": with_params}
    return _bars_of(x, call.sim.mass_matrix_vjp(_state(x), bars["M"], **given))


def _inverse_dynamics(call: Call, x: Rows) -> tuple[Any, ...]:
    return (call.sim.inverse_dynamics(_state(x), x["a"], params=x["params"]),)


def _inverse_dynamics_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    given = {"params": x["params"], "with_params": with_params}
    return _bars_of(x, call.sim.inverse_dynamics_vjp(_state(x), x["a"], bars["force"], **given))


def _forward_dynamics(call: Call, x: Rows) -> tuple[Any, ...]:
    return (call.sim.acceleration(_state(x), x["u"], params=x["params"]),)


def _forward_dynamics_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    given = {"params": x["params"], "with_params": with_params}
    return _bars_of(x, call.sim.acceleration_vjp(_state(x), x["u"], bars["a"], **given))


def _sensors(call: Call, x: Rows) -> tuple[Any, ...]:
    readings = call.sim.sensors(_state(x), x["u"], params=x["params"])
    return tuple(y.astype(call.sim.real, copy=False) if call.sim.checks.on_host else y for y in readings.values())


def _sensors_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    given = {name: bar for name, bar in bars.items() if bar is not None}
    return _bars_of(x, call.sim.sensors_vjp(_state(x), given, x["u"], params=x["params"]))


def _bars_of(x: Rows, grad: StateGradient) -> Rows:
    """Cotangents by name; that of an array without entries is one."""
    empty = {name: x[name] for name in ("u", "a") if name in x and not prod(x[name].shape)}
    return empty | {name: bar for name, bar in grad._asdict().items() if bar is not None and name in x}


# -- functions of parameters -------------------------------------------------------------------------------------------
def _weights(call: Call, x: Rows) -> tuple[Any, ...]:
    made, rows = x["params"].reweighted(), len(x["q"])
    found = (np.broadcast_to(made[name], (rows, *shape)) for name, shape in call.outputs.items())
    return tuple(here(call, np.array(y, call.sim.real)) for y in found)


def _weights_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    p, shared = x["params"], x["params"].batch is None
    zero = Params(p.model, np.zeros_like(p.flat))
    given = {name: np.asarray(bar, float) for name, bar in bars.items() if bar is not None}
    given = {name: bar.sum(0) if shared else bar for name, bar in given.items()}
    return {"params": p.reweighted_vjp(zero.replace(unchecked=True, **given))} if with_params else {}


# -- shapes ------------------------------------------------------------------------------------------------------------
def _all_states(call: Call) -> dict[str, Axes]:
    m, rows = call.sim.model, call.steps + 1
    return {"q_all": (rows, m.nq), "v_all": (rows, m.nv), "act_all": (rows, m.na)}


def _contact_shapes(call: Call) -> dict[str, Axes]:
    points = len(call.sim.contact_names)
    return dict.fromkeys(Contacts._fields, (points, 3)) | {"gap": (points,)}


def _output_shapes(call: Call) -> dict[str, Axes]:
    m = call.sim.model
    of_frame = {"position": (3,), "rotation": (3, 3), "velocity": (3,), "angular_velocity": (3,)}
    shapes = {f"{what}_{name}": (n, *s) for what, n in (("body", m.nb), ("site", m.ns)) for name, s in of_frame.items()}
    return shapes | {"com": (3,), "kinetic_energy": (), "potential_energy": ()}


def _sensor_shapes(call: Call) -> dict[str, Axes]:
    return {name: y.shape for name, y in call.sim.sensors(call.sim.state()).items()}


def _jacobian_shapes(call: Call) -> dict[str, Axes]:
    n = 2 * call.sim.model.nv + call.sim.model.na
    return {"A": (n, n), "B": (n, call.sim.model.nu)}


def _weight_shapes(call: Call) -> dict[str, Axes]:
    m = call.sim.model
    return {"body_weight": (m.nb, 2), "dof_weight": (m.nv,), "tendon_weight": (len(m.tendons),)}


def _next_state(call: Call) -> dict[str, Axes]:
    m = call.sim.model
    return {"q_next": (m.nq,), "v_next": (m.nv,), "act_next": (m.na,)}


def _last_state(call: Call) -> dict[str, Axes]:
    m = call.sim.model
    return {"q_last": (m.nq,), "v_last": (m.nv,), "act_last": (m.na,)}


_STATE = {"q": 1, "v": 1, "act": 1}
_ONE_STEP = _STATE | {"u": 1, "wrench": 2, "params": 1}
_STEPS = _STATE | {"u": 2, "wrench": 3, "params": 1}
_CONTROLLED = _STATE | {"u": 1, "params": 1}

FUNCTIONS = {
    "step": Differentiable(_ONE_STEP, _next_state, (*_ONE_STEP, "v_next"), _step, _step_vjp),
    "rollout": Differentiable(
        _STEPS, _all_states, ("q_all", "v_all", "act_all", "u", "wrench", "params"), _rollout, _rollout_vjp
    ),
    "last": Differentiable(_STEPS, _last_state, tuple(_STEPS), _last, _last_vjp),
    "contacts": Differentiable(_ONE_STEP, _contact_shapes, tuple(_ONE_STEP), _contacts, _contacts_vjp),
    "linearize": Differentiable(_CONTROLLED, _jacobian_shapes, tuple(_CONTROLLED), _linearize, no_vjp),
    "outputs": Differentiable(_STATE | {"params": 1}, _output_shapes, (*_STATE, "params"), _outputs, _outputs_vjp),
    "sensors": Differentiable(_CONTROLLED, _sensor_shapes, tuple(_CONTROLLED), _sensors, _sensors_vjp),
    "mass_matrix": Differentiable(
        _STATE | {"params": 1},
        lambda call: {"M": (call.sim.model.nv,) * 2},
        (*_STATE, "params"),
        _mass_matrix,
        _mass_matrix_vjp,
    ),
    "weights": Differentiable(_STATE | {"params": 1}, _weight_shapes, (*_STATE, "params"), _weights, _weights_vjp),
    "inverse_dynamics": Differentiable(
        _STATE | {"a": 1, "params": 1},
        lambda call: {"force": (call.sim.model.nv,)},
        (*_STATE, "a", "params"),
        _inverse_dynamics,
        _inverse_dynamics_vjp,
    ),
    "forward_dynamics": Differentiable(
        _CONTROLLED,
        lambda call: {"a": (call.sim.model.nv,)},
        tuple(_CONTROLLED),
        _forward_dynamics,
        _forward_dynamics_vjp,
    ),
}


# -- small helpers -------------------------------------------------------------------------------------------------------
def _state(x: Rows) -> State:
    return State(x["q"], x["v"], x.get("act"))


def _one_step(x: Rows) -> tuple[Any, Any]:
    """Controls and wrenches of a single step, with an axis for time."""
    return x["u"][:, None], None if x["wrench"] is None else x["wrench"][:, None]


def here(call: Call, x: Any) -> Any:
    """An array as the engine takes it."""
    return x if call.sim.checks.on_host else call.sim.checks.numbers("x", x)


def _bar(call: Call, bars: Rows, name: str) -> Any:
    """A cotangent, looked at."""
    return None if bars.get(name) is None else call.sim.checks.numbers(f"{name}_bar", bars[name])
