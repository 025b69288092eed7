"""Experiments of the papers that artigrad follows, one file each.

Run one as `python -m experiments NAME` from the root of the repository.
"""

from __future__ import annotations

from importlib import import_module

from .experiment import Experiment, RunOptions

# module, class and summary of each experiment; most need PyTorch and are imported on demand
EXPERIMENTS = {
    "adaptive": (
        "adaptive",
        "AdaptiveControl",
        "a cart swings up poles of unknown masses and lengths, on dm_control's cartpole (Heiden 2019)",
    ),
    "reach": ("reach", "Reach", "an arm with servo motors learns to touch a point (Degrave 2019)"),
    "reach-any": ("reach", "ReachAny", "one network for an arm learns to touch any point (Degrave 2019)"),
    "gait": ("gait", "Gait", "a quadruped learns to trot, after a search for sufficient motors (Degrave 2019)"),
    "speed": ("speed", "Speed", "time of a gradient through robot and network (Degrave 2019, table 1)"),
    "pixels": ("pixels", "Pixels", "a cart swings its pendulum up from camera images (Degrave 2019)"),
    "lengths": (
        "lengths",
        "Lengths",
        "link lengths from images, by physics between an encoder and a decoder (Heiden 2019)",
    ),
}


def experiment(name: str) -> Experiment:
    """Return the experiment of this name."""
    module, what, _ = EXPERIMENTS[name]
    made: Experiment = getattr(import_module(f".{module}", __name__), what)()
    return made


__all__ = ["EXPERIMENTS", "Experiment", "RunOptions", "experiment"]
