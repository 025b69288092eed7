"""Trajectory optimization tasks, one file each: `artigrad run throw`."""

from __future__ import annotations

from typing import Any

from .ball import Ball
from .cartpole import Cartpole
from .design import Design
from .golf import Golf
from .pendulum import Pendulum
from .racecar import Racecar
from .task import Score, Task
from .throw import PaperThrow, Throw

TASKS: dict[str, type[Task]] = {t.name: t for t in (Throw, PaperThrow, Golf, Racecar, Ball, Design, Cartpole, Pendulum)}

MOVED = (
    "EXPERIMENTS",
    "Experiment",
    "RunOptions",
    "Running",
    "experiment",
)  # to the package experiments of the repository


def __getattr__(name: str) -> Any:
    if name in MOVED:
        raise AttributeError(
            f"artigrad.tasks.{name} has moved: experiments are run in a clone of the repository, by python -m experiments NAME"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "TASKS",
    "Ball",
    "Cartpole",
    "Design",
    "Golf",
    "PaperThrow",
    "Pendulum",
    "Racecar",
    "Score",
    "Task",
    "Throw",
]
