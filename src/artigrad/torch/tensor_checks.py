"""Checks of tensors: what they must be, and how they become arrays and come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError
from ..simulate.simulator import Simulator

DTYPES = {"f64": torch.float64, "f32": torch.float32}
FIRST_ONLY = (
    "gradients of gradients are not available: leave out create_graph=True; a product with the Hessian is "
    "torch.func.jvp(torch.func.grad(loss), (x,), (dx,))"
)
F = TypeVar("F", bound=Callable[..., Any])


def native(function: F) -> F:
    """A function that `torch.compile` leaves alone: it breaks the graph, calls it, and goes on."""
    return torch.compiler.disable(function)


def tensor(sim: Simulator, name: str, x: Any) -> Tensor:
    """A tensor of the simulator's dtype on its device. Values are looked at by the simulator's own checks."""
    if not isinstance(x, Tensor):
        raise InputError(f"{name} is a tensor, not {type(x).__name__}: torch.as_tensor(x) makes one")
    if x.device != device_of(sim):
        raise InputError(
            f"{name} is on '{x.device}' and this simulator runs on '{sim.device}': pass {name}.to('{sim.device}')"
        )
    if x.dtype != DTYPES[sim.dtype]:
        raise InputError(
            f"{name} is {x.dtype} and this simulator computes in {DTYPES[sim.dtype]}: "
            f"pass {name}.to({DTYPES[sim.dtype]}), or make a Simulator with another dtype"
        )
    return x


def device_of(sim: Simulator) -> torch.device:
    """PyTorch's name of the device that a simulator runs on."""
    return torch.device(sim.device)


def memory(sim: Simulator, x: Tensor | None) -> Any:
    """A tensor as the simulator takes it: its memory as an array, on a GPU the tensor itself."""
    if x is None:
        return None
    return x.detach().numpy() if sim.checks.on_host else x.detach()


def as_tensor(x: Any) -> Tensor:
    """An array of the simulator as a tensor on the same memory."""
    return torch.from_numpy(x) if isinstance(x, np.ndarray) else x


class _FirstOnly(torch.autograd.Function):
    """The identity on cotangents, which refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Any:
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        raise InputError(FIRST_ONLY)


def first_only(
    bars: tuple[Tensor | None, ...], needed: tuple[bool, ...], inputs: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """The cotangents that are asked for; with create_graph=True such that differentiating them raises."""
    asked = [need and x is not None for x, need in zip(bars, needed, strict=True)]
    wanted = [x for x, ask in zip(bars, asked, strict=True) if ask]
    if torch.is_grad_enabled():
        wanted = list(_FirstOnly.apply(len(wanted), *wanted, *(x for x in inputs if x is not None)))
    out = iter(wanted)
    return [next(out) if ask else None for ask in asked]
