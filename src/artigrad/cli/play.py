"""`artigrad play FILE`: what a trained policy is worth, here and in Gymnasium's own environment; a film of it."""

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
    episodes: Annotated[int, typer.Option(help="How many.")] = 20,
    seed: Annotated[int, typer.Option(help="Of first states.")] = 0,
    task: Annotated[str | None, typer.Option(help="FILE.py:TASK, where it was trained for one of your own.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save ten seconds as a .html page, a .gif or .mp4 film.")] = None,
) -> None:
    """Play a trained policy and print its returns."""
    from ..learn import Player
    from ..learn.evaluation import GYMNASIUM

    console = Console()
    try:
        own = None if task is None else open_task(task)
        player = Player(file, task=None if isinstance(own, str) else own)
    except InputError as problem:
        console.print(f"[red]{problem}[/red]")
        raise typer.Exit(1) from None
    name = player.about["task"]
    table = Table("", "mean return", "least", "most", title=f"{name}, {player.about['algorithm']}, {episodes} episodes")
    found = {"artigrad": player.returns(episodes, seed=seed)}
    if name in GYMNASIUM:
        found[f"Gymnasium's {name}-v5"] = player.gymnasium_returns(episodes, seed=seed)
    for where, returns in found.items():
        table.add_row(where, *(f"{x:.1f}" for x in (returns.mean(), returns.min(), returns.max())))
    console.print(table)
    if save is not None:
        player.rollout(seed=seed).save(save)
        console.print(f"saved {save}")
