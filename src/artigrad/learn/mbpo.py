"""Model-based policy optimisation (Janner et al. 2019), and sample enhancement (Qiao et al. 2021) on top of it.

An ensemble of networks learns what the environment does, soft actor-critic learns from short rollouts in it. Sample enhancement
adds to every true transition others nearby, which the Jacobians of the physics give for free:

    a_k = a + da,   s'_k = s' + ds'/da da,   r_k = r + dr/da da
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .parts import Normalizer, SideBySide
from .replay import Replay
from .sac import Sac, SacSettings


@dataclass
class MbpoSettings(SacSettings):
    """members, elites: of the ensemble. model_every: steps between two trainings of it, of `model_passes` over at most
    `model_rows` transitions. rollouts: starts of imagined stretches each time. horizon: (from, to, first step, last step): how
    long they are, growing while the environment takes those steps. real: part of true transitions in a batch.
    extra, reach: of sample enhancement, transitions for each true one and how far their actions lie from it."""

    envs: int = 1
    updates: int = 20
    first: int = 5000
    members: int = 7
    elites: int = 5
    model_hidden: int = 200
    model_every: int = 250
    model_passes: int = 5
    model_rows: int = 20_000
    model_rate: float = 1e-3
    rollouts: int = 10_000
    horizon: tuple[int, int, int, int] = (1, 25, 20_000, 100_000)
    real: float = 0.05
    extra: int = 9
    reach: float = 0.1


class Ensemble(nn.Module):
    """Members that each say, of an observation and an action, how it changes and what is the reward, with a spread."""

    def __init__(self, observations: int, actions: int, s: MbpoSettings):
        super().__init__()
        self.inputs, self.outputs = Normalizer(observations + actions), Normalizer(observations + 1)
        sizes = [observations + actions, *[s.model_hidden] * 4, 2 * (observations + 1)]
        self.members = SideBySide(s.members, sizes, nn.functional.silu)
        self.register_buffer("best", torch.arange(s.elites))

    best: Tensor

    def forward(self, x: Tensor, which: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log spread (members, rows, observations + 1), on the scale of `outputs`, for inputs (members, rows, n)."""
        mean, log_spread = self.members(self.inputs(x), which).chunk(2, -1)
        return mean, -4.0 + 4.5 * torch.sigmoid(log_spread)

    def errors(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Negative log likelihood and squared error of each member, for y on its own scale."""
        mean, log_spread = self(x)
        off = self.outputs(y) - mean
        return (0.5 * (off / log_spread.exp()).square() + log_spread).mean((1, 2)), off.square().mean((1, 2))

    @torch.no_grad()
    def imagine(self, observation: Tensor, action: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A next observation and a reward, each row by one of the best members."""
        rows, elites = len(observation), len(self.best)
        at = torch.randperm(rows, generator=generator, device=observation.device)
        share = -(-rows // elites)  # equal ones: a few rows come twice
        at = at[torch.arange(elites * share, device=at.device) % rows].reshape(elites, share)
        mean, log_spread = self(torch.cat([observation, action], -1)[at], self.best)
        noise = torch.randn(mean.shape, generator=generator, device=observation.device)
        drawn = mean.new_zeros(rows, mean.shape[-1])
        drawn[at.flatten()] = (mean + log_spread.exp() * noise).flatten(0, 1)
        change = drawn * self.outputs.spread().to(drawn) + self.outputs.mean.to(drawn)
        return observation + change[:, :-1], change[:, -1]


class Mbpo(Sac):
    """See the head of this file."""

    Settings = MbpoSettings

    def setup(self) -> None:
        super().setup()
        s, env = self.settings, self.env
        self.model = self.keep("model", Ensemble(env.observation_size, env.action_size, s))
        self.model_adam = self.keep(
            "model_adam", torch.optim.Adam(self.model.parameters(), s.model_rate, weight_decay=1e-5, fused=True)
        )
        self.imagined = self.keep("imagined", Replay(20 * s.rollouts, self.device))

    def update(self) -> dict[str, float]:
        s = self.settings
        before = self.steps
        self.decay()
        self.act()
        self.steps += s.envs
        losses: dict[str, float] = {}
        if self.steps >= s.first:
            if before // s.model_every != self.steps // s.model_every or not self.imagined.count:
                losses["model"] = self.fit()
                self.dream()
            for _ in range(s.updates):
                losses |= self.learn(self.mixed())
        figures = {name: losses.get(name, 0.0) for name in ("critic", "model")}
        return {**self.tally.figures(), **figures, "price": float(self.log_price[0].detach().exp())}

    def mixed(self) -> dict[str, Tensor]:
        """A batch of true and imagined transitions."""
        s = self.settings
        true = round(s.real * s.batch)
        parts = [self.replay.sample(true, self.generator), self.imagined.sample(s.batch - true, self.generator)]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[1]}

    def samples(self, count: int) -> dict[str, Tensor]:
        """True transitions that the ensemble learns from."""
        return self.replay.sample(count, self.generator)

    def fit(self) -> float:
        """The ensemble learns, and those that do best on what was held out are the elites."""
        s, model = self.settings, self.model
        seen = self.samples(min(self.replay.count, s.model_rows))
        x = torch.cat([seen["before"], seen["action"]], -1)
        y = torch.cat([seen["after"] - seen["before"], seen["reward"][:, None]], -1)
        for normalizer, rows in ((model.inputs, x), (model.outputs, y)):
            normalizer.count.zero_()
            normalizer.square.zero_()
            normalizer.mean.zero_()
            normalizer.update(rows)
        held = max(1, len(x) // 10)
        loss = torch.zeros((), device=self.device)
        for _ in range(s.model_passes):
            orders = torch.stack(
                [
                    held + torch.randperm(len(x) - held, generator=self.generator, device=self.device)
                    for _ in range(s.members)
                ]
            )
            for at in orders.split(s.batch, 1):
                loss = model.errors(x[at], y[at])[0].sum()
                self.model_adam.zero_grad()
                loss.backward()
                self.model_adam.step()
        with torch.no_grad():
            error = model.errors(x[:held].expand(s.members, -1, -1), y[:held].expand(s.members, -1, -1))[1]
            model.best.copy_(error.topk(s.elites, largest=False).indices)
        return float(error.min())

    @torch.no_grad()
    def dream(self) -> None:
        """Short rollouts in the ensemble from states that were seen."""
        s, (low, high, first, last) = self.settings, self.settings.horizon
        part = min(1.0, max(0.0, (self.steps - first) / max(1, last - first)))
        observation = self.replay.sample(s.rollouts, self.generator)["before"]
        for _ in range(round(low + part * (high - low))):
            action = self.policy(observation, self.noise(len(observation), self.env.action_size))
            after, reward = self.model.imagine(observation, action, self.generator)
            failed = self.failed(after)
            self.imagined.add(before=observation, action=action, reward=reward, after=after, failed=failed)
            observation = after[failed < 0.5]
            if not len(observation):
                break

    def failed(self, observation: Tensor) -> Tensor:
        """1 where an episode would be over, as far as the observation tells; values beyond all reason are over too."""
        task = self.env.task
        wild = ~(observation.abs() < 1e3).all(-1)
        return (task.over(task.recall(observation)) | wild).to(observation)


class SampleEnhancement(Mbpo):
    """See the head of this file."""

    def more(self, action: Tensor) -> dict[str, Tensor]:
        J, r = self.env.jacobian(action)
        return {"J": J, "r": r}

    def samples(self, count: int) -> dict[str, Tensor]:
        """Any of the true ones and of the `extra` beside each."""
        s, limit, seen = self.settings, self.env.task.limit, self.replay.sample(count, self.generator)
        beside = torch.rand(count, 1, generator=self.generator, device=self.device) * (1 + s.extra) > 1.0
        action = (seen["action"] + beside * s.reach * limit * self.noise(*seen["action"].shape)).clamp(-limit, limit)
        d = action - seen["action"]
        after = seen["after"] + (seen["J"] @ d[..., None])[..., 0]
        return seen | {"action": action, "after": after, "reward": seen["reward"] + (seen["r"] * d).sum(-1)}
