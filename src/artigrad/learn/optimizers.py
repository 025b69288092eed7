"""Optimizer steps with gradient clipping, and averages over a process group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


def adam(
    parameters: Iterable[nn.Parameter], learning_rate: float, betas: tuple[float, float] = (0.9, 0.999)
) -> torch.optim.Adam:
    """Return Adam with fused steps: small networks are bound by the overhead of calls."""
    return torch.optim.Adam(parameters, learning_rate, betas, fused=True)


def clip_and_step(optimizer: torch.optim.Optimizer, parameters: list[nn.Parameter], max_grad_norm: float) -> float:
    """Clip the gradients of the parameters to a total norm and take an optimizer step. Gradients that are not finite are
    skipped.

    Returns:
      The norm before clipping; NaN if the step was skipped.
    """
    grads = [w.grad for w in parameters if w.grad is not None]
    norm = float(torch.stack(torch._foreach_norm(grads)).norm())
    if not math.isfinite(norm):
        return math.nan
    if norm > max_grad_norm:
        torch._foreach_mul_(grads, max_grad_norm / norm)
    optimizer.step()
    return norm


def average_tensors(all_reduce_mean: Callable[[Tensor], Tensor], tensors: list[Tensor]) -> list[Tensor]:
    """Return means of tensors over a process group, by one reduction of all of them."""
    flat = all_reduce_mean(torch.cat([x.flatten() for x in tensors]))
    return [x.view_as(y) for x, y in zip(flat.split([x.numel() for x in tensors]), tensors, strict=True)]
