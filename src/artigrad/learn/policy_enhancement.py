"""Policy enhancement (Qiao et al. 2021): soft actor-critic whose policy follows the slope of the physics, not only that of Q.

Where an action of the policy was tried, the simulator tells how what came of it, y = (state, observation, reward), depends on
state and action. The paper's slope of the return with respect to an action is

    g = dr/da + gamma (dy/da)^T dV/dy,      dV/dy by the critic, V(y) = Q(y, policy(y))

and with the transitions that came after, dV/dy is also known from them, through physics and policy:

    dV/dy = (1 - lam) (by the critic) + lam (dr/dy + policy'(y)^T g + gamma (dy'/dy)^T dV/dy')

`lam = 0` is the paper's; the more, the less a critic has to know. Q learns returns by TD(lambda), and their slopes too. The
policy is brought nearer to actions that are better by g, by no more than `reach` for each, however steep g is: slopes of
chaotic motion differ by orders of magnitude from state to state, and none may drown the others. The noise of actions is given,
not learned: the price of certainty is zero. Noise, reach and rates fall to nearly nothing over `decay_steps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..envs import EnvTask, Moment
from .parts import GaussianPolicy, adam, lambda_returns
from .sac import Sac, SacSettings


@dataclass
class EnhancementSettings(SacSettings):
    """horizon: steps that are recorded between two updates; by default whole episodes, which all robots begin together. lam: as
    at the head of this file. spread: of the noise, before the tanh. reach: how far an action may move in an update, of its
    limit; where the slope of the return is much less than `steep` it moves less. passes: of the policy over what was recorded.
    updates: of the critic, each time. slope_price: of errors of the critic's slopes, beside those of its values. clip: the norm
    that cotangents of a robot's state are cut down to. slack, slack_price: as in SHAC. first: steps by which observations are
    brought to one scale. price, certainty: not used."""

    envs: int = 8
    hidden: tuple[int, ...] = (64, 64)
    horizon: int | None = None
    lam: float = 0.99
    spread: float = 0.05
    reach: float = 0.1
    passes: int = 16
    updates: int = 24
    batch: int = 128
    capacity: int = 32_000
    first: int = 4000
    rate: float = 1e-3
    last_rate: float = 0.02
    target_rate: float = 0.05
    steep: float = 0.05
    slope_price: float = 0.1
    clip: float = 1e3
    slack: float = 1.5
    slack_price: float = 0.02


class PolicyEnhancement(Sac):
    """See the head of this file."""

    Settings = EnhancementSettings

    @staticmethod
    def policy_for(task: EnvTask, settings: Any) -> nn.Module:
        return GaussianPolicy(task.observation_size, task.model.nu, task.limit, settings.hidden)

    def setup(self) -> None:
        super().setup()
        self.keep("actor_adam", adam(self.policy.mean.parameters(), self.settings.rate, (0.9, 0.99)))

    def update(self) -> dict[str, float]:
        s = self.settings
        self.decay()
        seen = self.record()
        if self.steps < s.first:
            for part in (self.policy, self.critic, self.target):
                part.normalizer.update(seen["before"], self.workers.total)
        self.steps += s.envs * len(seen["before"]) * self.workers.count
        returns, slopes = self.slopes(seen)
        moved = self.climb(seen, slopes[..., -self.env.action_size :])
        names = ("q", "v", "seen", "goal", "steps", "action")
        rows = {name: seen[name] for name in names} | {"wanted": returns, "slope": slopes}
        self.replay.add(**{name: x.flatten(0, 1) for name, x in rows.items()})
        losses: dict[str, float] = {}
        for _ in range(s.updates):
            losses = self.teach(self.replay.sample(s.batch, self.generator))
        return {**self.tally.figures(), **losses, "moved": moved}

    def decay(self) -> None:
        """Learning rates, noise and reach at this step."""
        s, self.part = self.settings, 1.0
        if s.decay_steps is not None:
            self.part = s.last_rate + (1.0 - s.last_rate) * max(0.0, 1.0 - self.steps / s.decay_steps)
        for name in ("actor", "critic"):
            self.parts[f"{name}_adam"].param_groups[0]["lr"] = self.part * s.rate
        with torch.no_grad():
            self.policy.log_spread.fill_(math.log(self.part * s.spread))

    @torch.no_grad()
    def record(self) -> dict[str, Tensor]:
        """What all robots meet, (steps, robots, ...)."""
        s, env, rows = self.settings, self.env, []
        if s.horizon is None:
            self.observation = env.reset()
        for _ in range(s.horizon or env.episode):
            now = env.now
            assert now is not None
            noise = self.noise(s.envs, env.action_size)
            action = self.policy(self.observation, noise)
            found = env.step(action)
            row = {"before": self.observation, "noise": noise, "action": action, **now._asdict()}
            row |= {"reward": found.reward, "after": found.last}
            rows.append(row | {"failed": found.terminated, "ended": found.terminated | found.truncated})
            self.observation = found.observation
            self.tally.add(found)
        return {name: torch.stack([row[name] for row in rows]) for name in rows[0]}

    def slopes(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns of what was recorded, and how they depend on state and action, (steps, robots, nq + nv + actions)."""
        s, failed, ended = self.settings, seen["failed"], seen["ended"]
        after = seen["after"].clone().requires_grad_()
        value = self.target(after, self.policy(after))
        (by_critic,) = torch.autograd.grad(value.sum(), after)
        before = seen["before"].clone().requires_grad_()
        action = self.policy(before, seen["noise"])
        gains = [torch.autograd.grad(x.sum(), before, retain_graph=True)[0] for x in action.unbind(-1)]
        gain = torch.stack(gains, -2)  # of the policy, (steps, robots, actions, observations)
        moments = Moment(*(seen[name].flatten(0, 1) for name in Moment._fields))
        physics = self.env.slopes(moments, seen["action"].flatten(0, 1)).unflatten(0, ended.shape)
        x_size, slopes, found = seen["q"].shape[-1] + seen["v"].shape[-1], torch.zeros(0), []
        for t in reversed(range(len(ended))):
            y_bar = torch.zeros_like(physics[t, :, :, 0])
            y_bar[:, x_size:-1] = by_critic[t]
            if t < len(ended) - 1:
                going = (~ended[t])[:, None]
                through = (slopes[:, None, x_size:] @ gain[t + 1])[:, 0]
                y_bar[:, :x_size] = going * s.lam * slopes[:, :x_size]
                y_bar[:, x_size:-1] += going * s.lam * (through - by_critic[t])
            y_bar = s.gamma * (~failed[t])[:, None] * y_bar
            y_bar = y_bar * (s.clip / y_bar.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
            y_bar[:, -1] = 1.0
            slopes = (y_bar[:, None] @ physics[t])[:, 0]
            found.append(slopes)
        returns = lambda_returns(seen["reward"], value.detach(), value.detach(), failed, ended, s.gamma, s.lam)
        return returns, torch.stack(found[::-1])

    def climb(self, seen: dict[str, Tensor], slope: Tensor) -> float:
        """The policy comes nearer to better actions; how far it moved, of `reach`."""
        s, limit, policy = self.settings, self.env.task.limit, self.policy
        reach = self.part * s.reach * limit
        wanted = seen["action"] + reach * slope / (slope.norm(dim=-1, keepdim=True) + s.steep / limit)
        moved = torch.zeros(())
        for _ in range(s.passes):
            x = policy.raw(seen["before"])
            action = limit * torch.tanh(x)
            error = 0.5 * ((action - wanted) / reach).square().sum(-1).mean()
            beyond = (x.abs() - s.slack).clamp(min=0.0).square().sum(-1).mean()
            self._descend("actor", error + s.slack_price * beyond)
            moved = (action.detach() - seen["action"]).norm(dim=-1).mean() / reach
        return float(moved)

    def teach(self, seen: dict[str, Tensor]) -> dict[str, float]:
        """The critic learns returns, and how they depend on state and action."""
        s, task = self.settings, self.env.task
        inputs = [seen[name].requires_grad_() for name in ("q", "v", "action")]
        now = Moment(inputs[0], inputs[1], seen["seen"], seen["goal"], seen["steps"])
        told = self.critic.each(task.observe(now), inputs[2])
        error = (told - seen["wanted"]).square().mean()
        loss = error
        if s.slope_price:
            scale = torch.cat([x.detach().std(0) for x in inputs], -1)
            slope = scale * seen["slope"]
            most = 3.0 * seen["wanted"].std()
            slope = slope * (most / slope.norm(dim=-1, keepdim=True).clamp(min=1e-30)).clamp(max=1.0)
            for one in told:
                bars = torch.cat(torch.autograd.grad(one.sum(), inputs, create_graph=True), -1)
                loss = loss + 0.5 * s.slope_price * (scale * bars - slope).square().sum(-1).mean()
        self._descend("critic", loss)
        self.follow_critic()
        return {"critic": float(error.detach()), "slope": float(loss.detach() - error.detach())}
