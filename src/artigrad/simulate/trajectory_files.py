"""Trajectory files: .npz with all data, .csv with the states and controls of one batch element, one row per time.

A .npz file has the options, `hold` and the policy of its rollout. A simulator with other options refuses it, because
gradients would be those of another trajectory. For data that a file lacks (options in .csv files, the structure of the
model) each step is simulated again; a warning names the first one that differs.
"""

from __future__ import annotations

import csv
import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from ..errors import ContactError, InputError, is_whole, warn
from ..files import existing, replacing, write_arrays
from ..model.model import Model
from ..model.options import LawOptions, Options
from ..model.params import Params
from ..model.state import State
from ..physics.joints.table import JOINTS
from .checkpoints import EveryStep
from .engine import Inputs
from .policy_loop import Network
from .results import Trajectory

if TYPE_CHECKING:
    from .simulator import Simulator

ENDINGS = (".npz", ".csv")
REPEATS = {8: 1e-6, 4: 1e-3}  # deviation of a step simulated again, relative to 1 and the state, by bytes of a number


def columns(model: Model) -> list[str]:
    """Return column names: time, q and v of each joint, act and u of actuators; q.hip, or q.base.0, q.base.1, ...."""
    out = ["time"]
    for letter, size in (("q", "nq"), ("v", "nv")):
        for name, kind in zip(model.joints, model.joint_type, strict=True):
            n = getattr(JOINTS[kind], size)
            out += [f"{letter}.{name}"] if n == 1 else [f"{letter}.{name}.{k}" for k in range(n)]
    out += [f"act.{model.actuators[a.actuator]}" for a in model.activations]
    return out + [f"u.{name}" for name in model.actuators]


def write(traj: Trajectory, path: Path, robot: int) -> None:
    """Write a trajectory to a .npz or .csv file; robot: batch element of a .csv file."""
    host, model = traj.simulator.engine.device.host, traj.simulator.model
    states = traj.every_state().map(host)
    if path.suffix.lower() == ".npz":
        given: dict[str, Any] = {"u": host(traj.u), "params": traj.params.flat, "violation": host(traj.violation)}
        given |= {} if traj.wrench is None else {"wrench": host(traj.wrench)}
        given |= (states if traj.batched else states.map(lambda x: x[0])).named() | _of_policy(traj.policy)
        given |= {"options": json.dumps(traj.simulator.options.values()), "hold": traj.hold}
        given |= {"model": model.name, "columns": columns(model), "dt": traj.simulator.dt, "time": traj.time}
        write_arrays(path, given, compressed=True)
        return
    if not is_whole(robot, -traj.batch) or not robot < traj.batch:
        raise InputError(f"robot is one of {traj.batch}, not {robot!r}")
    u = host(traj.u if traj.u.ndim == 2 else traj.u[robot])
    with replacing(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as text:
        rows = csv.writer(text)
        rows.writerow(columns(model))
        for t, when in enumerate(traj.time):
            controls = u[t].tolist() if t < traj.steps else [""] * model.nu
            rows.writerow([float(when), *(x for part in states for x in part[robot, t].tolist()), *controls])


def _of_policy(policy: Network | None) -> dict[str, Any]:
    """Return the arrays of a policy; none without one."""
    if policy is None:
        return {}
    layers = {
        f"policy_{part}{i}": x for i, pair in enumerate(policy.layers) for part, x in zip("Wb", pair, strict=True)
    }
    return layers | {"activations": list(policy.activations)}


def read(sim: Simulator, path: Path) -> Trajectory:
    """Return the trajectory of a file that `write` wrote, for a simulator of the same model and options."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"trajectories are read from {' or '.join(ENDINGS)} files; not from '{path.name}'")
    existing(path)
    found = _read_npz(sim, path) if path.suffix.lower() == ".npz" else _read_csv(sim, path)
    if not np.isclose(found["dt"], sim.dt, rtol=1e-9):
        raise InputError(f"'{path.name}' has dt={found['dt']:g}, and this simulator dt={sim.dt:g}")
    _same_options(sim, path, found.get("options"))
    checks = sim.checks
    try:
        q, v = (checks.array(name, found[name]) for name in "qv")
        states, batched = State(q, v, checks.activations(found.get("act"), q.shape[:-1])), q.ndim == 3
        states = states if batched else states.map(lambda x: x[None])
        batch, steps = len(states.q), states.q.shape[1] - 1
        checks.state(states.map(lambda x: x[:, 0]))
        u = checks.controls(found["u"], None, batch, batched)
        if u.shape[-2] != steps or v.shape[:-1] != q.shape[:-1]:
            raise InputError(f"it has {steps + 1} states, which do not fit {u.shape[-2]} controls")
        wrench = checks.wrench(found.get("wrench"), steps, batch, batched)
        params = sim.params if found.get("params") is None else Params(sim.model, found["params"])
        checks.params(params, batch)
        violation = checks.array("violation", found.get("violation", np.zeros(batch)))
        hold, policy = int(found.get("hold", 1)), _policy(found)
        if hold < 1 or steps % hold:
            raise InputError(f"it has {steps} steps, which are not whole multiples of hold={hold}")
        if violation.shape != (batch,):
            raise InputError(f"it has violations of {len(violation)} robots, not of {batch}")
        if policy is not None:
            policy.check(sim.engine)
    except (InputError, IndexError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"'{path.name}' does not fit '{sim.model.name}': {error}") from None
    final = states.map(lambda x: x[:, -1] if batched else x[0, -1])
    mark = checks.fingerprint(u, wrench)
    about = (EveryStep(), {0: states}, batched, violation, mark, policy, hold)
    traj = Trajectory(sim, final, u, wrench, params, steps, *about)
    _warn_if_steps_differ(traj, path, np.asarray(found["q"]).dtype.itemsize)
    return traj


def _same_options(sim: Simulator, path: Path, recorded: Any) -> None:
    """Raise InputError for a file with other options; files of version 0.2 and .csv files have none."""
    if recorded is None:
        return
    try:
        its = Options.of_values(json.loads(str(recorded)))
    except (ValueError, TypeError, AttributeError, KeyError):
        raise InputError(f"'{path.name}' is not a saved trajectory, or a damaged one") from None
    if other := [f.name for f in fields(Options) if getattr(its, f.name) != getattr(sim.options, f.name)]:
        made, here = (
            ", ".join(f"{name}={_python_text(getattr(o, name))}" for name in other) for o in (its, sim.options)
        )
        raise InputError(
            f"'{path.name}' was made with {made}, and this simulator has {here}: read it with Simulator(model, {made})"
        )


def _python_text(option: Any) -> str:
    """Return the Python text of an option."""
    return f"ag.{option!r}" if isinstance(option, LawOptions) else repr(option)


def _policy(found: dict[str, Any]) -> Network | None:
    """Return the policy that was recorded."""
    if "activations" not in found:
        return None
    names = [str(name) for name in found["activations"]]
    layers = tuple((found[f"policy_W{i}"], found[f"policy_b{i}"]) for i in range(len(names)))
    return Network(layers, tuple(names))


def _warn_if_steps_differ(traj: Trajectory, path: Path, size: int) -> None:
    """Warn if a step from some state is not the next state: gradients would be those of another trajectory."""
    sim, states = traj.simulator, traj.every_state()
    if not sim.checks.on_host or sim.backend != "native":
        return
    engine, inputs = sim.engine, Inputs(traj.batch, traj.u, traj.wrench, traj.params)
    status, allowed = engine.new_status(traj.batch), REPEATS[min(size, sim.real.itemsize)]
    for t in range(traj.steps):
        try:
            now = State(*(np.ascontiguousarray(x[:, t]) for x in states))
            after = engine.advance(inputs, now, (t, t + 1), status)
            pairs = ((x, y[:, t + 1]) for x, y in zip(after, states, strict=True))
            off = max(float(np.max(np.abs(x - y) / (1.0 + np.abs(y)), initial=0.0)) for x, y in pairs)
        except ContactError:
            off = np.inf
        if not off <= allowed:
            warn(
                f"'{path.name}' differs from the steps of this simulator (step {t} by {off:.1e}), so that gradients "
                "are not those of its trajectory: make the Simulator of the same model, with the same options and parameters"
            )
            return


def _same_columns(sim: Simulator, path: Path, found: list[str]) -> None:
    wanted = columns(sim.model)
    if found != wanted:
        here = found if isinstance(found, list) else []
        other = next((name for name in here if name not in wanted), "another order of columns")
        raise InputError(f"'{path.name}' is not of '{sim.model.name}': it has {other}")


def _read_npz(sim: Simulator, path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            found = dict(file)
        _same_columns(sim, path, found["columns"].tolist())
        return found | {"dt": float(found["dt"])}
    except InputError:
        raise
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        EOFError,
        BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
    ):
        raise InputError(f"'{path.name}' is not a saved trajectory, or a damaged one") from None


def _read_csv(sim: Simulator, path: Path) -> dict[str, Any]:
    """Return the data of a .csv file; dt follows from the times."""
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
