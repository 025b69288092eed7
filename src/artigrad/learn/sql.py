"""Soft Q-learning (SQL; Haarnoja et al. 2017): a sampler network is trained to draw actions from exp(Q / alpha) by Stein
variational gradient descent. The value of a state is a soft maximum over random actions:

    V(s) = alpha log mean_a exp(Q(s, a) / alpha) / p(a),    a uniform
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..deprecation import renamed
from ..envs import EnvTask
from .networks import Normalizer, mlp
from .sac import Sac, SacSettings


@renamed(particles="num_particles")
@dataclass
class SqlSettings(SacSettings):
    """Settings of SQL; those of SAC, and the following. Not used: target_entropy_scale.

    Attributes:
      num_particles: Actions per state in the Stein gradient and in the soft maximum.
      alpha: Entropy coefficient, constant.
    """

    num_particles: int = 16
    alpha: float = 0.2


class SamplerPolicy(nn.Module):
    """Policy limit * tanh(network(observation, noise)), which can represent any distribution of actions.

    Args:
      observations: Length of an observation.
      actions: Length of an action.
      limit: Actions lie in [-limit, limit].
      hidden: Widths of the hidden layers.
    """

    def __init__(self, observations: int, actions: int, limit: float, hidden: tuple[int, ...]):
        super().__init__()
        self.limit, self.actions = limit, actions
        self.normalizer = Normalizer(observations)
        self.network = mlp([observations + actions, *hidden, actions], layer_norm=False)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return actions for observations and standard normal noise (None: zero)."""
        if noise is None:
            noise = torch.zeros(*observation.shape[:-1], self.actions).to(observation)
        return self.limit * torch.tanh(self.network(torch.cat([self.normalizer(observation), noise], -1)))


class Sql(Sac):
    """Soft Q-learning."""

    Settings = SqlSettings

    @staticmethod
    def make_policy(task: EnvTask, settings: Any) -> nn.Module:
        return SamplerPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def train(self, batch: dict[str, Tensor], policy: bool = True) -> dict[str, float]:
        s = self.settings
        with torch.no_grad():
            next_value = self.soft_value(batch["next_observation"])
            target = batch["reward"] + s.gamma * (1.0 - batch["terminated"]) * next_value
        loss = (self.critic.both(batch["observation"], batch["action"]) - target).square().mean()
        self._minimize("critic", loss)
        self.update_target()
        if policy:
            self._minimize("actor", self.stein_loss(batch["observation"]))
        return {"critic_loss": float(loss.detach())}

    def soft_value(self, observation: Tensor) -> Tensor:
        """Return V (B,) of observations (B, n), by the target critic at random actions."""
        s, limit, actions = self.settings, self.env.task.limit, self.env.action_size
        shape = (s.num_particles, len(observation), actions)
        action = limit * (2.0 * torch.rand(shape, generator=self.generator, device=self.device) - 1.0)
        Q = self.target(observation.expand(s.num_particles, -1, -1), action)
        return s.alpha * (torch.logsumexp(Q / s.alpha, 0) - math.log(s.num_particles) + actions * math.log(2.0))

    def stein_loss(self, observation: Tensor) -> Tensor:
        """Return a loss whose negative gradient moves particle a_i along  mean_j k(a_j, a_i) dQ/da_j / alpha + dk/da_j."""
        s = self.settings
        noise = self.noise(s.num_particles, len(observation), self.env.action_size)
        action = self.policy(observation.expand(s.num_particles, -1, -1), noise) / self.env.task.limit
        fixed = action.detach().requires_grad_()
        Q = self.critic(observation.expand(s.num_particles, -1, -1), fixed * self.env.task.limit)
        log_jacobian = torch.log1p(-fixed.square().clamp(max=1.0 - 1e-6)).sum(-1)  # of tanh
        (score,) = torch.autograd.grad((Q / s.alpha + log_jacobian).sum(), fixed)
        with torch.no_grad():
            difference = fixed[:, None] - fixed[None]  # (j, i, B, actions)
            square = difference.square().sum(-1)
            width = square.flatten(0, 1).median(0).values / math.log(s.num_particles + 1.0) + 1e-6
            k = torch.exp(-square / width)
            attraction = (k[..., None] * score[:, None]).mean(0)
            repulsion = (-2.0 / width[:, None] * (k[..., None] * difference)).mean(0)
        return -((attraction + repulsion).detach() * action).sum(-1).mean()
