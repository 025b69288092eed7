"""Soft Q-learning (Haarnoja et al. 2017): the policy is a network that draws actions from exp(Q / price), taught by Stein's
variational gradient; the value of a state is a soft maximum over random actions.

    V(s) = price log mean_a exp(Q(s, a) / price) / p(a),    a uniform
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..envs import EnvTask
from .parts import Normalizer, mlp
from .sac import Sac, SacSettings


@dataclass
class SqlSettings(SacSettings):
    """particles: actions that are drawn at once to shape the policy, and to take a soft maximum. price: of certainty."""

    particles: int = 16
    price: float = 0.2


class NoisePolicy(nn.Module):
    """Actions limit tanh(network(observation, noise)): any distribution, not only a normal one."""

    def __init__(self, observations: int, actions: int, limit: float, hidden: tuple[int, ...]):
        super().__init__()
        self.limit, self.actions = limit, actions
        self.normalizer = Normalizer(observations)
        self.network = mlp([observations + actions, *hidden, actions], norm=False)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        if noise is None:
            noise = torch.zeros(*observation.shape[:-1], self.actions).to(observation)
        return self.limit * torch.tanh(self.network(torch.cat([self.normalizer(observation), noise], -1)))


class Sql(Sac):
    """See the head of this file."""

    Settings = SqlSettings

    @staticmethod
    def policy_for(task: EnvTask, settings: Any) -> nn.Module:
        return NoisePolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def learn(self, seen: dict[str, Tensor], policy: bool = True) -> dict[str, float]:
        s = self.settings
        with torch.no_grad():
            wanted = seen["reward"] + s.gamma * (1.0 - seen["failed"]) * self.soft_value(seen["after"])
        error = (self.critic.each(seen["before"], seen["action"]) - wanted).square().mean()
        self._descend("critic", error)
        self.follow_critic()
        if policy:
            self._descend("actor", self.stein(seen["before"]))
        return {"critic": float(error.detach())}

    def soft_value(self, observation: Tensor) -> Tensor:
        s, limit, actions = self.settings, self.env.task.limit, self.env.action_size
        shape = (s.particles, len(observation), actions)
        drawn = limit * (2.0 * torch.rand(shape, generator=self.generator, device=self.device) - 1.0)
        Q = self.target(observation.expand(s.particles, -1, -1), drawn)
        return s.price * (torch.logsumexp(Q / s.price, 0) - math.log(s.particles) + actions * math.log(2.0))

    def stein(self, observation: Tensor) -> Tensor:
        """A loss whose gradient moves the particles a_i by  mean_j k(a_j, a_i) dQ/da_j / price + dk/da_j."""
        s = self.settings
        noise = self.noise(s.particles, len(observation), self.env.action_size)
        action = self.policy(observation.expand(s.particles, -1, -1), noise) / self.env.task.limit
        fixed = action.detach().requires_grad_()
        Q = self.critic(observation.expand(s.particles, -1, -1), fixed * self.env.task.limit)
        inside = torch.log1p(-fixed.square().clamp(max=1.0 - 1e-6)).sum(-1)  # of the density of tanh
        (slope,) = torch.autograd.grad((Q / s.price + inside).sum(), fixed)
        with torch.no_grad():
            apart = fixed[:, None] - fixed[None]  # (j, i, B, actions)
            square = apart.square().sum(-1)
            width = square.flatten(0, 1).median(0).values / math.log(s.particles + 1.0) + 1e-6
            k = torch.exp(-square / width)
            towards = (k[..., None] * slope[:, None]).mean(0)
            repel = (-2.0 / width[:, None] * (k[..., None] * apart)).mean(0)
        return -((towards + repel).detach() * action).sum(-1).mean()
