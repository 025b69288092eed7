"""Backpropagation through time: the policy climbs the gradient of the return of whole episodes, through policy and physics,
without a critic and without noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .learner import Learner, Settings
from .parts import adam


@dataclass
class BpttSettings(Settings):
    """horizon: steps of an episode, by default the task's. clip: see `DifferentiableEnv`. Rewards are not discounted."""

    envs: int = 1
    gamma: float = 1.0
    horizon: int | None = None
    clip: float | None = None
    rate: float = 3e-3
    max_norm: float = 1.0


class Bptt(Learner):
    """See the head of this file."""

    Settings = BpttSettings

    def setup(self) -> None:
        self.adam = self.keep("adam", adam(self.policy.parameters(), self.settings.rate))

    def update(self) -> dict[str, float]:
        s, env = self.settings, self.env
        horizon = s.horizon or env.task.episode
        observation = env.reset()
        total = torch.zeros(s.envs, device=self.device)
        going = torch.ones(s.envs, device=self.device)  # 0 once the episode is over: what begins then is another
        worth, length = 1.0, torch.zeros(s.envs, device=self.device)
        for _ in range(horizon):
            found = env.step(self.policy(observation))
            total = total + worth * going * found.reward
            length += going
            going = going * (~(found.terminated | found.truncated)).to(going)
            observation, worth = found.observation, worth * s.gamma
        self.adam.zero_grad()
        (-total.mean()).backward()
        weights = list(self.policy.parameters())
        self.share(weights)
        norm = self.descend(self.adam, weights)
        env.detach()
        self.steps += s.envs * horizon * self.workers.count
        return {"return": float(total.detach().mean()), "length": float(length.mean()), "gradient": norm}
