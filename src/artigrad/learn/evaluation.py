"""Player: evaluation of a trained policy in artigrad and in Gymnasium's environments."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn

from ..arguments import checked, numbers
from ..deprecation import renamed
from ..envs import TASKS, DifferentiableEnv, EnvTask
from ..errors import InputError, need
from ..files import existing
from ..model.state import State
from ..simulate.results import Trajectory
from .training import ALGORITHMS, read_checkpoint, simple_attributes

GYMNASIUM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")


@renamed(motion="rollout")
class Player:
    """The policy of a checkpoint, and its task. Calling a Player with observations returns actions.

    Args:
      path: Checkpoint of a Training or of Workers.
      model: Robot in place of the task's file.
      task: The EnvTask of the training, if it was not one of `artigrad.envs.TASKS`.
    """

    @checked
    def __init__(self, path: str | os.PathLike[str], model: Any = None, *, task: EnvTask | None = None):
        saved = read_checkpoint(existing(path))
        self.about, learner = saved["about"], saved["learner"]
        self.options = self.about["options"] | ({} if model is None else {"model": model})
        if task is None and self.about["task"] not in TASKS:
            raise InputError(f"{path} was trained for a task of your own, {self.about['task']}: pass task=")
        self.task: EnvTask = TASKS[self.about["task"]](**self.options) if task is None else task
        if task is None:
            ours, trained = simple_attributes(self.task), self.about.get("attributes", {})
            if other := [f"{name}={x!r}" for name, x in trained.items() if ours.get(name) != x]:
                raise InputError(
                    f"{path} was trained for {self.about['task']} with {', '.join(other)}: pass this task as task="
                )
        kind = ALGORITHMS[self.about["algorithm"]]
        known = {field.name for field in fields(kind.Settings)}
        settings = kind.Settings(**{k: v for k, v in learner["settings"].items() if k in known})
        self.policy: nn.Module = kind.make_policy(self.task, settings)
        self.policy.load_state_dict(learner["modules"].get("ema_policy", learner["modules"]["policy"]))

    @torch.no_grad()
    def __call__(self, observation: Any) -> np.ndarray:
        """Return actions (..., nu) for observations (..., observation_size), without noise."""
        given = numbers("observation", observation, finite=False)
        if given.shape[-1:] != (self.task.observation_size,):
            raise InputError(f"observation is (..., {self.task.observation_size}), not {given.shape}")
        return self.policy(torch.as_tensor(given, dtype=torch.float32)).numpy()

    @torch.no_grad()
    @checked
    def returns(
        self, episodes: int = 20, *, seed: int = 0, dtype: Any = "f64", threads: int | None = None
    ) -> np.ndarray:
        """Return the undiscounted returns (episodes,) of whole episodes in artigrad."""
        env = DifferentiableEnv(self.task, episodes, seed=seed, dtype=dtype, threads=threads)
        observation = env.reset()
        total, running = np.zeros(episodes), np.ones(episodes, bool)
        while running.any():
            step = env.step(self.policy(observation.float()).to(observation))
            total += running * step.reward.double().numpy()
            running &= ~(step.terminated | step.truncated).numpy()
            observation = step.observation
        return total

    @torch.no_grad()
    @checked
    def rollout(self, seconds: float = 10.0, *, seed: int = 0) -> Trajectory:
        """Return the trajectory of an episode, at most `seconds` long."""
        if not 0.0 <= seconds < np.inf:
            raise InputError(f"seconds is a finite number, zero or more, not {seconds!r}")
        env = DifferentiableEnv(self.task, 1, seed=seed, dtype="f64", threads=1)
        observation, controls = env.reset(), []
        assert env.state is not None
        initial = State(env.state.q[0].numpy().copy(), env.state.v[0].numpy().copy())
        for _ in range(max(1, round(seconds / env.dt))):
            action = self.policy(observation.float()).to(observation)
            controls += [self.task.controls(action)[0].numpy()] * self.task.frame_skip
            step = env.step(action)
            if step.terminated or step.truncated:
                break
            observation = step.observation
        return env.batch.sim.rollout(initial, np.stack(controls))

    def gymnasium_returns(self, episodes: int = 20, *, seed: int = 0) -> np.ndarray:
        """Return the undiscounted returns (episodes,) of whole episodes in Gymnasium's MuJoCo environment."""
        name = self.about["task"]
        if name not in GYMNASIUM:
            raise InputError(f"Gymnasium has no environment for {name}; it has {', '.join(GYMNASIUM)}")
        need("gymnasium", "Gymnasium's environments need it", "gym")
        import gymnasium

        env = gymnasium.make(f"{name}-v5")
        total, size = (
            np.zeros(episodes),
            self.task.observation_size,
        )  # Ant(contact_forces=False) observes the first entries
        for k in range(episodes):
            observation, _ = env.reset(seed=seed + k)
            ended = False
            while not ended:
                observation, reward, terminated, truncated, _ = env.step(self(observation[:size]))
                total[k] += float(reward)
                ended = terminated or truncated
        return total
