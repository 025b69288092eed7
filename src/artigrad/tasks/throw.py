"""Throw: a Franka arm throws a ball to a target with 1000 x 7 torques (ICML 2021, figure 6a).

Two scenes. `throw` is realistic: gravity, a golf ball, torques within the arm's limits, added to gravity compensation; the
fingers open after 0.6 s. `throw-paper` is the published one: little gravity, ten seconds in steps of 10 ms, heavy fingers,
a ball of inertia 1, a target within the arm's reach.

Gradients: the ball is held by friction at two contacts for hundreds of steps, then released. In a firm grip both contacts
stick all the time with a large margin (`health.switch_margin` of the initial guess: 0.01 and 0.03 m/s), so that the gradient is
smooth: it agrees with finite differences to 1e-8. The fingers have servos for this; in the published code they have no
force, the ball drifts out of the hand after seconds, and no torque can bring it back. The friction pyramid is sufficient,
as nothing slips. `throw` has the soft contact model, `throw-paper` the hard one, as published.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..model.model import Model
from ..model.state import State
from ..robots.inertias import sphere
from ..simulate.results import Gradient, Trajectory
from ..simulate.simulator import Simulator
from . import props as looks
from .task import Score, Task, distance

# position of each joint in the parent link, rotation about x (quarter turns), mass, center of mass, largest torque
LINKS = (
    ((0.0, 0.0, 0.333), 0, 2.7, (0.0, -0.04, -0.05), 87.0),
    ((0.0, 0.0, 0.0), -1, 2.73, (0.0, -0.04, 0.06), 87.0),
    ((0.0, -0.316, 0.0), 1, 2.04, (0.01, 0.01, -0.05), 87.0),
    ((0.0825, 0.0, 0.0), 1, 2.08, (-0.03, 0.03, 0.02), 87.0),
    ((-0.0825, 0.384, 0.0), -1, 3.0, (0.0, 0.04, -0.12), 12.0),
    ((0.0, 0.0, 0.0), 1, 1.3, (0.04, 0.0, 0.0), 12.0),
    ((0.088, 0.0, 0.0), 1, 0.2, (0.0, 0.0, 0.08), 12.0),
)
ARM, FINGERS, BALL = slice(0, 7), slice(7, 9), slice(9, 12)  # of u and q
MOST = np.array([link[-1] for link in LINKS])
FINGER = 0.01  # m, half of a finger's thickness
READY = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)


def arm(
    name: str,
    *,
    gravity: float,
    pose: Any,
    damping: float,
    finger: tuple[float, float],
    servo: tuple[float, float],
    ball: tuple[float, float],
    target: Any,
) -> Model:
    """Build the arm with a ball between its fingers.

    Args:
      name: Name of the model.
      finger: Mass and inertia.
      servo: Gain and damping of the finger servos.
      ball: Radius and inertia.
      target: Position of the target's visual.
    """
    b = ModelBuilder(name, gravity=(0.0, 0.0, -gravity))
    parent = "world"
    for i, (place, quarters, mass, com, _) in enumerate(LINKS, start=1):
        turn = (np.cos(quarters * np.pi / 4), np.sin(quarters * np.pi / 4), 0.0, 0.0)
        link: dict[str, Any] = {"position": place, "rotation": turn, "mass": mass, "com": com, "damping": damping}
        parent = b.add_body(f"link{i}", parent, joint="revolute", inertia=(0.1, 0.1, 0.1), **link)
        b.add_motor(f"joint{i}", parent)
    eighth = (np.cos(np.pi / 8), 0.0, 0.0, -np.sin(np.pi / 8))
    b.add_body(
        "hand", parent, position=(0, 0, 0.107), rotation=eighth, mass=0.81, com=(0, 0, 0.04), inertia=(0.1, 0.1, 0.1)
    )
    mass, inertia = finger
    for side, sign in (("left", 1), ("right", -1)):
        slide: dict[str, Any] = {
            "position": (0.0, 0.0, 0.0584),
            "axis": (0.0, sign, 0.0),
            "com": (0.0, 0.01 * sign, 0.045),
        }
        b.add_body(side, "hand", joint="prismatic", mass=mass, inertia=(inertia,) * 3, **slide)
        b.add_box(side, (FINGER, FINGER, 0.05), name=side, friction=2.0, group=1, touches=2)
        b.add_position_servo(side, side, gain=servo[0], damping=servo[1])
    b.add_site("grip", "hand", position=(0.0, 0.0, 0.0584 + 0.0434))
    radius, inertia = ball
    b.add_body("ball", joint="free", mass=0.05, inertia=(inertia,) * 3)
    b.add_sphere("ball", radius, name="ball", friction=2.0, group=2, touches=1)
    _dress(b, radius, target)
    empty = b.build()
    q = empty.keyframes["zero"][0].copy()
    q[ARM], q[FINGERS] = pose, FINGER + radius - 1e-4  # penetration of resting contacts
    q[BALL] = Simulator(empty).sites(State(q, np.zeros(empty.nv)))[0]
    b.add_keyframe("home", q=q)
    return b.build()


def _dress(b: ModelBuilder, radius: float, target: Any) -> None:
    """Add visuals."""
    looks.floor(b, 0.0)
    looks.stick(b, "world", (0.0, 0.0, 0.02), (0.0, 0.0, 0.25), 0.07)
    ends = [link[0] for link in LINKS[1:]] + [(0.0, 0.0, 0.107)]
    for i, end in enumerate(ends, start=1):
        looks.stick(b, f"link{i}", (0.0, 0.0, -0.05), (0.0, 0.0, 0.05), 0.062, looks.DARK)
        if np.any(end):
            looks.stick(b, f"link{i}", (0.0, 0.0, 0.0), end, 0.05)
    looks.box(b, "hand", (0.02, 0.09, 0.03), (0.0, 0.0, 0.03))
    for side in ("left", "right"):
        looks.box(b, side, (FINGER, FINGER, 0.05), rgba=looks.WHITE)
    looks.ball(b, "ball", radius)
    looks.ball(b, "world", 0.04, target, looks.GOAL)


class Throw(Task):
    """Final distance of the ball from a target, as a function of the torques of all steps."""

    name = "throw"
    summary = "a robot arm learns to throw a ball into a point 1.2 m away"
    variables = "torques"
    label = "distance of the ball from the target / m"
    goal = 0.001
    method = "lbfgs"
    settings = {
        "adam": {"learning_rate": 0.2, "betas": (0.7, 0.9)},
        "sgd": {"learning_rate": 2.0, "min_loss": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 1.0},
    }
    iterations = {"adam": 60, "sgd": 60, "lbfgs": 60, "cma-es": 500}
    dt, steps, release = 1e-3, 1000, 600
    noise = 1.0  # standard deviation of the initial torques, N m
    closed, opened = 0.02, 0.06  # targets of the finger servos, m: closed with 20 N, and open
    target = (1.1, 0.4, 0.05)

    def __init__(self, target: Any = None):
        self.goal_position = np.array(self.target if target is None else target, dtype=float)
        self.sim = Simulator(self.model(), dt=self.dt, law=self.contact_law)
        self.initial = self.sim.reset("home")
        self.hold = self.sim.inverse_dynamics(self.initial, np.zeros(self.sim.model.nv))[ARM]
        self.lower, self.upper = (np.tile(side * MOST - self.hold, self.steps) for side in (-1, 1))

    def model(self) -> Model:
        """Return the arm at its initial pose, with a golf ball."""
        radius = 0.02
        inertia = sphere(0.05, radius)[0]
        return arm(
            self.name,
            gravity=9.81,
            pose=READY,
            damping=2.0,
            finger=(0.1, 1e-4),
            servo=(2000.0, 40.0),
            ball=(radius, inertia),
            target=self.goal_position,
        )

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        return self.noise * rng.normal(size=(starts, self.n))

    def rollout(self, x: np.ndarray) -> Trajectory:
        u = np.zeros((len(x), self.steps, 9))
        u[..., ARM] = self.hold + x.reshape(len(x), self.steps, 7)
        u[:, : self.release, FINGERS], u[:, self.release :, FINGERS] = self.closed, self.opened
        return self.sim.rollout(self.states(len(x)), u)

    def score(self, traj: Trajectory) -> Score:
        return distance(traj, BALL, self.goal_position)

    def pull_back(self, grad: Gradient) -> np.ndarray:
        return grad.u[..., ARM].reshape(len(grad.u), -1)


class PaperThrow(Throw):
    """The published scene, with a grip that opens after nine of ten seconds."""

    name = "throw-paper"
    summary = "the same in the scene of the paper: hardly any gravity, ten seconds"
    law = "hard"
    settings = {
        "adam": {"learning_rate": 1e-3},
        "sgd": {"learning_rate": 1.0, "min_loss": 0.0},
        "lbfgs": {},
        "cma-es": {"sigma": 0.03},
    }
    dt, release = 1e-2, 900
    noise = 0.03
    closed, opened = 0.01, 0.03  # m: closed with 10 N, and open
    target = (0.2679, 0.2135, 0.6616)

    def model(self) -> Model:
        return arm(
            self.name,
            gravity=0.00102,
            pose=np.zeros(7),
            damping=0.0,
            finger=(3.0, 0.1),
            servo=(1000.0, 100.0),
            ball=(0.01, 1.0),
            target=self.goal_position,
        )
