"""`artigrad run TASK`: optimize a task with gradients and with CMA-ES for comparison; progress on the screen, results in a
folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..errors import InputError
from ..optimize import METHODS, History
from ..tasks import TASKS, Task
from ..tasks.study import Study, study, verdict
from ..tasks.write_up import result, write

NAMES = ", ".join(TASKS)
EXPERIMENTS = ("adaptive", "reach", "reach-any", "gait", "speed", "pixels", "lengths")  # of the repository


class Watch:
    """Progress bar for each method: error of the best initial guess, norm of its gradient, time."""

    def __init__(self, console: Console, task: Task, iterations: dict[str, int]):
        columns = (
            TextColumn("{task.fields[method]:>7}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
        )
        self.progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self.task, self.iterations = task, iterations

    def __call__(self, history: History) -> None:
        bars = {bar.fields["method"]: bar.id for bar in self.progress.tasks}
        if history.method not in bars:
            limit = self.iterations[history.method]
            bars[history.method] = self.progress.add_task("", total=limit, method=history.method)
        best = int(np.argmin(history.loss[-1]))
        norm = history.grad_norm[-1][best]
        text = f"error {float(self.task.error(history.best).min()):.4g}"
        text += "" if np.isnan(norm) else f", gradient {norm:.3g}"
        self.progress.update(bars[history.method], completed=history.iterations, description=text)

    def __enter__(self) -> Watch:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        for bar in self.progress.tasks:  # a run that ended early is complete
            self.progress.update(bar.id, total=bar.completed)
        self.progress.stop()


def run(
    name: Annotated[str | None, typer.Argument(metavar="TASK", help=f"One of {NAMES}; none lists them.")] = None,
    method: Annotated[str | None, typer.Option(help=f"One of {', '.join(METHODS)}; by default the task's.")] = None,
    starts: Annotated[int, typer.Option(min=1, help="Number of initial guesses, simulated as a batch.")] = 5,
    seed: Annotated[int, typer.Option(help="Seed of initial guesses and of CMA-ES.")] = 0,
    iterations: Annotated[int | None, typer.Option(min=1, help="Maximum number of iterations.")] = None,
    compare: Annotated[bool, typer.Option(help="Run CMA-ES for comparison.")] = True,
    resume: Annotated[bool, typer.Option(help="Resume the run in the folder.")] = False,
    show: Annotated[bool, typer.Option(help="Show the best trajectory in the browser afterwards.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default results/TASK.")] = None,
) -> None:
    """Optimize a task through the simulation: progress here; numbers, curves and an animation in a folder."""
    console = Console()
    if name is None:
        listing(console)
        return
    try:
        if name in EXPERIMENTS:
            raise InputError(
                f"'{name}' is an experiment: run python -m experiments {name} in a clone of the repository"
            )
        if name not in TASKS:
            raise InputError(f"there is no task '{name}'; tasks are {NAMES}")
        task = TASKS[name]()
        console.print(
            f"[bold]{task.name}[/]: {task.summary}; {task.n} {task.variables}, {starts} starts, law={task.sim.options.law.name}"
        )
        if compare and find_spec("cma") is None:
            console.print("without CMA-ES: pip install 'artigrad[optimize]' installs it", markup=False)
            compare = False
        limits = dict(task.iterations)
        if iterations is not None:
            limits[method or task.method] = iterations
        with Watch(console, task, limits) as watch:
            done = study(
                task,
                out or Path("results") / name,
                method=method,
                starts=starts,
                seed=seed,
                iterations=iterations,
                compare=compare,
                resume=resume,
                watch=watch,
            )
    except (InputError, ArithmeticError) as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None
    summarize(console, done)
    if show:
        task.rollout(done.main.x[[int(np.argmin(done.main.best))]]).show()
    if done.interrupted:
        raise typer.Exit(130)
    if not (done.main.best <= task.loss_goal()).any():
        raise typer.Exit(1)


def listing(console: Console) -> None:
    """Print all tasks."""
    table = Table("name", "what", box=None)
    for name, task in TASKS.items():
        table.add_row(f"[bold]{name}[/]", task.summary)
    console.print(table)
    console.print(f"experiments ({', '.join(EXPERIMENTS)}): python -m experiments NAME, in a clone of the repository")


def summarize(console: Console, done: Study) -> None:
    """Print the results and the files."""
    task = done.task
    console.print(f"gradient against finite differences: relative error [bold]{done.gradient_error:.1e}[/]")
    for history in done.histories.values():
        console.print(f"[bold]{history.method}[/]: {verdict(task, history)}")
    less = result(done).get("advantage")
    if less:
        at_least = "" if less["reached_by_the_other"] else "at least "
        table = Table(
            "", "iterations", "simulations", "seconds", title=f"advantage over CMA-ES ({at_least}this factor)"
        )
        table.add_row(done.main.method, *(f"{less[key]:g}" for key in ("iterations", "motions", "seconds")))
        console.print(table)
    if done.interrupted:
        console.print("saving the results so far; Ctrl-C skips the rest")
    _save(console, done)


def _save(console: Console, done: Study) -> None:
    """Write all files and show the name of each. Ctrl-C skips the remaining ones."""
    begun: list[Path] = []
    with console.status("saving") as status:

        def saving(file: Path) -> None:
            begun.append(file)
            status.update(f"saving {file.name}")

        try:
            files = write(done, saving)
        except KeyboardInterrupt:
            *complete, last = begun
            there = ", ".join(file.name for file in complete) or "no other file"
            console.print(f"interrupted while saving {last.name}; {done.folder} contains {there}")
            raise typer.Exit(130) from None
    console.print("results: " + ", ".join(f"[bold]{file}[/]" for file in files))
