"""Task: base class of optimization tasks, with a scene, variables, a loss and default methods. One file per task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np

from ..model.options import HardOptions, SoftOptions
from ..model.state import State
from ..optimize.problem import check_loss
from ..simulate.results import Gradient, Trajectory
from ..simulate.simulator import Simulator


class Score(NamedTuple):
    """Loss of trajectories and its cotangents.

    Attributes:
      loss: Losses (B,).
      q_bar, v_bar: Cotangents of q and v, of all states or of the last one; None: zero.
    """

    loss: np.ndarray
    q_bar: np.ndarray | None = None
    v_bar: np.ndarray | None = None


class Task(ABC):
    """An `optimize.Problem` on a simulated scene. Points x are (B, n), one row per batch element.

    Attributes:
      name: Name on the command line.
      summary: One line.
      variables: Description of the variables.
      label: Description of `error`, with its unit.
      goal: Error at which the task is solved.
      method: Default method.
      settings, iterations: Settings and maximum number of iterations of each method.
      law: Contact model; "hard" where the published experiment uses it.
      sim: Simulator.
      initial: Initial state of all trajectories.
      with_params: True if the variables are Params.
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

    @property
    def contact_law(self) -> SoftOptions | HardOptions:
        """Contact law of the Simulator; the hard one has the softness of the published experiments."""
        return HardOptions(softness=0.0, absolute_softness=1e-6) if self.law == "hard" else SoftOptions()

    @abstractmethod
    def start(self, rng: np.random.Generator, starts: int) -> np.ndarray:
        """Return initial guesses (starts, n)."""

    def rollout(self, x: np.ndarray) -> Trajectory:
        """Return the trajectories of variables x (B, n). By default they are the controls of all steps."""
        return self.sim.rollout(self.states(len(x)), x.reshape(len(x), -1, self.sim.model.nu))

    @abstractmethod
    def score(self, traj: Trajectory) -> Score:
        """Return the loss of trajectories."""

    def pull_back(self, grad: Gradient) -> np.ndarray:
        """Return the gradient of the variables (B, n) from the gradient of the rollouts."""
        return grad.u.reshape(len(grad.u), -1)

    def penalty(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a cost of the variables, (B,), and its gradient (B, n)."""
        return np.zeros(len(x)), np.zeros_like(x)

    def error(self, loss: np.ndarray) -> np.ndarray:
        """Return the error shown to users. By default a distance, if the loss is its square."""
        return np.sqrt(loss)

    def loss_goal(self) -> float:
        """Return the loss at which the error is `goal`."""
        return self.goal**2

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.lower)

    def loss(self, x: np.ndarray) -> np.ndarray:
        """Return the loss (B,) of each row of x (B, n)."""
        return self.score(self.rollout(x)).loss + self.penalty(x)[0]

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss (B,) and its gradient (B, n)."""
        traj = self.rollout(x)
        score = self.score(traj)
        check_loss(score.loss)
        grad = self.sim.vjp(traj, q_bar=score.q_bar, v_bar=score.v_bar, with_params=self.with_params)
        cost, cost_bar = self.penalty(x)
        return score.loss + cost, self.pull_back(grad) + cost_bar

    def states(self, batch: int) -> State:
        """Return the initial state, repeated `batch` times."""
        return self.initial.map(lambda part: np.repeat(part[None], batch, 0))


def distance(traj: Trajectory, where: slice, target: np.ndarray) -> Score:
    """Return the squared distance of entries `where` of the last q from a target."""
    error = traj.final.q[:, where] - target
    q_bar = np.zeros_like(traj.final.q)
    q_bar[:, where] = 2 * error
    return Score(np.sum(error**2, 1), q_bar)
