"""Proximal policy optimisation (Schulman et al. 2017): no gradient of the physics; actions that did better than the critic
expected become likelier, within a band around the policy that took them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..envs import EnvTask
from .learner import Learner, Settings
from .parts import GaussianPolicy, adam, lambda_returns, mlp


@dataclass
class PpoSettings(Settings):
    """horizon: steps between two updates. passes, pieces: over what was seen. band: how far a probability may move at once.
    kl: the change of the policy per update that the learning rate is steered to. log_spread: of the noise at first. scaled:
    observations are brought to one scale, that of all that were seen so far; where what is seen at first is narrow, as a pole
    that hangs, that scale changes much, and it is better without. What the critic says is (1 - gamma) times a value, of the
    size of a reward."""

    envs: int = 256
    horizon: int = 32
    rate: float = 5e-4
    lam: float = 0.95
    passes: int = 5
    pieces: int = 8
    band: float = 0.2
    kl: float = 0.012
    log_spread: float = -1.0
    scaled: bool = True
    critic_hidden: tuple[int, ...] = (128, 128)
    max_norm: float = 1.0


class Ppo(Learner):
    """See the head of this file."""

    Settings = PpoSettings

    @staticmethod
    def policy_for(task: EnvTask, settings: Any) -> nn.Module:
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden, settings.log_spread)

    def setup(self) -> None:
        s = self.settings
        self.critic = self.keep("critic", mlp([self.env.observation_size, *s.critic_hidden, 1], norm=False))
        self.weights = [*self.policy.parameters(), *self.critic.parameters()]
        self.adam = self.keep("adam", adam(self.weights, s.rate))

    def update(self) -> dict[str, float]:
        s = self.settings
        self.act()
        kl = self.learn()
        self.steps += s.envs * s.horizon * self.workers.count
        return {**self.tally.figures(), "kl": kl, "spread": float(self.policy.log_spread.detach().exp().mean())}

    @torch.no_grad()
    def act(self) -> None:
        """A stretch of simulation under the policy."""
        s, env, policy = self.settings, self.env, self.policy
        observation, seen = self.observation, []
        for _ in range(s.horizon):
            x = policy.mean(policy.normalizer(observation)) + policy.log_spread.exp() * self.noise(
                s.envs, env.action_size
            )
            found = env.step(policy.limit * torch.tanh(x))
            ended = found.terminated | found.truncated
            seen.append(
                [observation, x, policy.log_density(observation, x), found.reward, found.last, found.terminated, ended]
            )
            observation = found.observation
            self.tally.add(found)
        self.observation = observation
        self.seen = [torch.stack(x) for x in zip(*seen, strict=True)]

    def value(self, observation: torch.Tensor) -> torch.Tensor:
        return self._told(observation) / (1.0 - self.settings.gamma)

    def _told(self, observation: torch.Tensor) -> torch.Tensor:
        return self.critic(self.policy.normalizer(observation))[..., 0]

    def learn(self) -> float:
        """Passes over what was seen; the change of the policy, by its KL divergence."""
        s, policy = self.settings, self.policy
        before, x, density, rewards, after, terminated, ended = self.seen
        with torch.no_grad():
            values, last_values = self.value(before), self.value(after)
            targets = lambda_returns(rewards, values, last_values, terminated, ended, s.gamma, s.lam)
            gains = targets - values
            gains = (gains - gains.mean()) / (gains.std() + 1e-6)
            targets = (1.0 - s.gamma) * targets
        rows = [y.reshape(-1, *y.shape[2:]) for y in (before, x, density, targets, gains)]
        count, total = 0, 0.0
        for _ in range(s.passes):
            for piece in torch.randperm(len(rows[0]), device=self.device, generator=self.generator).chunk(s.pieces):
                seen, taken, was, target, gain = (y[piece] for y in rows)
                ratio = (policy.log_density(seen, taken) - was).exp()
                surrogate = torch.minimum(ratio * gain, ratio.clamp(1.0 - s.band, 1.0 + s.band) * gain).mean()
                error = (self._told(seen) - target).square().mean()
                self.adam.zero_grad()
                (0.5 * error - surrogate).backward()
                [kl] = self.share(self.weights, (ratio.detach() - 1.0 - ratio.detach().log()).mean()[None])
                self.descend(self.adam, self.weights)
                self._steer(kl)
                count, total = count + 1, total + kl
        if s.scaled:
            policy.normalizer.update(before, self.workers.total)
        return total / count

    def _steer(self, kl: float) -> None:
        """A smaller rate where the policy moved too far, a larger one where it hardly did."""
        group = self.adam.param_groups[0]
        if kl > 2.0 * self.settings.kl:
            group["lr"] = max(1e-5, group["lr"] / 1.5)
        elif kl < 0.5 * self.settings.kl:
            group["lr"] = min(3e-3, group["lr"] * 1.5)
