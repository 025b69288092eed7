"""VectorEnv: a batch of robots as a Gymnasium vector environment. A step of all of them is one native call."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ..arguments import checked
from ..deprecation import renamed
from ..errors import InputError, is_whole
from .batch import Batch
from .env_task import EnvState, EnvTask
from .gym_env import reject_options, require_reset, spaces, to_actions
from .rendering import RENDER_MODES, Rendering


@renamed(now="state", draw="random")
class VectorEnv(gym.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """A Gymnasium vector environment.

    An environment whose episode ended is reset by the next step, which ignores its action and returns reward 0 (Gymnasium's
    `AutoresetMode.NEXT_STEP`).

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      num_envs: Number of environments.
      max_episode_steps: Environment steps until truncation; None: the task's.
      dtype: "f32" or "f64".
      threads: Number of CPU threads; None: all cores.
      render_mode: As for Env; "human" shows the first environment.
      options: Options of a task given by name.

    Attributes:
      state: Current EnvState; None before the first reset.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "autoreset_mode": AutoresetMode.NEXT_STEP}

    @checked
    def __init__(
        self,
        task: str | EnvTask,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        dtype: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        render_mode: Literal["rgb_array", "human"] | None = None,
        **options: Any,
    ):
        if max_episode_steps is not None and not is_whole(max_episode_steps, 1):
            raise InputError(f"max_episode_steps is an integer of at least 1, not {max_episode_steps!r}")
        if not is_whole(num_envs, 1):
            raise InputError(f"num_envs is an integer of at least 1, not {num_envs!r}")
        self.batch, self.num_envs = Batch(task, dtype=dtype, threads=threads, **options), num_envs
        self.rendering, self.render_mode = Rendering(self.batch, render_mode), render_mode
        self.metadata = type(self).metadata | {"render_fps": self.rendering.fps}
        self.max_episode_steps = max_episode_steps or self.batch.task.max_episode_steps
        self.single_observation_space, self.single_action_space = spaces(self.batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state: EnvState | None = None
        self.random, self.ended = self.batch.random_source(0), np.zeros(num_envs, bool)

    @torch.no_grad()
    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes, see gymnasium.vector.VectorEnv.reset.

        Args:
          seed: Seed of the random generator that all environments share.
          options: {"reset_mask": mask}, a bool array (num_envs,): only these environments begin an episode.
        """
        if isinstance(seed, list):
            raise InputError("all environments share one random generator: pass one seed")
        super().reset(seed=seed)
        reject_options(options, "reset_mask")
        if seed is not None or self.state is None:
            self.random = self.batch.random_source(int(self.np_random.integers(1 << 62)))
        rows = self._rows((options or {}).get("reset_mask"))
        initial = self.batch.initial_state(self.random, len(rows))
        if len(rows) < self.num_envs:
            initial = EnvState(
                *(x.index_copy(0, rows, x0) for x, x0 in zip(require_reset(self.state), initial, strict=True))
            )
        self.state = initial
        self.ended[rows.numpy()] = False
        self.rendering.show(self.state)
        return self.batch.observe(self.state).numpy(), {}

    @torch.no_grad()
    def step(self, given: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Simulate one step of all environments, see gymnasium.vector.VectorEnv.step."""
        before, to_reset = require_reset(self.state), torch.from_numpy(self.ended)
        actions = to_actions(self.batch, given, self.action_space.shape or ())
        state, reward, terminated = self.batch.step(before, actions)
        info: dict[str, Any] = {}
        for name, x in self.batch.task.info(before, actions, state).items():
            info |= {name: x.double().numpy(), f"_{name}": ~self.ended}
        if self.ended.any():
            initial = self.batch.initial_state(self.random, int(self.ended.sum()))
            for x, x0 in zip(state, initial, strict=True):
                x[to_reset] = x0
            reward[to_reset], terminated[to_reset] = 0.0, False
        truncated = state.steps >= self.max_episode_steps
        self.state, self.ended = state, (terminated | truncated).numpy()
        self.rendering.show(state)
        observation = self.batch.observe(state).numpy()
        return observation, reward.double().numpy(), terminated.numpy(), truncated.numpy(), info

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return an image of each environment if render_mode is "rgb_array", else None."""
        return self.rendering.images(require_reset(self.state)) if self.render_mode == "rgb_array" else None

    def close_extras(self, **kwargs: Any) -> None:
        """Close the browser page of render_mode="human"."""
        self.rendering.close()

    def _rows(self, mask: Any) -> torch.Tensor:
        """Return the indices of the environments that a reset begins anew."""
        if mask is None:
            return torch.arange(self.num_envs)
        given = np.asarray(mask)
        if given.shape != (self.num_envs,) or given.dtype != bool or not given.any():
            raise InputError(f"reset_mask is a bool array ({self.num_envs},), True at least once")
        return torch.from_numpy(given).nonzero()[:, 0]
