"""The command line: `artigrad demo`, `run TASK`, `info FILE`, `check FILE`, `view FILE`; one file a command."""

from __future__ import annotations

import typer

from .check import check
from .demo import demo
from .info import info
from .run import run
from .view import view

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Differentiable simulation of articulated bodies.")


@app.callback()
def main() -> None:
    """Differentiable simulation of articulated bodies."""


for command in (demo, run, info, check, view):
    app.command()(command)
