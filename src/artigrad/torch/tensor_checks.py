"""Checks of tensors: what they must be, and how they become arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..simulate import arrays
from ..simulate.simulator import Simulator

DTYPES = {"f64": torch.float64, "f32": torch.float32}
Fields = Mapping[str, Any] | nn.Module | None
F = TypeVar("F", bound=Callable[..., Any])


def native(function: F) -> F:
    """A function that `torch.compile` leaves alone: it breaks the graph, calls it, and goes on."""
    return torch.compiler.disable(function, reason="artigrad runs its own compiled code")


def tensor(sim: Simulator, name: str, x: Any, n: int) -> Tensor:
    """x (..., n), checked. Values are looked at by the simulator's own checks."""
    arrays.on_cpu(sim)
    if not isinstance(x, Tensor):
        raise InputError(f"{name} is a tensor, not {type(x).__name__}: torch.as_tensor(x) makes one")
    if x.device.type != "cpu":
        raise InputError(f"{name} is on '{x.device}' and this simulator runs on the CPU: pass {name}.cpu()")
    if x.dtype != DTYPES[sim.dtype]:
        raise InputError(
            f"{name} is {x.dtype} and this simulator computes in {DTYPES[sim.dtype]}: "
            f"pass {name}.to({DTYPES[sim.dtype]}), or make a Simulator with another dtype"
        )
    if x.ndim < 1 or x.shape[-1] != n:
        raise InputError(f"{name} of '{sim.model.name}' is (..., {n}), not {tuple(x.shape)}")
    return x


def flat_params(sim: Simulator, params: Fields, lead: tuple[int, ...]) -> Tensor | None:
    """All parameters as one tensor of f64, (n,) or (*lead, n); None for the simulator's own."""
    fields = params() if isinstance(params, nn.Module) else params
    if fields is None:
        return None
    if not isinstance(fields, Mapping):
        raise InputError(
            f"params is a mapping from names to tensors, or a module that gives one; not {type(fields).__name__}"
        )
    tensors = {name: torch.as_tensor(x).to(torch.float64) for name, x in fields.items()}
    flat = arrays.flatten(sim.params, tensors, torch.broadcast_to, torch.cat, torch.tensor(sim.params.flat))
    if flat.ndim > 1 and flat.shape[:-1] != lead:
        raise InputError(f"params have leading axes {tuple(flat.shape[:-1])}, but the robots {tuple(lead)}")
    return flat


def memory(x: Tensor | None) -> Any:
    """The memory of a tensor as an array."""
    return None if x is None else x.detach().numpy()


class _FirstOnly(torch.autograd.Function):
    """The identity on cotangents, which refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Tensor) -> Any:
        return tensors[:count]

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        raise InputError(
            "artigrad has first derivatives only: leave out create_graph=True, or take differences of gradients"
        )


def first_only(
    bars: tuple[Any, ...], needed: tuple[bool, ...], inputs: tuple[Tensor | None, ...]
) -> list[Tensor | None]:
    """The cotangents that are asked for, arrays or tensors, as tensors; with create_graph=True such that differentiating
    them raises."""
    asked = [need and x is not None for x, need in zip(bars, needed, strict=True)]
    wanted = [torch.as_tensor(x) for x, ask in zip(bars, asked, strict=True) if ask]
    if torch.is_grad_enabled():
        wanted = list(_FirstOnly.apply(len(wanted), *wanted, *(x for x in inputs if x is not None)))
    out = iter(wanted)
    return [next(out) if ask else None for ask in asked]
