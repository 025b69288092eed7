"""Command line: `artigrad demo`, `run TASK`, `train TASK`, `play FILE`, `info FILE`, `check FILE`, `view FILE`, `doctor`,
`cache`; one file per command."""

from __future__ import annotations

from typing import Annotated

import typer

from .._version import __version__
from .cache import cache
from .check import check
from .demo import demo
from .doctor import doctor
from .info import info
from .play import play
from .run import run
from .train import train
from .view import view

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Differentiable simulation of articulated bodies.")


def _version(show: bool) -> None:
    if show:
        typer.echo(f"artigrad {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Differentiable simulation of articulated bodies."""


for command in (demo, run, train, play, info, check, view, doctor, cache):
    app.command()(command)
