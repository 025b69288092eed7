"""EnvTask: robot, observation, reward and termination of an environment.

Everything is PyTorch on tensors with the batch axis first, so that autograd differentiates it. `artigrad.torch.rollout`
simulates from one state to the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor

from ..deprecation import rename_overrides, renamed
from ..model.model import Model
from ..simulate.simulator import Simulator

if TYPE_CHECKING:
    from .mujoco_fields import MujocoFields


@renamed(seen="extras")
class EnvState(NamedTuple):
    """State of a batch of B environments between two steps.

    Attributes:
      q: Coordinates, (B, nq), as MuJoCo's qpos.
      v: Velocities, (B, nv), as MuJoCo's qvel.
      extras: Quantities that `EnvTask.extras` computes with the simulator, (B, extras_size).
      goal: Goal of the episode, (B, goal_size).
      steps: Environment steps since the episode began, (B,), integers.
      act: Activations of the actuators, (B, na); zero in an initial state.
    """

    q: Tensor
    v: Tensor
    extras: Tensor
    goal: Tensor
    steps: Tensor
    act: Tensor = torch.zeros(0)


class RandomSource:
    """Random tensors of one generator, data type and device."""

    def __init__(self, generator: torch.Generator, dtype: torch.dtype):
        self.generator, self.dtype = generator, dtype

    def tensor(self, x: Any) -> Tensor:
        """Return given values as a tensor of this data type and device."""
        return torch.as_tensor(x, dtype=self.dtype, device=self.generator.device)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        """Return samples of the uniform distribution on [low, high)."""
        device = self.generator.device
        return low + (high - low) * torch.rand(shape, generator=self.generator, dtype=self.dtype, device=device)

    def normal(self, *shape: int) -> Tensor:
        """Return samples of the standard normal distribution."""
        return torch.randn(shape, generator=self.generator, dtype=self.dtype, device=self.generator.device)


@renamed(
    episode="max_episode_steps",
    hidden="num_excluded_positions",
    seen_size="extras_size",
    lagging="use_mjdata",
    start="sample_initial_state",
    goals="sample_goals",
    look="extras",
    see="mjdata_extras",
    moved="translated",
    over="terminated",
    recall="state_from_observation",
)
class EnvTask(ABC):
    """A robot and its task. Subclasses set the attributes and write the methods.

    Attributes:
      model: Robot.
      frame_skip: Simulator steps per environment step.
      max_episode_steps: Environment steps until an episode is truncated.
      observation_size: Length of an observation.
      limit: Actions lie in [-limit, limit].
      num_excluded_positions: Number of leading entries of q (horizontal base position) that the motion does not depend on.
        A step is simulated with these entries at zero, where single precision has the highest resolution.
      extras_size: Length of `EnvState.extras`.
      use_mjdata: If True, `mjdata_extras` replaces `extras`: the quantities are those that MuJoCo's mjData holds after a step,
        from the last evaluation of forces, as Gymnasium's tasks read them.
      goal_size: Length of `EnvState.goal`.
      options: Keyword arguments of Simulator; each instance has its copy.
    """

    model: Model
    frame_skip: int
    max_episode_steps: int
    observation_size: int
    limit: float = 1.0
    num_excluded_positions: int = 0
    extras_size: int = 0
    use_mjdata: bool = False
    goal_size: int = 0
    options: dict[str, Any] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        rename_overrides(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Create a task whose options are a copy of those of its class."""
        task = super().__new__(cls)
        task.options = dict(cls.options)
        return task

    def controls(self, action: Tensor) -> Tensor:
        """Return the simulator's controls (B, nu) for actions (B, nu)."""
        return action

    @abstractmethod
    def sample_initial_state(self, random: RandomSource, count: int) -> tuple[Tensor, Tensor]:
        """Return random initial q (count, nq) and v (count, nv). Quaternions are normalized afterwards."""

    def sample_goals(self, random: RandomSource, count: int) -> Tensor:
        """Return goals of new episodes, (count, goal_size)."""
        return random.uniform(0.0, 0.0, count, self.goal_size)

    def extras(self, sim: Simulator, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Return further quantities of a state, for example body positions by `artigrad.torch.outputs(sim, (q, v))` or sensors.

        Args:
          sim: Simulator of the environment.
          q: Coordinates, (B, nq).
          v: Velocities, (B, nv).
          u: Controls of the step that led to it, (B, nu); None for an initial state.

        Returns:
          Tensor (B, extras_size), stored as `EnvState.extras`.
        """
        raise NotImplementedError(f"{type(self).__name__} has an extras_size and no extras()")

    def mjdata_extras(self, fields: MujocoFields, q: Tensor, v: Tensor, u: Tensor | None) -> Tensor:
        """Return `extras` as MuJoCo's mjData holds them after an environment step (use_mjdata=True).

        Args:
          fields: Fields of mjData.
          q: Coordinates at the beginning of the last simulator step, (B, nq).
          v: Velocities there, (B, nv).
          u: Controls of that step; None for an initial state.
        """
        raise NotImplementedError

    @abstractmethod
    def observe(self, state: EnvState) -> Tensor:
        """Return observations (B, observation_size)."""

    @abstractmethod
    def reward(self, before: EnvState, action: Tensor, after: EnvState) -> Tensor:
        """Return rewards (B,) of a step from `before` to `after`.

        Args:
          before: State before the step.
          action: Actions as they were given, (B, nu), not clipped to the limit.
          after: State after the step.
        """

    def info(self, before: EnvState, action: Tensor, after: EnvState) -> dict[str, Tensor]:
        """Return further quantities of a step by name, (B,) each: the `info` of Gymnasium's environments."""
        return {}

    def translated(self, state: EnvState, offset: Tensor) -> EnvState:
        """Return the state with `offset` (B, num_excluded_positions) added to the first entries of q and to extras that depend
        on them."""
        n = self.num_excluded_positions
        return state._replace(q=torch.cat([state.q[:, :n] + offset, state.q[:, n:]], -1))

    def terminated(self, state: EnvState) -> Tensor:
        """Return True for environments that failed, (B,). Their episode ends, and no value is bootstrapped from it."""
        return torch.zeros_like(state.q[:, 0], dtype=torch.bool)

    def state_from_observation(self, observation: Tensor) -> EnvState:
        """Return a state with this observation, as far as `terminated` needs it; for model-based learning."""
        raise NotImplementedError(
            f"{type(self).__name__} has no state_from_observation(), which model-based learning needs"
        )
