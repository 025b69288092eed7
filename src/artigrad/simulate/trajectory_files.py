"""Trajectories as files: .npz with everything, .csv with the states and controls of one robot, a row per moment."""

from __future__ import annotations

import csv
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from ..errors import InputError
from ..joints.table import JOINTS
from ..model.model import Model
from ..model.params import Params
from ..model.state import State
from .checkpoints import EveryStep
from .results import Trajectory

if TYPE_CHECKING:
    from .simulator import Simulator

ENDINGS = (".npz", ".csv")


def columns(model: Model) -> list[str]:
    """time, then q and v of each joint, act and u of actuators: q.hip, or q.base.0, q.base.1, ... where there are several."""
    out = ["time"]
    for letter, size in (("q", "nq"), ("v", "nv")):
        for name, kind in zip(model.joints, model.joint_type, strict=True):
            n = getattr(JOINTS[kind], size)
            out += [f"{letter}.{name}"] if n == 1 else [f"{letter}.{name}.{k}" for k in range(n)]
    out += [f"act.{model.actuators[a.actuator]}" for a in model.activations]
    return out + [f"u.{name}" for name in model.actuators]


def write(traj: Trajectory, path: Path, robot: int) -> None:
    """To a .npz or .csv file; of a batch, a .csv file has one robot."""
    host, model = traj.simulator.engine.device.host, traj.simulator.model
    states = traj.every_state().map(host)
    if path.suffix.lower() == ".npz":
        given: dict[str, Any] = {"u": host(traj.u), "params": traj.params.flat, "violation": host(traj.violation)}
        given |= {} if traj.wrench is None else {"wrench": host(traj.wrench)}
        given |= (states if traj.batched else states.map(lambda x: x[0])).named()
        with path.open("wb") as file:
            np.savez_compressed(
                file, model=model.name, columns=columns(model), dt=traj.simulator.dt, time=traj.time, **given
            )
        return
    if not -traj.batch <= robot < traj.batch:
        raise InputError(f"robot is one of {traj.batch}, not {robot!r}")
    u = host(traj.u if traj.u.ndim == 2 else traj.u[robot])
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(columns(model))
        for t, when in enumerate(traj.time):
            controls = u[t].tolist() if t < traj.steps else [""] * model.nu
            rows.writerow([float(when), *(x for part in states for x in part[robot, t].tolist()), *controls])


def read(sim: Simulator, path: Path) -> Trajectory:
    """What `write` wrote, as a trajectory of a simulator of the same model."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"trajectories are read from {' or '.join(ENDINGS)} files; not from '{path.name}'")
    if not path.is_file():
        raise InputError(f"there is no file '{path}'")
    found = _read_npz(sim, path) if path.suffix.lower() == ".npz" else _read_csv(sim, path)
    if not np.isclose(found["dt"], sim.dt, rtol=1e-9):
        raise InputError(f"'{path.name}' has dt={found['dt']:g}, and this simulator dt={sim.dt:g}")
    checks = sim.checks
    q, v = (checks.numbers(name, found[name]) for name in "qv")
    states, batched = State(q, v, checks.activations(found.get("act"), q.shape[:-1])), q.ndim == 3
    states = states if batched else states.map(lambda x: x[None])
    batch, steps = len(states.q), states.q.shape[1] - 1
    checks.state(states.map(lambda x: x[:, 0]))
    u = checks.controls(found["u"], None, batch, batched)
    if u.shape[-2] != steps or v.shape[:-1] != q.shape[:-1]:
        raise InputError(f"'{path.name}' has {steps + 1} states, which do not fit {u.shape[-2]} controls")
    wrench = checks.wrench(found.get("wrench"), steps, batch, batched)
    params = sim.params if found.get("params") is None else Params(sim.model, found["params"])
    violation = checks.numbers("violation", found.get("violation", np.zeros(batch)))
    final = states.map(lambda x: x[:, -1] if batched else x[0, -1])
    mark = checks.fingerprint(u, wrench)
    return Trajectory(sim, final, u, wrench, params, steps, EveryStep(), {0: states}, batched, violation, mark)


def _same_columns(sim: Simulator, path: Path, found: list[str]) -> None:
    wanted = columns(sim.model)
    if found != wanted:
        other = next((name for name in found if name not in wanted), "another order of columns")
        raise InputError(f"'{path.name}' is not of '{sim.model.name}': it has {other}")


def _read_npz(sim: Simulator, path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            found = dict(file)
        _same_columns(sim, path, found["columns"].tolist())
    except InputError:
        raise
    except (OSError, KeyError, ValueError, EOFError, BadZipFile, zlib.error):
        raise InputError(f"'{path.name}' is not a saved trajectory, or a damaged one") from None
    return found | {"dt": float(found["dt"])}


def _read_csv(sim: Simulator, path: Path) -> dict[str, Any]:
    """Times tell dt; parameters are the simulator's own."""
    m = sim.model
    try:
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        _same_columns(sim, path, head)
        ends = np.cumsum([1, m.nq, m.nv, m.na])
        states = np.array([row[: ends[-1]] for row in rows], float)
        u = np.array([row[ends[-1] :] for row in rows[:-1]], float).reshape(len(rows) - 1, m.nu)
    except InputError:
        raise
    except (ValueError, csv.Error):
        raise InputError(f"'{path.name}' is not a saved trajectory, or a damaged one") from None
    dt = float(states[-1, 0] / max(len(rows) - 1, 1)) if len(rows) > 1 else sim.dt
    _, q, v, act, _ = np.split(states, ends, axis=1)
    return {"dt": dt, "q": q, "v": v, "act": act, "u": u}
