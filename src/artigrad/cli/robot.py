"""A robot named on the command line: loaded, or one sentence and the end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ModelError
from ..io.load import load
from ..model import Model

File = Annotated[Path, typer.Argument(help="An MJCF or URDF file.", show_default=False)]
Floating = Annotated[bool, typer.Option("--floating", help="Free the base of a robot that is fixed to the world.")]


def open_robot(file: Path, floating: bool) -> Model:
    """The robot, with whatever is unsupported left out; a bad file ends the command with status 1 and one sentence."""
    try:
        return load(file, floating=floating, strict=False)
    except ModelError as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None
