"""The demo: a robot arm learns to throw a ball, in well under a minute."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from ..io.save import save
from ..tasks import Throw
from ..tasks.study import study
from .run import Watch, summarise

STARTS = 8
NEXT = (
    ("run golf", "another task, and CMA-ES beside it"),
    ("run throw --show", "the throw in your browser"),
    ("view laikago", "a robot whose joints you move"),
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for plots and animation.")] = Path("demo-results"),
    iterations: Annotated[int, typer.Option(min=1, help="Of Adam, at most.")] = 100,
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
    summarise(console, done)
    console.print(f"all this took {time.perf_counter() - began:.0f} s. Next, try:")
    program = "artigrad" if shutil.which("artigrad") else sys.argv[0]  # as it was called, where it is not on the path
    for command, what in NEXT:
        console.print(f"  [bold]{program} {command:18}[/] {what}")
    if not (done.main.best <= task.loss_goal()).any():
        console.print("[red]the ball does not arrive[/]")
        raise typer.Exit(1)


def _speed(console: Console, task: Throw, x: np.ndarray) -> None:
    """What a throw with its gradient takes, and in MuJoCo the throw alone."""
    ours = min(_seconds(lambda: task.gradient(x)) for _ in range(3)) / len(x)
    theirs = _mujoco(task, x[0])
    console.print(
        f"a throw with its gradient takes [bold]{1e3 * ours:.1f} ms[/] ({len(x)} at once); "
        f"in MuJoCo the throw alone takes {1e3 * theirs:.1f} ms"
    )


def _mujoco(task: Throw, x: np.ndarray) -> float:
    """Seconds that MuJoCo takes for the same scene and torques, without a gradient."""
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scene.xml"
        save(task.sim.model, file)
        model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.timestep = task.dt
    data, controls = mujoco.MjData(model), task.rollout(x[None]).u[0]

    def throw() -> None:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = task.initial.q
        for u in controls:
            data.ctrl[:] = u
            mujoco.mj_step(model, data)

    return min(_seconds(throw) for _ in range(3))


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
