"""Environment steps per second beside Gymnasium's MuJoCo: `python -m benchmarks.envs [--quick] [--out FOLDER]`.

Ant and Hopper with random actions, the same observations and rewards, and automatic resets. Gymnasium's environments are
vectorized in all available ways; the reference is the fastest per core. artigrad uses one thread. All rows are timed in one
run, in rounds, as in `benchmarks.engine`, but in CPU seconds, which depend little on other load; rows with several
processes in wall-clock seconds times the number of processes.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from artigrad.envs import DifferentiableEnv  # which registers the environments

from . import report
from .report import Sheet, at_least, at_most
from .rows import FULL, QUICK, CoreRow, Row, time_rows

THEIRS = {"Ant": "Ant-v5", "Hopper": "Hopper-v5"}
SYNC, MANY = 16, (256, 1024)
CORES = len(os.sched_getaffinity(0))
MODES = {"one by one": ("sync", SYNC, 1), f"in {CORES} processes": ("async", CORES * SYNC // 2, CORES)}
WARM = 200  # steps before the timing, so that robots are at different moments of their episodes
WAYS = ("", " with gradient")
TASKS = {"Ant": 5, "Hopper": 4}  # steps of the simulator in one of the environment, the same in both


def row(name: str, env: Any, robots: int, cores: int, dtype: str) -> Row:
    """Return the row of a step of a vectorized environment with random actions."""
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (64, *env.action_space.shape)).astype(env.action_space.dtype)
    turn = iter(range(1 << 60))

    def call() -> None:
        env.step(actions[next(turn) % len(actions)])

    env.reset(seed=0)
    for _ in range(WARM):
        call()
    return (CoreRow if cores == 1 else Row)(name, call, robots, robots, dtype, cores)


def rows_of(task: str) -> list[Row]:
    """Return rows of Gymnasium's environments, then of artigrad's."""
    name = THEIRS[task]
    rows = []
    for how, (mode, robots, cores) in MODES.items():
        env = gym.make_vec(name, num_envs=robots, vectorization_mode=mode)
        rows.append(row(f"{task}: Gymnasium, {how}", env, robots, cores, "f64"))
    for dtype in ("f64", "f32"):
        for robots in MANY:
            env = gym.make_vec(f"artigrad/{task}-v0", num_envs=robots, dtype=dtype, threads=1)
            assert env.unwrapped.batch.task.frame_skip == TASKS[task]
            rows.append(row(f"{task}: artigrad", env, robots, 1, dtype))
    return rows + gradient_rows(task)


def gradient_rows(task: str, steps: int = 8) -> list[Row]:
    """Return rows of the differentiable environment, without and with gradients of all rewards with respect to all actions."""
    env = DifferentiableEnv(task, MANY[0], threads=1, clip=100.0)
    env.reset()
    actions = 2.0 * torch.rand(steps, MANY[0], env.action_size, generator=torch.Generator().manual_seed(0)) - 1.0

    def forward() -> None:
        with torch.no_grad():
            for action in actions:
                env.step(action)

    def both() -> None:
        env.detach()
        taken = actions.clone().requires_grad_()
        rewards = [env.step(action).reward.sum() for action in taken]
        torch.autograd.grad(torch.stack(rewards).sum(), taken)

    for _ in range(WARM // steps):
        forward()
    units, names = steps * MANY[0], {"a step in PyTorch": forward, "a step in PyTorch with gradient": both}
    return [CoreRow(f"{task}: artigrad, {name}", call, units, MANY[0], "f32", 1) for name, call in names.items()]


def slower(rows: list[Row], task: str) -> float:
    """Return the ratio of the time of a step with gradient to that without."""
    alone, both = (next(r.median for r in rows if r.name == f"{task}: artigrad, a step in PyTorch{x}") for x in WAYS)
    return both / alone


def per_core(row: Row) -> float:
    """Return environment steps per second and core."""
    return 1e6 / (row.median * row.threads)


def best(rows: list[Row], task: str, whose: str) -> float:
    return max(per_core(r) for r in rows if r.name.startswith(f"{task}: {whose}"))


def sheet(rows: list[Row]) -> Sheet:
    lines = []
    for r in rows:
        task = r.name.split(":")[0]
        ratio = per_core(r) / best(rows, task, "Gymnasium")
        run = [r.name, str(r.robots), r.dtype, str(r.threads), f"{r.median:.2f}", f"{r.least:.2f}"]
        lines.append([*run, f"{per_core(r):,.0f}", f"{ratio:.1f} x"])
    columns = ["", "robots", "type", "cores", "median, us", "min, us", "steps/s and core", "of Gymnasium's best"]
    return Sheet("Steps of an environment", columns, lines)


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="rough figures")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="folder of envs.json, envs.md")
    arguments = parser.parse_args()
    scale = QUICK if arguments.quick else FULL
    console = Console() if sys.stdout.isatty() else Console(width=120)
    warnings.filterwarnings("ignore", module="gymnasium")
    torch.set_num_threads(1)

    about = report.machine() | {"gymnasium": gym.__version__}
    rows = [r for task in TASKS for r in rows_of(task)]
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, refresh_per_second=2) as progress:
        about |= time_rows(rows, scale, progress)
    reached = [
        at_least(
            "Ant: steps per second and core, of Gymnasium's best",
            best(rows, "Ant", "artigrad") / best(rows, "Ant", "Gymnasium"),
            20.0,
        ),
        *(at_most(f"{task}: a step with its gradient, of one without", slower(rows, task), 4.0) for task in TASKS),
    ]
    sheets = [sheet(rows), report.target_sheet(reached)]
    for each in sheets:
        console.print(each.rich(), "")
    console.print(", ".join(f"{key} {value}" for key, value in about.items()))
    found = {"machine": about, "rounds": scale.rounds, "targets": reached}
    report.save(arguments.out, "envs", "Environments", found, rows, sheets)
    console.print(f"saved {arguments.out / 'envs.json'} and envs.md")


if __name__ == "__main__":
    main()
