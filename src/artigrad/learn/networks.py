"""Networks of the learning algorithms: observation normalization, MLPs, a Gaussian policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import torch
from torch import Tensor, nn


class Normalizer(nn.Module):
    """Running normalization of observations: (x - mean) / standard deviation, clipped to [-10, 10].

    Attributes:
      mean: Mean of all observations so far, (size,).
      square: Sum of their squared deviations from it, (size,).
      count: Their number.
    """

    mean: Tensor
    square: Tensor
    count: Tensor
    offset: Tensor
    factor: Tensor

    def __init__(self, size: int):
        super().__init__()
        for name in ("mean", "square"):
            self.register_buffer(name, torch.zeros(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("offset", torch.zeros(size), persistent=False)  # mean and 1 / std in single precision
        self.register_buffer("factor", torch.ones(size), persistent=False)
        self.register_load_state_dict_post_hook(lambda self, _: self._round())

    def forward(self, x: Tensor) -> Tensor:
        """Return normalized observations (..., size)."""
        return ((x - self.offset.to(x)) * self.factor.to(x)).clamp(-10.0, 10.0)

    @torch.no_grad()
    def update(self, x: Tensor, all_reduce_sum: Callable[[Tensor], Tensor] | None = None) -> None:
        """Add observations to the statistics.

        Args:
          x: Observations (..., size).
          all_reduce_sum: Sum of a tensor over a process group, whose observations are added too.
        """
        off = x.reshape(-1, x.shape[-1]).double() - self.mean
        sums = torch.stack([off.sum(0), off.square().sum(0), torch.full_like(self.mean, float(len(off)))])
        first, second, more = sums if all_reduce_sum is None else all_reduce_sum(sums)
        count = self.count + more[0]
        self.square += (second - first.square() / count).clamp(min=0.0)  # against rounding if all are equal
        self.mean += first / count
        self.count.copy_(count)
        self._round()

    def restart(self, x: Tensor) -> None:
        """Replace the statistics by those of observations x (..., size)."""
        for sums in (self.count, self.square, self.mean):
            sums.zero_()
        self.update(x)

    def _round(self) -> None:
        """Round mean and standard deviation to single precision, once per update."""
        self.offset.copy_(self.mean)
        self.factor.copy_(1.0 / self.std())

    def std(self) -> Tensor:
        """Return the standard deviation (size,), at least 1e-4; 1 before the first update."""
        return (
            (self.square / self.count.clamp(min=1.0)).sqrt().clamp(min=1e-4)
            if self.count > 0
            else torch.ones_like(self.mean)
        )


def mlp(sizes: Iterable[int], *, layer_norm: bool = True, gain: float = 1.0) -> nn.Sequential:
    """Return a multilayer perceptron with ELU activations.

    Args:
      sizes: Widths from the input to the output.
      layer_norm: Add LayerNorm after each activation.
      gain: Factor on the initial weights of the last layer.
    """
    widths = list(sizes)
    layers: list[nn.Module] = []
    for a, b in pairwise(widths[:-1]):
        layers += [nn.Linear(a, b), nn.ELU(), *([nn.LayerNorm(b)] if layer_norm else [])]
    last = nn.Linear(widths[-2], widths[-1])
    with torch.no_grad():
        last.weight *= gain
        last.bias.zero_()
    return nn.Sequential(*layers, last)


class BatchedMLP(nn.Module):
    """Several MLPs of equal shape, evaluated by one batched matrix product per layer, with all weights in one tensor. Small
    networks are bound by the overhead of calls.

    Args:
      count: Number of networks.
      sizes: Widths from the input to the output.
      activation: Activation function between layers.
      layer_norm: Apply layer normalization, without parameters, before each activation.
    """

    def __init__(
        self, count: int, sizes: Iterable[int], activation: Callable[[Tensor], Tensor], *, layer_norm: bool = False
    ):
        super().__init__()
        self.activation, self.layer_norm = activation, layer_norm
        self.shapes = [shape for a, b in pairwise(sizes) for shape in ((count, a, b), (count, 1, b))]
        weights = [(2.0 * torch.rand(c, a, b) - 1.0) / a**0.5 for c, a, b in self.shapes[::2]]
        biases = [torch.zeros(shape) for shape in self.shapes[1::2]]
        self.flat = nn.Parameter(torch.cat([x.flatten() for pair in zip(weights, biases, strict=True) for x in pair]))

    def forward(self, x: Tensor, which: Tensor | None = None) -> Tensor:
        """Evaluate all networks, or those with indices `which`.

        Args:
          x: Inputs (networks, rows, inputs).
          which: Indices of networks.

        Returns:
          Outputs (networks, rows, outputs).
        """
        parameters = [
            part.view(shape)
            for part, shape in zip(self.flat.split([math.prod(s) for s in self.shapes]), self.shapes, strict=True)
        ]
        if which is not None:
            parameters = [part[which] for part in parameters]
        for k in range(0, len(parameters), 2):
            x = torch.baddbmm(parameters[k + 1], x, parameters[k])
            if k < len(parameters) - 2:
                x = self.activation(nn.functional.layer_norm(x, x.shape[-1:]) if self.layer_norm else x)
        return x


class GaussianPolicy(nn.Module):
    """Policy limit * tanh(mean(observation) + std * noise), with one standard deviation per entry of the action.

    Args:
      observations: Length of an observation.
      actions: Length of an action.
      limit: Actions lie in [-limit, limit].
      hidden: Widths of the hidden layers.
      log_std: Initial log standard deviation of the noise.
    """

    def __init__(self, observations: int, actions: int, limit: float, hidden: Iterable[int], log_std: float = -1.0):
        super().__init__()
        self.limit = limit
        self.normalizer = Normalizer(observations)
        self.mean = mlp([observations, *hidden, actions], gain=0.1)
        self.log_std = nn.Parameter(torch.full((actions,), log_std))

    def forward(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return actions for observations and standard normal noise; deterministic actions without noise."""
        return self.limit * torch.tanh(self.pre_tanh(observation, noise))

    def pre_tanh(self, observation: Tensor, noise: Tensor | None = None) -> Tensor:
        """Return x, where the action is limit * tanh(x)."""
        x = self.mean(self.normalizer(observation))
        return x if noise is None else x + self.log_std.exp() * noise

    def log_prob(self, observation: Tensor, x: Tensor) -> Tensor:
        """Return the log density of x, where the action is limit * tanh(x)."""
        z = (x - self.mean(self.normalizer(observation))) / self.log_std.exp()
        return -(0.5 * z.square() + self.log_std + 0.5 * math.log(2.0 * math.pi)).sum(-1)
