"""Pendulum: three links with weak motors learn to stand up from level (the chain of ICML 2021, figure 4, three links).

No contact. Motors give at most 10 N m, so that bounds on the variables matter; the tip is to be at the highest point it can
reach after 100 steps of 1/60 s.
"""

from __future__ import annotations

import numpy as np

from ..io.builder import ModelBuilder
from ..model import Model
from ..results import Outputs, Trajectory
from ..simulator import Simulator
from ..state import State
from .task import Score, Task

LENGTH, TORQUE = 0.5, 10.0  # m, N m


def chain(n: int) -> Model:
    """n links of half a metre about x, level at rest, with their masses at their ends: 1 kg, then 2.16 kg."""
    b = ModelBuilder(f"chain-{n}", gravity=(0.0, 0.0, -9.8))
    parent, place = "world", (0.0, 0.0, 0.0)
    for i in range(1, n + 1):
        parent = b.body(
            f"link{i}",
            parent,
            joint="revolute",
            axis=(1.0, 0.0, 0.0),
            position=place,
            mass=1.0 if i == 1 else 2.16,
            com=(0.0, LENGTH, 0.0),
            inertia=(0.005, 0.005, 0.003),
        )
        b.motor(parent, parent, gear=TORQUE)
        place = (0.0, LENGTH, 0.0)
    b.site("tip", parent, position=place)
    return b.build()


class Pendulum(Task):
    """How far the tip is at the end from the highest point it can reach."""

    name = "pendulum"
    summary = "three links with weak motors learn to stand up"
    variables = "torques"
    label = "distance of the tip from its highest point / m"
    goal = 0.05
    settings = {
        "adam": {"rate": 0.1},
        "sgd": {"rate": 1.0, "lowest": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 0.3},
    }
    iterations = {"adam": 200, "sgd": 500, "lbfgs": 200, "cma-es": 500}
    steps, links = 100, 3

    def __init__(self) -> None:
        self.sim = Simulator(chain(self.links), dt=1 / 60)
        self.initial = self.sim.reset()
        self.upper = np.ones(self.steps * self.links)
        self.lower = -self.upper

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return rng.normal(size=(starts, self.n)).clip(-3, 3) / 10

    def score(self, traj: Trajectory) -> Score:
        end = State(*traj.final)
        error = self.sim.sites(end)[:, 0] - [0.0, 0.0, self.links * LENGTH]
        q_bar = self.sim.outputs_vjp(end, Outputs(site_position=2 * error[:, None])).q
        return Score(np.sum(error**2, 1), q_bar)
