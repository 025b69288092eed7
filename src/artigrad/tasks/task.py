"""Task: a scene, variables, a loss, and how to minimise it. One file a task; this is what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np

from ..model.state import State
from ..optimize.problem import check_loss
from ..simulate.results import Gradient, Trajectory
from ..simulate.simulator import Simulator


class Score(NamedTuple):
    """loss: (B,). q_bar, v_bar: its cotangents with respect to the states, of all steps or of the last; None is zero."""

    loss: np.ndarray
    q_bar: np.ndarray | None = None
    v_bar: np.ndarray | None = None


class Task(ABC):
    """An `optimize.Problem` with a scene that can be looked at. Points x are (B, n), one row per robot of a batch.

    name: as on the command line. summary: one line. variables: what they are. label: what `error` is, with its unit. goal:
    the error at which it counts as solved. method: the default one. settings, iterations: of every method; iterations at
    most. law: of contact, "hard" where the published experiment has it so. sim, initial: the simulator, and the state that all
    motions begin in. with_params: whether variables are Params.
    """

    name: str
    summary: str
    variables: str
    label: str
    goal: float
    method: str = "adam"
    settings: dict[str, dict[str, Any]]
    iterations: dict[str, int]
    with_params = False
    law: Literal["soft", "hard"] = "soft"
    sim: Simulator
    initial: State
    lower: np.ndarray
    upper: np.ndarray

    @abstractmethod
    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        """Where to begin: (starts, n)."""

    def rollout(self, x: np.ndarray) -> Trajectory:
        """The motions of variables x (B, n). Here: they are the controls of all steps."""
        return self.sim.rollout(self.states(len(x)), x.reshape(len(x), -1, self.sim.model.nu))

    @abstractmethod
    def score(self, traj: Trajectory) -> Score:
        """The loss of motions."""

    def pull_back(self, grad: Gradient) -> np.ndarray:
        """From the gradient of rollouts to that of the variables, (B, n)."""
        return grad.u.reshape(len(grad.u), -1)

    def penalty(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the variables themselves cost, (B,), and its gradient (B, n)."""
        return np.zeros(len(x)), np.zeros_like(x)

    def error(self, loss: np.ndarray) -> np.ndarray:
        """The loss as a person reads it. Here: a distance, where the loss is its square."""
        return np.sqrt(loss)

    def loss_goal(self) -> float:
        """The loss at which the error is `goal`."""
        return self.goal**2

    @property
    def n(self) -> int:
        """How many variables."""
        return len(self.lower)

    def loss(self, x: np.ndarray) -> np.ndarray:
        """The loss (B,) of each row of x (B, n)."""
        return self.score(self.rollout(x)).loss + self.penalty(x)[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss (B,) and its gradient (B, n)."""
        traj = self.rollout(x)
        score = self.score(traj)
        check_loss(score.loss)
        grad = self.sim.vjp(traj, score.q_bar, score.v_bar, with_params=self.with_params)
        cost, cost_bar = self.penalty(x)
        return score.loss + cost, self.pull_back(grad) + cost_bar

    def states(self, batch: int) -> State:
        """The initial state, so many times."""
        return self.initial.map(lambda part: np.repeat(part[None], batch, 0))


def distance(traj: Trajectory, where: slice, target: np.ndarray) -> Score:
    """The squared distance of entries `where` of the last q from a target."""
    error = traj.final.q[:, where] - target
    q_bar = np.zeros_like(traj.final.q)
    q_bar[:, where] = 2 * error
    return Score(np.sum(error**2, 1), q_bar)
