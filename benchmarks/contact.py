"""Speed of constraints beside MuJoCo: `python -m benchmarks.contact [--quick] [--out FOLDER]`.

The Laikago on its four feet and the humanoid on its soles (8 points, dry friction and limits in all 29 joints) stand (under
the controls of their keyframes) or stumble (with noise added, which changes every 50 steps), under both laws. The reference
is, for each motion, MuJoCo's fastest solver and cone that stays upright, on one robot. A plate on an increasing number of
feet measures the cost of redundant contacts, and `benchmarks.pairs` that of shape pairs. All rows are timed in one run, in
rounds, as in `benchmarks.engine`.

The gradient of a rollout stores states only; the backward pass recomputes every step.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import artigrad as ag

from . import peers, report
from .pairs import pair_rows, pair_sheet, pair_targets
from .probe import measure, measure_start
from .report import Sheet, at_least, at_most
from .rows import DT, FLOATS, FORWARD, FULL, GRADIENT, QUICK, Ours, Row, Rows, time_rows

STEPS, BATCH, BATCH_STEPS, HARD_STEPS = 1000, 64, 100, 100
HOLD = 50  # steps between changes of the controls
SOLVERS, CONES = ("Newton", "CG", "PGS"), ("pyramidal", "elliptic")
MATCHED = 8  # batch elements that MuJoCo runs too, one after the other
FEET = (4, 12, 24, 40)  # of the plate
JACOBIAN = "Jacobian of a step"


class Robot(NamedTuple):
    """Robot of the benchmark.

    Attributes:
        name: Name.
        make: Returns the model.
        noise: Noise of the controls without falling, rad.
        height: Minimum height of the trunk while upright, m.
    """

    name: str
    make: Callable[[], ag.Model]
    noise: float
    height: float


class Target(NamedTuple):
    """Required ratios: one robot (forward, with gradient, of MuJoCo forward) and a batch on one core."""

    one: tuple[float, float]
    f64: tuple[float, float]
    f32: tuple[float, float]


ROBOTS = (Robot("Laikago", ag.robots.laikago, 0.1, 0.35), Robot("humanoid", ag.robots.humanoid, 0.02, 0.7))
TARGETS = {
    "Laikago": Target((0.22, 0.5), (18, 8), (35, 15)),
    "humanoid": Target((0.3, 0.6), (10, 6), (20, 12)),
}


# -- motions -----------------------------------------------------------------------------------------------------------
class Motion(NamedTuple):
    """One robot from its keyframe, and a batch whose robots begin at different times of such motions."""

    name: str
    robot: Robot
    model: ag.Model
    whole: ag.Trajectory  # BATCH robots over STEPS steps; the first is the one robot
    batch: ag.State
    batch_u: np.ndarray

    @property
    def start(self) -> ag.State:
        return ag.State(self.whole.q[0, 0], self.whole.v[0, 0])

    @property
    def u(self) -> np.ndarray:
        return self.whole.u[0]

    @property
    def half_way(self) -> ag.State:
        return ag.State(self.whole.q[0, STEPS // 2], self.whole.v[0, STEPS // 2])

    @classmethod
    def make(cls, robot: Robot, stumbling: bool) -> Motion:
        model, rng = robot.make(), np.random.default_rng(0)
        noise = robot.noise * stumbling * rng.normal(size=(BATCH, STEPS // HOLD, model.nu))
        u = model.keyframe_control() + np.repeat(noise, HOLD, axis=1)
        sim = ag.Simulator(model, DT, threads=1)
        whole = sim.rollout(sim.reset(batch=BATCH), u)
        robots, first = np.arange(BATCH), np.linspace(0, STEPS - BATCH_STEPS, BATCH).astype(int)
        batch_u = np.stack([u[i, k : k + BATCH_STEPS] for i, k in zip(robots, first, strict=True)])
        name = f"{robot.name}, {'stumbling' if stumbling else 'standing'}"
        return cls(name, robot, model, whole, ag.State(whole.q[robots, first], whole.v[robots, first]), batch_u)

    def upright(self, q: np.ndarray) -> bool:
        return bool(np.isfinite(q).all() and q[:, 2].min() > self.robot.height)


class InMuJoCo:
    """Robot in MuJoCo with one of its solvers."""

    def __init__(self, model: ag.Model, solver: str, cone: str):
        self.name = f"MuJoCo, {solver}, {cone}"
        self.m, self.d = peers.mujoco_scene(model, DT, solver, cone)

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        self.d.qpos[:], self.d.qvel[:], self.d.qacc_warmstart[:] = q, v, 0.0

    def run(self, state: ag.State, u: np.ndarray) -> None:
        """Simulate each robot in turn, with one call of mj_step per change of its controls."""
        q, v = np.atleast_2d(state.q), np.atleast_2d(state.v)
        for place, speed, controls in zip(q, v, u.reshape(len(q), *u.shape[-2:]), strict=True):
            self.place(place, speed)
            for control, steps in stretches(controls):
                self.d.ctrl[:] = control
                mujoco.mj_step(self.m, self.d, nstep=steps)

    def differentiate(self, state: ag.State, u: np.ndarray) -> None:
        """Compute the Jacobian of one step by forward differences."""
        n = 2 * self.m.nv
        A, B = np.zeros((n, n)), np.zeros((n, self.m.nu))
        self.place(*state)
        self.d.ctrl[:] = u
        mujoco.mjd_transitionFD(self.m, self.d, 1e-6, False, A, B, None, None)

    def positions(self, state: ag.State, u: np.ndarray) -> np.ndarray:
        """Return q of one robot after every step."""
        self.place(*state)
        out = []
        for control in u:
            self.d.ctrl[:] = control
            mujoco.mj_step(self.m, self.d)
            out.append(self.d.qpos.copy())
        return np.array(out)


def stretches(u: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Return controls (T, nu) as (control, number of steps for which it is constant)."""
    changes = np.flatnonzero((u[1:] != u[:-1]).any(axis=1)) + 1
    bounds = [0, *changes.tolist(), len(u)]
    return [(u[a], b - a) for a, b in pairwise(bounds)]


def plate(feet: int) -> ag.Model:
    """Return a plate of 20 kg on a given number of balls of 3 cm, in a grid under it; three would carry it."""
    b = ag.ModelBuilder(f"plate on {feet}")
    b.add_body("plate", joint="free", mass=20.0, inertia=(0.4, 0.6, 0.9), position=(0.0, 0.0, 0.13))
    across = max(k for k in range(1, feet + 1) if feet % k == 0 and k * k <= feet)
    for k in range(feet):
        x, y = k // across, k % across
        place = (0.8 * (x / max(feet // across - 1, 1) - 0.5), 0.4 * (y / max(across - 1, 1) - 0.5), -0.1)
        b.add_sphere("plate", 0.03, position=place, group=1, touches=2)
    b.add_plane(group=2, touches=1)
    return b.build()


# -- what is measured --------------------------------------------------------------------------------------------------
def mujoco_rows(motion: Motion, engines: list[InMuJoCo]) -> list[Row]:
    """Return rows of one robot with every solver, of a part of the batch, and of Jacobians by differences."""
    some = slice(None, None, BATCH // MATCHED)
    inputs = [(motion.start, motion.u), (ag.State(motion.batch.q[some], motion.batch.v[some]), motion.batch_u[some])]
    rows = []
    for state, u in inputs:
        robots = len(np.atleast_2d(state.q))
        units = robots * u.shape[-2]
        rows += [Row(f"{motion.name}: {e.name}", partial(e.run, state, u), units, robots) for e in engines]
    u = motion.u[STEPS // 2]
    call = partial(engines[0].differentiate, motion.half_way, u)
    return [*rows, Row(f"{motion.name}: {JACOBIAN}, {engines[0].name}", call)]


def our_rows(motion: Motion) -> list[Row]:
    """Return rows of one robot and a batch, in f64 and f32, under the hard and the soft law, and of a Jacobian."""
    model, prefix, rows = motion.model, f"{motion.name}: ", []
    for dtype in FLOATS:
        for state, u in ((motion.start, motion.u), (motion.batch, motion.batch_u)):
            rows += Ours(model, state, u, dtype).rows(prefix)
    for cone in CONES[1:]:
        for state, u in ((motion.start, motion.u), (motion.batch, motion.batch_u)):
            rows += Ours(model, state, u, cone=cone).rows(prefix, f", {cone}")[:2]
    hard = Ours(model, motion.start, motion.u[:HARD_STEPS], law="hard")
    rows += hard.rows(prefix, ", hard law")[:2]
    one = Ours(model, motion.half_way, motion.u[STEPS // 2 :][:1])
    return [*rows, Row(prefix + JACOBIAN, one.jacobian)]


def plate_rows(feet: int) -> list[Row]:
    """Return rows of the plate at rest on its feet: MuJoCo's solvers and both laws."""
    model = plate(feet)
    sim = ag.Simulator(model, DT, threads=1)
    rest, u = sim.rollout(sim.reset(), steps=500).final, np.zeros((BATCH_STEPS, 0))
    engines = [InMuJoCo(model, solver, cone) for solver, cone in product(SOLVERS, CONES)]
    rows = [Row(f"{model.name}: {e.name}", partial(e.run, rest, u), BATCH_STEPS) for e in engines]
    for law in ("soft", "hard"):
        rows += Ours(model, rest, u, law=law).rows(f"{model.name}: ", f", {law} law")[:2]
    return rows


def measure_posture(motions: list[Motion], engines: dict[str, list[InMuJoCo]]) -> list[dict[str, Any]]:
    """Return the smallest height of the trunk in every engine, and whether the robot stays upright."""
    found = []
    for motion in motions:
        runs = {e.name: e.positions(motion.start, motion.u) for e in engines[motion.robot.name]}
        for name, q in ({"artigrad": motion.whole.q[0]} | runs).items():
            where = {"height": float(q[:, 2].min()), "moved": float(np.linalg.norm(q[-1, :2] - motion.start.q[:2]))}
            found.append({"motion": motion.name, "engine": name, **where, "upright": motion.upright(q)})
    return found


def measure_solved(motions: list[Motion]) -> list[dict[str, Any]]:
    """Return the largest residual (`Trajectory.violation`) and the fraction of robots without one."""
    found: list[dict[str, Any]] = []
    for motion in motions:
        for what, options in {"f64": {}, "f32": {"dtype": "f32"}, "hard law": {"law": "hard"}}.items():
            left = Ours(motion.model, motion.batch, motion.batch_u, **options).forward().violation  # type: ignore[arg-type]
            share = float((left == 0).mean())
            found.append(
                {"what": f"{motion.name}, {what}", "robots": len(left), "worst": float(left.max()), "at_zero": share}
            )
    return found


def fastest(rows: Rows, prefix: str, engines: list[str], robots: int = 1) -> Row:
    """Return the row of MuJoCo's fastest solver, the reference of ratios."""
    if not engines:
        raise RuntimeError(f"MuJoCo falls whatever its solver: {prefix}")
    return min((rows[f"{prefix}: {name}", robots, "f64", 1] for name in engines), key=lambda row: row.median)


# -- the report --------------------------------------------------------------------------------------------------------
def targets(rows: Rows, motions: list[Motion], units: dict[str, Row], start: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each target with the measured ratio."""
    out = []
    for motion in motions:
        unit, goal = units[motion.name].median, TARGETS[motion.robot.name]

        def us(name: str, robots: int = 1, dtype: str = "f64", motion: Motion = motion) -> float:
            return rows[f"{motion.name}: {name}", robots, dtype, 1].median

        for name, limit in zip((FORWARD, GRADIENT), goal.one, strict=True):
            out.append(at_most(f"{motion.name}, one robot, {name}, of MuJoCo's forward", us(name) / unit, limit))
        for dtype, limits in {"f64": goal.f64, "f32": goal.f32}.items():
            for name, limit in zip((FORWARD, GRADIENT), limits, strict=True):
                what = f"{motion.name}, {BATCH} robots {dtype} on a core, MuJoCo's forward over {name}"
                out.append(at_least(what, unit / us(name, BATCH, dtype), limit))
    for name, times in start.items():
        out.append(at_most(f"{name}, first gradient, empty cache", times["cold"], 2.0, "s"))
        out.append(at_most(f"{name}, first gradient, filled cache", times["warm"], 0.5, "s"))
    return out


def plate_sheet(rows: Rows) -> Sheet:
    """Return the table of the cost of redundant contacts."""
    lines = []
    names = [InMuJoCo(plate(4), *which).name for which in product(SOLVERS, CONES)]
    for feet in FEET:
        best = fastest(rows, f"plate on {feet}", names)
        ours = [rows[f"plate on {feet}: {what}", 1, "f64", 1].median for what in _plate_names()]
        figures = [f"{x:.2f} ({x / best.median:.2f} x)" for x in ours]
        lines.append([str(feet), f"{best.median:.2f} ({best.name.split(', ', 1)[1]})", *figures])
    return Sheet(
        "Redundant contacts, a plate on several feet: us per step", ["feet", "MuJoCo's best", *_plate_names()], lines
    )


def _plate_names() -> list[str]:
    return [f"{name}, {law} law" for law in ("soft", "hard") for name in (FORWARD, GRADIENT)]


def posture_sheet(posture: list[dict[str, Any]]) -> Sheet:
    columns = ["one robot, 1 s", "lowest, m", "moved, m", "upright"]

    def line(p: dict[str, Any]) -> list[str]:
        return [
            f"{p['motion']}: {p['engine']}",
            f"{p['height']:.3f}",
            f"{p['moved']:.3f}",
            "yes" if p["upright"] else "no",
        ]

    return Sheet("The trunk in each engine", columns, [line(p) for p in posture])


def solved_sheet(solved: list[dict[str, Any]]) -> Sheet:
    columns = ["", "robots", "worst residual", "robots at 0"]
    lines = [[s["what"], str(s["robots"]), f"{s['worst']:.1e}", f"{100 * s['at_zero']:.0f} %"] for s in solved]
    return Sheet("Residuals of constraints (Trajectory.violation)", columns, lines)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="under a minute, rough figures")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of contact.json, .md")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=120)
    about = report.machine()
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console, refresh_per_second=2
    ) as progress:
        names = {robot.name: robot.make.__name__ for robot in ROBOTS}
        start = {name: measure_start(maker, scale.starts, progress) for name, maker in names.items()}
        memory = {name: measure("stored", maker) for name, maker in names.items()}
        motions = [Motion.make(robot, stumbling) for robot in ROBOTS for stumbling in (False, True)]
        models = {motion.robot.name: motion.model for motion in motions}
        engines = {
            name: [InMuJoCo(model, *which) for which in product(SOLVERS, CONES)] for name, model in models.items()
        }
        posture, solved = measure_posture(motions, engines), measure_solved(motions)
        tables = {m.name: mujoco_rows(m, engines[m.robot.name]) + our_rows(m) for m in motions}
        plates = [row for feet in FEET for row in plate_rows(feet)]
        rows = [row for table in tables.values() for row in table] + plates + pair_rows()
        about |= time_rows(rows, scale, progress)
    by_key = {row.key: row for row in rows}
    stands = {m.name: [p["engine"] for p in posture if p["motion"] == m.name and p["upright"]][1:] for m in motions}
    units = {m.name: fastest(by_key, m.name, stands[m.name]) for m in motions}
    reached = targets(by_key, motions, units, start) + pair_targets(by_key)
    sheets = [
        report.row_sheet(f"{name}: us per robot and step. Unit: {units[name].name.split(': ')[1]}", table, units[name])
        for name, table in tables.items()
    ]
    sheets += [plate_sheet(by_key), pair_sheet(by_key), posture_sheet(posture), solved_sheet(solved)]
    sheets += [report.start_sheet(times, scale.starts) for times in start.values()]
    lines = [
        [f"{name}: {key.replace('_', ' ')}", f"{value:g}"]
        for name, sizes in memory.items()
        for key, value in sizes.items()
    ]
    sheets += [Sheet("Stored by a rollout of one robot, f64", ["", "bytes"], lines), report.target_sheet(reached)]
    for sheet in sheets:
        console.print(sheet.rich(), "")
    console.print(", ".join(f"{key} {value}" for key, value in about.items()))
    found = {"machine": about, "rounds": scale.rounds, "start_s": start, "memory": memory}
    found |= {"units": {name: unit.name for name, unit in units.items()}, "posture": posture, "solved": solved}
    report.save(arguments.out, "contact", "Contact", found | {"targets": reached}, rows, sheets)
    console.print(f"saved {arguments.out / 'contact.json'} and contact.md")


if __name__ == "__main__":
    main()
