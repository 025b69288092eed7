"""Cartpole: swing a pole up with 150 forces on the cart. No contact; the smallest task with a long horizon."""

from __future__ import annotations

import numpy as np

from ..model.state import State
from ..robots import cartpole
from ..simulate.results import Outputs, Trajectory
from ..simulate.simulator import Simulator
from .task import Score, Task

EFFORT = 1e-4  # per N^2


class Cartpole(Task):
    """Distance of the pole's tip from 1 m above the middle of the rail, and its speed, over the last third; and the effort
    of the motor."""

    name = "cartpole"
    summary = "a cart learns to swing its pole up"
    variables = "forces"
    label = "loss"
    goal = 0.8
    settings = {
        "adam": {"learning_rate": 0.5, "betas": (0.9, 0.99)},
        "sgd": {"learning_rate": 2.0, "max_grad_norm": 1.0},
        "lbfgs": {},
        "cma-es": {"sigma": 2.0},
    }
    iterations = {"adam": 400, "sgd": 600, "lbfgs": 300, "cma-es": 600}
    steps = 150

    def __init__(self) -> None:
        self.sim = Simulator(cartpole(damping=0.02), dt=0.02)
        self.initial = self.sim.reset("hanging")
        self.upper = np.full(self.steps, 30.0)  # N
        self.lower = -self.upper
        late = np.arange(self.steps + 1) >= 2 * self.steps // 3
        self.weight = (late / late.sum())[:, None, None]

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return 2.0 * rng.normal(size=(starts, self.steps)).cumsum(1) / np.sqrt(self.steps)

    def score(self, traj: Trajectory) -> Score:
        states = State(traj.q, traj.v)
        out, w = self.sim.outputs(states), self.weight
        error, speed = out.site_position - [0.0, 0.0, 1.0], out.site_velocity
        bars = Outputs(site_position=2.0 * w * error, site_velocity=0.1 * w * speed)
        bars_of_states = self.sim.outputs_vjp(states, bars)
        return Score(np.sum(w * (error**2 + 0.05 * speed**2), (1, 2, 3)), bars_of_states.q, bars_of_states.v)

    def penalty(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return EFFORT * np.sum(x**2, 1), 2 * EFFORT * x

    def error(self, loss: np.ndarray) -> np.ndarray:
        return loss

    def loss_goal(self) -> float:
        return self.goal
