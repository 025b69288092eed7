"""`artigrad view FILE`: show a robot in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import InputError
from ..view import interact
from ..view import view as show
from .robot import Floating, Robot, open_robot


def view(
    file: Robot,
    floating: Floating = False,
    live: Annotated[bool, typer.Option("--live", help="Simulate it, with the mouse pulling at it.")] = False,
    port: Annotated[int | None, typer.Option(help="Port of the page on this machine; by default a free one.")] = None,
) -> None:
    """Show a robot in the browser and move its joints, or simulate it live."""
    model = open_robot(file, floating)
    try:
        (interact if live else show)(model, port=port)
    except (InputError, ImportError) as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None
