"""`artigrad cache`: where compiled code is kept, its size, and its removal."""

from __future__ import annotations

from typing import Annotated

import typer

from ..compiler import disk


def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all compiled code.")] = False) -> None:
    """Show or clear the folder of compiled code."""
    where = disk.folder()
    if where is None:
        typer.echo("nothing is kept on disk: ARTIGRAD_CACHE=off, or the home folder is unknown")
        return
    count, size = disk.usage(where)
    if clear:
        disk.clear(where)
        typer.echo(f"removed {count} files ({size / 1e6:.1f} MB) from {where}")
    else:
        typer.echo(
            f"{where}: {count} files, {size / 1e6:.1f} MB; the oldest are removed above {disk.LIMIT / 1e6:.0f} MB"
        )
