"""Proximal policy optimization (PPO; Schulman et al. 2017). It does not use gradients of the physics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..deprecation import renamed
from ..envs import EnvTask
from .episodes import lambda_returns
from .learner import Learner, Settings
from .networks import GaussianPolicy, mlp
from .optimizers import adam


@renamed(
    horizon="num_steps",
    rate="learning_rate",
    lam="gae_lambda",
    passes="update_epochs",
    pieces="num_minibatches",
    band="clip_coef",
    kl="target_kl",
    log_spread="log_std",
    scaled="normalize_observations",
    max_norm="max_grad_norm",
)
@dataclass
class PpoSettings(Settings):
    """Settings of PPO. The critic network outputs (1 - gamma) V(s).

    Attributes:
      num_steps: Environment steps per update and environment.
      learning_rate: Initial learning rate of Adam. It is divided by 1.5 when the KL divergence exceeds 2 target_kl,
        multiplied by 1.5 below target_kl / 2, within [1e-5, 3e-3].
      gae_lambda: Lambda of the TD(lambda) targets and of GAE.
      update_epochs: Epochs per update.
      num_minibatches: Minibatches per epoch.
      clip_coef: Clipping range of the probability ratio.
      target_kl: Target KL divergence from the policy that collected the data, checked after every minibatch.
      log_std: Initial log standard deviation of the action noise, before tanh.
      normalize_observations: Normalize observations by their running mean and standard deviation. False is better if the
        first observations vary little, as those of a pole that hangs.
      critic_hidden: Widths of the critic's hidden layers.
      max_grad_norm: Maximum gradient norm.
    """

    num_envs: int = 256
    num_steps: int = 32
    learning_rate: float = 5e-4
    gae_lambda: float = 0.95
    update_epochs: int = 5
    num_minibatches: int = 8
    clip_coef: float = 0.2
    target_kl: float = 0.012
    log_std: float = -1.0
    normalize_observations: bool = True
    critic_hidden: tuple[int, ...] = (128, 128)
    max_grad_norm: float = 1.0


class Ppo(Learner):
    """Proximal policy optimization."""

    Settings = PpoSettings

    @staticmethod
    def make_policy(task: EnvTask, settings: Any) -> nn.Module:
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden, settings.log_std)

    def setup(self) -> None:
        s = self.settings
        sizes = [self.env.observation_size, *s.critic_hidden, 1]
        self.critic = self.register("critic", mlp(sizes, layer_norm=False))
        self.parameters = [*self.policy.parameters(), *self.critic.parameters()]
        self.optimizer = self.register("optimizer", adam(self.parameters, s.learning_rate))

    def update(self) -> dict[str, float]:
        """Collect a rollout and train policy and critic on it."""
        s = self.settings
        self.collect_rollout()
        kl = self.train()
        self.steps += s.num_envs * s.num_steps * self.process_group.world_size
        return {**self.episode_stats.metrics(), "kl": kl, "std": float(self.policy.log_std.detach().exp().mean())}

    @torch.no_grad()
    def collect_rollout(self) -> None:
        """Simulate `num_steps` steps and store them in `self.rollout`."""
        s, env, policy = self.settings, self.env, self.policy
        observation, rows = self.observation, []
        for _ in range(s.num_steps):
            x = policy.pre_tanh(observation, self.noise(s.num_envs, env.action_size))
            step = env.step(policy.limit * torch.tanh(x))
            log_prob = policy.log_prob(observation, x)
            ended = step.terminated | step.truncated
            rows.append([observation, x, log_prob, step.reward, step.next_observation, step.terminated, ended])
            observation = step.observation
            self.episode_stats.add(step)
        self.observation = observation
        self.rollout = [torch.stack(x) for x in zip(*rows, strict=True)]

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return V(s)."""
        return self._scaled_value(observation) / (1.0 - self.settings.gamma)

    def _scaled_value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return (1 - gamma) V(s), the output of the critic."""
        return self.critic(self.policy.normalizer(observation))[..., 0]

    def train(self) -> float:
        """Train policy and critic on the rollout; return the mean KL divergence from the policy that collected it."""
        s, policy = self.settings, self.policy
        observations, x, log_probs, rewards, next_observations, terminated, ended = self.rollout
        with torch.no_grad():
            values, next_values = self.value(observations), self.value(next_observations)
            targets = lambda_returns(rewards, next_values, terminated, ended, s.gamma, s.gae_lambda)
            advantages = targets - values
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)
            targets = (1.0 - s.gamma) * targets
        data = [y.reshape(-1, *y.shape[2:]) for y in (observations, x, log_probs, targets, advantages)]
        count, total = 0, 0.0
        for _ in range(s.update_epochs):
            order = torch.randperm(len(data[0]), device=self.device, generator=self.generator)
            for minibatch in order.chunk(s.num_minibatches):
                observation, x, old_log_prob, target, advantage = (y[minibatch] for y in data)
                ratio = (policy.log_prob(observation, x) - old_log_prob).exp()
                clipped = ratio.clamp(1.0 - s.clip_coef, 1.0 + s.clip_coef)
                surrogate = torch.minimum(ratio * advantage, clipped * advantage).mean()
                value_loss = (self._scaled_value(observation) - target).square().mean()
                self.optimizer.zero_grad()
                (0.5 * value_loss - surrogate).backward()
                kl_estimate = (ratio.detach() - 1.0 - ratio.detach().log()).mean()
                [kl] = self.average_gradients(self.parameters, kl_estimate[None])
                self.clip_and_step(self.optimizer, self.parameters)
                self._adapt_learning_rate(kl)
                count, total = count + 1, total + kl
        if s.normalize_observations:
            policy.normalizer.update(observations, self.process_group.all_reduce_sum)
        return total / count

    def _adapt_learning_rate(self, kl: float) -> None:
        """Lower the learning rate if the policy changed too much, raise it if it changed little."""
        group = self.optimizer.param_groups[0]
        if kl > 2.0 * self.settings.target_kl:
            group["lr"] = max(1e-5, group["lr"] / 1.5)
        elif kl < 0.5 * self.settings.target_kl:
            group["lr"] = min(3e-3, group["lr"] * 1.5)
