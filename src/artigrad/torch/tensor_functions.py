"""The functions of a simulator on tensors, with autograd, `torch.func` and `vmap`, on the CPU and on a GPU.

A backward pass reads what the description of the function keeps (for a rollout: its states, controls and parameters). Forward
mode is there for all functions, and for gradients too, so that `torch.func.jvp` of `torch.func.grad` gives products with
Hessians; gradients of gradients raise. Under `torch.compile` each call is a break in the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from ..arguments import numbers
from ..errors import InputError
from ..simulate import function
from ..simulate.arrays import Axes
from ..simulate.framework_api import Functions
from ..simulate.function import Call
from ..simulate.simulator import Simulator
from .tensor_checks import DTYPES, FIRST_ONLY, as_tensor, device_of, memory, native, tensor


class _Forward(torch.autograd.Function):
    """A described function, on tensors. Parameters are on the CPU always."""

    @staticmethod
    def forward(call: Call, *given: Tensor | None) -> tuple[Tensor, ...]:
        return _tensors(function.evaluate(call, _arrays(call, call.inputs, given)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *given = inputs
        _keep(ctx, call, call.kept(given, output))

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        needed = ctx.needs_input_grad[1:]
        if all(bar is None for bar in bars):
            return None, *(None for _ in needed)
        given = (*ctx.saved_tensors, *bars)
        run = _Backward.apply if _is_differentiated(given) else _Backward.forward
        found = iter(run(ctx.call, needed, *given))
        return None, *(next(found) if need else None for need in needed)

    @staticmethod
    def jvp(ctx: Any, _: None, *d_given: Tensor | None) -> Any:
        return _ForwardJvp.apply(ctx.call, *ctx.saved_tensors, *d_given)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], call: Call, *given: Tensor | None) -> Any:
        found = _Forward.apply(call, *_axis_in_front(in_dims[1:], given))
        return found, (0,) * len(found)


class _Once(torch.autograd.Function):
    """What reverse mode does not differentiate again."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        raise InputError(FIRST_ONLY)


class _Backward(_Once):
    """Its adjoint: the cotangents that are needed."""

    @staticmethod
    def forward(call: Call, needed: tuple[bool, ...], *given: Tensor | None) -> tuple[Tensor, ...]:
        kept, bars = _split(call, given, call.kept_axes)
        return _needed(function.pull_back(call, kept, bars, needed[-1]), needed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, needed, *given = inputs
        ctx.needed = needed
        _keep(ctx, call, given)

    @staticmethod
    def jvp(ctx: Any, _call: None, _needed: None, *d_given: Tensor | None) -> Any:
        return _BackwardJvp.apply(ctx.call, ctx.needed, *ctx.saved_tensors, *d_given)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Call, needed: tuple[bool, ...], *given: Tensor | None
    ) -> Any:
        found = _Backward.apply(call, needed, *_axis_in_front(in_dims[2:], given))
        return found, (0,) * len(found)


class _ForwardJvp(_Once):
    """How what a function gives changes, for what its adjoint keeps and changes of its inputs."""

    @staticmethod
    def forward(call: Call, *given: Tensor | None) -> tuple[Tensor, ...]:
        kept, moved = _split(call, given, call.kept_axes, call.inputs)
        return _tensors(function.push_forward(call, kept, moved))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], call: Call, *given: Tensor | None) -> Any:
        found = _ForwardJvp.apply(call, *_axis_in_front(in_dims[1:], given))
        return found, (0,) * len(found)


class _BackwardJvp(_Once):
    """How the cotangents that are needed change, for what is kept, cotangents, and changes of both."""

    @staticmethod
    def forward(call: Call, needed: tuple[bool, ...], *given: Tensor | None) -> tuple[Tensor, ...]:
        half = len(given) // 2
        kept, bars = _split(call, given[:half], call.kept_axes)
        moved, moved_bars = _split(call, given[half:], call.kept_axes)
        return _needed(function.push_pull_back(call, kept, bars, moved, moved_bars, needed[-1]), needed)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Call, needed: tuple[bool, ...], *given: Tensor | None
    ) -> Any:
        found = _BackwardJvp.apply(call, needed, *_axis_in_front(in_dims[2:], given))
        return found, (0,) * len(found)


for _function in (_Forward.forward, _Backward.forward, _ForwardJvp.forward, _BackwardJvp.forward):
    _function.__signature__ = inspect.signature(_function)  # type: ignore[union-attr]  # PyTorch asks for it at every call


def _is_differentiated(inputs: tuple[Tensor | None, ...]) -> bool:
    """Whether PyTorch has to know of a call: gradients are recorded, or a transformation or forward mode is under way."""
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    return recorded or torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _keep(ctx: Any, call: Call, tensors: Iterable[Tensor | None]) -> None:
    """What both modes read."""
    ctx.call = call
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(False)


def _tensors(arrays: Iterable[Any]) -> tuple[Tensor, ...]:
    return tuple(map(as_tensor, arrays))


def _needed(found: Iterable[Any], needed: tuple[bool, ...]) -> tuple[Tensor, ...]:
    return _tensors(x for x, need in zip(found, needed, strict=True) if need)


def _split(
    call: Call, given: tuple[Tensor | None, ...], names: Iterable[str], rest: Iterable[str] | None = None
) -> tuple[list[Any], list[Any]]:
    """Tensors with these names, and the rest, as the simulator takes them."""
    count = len(tuple(names))
    rest = call.outputs if rest is None else rest
    return _arrays(call, names, given[:count]), _arrays(call, rest, given[count:])


def _arrays(call: Call, names: Iterable[str], given: tuple[Tensor | None, ...]) -> list[Any]:
    """Tensors as the simulator takes them."""
    return [
        x.detach().numpy() if name == "params" and x is not None else memory(call.sim, x)
        for name, x in zip(names, given, strict=True)
    ]


def _axis_in_front(in_dims: tuple[int | None, ...], given: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """Tensors with the axis of `vmap` first, of length one where a tensor has none: what robots share stays shared."""
    return [
        None if x is None else x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
        for dim, x in zip(in_dims, given, strict=True)
    ]


class _TensorFunctions(Functions):
    def _array(self, sim: Simulator, name: str, x: Any) -> Tensor:
        return tensor(sim, name, x)

    def _zeros(self, sim: Simulator, shape: Axes) -> Tensor:
        return torch.zeros(shape, dtype=DTYPES[sim.dtype], device=device_of(sim))

    def _broadcast(self, x: Tensor, shape: Axes) -> Tensor:
        return x.expand(shape)

    def _concatenate(self, pieces: list[Tensor], axis: int) -> Tensor:
        return torch.cat(pieces, axis)

    def _wide(self, x: Any) -> Tensor:
        if isinstance(x, Tensor):
            return x.to("cpu", torch.float64)
        return torch.from_numpy(numbers("params", x, finite=False))

    def _fields(self, params: Any) -> Any:
        """A module gives them when it is called."""
        return params() if isinstance(params, nn.Module) else params

    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        if _is_differentiated(inputs):
            return _Forward.apply(call, *inputs)
        return _Forward.forward(call, *inputs)  # what PyTorch does around it takes as long as a short step


functions = _TensorFunctions()
step = native(functions.step)
rollout = native(functions.rollout)
contacts = native(functions.contacts)
linearize = native(functions.linearize)
outputs = native(functions.outputs)
sites = native(functions.sites)
sensors = native(functions.sensors)
mass_matrix = native(functions.mass_matrix)
reweighted = native(functions.reweighted)
inverse_dynamics = native(functions.inverse_dynamics)
forward_dynamics = native(functions.forward_dynamics)
