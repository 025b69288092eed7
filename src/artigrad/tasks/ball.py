"""Ball: throw a ball so that it comes to rest at a point (Degrave et al. 2019, section 3.1).

A ball of 1 m diameter, friction 1, restitution 0.5, is thrown from 1 m above the floor; after 5 s it shall rest 10 m away.
A rolling ball does not stop, so it has to land with enough backspin to lose its speed while it slides.

The six variables determine the initial velocity and spin. Instead of the spin about x and y they contain the final rolling
velocity, (5 v + 2 r spin)/7: friction at the lowest point does not change it. In velocity and spin the loss is a narrow
valley, a thousand times as steep across as along; CMA-ES has the same variables.

Gradients: each landing is resolved within one step, so that the trajectory is a smooth function up to the index of the step
of the landing; where this changes it has a small jump.
"""

from __future__ import annotations

import numpy as np

from ..build.builder import ModelBuilder
from ..model.model import Model
from ..model.state import State
from ..robots.inertias import sphere
from ..simulate.results import Gradient, Trajectory
from ..simulate.simulator import Simulator
from . import props as looks
from .task import Score, Task

RADIUS, MASS, HEIGHT = 0.5, 1.0, 1.0
TARGET = np.array([10.0, 0.0])
ROLLS = 5.0  # time scale of rolling, s: velocities times this are lengths
# from the variables to first velocities: v (3), velocities with which it rolls on (2), spin about z
TO_MOTION = np.zeros((6, 6))
TO_MOTION[[0, 1, 2, 5], [0, 1, 2, 5]] = 1.0
TO_MOTION[4, [0, 3]] = np.array([-5.0, 7.0 / ROLLS]) / (2 * RADIUS)  # spin about y rolls along x
TO_MOTION[3, [1, 4]] = np.array([5.0, -7.0 / ROLLS]) / (2 * RADIUS)


def thrown() -> Model:
    """Build a ball above a floor."""
    b = ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=MASS, inertia=sphere(MASS, RADIUS), position=(0.0, 0.0, HEIGHT))
    b.add_sphere("ball", RADIUS, name="ball", friction=1.0, restitution=0.5)
    b.add_plane(friction=1.0, restitution=0.5)
    looks.floor(b, 0.0)
    looks.ball(b, "ball", RADIUS)
    for x in (-1, 1):  # marks that show its spin
        looks.ball(b, "ball", 0.2, (x * 0.36, 0.0, 0.0), looks.WHITE)
    looks.ball(b, "world", 0.1, (*TARGET, 0.0), looks.GOAL)
    return b.build()


class Ball(Task):
    """Distance of the ball from the target after five seconds, and the distance that it would roll in five more."""

    name = "ball"
    summary = "a ball is thrown so that it comes to rest at a point 10 m away (Degrave 2019)"
    law = "hard"  # for restitution
    variables = "numbers of the first velocity"
    label = "distance from the target, and that of rolling on / m"
    goal = 0.01
    method = "adam"
    settings = {
        "adam": {"learning_rate": 0.5, "half_life": 40},
        "sgd": {"learning_rate": 1.0, "min_loss": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 1.0},
    }
    iterations = {"adam": 150, "sgd": 300, "lbfgs": 150, "cma-es": 600}

    def __init__(self, *, dt: float = 0.01, seconds: float = 5.0):
        self.sim = Simulator(thrown(), dt=dt, law=self.contact_law)
        self.steps = round(seconds / dt)
        self.initial = self.sim.reset()
        self.upper = np.full(6, 20.0)
        self.lower = -self.upper

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return rng.normal(size=(starts, 6)) + np.array([2.0, 0.0, 2.0, 0.0, 0.0, 0.0])

    def rollout(self, x: np.ndarray) -> Trajectory:
        return self.sim.rollout(State(self.states(len(x)).q, x @ TO_MOTION.T), steps=self.steps)

    def score(self, traj: Trajectory) -> Score:
        away, v = traj.final.q[:, :2] - TARGET, traj.final.v
        weight = ROLLS * np.array([1.0, 1.0, 1.0, RADIUS, RADIUS, RADIUS])
        q_bar = np.zeros_like(traj.final.q)
        q_bar[:, :2] = 2 * away
        return Score(np.sum(away**2, 1) + np.sum((weight * v) ** 2, 1), q_bar, 2 * weight**2 * v)

    def pull_back(self, grad: Gradient) -> np.ndarray:
        return grad.v0 @ TO_MOTION
