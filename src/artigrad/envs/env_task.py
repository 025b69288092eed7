"""What makes an environment of a robot: how actions drive it, what is observed, what is rewarded, when it is over.

Everything is plain PyTorch on tensors with one row per robot, so that autograd differentiates it; the physics between two
moments is `artigrad.torch.rollout`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ..model.model import Model
from ..simulate.simulator import Simulator

if TYPE_CHECKING:
    from .mujoco_fields import MujocoFields


class Moment(NamedTuple):
    """Robots between two steps of an environment, one row each.

    q, v: the state. seen: (B, seen_size), what the task looked up in the simulator (`EnvTask.look`). goal: (B, goal_size), what
    the episode asks for. steps: (B,), steps of the environment since the episode began. act: (B, na), activations, of robots
    whose actuators have them; zero in a first state.
    """

    q: Tensor
    v: Tensor
    seen: Tensor
    goal: Tensor
    steps: Tensor
    act: Tensor = torch.zeros(0)


class Draw:
    """Random tensors of one generator, of one dtype, on one device."""

    def __init__(self, generator: torch.Generator, dtype: torch.dtype):
        self.generator, self.dtype = generator, dtype

    def tensor(self, x: Any) -> Tensor:
        """Given numbers, beside drawn ones."""
        return torch.as_tensor(x, dtype=self.dtype, device=self.generator.device)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        device = self.generator.device
        return low + (high - low) * torch.rand(shape, generator=self.generator, dtype=self.dtype, device=device)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=self.dtype, device=self.generator.device)


class EnvTask(ABC):
    """A robot and what it is to do. Subclasses set the fields and write the functions.

    model: the robot. frame_skip: steps of the simulator in one of the environment. episode: steps of the environment until it
    is cut off. hidden: nothing but rewards depends on so many first entries of q. limit: actions lie within -limit and limit.
    options: of the Simulator. seen_size, goal_size: of `Moment`. lagging: `see` in place of `look`.
    """

    model: Model
    frame_skip: int
    episode: int
    observation_size: int
    limit: float = 1.0
    hidden: int = 0
    seen_size: int = 0
    lagging: bool = False
    goal_size: int = 0
    options: dict[str, Any] = {}

    def controls(self, action: Tensor) -> Tensor:
        """The controls (B, nu) of an action (B, nu)."""
        return action

    @abstractmethod
    def start(self, draw: Draw, count: int) -> tuple[Tensor, Tensor]:
        """Random first states of `count` robots; quaternions need not have length 1."""

    def goals(self, draw: Draw, count: int) -> Tensor:
        """What new episodes ask for, (count, goal_size)."""
        return draw.uniform(0.0, 0.0, count, self.goal_size)

    def look(self, sim: Simulator, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """What else is to be known of a moment, (B, seen_size): places of bodies by `artigrad.torch.outputs(sim, (q, v))`,
        sensors, or u (B, nu), the controls that led to it, None in a first state."""
        raise NotImplementedError(f"{type(self).__name__} has a seen_size and no look()")

    def see(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Of Gymnasium's tasks: what MuJoCo's fields hold after a step whose last part began at (q, v) under u; u is None in a
        first state."""
        raise NotImplementedError

    @abstractmethod
    def observe(self, now: Moment) -> Tensor:
        """Observations (B, observation_size)."""

    @abstractmethod
    def reward(self, before: Moment, action: Tensor, after: Moment) -> Tensor:
        """Rewards (B,) of a step."""

    def moved(self, now: Moment, place: Tensor) -> Moment:
        """The same moment elsewhere: `place` (B, hidden) is added to the first entries of q, and to what was seen of them."""
        return now._replace(q=torch.cat([now.q[:, : self.hidden] + place, now.q[:, self.hidden :]], -1))

    def over(self, now: Moment) -> Tensor:
        """Which robots (B,) have failed, so that their episode ends."""
        return torch.zeros_like(now.q[:, 0], dtype=torch.bool)

    def recall(self, observation: Tensor) -> Moment:
        """A moment that looks like this, as far as `over` needs it: for whoever learns a model of the environment."""
        raise NotImplementedError(f"{type(self).__name__} does not tell from an observation whether an episode is over")
