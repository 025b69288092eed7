"""The command line: `artigrad demo`, `info FILE`, `check FILE`, `view FILE`; one file a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .check import check
from .demo import swing_up
from .info import info
from .view import view

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


for command in (info, check, view):
    app.command()(command)
