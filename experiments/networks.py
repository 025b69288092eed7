"""MLPs for several seeds at once: each layer has a weight matrix per seed, so that all trainings are one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class PerSeedMLP(nn.Module):
    """MLPs, one per seed: x (seeds, batch, inputs) to (seeds, batch, outputs).

    Args:
      sizes: Widths of all layers.
      skip: Add a linear layer from input to output.
      quiet: Initialize the last layers to zero.
      shifted: Initialize hidden layers with random biases, so that their outputs vary where the input is zero.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seeds: int,
        *,
        skip: bool = False,
        quiet: bool = True,
        shifted: bool = False,
        activation: Callable[[Tensor], Tensor] = torch.tanh,
        first_seed: int = 0,
    ):
        super().__init__()
        self.activation = activation
        pairs = list(pairwise(sizes)) + ([(sizes[0], sizes[-1])] if skip else [])
        draws = [torch.Generator().manual_seed(first_seed + k) for k in range(seeds)]
        weights = []
        for n, m in pairs:
            scale = 0.0 if quiet and m == sizes[-1] else n**-0.5
            weights.append(torch.stack([scale * torch.randn(n, m, generator=g) for g in draws]))
        self.skip = skip
        self.weights = nn.ParameterList(weights)
        biases = []
        for n, m in pairs:
            scale = n**-0.5 if shifted and m != sizes[-1] else 0.0
            biases.append(torch.stack([scale * torch.randn(1, m, generator=g) for g in draws]))
        self.biases = nn.ParameterList(biases)

    @property
    def per_seed(self) -> int:
        """Number of weights of each network."""
        return sum(w[0].numel() for w in self.parameters())

    def forward(self, x: Tensor) -> Tensor:
        layers = list(zip(self.weights, self.biases, strict=True))
        past = torch.baddbmm(layers[-1][1], x, layers[-1][0]) if self.skip else 0.0
        inner = layers[:-1] if self.skip else layers
        for k, (w, b) in enumerate(inner):
            x = torch.baddbmm(b, x, w)
            x = self.activation(x) if k < len(inner) - 1 else x
        return x + past


def clip_each(bank: nn.Module, limit: float) -> Tensor:
    """Clip the gradient of each seed to a norm; return the norms before, (seeds,)."""
    bars = [w.grad for w in bank.parameters() if w.grad is not None]
    norm = torch.stack([bar.flatten(1).square().sum(1) for bar in bars]).sum(0).sqrt()
    factor = (limit / norm.clamp(min=1e-30)).clamp(max=1.0)
    for bar in bars:
        bar *= factor.reshape(-1, *[1] * (bar.ndim - 1))
    return norm
