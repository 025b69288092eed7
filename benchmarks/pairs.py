"""Cost of shape pairs: `python -m benchmarks.pairs [--quick] [--out FOLDER]`; also a part of `benchmarks.contact`.

Many candidate pairs of which few touch; boxes on boxes; meshes on meshes.

The crowd is a plate on four balls with many other shapes that do not touch; the same plate without them has the same four
contacts. Blocks rest on fixed blocks, so that a step is their collision and the constraints. Meshes are cubes of 8
vertices, drums of 128 and stones of 400.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from rich.console import Console
from rich.progress import Progress

import artigrad as ag

from . import peers, report
from .report import Sheet, at_least, at_most
from .rows import DT, FORWARD, FULL, QUICK, Ours, Row, Rows, time_rows

STEPS, BATCH, BATCH_STEPS = 200, 64, 50
CARRIED, STANDING = 14, 14  # 196 pairs, beside those of the four feet
BLOCKS = 4


def crowd(others: bool) -> ag.Model:
    """Return a plate on four balls; with `others` also capsules on it and boxes beside it, none of which touch."""
    b = ag.ModelBuilder("crowd" if others else "four feet")
    b.add_body("plate", joint="free", mass=20.0, inertia=(0.4, 0.6, 0.9), position=(0.0, 0.0, 0.13))
    for x in (-0.4, 0.4):
        for y in (-0.2, 0.2):
            b.add_sphere("plate", 0.03, position=(x, y, -0.1), group=1, touches=2)
    b.add_plane(group=2, touches=1)
    for k in range(CARRIED * others):
        b.add_capsule("plate", 0.02, 0.05, position=(0.05 * (k - CARRIED / 2), 0.0, 0.1), group=4, touches=8)
    for k in range(STANDING * others):
        b.add_box("world", (0.02, 0.05, 0.1), position=(0.1 * (k - STANDING / 2), 0.6, 0.2), group=8, touches=4)
    return b.build()


def cube(half: float) -> np.ndarray:
    return half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


def drum(half: float) -> np.ndarray:
    """Return a beveled prism of 128 vertices, which stands on a face of 32."""
    t = np.arange(32) * (2 * np.pi / 32)
    rings = ((0.85, -1.0), (1.0, -0.85), (1.0, 0.85), (0.85, 1.0))
    return half * np.concatenate([np.stack([r * np.cos(t), r * np.sin(t), z + 0 * t], 1) for r, z in rings])


def stone(half: float) -> np.ndarray:
    """Return 400 random vertices on an ellipsoid."""
    p = np.random.default_rng(0).normal(size=(400, 3))
    return half * p / np.linalg.norm(p, axis=1, keepdims=True) * (1.0, 0.9, 0.7)


SOLIDS: dict[str, Callable[[float], np.ndarray]] = {"mesh": cube, "drum": drum, "stone": stone}


def blocks(upper: str, lower: str, height: float = 0.299) -> ag.Model:
    """Return blocks at rest, each on its own larger block, rotated slightly so that no edges are parallel."""
    b = ag.ModelBuilder(f"{upper} on {lower}")
    for k in range(BLOCKS):
        mask = {"group": 1 << k, "touches": 1 << k}
        b.add_body(f"b{k}", joint="free", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(k, 0.0, height))
        turn = {"rotation": (1.0, 0.0, 0.0, 0.1 + 0.05 * k)}
        for kind, body, half, place in (
            (upper, f"b{k}", 0.1, {}),
            (lower, "world", 0.2, {"position": (k, 0.0, 0.0), **turn}),
        ):
            if kind == "box":
                b.add_box(body, half * np.ones(3), **place, **mask)
            else:
                b.add_convex_hull(body, SOLIDS[kind](half), **place, **mask)
    return b.build()


TOUCHING: dict[str, Callable[[], ag.Model]] = {
    "box on box": partial(blocks, "box", "box"),
    "mesh on mesh": partial(blocks, "mesh", "mesh"),
    "mesh on box": partial(blocks, "mesh", "box"),
    "drum on drum": partial(blocks, "drum", "drum"),
    "stone on box": partial(blocks, "stone", "box", 0.268),
    "stone on stone": partial(blocks, "stone", "stone", 0.209),
}
MODELS: dict[str, Callable[[], ag.Model]] = {
    "four feet": partial(crowd, False),
    "crowd": partial(crowd, True),
    **TOUCHING,
}


def _in_mujoco(m: mujoco.MjModel, d: mujoco.MjData, q: np.ndarray) -> None:
    d.qpos[:], d.qvel[:], d.qacc_warmstart[:] = q, 0.0, 0.0
    mujoco.mj_step(m, d, nstep=STEPS)


def pair_rows() -> list[Row]:
    """Return rows of each model at rest: MuJoCo (Newton), one robot, and batches in f64 and f32."""
    rows = []
    for name, make in MODELS.items():
        model = make()
        sim = ag.Simulator(model, DT, threads=1)
        rest = sim.rollout(sim.reset(), steps=300).final
        m, d = peers.mujoco_scene(model, DT, "Newton", "pyramidal")
        rows.append(Row(f"{name}: MuJoCo", partial(_in_mujoco, m, d, rest.q), STEPS))
        rows += Ours(model, ag.State(rest.q, 0 * rest.v), np.zeros((STEPS, 0))).rows(f"{name}: ")[:1]
        many = ag.State(np.repeat(rest.q[None], BATCH, 0), np.zeros((BATCH, model.nv)))
        for dtype in ("f64", "f32"):
            rows += Ours(model, many, np.zeros((BATCH, BATCH_STEPS, 0)), dtype).rows(f"{name}: ")[:1]
    return rows


def _us(rows: Rows, name: str, robots: int = 1, dtype: str = "f64") -> float:
    return rows[f"{name}: {FORWARD}", robots, dtype, 1].median


def pair_sheet(rows: Rows) -> Sheet:
    lines = []
    for name in MODELS:
        figures = [rows[f"{name}: MuJoCo", 1, "f64", 1].median, _us(rows, name)]
        figures += [_us(rows, name, BATCH, dtype) for dtype in ("f64", "f32")]
        lines.append([name, *(f"{x:.2f}" for x in figures)])
    columns = ["", "MuJoCo", "one robot", f"{BATCH} robots f64", f"{BATCH} robots f32"]
    return Sheet("Pairs of shapes at rest: us per robot and step, on one core", columns, lines)


def pair_targets(rows: Rows) -> list[dict[str, Any]]:
    """Return targets for candidates that do not touch, and for contacts of boxes and meshes, beside MuJoCo."""
    out = []
    for robots, dtype in ((1, "f64"), (BATCH, "f64"), (BATCH, "f32")):
        ratio = _us(rows, "crowd", robots, dtype) / _us(rows, "four feet", robots, dtype)
        out.append(at_most(f"200 pairs of which 4 touch, {robots} robots {dtype}, of those 4 alone", ratio, 1.5))
    for name in TOUCHING:
        theirs = rows[f"{name}: MuJoCo", 1, "f64", 1].median
        out.append(at_most(f"{name}, one robot, of MuJoCo's", _us(rows, name) / theirs, 1.0))
        packs = theirs / _us(rows, name, BATCH, "f32")
        out.append(at_least(f"{name}, {BATCH} robots f32 on a core, MuJoCo's over ours", packs, 8.0))
    return out


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="rough figures")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of pairs.json, .md")
    arguments = parser.parse_args()
    scale, about, console = QUICK if arguments.quick else FULL, report.machine(), Console(width=120)
    with Progress(console=console, refresh_per_second=2) as progress:
        rows = pair_rows()
        about |= time_rows(rows, scale, progress)
    by_key = {row.key: row for row in rows}
    reached = pair_targets(by_key)
    sheets = [pair_sheet(by_key), report.target_sheet(reached)]
    for sheet in sheets:
        console.print(sheet.rich(), "")
    found = {"machine": about, "rounds": scale.rounds, "targets": reached}
    report.save(arguments.out, "pairs", "Pairs of shapes", found, rows, sheets)


if __name__ == "__main__":
    main()
