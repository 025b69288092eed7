"""A trained policy at work: in artigrad's environment, and in the one of Gymnasium that it stands for."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from ..envs import TASKS, DifferentiableEnv, EnvTask
from ..errors import InputError, need
from ..model.state import State
from ..simulate.results import Trajectory
from .training import ALGORITHMS, read_checkpoint

GYMNASIUM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")


class Player:
    """The policy of a checkpoint and the task it was trained for. Calling it with observations gives actions.

    model: the robot, where its file is not at hand. task: the `EnvTask` that it was trained for, where it is one of your own.
    """

    def __init__(self, path: str | os.PathLike[str], model: Any = None, *, task: EnvTask | None = None):
        if not Path(path).is_file():
            raise InputError(f"there is no file {path}: pass the checkpoint.pt of a training")
        saved = read_checkpoint(path)
        self.about, learner = saved["about"], saved["learner"]
        self.options = self.about["options"] | ({} if model is None else {"model": model})
        if task is None and self.about["task"] not in TASKS:
            raise InputError(f"{path} was trained for a task of your own, {self.about['task']}: pass task=")
        self.task: EnvTask = TASKS[self.about["task"]](**self.options) if task is None else task
        kind = ALGORITHMS[self.about["algorithm"]]
        known = {field.name for field in fields(kind.Settings)}
        settings = kind.Settings(**{k: v for k, v in learner["settings"].items() if k in known})
        self.policy: nn.Module = kind.policy_for(self.task, settings)
        self.policy.load_state_dict(learner["parts"].get("played", learner["parts"]["policy"]))

    @torch.no_grad()
    def __call__(self, observation: Any) -> np.ndarray:
        """Actions (..., nu) for observations, without noise."""
        return self.policy(torch.as_tensor(np.asarray(observation), dtype=torch.float32)).numpy()

    @torch.no_grad()
    def returns(
        self, episodes: int = 20, *, seed: int = 0, dtype: Any = "f64", threads: int | None = None
    ) -> np.ndarray:
        """Returns of whole episodes in artigrad."""
        env = DifferentiableEnv(self.task, episodes, seed=seed, dtype=dtype, threads=threads)
        observation = env.reset()
        total, going = np.zeros(episodes), np.ones(episodes, bool)
        while going.any():
            found = env.step(self.policy(observation.float()).to(observation))
            total += going * found.reward.double().numpy()
            going &= ~(found.terminated | found.truncated).numpy()
            observation = found.observation
        return total

    @torch.no_grad()
    def motion(self, seconds: float = 10.0, *, seed: int = 0) -> Trajectory:
        """The first episode, or so much of it, as a trajectory to show and to save."""
        env = DifferentiableEnv(self.task, 1, seed=seed, dtype="f64", threads=1)
        observation, controls = env.reset(), []
        assert env.now is not None
        start = State(env.now.q[0].numpy().copy(), env.now.v[0].numpy().copy())
        for _ in range(max(1, round(seconds / env.dt))):
            action = self.policy(observation.float()).to(observation)
            controls += [self.task.controls(action)[0].numpy()] * self.task.frame_skip
            found = env.step(action)
            if found.terminated or found.truncated:
                break
            observation = found.observation
        return env.batch.sim.rollout(start, np.stack(controls))

    def gymnasium_returns(self, episodes: int = 20, *, seed: int = 0) -> np.ndarray:
        """Returns of whole episodes in Gymnasium's own MuJoCo environment."""
        name = self.about["task"]
        if name not in GYMNASIUM:
            raise InputError(f"Gymnasium has no environment for {name}; it has {', '.join(GYMNASIUM)}")
        need("gymnasium", "Gymnasium's environments need it", "gym")
        import gymnasium

        env = gymnasium.make(f"{name}-v5")
        total, size = (
            np.zeros(episodes),
            self.task.observation_size,
        )  # an Ant may have learned without forces of contact
        for k in range(episodes):
            observation, _ = env.reset(seed=seed + k)
            over = False
            while not over:
                observation, reward, failed, cut, _ = env.step(self(observation[:size]))
                total[k] += float(reward)
                over = failed or cut
        return total
