"""Golf: a club on two joints strikes a ball to a target with 1000 x 2 torques (ICML 2021, figure 6b).

Gradients: the loss depends on the controls through one step, the impact, some 0.57 s after the start, at 5 m/s. It is
resolved within the step in which the ball would be reached, so the trajectory is a smooth function of the torques up to the
index of that step: along a random direction the gradient agrees with finite differences to 1e-7. Where the index changes
the loss jumps by the flight of the ball in a millisecond; Adam's steps are longer than that. In a step of 1 ms club and
ball approach by at most 6 mm, within the default `margin` of 10 mm. Restitution 0.5 is far above `bounce_threshold`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..model.model import Model
from ..robots.inertias import sphere
from ..simulate.results import Trajectory
from ..simulate.simulator import Simulator
from . import props as looks
from .task import Score, Task, distance

BALL = slice(2, 5)  # of q
RADIUS, TEE = 0.025, 0.025  # radius of the ball, half edge of the tee, m
PLACE = (0.0, -0.1, -0.85)  # initial position of the ball, m


def club(target: Any) -> Model:
    """Build two horizontal links of 0.5 m about x, a club on the second, and a ball on a tee below and beyond."""
    b = ModelBuilder("golf", gravity=(0.0, 0.0, -9.8))
    b.add_body(
        "arm",
        joint="revolute",
        axis=(1.0, 0.0, 0.0),
        mass=1.0,
        com=(0.0, 0.5, 0.0),
        inertia=(0.00494875, 0.00494174, 0.002219),
    )
    b.add_body(
        "club",
        "arm",
        joint="revolute",
        axis=(1.0, 0.0, 0.0),
        position=(0.0, 0.5, 0.0),
        mass=2.16,
        com=(0.0, 0.5, 0.0),
        inertia=(0.00539427, 0.0048979, 0.00311573),
    )
    hard: dict[str, Any] = {"friction": 2.0, "restitution": 0.5}
    b.add_box("club", (0.025, 0.25, 0.025), name="club", position=(0.0, 0.25, 0.0), group=1, touches=2, **hard)
    below = (PLACE[0], PLACE[1], PLACE[2] - RADIUS - TEE)
    b.add_box("world", (TEE, TEE, TEE), name="tee", position=below, group=1, touches=2, **hard)
    b.add_body("ball", joint="free", mass=0.5, inertia=sphere(0.5, RADIUS), position=PLACE)
    b.add_sphere("ball", RADIUS, name="ball", group=2, touches=1, **hard)
    b.add_motor("shoulder", "arm")
    b.add_motor("wrist", "club")
    looks.floor(b, -1.1)
    looks.stick(b, "arm", (0.0, 0.0, 0.0), (0.0, 0.5, 0.0), 0.025)
    looks.box(b, "club", (0.025, 0.25, 0.025), (0.0, 0.25, 0.0), looks.BLUE)
    looks.box(b, "world", (TEE, TEE, 0.1125), (PLACE[0], PLACE[1], -0.9875))
    looks.ball(b, "ball", RADIUS)
    looks.ball(b, "world", 0.05, target, looks.GOAL)
    b.add_keyframe("home", q=[0.0, 0.0, *PLACE, 1.0, 0.0, 0.0, 0.0])
    return b.build()


class Golf(Task):
    """Distance of the ball from a target after one second, as a function of the torques of all steps."""

    name = "golf"
    summary = "a club learns to hit a ball to a point 3 m away"
    law = "hard"  # the ball bounces off the club
    variables = "torques"
    label = "distance of the ball from the target / m"
    goal = 0.05
    settings = {
        "adam": {"learning_rate": 1.0},
        "sgd": {"learning_rate": 300.0, "max_grad_norm": 0.05},
        "lbfgs": {},
        "cma-es": {"sigma": 1.0},
    }
    iterations = {"adam": 60, "sgd": 300, "lbfgs": 60, "cma-es": 1500}
    target = (0.0, -3.0, -1.0)

    def __init__(self, target: Any = None, *, steps: int = 1000):
        self.goal_position = np.array(self.target if target is None else target, dtype=float)
        self.steps = steps
        self.sim = Simulator(club(self.goal_position), dt=1e-3, law=self.contact_law)
        self.initial = self.sim.reset("home")
        self.upper = np.full(2 * steps, 200.0)  # bounds, N m, far beyond solutions
        self.lower = -self.upper

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return rng.normal(size=(starts, self.n))

    def score(self, traj: Trajectory) -> Score:
        return distance(traj, BALL, self.goal_position)
