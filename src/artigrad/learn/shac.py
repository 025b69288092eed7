"""Short-horizon actor-critic (Xu et al. 2022): the policy climbs the gradient of its return through a short stretch of
simulation, and a critic stands for what comes after.

    maximise  sum_t gamma^t r_t + gamma^h V(s_h)      by the gradient through policy, physics, reward and V

A robot that fails within the stretch has no future, but how it came to fail has a slope: V, which learns that it is zero there,
stands in for it, so that leaning on the edge is not free.

`mixed=True` (after Suh et al. 2022): the gradient through the physics is mixed with the one of the policy's likelihood, which
needs none, each by how little it varies from update to update:

    g = (var_0 g_1 + var_1 g_0) / (var_0 + var_1),    g_0 = mean of sum_t grad log p(x_t) gamma^t (return - V)

`adaptive=True` (in the spirit of Georgiev et al. 2024): the stretch grows by a step while few cotangents have to be cut down on
their way back, and shrinks where many do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .learner import Learner, Settings
from .parts import adam, in_one, lambda_returns, mlp


@dataclass
class ShacSettings(Settings):
    """span: s of simulated time that gradients go through: long enough to feel what an action does, and short of the time
    in which gradients of contact grow beyond use. clip: see `DifferentiableEnv`, in units of the return of one robot.

    The critic is taught `critic_passes` passes over what was seen, in `critic_pieces` pieces; of the target critic that stands
    for the future, `target_rate` stays at each update. What the critic says is (1 - gamma) times a value, of the size of a
    reward. Actions are tanh(x), which is flat far out, where no gradient comes back from: what of |x| is beyond `slack` costs
    `slack_price` times its square. Learning rates fall linearly to `last_rate` of their first value at `decay_steps` steps of
    the environment."""

    envs: int = 64
    span: float = 0.2
    clip: float = 1000.0
    adaptive: bool = False
    mixed: bool = False
    actor_rate: float = 2e-3
    critic_rate: float = 2e-3
    decay_steps: int = 3_000_000
    last_rate: float = 0.1
    lam: float = 0.95
    critic_hidden: tuple[int, ...] = (128, 128)
    critic_passes: int = 4
    critic_pieces: int = 4
    target_rate: float = 0.4
    slack: float = 1.5
    slack_price: float = 0.3
    max_norm: float = 1.0


class Stretch:
    """How many steps gradients go through."""

    def __init__(self, steps: int):
        self.steps, self.most = steps, 3 * steps

    def adapt(self, part: float) -> None:
        """part: of the cotangents, that was cut down."""
        self.steps = (
            min(self.most, self.steps + 1) if part < 0.1 else max(2, self.steps - 1) if part > 0.3 else self.steps
        )

    def state_dict(self) -> dict[str, int]:
        return {"steps": self.steps}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


class Mixture(nn.Module):
    """Running means and variances of two estimates of a gradient: through the physics, and by likelihood."""

    middle: Tensor
    variance: Tensor

    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("middle", torch.zeros(2, size))
        self.register_buffer("variance", torch.ones(2))

    def forward(self, first: Tensor, zeroth: Tensor) -> Tensor:
        both = torch.stack([first, zeroth])
        self.variance.lerp_((both - self.middle).square().sum(-1), 0.1)
        self.middle.lerp_(both, 0.1)
        part = self.variance[1] / self.variance.sum()
        return part * first + (1.0 - part) * zeroth


class Shac(Learner):
    """See the head of this file."""

    Settings = ShacSettings

    def setup(self) -> None:
        s, size = self.settings, self.env.observation_size
        self.stretch = self.keep("stretch", Stretch(max(2, round(s.span / self.env.dt))))
        self.critic = self.keep("critic", mlp([size, *s.critic_hidden, 1]))
        self.target = self.keep("target", mlp([size, *s.critic_hidden, 1]))
        self.target.load_state_dict(self.critic.state_dict())
        if s.mixed:
            self.mixture = self.keep("mixture", Mixture(sum(w.numel() for w in self.policy.parameters())))
        self.actor_adam = self.keep("actor_adam", adam(self.policy.parameters(), s.actor_rate, (0.7, 0.95)))
        self.critic_adam = self.keep("critic_adam", adam(self.critic.parameters(), s.critic_rate, (0.7, 0.95)))

    def update(self) -> dict[str, float]:
        s = self.settings
        left = max(0.0, 1.0 - self.steps / s.decay_steps)
        for optimizer, rate in ((self.actor_adam, s.actor_rate), (self.critic_adam, s.critic_rate)):
            optimizer.param_groups[0]["lr"] = rate * (s.last_rate + (1.0 - s.last_rate) * left)
        horizon = self.stretch.steps
        norm, part = self.climb(horizon)
        error = self.teach()
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), self.critic.parameters(), strict=True):
                old.lerp_(new, 1.0 - s.target_rate)
        self.steps += s.envs * horizon * self.workers.count
        if s.adaptive:
            self.stretch.adapt(part)
        figures = {"gradient": norm, "critic": error, "cut": part, "horizon": horizon}
        if s.mixed:
            figures |= dict(zip(("variance_first", "variance_zeroth"), self.mixture.variance.tolist(), strict=True))
        return {**self.tally.figures(), **figures}

    def climb(self, horizon: int) -> tuple[float, float]:
        """The return of a stretch and one step of the policy along its gradient; keeps what was seen for the critic. The norm
        of the gradient, and the part of cotangents that was cut down on the way."""
        s, env, policy = self.settings, self.env, self.policy
        observation, seen = env.detach(), []
        total = torch.zeros(s.envs, device=self.device)
        worth = torch.ones(s.envs, device=self.device)
        for t in range(horizon):
            noise, since = self.noise(s.envs, env.action_size), worth
            x = policy.raw(observation, noise)
            total = total - s.slack_price * (x.abs() - s.slack).clamp(min=0.0).square().sum(-1)
            found = env.step(policy.limit * torch.tanh(x))
            ended = found.terminated | found.truncated
            total = total + worth * found.reward
            cut = ended if t < horizon - 1 else torch.ones_like(ended)
            if self.device.type != "cpu" or cut.any():  # nobody waits for a GPU to look
                total = total + torch.where(cut, s.gamma * worth * self.value(found.last), 0.0)
            worth = torch.where(ended, 1.0, s.gamma * worth)
            seen.append(
                [x.detach() for x in (observation, found.last, found.reward, found.terminated, ended, noise, since)]
            )
            observation = found.observation
            self.tally.add(found)
        self.seen = [torch.stack(x) for x in zip(*seen, strict=True)]
        weights = list(policy.parameters())
        gradient = flat(torch.autograd.grad(-total.sum(), weights)) / (s.envs * horizon)
        if s.mixed:
            gradient = self.mixture(gradient, self.by_likelihood())
        for weight, part in zip(weights, gradient.split([w.numel() for w in weights]), strict=True):
            weight.grad = part.view_as(weight)
        clipped, states = self.share(weights, env.batch.cut)
        env.batch.cut.zero_()
        return self.descend(self.actor_adam, weights), clipped / max(states, 1e-9)

    def by_likelihood(self) -> Tensor:
        """The same gradient from what was seen, without that of the physics."""
        s, policy = self.settings, self.policy
        before, after, rewards, terminated, ended, noise, since = self.seen
        with torch.no_grad():
            values, last_values = (self.value(x) for x in (before, after))
            returns = lambda_returns(rewards, values, last_values, terminated, ended, s.gamma, 1.0)
            x = policy.mean(policy.normalizer(before)) + policy.log_spread.exp() * noise
        loss = -(since * (returns - values) * policy.log_density(before, x)).sum() / rewards.numel()
        return flat(torch.autograd.grad(loss, list(policy.parameters())))

    def value(self, observation: Tensor) -> Tensor:
        """V of observations, by the critic that follows slowly."""
        return self.target(self.policy.normalizer(observation))[..., 0] / (1.0 - self.settings.gamma)

    def teach(self) -> float:
        """The critic learns the lambda-returns of what was seen, and that what failed is worth nothing."""
        s, normalizer = self.settings, self.policy.normalizer
        before, after, rewards, terminated, ended, _, _ = self.seen
        with torch.no_grad():
            values, last_values = (self.value(x) for x in (before, after))
        targets = lambda_returns(rewards, values, last_values, terminated, ended, s.gamma, s.lam).reshape(-1)
        targets = (1.0 - s.gamma) * targets
        failed = normalizer(after[terminated])
        rows = torch.cat([normalizer(before).reshape(-1, before.shape[-1]), failed])
        targets = torch.cat([targets, targets.new_zeros(len(failed))])
        error = torch.zeros((), device=self.device)
        for _ in range(s.critic_passes):
            for piece in torch.randperm(len(rows), device=self.device, generator=self.generator).chunk(s.critic_pieces):
                loss = (self.critic(rows[piece])[:, 0] - targets[piece]).square().mean()
                self.critic_adam.zero_grad()
                loss.backward()
                self.descend(self.critic_adam, list(self.critic.parameters()))
                error = loss.detach()
        if self.workers.mean is not None:
            self.agree(self.workers.mean)
        normalizer.update(before, self.workers.total)
        return float(error)

    @torch.no_grad()
    def agree(self, mean: Callable[[Tensor], Tensor]) -> None:
        """Each worker taught its critic what its own robots saw; all go on with the mean of these. To meet at each step of the
        critic would take longer."""
        weights = list(self.critic.parameters())
        for weight, middle in zip(weights, in_one(mean, [w.data for w in weights]), strict=True):
            weight.copy_(middle)


def flat(pieces: Iterable[Tensor]) -> Tensor:
    return torch.cat([x.flatten() for x in pieces])
