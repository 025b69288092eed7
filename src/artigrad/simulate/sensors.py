"""Sensor readings of states and rollouts, and their adjoints: input validation, query of all sensors, readings by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..kernels.queries import sensors_x_size
from ..model.model import Model
from ..model.params import Params
from ..model.state import State
from ..physics.sensors.sensor_table import KINDS, sensor_features, sensor_sizes
from .cotangents import StepsGradient
from .engine import QueryBars
from .results import Outputs, StateGradient

if TYPE_CHECKING:
    from .results import Trajectory
    from .simulator import Simulator


class SensorQuery(NamedTuple):
    """Validated inputs of the query of sensors.

    Attributes:
      state: States (B, n).
      x: Controls, time and, under the hard law, velocities of sites after the step, (B, m).
      params: One set, or one per batch element.
      batched: True if the user's state has a batch axis.
      after: Rollout over the coming step, if sensors read velocities after it (hard law); else None.
    """

    state: State
    x: Any
    params: Params
    batched: bool
    after: Trajectory | None


def read(sim: Simulator, state: State, u: Any, params: Params | None, time: Any = 0.0) -> dict[str, Any]:
    """Return readings by name, (n,) or (B, n)."""
    query = sensor_query(sim, state, u, params, time)
    if not sim.model.sensors:
        return {}
    rows = by_name(sim.model, sim.engine.query("sensors", query.state, query.x, query.params))
    return rows if query.batched else {name: y[0] for name, y in rows.items()}


def by_name(model: Model, rows: Any) -> dict[str, Any]:
    """Return views of the readings of all sensors (..., n) by sensor name."""
    ends = np.cumsum([0, *sensor_sizes(model)]).tolist()
    return {s.name: rows[..., a:b] for s, a, b in zip(model.sensors, ends[:-1], ends[1:], strict=True)}


def read_rollout(traj: Trajectory) -> dict[str, Any]:
    """Return readings at the beginning of every step by name, (T, n) or (B, T, n)."""
    sim, B, T = traj.simulator, traj.batch, traj.steps
    state, u, params, time = rollout_inputs(traj)
    rows = read(sim, state, u, params, time)
    lead = (B, T) if traj.batched else (T,)
    return {name: row.reshape(*lead, row.shape[-1]) for name, row in rows.items()}


def rollout_inputs(traj: Trajectory) -> tuple[State, Any, Params, np.ndarray]:
    """Return states at the beginning of all steps (B T, n), their controls, parameters and times."""
    sim, B, T, device = traj.simulator, traj.batch, traj.steps, traj.simulator.engine.device
    under = [s.name for s in sim.model.sensors if KINDS[s.kind].acceleration_data]
    if traj.wrench is not None and under:
        raise InputError(
            f"sensor '{under[0]}' depends on the external wrenches of this rollout, which sensors do not support"
        )
    states = traj.every_state().map(lambda x: x[:, :-1].reshape(B * T, x.shape[-1]))
    u = traj.u if traj.u.ndim > 2 else device.broadcast(traj.u, B)
    params = traj.params if traj.params.batch is None else Params(sim.model, np.repeat(traj.params.flat, T, 0))
    return states, u.reshape(B * T, sim.model.nu), params, np.tile(np.arange(T) * sim.options.dt, B)


def read_vjp(sim: Simulator, state: State, bars: dict[str, Any], u: Any, params: Params | None) -> StateGradient:
    """Return cotangents of state, controls and params for those of readings, by name."""
    query = sensor_query(sim, state, u, params)
    lead = (len(query.x),) if query.batched else ()
    out_bar = packed_bars(sim, bars, lead).reshape(len(query.x), -1)
    found = sim.engine.query_vjp("sensors", query.state, query.x, query.params, out_bar)
    if query.after is not None:
        found = _through_step(sim, query, found)
    flat = found.params.flat if found.params is not None else None
    own, x = found.state, found.x[:, : sim.model.nu]
    own, x = (own, x) if query.batched else (own.map(lambda y: y[0]), x[0])
    return StateGradient(own.q, own.v, None if flat is None else Params(sim.model, flat), x, act=own.act).of(sim.model)


def rollout_vjp(traj: Trajectory, bars: Any, with_params: bool) -> StepsGradient:
    """Return cotangents of the states at the beginning of all steps (B, T, n), controls and params, for those of readings."""
    sim, B, T = traj.simulator, traj.batch, traj.steps
    lead = (B, T) if traj.batched else (T,)
    rows = by_name(sim.model, packed_bars(sim, bars, lead).reshape(B * T, -1))
    state, u, params, _ = rollout_inputs(traj)
    found = read_vjp(sim, state, {name: rows[name] for name in bars}, u, params)
    parts = State(found.q, found.v, found.act).map(lambda x: sim.checks.array("bar", x).reshape(B, T, x.shape[-1]))
    flat = None if found.params is None or not with_params else found.params.flat
    if flat is not None and flat.ndim > 1:
        flat = flat.reshape(B, T, -1).sum(1)
    own = None if flat is None else Params(sim.model, flat)
    return StepsGradient(parts, sim.checks.array("bar", found.u).reshape(B, T, sim.model.nu), None, own)


def added_bars(traj: Trajectory, found: State, given: Sequence[Any]) -> list[Any]:
    """Return the sum of the cotangents of all states (B, T+1, n) from readings and from a loss of all or the last states."""
    device, out = traj.simulator.engine.device, list[Any]()
    for own, bar in zip((found.q, found.v, found.act), given, strict=True):
        if own is None:
            out.append(bar)
            continue
        both = device.zeros((2, traj.batch, traj.steps + 1, own.shape[-1]))
        both[0, :, :-1] = own
        if bar is not None and len(bar.shape) == 3:
            both[1] = bar
        elif bar is not None:
            both[1, :, -1] = bar
        out.append(device.total(both))
    return out


def added_inputs(sim: Simulator, back: StepsGradient, read: StepsGradient) -> StepsGradient:
    """Return the gradient of a rollout plus the direct gradient of readings with respect to controls and parameters."""
    both = sim.engine.device.zeros((2, *read.u.shape))
    both[0], both[1] = back.u, read.u
    params = None if back.params is None else Params(sim.model, back.params.flat + read.params.flat)  # type: ignore[union-attr]
    return back._replace(u=sim.engine.device.total(both), params=params)


def packed_bars(sim: Simulator, bars: Any, lead: tuple[int, ...]) -> Any:
    """Return cotangents of readings by name as rows of all readings, (*lead, n); zeros for sensors that are not named."""
    if not isinstance(bars, Mapping):
        raise InputError(f"bars is a mapping of cotangents by name of the sensor, not {type(bars).__name__}")
    sizes = sensor_sizes(sim.model)
    ends = np.cumsum([0, *sizes]).tolist()
    out = sim.engine.device.zeros((*lead, ends[-1]))
    for name, bar in bars.items():
        k = sim.model.sensor(name)
        bar = sim.checks.array(f"the cotangent of sensor '{name}'", bar)
        if tuple(bar.shape) != (*lead, sizes[k]):
            raise InputError(f"the cotangent of sensor '{name}' is {(*lead, sizes[k])}, not {tuple(bar.shape)}")
        out[..., ends[k] : ends[k + 1]] = bar
    return out


def _through_step(sim: Simulator, query: SensorQuery, found: QueryBars) -> QueryBars:
    """Return the cotangents of the inputs, with those of velocities after the coming step propagated through it."""
    traj, device, m, B = query.after, sim.engine.device, sim.model, len(query.x)
    assert traj is not None and found.params is not None
    after_bar = found.x[:, m.nu + 1 :].reshape(B, m.ns, 3)
    after = sim.outputs_vjp(traj.final, Outputs(site_velocity=after_bar), params=query.params)
    every = {}
    for name, first in found.state.named().items():
        both = every[f"{name}_bar"] = device.zeros((B, 2, first.shape[-1]))
        both[:, 0] = first
        if getattr(after, name) is not None:
            both[:, 1] = sim.checks.array("bar", getattr(after, name))
    back = sim.vjp(traj, **every)
    assert back.params is not None and after.params is not None
    u = device.zeros((2, B, m.nu))
    u[0], u[1] = found.x[:, : m.nu], sim.checks.array("bar", back.u)[:, 0]
    parts = (getattr(back, f"{name}0") for name in found.state.named())
    flat = found.params.flat + after.params.flat + back.params.flat
    state = State(*(sim.checks.array("bar", x) for x in parts))
    return QueryBars(state, device.total(u), Params(m, flat))


def sensor_query(sim: Simulator, state: State, u: Any, params: Params | None, time: Any = 0.0) -> SensorQuery:
    """Return the validated inputs of the query of sensors."""
    here, batched = sim.checks.state(state)
    B, m, device, own = len(here.q), sim.model, sim.engine.device, sim.checks.params(params, len(here.q))
    x = device.zeros((B, sensors_x_size(m)))
    if u is not None:
        u = sim.checks.array("u", u)
        if tuple(u.shape) not in ((m.nu,), (B, m.nu) if batched else (m.nu,)):
            raise InputError(f"sensors take u ({m.nu},){f' or ({B}, {m.nu})' if batched else ''}, not {tuple(u.shape)}")
        x[:, : m.nu] = u if len(u.shape) == 2 else device.broadcast(u, B)
    _add_time(sim, x, time)
    return SensorQuery(here, x, own, batched, _after(sim, here, x, own))


def _add_time(sim: Simulator, x: Any, time: Any) -> None:
    """Write the time of each state into x."""
    if (isinstance(time, float) and time == 0.0) or not any(KINDS[s.kind].timed for s in sim.model.sensors):
        return
    clock = sim.checks.host_array("time", [time] if np.isscalar(time) else time)
    if clock.shape not in ((1,), (len(x),)):
        raise InputError(f"time is a number of seconds, or one for each of {len(x)} states, not {clock.shape}")
    nu = sim.model.nu
    x[:, nu : nu + 1] = np.broadcast_to(clock[:, None], (len(x), 1))


def _after(sim: Simulator, here: State, x: Any, params: Params) -> Trajectory | None:
    """Simulate the coming step if sensors read velocities after it, write them to x and return the rollout; else None."""
    m = sim.model
    if not sensor_features(m, sim.engine.law.impulses).after:
        return None
    for s in m.sensors:
        if KINDS[s.kind].acceleration_data and s.kind != "accelerometer":
            raise InputError(f"sensor '{s.name}' ({s.kind}) reads forces of law='soft'; law='hard' has impulses")
    B = len(here.q)
    traj = sim.rollout(here, x[:, : m.nu].reshape(B, 1, m.nu), params=params)
    velocity = sim.checks.array("velocity", sim.outputs(traj.final, params=params).site_velocity)
    x[:, m.nu + 1 :] = velocity.reshape(B, 3 * m.ns)
    return traj
