"""The command line: `artigrad demo`, `artigrad view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError, ModelError
from ..view import view as look
from .demo import swing_up
from .view import model_of

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Differentiable simulation of articulated bodies.")


@app.callback()
def main() -> None:
    """Differentiable simulation of articulated bodies."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the plot.")] = Path("demo-results"),
    iterations: Annotated[int, typer.Option(min=1, help="Gradient steps.")] = 300,
) -> None:
    """Swing up a cart-pole by gradients through the physics; under a minute."""
    if not swing_up(out, iterations):
        raise typer.Exit(1)


@app.command()
def view(
    robot: Annotated[str, typer.Argument(metavar="FILE", help="A robot's file, or the name of a bundled robot.")],
    port: Annotated[int | None, typer.Option(help="Of the page on this machine; by default a free one.")] = None,
) -> None:
    """Look at a robot in the browser and move its joints."""
    try:
        look(model_of(robot), port=port)
    except (InputError, ModelError, ImportError) as error:
        typer.secho(str(error), err=True, fg="red")
        raise typer.Exit(1) from None
