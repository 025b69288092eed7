"""Optimisation through simulated motion, ready to run, read and adapt: `artigrad run throw`. One file a task."""

from __future__ import annotations

from importlib import import_module

from .ball import Ball
from .cartpole import Cartpole
from .design import Design
from .experiment import Experiment, Running
from .golf import Golf
from .pendulum import Pendulum
from .racecar import Racecar
from .task import Score, Task
from .throw import PaperThrow, Throw

TASKS: dict[str, type[Task]] = {t.name: t for t in (Throw, PaperThrow, Golf, Racecar, Ball, Design, Cartpole, Pendulum)}

# experiments, most of which need PyTorch: the module of each, loaded when it is asked for, and one line of what it is
EXPERIMENTS = {
    "adaptive": (
        "adaptive",
        "AdaptiveControl",
        "a cart swings up poles it does not know, on dm_control's cartpole (Heiden 2019)",
    ),
    "reach": ("reach", "Reach", "an arm with servo motors learns to touch a point (Degrave 2019)"),
    "reach-any": ("reach", "ReachAny", "one network for an arm learns to touch any point (Degrave 2019)"),
    "gait": ("gait", "Gait", "a quadruped learns to trot; first, whether its motors can at all (Degrave 2019)"),
    "speed": ("speed", "Speed", "how long a gradient through robot and network takes (Degrave 2019, table 1)"),
    "pixels": ("pixels", "Pixels", "a cart swings its pendulum up from what a camera sees (Degrave 2019)"),
    "lengths": (
        "lengths",
        "Lengths",
        "physics between an encoder and a decoder finds lengths from pictures (Heiden 2019)",
    ),
}


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    module, what, _ = EXPERIMENTS[name]
    made: Experiment = getattr(import_module(f".{module}", __name__), what)()
    return made


__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Running",
    "experiment",
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
