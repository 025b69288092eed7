"""Env: one robot as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch

from ..arguments import checked, numbers
from ..deprecation import renamed
from ..errors import InputError
from .batch import Batch
from .env_task import EnvState, EnvTask
from .rendering import RENDER_MODES, Rendering


@renamed(now="state", draw="random")
class Env(gym.Env[np.ndarray, np.ndarray]):
    """A Gymnasium environment with one robot.

    Args:
      task: Name in `artigrad.envs.TASKS`, or an EnvTask.
      dtype: "f32" or "f64".
      render_mode: "rgb_array": `render()` returns images (height, width, 3). "human": a page in the browser shows every step
        (needs artigrad[view]). None: no rendering.
      options: Options of a task given by name.

    Attributes:
      state: Current EnvState, batch size 1; None before the first reset.
      truncate: Truncate episodes at the task's max_episode_steps.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 50}
    truncate: bool = True

    @checked
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
        self.random = self.batch.random_source(0)
        self.state: EnvState | None = None

    @torch.no_grad()
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode, see gymnasium.Env.reset."""
        super().reset(seed=seed)
        reject_options(options)
        if seed is not None or self.state is None:
            self.random = self.batch.random_source(int(self.np_random.integers(1 << 62)))
        self.state = self.batch.initial_state(self.random, 1)
        self.rendering.show(self.state)
        return self.batch.observe(self.state)[0].numpy(), {}

    @torch.no_grad()
    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Simulate one step, see gymnasium.Env.step."""
        before = require_reset(self.state)
        actions = to_actions(self.batch, action, self.action_space.shape or ())[None]
        result = self.batch.step(before, actions)
        self.state = result.state
        self.rendering.show(self.state)
        observation = self.batch.observe(self.state)[0].numpy()
        task, terminated = self.batch.task, bool(result.terminated[0])
        truncated = self.truncate and not terminated and int(self.state.steps[0]) >= task.max_episode_steps
        info = {name: float(x[0]) for name, x in task.info(before, actions, self.state).items()}
        return observation, float(result.reward[0]), terminated, truncated, info

    def render(self) -> Any:
        """Return an image (height, width, 3) if render_mode is "rgb_array", else None."""
        return self.rendering.images(require_reset(self.state))[0] if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the browser page of render_mode="human"."""
        self.rendering.close()


class RegisteredEnv(Env):
    """Env as `gymnasium.make` creates it, whose TimeLimit wrapper truncates episodes."""

    truncate = False


def spaces(batch: Batch) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """Return the observation space and the action space of one environment."""
    task, dtype = batch.task, batch.sim.real.type
    observation = gym.spaces.Box(-np.inf, np.inf, (task.observation_size,), dtype)
    return observation, gym.spaces.Box(-task.limit, task.limit, (task.model.nu,), dtype)


def to_actions(batch: Batch, actions: np.ndarray, shape: tuple[int, ...]) -> torch.Tensor:
    """Return actions as a tensor."""
    given = numbers("actions", actions)
    if given.shape != shape:
        raise InputError(f"actions are an array {shape}, not {given.shape}")
    return torch.as_tensor(given, dtype=batch.dtype)


def reject_options(options: dict[str, Any] | None, *known: str) -> None:
    """Refuse options of a reset that would have no effect."""
    if options is not None and not isinstance(options, dict):
        raise InputError(f"options of reset() are a dict, not {type(options).__name__}")
    for name in options or {}:
        if name not in known:
            raise InputError(f"options of reset() are {', '.join(known) or 'none'}; not '{name}'")


def require_reset(state: EnvState | None) -> EnvState:
    """Return the state, or raise ResetNeeded if there is none."""
    if state is None:
        raise gym.error.ResetNeeded("call reset() before the first step")
    return state
