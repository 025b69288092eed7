"""Sensors: what a robot measures of itself, and the adjoint. Each kind is a reading right above its adjoint.

A reading is a function of what `outputs` gives (poses, velocities), so its adjoint ends in that of `outputs`. An
accelerometer gives the mean over the coming step, as a real one does over its sampling time; contact is in it, and its
adjoint goes through that step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.model import Model
from ..model.params import Params
from ..model.quaternions import of_matrix
from ..model.state import State
from .results import Outputs, StateGradient

if TYPE_CHECKING:
    from .simulator import Simulator


@dataclass(frozen=True)
class At:
    """Where sensors are read: arrays with a leading batch axis. The same type holds the cotangents of all of it."""

    model: Model
    params: dict[str, np.ndarray]  # mass, com, gravity
    q: np.ndarray
    v: np.ndarray
    now: Outputs
    later: Outputs | None  # after the coming step, if a sensor needs it
    dt: float

    def zeros(self) -> At:
        def like(out: Outputs) -> Outputs:
            return Outputs(**{k: np.zeros_like(x) for k, x in out._asdict().items()})

        params = {k: np.zeros((len(self.q), *x.shape[1:])) for k, x in self.params.items()}
        later = None if self.later is None else like(self.later)
        return At(self.model, params, np.zeros_like(self.q), np.zeros_like(self.v), like(self.now), later, self.dt)


class SensorKind(NamedTuple):
    """on: what it reads, a joint, site or body. read(at, i) -> (B, n); add(at, i, y_bar, bars) is its adjoint."""

    on: str
    read: Callable[[At, int], np.ndarray]
    add: Callable[[At, int, np.ndarray, At], None]


# -- joints --------------------------------------------------------------------------------------------------------------
def _entries(what: str, count: int) -> SensorKind:
    """Entries of q or v as they are."""

    def place(m: Model, i: int) -> slice:
        start = m.joint_q[i] if what == "q" else m.joint_v[i]
        return slice(start, start + count)

    def read(at: At, i: int) -> np.ndarray:
        return getattr(at, what)[:, place(at.model, i)]

    def add(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars, what)[:, place(at.model, i)] += y_bar

    return SensorKind("joint", read, add)


# -- frames --------------------------------------------------------------------------------------------------------------
def _world(field: str) -> SensorKind:
    """A vector of a site in world axes."""

    def add(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars.now, field)[:, i] += y_bar

    return SensorKind("site", lambda at, i: getattr(at.now, field)[:, i], add)


def _own(field: str) -> SensorKind:
    """y = R^T x: a vector of a site in its own axes."""

    def read(at: At, i: int) -> np.ndarray:
        return _turn_back(at.now.site_rotation[:, i], getattr(at.now, field)[:, i])

    def add(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
        R, x = at.now.site_rotation[:, i], getattr(at.now, field)[:, i]
        getattr(bars.now, field)[:, i] += _turn(R, y_bar)
        bars.now.site_rotation[:, i] += _outer(x, y_bar)

    return SensorKind("site", read, add)


def _axis(k: int) -> SensorKind:
    """An axis of a site in world axes: column k of R."""

    def add(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
        bars.now.site_rotation[:, i, :, k] += y_bar

    return SensorKind("site", lambda at, i: at.now.site_rotation[:, i, :, k], add)


def _quaternion(at: At, i: int) -> np.ndarray:
    """w x y z of R, w >= 0"""
    q = of_matrix(at.now.site_rotation[:, i])
    return np.where(q[:, :1] < 0, -q, q)


def _quaternion_vjp(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
    """R_bar = [g] R / 2 with g_k = y_bar . (0, e_k) (x) y / 2: a turn w of the world does dR = [w] R"""
    w, x, y, z = _quaternion(at, i).T
    rates = 0.5 * np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])  # (3, 4, B)
    g = np.einsum("kcb,bc->bk", rates, y_bar)
    bars.now.site_rotation[:, i] += 0.5 * _hat(g) @ at.now.site_rotation[:, i]


def _accelerometer(at: At, i: int) -> np.ndarray:
    """y = R^T ((v_later - v_now)/dt - g)"""
    return _turn_back(at.now.site_rotation[:, i], _proper(at, i))


def _accelerometer_vjp(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
    assert bars.later is not None
    a_bar = _turn(at.now.site_rotation[:, i], y_bar)
    bars.now.site_rotation[:, i] += _outer(_proper(at, i), y_bar)
    bars.later.site_velocity[:, i] += a_bar / at.dt
    bars.now.site_velocity[:, i] -= a_bar / at.dt
    bars.params["gravity"][:] -= a_bar


def _proper(at: At, i: int) -> np.ndarray:
    assert at.later is not None
    return (at.later.site_velocity[:, i] - at.now.site_velocity[:, i]) / at.dt - at.params["gravity"]


# -- subtrees ------------------------------------------------------------------------------------------------------------
def subtree(model: Model, i: int) -> list[int]:
    """Body i and all it carries; -1 is the world, which carries everything."""
    inside = {i}
    for k, p in enumerate(model.parent):
        if p in inside:
            inside.add(k)
    return [k for k in range(model.nb) if k in inside]


def _subtree_com(at: At, i: int) -> np.ndarray:
    """y = sum m (p + R c) / sum m"""
    b = subtree(at.model, i)
    m, c = at.params["mass"][:, b, None], at.params["com"][:, b]
    return (m * (at.now.body_position[:, b] + _turn(at.now.body_rotation[:, b], c))).sum(1) / m.sum(1)


def _subtree_com_vjp(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
    b = subtree(at.model, i)
    m, c, R = at.params["mass"][:, b, None], at.params["com"][:, b], at.now.body_rotation[:, b]
    y, share = _subtree_com(at, i), m / m.sum(1, keepdims=True) * y_bar[:, None]
    x = at.now.body_position[:, b] + _turn(R, c)
    bars.params["mass"][:, b] += ((x - y[:, None]) * y_bar[:, None]).sum(-1) / m.sum(1)
    bars.params["com"][:, b] += _turn_back(R, share)
    bars.now.body_position[:, b] += share
    bars.now.body_rotation[:, b] += _outer(share, c)


def _subtree_velocity(at: At, i: int) -> np.ndarray:
    """y = sum m (v + w x R c) / sum m"""
    b = subtree(at.model, i)
    m, r = at.params["mass"][:, b, None], _turn(at.now.body_rotation[:, b], at.params["com"][:, b])
    v = at.now.body_velocity[:, b] + np.cross(at.now.body_angular_velocity[:, b], r)
    return (m * v).sum(1) / m.sum(1)


def _subtree_velocity_vjp(at: At, i: int, y_bar: np.ndarray, bars: At) -> None:
    b = subtree(at.model, i)
    m, c, R = at.params["mass"][:, b, None], at.params["com"][:, b], at.now.body_rotation[:, b]
    w, r = at.now.body_angular_velocity[:, b], _turn(R, c)
    y, share = _subtree_velocity(at, i), m / m.sum(1, keepdims=True) * y_bar[:, None]
    v, r_bar = at.now.body_velocity[:, b] + np.cross(w, r), np.cross(share, w)
    bars.params["mass"][:, b] += ((v - y[:, None]) * y_bar[:, None]).sum(-1) / m.sum(1)
    bars.params["com"][:, b] += _turn_back(R, r_bar)
    bars.now.body_velocity[:, b] += share
    bars.now.body_angular_velocity[:, b] += np.cross(r, share)
    bars.now.body_rotation[:, b] += _outer(r_bar, c)


KINDS: dict[str, SensorKind] = {
    "jointpos": _entries("q", 1),
    "jointvel": _entries("v", 1),
    "ballquat": _entries("q", 4),
    "ballangvel": _entries("v", 3),
    "framepos": _world("site_position"),
    "framequat": SensorKind("site", _quaternion, _quaternion_vjp),
    "framexaxis": _axis(0),
    "frameyaxis": _axis(1),
    "framezaxis": _axis(2),
    "framelinvel": _world("site_velocity"),
    "frameangvel": _world("site_angular_velocity"),
    "velocimeter": _own("site_velocity"),
    "gyro": _own("site_angular_velocity"),
    "accelerometer": SensorKind("site", _accelerometer, _accelerometer_vjp),
    "subtreecom": SensorKind("body", _subtree_com, _subtree_com_vjp),
    "subtreelinvel": SensorKind("body", _subtree_velocity, _subtree_velocity_vjp),
}


# -- reading them ----------------------------------------------------------------------------------------------------------
ON_THE_HOST = "sensors are read on the CPU: make a Simulator(model) and pass it the state as arrays of the host"


def read(sim: Simulator, state: State, u: Any, params: Params | None) -> dict[str, np.ndarray]:
    """Readings by name, (n,) or (B, n)."""
    at, _, batched = _look(sim, state, u, params)
    rows = {s.name: KINDS[s.kind].read(at, s.on) for s in sim.model.sensors}
    return rows if batched else {name: row[0] for name, row in rows.items()}


def read_vjp(sim: Simulator, state: State, bars: dict[str, Any], u: Any, params: Params | None) -> StateGradient:
    """Cotangents of state, controls and params for those of readings, by name."""
    at, traj, batched = _look(sim, state, u, params)
    total = at.zeros()
    known = {s.name: s for s in sim.model.sensors}
    for name, bar in bars.items():
        if name not in known:
            raise InputError(f"'{sim.model.name}' has no sensor '{name}'; it has: {', '.join(known) or 'none'}")
        kind, on = KINDS[known[name].kind], known[name].on
        y = kind.read(at, on)
        bar = np.asarray(bar, float)
        if bar.shape != (y.shape if batched else y.shape[1:]):
            raise InputError(
                f"the cotangent of sensor '{name}' is {y.shape if batched else y.shape[1:]}, not {bar.shape}"
            )
        kind.add(at, on, bar.reshape(y.shape), total)
    here = State(at.q, at.v)
    grad = sim.outputs_vjp(here, total.now, params=params)
    q, v, flat = total.q + grad.q, total.v + grad.v, np.array(grad.params.flat)
    x = np.zeros((len(q), sim.model.nu))
    if traj is not None and total.later is not None:
        after = sim.outputs_vjp(traj.final, total.later, params=params)
        back = sim.vjp(traj, after.q, after.v)
        assert back.params is not None
        q, v, x = q + back.q0, v + back.v0, back.u[:, 0]
        flat = flat + after.params.flat + back.params.flat
    own = Params(sim.model, np.zeros((len(q), sim.model.param_size))).replace(**total.params)
    flat = flat + (own.flat if flat.ndim == 2 else own.flat.sum(0))
    gradient = Params(sim.model, flat)
    return StateGradient(q, v, gradient, x) if batched else StateGradient(q[0], v[0], gradient, x[0])


def _look(sim: Simulator, state: State, u: Any, params: Params | None) -> tuple[At, Any, bool]:
    """All that sensors read, the rollout of one step if one of them needs it, and whether there is a batch."""
    if sim.device != "cpu":
        raise InputError(ON_THE_HOST)
    q, v, batched = sim.checks.state(state)
    given = sim.checks.params(params, len(q))
    fields = {k: np.asarray(given[k]) for k in ("mass", "com", "gravity")}
    if given.batch is None:
        fields = {k: np.broadcast_to(x, (1, *x.shape)) for k, x in fields.items()}
    here = State(q, v)
    traj, later = None, None
    if any(s.kind == "accelerometer" for s in sim.model.sensors):
        u = np.zeros((*np.shape(state[0])[:-1], sim.model.nu)) if u is None else np.asarray(u)
        traj = sim.rollout(here, u[:, None] if batched else u[None, None], params=params)
        later = sim.outputs(traj.final, params=params)
    return At(sim.model, fields, q, v, sim.outputs(here, params=params), later, sim.options.dt), traj, batched


# -- small algebra -----------------------------------------------------------------------------------------------------------
def _turn(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", R, x)


def _turn_back(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ji,...j->...i", R, x)


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., :, None] * b[..., None, :]


def _hat(g: np.ndarray) -> np.ndarray:
    x, y, z = g.T
    o = np.zeros_like(x)
    return np.array([[o, -z, y], [z, o, -x], [-y, x, o]]).transpose(2, 0, 1)
