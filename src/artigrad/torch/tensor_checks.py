"""Checks of tensors: what they must be, and how they become arrays and come back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..errors import InputError
from ..simulate.simulator import Simulator

DTYPES = {"f64": torch.float64, "f32": torch.float32}
FIRST_ONLY = (
    "gradients of gradients are not available: leave out create_graph=True; a product with the Hessian is "
    "torch.func.jvp(torch.func.grad(loss), (x,), (dx,))"
)
THIRD_ORDER = "derivatives of third order are not available: take differences of second ones"
FORWARD_TWICE = (
    "forward mode of forward mode is not available: take torch.func.jvp of torch.func.grad, or jacfwd of jacrev"
)
F = TypeVar("F", bound=Callable[..., Any])


def native(function: F) -> F:
    """Return a function that breaks the graph of `torch.compile`, which continues after it."""
    reason = (
        f"artigrad's {function.__name__} with these arguments runs outside of compiled graphs: leave out fullgraph=True"
    )
    more = {"reason": reason} if "reason" in inspect.signature(torch.compiler.disable).parameters else {}
    return torch.compiler.disable(function, **more)


def tensor(sim: Simulator, name: str, x: Any) -> Tensor:
    """Return x, checked for the simulator's dtype and device. The simulator checks its values."""
    if torch._C._get_tracing_state() is not None:
        raise InputError("torch.jit.trace would make constants of results: trace with torch.export or torch.compile")
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


def is_batched(x: Any) -> bool:
    """Return True for a tensor with an axis of `vmap`, of a transformation or of `is_grads_batched`."""
    return isinstance(x, Tensor) and (
        torch._C._functorch.is_batchedtensor(x) or torch._C._functorch.is_legacy_batchedtensor(x)
    )


def is_legacy_batched(x: Any) -> bool:
    """Return True for a tensor with an axis of `is_grads_batched`."""
    return isinstance(x, Tensor) and torch._C._functorch.is_legacy_batchedtensor(x)


def is_traced(tensors: Iterable[Any]) -> bool:
    """Return True if operations on tensors are recorded: by a dispatch mode, or by a subclass of Tensor."""
    return torch._C._len_torch_dispatch_stack() > 0 or any(_is_fake(x) for x in tensors)


def _is_fake(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x) not in (Tensor, torch.nn.Parameter)


def is_transformed() -> bool:
    """Return True if a transformation of `torch.func` or forward mode is active."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


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


def aliases(tensors: Iterable[Tensor | None]) -> list[Any]:
    """Return the tensors as new nodes of the graph: a derivative with respect to one does not include paths through others
    that were computed from it."""
    return [None if x is None else x.view_as(x) for x in tensors]


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
    """Return the needed cotangents; with create_graph=True their derivatives raise an error."""
    asked = [need and x is not None for x, need in zip(bars, needed, strict=True)]
    wanted = [x for x, ask in zip(bars, asked, strict=True) if ask]
    if torch.is_grad_enabled():
        wanted = list(_FirstOnly.apply(len(wanted), *wanted, *(x for x in inputs if x is not None)))
    out = iter(wanted)
    return [next(out) if ask else None for ask in asked]
