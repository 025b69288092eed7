"""Matplotlib figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..files import replacing


def save_figure(figure: Any, path: Path) -> None:
    """Write a Matplotlib figure as an image."""
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=110, format=path.suffix.removeprefix("."))


def plotting() -> Any:
    """Return Matplotlib's pyplot with a file backend, or None if it is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    return plt
