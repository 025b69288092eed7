"""Many robots as one vectorised Gymnasium environment: a step of all of them is one native call."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from ..errors import InputError
from ..model.state import State
from .batch import Batch, DifferentiableStep
from .env_task import EnvTask
from .single import spaces


class VectorEnv(gym.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`num_envs` robots at a task, as `Env`. A robot whose episode ended starts anew in the next step, which ignores its
    action and gives no reward (Gymnasium's `AutoresetMode.NEXT_STEP`)."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        task: str | EnvTask,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        dtype: Literal["f32", "f64"] = "f32",
        threads: int | None = None,
        **options: Any,
    ):
        if not isinstance(num_envs, int) or num_envs < 1:
            raise InputError(f"num_envs is a whole number, at least 1, not {num_envs!r}")
        self.batch, self.num_envs = Batch(task, dtype, threads, **options), num_envs
        self.max_episode_steps = max_episode_steps or self.batch.task.episode
        self.single_observation_space, self.single_action_space = spaces(self.batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state: State | None = None
        self.steps, self.ended = np.zeros(num_envs, int), np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if isinstance(seed, list):
            raise InputError("all robots draw from one generator: pass one seed")
        super().reset(seed=seed)
        self.state = self.batch.start(self.np_random, self.num_envs)
        self.steps[:], self.ended[:] = 0, False
        return self.batch.observe(self.state, self.steps), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        before, anew = self._started(), self.ended
        if anew.any():
            starts = self.batch.start(self.np_random, int(anew.sum()))
            before.q[anew], before.v[anew] = starts
        (q, v), reward, terminated = self.batch.step(before, self._check(actions))
        self.steps += 1
        if anew.any():
            q[anew], v[anew] = starts
            reward[anew], terminated[anew], self.steps[anew] = 0.0, False, 0
        truncated = self.steps >= self.max_episode_steps
        self.state, self.ended = State(q, v), terminated | truncated
        return self.batch.observe(self.state, self.steps), reward, terminated, truncated, {}

    def differentiable_step(self, actions: np.ndarray) -> DifferentiableStep:
        """What `step(actions)` would give, with Jacobians with respect to the actions; the robots stay where they are.

        A robot that is to start anew is looked at where its episode ended: mask it out.
        """
        return self.batch.differentiable_step(self._started(), self._check(actions), self.steps + 1)

    def _check(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != self.action_space.shape:
            raise InputError(f"actions are {self.action_space.shape}, not {actions.shape}")
        return actions

    def _started(self) -> State:
        if self.state is None:
            raise gym.error.ResetNeeded("call reset() before the first step")
        return self.state
