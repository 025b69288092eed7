"""One robot as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch

from .batch import Batch
from .env_task import EnvTask, Moment
from .rendering import RENDER_MODES, Rendering


class Env(gym.Env[np.ndarray, np.ndarray]):
    """One robot at a task, given by name (`artigrad.envs.TASKS`, with its options) or as an `EnvTask`.

    render_mode: "rgb_array", for pictures (height, width, 3) by `render()`, or "human", for a page in the browser that each
    step shows, which needs artigrad[view].
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 50}

    def __init__(
        self,
        task: str | EnvTask,
        *,
        dtype: Literal["f32", "f64"] = "f32",
        render_mode: Literal["rgb_array", "human"] | None = None,
        **options: Any,
    ):
        self.batch = Batch(task, dtype=dtype, threads=1, **options)
        self.rendering, self.render_mode = Rendering(self.batch, render_mode), render_mode
        self.metadata = type(self).metadata | {"render_fps": self.rendering.fps}
        self.observation_space, self.action_space = spaces(self.batch)
        self.draw = self.batch.draw(0)
        self.now: Moment | None = None

    @torch.no_grad()
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or self.now is None:
            self.draw = self.batch.draw(int(self.np_random.integers(1 << 62)))
        self.now = self.batch.start(self.draw, 1)
        self.rendering.show(self.now)
        return self.batch.observe(self.now)[0].numpy(), {}

    @torch.no_grad()
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        moved = self.batch.step(started(self.now), actions_of(self.batch, action[None]))
        self.now = moved.now
        self.rendering.show(self.now)
        observation = self.batch.observe(self.now)[0].numpy()
        return observation, float(moved.reward[0]), bool(moved.terminated[0]), False, {}

    def render(self) -> Any:
        """A picture of the robot as it is, with render_mode="rgb_array"."""
        return self.rendering.pictures(started(self.now))[0] if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """End the page of render_mode="human"."""
        self.rendering.close()


def spaces(batch: Batch) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """Observations and actions of one robot."""
    task, dtype = batch.task, batch.sim.real.type
    observation = gym.spaces.Box(-np.inf, np.inf, (task.observation_size,), dtype)
    return observation, gym.spaces.Box(-task.limit, task.limit, (task.model.nu,), dtype)


def actions_of(batch: Batch, actions: np.ndarray) -> torch.Tensor:
    """Actions as a tensor, cut off at the ends of their range."""
    limit = batch.task.limit
    return torch.as_tensor(np.asarray(actions), dtype=batch.dtype).clamp(-limit, limit)


def started(now: Moment | None) -> Moment:
    if now is None:
        raise gym.error.ResetNeeded("call reset() before the first step")
    return now
