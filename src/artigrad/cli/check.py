"""`artigrad check FILE`: compare the gradients of a robot with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from ..errors import InputError
from ..simulate.gradcheck import gradcheck
from .robot import Floating, Motors, Robot, open_robot


@contextmanager
def _warnings_on_stderr() -> Iterator[None]:
    """Print each warning once, as one line, also if the block raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for message in dict.fromkeys(str(x.message) for x in caught):
                typer.echo(f"warning: {message}", err=True)


def check(
    file: Robot,
    floating: Floating = False,
    motors: Motors = False,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the rollout.")] = 3,
    samples: Annotated[int, typer.Option(min=1, help="Random states to check at.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the random states.")] = 0,
) -> None:
    """Compare all gradients of a robot with finite differences; status 1 if one is off."""
    model = open_robot(file, floating, motors)
    try:
        with _warnings_on_stderr():
            gradcheck(model, steps=steps, samples=samples, seed=seed)
    except (ArithmeticError, InputError) as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None
    typer.echo("all gradients agree with finite differences")
