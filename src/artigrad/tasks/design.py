"""Design: lengths and twists of an arm whose tool follows a path (Heiden et al. 2019, section 4.2).

Four joints move in a given way; the twelve Denavit-Hartenberg parameters (d, a, alpha) are fitted to tool positions at 100
times. The path is that of an arm with d and a in 0.1 to 0.5 m and any alpha, and the initial guess is that arm with N(0,
0.2) added to every parameter. Poses of all times and all arms are one call, and so is their gradient with respect to
`Params`: lengths and twists are `position` and `rotation` of the next body, or of the tool.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.params import Params
from ..model.state import State
from ..robots import arm_dh
from ..simulate.checkpoints import EveryStep
from ..simulate.results import Outputs, Trajectory
from ..simulate.simulator import Simulator
from .task import Score, Task

JOINTS, POINTS = 4, 100


class Design(Task):
    """Mean squared distance of the tool from its path, as a function of (d, a, alpha) of four joints. Every initial guess
    has its own arm and path."""

    name = "design"
    summary = "lengths and twists of an arm are found whose tool follows a path (Heiden 2019)"
    variables = "Denavit-Hartenberg numbers"
    label = "root mean square distance from the path / m"
    goal = 1e-6
    method = "lbfgs"
    settings = {
        "adam": {"learning_rate": 0.02, "half_life": 50},
        "sgd": {"learning_rate": 1.0, "min_loss": 0.0},
        "lbfgs": {"memory": 30},
        "cma-es": {"sigma": 0.2},
    }
    iterations = {"adam": 400, "sgd": 400, "lbfgs": 200, "cma-es": 1000}

    def __init__(self, *, points: int = POINTS):
        self.sim = Simulator(arm_dh(np.full((JOINTS, 3), 0.3)), dt=5.0 / points)
        t = np.linspace(0, 2 * np.pi, points)
        self.q = np.stack([np.sin((k + 1) * t / 2 + k) * 1.2 for k in range(JOINTS)], 1)  # joint angles over time
        self.initial = self.sim.reset()
        self.lower, self.upper = np.full(3 * JOINTS, -4.0), np.full(3 * JOINTS, 4.0)

    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        true = rng.uniform(0.1, 0.5, (starts, JOINTS, 3))
        true[..., 2] = rng.uniform(-np.pi / 2, np.pi / 2, (starts, JOINTS))
        self.path = self._tools(true.reshape(starts, -1))
        return (true + rng.normal(0.0, 0.2, true.shape)).reshape(starts, -1)

    # -- kinematics ----------------------------------------------------------------------------------------------------
    def params(self, x: np.ndarray) -> Params:
        """Return a set of parameters for every row of x."""
        d, a, alpha = np.moveaxis(x.reshape(len(x), JOINTS, 3), -1, 0)
        own, zero = self.sim.model.params, np.zeros_like(d)
        place, turn = np.stack([a, zero, d], -1), np.stack([np.cos(alpha / 2), np.sin(alpha / 2), zero, zero], -1)
        position, rotation = (np.repeat(own[name][None], len(x), 0) for name in ("position", "rotation"))
        position[:, 1:], rotation[:, 1:] = place[:, :-1], turn[:, :-1]
        tool: dict[str, Any] = {"site_position": place[:, -1:], "site_rotation": turn[:, -1:]}
        return own.replace(position=position, rotation=rotation, **tool)

    def _states(self, count: int) -> State:
        q = np.repeat(self.q[None], count, 0)
        return State(q, np.zeros_like(q))

    def _tools(self, x: np.ndarray) -> np.ndarray:
        """Return tool positions (B, points, 3)."""
        return self.sim.outputs(self._states(len(x)), params=self.params(x)).site_position[:, :, 0]

    def loss(self, x: np.ndarray) -> np.ndarray:
        return np.sum((self._tools(x) - self._path(len(x))) ** 2, (1, 2)) / len(self.q)

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away, alpha = self._tools(x) - self._path(len(x)), x.reshape(len(x), JOINTS, 3)[..., 2]
        bars = Outputs(site_position=2.0 * away[:, :, None] / len(self.q))
        grad = self.sim.outputs_vjp(self._states(len(x)), bars, params=self.params(x)).params
        place = np.concatenate([grad.position[:, 1:], grad.site_position], 1)
        turn = np.concatenate([grad.rotation[:, 1:], grad.site_rotation], 1)
        twist = 0.5 * (np.cos(alpha / 2) * turn[..., 1] - np.sin(alpha / 2) * turn[..., 0])
        out = np.stack([place[..., 2], place[..., 0], twist], -1)
        return np.sum(away**2, (1, 2)) / len(self.q), out.reshape(len(x), -1)

    def _path(self, count: int) -> np.ndarray:
        """Return the path of every row; the rows of a population belong to one initial guess."""
        return np.repeat(self.path, count // len(self.path), 0)

    # -- for the video -------------------------------------------------------------------------------------------------
    def score(self, traj: Trajectory) -> Score:
        raise NotImplementedError("the loss is of poses, not of a motion")

    def rollout(self, x: np.ndarray) -> Trajectory:
        """Return the poses of the arm of x over time, without physics."""
        states, params = self._states(len(x)), self.params(x)
        u = np.zeros((len(x), len(self.q) - 1, self.sim.model.nu))
        final = State(states.q[:, -1], states.v[:, -1])
        about = (u, None, params, len(self.q) - 1, EveryStep(), {0: states}, True, np.zeros(len(x)), (0.0,))
        return Trajectory(self.sim, final, *about)
