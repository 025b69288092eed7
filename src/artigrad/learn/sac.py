"""Soft actor-critic (SAC; Haarnoja et al. 2018): an off-policy critic Q, and a policy that maximizes Q plus alpha times its
entropy. It does not use gradients of the physics."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..deprecation import renamed
from ..envs import EnvTask
from .learner import Learner, Settings
from .networks import BatchedMLP, Normalizer, mlp
from .optimizers import adam
from .replay import ReplayBuffer


@renamed(
    updates="critic_updates",
    batch="batch_size",
    first="learning_starts",
    capacity="buffer_size",
    rate="learning_rate",
    decay_steps="lr_decay_steps",
    last_rate="final_lr_fraction",
    price="alpha",
    certainty="target_entropy_scale",
    target_rate="tau",
    max_norm="max_grad_norm",
    norm="critic_layer_norm",
    policy_every="policy_frequency",
)
@dataclass
class SacSettings(Settings):
    """Settings of SAC.

    Attributes:
      critic_updates: Critic updates per step of all environments.
      batch_size: Transitions per update.
      learning_starts: Environment steps with uniformly random actions before learning; observation statistics come from these
        steps alone.
      buffer_size: Size of the replay buffer, transitions.
      learning_rate: Learning rate of policy, critics and alpha.
      lr_decay_steps, final_lr_fraction: The learning rate decays linearly to final_lr_fraction times its initial value at
        lr_decay_steps environment steps; None: constant.
      alpha: Initial entropy coefficient.
      target_entropy_scale: The target entropy is -target_entropy_scale * action_size, of action / limit.
      tau: Polyak coefficient of the target critics: target = (1 - tau) * target + tau * critic.
      max_grad_norm: Maximum gradient norm.
      critic_layer_norm: Critics with LayerNorm and ReLU instead of ELU, which stay stable under more updates.
      policy_frequency: Policy and alpha are updated with every policy_frequency-th critic update.
    """

    num_envs: int = 32
    hidden: tuple[int, ...] = (256, 256)
    critic_updates: int = 16
    batch_size: int = 256
    learning_starts: int = 2000
    buffer_size: int = 1_000_000
    learning_rate: float = 3e-4
    lr_decay_steps: int | None = None
    final_lr_fraction: float = 0.05
    alpha: float = 0.1
    target_entropy_scale: float = 1.0
    tau: float = 0.005
    max_grad_norm: float = 10.0
    critic_layer_norm: bool = False
    policy_frequency: int = 1


class SquashedGaussianPolicy(nn.Module):
    """Policy limit * tanh(x), x normal with a mean and a standard deviation that depend on the observation.

    Args:
      observations: Length of an observation.
      actions: Length of an action.
      limit: Actions lie in [-limit, limit].
      hidden: Widths of the hidden layers.
    """

    def __init__(self, observations: int, actions: int, limit: float, hidden: tuple[int, ...]):
        super().__init__()
        self.limit = limit
        self.normalizer = Normalizer(observations)
        self.mean_and_log_std = mlp([observations, *hidden, 2 * actions], layer_norm=False)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return actions for observations and standard normal noise; deterministic actions without noise."""
        if noise is not None:
            return self.sample(observation, noise)[0]
        return self.limit * torch.tanh(self._distribution(observation)[0])

    def _distribution(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log standard deviation of x."""
        mean, log_std = self.mean_and_log_std(self.normalizer(observation)).chunk(2, -1)
        return mean, log_std.clamp(-5.0, 2.0)

    def sample(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions, and log densities of action / limit."""
        mean, log_std = self._distribution(observation)
        x = mean + log_std.exp() * noise
        squash = 2.0 * (0.6931471805599453 - x - nn.functional.softplus(-2.0 * x))  # log(1 - tanh(x)^2)
        log_prob = -(0.5 * noise.square() + log_std + 0.9189385332046727 + squash).sum(-1)
        return self.limit * torch.tanh(x), log_prob


class TwinCritic(nn.Module):
    """Two Q networks; the minimum of both limits overestimation.

    Args:
      observations: Length of an observation.
      actions: Length of an action.
      hidden: Widths of the hidden layers.
      layer_norm: LayerNorm and ReLU instead of ELU.
    """

    def __init__(self, observations: int, actions: int, hidden: tuple[int, ...], layer_norm: bool = False):
        super().__init__()
        self.normalizer = Normalizer(observations)
        activation = nn.functional.relu if layer_norm else nn.functional.elu
        self.networks = BatchedMLP(2, [observations + actions, *hidden, 1], activation, layer_norm=layer_norm)

    def both(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return Q of both networks, (2, ...)."""
        x = torch.cat([self.normalizer(observation), action], -1)
        return self.networks(x.reshape(-1, x.shape[-1]).expand(2, -1, -1)).reshape(2, *x.shape[:-1])

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        """Return the smaller Q, (...)."""
        return self.both(observation, action).amin(0)


class Sac(Learner):
    """Soft actor-critic."""

    Settings = SacSettings

    @staticmethod
    def make_policy(task: EnvTask, settings: Any) -> nn.Module:
        return SquashedGaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def setup(self) -> None:
        s, env = self.settings, self.env
        critic = TwinCritic(env.observation_size, env.action_size, s.hidden, s.critic_layer_norm)
        self.critic = self.register("critic", critic)
        self.target = self.register("target", copy.deepcopy(self.critic))
        self.log_alpha = self.register("alpha", nn.ParameterList([torch.tensor(math.log(s.alpha))]))
        for name, module in (("actor", self.policy), ("critic", self.critic), ("alpha", self.log_alpha)):
            self.register(f"{name}_optimizer", adam(module.parameters(), s.learning_rate))
        self.replay = self.register("replay", ReplayBuffer(s.buffer_size, self.device))

    def decay_learning_rates(self) -> None:
        """Set the learning rates of this step."""
        s = self.settings
        if s.lr_decay_steps is not None:
            fraction = s.final_lr_fraction + (1.0 - s.final_lr_fraction) * max(0.0, 1.0 - self.steps / s.lr_decay_steps)
            for name in ("actor", "critic", "alpha"):
                self.modules[f"{name}_optimizer"].param_groups[0]["lr"] = fraction * s.learning_rate

    def update(self) -> dict[str, float]:
        """Simulate one step of all environments and train on `critic_updates` batches of the replay buffer."""
        s = self.settings
        self.decay_learning_rates()
        self.collect_step()
        self.steps += s.num_envs
        losses: dict[str, float] = {}
        if self.steps >= s.learning_starts:
            for k in range(s.critic_updates):
                batch = self.replay.sample(s.batch_size, self.generator)
                losses = self.train(batch, k % s.policy_frequency == 0)
        return {
            **self.episode_stats.metrics(),
            "critic_loss": losses.get("critic_loss", 0.0),
            "alpha": float(self.log_alpha[0].detach().exp()),
        }

    def collect_step(self) -> None:
        """Simulate one step of all environments and add it to the replay buffer."""
        s, env = self.settings, self.env
        with torch.no_grad():
            action = self.policy(self.observation, self.noise(s.num_envs, env.action_size))
            if self.steps < s.learning_starts:
                for part in (self.policy, self.critic, self.target):
                    part.normalizer.update(self.observation)
                action = env.task.limit * (
                    2.0 * torch.rand(action.shape, generator=self.generator, device=self.device) - 1.0
                )
        more = self.extra_fields(action)
        with torch.no_grad():
            step = env.step(action)
        transition = {
            "observation": self.observation,
            "action": action,
            "reward": step.reward,
            "next_observation": step.next_observation,
            "terminated": step.terminated.to(action),
        }
        self.replay.add(**transition, **more)
        self.episode_stats.add(step)
        self.observation = step.observation

    def extra_fields(self, action: Tensor) -> dict[str, Tensor]:
        """Return further fields of the transition, by name."""
        return {}

    def train(self, batch: dict[str, Tensor], policy: bool = True) -> dict[str, float]:
        """Update the critic, and the policy and alpha if `policy`; return losses by name."""
        s, alpha, actions = self.settings, self.log_alpha[0].exp().detach(), self.env.action_size
        with torch.no_grad():
            next_observation = batch["next_observation"]
            action, log_prob = self.policy.sample(next_observation, self.noise(len(next_observation), actions))
            next_value = self.target(next_observation, action) - alpha * log_prob
            target = batch["reward"] + s.gamma * (1.0 - batch["terminated"]) * next_value
        loss = (self.critic.both(batch["observation"], batch["action"]) - target).square().mean()
        self._minimize("critic", loss)
        self.update_target()
        if policy:
            observation = batch["observation"]
            action, log_prob = self.policy.sample(observation, self.noise(len(observation), actions))
            self._minimize("actor", (alpha * log_prob - self.critic(observation, action)).mean())
            self.log_alpha[0].grad = (s.target_entropy_scale * actions - log_prob.detach()).mean()
            self.clip_and_step(self.modules["alpha_optimizer"], list(self.log_alpha))
        return {"critic_loss": float(loss.detach())}

    @torch.no_grad()
    def update_target(self) -> None:
        """Move the target critic toward the critic by `tau`."""
        torch._foreach_lerp_(list(self.target.parameters()), list(self.critic.parameters()), self.settings.tau)

    def _minimize(self, name: str, loss: Tensor) -> None:
        """Take a step of the optimizer `name` along the gradient of a loss."""
        optimizer = self.modules[f"{name}_optimizer"]
        parameters = optimizer.param_groups[0]["params"]
        for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = grad
        self.clip_and_step(optimizer, parameters)
