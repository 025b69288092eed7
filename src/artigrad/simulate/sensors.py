"""Sensors: what a robot measures of itself, and the adjoint. Each kind is a reading right above its adjoint.

A reading is a function of what `outputs` gives (poses, velocities), of what `sensing` does (accelerations with all
constraints, contacts), and of what `driving` does (tendons, actuators), so its adjoint ends in theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..model.model import Sensor
from ..model.params import Params
from ..model.state import State
from ..physics.actuator_outputs import Driving
from ..physics.constraints.report import REPORT
from ..physics.constraints.soft.equality_rows import HELD_REPORT
from ..physics.constraints.soft.limit_forces import limit_count
from ..physics.frame_accelerations import FELT
from .results import StateGradient
from .sensor_bodies import BODIES
from .sensor_contacts import CONTACTS
from .sensor_distances import DISTANCES
from .sensor_forces import FORCES
from .sensor_frames import JOINTS_AND_FRAMES
from .sensor_kind import FIELDS, At, Felt, SensorKind
from .sensor_limits import LIMITS
from .sensor_lines import LINES
from .sensor_rays import RAYS
from .sensor_tendons import paths

if TYPE_CHECKING:
    from .results import Trajectory
    from .simulator import Simulator

KINDS: dict[str, SensorKind] = {**JOINTS_AND_FRAMES, **BODIES, **LINES, **LIMITS, **FORCES, **CONTACTS, **RAYS}
KINDS |= DISTANCES


def read(sim: Simulator, state: State, u: Any, params: Params | None, time: Any = 0.0) -> dict[str, Any]:
    """Readings by name, (n,) or (B, n). Those of a GPU are made on the host."""
    if not sim.checks.on_host:
        *parts, there = _to_host(sim, *state, u)
        found = read(sim._on_host, State(*parts), there, params, time)
        return {name: sim.engine.device.array(y) for name, y in found.items()}
    here, u, batched = _given(sim, state, u)
    at, _ = _look(sim, here, u, params, time)
    rows = {s.name: _cut(s, KINDS[s.kind].read(at, s)) for s in sim.model.sensors}
    return rows if batched else {name: row[0] for name, row in rows.items()}


def read_rollout(traj: Trajectory) -> dict[str, np.ndarray]:
    """Readings at the beginning of every step by name, (T, n) or (B, T, n)."""
    sim, B, T = traj.simulator, traj.batch, traj.steps
    felt = [s.name for s in sim.model.sensors if KINDS[s.kind].felt]
    if traj.wrench is not None and felt:
        raise InputError(f"sensor '{felt[0]}' does not know the wrenches of this rollout, which change what it reads")
    states = State(*(x[:, :-1].reshape(B * T, -1) for x in traj.every_state()))
    u = np.broadcast_to(traj.u, (B, T, sim.model.nu)).reshape(B * T, sim.model.nu)
    params = traj.params if traj.params.batch is None else Params(sim.model, np.repeat(traj.params.flat, T, 0))
    rows = read(sim, states, u, params, np.tile(np.arange(T) * sim.options.dt, B))
    lead = (B, T) if traj.batched else (T,)
    return {name: row.reshape(*lead, -1) for name, row in rows.items()}


def _to_host(sim: Simulator, *arrays: Any) -> list[Any]:
    """Arrays of a GPU, or given to it, on the host."""
    device, numbers = sim.engine.device, sim.checks.numbers
    return [None if x is None else x if np.size(x) == 0 else device.host(numbers("x", x)) for x in arrays]


def _cut(s: Sensor, y: np.ndarray) -> np.ndarray:
    """A reading within its cutoff."""
    cut = KINDS[s.kind].cut if s.cutoff > 0 else ""
    return np.clip(y, -s.cutoff, s.cutoff) if cut == "both" else np.minimum(y, s.cutoff) if cut else y


def read_vjp(sim: Simulator, state: State, bars: dict[str, Any], u: Any, params: Params | None) -> StateGradient:
    """Cotangents of state, controls and params for those of readings, by name."""
    if not isinstance(bars, Mapping):
        raise InputError(f"bars has the cotangents of readings by name of the sensor, it is no {type(bars).__name__}")
    if not sim.checks.on_host:
        given = dict(zip(bars, _to_host(sim, *bars.values()), strict=True))
        *parts, there = _to_host(sim, *state, u)
        grad = read_vjp(sim._on_host, State(*parts), given, there, params)
        return StateGradient(*(sim.engine.device.array(x) if isinstance(x, np.ndarray) else x for x in grad))
    here, u, batched = _given(sim, state, u)
    at, traj = _look(sim, here, u, params)
    total = at.zeros()
    for name, bar in bars.items():
        s = sim.model.sensors[sim.model.sensor(name)]
        y = KINDS[s.kind].read(at, s)
        bar = sim.checks.host_numbers(f"the cotangent of sensor '{name}'", bar).astype(float)
        if bar.shape != (y.shape if batched else y.shape[1:]):
            raise InputError(
                f"the cotangent of sensor '{name}' is {y.shape if batched else y.shape[1:]}, not {bar.shape}"
            )
        KINDS[s.kind].add(at, s, np.where(_cut(s, y) == y, bar.reshape(y.shape), 0.0), total)
    own_params = sim.checks.params(params, len(here.q))
    grad = sim.outputs_vjp(here, total.now, params=params)
    state, x, flat = State(total.q + grad.q, total.v + grad.v, grad.act), np.zeros_like(u), np.array(grad.params.flat)
    packed: dict[str, np.ndarray] = {} if total.felt is None else {"sensing": _packed(at, total.felt)}
    packed |= {} if total.driving is None else {"driving": np.concatenate(total.driving, 1)}
    for name, bar in packed.items():
        found = sim.engine.query_vjp(name, here, u, own_params, np.ascontiguousarray(bar, sim.real))
        assert found.params is not None
        state = State(*(a + b for a, b in zip(state, found.state, strict=True)))
        x, flat = x + found.x.reshape(x.shape), flat + found.params.flat
    if traj is not None and total.later is not None:
        after = sim.outputs_vjp(traj.final, total.later, params=params)
        back = sim.vjp(traj, after.q, after.v)
        assert back.params is not None
        state = State(state.q + back.q0, state.v + back.v0, state.act + back.act0)
        x, flat = x + back.u[:, 0], flat + after.params.flat + back.params.flat
    own = Params(sim.model, np.zeros((len(x), sim.model.param_size))).replace(unchecked=True, **total.params)
    flat = flat + (own.flat if flat.ndim == 2 else own.flat.sum(0))
    state, x = (state, x) if batched else (state.map(lambda y: y[0]), x[0])
    return StateGradient(state.q, state.v, Params(sim.model, flat), x, act=state.act).of(sim.model)


def _look(sim: Simulator, here: State, u: np.ndarray, params: Params | None, time: Any = 0.0) -> tuple[At, Any]:
    """All that sensors read, and the rollout of one step if one of them needs it."""
    B, given = len(here.q), sim.checks.params(params, len(here.q))
    fields = {k: np.asarray(given[k]) for k in FIELDS}
    if given.batch is None:
        fields = {k: np.broadcast_to(x, (1, *x.shape)) for k, x in fields.items()}
    felt, drives, traj, later = None, None, None, None
    if any(KINDS[s.kind].felt for s in sim.model.sensors):
        if not (sim.engine.law.impulses and sim.model.has_contact):
            felt = _unpacked(sim, sim.engine.query("sensing", here, u, given))
        else:
            _refuse_under_impulses(sim)
            traj = sim.rollout(here, u[:, None], params=params)
            later = sim.outputs(traj.final, params=params)
    if any(KINDS[s.kind].drives or (KINDS[s.kind].presses and paths(sim.model)) for s in sim.model.sensors):
        ends = np.cumsum(Driving.sizes(sim.model))[:-1]
        drives = Driving(*np.split(sim.engine.query("driving", here, u, given), ends, axis=1))
    pairs = [(sim.model.shape(a), sim.model.shape(b)) for a, b in sim.contact_names] if felt else []
    clock = sim.checks.host_numbers("time", [time] if np.isscalar(time) else time)
    if clock.shape not in ((1,), (B,)):
        raise InputError(f"time is a number of seconds, or one for each of {B} states, not {clock.shape}")
    now, clock = sim.outputs(here, params=params), np.broadcast_to(clock, (B,))
    return At(
        sim.model, fields, here.q, here.v, now, felt, drives, later, sim.options.dt, tuple(pairs), clock, sim._stages
    ), traj


def _given(sim: Simulator, state: State, u: Any) -> tuple[State, np.ndarray, bool]:
    """State and controls (B, nu), looked at, and whether there is a batch."""
    here, batched = sim.checks.state(state)
    batch, nu = len(here.q), sim.model.nu
    if u is None:
        return here, np.zeros((batch, nu), sim.real), batched
    u = sim.checks.host_numbers("u", u)
    if u.shape not in ((nu,), (batch, nu) if batched else (nu,)):
        raise InputError(f"sensors take u ({nu},){f' or ({batch}, {nu})' if batched else ''}, not {u.shape}")
    return here, np.ascontiguousarray(np.broadcast_to(u, (batch, nu))), batched


def _refuse_under_impulses(sim: Simulator) -> None:
    for s in sim.model.sensors:
        if KINDS[s.kind].felt and s.kind != "accelerometer":
            raise InputError(f"sensor '{s.name}' ({s.kind}) reads forces of law='soft'; law='hard' has impulses")


def _unpacked(sim: Simulator, rows: np.ndarray) -> Felt:
    """What `sensing` gives."""
    m, B = sim.model, len(rows)
    at = m.nv + (m.nb + m.ns) * FELT.size
    end = at + limit_count(m)
    frames, limits = rows[:, m.nv : at].reshape(B, m.nb + m.ns, FELT.size), rows[:, at : end - len(m.tendons)]
    pulled = rows[:, end - len(m.tendons) : end]
    touch = end + len(m.equalities) * HELD_REPORT.size
    held = HELD_REPORT.views(rows[:, end:touch].reshape(B, len(m.equalities), HELD_REPORT.size))
    points = REPORT.views(rows[:, touch:].reshape(B, -1, REPORT.size))
    bodies, sites = FELT.views(frames[:, : m.nb]), FELT.views(frames[:, m.nb :])
    parts = {f"body_{name}": x for name, x in bodies.items()} | {f"site_{name}": x for name, x in sites.items()}
    parts |= {f"held_{name}": x for name, x in held.items()}
    return Felt(limit_force=limits, pulled=pulled, **parts, **points)


def _packed(at: At, bars: Felt) -> np.ndarray:
    """The cotangent of `sensing`."""
    B, points = len(at.q), np.zeros((*bars.force.shape[:2], REPORT.size))
    for name, x in REPORT.views(points).items():
        x[:] = getattr(bars, name)
    frames = [np.concatenate([bars.body_linear, bars.body_angular], -1)]
    frames += [np.concatenate([bars.site_linear, bars.site_angular], -1)]
    held = np.stack([getattr(bars, f"held_{name}") for name in HELD_REPORT.fields], 2)
    parts = [
        np.zeros((B, at.model.nv)),
        *(x.reshape(B, -1) for x in (*frames, bars.limit_force, bars.pulled, held, points)),
    ]
    return np.concatenate(parts, 1)
