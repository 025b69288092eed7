"""How fast contact is, beside MuJoCo: `python -m benchmarks.contact [--quick] [--out FOLDER]`.

The Laikago stands (the controls of its keyframe) and stumbles (the same, 0.1 rad of noise that changes every 50 steps).
The unit of comparison is, for each motion, MuJoCo's fastest solver that stays upright, on one robot. All rows are timed
in one run, in rounds, as in `benchmarks.engine`.

The gradient of a rollout keeps states alone and makes every step again on the backward pass. Where the step is at hand, as in
`Simulator.linearize`, its adjoint costs less: "a step and its adjoint" is a step plus one of the 36 rows of a Jacobian. Those
of one robot are taken at 100 of its steps in one call, one after the other (lanes=1).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import artigrad as ag

from . import peers, report
from .probe import measure, measure_start
from .report import Sheet, at_least, at_most
from .rows import BACKWARD, DT, FLOATS, FORWARD, FULL, GRADIENT, QUICK, Ours, Row, Rows, time_rows

STEPS, BATCH, BATCH_STEPS = 1000, 64, 100
NOISE = {"standing": 0.0, "stumbling": 0.1}  # rad, on the controls
HOLD = 50  # steps between changes of the controls
SOLVERS, CONES = ("Newton", "CG", "PGS"), ("pyramidal", "elliptic")
SWEEPS = (20, 50)
TOLERANCE = ag.Options().tolerance  # m/s
SCENE = 10  # robots in one scene
IN_SCENE = f", {SCENE} in one scene"
JACOBIAN, STEP_ADJOINT = "Jacobian of a step", "a step and its adjoint"
MATCHED = 8  # how many of the batch MuJoCo runs too, one after the other
NV = ag.robots.laikago().nv
HEIGHT, TILT = 0.35, 30.0  # m, degrees: a trunk that is never lower nor leans more is upright


# -- motions -----------------------------------------------------------------------------------------------------------
class Motion(NamedTuple):
    """One robot from its keyframe, and a batch whose robots start at different moments of motions like that."""

    name: str
    whole: ag.Trajectory  # BATCH robots over STEPS steps; the first is the one robot
    batch: ag.State
    batch_u: np.ndarray

    @property
    def start(self) -> ag.State:
        return ag.State(self.whole.q[0, 0], self.whole.v[0, 0])

    @property
    def u(self) -> np.ndarray:
        return self.whole.u[0]

    def moving(self) -> tuple[ag.State, np.ndarray]:
        """The one robot half way, and its controls there."""
        return ag.State(self.whole.q[0, STEPS // 2], self.whole.v[0, STEPS // 2]), self.u[STEPS // 2]

    def along(self) -> tuple[ag.State, np.ndarray]:
        """States of the one robot along its way, to be linearised one after the other in one call, and controls there."""
        some = slice(0, STEPS, STEPS // BATCH_STEPS)
        return ag.State(self.whole.q[0, some], self.whole.v[0, some]), self.u[some][:, None]

    @classmethod
    def make(cls, model: ag.Model, name: str) -> Motion:
        noise = np.random.default_rng(0).normal(size=(BATCH, STEPS // HOLD, model.nu))
        u = model.keyframe_control() + NOISE[name] * np.repeat(noise, HOLD, axis=1)
        sim = ag.Simulator(model, DT, threads=1)
        whole = sim.rollout(sim.reset(batch=BATCH), u)
        robots, first = np.arange(BATCH), np.linspace(0, STEPS - BATCH_STEPS, BATCH).astype(int)
        batch_u = np.stack([u[i, k : k + BATCH_STEPS] for i, k in zip(robots, first, strict=True)])
        return cls(name, whole, ag.State(whole.q[robots, first], whole.v[robots, first]), batch_u)


class InMuJoCo:
    """The robot in MuJoCo with one of its solvers."""

    def __init__(self, model: ag.Model, solver: str, cone: str):
        self.name = f"MuJoCo, {solver}, {cone}"
        self.m, self.d = peers.mujoco_robot(model, DT, solver=solver, cone=cone)

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        self.d.qpos[:], self.d.qvel[:], self.d.qacc_warmstart[:] = q, v, 0.0

    def runner(self, state: ag.State, u: np.ndarray) -> Callable[[], None]:
        """Something to time: each robot in turn, one call of mj_step per change of its controls."""
        q, v = np.atleast_2d(state.q), np.atleast_2d(state.v)
        todo = [(*each[:2], stretches(each[2])) for each in zip(q, v, u.reshape(len(q), *u.shape[-2:]), strict=True)]

        def run() -> None:
            for q, v, controls in todo:
                self.place(q, v)
                for control, steps in controls:
                    self.d.ctrl[:] = control
                    mujoco.mj_step(self.m, self.d, nstep=steps)

        return run

    def differentiate(self, state: ag.State, u: np.ndarray) -> Callable[[], None]:
        """Something to time: the Jacobian of one step by forward differences."""
        n = 2 * self.m.nv
        A, B = np.zeros((n, n)), np.zeros((n, self.m.nu))

        def run() -> None:
            self.place(*state)
            self.d.ctrl[:] = u
            mujoco.mjd_transitionFD(self.m, self.d, 1e-6, False, A, B, None, None)

        return run

    def positions(self, state: ag.State, u: np.ndarray) -> np.ndarray:
        """q of one robot after every step."""
        self.place(*state)
        out = []
        for control in u:
            self.d.ctrl[:] = control
            mujoco.mj_step(self.m, self.d)
            out.append(self.d.qpos.copy())
        return np.array(out)


def stretches(u: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Controls (T, nu) as (control, for how many steps)."""
    changes = np.flatnonzero((u[1:] != u[:-1]).any(axis=1)) + 1
    bounds = [0, *changes.tolist(), len(u)]
    return [(u[a], b - a) for a, b in pairwise(bounds)]


# -- what is measured --------------------------------------------------------------------------------------------------
def mujoco_rows(motion: Motion, engines: list[InMuJoCo]) -> list[Row]:
    """One robot with every solver; where robots differ, also some of the batch, to see that it is no harder."""
    inputs = [(motion.start, motion.u)]
    if NOISE[motion.name]:
        some = slice(None, None, BATCH // MATCHED)
        inputs.append((ag.State(motion.batch.q[some], motion.batch.v[some]), motion.batch_u[some]))
    rows = []
    for state, u in inputs:
        robots = len(np.atleast_2d(state.q))
        units = robots * u.shape[-2]
        rows += [Row(f"{motion.name}: {e.name}", e.runner(state, u), units, robots) for e in engines]
    state, u = motion.moving()
    return rows + [Row(f"{motion.name}: {JACOBIAN}, {e.name}", e.differentiate(state, u)) for e in engines]


def our_rows(model: ag.Model, motion: Motion) -> list[Row]:
    """One robot and a batch, both dtypes; sweeps alone on one robot."""
    prefix, rows = f"{motion.name}: ", []
    for dtype in FLOATS:
        for state, u in ((motion.start, motion.u), (motion.batch, motion.batch_u)):
            ours = Ours(model, state, u, dtype)
            rows += [*ours.rows(prefix), ours.row(prefix + BACKWARD, ours.backward)]
        along, along_u = motion.along()
        one = Ours(model, along, along_u, dtype, lanes=1)
        rows.append(Row(prefix + JACOBIAN, one.jacobian, one.robots, 1, dtype))
        many = Ours(model, motion.batch, motion.batch_u[:, :1], dtype)
        rows.append(Row(prefix + JACOBIAN, many.jacobian, many.robots, many.robots, dtype))
    for sweeps in SWEEPS:
        ours = Ours(model, motion.start, motion.u, solver="gauss_seidel", sweeps=sweeps)
        rows.append(ours.row(f"{prefix}{FORWARD}, {sweeps} sweeps", ours.forward))
    return rows


def scene_rows(model: ag.Model, motion: Motion) -> list[Row]:
    """Several robots in one scene, each with controls of its own; us per robot, to be compared with one alone."""
    scene = ag.scene([model] * SCENE)
    u = np.concatenate(motion.whole.u[:SCENE], axis=-1)
    ours = Ours(scene, scene.keyframe(), u)
    calls = {FORWARD: ours.forward, GRADIENT: ours.gradient}
    return [Row(f"{motion.name}: {name}{IN_SCENE}", call, SCENE * STEPS, SCENE) for name, call in calls.items()]


def measure_posture(motions: list[Motion], engines: list[InMuJoCo]) -> list[dict[str, Any]]:
    """How low the trunk of the one robot comes and how far it leans, in every engine."""
    found = []
    for motion in motions:
        runs = {engine.name: engine.positions(motion.start, motion.u) for engine in engines}
        for name, q in ({"artigrad": motion.whole.q[0]} | runs).items():
            height = float(q[:, 2].min())
            tilt = float(np.degrees(np.arccos(1.0 - 2.0 * (q[:, 4] ** 2 + q[:, 5] ** 2)).max()))
            moved = float(np.linalg.norm(q[-1, :2] - motion.start.q[:2]))
            upright = bool(np.isfinite(q).all() and height > HEIGHT and tilt < TILT)
            where = {"height": height, "tilt": tilt, "moved": moved}
            found.append({"motion": motion.name, "engine": name, **where, "upright": upright})
    return found


def measure_solved(model: ag.Model, motions: list[Motion]) -> list[dict[str, Any]]:
    """`Trajectory.violation`: the worst residual, and the share of robots without one, or with a negligible one."""
    found: list[dict[str, Any]] = []

    def add(what: str, traj: ag.Trajectory) -> None:
        left = traj.violation
        shares = {"at_zero": float((left == 0).mean()), "in_tolerance": float((left <= TOLERANCE).mean())}
        found.append({"what": what, "robots": len(left), "steps": traj.steps, "worst": float(left.max()), **shares})

    for motion in motions:
        for dtype in FLOATS:
            add(f"{motion.name}, {dtype}", Ours(model, motion.batch, motion.batch_u, dtype).forward())
        add(f"{motion.name}, f64", motion.whole)
        for sweeps in SWEEPS:
            swept = Ours(model, motion.start, motion.u, solver="gauss_seidel", sweeps=sweeps)
            add(f"{motion.name}, f64, {sweeps} sweeps", swept.forward())
    return found


def fastest(motion: Motion, rows: Rows, posture: list[dict[str, Any]], robots: int = 1) -> Row:
    """The row of MuJoCo's fastest solver that stays upright: what all ratios of this motion refer to."""
    names = [p["engine"] for p in posture if p["motion"] == motion.name and p["upright"] and p["engine"] != "artigrad"]
    found = [rows[f"{motion.name}: {name}", robots, "f64", 1] for name in names]
    if not found:
        raise RuntimeError(f"MuJoCo falls whatever its solver, {motion.name}")
    return min(found, key=lambda row: row.median)


# -- the report --------------------------------------------------------------------------------------------------------
def targets(rows: Rows, units: dict[str, Row], start: dict[str, float], stored: float) -> list[dict[str, Any]]:
    """Each target with what was reached."""
    out = []
    for motion, unit in units.items():

        def us(name: str, robots: int = 1, dtype: str = "f64", motion: str = motion) -> float:
            return rows[f"{motion}: {name}", robots, dtype, 1].median

        def adjoint(robots: int = 1, dtype: str = "f64", us: Callable[..., float] = us) -> float:
            return (us(JACOBIAN, robots, dtype) - us(FORWARD, robots, dtype)) / (2 * NV)

        def one_step(robots: int = 1, dtype: str = "f64", us: Callable[..., float] = us) -> float:
            return us(FORWARD, robots, dtype) + adjoint(robots, dtype)

        figures = {FORWARD: us(FORWARD), STEP_ADJOINT: one_step(), GRADIENT: us(GRADIENT)}
        for (name, value), limit in zip(figures.items(), (0.33, 0.55, 0.55), strict=True):
            out.append(at_most(f"{motion}, one robot, {name}, of MuJoCo's forward", value / unit.median, limit))
        for dtype, limits in {"f64": (14, 8, 8), "f32": (22, 14, 14)}.items():
            values = (us(FORWARD, BATCH, dtype), one_step(BATCH, dtype), us(GRADIENT, BATCH, dtype))
            for name, value, limit in zip(figures, values, limits, strict=True):
                what = f"{motion}, {BATCH} robots {dtype} on a core, MuJoCo's forward over {name}"
                out.append(at_least(what, unit.median / value, limit))
        for robots, dtype in ((1, "f64"), (BATCH, "f64"), (BATCH, "f32")):
            who, forward = "one robot" if robots == 1 else f"{robots} robots", us(FORWARD, robots, dtype)
            what = f"{motion}, {who} {dtype}"
            out.append(at_most(f"{what}, adjoint of a step over {FORWARD}", adjoint(robots, dtype) / forward, 1.0))
            again = us(BACKWARD, robots, dtype) / forward
            out.append(at_most(f"{what}, {BACKWARD} of a rollout, steps made again, over {FORWARD}", again, 1.0))
    out.append(at_most("stored per step", stored, 400, "bytes"))
    out.append(at_most("first gradient, empty cache", start["cold"], 2.0, "s"))
    out.append(at_most("first gradient, filled cache", start["warm"], 0.5, "s"))
    return out


def scene_sheet(rows: Rows) -> Sheet:
    lines = []
    for motion in NOISE:
        for name in (FORWARD, GRADIENT):
            key = f"{motion}: {name}"
            one, many = rows[key, 1, "f64", 1].median, rows[key + IN_SCENE, SCENE, "f64", 1].median
            lines.append([key, f"{one:.3f}", f"{many:.3f}", f"{many / one:.2f} x"])
    return Sheet("Robots in one scene: us per robot and step", ["", "one", f"each of {SCENE}", "ratio"], lines)


def posture_sheet(posture: list[dict[str, Any]]) -> Sheet:
    columns = ["one robot, 1 s", "lowest, m", "most tilt, degrees", "moved, m", "upright"]

    def line(p: dict[str, Any]) -> list[str]:
        figures = [f"{p['height']:.3f}", f"{p['tilt']:.1f}", f"{p['moved']:.3f}"]
        return [f"{p['motion']}: {p['engine']}", *figures, "yes" if p["upright"] else "no"]

    return Sheet("The trunk in each engine", columns, [line(p) for p in posture])


def solved_sheet(solved: list[dict[str, Any]]) -> Sheet:
    columns = ["", "robots", "steps", "worst residual, m/s", "robots at 0", f"robots within {TOLERANCE:g}"]

    def line(s: dict[str, Any]) -> list[str]:
        shares = [f"{100 * s[key]:.0f} %" for key in ("at_zero", "in_tolerance")]
        return [s["what"], str(s["robots"]), str(s["steps"]), f"{s['worst']:.1e}", *shares]

    return Sheet("How well contact is solved (Trajectory.violation)", columns, [line(s) for s in solved])


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="under 30 seconds, rough figures")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of contact.json, .md")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=120)

    about, model = report.machine(), ag.robots.laikago()
    in_the_air = ag.State(model.keyframe().q, np.linspace(-1.0, 1.0, model.nv))
    in_the_air.q[2] = 100.0
    agreement = peers.check_mujoco(model, in_the_air, model.keyframe_control(), DT)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, refresh_per_second=2
    ) as progress:
        start, memory = measure_start("laikago", scale.starts, progress), measure("stored", "laikago")
        motions = [Motion.make(model, name) for name in NOISE]
        engines = [InMuJoCo(model, solver, cone) for solver in SOLVERS for cone in CONES]
        posture, solved = measure_posture(motions, engines), measure_solved(model, motions)
        tables = {
            motion.name: mujoco_rows(motion, engines) + our_rows(model, motion) + scene_rows(model, motion)
            for motion in motions
        }
        rows = [row for table in tables.values() for row in table]
        about |= time_rows(rows, scale, progress)

    by_key = {row.key: row for row in rows}
    units = {motion.name: fastest(motion, by_key, posture) for motion in motions}
    matched = fastest(motions[-1], by_key, posture, MATCHED)
    reached = targets(by_key, units, start, memory["bytes_per_step"])
    sheets = [
        report.row_sheet(f"Laikago: us per robot and step. Unit: {unit.name}", tables[name], unit)
        for name, unit in units.items()
    ]
    sheets += [
        scene_sheet(by_key),
        posture_sheet(posture),
        solved_sheet(solved),
        report.start_sheet(start, scale.starts),
    ]
    lines = [[key.replace("_", " "), f"{value:g}"] for key, value in memory.items()]
    sheets += [Sheet("Stored by a rollout of one robot, f64", ["", "bytes"], lines), report.target_sheet(reached)]
    for sheet in sheets:
        console.print(sheet.rich(), "")
    console.print(", ".join(f"{key} {value}" for key, value in about.items()))
    found = {"machine": about, "rounds": scale.rounds, "largest_difference": agreement, "start_s": start}
    found |= {"units": {name: unit.name for name, unit in units.items()}, "unit_on_the_batch": matched.name}
    found |= {"memory": memory, "posture": posture, "solved": solved, "targets": reached}
    report.save(arguments.out, "contact", "Contact", found, rows, sheets)
    console.print(f"saved {arguments.out / 'contact.json'} and contact.md")


if __name__ == "__main__":
    main()
