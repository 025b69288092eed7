"""`artigrad train TASK`: train a policy; progress on the screen, metrics and checkpoints in a folder."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..errors import InputError
from .own_task import open_task


class Interrupt:
    """Handler of Ctrl-C. The first one ends a training after the current update, so that it can be resumed to the bit; the
    second ends it at once, and the last checkpoint remains."""

    asked = False

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGINT, self._ask)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise SystemExit(130)
        self.asked = True

    def here(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.asked:
            raise KeyboardInterrupt


def train(
    task: Annotated[
        str,
        typer.Argument(
            help="Task: ant, hopper, halfcheetah, walker2d, humanoid, laikago, ..., or FILE.py:TASK, an EnvTask "
            "of your own."
        ),
    ],
    algorithm: Annotated[
        str, typer.Option(help="shac, ppo, bptt, sac, policy-enhancement, mbpo, sample-enhancement, sql.")
    ] = "shac",
    minutes: Annotated[float, typer.Option(help="Duration of the training.")] = 5.0,
    steps: Annotated[int | None, typer.Option(help="Number of environment steps in place of minutes.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder of the run; an existing run is resumed.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    threads: Annotated[int | None, typer.Option(help="CPU threads of the simulator.")] = None,
    tensorboard: Annotated[bool, typer.Option(help="Write a log for TensorBoard too.")] = False,
) -> None:
    """Train a policy."""
    from ..learn import Training

    console = Console()
    name = task.rpartition(":")[2] or Path(task).stem
    folder = folder or Path("training") / f"{Path(name).stem.lower()}-{algorithm}-{seed}"
    arguments: dict[str, Any] = {"device": device, "threads": threads, "tensorboard": tensorboard, "seed": seed}
    try:
        training = Training(open_task(task), algorithm, folder, **arguments)
    except (InputError, ModuleNotFoundError) as problem:
        console.print(f"[red]{problem}[/red]")
        raise typer.Exit(1) from None
    if training.learner.steps:
        console.print(f"continues {folder} at {training.learner.steps:,} steps")
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress:
        total = float(steps) if steps is not None else 60.0 * minutes
        bar = progress.add_task(f"{name} {algorithm}", total=total, text="")
        stop = Interrupt()

        def watch(metrics: dict[str, float]) -> None:
            text = f"return {metrics['return']:.1f}, {metrics['steps']:,.0f} steps"
            progress.update(bar, completed=metrics["steps"] if steps is not None else metrics["seconds"], text=text)
            stop.here()

        try:
            with stop:
                training.run(steps, seconds=None if steps is not None else 60.0 * minutes, watch=watch)
        except KeyboardInterrupt:
            training.save()
            console.print("stopped; the same command continues")
    console.print(f"saved {training.checkpoint}: artigrad play {training.checkpoint}")
