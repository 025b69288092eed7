"""Many robots as one vectorised Gymnasium environment: a step of all of them is one native call."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ..errors import InputError
from .batch import Batch
from .env_task import EnvTask, Moment
from .rendering import RENDER_MODES, Rendering
from .single import actions_of, spaces, started


class VectorEnv(gym.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` robots at a task, as `Env`. A robot whose episode ended starts anew in the next step, which ignores its
    action and gives no reward (Gymnasium's `AutoresetMode.NEXT_STEP`)."""

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "autoreset_mode": AutoresetMode.NEXT_STEP}

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
        if not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs is a whole number, at least 1, not {num_envs!r}")
        self.batch, self.num_envs = Batch(task, dtype=dtype, threads=threads, **options), num_envs
        self.rendering, self.render_mode = Rendering(self.batch, render_mode), render_mode
        self.metadata = type(self).metadata | {"render_fps": self.rendering.fps}
        self.max_episode_steps = max_episode_steps or self.batch.task.episode
        self.single_observation_space, self.single_action_space = spaces(self.batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.now: Moment | None = None
        self.draw, self.ended = self.batch.draw(0), np.zeros(num_envs, bool)

    @torch.no_grad()
    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if isinstance(seed, list):
            raise InputError("all robots draw from one generator: pass one seed")
        super().reset(seed=seed)
        if seed is not None or self.now is None:
            self.draw = self.batch.draw(int(self.np_random.integers(1 << 62)))
        self.now = self.batch.start(self.draw, self.num_envs)
        self.ended[:] = False
        self.rendering.show(self.now)
        return self.batch.observe(self.now).numpy(), {}

    @torch.no_grad()
    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        before, anew = started(self.now), torch.from_numpy(self.ended)
        now, reward, terminated = self.batch.step(before, self._check(actions))
        if self.ended.any():
            fresh = self.batch.start(self.draw, int(self.ended.sum()))
            for mine, new in zip(now, fresh, strict=True):
                mine[anew] = new
            reward[anew], terminated[anew] = 0.0, False
        truncated = now.steps >= self.max_episode_steps
        self.now, self.ended = now, (terminated | truncated).numpy()
        self.rendering.show(now)
        seen = self.batch.observe(now).numpy()
        return seen, reward.double().numpy(), terminated.numpy(), truncated.numpy(), {}

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture of each robot, with render_mode="rgb_array"; the page of "human" shows the first."""
        return self.rendering.pictures(started(self.now)) if self.render_mode == "rgb_array" else None

    def close_extras(self, **kwargs: Any) -> None:
        """End the page of render_mode="human"."""
        self.rendering.close()

    def _check(self, actions: np.ndarray) -> torch.Tensor:
        actions = np.asarray(actions)
        if actions.shape != self.action_space.shape:
            raise InputError(f"actions are {self.action_space.shape}, not {actions.shape}")
        return actions_of(self.batch, actions)
