"""Backpropagation through time (BPTT): gradient ascent on the return of whole episodes through policy and physics.

There is no critic and no exploration noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from ..deprecation import renamed
from .learner import Learner, Settings
from .optimizers import adam


@renamed(rate="learning_rate", max_norm="max_grad_norm")
@dataclass
class BpttSettings(Settings):
    """Settings of BPTT.

    Attributes:
      horizon: Environment steps of an episode; None: the task's max_episode_steps.
      clip: Maximum norm of state and control cotangents, see DifferentiableEnv; None: no limit.
      learning_rate: Learning rate of Adam.
      max_grad_norm: Maximum gradient norm.
    """

    num_envs: int = 1
    gamma: float = 1.0
    horizon: int | None = None
    clip: float | None = None
    learning_rate: float = 3e-3
    max_grad_norm: float = 1.0

    def check_ranges(self) -> None:
        """Refuse settings out of range. Without a critic, returns need no discount."""
        if self.gamma != 1.0:
            super().check_ranges()
            return
        replace(self, gamma=0.5).check_ranges()


class Bptt(Learner):
    """Backpropagation through time."""

    Settings = BpttSettings

    def setup(self) -> None:
        self.optimizer = self.register("optimizer", adam(self.policy.parameters(), self.settings.learning_rate))

    def update(self) -> dict[str, float]:
        """Simulate an episode and take one optimizer step along the gradient of its return."""
        s, env = self.settings, self.env
        horizon = s.horizon or env.task.max_episode_steps
        observation = env.reset()
        returns = torch.zeros(s.num_envs, device=self.device)
        running = torch.ones(s.num_envs, device=self.device)  # 0 once the first episode has ended
        discount, length = 1.0, torch.zeros(s.num_envs, device=self.device)
        for _ in range(horizon):
            step = env.step(self.policy(observation))
            returns = returns + discount * running * step.reward
            length += running
            running = running * (~(step.terminated | step.truncated)).to(running)
            observation, discount = step.observation, discount * s.gamma
        self.optimizer.zero_grad()
        (-returns.mean()).backward()
        parameters = list(self.policy.parameters())
        self.average_gradients(parameters)
        norm = self.clip_and_step(self.optimizer, parameters)
        env.detach()
        self.steps += s.num_envs * horizon * self.process_group.world_size
        return {"return": float(returns.detach().mean()), "length": float(length.mean()), "grad_norm": norm}
