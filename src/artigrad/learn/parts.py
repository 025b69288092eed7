"""What the algorithms share: networks, observations brought to one scale, values of episodes, scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..envs import DifferentiableEnv, EnvStep


class Normalizer(nn.Module):
    """Observations less their mean, over their spread, of all that were seen so far; within -10 and 10."""

    mean: Tensor
    square: Tensor
    count: Tensor
    middle: Tensor
    factor: Tensor

    def __init__(self, size: int):
        super().__init__()
        for name in ("mean", "square"):  # square: sum of squared deviations
            self.register_buffer(name, torch.zeros(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("middle", torch.zeros(size), persistent=False)  # what forward needs of them
        self.register_buffer("factor", torch.ones(size), persistent=False)
        self.register_load_state_dict_post_hook(lambda self, _: self.settle())

    def forward(self, x: Tensor) -> Tensor:
        return ((x - self.middle.to(x)) * self.factor.to(x)).clamp(-10.0, 10.0)

    @torch.no_grad()
    def update(self, x: Tensor, total: Callable[[Tensor], Tensor] | None = None) -> None:
        """Take in more observations (..., size). total: adds up a tensor over workers, whose observations are taken in too."""
        off = x.reshape(-1, x.shape[-1]).double() - self.mean
        sums = torch.stack([off.sum(0), off.square().sum(0), torch.full_like(self.mean, float(len(off)))])
        first, second, more = sums if total is None else total(sums)
        count = self.count + more[0]
        self.square += (second - first.square() / count).clamp(min=0.0)  # rounding, where all are the same
        self.mean += first / count
        self.count.copy_(count)
        self.settle()

    def restart(self, x: Tensor) -> None:
        """Forget what was seen, and take in these observations."""
        for sums in (self.count, self.square, self.mean):
            sums.zero_()
        self.update(x)

    def settle(self) -> None:
        """Mean and spread, rounded once."""
        self.middle.copy_(self.mean)
        self.factor.copy_(1.0 / self.spread())

    def spread(self) -> Tensor:
        return (
            (self.square / self.count.clamp(min=1.0)).sqrt().clamp(min=1e-4)
            if self.count > 0
            else torch.ones_like(self.mean)
        )


def mlp(sizes: Iterable[int], *, norm: bool = True, gain: float = 1.0) -> nn.Sequential:
    """A network with ELU between its layers; the weights of the last are multiplied by `gain`."""
    wide = list(sizes)
    layers: list[nn.Module] = []
    for a, b in pairwise(wide[:-1]):
        layers += [nn.Linear(a, b), nn.ELU(), *([nn.LayerNorm(b)] if norm else [])]
    last = nn.Linear(wide[-2], wide[-1])
    with torch.no_grad():
        last.weight *= gain
        last.bias.zero_()
    return nn.Sequential(*layers, last)


class SideBySide(nn.Module):
    """Networks of one shape, whose layers are one product each and whose weights are one tensor: small networks spend more time
    on calls than on numbers. norm: each layer but the last is brought to one scale, row by row, before its activation."""

    def __init__(self, count: int, sizes: Iterable[int], activation: Callable[[Tensor], Tensor], *, norm: bool = False):
        super().__init__()
        self.activation, self.norm = activation, norm
        self.shapes = [shape for a, b in pairwise(sizes) for shape in ((count, a, b), (count, 1, b))]
        first = [(2.0 * torch.rand(c, a, b) - 1.0) / a**0.5 for c, a, b in self.shapes[::2]]
        biases = [torch.zeros(shape) for shape in self.shapes[1::2]]
        self.flat = nn.Parameter(torch.cat([x.flatten() for pair in zip(first, biases, strict=True) for x in pair]))

    def forward(self, x: Tensor, which: Tensor | None = None) -> Tensor:
        """(networks, rows, outputs) of inputs (networks, rows, inputs), by all networks or by those asked for."""
        parts = [
            part.view(shape)
            for part, shape in zip(self.flat.split([math.prod(s) for s in self.shapes]), self.shapes, strict=True)
        ]
        if which is not None:
            parts = [part[which] for part in parts]
        for k in range(0, len(parts), 2):
            x = torch.baddbmm(parts[k + 1], x, parts[k])
            if k < len(parts) - 2:
                x = self.activation(nn.functional.layer_norm(x, x.shape[-1:]) if self.norm else x)
        return x


class GaussianPolicy(nn.Module):
    """Actions limit tanh(mean(observation) + spread noise), with one spread per entry of the action."""

    def __init__(self, observations: int, actions: int, limit: float, hidden: Iterable[int], log_spread: float = -1.0):
        super().__init__()
        self.limit = limit
        self.normalizer = Normalizer(observations)
        self.mean = mlp([observations, *hidden, actions], gain=0.1)
        self.log_spread = nn.Parameter(torch.full((actions,), log_spread))

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """An action; without noise the one that it holds for the best."""
        return self.limit * torch.tanh(self.raw(observation, noise))

    def raw(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """x, of which the action is limit tanh(x)."""
        x = self.mean(self.normalizer(observation))
        return x if noise is None else x + self.log_spread.exp() * noise

    def log_density(self, observation: Tensor, x: Tensor) -> Tensor:
        """Of x, of which the action is limit tanh(x)."""
        z = (x - self.mean(self.normalizer(observation))) / self.log_spread.exp()
        return -(0.5 * z.square() + self.log_spread + 0.5 * math.log(2.0 * math.pi)).sum(-1)


class Tally:
    """Returns and lengths of the episodes that ended, robot by robot."""

    def __init__(self, env: DifferentiableEnv):
        self.score = torch.zeros(env.num_envs, dtype=torch.float64, device=env.batch.device)
        self.length = torch.zeros_like(self.score)
        self.ended = torch.zeros(
            5, dtype=torch.float64, device=env.batch.device
        )  # count, returns, lengths; steps, rewards
        self.latest = {"return": math.nan, "length": math.nan}

    @torch.no_grad()
    def add(self, found: EnvStep) -> None:
        self.score += found.reward
        self.length += 1.0
        over = (found.terminated | found.truncated).double()
        steps = torch.full_like(over[0], float(len(over)))
        sums = [over.sum(), (over * self.score).sum(), (over * self.length).sum(), steps, found.reward.sum().double()]
        self.ended += torch.stack(sums)
        self.score *= 1.0 - over
        self.length *= 1.0 - over

    def figures(self) -> dict[str, float]:
        """Means over the episodes that ended since this was last asked, those of before where none did; and over all steps."""
        count, total, length, steps, rewards = self.ended.tolist()
        if count:
            self.latest = {"return": total / count, "length": length / count}
        self.ended.zero_()
        return {**self.latest, "reward": rewards / max(steps, 1.0)}

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "length": self.length, "ended": self.ended, "latest": self.latest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in ("score", "length", "ended"):
            getattr(self, name).copy_(state[name])
        self.latest = dict(state["latest"])


@torch.no_grad()
def lambda_returns(
    rewards: Tensor, values: Tensor, last_values: Tensor, terminated: Tensor, ended: Tensor, gamma: float, lam: float
) -> Tensor:
    """Targets (T, B) of values by TD(lambda):  G_t = r_t + gamma ((1 - lambda) V(s_t+1) + lambda G_t+1).

    values: (T, B), of the observation before each step. last_values: (T, B), of what each step led to, also at the end of an
    episode. Beyond a failure there is nothing, beyond the end of an episode or of the data its value.
    """
    targets = torch.empty_like(rewards)
    later = last_values[-1]
    for t in reversed(range(len(rewards))):
        ahead = torch.where(ended[t], last_values[t], (1.0 - lam) * last_values[t] + lam * later)
        targets[t] = later = rewards[t] + gamma * torch.where(terminated[t], 0.0, ahead)
    return targets


def adam(weights: Iterable[nn.Parameter], rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> torch.optim.Adam:
    """Adam whose step is one call for each weight: small networks spend more time on calls than on numbers."""
    return torch.optim.Adam(weights, rate, betas, fused=True)


def descend(optimizer: torch.optim.Optimizer, weights: list[nn.Parameter], max_norm: float) -> float:
    """A step of an optimiser on gradients within a norm; which norm they had. Gradients that are no numbers are not taken."""
    grads = [w.grad for w in weights if w.grad is not None]
    norm = float(torch.stack(torch._foreach_norm(grads)).norm())
    if not math.isfinite(norm):
        return math.nan
    if norm > max_norm:
        torch._foreach_mul_(grads, max_norm / norm)
    optimizer.step()
    return norm


def in_one(mean: Callable[[Tensor], Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """Means of tensors over workers, who meet once: each meeting takes longer than many numbers do."""
    together = mean(torch.cat([x.flatten() for x in tensors]))
    return [x.view_as(y) for x, y in zip(together.split([x.numel() for x in tensors]), tensors, strict=True)]
