"""Comparison of a robot in both engines at random states: accelerations, forces, readings and one step."""

from __future__ import annotations

import warnings
from copy import copy
from typing import NamedTuple

import mujoco
import numpy as np

import artigrad as ag
from artigrad.formats.names import Names
from artigrad.model import tangent
from artigrad.simulate.gradcheck import random_state

BALL_OR_CAPSULE = (int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE))
APART = 1e-8  # m: contacts that differ by more are not the same
ROUNDED = 1e-9  # m: nearer to a margin, rounding decides


class Differences(NamedTuple):
    """Largest differences, relative to the largest value of their kind (at least 1).

    Attributes:
        free: Accelerations without constraints.
        all: Accelerations with constraints.
        forces: Forces of actuators.
        tendons: Lengths of tendons.
        sensors: Readings.
        step: q, v and act after a step of the file's integrator.
        same: Number of states with the same contacts in both; `all`, `sensors` and `step` are compared at these only.
    """

    free: float
    all: float
    forces: float
    tendons: float
    sensors: float
    step: float
    same: int


def tight(m: mujoco.MjModel) -> None:
    """Set MuJoCo to full precision: Newton, convex collision, and frames equal within 1e-6."""
    m.opt.tolerance, m.opt.iterations, m.opt.solver = 0.0, 100, mujoco.mjtSolver.mjSOL_NEWTON
    m.opt.ls_iterations, m.opt.ls_tolerance = 200, 1e-15
    m.opt.ccd_iterations, m.opt.ccd_tolerance = 200, 1e-12
    m.body_sameframe[:] = m.geom_sameframe[:] = m.site_sameframe[:] = 0


def compare(model: ag.Model, m: mujoco.MjModel, states: int, seed: int = 0) -> Differences:
    """Compare at random states with random controls and activations.

    If no state has the same contacts in both engines, repeat with poses a tenth as far from the keyframe.
    """
    found = _compare(model, m, states, seed, 1.0)
    return found if found.same else _compare(model, m, states, seed, 0.1)


def _compare(model: ag.Model, m: mujoco.MjModel, states: int, seed: int, far: float) -> Differences:
    tight(m)
    rng, d, names = np.random.default_rng(seed), mujoco.MjData(m), Names(m)
    state, u = random_state(model, rng, states), rng.normal(size=(states, model.nu))
    home = np.broadcast_to(model.keyframe().q, state.q.shape)
    state = state._replace(q=tangent.integrate(model, home, far * tangent.difference(model, home, state.q)))
    nearly = copy(m)
    nearly.geom_margin[:] += ROUNDED
    nearly.pair_margin[:] += ROUNDED
    adhesive = [int(a) for a in np.flatnonzero(m.actuator_trntype == mujoco.mjtTrn.mjTRN_BODY)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that are not differentiable, and of pairs without a routine
        sim = ag.Simulator(
            model, **({"law": ag.SoftOptions(iterations=100), "max_contacts": 4096} if model.has_contact else {})
        )
        free, traj = sim.forward_dynamics(state, u), sim.rollout(state, u[:, None])
        (here, _), given = sim.checks.state(state), sim.checks.params(None, states)
        rates, driven = (
            np.array(sim.engine.query(what, here, u, given)) for what in ("acceleration_data", "actuator_outputs")
        )
        readings = sim.sensors(state, u) if model.sensors else {}
    touching = _contacts(sim, traj)
    nt = len(model.tendons)
    found: dict[str, list[float]] = {name: [0.0] for name in Differences._fields[:-1]}
    same = 0
    for k in range(states):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = state.q[k], state.v[k], state.act[k], u[k]
        mujoco.mj_forward(m, d)
        if adhesive:  # adhesion acts along contacts
            d.ctrl[adhesive] = 0.0
            mujoco.mj_forward(m, d)
        found["free"].append(apart(free[k], d.qacc_smooth))
        if adhesive:
            d.ctrl[:] = u[k]
            mujoco.mj_forward(m, d)
        found["tendons"].append(apart(driven[k, :nt], d.ten_length))
        found["forces"].append(apart(driven[k, 2 * nt + 2 * model.nu : 2 * nt + 3 * model.nu], d.actuator_force))
        if not _agree(touching[k], _their_contacts(m, d, names)) or _just_touches(nearly, d):
            continue
        same += 1
        found["all"].append(apart(rates[k, : model.nv], d.qacc))
        for sensor in model.sensors:
            found["sensors"].append(_reading(m, d, names, sensor, readings[sensor.name][k]))
        mujoco.mj_step(m, d)
        if d.warning[mujoco.mjtWarning.mjWARN_BADQACC].number:
            continue  # MuJoCo gave the state up and went back to its first one
        after = traj.final
        pairs = ((after.q[k], d.qpos), (after.v[k], d.qvel), (after.act[k], d.act))
        found["step"] += [apart(x, y) for x, y in pairs]
    return Differences(**{name: max(x) for name, x in found.items()}, same=same)


def apart(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(x - y).max(initial=0.0) / max(1.0, np.abs(y).max(initial=0.0)))


def _reading(m: mujoco.MjModel, d: mujoco.MjData, names: Names, sensor: ag.model.model.Sensor, y: np.ndarray) -> float:
    i = names.sensor.index(sensor.name)
    wanted = d.sensordata[m.sensor_adr[i] : m.sensor_adr[i] + m.sensor_dim[i]]
    return apart(y, -wanted if sensor.kind == "framequat" and wanted @ y < 0 else wanted)


Contacts = dict[frozenset[str], np.ndarray]


ROUNDING: Contacts = {frozenset(("rounding", "decides")): np.zeros((1, 4))}  # whether it touches, or its normal


def _contacts(sim: ag.Simulator, traj: ag.Trajectory) -> list[Contacts]:
    """Return contacts of each state: distance and position, by names of the two shapes."""
    if not sim.model.shapes.pairs:
        return [{}] * traj.batch
    seen = sim.contacts(traj)
    out: list[Contacts] = []
    for gap, point in zip(seen.gap[:, 0], seen.point[:, 0], strict=True):
        rows: dict[frozenset[str], list[np.ndarray]] = {}
        for k in np.nonzero(gap < 1.0)[0]:
            rows.setdefault(frozenset(sim.contact_names[k]), []).append(np.array([gap[k], *point[k]]))
        out.append({pair: np.array(x) for pair, x in rows.items()})
    return out


def _just_touches(nearly: mujoco.MjModel, d: mujoco.MjData) -> bool:
    """Return True if two shapes are at their margin, where rounding decides whether they touch."""
    other = mujoco.MjData(nearly)
    other.qpos[:] = d.qpos
    mujoco.mj_fwdPosition(nearly, other)
    return any(abs(c.dist - c.includemargin + 2 * ROUNDED) < 2 * ROUNDED for c in other.contact)


def _their_contacts(m: mujoco.MjModel, d: mujoco.MjData, names: Names) -> Contacts:
    rows: dict[frozenset[str], list[np.ndarray]] = {}
    for c in d.contact:
        if c.efc_address >= 0:
            rows.setdefault(frozenset(names.geom[g] for g in c.geom), []).append(np.array([c.dist, *c.pos]))
        if _crossing(m, c):
            return ROUNDING
    return {pair: np.array(x) for pair, x in rows.items()}


def _crossing(m: mujoco.MjModel, contact: mujoco.MjContact) -> bool:
    """Return True if the axes of two round shapes intersect, where rounding decides the normal."""
    if not all(m.geom_type[g] in BALL_OR_CAPSULE for g in contact.geom):
        return False
    return bool(contact.dist + m.geom_size[contact.geom, 0].sum() < 1e-9)


def _agree(ours: Contacts, theirs: Contacts) -> bool:
    """Return True if each point has an equal one."""
    if ours.keys() != theirs.keys() or any(len(x) != len(theirs[pair]) for pair, x in ours.items()):
        return False
    return all(np.abs(x[:, None] - theirs[pair][None]).max(-1).min(1).max() < APART for pair, x in ours.items())
