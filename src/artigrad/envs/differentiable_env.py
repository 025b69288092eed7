"""DifferentiableEnv: a batch of environments in PyTorch, differentiable, on CPU and GPU."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from ..arguments import checked
from ..deprecation import renamed, renamed_arguments
from ..errors import InputError, is_whole
from ..model.sealed import Sealed
from .batch import Batch
from .env_task import EnvState, EnvTask


@renamed(last="next_observation")
class EnvStep(NamedTuple):
    """Result of one step of B environments.

    Attributes:
      observation: Observations for the next action, (B, observation_size): the first of a new episode where one ended.
      reward: Rewards, (B,).
      terminated: True where the task failed, (B,).
      truncated: True where the episode reached its maximum length, (B,).
      next_observation: Observations after the step, before auto-reset, (B, observation_size).
    """

    observation: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    next_observation: Tensor


@renamed(now="state", draw="random", episode="max_episode_steps", slopes="step_jacobian", jacobian="action_jacobian")
class DifferentiableEnv(Sealed):
    """A batch of environments whose steps are differentiable.

    Rewards and observations are differentiable with respect to all actions since the beginning of the episode or the last
    `detach`. An environment whose episode ends is reset within the same step; no gradient passes through the reset.

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      num_envs: Number of environments B.
      device: "cpu" or "cuda".
      dtype: "f32" or "f64".
      threads: Number of CPU threads; None: all cores.
      seed: Seed of initial states and goals.
      clip: Maximum norms of the cotangents of each environment's state and controls, applied at every step of the backward
        pass. Without it gradients through contact grow by orders of magnitude within tens of steps. None: no limit.
      max_episode_steps: Environment steps until truncation; None: the task's.
      options: Options of a task given by name.

    Attributes:
      state: Current EnvState; None before the first reset.
    """

    CALLED = "a DifferentiableEnv"
    OPEN = ("state", "clip", "max_episode_steps", "random")

    @renamed_arguments(episode="max_episode_steps")
    @checked
    def __init__(
        self,
        task: str | EnvTask,
        num_envs: int,
        *,
        device: str = "cpu",
        dtype: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        seed: int = 0,
        clip: float | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ):
        if not is_whole(num_envs, 1):
            raise InputError(f"num_envs is an integer of at least 1, not {num_envs!r}")
        if clip is not None and not clip > 0.0:
            raise InputError(f"clip is a positive norm, not {clip!r}")
        if max_episode_steps is not None and not is_whole(max_episode_steps, 1):
            raise InputError(f"max_episode_steps is an integer of at least 1, not {max_episode_steps!r}")
        self.batch = Batch(task, device=device, dtype=dtype, threads=threads, **options)
        self.task, self.num_envs, self.clip = self.batch.task, num_envs, clip
        self.max_episode_steps = self.task.max_episode_steps if max_episode_steps is None else max_episode_steps
        self.random = self.batch.random_source(seed)
        self.state: EnvState | None = None
        self._seal()

    def _remedy(self, name: str) -> str:
        """Return the remedy for attributes that the simulator and the batch depend on."""
        return "make another one" if hasattr(type(self), name) or name in self.__dict__ else ""

    @property
    def observation_size(self) -> int:
        """Length of an observation."""
        return self.task.observation_size

    @property
    def dt(self) -> float:
        """Duration of one environment step, s."""
        return self.batch.sim.dt * self.task.frame_skip

    @property
    def action_size(self) -> int:
        """Length of an action."""
        return self.task.model.nu

    @renamed_arguments(spread="stagger")
    def reset(self, *, stagger: bool = False) -> Tensor:
        """Begin an episode in all environments.

        Args:
          stagger: Begin at random step counts, so that truncations do not coincide.

        Returns:
          Observations (B, observation_size).
        """
        state = self.batch.initial_state(self.random, self.num_envs)
        if stagger:
            steps = self.random.uniform(0.0, float(self.max_episode_steps), self.num_envs).long()
            state = state._replace(steps=steps.clamp(max=self.max_episode_steps - 1))
        self.state = state
        return self.batch.observe(state)

    def step(self, action: Tensor) -> EnvStep:
        """Simulate one step of all environments, and reset those whose episode ends.

        Args:
          action: Actions (B, action_size) in [-limit, limit] of the task.
        """
        if self.state is None:
            raise InputError("call reset() before the first step")
        expected = (self.num_envs, self.action_size)
        if not isinstance(action, Tensor) or tuple(action.shape) != expected:
            found = tuple(action.shape) if isinstance(action, Tensor) else type(action).__name__
            raise InputError(f"actions are a tensor {expected}, not {found}")
        after, reward, terminated = self.batch.step(self.state, action, self.clip)
        truncated = (after.steps >= self.max_episode_steps) & ~terminated
        ended = terminated | truncated
        next_observation = self.batch.observe(after)
        observation = next_observation.clone()
        if self.batch.device.type != "cpu":  # without a synchronization of the GPU
            initial = self.batch.initial_state(self.random, self.num_envs)
            after = EnvState(*(_where(ended, x, y) for x, y in zip(initial, after, strict=True)))
            observation = self.batch.observe(after)
        elif ended.any():
            rows = ended.nonzero()[:, 0]
            initial = self.batch.initial_state(self.random, len(rows))
            after = EnvState(*(y.index_copy(0, rows, x) for x, y in zip(initial, after, strict=True)))
            observation = observation.index_copy(0, rows, self.batch.observe(initial))
        self.state = after
        return EnvStep(observation, reward, terminated, truncated, next_observation)

    def action_jacobian(self, state: EnvState, action: Tensor) -> tuple[EnvState, Tensor]:
        """Return the state after one step, before auto-reset, and its Jacobian with respect to the action.

        Simulates n copies of every environment, n = nq + nv + extras_size + na.

        Args:
          state: States, batch size B.
          action: Actions (B, action_size).

        Returns:
          The next EnvState, and the derivatives (B, n, action_size) of its (q, v, extras, act).
        """
        n = sum(x.shape[-1] for x in (state.q, state.v, state.extras, state.act))
        copies = EnvState(*(x.detach().repeat_interleave(n, 0) for x in state))
        with torch.enable_grad():
            actions = action.detach().repeat_interleave(n, 0).requires_grad_()
            after = self.batch.step(copies, actions)[0]
            y = torch.cat([after.q, after.v, after.extras, after.act], -1).reshape(-1, n, n)
            (J,) = torch.autograd.grad(y.diagonal(dim1=1, dim2=2).sum(), actions)
        return EnvState(*(x.detach()[::n] for x in after)), J.reshape(-1, n, self.action_size)

    def step_jacobian(self, state: EnvState, action: Tensor) -> Tensor:
        """Return the Jacobian of one environment step, before auto-reset.

        Simulates n copies of every environment, n = nq + nv + observation_size + 1.

        Args:
          state: States, batch size B.
          action: Actions (B, action_size).

        Returns:
          Tensor (B, n, nq + nv + action_size), the derivatives of (q, v, observation, reward) after the step with respect to
          (q, v, action). Those with respect to q are ambient: one per entry of q.

        Raises:
          InputError: The model has activations.
        """
        if self.task.model.na:
            raise InputError(
                f"'{self.task.model.name}' has activations, which step_jacobian() does not support: train it by shac"
            )
        n = state.q.shape[-1] + state.v.shape[-1] + self.observation_size + 1
        state = EnvState(*(x.detach().repeat_interleave(n, 0) for x in state))
        with torch.enable_grad():
            inputs = [state.q.requires_grad_(), state.v.requires_grad_(), action.detach().repeat_interleave(n, 0)]
            after, reward, _ = self.batch.step(state, inputs[2].requires_grad_())
            y = torch.cat([after.q, after.v, self.batch.observe(after), reward[:, None]], -1)
            bars = torch.autograd.grad(y.reshape(-1, n, n).diagonal(dim1=1, dim2=2).sum(), inputs)
        return torch.cat(bars, -1).reshape(-1, n, sum(x.shape[-1] for x in bars))

    def detach(self) -> Tensor:
        """Detach the state from the graph: later results have no gradient with respect to earlier actions.

        Returns:
          Observations (B, observation_size).
        """
        if self.state is None:
            raise InputError("call reset() before detach()")
        self.state = EnvState(*(x.detach() for x in self.state))
        return self.batch.observe(self.state)


def _where(rows: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return x in the rows where `rows` (B,) is True, y elsewhere."""
    return torch.where(rows.reshape(-1, *[1] * (x.ndim - 1)), x, y)
