"""`artigrad view FILE`: a robot in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import InputError
from ..view import play
from ..view import view as look
from .robot import Floating, Robot, open_robot


def view(
    file: Robot,
    floating: Floating = False,
    live: Annotated[
        bool, typer.Option("--live", help="Let its physics move it, and pull at it with the mouse.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="Of the page on this machine; by default a free one.")] = None,
) -> None:
    """Show a robot in the browser and move its joints, or simulate it live."""
    model = open_robot(file, floating)
    try:
        (play if live else look)(model, port=port)
    except (InputError, ImportError) as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None
