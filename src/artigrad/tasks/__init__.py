"""Optimisation through simulated motion, ready to run, read and adapt: `artigrad run throw`. One file a task."""

from __future__ import annotations

from .cartpole import Cartpole
from .golf import Golf
from .pendulum import Pendulum
from .racecar import Racecar
from .task import Score, Task
from .throw import PaperThrow, Throw

TASKS: dict[str, type[Task]] = {t.name: t for t in (Throw, PaperThrow, Golf, Racecar, Cartpole, Pendulum)}

__all__ = ["TASKS", "Cartpole", "Golf", "PaperThrow", "Pendulum", "Racecar", "Score", "Task", "Throw"]
