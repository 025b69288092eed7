"""Model-based policy optimisation (Janner et al. 2019), and sample enhancement (Qiao et al. 2021) on top of it.

An ensemble of networks learns what the environment does, soft actor-critic learns from short rollouts in it. Sample enhancement
adds to every true transition others nearby, which the Jacobians of the physics give. Ensemble and critic learn from both:

    a_k = a + da,   s'_k = s' + ds'/da da,   r_k = r(s, a_k, s'_k)

The paper has r_k = r + dr/da da. A task knows its reward, and what actions cost is not linear: along a line a spread of 0.2 in
eight actions seems to be worth 0.16 more than it is, at every step, and it is the wildest actions that seem so.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..envs import Moment
from .parts import Normalizer, SideBySide
from .replay import Replay
from .sac import Sac, SacSettings


@dataclass
class MbpoSettings(SacSettings):
    """members, elites: of the ensemble. model_every: steps between two trainings of it, of `model_passes` over at most
    `model_rows` transitions, `model_batch` at a time. rollouts: starts of imagined stretches each time; those of the last two
    are kept. horizon: (from, to, first step, last step): how long they are, growing while the environment takes those steps.
    real: part of true transitions in a batch. extra, reach: of sample enhancement, transitions for each true one and how far
    their actions lie from it."""

    envs: int = 1
    updates: int = 20
    first: int = 5000
    members: int = 7
    elites: int = 5
    model_hidden: tuple[int, ...] = (200, 200, 200, 200)
    model_every: int = 250
    model_passes: int = 5
    model_rows: int = 20_000
    model_batch: int = 256
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
        sizes = [observations + actions, *s.model_hidden, 2 * (observations + 1)]
        self.members = SideBySide(s.members, sizes, nn.functional.silu, norm=True)
        self.register_buffer("best", torch.arange(s.elites))

    best: Tensor

    def forward(self, x: Tensor, which: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log spread (members, rows, observations + 1), on the scale of `outputs`, for inputs (members, rows, n)."""
        mean, log_spread = self.members(self.inputs(x), which).chunk(2, -1)
        return mean, -4.0 + 4.5 * torch.sigmoid(log_spread)

    def errors(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """What each member learns from, and its squared error, for y on its own scale. Means learn by squared errors and
        spreads by the likelihood of what is left: means that learn by likelihood give up entries that are hard to tell."""
        mean, log_spread = self(x)
        square = (self.outputs(y) - mean).square()
        left = 0.5 * square.detach() * torch.exp(-2.0 * log_spread) + log_spread
        return (square + left).mean((1, 2)), square.mean((1, 2))

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
        self.imagined = self.keep("imagined", Replay(2 * s.rollouts, self.device))

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
            for k in range(s.updates):
                losses |= self.learn(self.mixed(), k % s.policy_every == 0)
        figures = {name: losses.get(name, 0.0) for name in ("critic", "model")}
        return {**self.tally.figures(), **figures, "price": float(self.log_price[0].detach().exp())}

    def mixed(self) -> dict[str, Tensor]:
        """A batch of true and imagined transitions."""
        s = self.settings
        true = round(s.real * s.batch)
        parts = [
            self.samples(self.replay.any(true, self.generator)),
            self.imagined.sample(s.batch - true, self.generator),
        ]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[1]}

    def samples(self, rows: Tensor) -> dict[str, Tensor]:
        """Transitions that were seen, from which ensemble, critic and policy learn."""
        return self.replay.at(rows)

    def fit(self) -> float:
        """The ensemble learns, and those that do best on what was held out are the elites."""
        s, model = self.settings, self.model
        rows = torch.randperm(self.replay.count, generator=self.generator, device=self.device)[: s.model_rows]
        held, rows = rows.split([len(rows) // 10 + 1, len(rows) - len(rows) // 10 - 1])
        x, y = self.told(self.replay.at(rows))
        for normalizer, known in ((model.inputs, x), (model.outputs, y)):
            normalizer.restart(known)
        for _ in range(s.model_passes):
            x, y = self.told(self.samples(rows))
            orders = [torch.randperm(len(x), generator=self.generator, device=self.device) for _ in range(s.members)]
            for at in torch.stack(orders).split(s.model_batch, 1):
                loss = model.errors(x[at], y[at])[0].sum()
                self.model_adam.zero_grad()
                loss.backward()
                self.model_adam.step()
        with torch.no_grad():
            error = model.errors(*(z.expand(s.members, -1, -1) for z in self.told(self.replay.at(held))))[1]
            model.best.copy_(error.topk(s.elites, largest=False).indices)
        return float(error.min())

    def told(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """What the ensemble is asked, and what it is to say."""
        change = [seen["after"] - seen["before"], seen["reward"][:, None]]
        return torch.cat([seen["before"], seen["action"]], -1), torch.cat(change, -1)

    @torch.no_grad()
    def dream(self) -> None:
        """Short rollouts in the ensemble from states that were seen."""
        s, (low, high, first, last) = self.settings, self.settings.horizon
        part = min(1.0, max(0.0, (self.steps - first) / max(1, last - first)))
        length = round(low + part * (high - low))
        if self.imagined.capacity != 2 * s.rollouts * length:  # what older ensembles said is forgotten
            self.imagined.clear(2 * s.rollouts * length)
        observation = self.replay.sample(s.rollouts, self.generator)["before"]
        for _ in range(length):
            action = self.policy(observation, self.noise(len(observation), self.env.action_size))
            after, reward = self.model.imagine(observation, action, self.generator)
            failed = self.ended(self.env.task.recall(after), after)
            self.imagined.add(before=observation, action=action, reward=reward, after=after, failed=failed)
            observation = after[failed < 0.5]
            if not len(observation):
                break

    def ended(self, now: Moment, observation: Tensor) -> Tensor:
        """1 where an episode would be over; values beyond all reason are over too."""
        wild = ~(observation.abs() < 1e3).all(-1)
        return (self.env.task.over(now) | wild).to(observation)


class SampleEnhancement(Mbpo):
    """See the head of this file."""

    def more(self, action: Tensor) -> dict[str, Tensor]:
        """Where a step began and ended, and how its end depends on the action. Robots are near the origin."""
        task, now = self.env.task, self.env.now
        assert now is not None
        now = task.moved(now, -now.q[:, : task.hidden])
        end, J = self.env.jacobian(now, action)
        return {**now._asdict(), "end": torch.cat([end.q, end.v, end.seen, end.act], -1), "J": J}

    def samples(self, rows: Tensor) -> dict[str, Tensor]:
        """Of each either itself or one of the `extra` beside it: the physics is linear there, the task is as it is."""
        s, task, seen = self.settings, self.env.task, self.replay.at(rows)
        beside = torch.rand(len(rows), 1, generator=self.generator, device=self.device) * (1 + s.extra) > 1.0
        noise = s.reach * task.limit * self.noise(*seen["action"].shape)
        action = (seen["action"] + beside * noise).clamp(-task.limit, task.limit)
        moved = seen["end"] + (seen["J"] @ (action - seen["action"])[..., None])[..., 0]
        q, v, looked_up, act = moved.split([seen[name].shape[-1] for name in ("q", "v", "seen", "act")], -1)
        now = Moment(*(seen[name] for name in Moment._fields))
        after = Moment(self.env.batch.of_length_one(q), v, looked_up, now.goal, now.steps + 1, act)
        observation = task.observe(after)
        near = {
            "after": observation,
            "reward": task.reward(now, action, after),
            "failed": self.ended(after, observation),
        }
        told = {name: torch.where(beside if x.ndim > 1 else beside[:, 0], x, seen[name]) for name, x in near.items()}
        return {"before": seen["before"], "action": action, **told}
