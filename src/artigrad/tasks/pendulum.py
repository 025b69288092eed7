"""Pendulum: three links with weak motors rise from the horizontal (the chain of ICML 2021, figure 4, three links).

No contact. Motors give at most 10 N m, so that bounds on the variables are active; the tip is to be at its highest position
after 100 steps of 1/60 s.
"""

from __future__ import annotations

import numpy as np

from ..robots.chains import LINK, loaded_links
from ..simulate.results import Outputs, Trajectory
from ..simulate.simulator import Simulator
from .task import Score, Task

TORQUE = 10.0  # N m


class Pendulum(Task):
    """Final distance of the tip from its highest position."""

    name = "pendulum"
    summary = "three links with weak motors learn to stand up"
    variables = "torques"
    label = "distance of the tip from its highest point / m"
    goal = 0.05
    settings = {
        "adam": {"learning_rate": 0.1},
        "sgd": {"learning_rate": 1.0, "min_loss": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 0.3},
    }
    iterations = {"adam": 200, "sgd": 500, "lbfgs": 200, "cma-es": 500}
    steps, links = 100, 3

    def __init__(self) -> None:
        self.sim = Simulator(loaded_links(self.links, torque=TORQUE), dt=1 / 60)
        self.initial = self.sim.reset()
        self.upper = np.ones(self.steps * self.links)
        self.lower = -self.upper

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return rng.normal(size=(starts, self.n)).clip(-3, 3) / 10

    def score(self, traj: Trajectory) -> Score:
        end = traj.final
        error = self.sim.sites(end)[:, 0] - [0.0, 0.0, self.links * LINK]
        q_bar = self.sim.outputs_vjp(end, Outputs(site_position=2 * error[:, None])).q
        return Score(np.sum(error**2, 1), q_bar)
