"""Policy enhancement (Qiao et al. 2021): SAC whose policy follows gradients of the physics, not only those of Q.

The simulator differentiates the result of every recorded step, y = (state, observation, reward), with respect to state and
action. The gradient g of the return with respect to an action in the paper is

    g = dr/da + gamma (dy/da)^T dV/dy,      dV/dy by the critic, V(y) = Q(y, policy(y))

The transitions that followed give dV/dy too, through physics and policy. Both are combined:

    dV/dy = (1 - lambda) (by the critic) + lambda (dr/dy + policy'(y)^T g + gamma (dy'/dy)^T dV/dy')

lambda = 0 is the paper's; a larger lambda depends less on the critic. The critic learns TD(lambda) returns and their
gradients.

The policy is regressed on actions moved along g by at most `max_action_change` each, for any norm of g: in chaotic motions
the norms differ by orders of magnitude between states, and an average gradient would be that of few states. The standard
deviation of the exploration noise is a setting, not learned; there is no entropy term. Noise, `max_action_change` and
learning rates decay over `lr_decay_steps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..deprecation import renamed
from ..envs import EnvState, EnvTask
from .episodes import lambda_returns
from .networks import GaussianPolicy
from .optimizers import adam
from .sac import Sac, SacSettings


@renamed(
    horizon="num_steps",
    lam="td_lambda",
    spread="exploration_std",
    reach="max_action_change",
    passes="update_epochs",
    steep="gradient_threshold",
    slope_price="gradient_loss_weight",
    slack="saturation_threshold",
    slack_price="saturation_weight",
)
@dataclass
class EnhancementSettings(SacSettings):
    """Settings of policy enhancement; those of SAC, and the following. Not used: alpha, target_entropy_scale.

    Attributes:
      num_steps: Environment steps per update and environment; None: whole episodes, which all environments begin together.
      td_lambda: Lambda of returns and of their gradients, see the module's docstring.
      exploration_std: Standard deviation of the action noise, before tanh.
      max_action_change: Largest change of an action per update, as a fraction of the limit.
      gradient_threshold: Norm of the gradient of the return, times the limit, at which half of max_action_change is applied.
      update_epochs: Epochs of the policy per update.
      critic_updates: Critic updates per update.
      gradient_loss_weight: Weight of the critic's gradient error beside its value error.
      clip: Maximum norm of each environment's cotangents of y.
      saturation_threshold, saturation_weight: Penalty on saturated actions, as in ShacSettings.
      learning_starts: Environment steps that observation statistics come from.
    """

    num_envs: int = 8
    hidden: tuple[int, ...] = (64, 64)
    num_steps: int | None = None
    td_lambda: float = 0.99
    exploration_std: float = 0.05
    max_action_change: float = 0.1
    update_epochs: int = 16
    critic_updates: int = 24
    batch_size: int = 128
    buffer_size: int = 32_000
    learning_starts: int = 4000
    learning_rate: float = 1e-3
    final_lr_fraction: float = 0.02
    tau: float = 0.05
    gradient_threshold: float = 0.05
    gradient_loss_weight: float = 0.1
    clip: float = 1e3
    saturation_threshold: float = 1.5
    saturation_weight: float = 0.02


class PolicyEnhancement(Sac):
    """Policy enhancement."""

    Settings = EnhancementSettings

    @staticmethod
    def make_policy(task: EnvTask, settings: Any) -> nn.Module:
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def setup(self) -> None:
        super().setup()
        self.register("actor_optimizer", adam(self.policy.mean.parameters(), self.settings.learning_rate, (0.9, 0.99)))

    def update(self) -> dict[str, float]:
        """Record a rollout, move the policy along the gradients of its return, and train the critic."""
        s = self.settings
        self.decay_learning_rates()
        rollout = self.collect_rollout()
        if self.steps < s.learning_starts:
            for part in (self.policy, self.critic, self.target):
                part.normalizer.update(rollout["observation"], self.process_group.all_reduce_sum)
        self.steps += s.num_envs * len(rollout["observation"]) * self.process_group.world_size
        returns, gradients = self.return_gradients(rollout)
        change = self.update_policy(rollout, gradients[..., -self.env.action_size :])
        names = ("q", "v", "extras", "goal", "steps", "action")
        rows = {name: rollout[name] for name in names} | {"target": returns, "gradient": gradients}
        self.replay.add(**{name: x.flatten(0, 1) for name, x in rows.items()})
        losses: dict[str, float] = {}
        for _ in range(s.critic_updates):
            losses = self.update_critic(self.replay.sample(s.batch_size, self.generator))
        return {**self.episode_stats.metrics(), **losses, "policy_change": change}

    def decay_learning_rates(self) -> None:
        """Set learning rates, noise and `self.decay`, the factor on max_action_change, of this step."""
        s, self.decay = self.settings, 1.0
        if s.lr_decay_steps is not None:
            remaining = max(0.0, 1.0 - self.steps / s.lr_decay_steps)
            self.decay = s.final_lr_fraction + (1.0 - s.final_lr_fraction) * remaining
        for name in ("actor", "critic"):
            self.modules[f"{name}_optimizer"].param_groups[0]["lr"] = self.decay * s.learning_rate
        with torch.no_grad():
            self.policy.log_std.fill_(math.log(self.decay * s.exploration_std))

    @torch.no_grad()
    def collect_rollout(self) -> dict[str, Tensor]:
        """Simulate a rollout; return its states, actions, rewards and so on by name, (steps, envs, ...)."""
        s, env, rows = self.settings, self.env, []
        if s.num_steps is None:
            self.observation = env.reset()
            self.episode_stats.restart()
        for _ in range(s.num_steps or env.max_episode_steps):
            state = env.state
            assert state is not None
            noise = self.noise(s.num_envs, env.action_size)
            action = self.policy(self.observation, noise)
            step = env.step(action)
            row = {"observation": self.observation, "noise": noise, "action": action, **state._asdict()}
            row |= {"reward": step.reward, "next_observation": step.next_observation}
            rows.append(row | {"terminated": step.terminated, "ended": step.terminated | step.truncated})
            self.observation = step.observation
            self.episode_stats.add(step)
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def return_gradients(self, rollout: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the TD(lambda) returns of a rollout and their gradients.

        Returns:
          Returns (steps, envs), and gradients with respect to (q, v, action), (steps, envs, nq + nv + action_size).
        """
        s, terminated, ended = self.settings, rollout["terminated"], rollout["ended"]
        after = rollout["next_observation"].clone().requires_grad_()
        value = self.target(after, self.policy(after))
        (critic_gradient,) = torch.autograd.grad(value.sum(), after)
        before = rollout["observation"].clone().requires_grad_()
        action = self.policy(before, rollout["noise"])
        rows = [torch.autograd.grad(x.sum(), before, retain_graph=True)[0] for x in action.unbind(-1)]
        policy_jacobian = torch.stack(rows, -2)  # (steps, envs, actions, observations)
        states = EnvState(*(rollout[name].flatten(0, 1) for name in EnvState._fields))
        physics = self.env.step_jacobian(states, rollout["action"].flatten(0, 1)).unflatten(0, ended.shape)
        n, gradient, gradients = rollout["q"].shape[-1] + rollout["v"].shape[-1], torch.zeros(0), []
        for t in reversed(range(len(ended))):
            y_bar = torch.zeros_like(physics[t, :, :, 0])  # (q, v, observation, reward)
            y_bar[:, n:-1] = critic_gradient[t]
            if t < len(ended) - 1:
                running = (~ended[t])[:, None]
                through_policy = (gradient[:, None, n:] @ policy_jacobian[t + 1])[:, 0]
                y_bar[:, :n] = running * s.td_lambda * gradient[:, :n]
                y_bar[:, n:-1] += running * s.td_lambda * (through_policy - critic_gradient[t])
            y_bar = s.gamma * (~terminated[t])[:, None] * y_bar
            y_bar = y_bar * (s.clip / y_bar.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
            y_bar[:, -1] = 1.0
            gradient = (y_bar[:, None] @ physics[t])[:, 0]
            gradients.append(gradient)
        returns = lambda_returns(rollout["reward"], value.detach(), terminated, ended, s.gamma, s.td_lambda)
        return returns, torch.stack(gradients[::-1])

    def update_policy(self, rollout: dict[str, Tensor], gradient: Tensor) -> float:
        """Regress the policy on actions moved along the gradient of the return, (steps, envs, action_size).

        Returns:
          Mean change of the actions, as a fraction of max_action_change.
        """
        s, limit, policy = self.settings, self.env.task.limit, self.policy
        largest = self.decay * s.max_action_change * limit
        target = rollout["action"] + largest * gradient / (
            gradient.norm(dim=-1, keepdim=True) + s.gradient_threshold / limit
        )
        change = torch.zeros(())
        for _ in range(s.update_epochs):
            x = policy.pre_tanh(rollout["observation"])
            action = limit * torch.tanh(x)
            error = 0.5 * ((action - target) / largest).square().sum(-1).mean()
            excess = (x.abs() - s.saturation_threshold).clamp(min=0.0).square().sum(-1).mean()
            self._minimize("actor", error + s.saturation_weight * excess)
            change = (action.detach() - rollout["action"]).norm(dim=-1).mean() / largest
        return float(change)

    def update_critic(self, batch: dict[str, Tensor]) -> dict[str, float]:
        """Train the critic on returns and on their gradients with respect to state and action; return losses by name."""
        s, task = self.settings, self.env.task
        inputs = [batch[name].requires_grad_() for name in ("q", "v", "action")]
        state = EnvState(inputs[0], inputs[1], batch["extras"], batch["goal"], batch["steps"])
        values = self.critic.both(task.observe(state), inputs[2])
        error = (values - batch["target"]).square().mean()
        loss = error
        if s.gradient_loss_weight:
            scale = torch.cat([x.detach().std(0) for x in inputs], -1)
            target = scale * batch["gradient"]
            largest = 3.0 * batch["target"].std()
            target = target * (largest / target.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
            for value in values:
                bars = torch.cat(torch.autograd.grad(value.sum(), inputs, create_graph=True), -1)
                loss = loss + 0.5 * s.gradient_loss_weight * (scale * bars - target).square().sum(-1).mean()
        self._minimize("critic", loss)
        self.update_target()
        return {"critic_loss": float(error.detach()), "gradient_loss": float(loss.detach() - error.detach())}
