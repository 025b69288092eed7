"""Scenes with many bodies, pairs, meshes and tendons: `python -m benchmarks.scale [--quick] [--only PART] [--out FOLDER]`.

A step of artigrad beside `mj_step` at its best settings (Newton, islands and sparse matrices as MuJoCo selects, warm
start), from the same state, one robot, f64, one thread. Every round times every row of a scene once, so that ratios are of
the same time, in CPU seconds.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from rich.console import Console

import artigrad as ag

from . import report
from .report import Sheet, at_most
from .rows import FORWARD, GRADIENT, WITH_PARAMS, CoreRow, Row
from .scale_scenes import Scene, scenes

STEPS = 10
MOST_CONTACTS = 4096
MUJOCO = "MuJoCo mj_step"


class Found(NamedTuple):
    """Results of one scene.

    Attributes:
        scene: Name.
        sizes: Sizes of the model.
        load: Seconds to compile with MuJoCo and to load here, and to the first rollout and gradient.
        rows: Timed rows.
    """

    scene: str
    sizes: dict[str, int]
    load: dict[str, float]
    rows: list[Row]

    def ratio(self, name: str) -> float:
        """Return the median over rounds of the time of a row over that of `mj_step`."""
        mine = {row.name: np.array(row.samples) for row in self.rows}
        return float(np.median(mine[name] / mine[MUJOCO]))

    def us(self, name: str) -> float:
        """Return the median time of a step, us."""
        return next(row.median for row in self.rows if row.name == name)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    start = time.perf_counter()
    out = call()
    return time.perf_counter() - start, out


def compiled(scene: Scene) -> tuple[float, mujoco.MjModel]:
    """Return the model compiled by MuJoCo, and the time."""
    source = scene.make()
    if isinstance(source, str):
        return timed(lambda: mujoco.MjModel.from_xml_string(source))
    return timed(source.compile)


def settled(m: mujoco.MjModel, seconds: float) -> mujoco.MjData:
    """Return the state of MuJoCo after some simulated time."""
    d = mujoco.MjData(m)
    for _ in range(int(seconds / m.opt.timestep)):
        mujoco.mj_step(m, d)
    return d


def measure(scene: Scene, rounds: int, sample: float, params: bool) -> Found:
    """Load, settle, compile and time a scene."""
    compile_time, m = compiled(scene)
    load, model = timed(lambda: ag.load(m, strict=False))
    start = settled(m, scene.settle)
    q, v, act = start.qpos.copy(), start.qvel.copy(), start.act.copy()
    warm, d = start.qacc_warmstart.copy(), mujoco.MjData(m)

    def theirs() -> None:
        d.qpos[:], d.qvel[:], d.act[:], d.qacc_warmstart[:] = q, v, act, warm
        mujoco.mj_step(m, d, nstep=STEPS)

    sim = ag.Simulator(model, threads=1, max_contacts=MOST_CONTACTS if model.has_contact else None)
    state, u = ag.State(q, v, act), np.zeros((STEPS, model.nu))
    rng = np.random.default_rng(1)
    bars = [0.2 * rng.normal(size=n) for n in (model.nq, model.nv)]

    def forward() -> ag.Trajectory:
        return sim.rollout(state, u)

    calls: dict[str, Callable[[], Any]] = {
        MUJOCO: theirs,
        FORWARD: forward,
        GRADIENT: lambda: sim.vjp(forward(), q_bar=bars[0], v_bar=bars[1], with_params=False),
    }
    if params:
        calls[WITH_PARAMS] = lambda: sim.vjp(forward(), q_bar=bars[0], v_bar=bars[1])
    first = {name: timed(call)[0] for name, call in calls.items()}
    theirs()
    ahead = float(np.abs(forward().final.q - d.qpos).max())
    rows: list[Row] = [CoreRow(name, call, STEPS) for name, call in calls.items()]
    for row in rows:
        row.call()
        row.repeats = max(1, round(sample / max(row.time(), 1e-7)))
    for _ in range(rounds):
        for row in rows:
            row.call()
            row.sample()
    sizes = {"dofs": m.nv, "geoms": m.ngeom, "pairs": len(model.shapes.pairs), "contacts": int(start.ncon)}
    seconds = {"MuJoCo": compile_time, "ours": load, "first rollout": first[FORWARD], "first gradient": first[GRADIENT]}
    seconds |= {"after 10 steps, m": ahead, "peak memory, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
    return Found(scene.name, sizes, seconds, rows)


def sheet(found: list[Found]) -> Sheet:
    names = list(dict.fromkeys(row.name for f in found for row in f.rows))
    columns = [
        "",
        "dofs",
        "pairs",
        "contacts",
        "mj_step, us",
        *(f"{name}, of it" for name in names[1:]),
        "load, s",
        "MuJoCo",
    ]
    lines = [
        [
            f.scene,
            *(str(f.sizes[k]) for k in ("dofs", "pairs", "contacts")),
            f"{f.us(MUJOCO):.1f}",
            *(f"{f.ratio(name):.2f}" for name in names[1:]),
            f"{f.load['ours']:.2f}",
            f"{f.load['MuJoCo']:.2f}",
        ]
        for f in found
    ]
    return Sheet("A step of one robot, f64, one thread: medians of ratios to mj_step", columns, lines)


def targets(found: list[Found]) -> list[dict[str, Any]]:
    """Return the target of each class beside MuJoCo."""
    out = [at_most(f"{f.scene}: forward", f.ratio(FORWARD), 1.0) for f in found]
    out += [at_most(f"{f.scene}: with gradient", f.ratio(GRADIENT), 2.0) for f in found]
    median = float(np.median([f.ratio(GRADIENT) for f in found]))
    return [*out, at_most("median: with gradient", median, 1.2)]


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="rough figures")
    parser.add_argument("--params", action="store_true", help="also gradients of parameters")
    parser.add_argument("--only", default="", help="scenes with this in their name")
    parser.add_argument("--out", type=Path, default=None, help="folder of scale.json, .md; nothing is written without")
    arguments = parser.parse_args()
    rounds, sample = (5, 0.02) if arguments.quick else (25, 0.05)
    console, found = Console(width=150), []
    about = report.machine()
    for scene in scenes():
        if arguments.only in scene.name:
            found.append(measure(scene, rounds, sample, arguments.params))
            f = found[-1]
            seconds = ", ".join(f"{k} {x:.3g}" for k, x in f.load.items())
            ratios = ", ".join(f"{row.name} {row.median:.1f} us ({f.ratio(row.name):.2f})" for row in f.rows)
            console.print(f"{f.scene}: {ratios}; {seconds}", soft_wrap=True)
    sheets = [sheet(found), report.target_sheet(targets(found))]
    for one in sheets:
        console.print(one.rich(), "")
    if arguments.out:
        load = {f.scene: f.sizes | f.load for f in found}
        rows = [row for f in found for row in f.rows]
        every = {"machine": about, "rounds": rounds, "targets": targets(found), "scenes": load}
        report.save(arguments.out, "scale", "Many bodies, pairs and tendons", every, rows, sheets)


if __name__ == "__main__":
    main()
