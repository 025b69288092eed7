"""`artigrad play FILE`: returns of a trained policy in artigrad and in Gymnasium, and a video."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ..errors import InputError
from .own_task import open_task


def play(
    file: Annotated[Path, typer.Argument(help="The checkpoint.pt of a training.")],
    episodes: Annotated[int, typer.Option(help="Number of episodes.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of initial states.")] = 0,
    task: Annotated[str | None, typer.Option(help="FILE.py:TASK of a policy trained for your own task.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save ten seconds as a .html page, a .gif or .mp4 video.")] = None,
) -> None:
    """Play a trained policy and print its returns."""
    from ..learn import Player
    from ..learn.evaluation import GYMNASIUM

    console = Console()
    try:
        given = None if task is None else open_task(task)
        player = Player(file, task=None if isinstance(given, str) else given)
    except InputError as problem:
        console.print(f"[red]{problem}[/red]")
        raise typer.Exit(1) from None
    name = player.about["task"]
    table = Table("", "mean return", "min", "max", title=f"{name}, {player.about['algorithm']}, {episodes} episodes")
    returns_by_env = {"artigrad": player.returns(episodes, seed=seed)}
    if name in GYMNASIUM:
        returns_by_env[f"Gymnasium's {name}-v5"] = player.gymnasium_returns(episodes, seed=seed)
    for where, returns in returns_by_env.items():
        table.add_row(where, *(f"{x:.1f}" for x in (returns.mean(), returns.min(), returns.max())))
    console.print(table)
    if save is not None:
        player.rollout(seed=seed).save(save)
        console.print(f"saved {save}")
