"""Racecar: friction between tires and floor with which a car reaches x = 0.8 m after one second (ICML 2021, figure 7).

The car of the published code: 5.9 kg, four wheels with spheres for contact, front wheels on free steering hinges, no
motors. It is released 0.5 m above the floor at 1 m/s with its wheels at rest. Landing and rolling take some speed; then the
front wheels, driven outside of their hinges, turn to their limits and slide. All three effects grow with friction. Without
the fall, x = 0.8 m would be at a friction of 0.08; with it, it is near 0.2, as in the paper.

Gradients: with the friction pyramid, as in the paper, every step is solved, also the landing on four wheels, and the
gradient agrees with finite differences to 1e-8. With the circular cone the landing is not solved (`traj.violation` 2e-3
m/s) and the error of the gradient is several per cent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..model.model import Model
from ..simulate.results import Gradient, Trajectory
from ..simulate.simulator import Simulator
from . import props as looks
from .task import Score, Task, distance

FALL, SPEED = 0.5, 1.0  # m, m/s
RADIUS, OUTSIDE = 0.05, 0.0225  # radius of a wheel, distance of its center from its hinge, m


def car(target: float) -> Model:
    """Build the racecar on spherical wheels; friction is the floor's. `target` is the position of a line on the floor."""
    b = ModelBuilder("racecar", gravity=(0.0, 0.0, -9.8))
    trunk, small = (0.010609, 0.050409, 0.05865), (4e-6, 4e-6, 4e-6)
    b.add_body("base", joint="free", mass=0.1, inertia=trunk)
    b.add_body("chassis", "base", position=(0.0, 0.0, RADIUS), mass=0.1, inertia=trunk)
    b.add_body("load", "chassis", mass=4.0, com=(0.1477, 0.0, 0.0), inertia=trunk)
    b.add_body("laser", "chassis", position=(0.265, 0.0, 0.075), mass=0.13, inertia=small)
    for side, y in (("left", 1), ("right", -1)):
        hinge = b.add_body(
            f"{side}_hinge",
            "chassis",
            joint="revolute",
            axis=(0.0, 0.0, 1.0),
            position=(0.325, 0.1 * y, 0.0),
            mass=0.1,
            inertia=small,
            limit=(-1.0, 1.0),
        )
        for name, parent, place in (("front", hinge, (0.0, 0.0, 0.0)), ("rear", "chassis", (0.0, 0.1 * y, 0.0))):
            wheel = b.add_body(
                f"{side}_{name}",
                parent,
                joint="revolute",
                axis=(0.0, 1.0, 0.0),
                position=place,
                mass=0.34055,
                com=(0.0, OUTSIDE * y, 0.0),
                inertia=(0.00026046, 0.00041226, 0.00026046),
            )
            _wheel(b, wheel, y)
            b.add_sphere(wheel, RADIUS, name=wheel, position=(0.0, OUTSIDE * y, 0.0), friction=0.0, group=1, touches=2)
    b.add_plane(name="floor", group=2, touches=1)  # a pair has the larger friction, this one
    looks.box(b, "chassis", (0.2, 0.07, 0.025), (0.1625, 0.0, 0.02), looks.BLUE)
    looks.box(b, "laser", (0.03, 0.03, 0.03))
    looks.floor(b, 0.0)
    looks.box(b, "world", (0.004, 0.3, 0.001), (target, 0.0, 0.001), looks.GOAL)
    rest = np.zeros(6)
    b.add_keyframe("home", q=[0.0, 0.0, FALL, 1.0, 0.0, 0.0, 0.0, *rest], v=[SPEED, 0.0, 0.0, 0.0, 0.0, 0.0, *rest])
    return b.build()


def _wheel(b: ModelBuilder, wheel: str, y: int) -> None:
    """Add a tire with a white spoke, which shows its rotation."""
    about_y = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)
    middle = (0.0, OUTSIDE * y, 0.0)
    b.add_visual(wheel, "cylinder", size=(RADIUS, 0.02), position=middle, quaternion=about_y, rgba=looks.DARK)
    looks.box(b, wheel, (0.035, 0.022, 0.006), middle, looks.WHITE)


class Racecar(Task):
    """Distance of the car from x = 0.8 m after one second, as a function of friction."""

    name = "racecar"
    summary = "find the friction of the floor from how far a car comes"
    law = "hard"
    variables = "friction"
    label = "distance of the car from x = 0.8 m / m"
    goal = 0.001
    method = "sgd"
    settings = {
        "adam": {"learning_rate": 0.05},
        "sgd": {"learning_rate": 2.0, "min_loss": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 0.01},
    }
    iterations = {"adam": 60, "sgd": 10, "lbfgs": 10, "cma-es": 200}
    with_params = True
    target = 0.8

    def __init__(self, target: Any = None, *, steps: int = 1000):
        self.goal_position = np.array([self.target if target is None else target], dtype=float)
        self.steps = steps
        model = car(float(self.goal_position[0]))
        self.floor = model.shape("floor")
        self.sim = Simulator(model, dt=1e-3, law=self.contact_law)
        self.initial = self.sim.reset("home")
        self.lower, self.upper = np.array([0.0]), np.array([1.0])

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        """Return initial guesses: the paper's 0.002, then random values up to 0.5."""
        return np.concatenate([[[0.002]], rng.uniform(0.0, 0.5, size=(starts - 1, 1))])

    def rollout(self, x: np.ndarray) -> Trajectory:
        params = self.sim.model.params
        friction = np.repeat(params.friction[None], len(x), 0)
        friction[:, self.floor] = x[:, 0]
        return self.sim.rollout(self.states(len(x)), steps=self.steps, params=params.replace(friction=friction))

    def score(self, traj: Trajectory) -> Score:
        return distance(traj, slice(0, 1), self.goal_position)

    def pull_back(self, grad: Gradient) -> np.ndarray:
        assert grad.params is not None
        return grad.params.friction[:, self.floor, None]
