"""`artigrad demo`: a robot arm learns to throw a ball, in less than a minute."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from ..formats.save import save
from ..tasks import Throw
from ..tasks.study import study
from .run import Watch, summarize

STARTS = 8  # initial guesses
NEXT = (
    ("run golf", "another task, and CMA-ES beside it"),
    ("run throw --show", "the throw in your browser"),
    ("view laikago", "a robot whose joints you move"),
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for plots and animation.")] = Path("demo-results"),
    iterations: Annotated[int, typer.Option(min=1, help="Maximum number of Adam iterations.")] = 100,
) -> None:
    """A robot arm learns to throw a ball by gradients through the physics; under a minute."""
    console, began = Console(), time.perf_counter()
    console.print(
        "[bold]A robot arm learns to throw a ball[/] by gradients through the physics: 1000 steps x 7 torques"
    )
    task = Throw()
    with Watch(console, task, {"adam": iterations}) as watch:
        done = study(task, out, method="adam", starts=STARTS, iterations=iterations, compare=False, watch=watch)
    _speed(console, task, done.main.x)
    summarize(console, done)
    console.print(f"total time {time.perf_counter() - began:.0f} s. Next, try:")
    program = "artigrad" if shutil.which("artigrad") else sys.argv[0]  # the command as called, if it is not on the path
    for command, what in NEXT:
        console.print(f"  [bold]{program} {command:18}[/] {what}")
    if not (done.main.best <= task.loss_goal()).any():
        console.print("[red]the ball does not arrive[/]")
        raise typer.Exit(1)


def _speed(console: Console, task: Throw, x: np.ndarray) -> None:
    """Measure the time of a throw with its gradient, and of a simulation without gradient in MuJoCo, on one core each."""
    task.gradient(x[:1])  # compiles
    one, batch = (min(_seconds(partial(task.gradient, y)) for _ in range(3)) for y in (x[:1], x))
    console.print(
        f"a throw with its gradient takes [bold]{1e3 * one:.1f} ms[/] ({1e3 * batch / len(x):.1f} ms in a batch of {len(x)}); "
        f"MuJoCo takes {1e3 * _mujoco(task, x[0]):.1f} ms without a gradient"
    )


def _mujoco(task: Throw, x: np.ndarray) -> float:
    """Return the time of MuJoCo for the same scene and torques, without a gradient, with the fastest of its solvers, s."""
    import mujoco
    from mujoco import rollout

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scene.xml"
        save(task.sim.model, file)
        model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.timestep = task.dt
    data, controls = mujoco.MjData(model), task.rollout(x[None]).u[0]
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    first = np.empty(mujoco.mj_stateSize(model, full))
    data.qpos[:] = task.initial.q
    mujoco.mj_getState(model, data, first, full)
    times = []
    for solver in mujoco.mjtSolver.__members__.values():
        model.opt.solver = solver
        times += [_seconds(partial(rollout.rollout, model, data, first, controls)) for _ in range(3)]
    return min(times)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
