"""Short-horizon actor-critic (SHAC; Xu et al. 2022).

The policy maximizes its return over a short differentiated rollout of h steps, plus a critic's value of the last state:

    sum_t gamma^t r_t + gamma^h V(s_h)      gradient through policy, physics, reward and V

After a termination within the rollout the return is zero, and would have no gradient. V, which is trained to zero on terminal
states, supplies one: it penalizes motion toward termination.

`mixed_gradient=True` (after Suh et al. 2022) combines the pathwise gradient g_1 with the likelihood-ratio gradient g_0, which
does not differentiate the physics, weighted by inverse variances:

    g = (var_0 g_1 + var_1 g_0) / (var_0 + var_1),    g_0 = mean of sum_t grad log p(x_t) gamma^t (return - V)

`adaptive_horizon=True` (after Georgiev et al. 2024) lengthens the rollout while few cotangents are clipped and shortens it when
many are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..deprecation import renamed
from ..errors import InputError
from .episodes import lambda_returns
from .learner import Learner, Settings
from .networks import mlp
from .optimizers import adam, average_tensors


@renamed(
    span="horizon_seconds",
    adaptive="adaptive_horizon",
    mixed="mixed_gradient",
    actor_rate="actor_learning_rate",
    critic_rate="critic_learning_rate",
    decay_steps="lr_decay_steps",
    last_rate="final_lr_fraction",
    lam="td_lambda",
    critic_passes="critic_iterations",
    critic_pieces="num_critic_minibatches",
    target_rate="target_critic_alpha",
    slack="saturation_threshold",
    slack_price="saturation_weight",
    max_norm="max_grad_norm",
)
@dataclass
class ShacSettings(Settings):
    """Settings of SHAC. The critic network outputs (1 - gamma) V(s).

    Attributes:
      horizon_seconds: Length of the differentiated rollout, s; h = max(2, round(horizon_seconds / env.dt)) steps. Long
        enough for an action to have an effect, shorter than the time in which gradients through contact become useless.
      clip: Maximum norm of the cotangents of each environment's state and controls at every step of the backward pass.
      adaptive_horizon: Lengthen the rollout by one step if under 10 % of the state cotangents were clipped, shorten it
        above 30 %; at least 2 steps, at most three times the initial length.
      mixed_gradient: Combine pathwise and likelihood-ratio gradient by inverse variance.
      actor_learning_rate, critic_learning_rate: Initial learning rates of Adam.
      lr_decay_steps, final_lr_fraction: Learning rates decay linearly to final_lr_fraction times the initial value at
        lr_decay_steps environment steps.
      td_lambda: Lambda of the critic's TD(lambda) targets.
      critic_hidden: Widths of the critic's hidden layers.
      critic_iterations, num_critic_minibatches: Epochs, and minibatches per epoch, of a critic update.
      target_critic_alpha: Update of the target critic: target = alpha * target + (1 - alpha) * critic.
      saturation_threshold, saturation_weight: Penalty weight * max(|x| - threshold, 0)^2 per entry of the pre-tanh action
        x, which keeps actions off the flat ends of tanh.
      max_grad_norm: Maximum gradient norm.
    """

    num_envs: int = 64
    horizon_seconds: float = 0.2
    clip: float = 1000.0
    adaptive_horizon: bool = False
    mixed_gradient: bool = False
    actor_learning_rate: float = 2e-3
    critic_learning_rate: float = 2e-3
    lr_decay_steps: int = 3_000_000
    final_lr_fraction: float = 0.1
    td_lambda: float = 0.95
    critic_hidden: tuple[int, ...] = (128, 128)
    critic_iterations: int = 4
    num_critic_minibatches: int = 4
    target_critic_alpha: float = 0.4
    saturation_threshold: float = 1.5
    saturation_weight: float = 0.3
    max_grad_norm: float = 1.0


class AdaptiveHorizon:
    """Number of steps of the differentiated rollout."""

    def __init__(self, steps: int):
        self.steps, self.maximum = steps, 3 * steps

    def adapt(self, clip_fraction: float) -> None:
        """Change the horizon by one step, given the fraction of cotangents that were clipped."""
        if clip_fraction < 0.1:
            self.steps = min(self.maximum, self.steps + 1)
        elif clip_fraction > 0.3:
            self.steps = max(2, self.steps - 1)

    def state_dict(self) -> dict[str, int]:
        """Return the state for a checkpoint."""
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restore a state of `state_dict`."""
        self.steps = state["steps"]


class GradientMixture(nn.Module):
    """Combination of a pathwise and a likelihood-ratio gradient by their running variances."""

    means: Tensor
    variance: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("means", torch.zeros(2, size))
        self.register_buffer("variance", torch.ones(2))

    def forward(self, pathwise: Tensor, likelihood_ratio: Tensor) -> Tensor:
        """Update the variances and return the combined gradient, (size,)."""
        both = torch.stack([pathwise, likelihood_ratio])
        self.variance.lerp_((both - self.means).square().sum(-1), 0.1)
        self.means.lerp_(both, 0.1)
        weight = self.variance[1] / self.variance.sum()
        return weight * pathwise + (1.0 - weight) * likelihood_ratio


class Shac(Learner):
    """Short-horizon actor-critic."""

    Settings = ShacSettings

    def setup(self) -> None:
        s, size = self.settings, self.env.observation_size
        self.horizon = self.register("horizon", AdaptiveHorizon(max(2, round(s.horizon_seconds / self.env.dt))))
        self.critic = self.register("critic", mlp([size, *s.critic_hidden, 1]))
        self.target = self.register("target", mlp([size, *s.critic_hidden, 1]))
        self.target.load_state_dict(self.critic.state_dict())
        if s.mixed_gradient:
            self.mixture = self.register("mixture", GradientMixture(sum(w.numel() for w in self.policy.parameters())))
        betas = (0.7, 0.95)
        actor, critic = adam(self.policy.parameters(), s.actor_learning_rate, betas), self.critic.parameters()
        self.actor_optimizer = self.register("actor_optimizer", actor)
        self.critic_optimizer = self.register("critic_optimizer", adam(critic, s.critic_learning_rate, betas))

    def update(self) -> dict[str, float]:
        """Take one policy step along the gradient of a rollout, and train the critic on it."""
        s = self.settings
        remaining = max(0.0, 1.0 - self.steps / s.lr_decay_steps)
        for optimizer, learning_rate in (
            (self.actor_optimizer, s.actor_learning_rate),
            (self.critic_optimizer, s.critic_learning_rate),
        ):
            optimizer.param_groups[0]["lr"] = learning_rate * (
                s.final_lr_fraction + (1.0 - s.final_lr_fraction) * remaining
            )
        horizon = self.horizon.steps
        norm, clip_fraction = self.update_actor(horizon)
        loss = self.update_critic()
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                old.lerp_(new, 1.0 - s.target_critic_alpha)
        self.steps += s.num_envs * horizon * self.process_group.world_size
        if s.adaptive_horizon:
            self.horizon.adapt(clip_fraction)
        metrics = {"grad_norm": norm, "critic_loss": loss, "clip_fraction": clip_fraction, "horizon": horizon}
        if s.mixed_gradient:
            names = ("variance_pathwise", "variance_likelihood_ratio")
            metrics |= dict(zip(names, self.mixture.variance.tolist(), strict=True))
        return {**self.episode_stats.metrics(), **metrics}

    def update_actor(self, horizon: int) -> tuple[float, float]:
        """Simulate `horizon` steps, take one policy step along the gradient of the return, and store the rollout for the
        critic.

        Returns:
          Gradient norm before clipping, and fraction of the state cotangents that were clipped.
        """
        s, env, policy = self.settings, self.env, self.policy
        observation, rows = env.detach(), []
        objective = torch.zeros(s.num_envs, device=self.device)
        discount, any_gradient = torch.ones(s.num_envs, device=self.device), False
        for t in range(horizon):
            noise, discount_before = self.noise(s.num_envs, env.action_size), discount
            x = policy.pre_tanh(observation, noise)
            excess = (x.abs() - s.saturation_threshold).clamp(min=0.0)
            objective = objective - s.saturation_weight * excess.square().sum(-1)
            step = env.step(policy.limit * torch.tanh(x))
            ended = step.terminated | step.truncated
            objective = objective + discount * step.reward
            any_gradient |= step.reward.requires_grad
            bootstrap = ended if t < horizon - 1 else torch.ones_like(ended)
            if self.device.type != "cpu" or bootstrap.any():  # without a synchronization of the GPU
                value = s.gamma * discount * self.value(step.next_observation)
                objective = objective + torch.where(bootstrap, value, 0.0)
            discount = torch.where(ended, 1.0, s.gamma * discount)
            row = (observation, step.next_observation, step.reward, step.terminated, ended, noise, discount_before)
            rows.append([x.detach() for x in row])
            observation = step.observation
            self.episode_stats.add(step)
        if not any_gradient:
            raise InputError(
                f"no reward of {type(env.task).__name__} has a gradient with respect to states or actions, which SHAC follows: "
                "write it in differentiable operations of PyTorch (no detach, item, round or NumPy), or train by ppo or sac"
            )
        self.rollout = [torch.stack(x) for x in zip(*rows, strict=True)]
        parameters = list(policy.parameters())
        gradient = flatten(torch.autograd.grad(-objective.sum(), parameters)) / (s.num_envs * horizon)
        if s.mixed_gradient:
            gradient = self.mixture(gradient, self.likelihood_ratio_gradient())
        for parameter, part in zip(parameters, gradient.split([w.numel() for w in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)
        clipped, count = self.average_gradients(parameters, env.batch.clip_counts)
        env.batch.clip_counts.zero_()
        return self.clip_and_step(self.actor_optimizer, parameters), clipped / max(count, 1e-9)

    def likelihood_ratio_gradient(self) -> Tensor:
        """Return the likelihood-ratio estimate of the policy gradient on the rollout, for all parameters in one vector."""
        s, policy = self.settings, self.policy
        observations, next_observations, rewards, terminated, ended, noise, discounts = self.rollout
        with torch.no_grad():
            values, next_values = (self.value(x) for x in (observations, next_observations))
            returns = lambda_returns(rewards, next_values, terminated, ended, s.gamma, 1.0)
            x = policy.pre_tanh(observations, noise)
        loss = -(discounts * (returns - values) * policy.log_prob(observations, x)).sum() / rewards.numel()
        return flatten(torch.autograd.grad(loss, list(policy.parameters())))

    def value(self, observation: Tensor) -> Tensor:
        """Return V of the target critic."""
        return self.target(self.policy.normalizer(observation))[..., 0] / (1.0 - self.settings.gamma)

    def update_critic(self) -> float:
        """Train the critic on TD(lambda) targets of the rollout, and to zero on terminal states; return the last loss."""
        s, normalizer = self.settings, self.policy.normalizer
        observations, next_observations, rewards, terminated, ended, _, _ = self.rollout
        with torch.no_grad():
            next_values = self.value(next_observations)
        targets = lambda_returns(rewards, next_values, terminated, ended, s.gamma, s.td_lambda).reshape(-1)
        targets = (1.0 - s.gamma) * targets
        terminal = normalizer(next_observations[terminated])
        inputs = torch.cat([normalizer(observations).reshape(-1, observations.shape[-1]), terminal])
        targets = torch.cat([targets, targets.new_zeros(len(terminal))])
        last = torch.zeros((), device=self.device)
        for _ in range(s.critic_iterations):
            order = torch.randperm(len(inputs), device=self.device, generator=self.generator)
            for minibatch in order.chunk(s.num_critic_minibatches):
                loss = (self.critic(inputs[minibatch])[:, 0] - targets[minibatch]).square().mean()
                self.critic_optimizer.zero_grad()
                loss.backward()
                self.clip_and_step(self.critic_optimizer, list(self.critic.parameters()))
                last = loss.detach()
        if self.process_group.all_reduce_mean is not None:
            self.average_critics(self.process_group.all_reduce_mean)
        normalizer.update(observations, self.process_group.all_reduce_sum)
        return float(last)

    @torch.no_grad()
    def average_critics(self, all_reduce_mean: Callable[[Tensor], Tensor]) -> None:
        """Replace the critic's weights by their mean over the process group. Each process trains its critic on its own rollout:
        one reduction per update is faster than one per minibatch."""
        parameters = list(self.critic.parameters())
        for parameter, mean in zip(
            parameters, average_tensors(all_reduce_mean, [w.data for w in parameters]), strict=True
        ):
            parameter.copy_(mean)


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Return all entries of the tensors in one vector."""
    return torch.cat([x.flatten() for x in tensors])
