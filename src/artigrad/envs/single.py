"""One robot as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium as gym
import numpy as np

from ..model.state import State
from .batch import Batch, DifferentiableStep
from .env_task import EnvTask


class Env(gym.Env[np.ndarray, np.ndarray]):
    """One robot at a task, given by name (`artigrad.envs.TASKS`, with its options) or as a `EnvTask`."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, task: str | EnvTask, *, dtype: Literal["f32", "f64"] = "f32", **options: Any):
        self.batch = Batch(task, dtype, threads=1, **options)
        self.observation_space, self.action_space = spaces(self.batch)
        self.state: State | None = None
        self.steps = np.zeros(1, int)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.state, self.steps[:] = self.batch.start(self.np_random, 1), 0
        return self.batch.observe(self.state, self.steps)[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        moved = self.batch.step(self._started(), np.asarray(action)[None])
        self.state = moved.state
        self.steps += 1
        observation = self.batch.observe(self.state, self.steps)[0]
        return observation, float(moved.reward[0]), bool(moved.terminated[0]), False, {}

    def differentiable_step(self, action: np.ndarray) -> DifferentiableStep:
        """What `step(action)` would give, with Jacobians with respect to the action; the robot stays where it is."""
        found = self.batch.differentiable_step(self._started(), np.asarray(action)[None], self.steps + 1)
        return DifferentiableStep(State(*(x[0] for x in found.state)), *(x[0] for x in found[1:]))

    def _started(self) -> State:
        if self.state is None:
            raise gym.error.ResetNeeded("call reset() before the first step")
        return self.state


def spaces(batch: Batch) -> tuple[gym.spaces.Box, gym.spaces.Box]:
    """Observations and actions of one robot."""
    dtype = batch.sim.real.type
    observation = gym.spaces.Box(-np.inf, np.inf, (batch.task.observation_size,), dtype)
    return observation, gym.spaces.Box(-1.0, 1.0, (batch.task.model.nu,), dtype)
