"""Records of the functions of steps: step, rollout, rollout with checkpoints, contacts, linearize.

Rows as in `function`. Not differentiated: all results of `contacts` but the force in world axes; the Jacobians of `linearize`.
"""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..model.state import State
from .checkpoints import CheckpointPlan, plan_of
from .cotangents import Cotangents, LossBars, vjp_tangent
from .engine import Inputs
from .function import CONTROL, PARAMS, STATE, Call, FunctionRecord, Rows, direction_of, state_of
from .results import Contacts

PARTS = State._fields


def _inputs(x: Rows) -> Inputs:
    return Inputs(len(x["u"]), x["u"], x.get("wrench"), x["params"])


def _timed(x: Rows) -> Rows:
    """Return inputs of a single step with a time axis of length 1."""
    return x | {name: None if x.get(name) is None else x[name][:, None] for name in ("u", "wrench")}


def _untimed(found: Rows) -> Rows:
    """Return cotangents of the inputs of a single step without the time axis."""
    return found | {name: None if found[name] is None else found[name][:, 0] for name in ("u", "wrench")}


def _loss(bars: Rows, suffix: str) -> LossBars:
    return LossBars(*(bars.get(name + suffix) for name in PARTS))


# -- all states ----------------------------------------------------------------------------------------------------------
def _run(call: Call, x: Rows) -> State:
    """Return states (B, T+1, n).

    Steps that were not solved under the soft law are reported here, because its adjoint does not solve them again.
    """
    sim, inputs = call.sim, _inputs(x)
    status = sim.engine.new_status(inputs.batch)
    states = sim.engine.states(inputs, state_of(x), (0, inputs.steps), 1, status)
    sim.checks.rollout(states.map(lambda y: y[:, -1]), True, status, states)
    return states


def _rollout(call: Call, x: Rows) -> tuple[Any, ...]:
    """(q, v)[t+1] = step((q, v)[t], u[t])"""
    return tuple(_run(call, x))


def _rollout_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    return _through_steps(call, state_of(x, "_all"), _inputs(x), _loss(bars, "_all"), with_params)


def _rollout_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    return tuple(call.sim.engine.rollout_jvp(_inputs(x), state_of(x, "_all"), direction_of(d)))


def _rollout_vjp_jvp(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    states = state_of(x, "_all")
    moved = State(*(_or_zeros(call, d[name], y) for name, y in states.named("_all").items()))
    losses = _loss(bars, "_all"), _loss(d_bars, "_all")
    return vjp_tangent(call.sim.engine, _inputs(x), (states, moved), losses, direction_of(d), with_params)[0].named()


def _through_steps(call: Call, states: State, inputs: Inputs, loss: LossBars, with_params: bool) -> Rows:
    """Return cotangents of the inputs of steps with the given states; of the last state only v is read.

    On the host a warning reports gradients that are not finite or of unsolved steps.
    """
    sim = call.sim
    back = Cotangents(sim.engine, inputs, loss, with_params, options=call.options, hold=call.hold)
    back.segment(states, 0, inputs.steps)
    return _reported(call, back, back.health[:, 0])


def _reported(call: Call, back: Cotangents, violation: Any) -> Rows:
    """Return cotangents of the inputs, and warn of those that are not finite or of unsolved steps."""
    found, checks = back.gradient(), call.sim.checks
    if checks.on_host:
        checks.warn_if_unsolved(violation)
        pieces = [*found.state, found.u]
        checks.finite(pieces if found.params is None else [*pieces, found.params.flat], back.inputs.batch)
    return found.named()


def _or_zeros(call: Call, d: Any, like: Any) -> Any:
    return call.sim.engine.device.zeros(like.shape) if d is None else d


# -- a single step -------------------------------------------------------------------------------------------------------
def _step(call: Call, x: Rows) -> tuple[Any, ...]:
    """(q', v') = step(q, v, u)"""
    return tuple(_run(call, _timed(x)).map(lambda y: y[:, 1]))


def _step_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    return _through_one_step(call, x, x["v_next"], _loss(bars, "_next"), with_params)


def _step_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    states = state_of(x).map(lambda y: y[:, None])
    found = call.sim.engine.rollout_jvp(_inputs(_timed(x)), states, direction_of(_timed(d)))
    return tuple(y[:, 1] for y in found)


def _step_vjp_jvp(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    losses = _loss(bars, "_next"), _loss(d_bars, "_next")
    return _tangent_through_one_step(call, x, d, (x["v_next"], d["v_next"]), losses, with_params)


def _around(call: Call, before: State, v_next: Any) -> State:
    """Return the states before and after a step, (B, 1, n), and v (B, 2, nv); v_next None is zero."""
    speeds = call.sim.engine.device.zeros((len(before.v), 2, before.v.shape[1]))
    for k, v in enumerate((before.v, v_next)):
        if v is not None:
            speeds[:, k] = v
    return State(**(before.map(lambda y: y[:, None]).named() | {"v": speeds}))


def _through_one_step(call: Call, x: Rows, v_next: Any, loss: LossBars, with_params: bool) -> Rows:
    """Return cotangents of the inputs of a single step."""
    states = _around(call, state_of(x), v_next)
    return _untimed(_through_steps(call, states, _inputs(_timed(x)), loss, with_params))


def _tangent_through_one_step(
    call: Call, x: Rows, d: Rows, v_next: tuple[Any, Any], losses: tuple[LossBars, LossBars], with_params: bool
) -> Rows:
    """Return tangents of the cotangents of a single step; v_next: velocities after it, and their tangents."""
    state = state_of(x)
    moved = State(*(_or_zeros(call, d[name], y) for name, y in state.named().items()))
    states = _around(call, state, v_next[0]), _around(call, moved, v_next[1])
    direction = direction_of(_timed(d))
    found, _ = vjp_tangent(call.sim.engine, _inputs(_timed(x)), states, losses, direction, with_params)
    return _untimed(found.named())


# -- the last state ------------------------------------------------------------------------------------------------------
def _checkpointed(call: Call, x: Rows) -> tuple[CheckpointPlan, dict[int, State], State, Any]:
    """Return the plan of a rollout, the states that it keeps, the last state and the status."""
    assert call.checkpoints is not None
    sim, inputs = call.sim, _inputs(x)
    plan = plan_of(call.checkpoints, inputs.steps, sum(y.nbytes for y in state_of(x)))
    status = sim.engine.new_status(inputs.batch)
    kept, final = sim.engine.rollout(inputs, state_of(x), plan, status)
    sim.checks.rollout(final, True, status, kept[0], plan.block)
    return plan, kept, final, status


def _last(call: Call, x: Rows) -> tuple[Any, ...]:
    """Return the last state; states that checkpoints keep are dropped."""
    return tuple(_checkpointed(call, x)[2])


def _last_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    """Run the rollout again and return cotangents of its inputs."""
    plan, kept, _, status = _checkpointed(call, x)
    stretch = plan.block if plan.keeps_all else 1
    back = Cotangents(call.sim.engine, _inputs(x), _loss(bars, "_last"), with_params, stretch=stretch)
    back.rollout(kept, plan)
    return _reported(call, back, status[:, 0])


def _last_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    """Return tangents of the last state."""
    found = call.sim.engine.rollout_jvp(_inputs(x), _run(call, x), direction_of(d))
    return tuple(y[:, -1] for y in found)


# -- contacts ------------------------------------------------------------------------------------------------------------
def _contacts(call: Call, x: Rows) -> tuple[Any, ...]:
    """Return forces, positions, distances and normals in the step that begins at a state."""
    x = _timed(x)
    states = _run(call, x)
    return tuple(part[:, 0] for part in Contacts.of_report(call.sim.engine.contacts(_inputs(x), states)))


def _contacts_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    for name in Contacts._fields[1:]:
        if bars[name] is not None and (not call.sim.checks.on_host or bars[name].any()):
            raise InputError(f"the {name} of contacts has no gradient: build the loss on their force, or on outputs")
    loss = LossBars(force=None if bars["force"] is None else bars["force"][:, None])
    return _through_one_step(call, x, _after(call, x), loss, with_params)


def _contacts_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    states = state_of(x).map(lambda y: y[:, None])
    rows = call.sim.engine.contacts(_inputs(_timed(x)), states, direction_of(_timed(d)))[:, 0]
    return tuple(Contacts.of_report(rows))


def _contacts_vjp_jvp(call: Call, x: Rows, bars: Rows, d: Rows, d_bars: Rows, with_params: bool) -> Rows:
    _, d_after, *_ = _step_jvp(call, x, d)
    losses = [LossBars(force=None if own["force"] is None else own["force"][:, None]) for own in (bars, d_bars)]
    after = _after(call, x), d_after
    return _tangent_through_one_step(call, x, d, after, (losses[0], losses[1]), with_params)


def _after(call: Call, x: Rows) -> Any:
    """Return velocities after a step."""
    return _run(call, _timed(x)).v[:, 1]


# -- Jacobians -----------------------------------------------------------------------------------------------------------
def _linearize(call: Call, x: Rows) -> tuple[Any, ...]:
    A, B, violation = call.sim.engine.jacobian(_inputs(_timed(x)), state_of(x))
    call.sim.checks.warn_if_unsolved(violation)
    return A, B


def no_vjp(call: Call, x: Rows, bars: Rows, with_params: bool) -> Rows:
    """Raise InputError: the Jacobians of `linearize` have no adjoint."""
    raise InputError(
        "the Jacobians of linearize have no gradient, which would be a second derivative: take differences of them"
    )


def _linearize_jvp(call: Call, x: Rows, d: Rows) -> tuple[Any, ...]:
    return call.sim.engine.jacobian(_inputs(_timed(x)), state_of(x), direction_of(_timed(d)))[:2]


# -- records -------------------------------------------------------------------------------------------------------------
ONE_STEP = STATE | CONTROL | {"wrench": ("nb", 6)} | PARAMS
STEPS = STATE | {"u": ("T", "nu"), "wrench": ("T", "nb", 6)} | PARAMS
CONTACT_SHAPES = dict.fromkeys(Contacts._fields, ("points", 3)) | {"gap": ("points",)}
NEXT, LAST = ({f"{name}_{what}": shape for name, shape in STATE.items()} for what in ("next", "last"))
ALL = {f"{name}_all": ("T+1", *shape) for name, shape in STATE.items()}

STEP = FunctionRecord("step", ONE_STEP, NEXT, (*ONE_STEP, "v_next"), _step, _step_vjp, _step_jvp, _step_vjp_jvp)
ROLLOUT = FunctionRecord(
    "rollout", STEPS, ALL, (*ALL, "u", "wrench", "params"), _rollout, _rollout_vjp, _rollout_jvp, _rollout_vjp_jvp
)
CHECKPOINTED_ROLLOUT = FunctionRecord("last", STEPS, LAST, tuple(STEPS), _last, _last_vjp, _last_jvp)
CONTACTS = FunctionRecord(
    "contacts", ONE_STEP, CONTACT_SHAPES, tuple(ONE_STEP), _contacts, _contacts_vjp, _contacts_jvp, _contacts_vjp_jvp
)
LINEARIZE = FunctionRecord(
    "linearize",
    STATE | CONTROL | PARAMS,
    {"A": ("n", "n"), "B": ("n", "nu")},
    (*STATE, "u", "params"),
    _linearize,
    no_vjp,
    _linearize_jvp,
)
