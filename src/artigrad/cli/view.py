"""`artigrad view FILE`: a robot in the browser."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from .. import robots
from ..errors import InputError, ModelError
from ..io.load import load
from ..model import Model
from ..view import view as look


def view(
    robot: Annotated[str, typer.Argument(metavar="FILE", help="A robot's file, or the name of a bundled robot.")],
    port: Annotated[int | None, typer.Option(help="Of the page on this machine; by default a free one.")] = None,
) -> None:
    """Look at a robot in the browser and move its joints."""
    try:
        look(model_of(robot), port=port)
    except (InputError, ModelError, ImportError) as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None


def model_of(name: str) -> Model:
    """A bundled robot by its name, or the robot of a file."""
    bundled = {n: make for n in robots.__all__ if _alone(make := getattr(robots, n))}
    if name in bundled:
        return bundled[name]()
    return load(name, strict=False)


def _alone(make: object) -> bool:
    """Whether a function can be called without arguments."""
    return callable(make) and all(p.default is not p.empty for p in inspect.signature(make).parameters.values())
