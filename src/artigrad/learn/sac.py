"""Soft actor-critic (Haarnoja et al. 2018): a critic Q learns from all that was ever seen; the policy goes where Q less the
price of certainty is high."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..envs import EnvTask
from .learner import Learner, Settings
from .parts import Normalizer, SideBySide, adam, mlp
from .replay import Replay


@dataclass
class SacSettings(Settings):
    """updates: of the critics for each step of all robots. policy_every: of which so many come with one of the policy.
    first: steps with random actions before anything is learned, by which observations are brought to one scale. capacity:
    transitions that are kept. price: of certainty, at first; it is steered to an entropy of -certainty for each entry of the
    action. target_rate: how much of the new critic enters the slow one at each update. norm: critics with layer norm, and ReLU
    in place of ELU, which bear more updates. decay_steps: steps of the environment at which learning rates have fallen,
    linearly, to `last_rate` of their first value; they stay as they are where it is None."""

    envs: int = 32
    hidden: tuple[int, ...] = (256, 256)
    updates: int = 16
    batch: int = 256
    first: int = 2000
    capacity: int = 1_000_000
    rate: float = 3e-4
    decay_steps: int | None = None
    last_rate: float = 0.05
    price: float = 0.1
    certainty: float = 1.0
    target_rate: float = 0.005
    max_norm: float = 10.0
    norm: bool = False
    policy_every: int = 1


class SquashedPolicy(nn.Module):
    """Actions limit tanh(x), x normal with a mean and a spread that depend on the observation."""

    def __init__(self, observations: int, actions: int, limit: float, hidden: tuple[int, ...]):
        super().__init__()
        self.limit = limit
        self.normalizer = Normalizer(observations)
        self.both = mlp([observations, *hidden, 2 * actions], norm=False)

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        return (
            self.draw(observation, noise)[0]
            if noise is not None
            else self.limit * torch.tanh(self._normal(observation)[0])
        )

    def _normal(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_spread = self.both(self.normalizer(observation)).chunk(2, -1)
        return mean, log_spread.clamp(-5.0, 2.0)

    def draw(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """An action and the logarithm of its density, of action/limit."""
        mean, log_spread = self._normal(observation)
        x = mean + log_spread.exp() * noise
        squash = 2.0 * (0.6931471805599453 - x - nn.functional.softplus(-2.0 * x))  # log(1 - tanh(x)^2)
        density = -(0.5 * noise.square() + log_spread + 0.9189385332046727 + squash).sum(-1)
        return self.limit * torch.tanh(x), density


class TwoCritics(nn.Module):
    """The smaller of two estimates of Q, so that errors are not sought out."""

    def __init__(self, observations: int, actions: int, hidden: tuple[int, ...], norm: bool = False):
        super().__init__()
        self.normalizer = Normalizer(observations)
        activation = nn.functional.relu if norm else nn.functional.elu
        self.both = SideBySide(2, [observations + actions, *hidden, 1], activation, norm=norm)

    def each(self, observation: Tensor, action: Tensor) -> Tensor:
        x = torch.cat([self.normalizer(observation), action], -1)
        return self.both(x.reshape(-1, x.shape[-1]).expand(2, -1, -1)).reshape(2, *x.shape[:-1])

    def forward(self, observation: Tensor, action: Tensor) -> Tensor:
        return self.each(observation, action).amin(0)


class Sac(Learner):
    """See the head of this file."""

    Settings = SacSettings

    @staticmethod
    def policy_for(task: EnvTask, settings: Any) -> nn.Module:
        return SquashedPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def setup(self) -> None:
        s, env = self.settings, self.env
        self.critic = self.keep("critic", TwoCritics(env.observation_size, env.action_size, s.hidden, s.norm))
        self.target = self.keep("target", copy.deepcopy(self.critic))
        self.log_price = self.keep("price", nn.ParameterList([torch.tensor(math.log(s.price))]))
        for name, weights in (("actor", self.policy), ("critic", self.critic), ("price", self.log_price)):
            self.keep(f"{name}_adam", adam(weights.parameters(), s.rate))
        self.replay = self.keep("replay", Replay(s.capacity, self.device))

    def decay(self) -> None:
        """Learning rates at this step."""
        s = self.settings
        if s.decay_steps is not None:
            part = s.last_rate + (1.0 - s.last_rate) * max(0.0, 1.0 - self.steps / s.decay_steps)
            for name in ("actor", "critic", "price"):
                self.parts[f"{name}_adam"].param_groups[0]["lr"] = part * s.rate

    def update(self) -> dict[str, float]:
        s = self.settings
        self.decay()
        self.act()
        self.steps += s.envs
        losses: dict[str, float] = {}
        if self.steps >= s.first:
            for k in range(s.updates):
                losses = self.learn(self.replay.sample(s.batch, self.generator), k % s.policy_every == 0)
        return {
            **self.tally.figures(),
            "critic": losses.get("critic", 0.0),
            "price": float(self.log_price[0].detach().exp()),
        }

    def act(self) -> None:
        """One step of all robots into the replay."""
        s, env = self.settings, self.env
        with torch.no_grad():
            action = self.policy(self.observation, self.noise(s.envs, env.action_size))
            if self.steps < s.first:
                for part in (self.policy, self.critic, self.target):
                    part.normalizer.update(self.observation)
                action = env.task.limit * (
                    2.0 * torch.rand(action.shape, generator=self.generator, device=self.device) - 1.0
                )
        more = self.more(action)
        with torch.no_grad():
            found = env.step(action)
        failed = found.terminated.to(action)
        seen = {
            "before": self.observation,
            "action": action,
            "reward": found.reward,
            "after": found.last,
            "failed": failed,
        }
        self.replay.add(**seen, **more)
        self.tally.add(found)
        self.observation = found.observation

    def more(self, action: Tensor) -> dict[str, Tensor]:
        """What else of a transition is kept."""
        return {}

    def learn(self, seen: dict[str, Tensor], policy: bool = True) -> dict[str, float]:
        """One step of the critic and, where asked for, of the policy and of the price of certainty."""
        s, price, actions = self.settings, self.log_price[0].exp().detach(), self.env.action_size
        with torch.no_grad():
            action, density = self.policy.draw(seen["after"], self.noise(len(seen["after"]), actions))
            ahead = self.target(seen["after"], action) - price * density
            wanted = seen["reward"] + s.gamma * (1.0 - seen["failed"]) * ahead
        error = (self.critic.each(seen["before"], seen["action"]) - wanted).square().mean()
        self._descend("critic", error)
        self.follow_critic()
        if policy:
            action, density = self.policy.draw(seen["before"], self.noise(len(seen["before"]), actions))
            self._descend("actor", (price * density - self.critic(seen["before"], action)).mean())
            self.log_price[0].grad = (s.certainty * actions - density.detach()).mean()
            self.descend(self.parts["price_adam"], list(self.log_price))
        return {"critic": float(error.detach())}

    @torch.no_grad()
    def follow_critic(self) -> None:
        """The slow critic comes nearer to the new one."""
        torch._foreach_lerp_(list(self.target.parameters()), list(self.critic.parameters()), self.settings.target_rate)

    def _descend(self, name: str, loss: Tensor) -> None:
        adam = self.parts[f"{name}_adam"]
        weights = adam.param_groups[0]["params"]
        for weight, grad in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = grad
        self.descend(adam, weights)
