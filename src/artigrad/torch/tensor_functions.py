"""The functions of a simulator on tensors, with autograd, `torch.func` and `vmap`, on the CPU and on a GPU.

A backward pass reads what the description of the function keeps (for a rollout: its states, controls and parameters). Only
first derivatives exist: differentiating a gradient raises. Under `torch.compile` each call is a break in the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..simulate import differentiable
from ..simulate.arrays import Axes
from ..simulate.differentiable import Call
from ..simulate.family import Functions
from ..simulate.simulator import Simulator
from .tensor_checks import DTYPES, FIRST_ONLY, as_tensor, device_of, memory, native, tensor


class _Forward(torch.autograd.Function):
    """A described function, on tensors. Parameters are on the CPU always."""

    @staticmethod
    def forward(call: Call, *given: Tensor | None) -> tuple[Tensor, ...]:
        return tuple(map(as_tensor, differentiable.forward(call, _arrays(call, call.function.inputs, given))))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *given = inputs
        ctx.call = call
        ctx.save_for_backward(*call.kept(given, output))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        needed = ctx.needs_input_grad[1:]
        if all(bar is None for bar in bars):
            return None, *(None for _ in needed)
        found = iter(_Backward.apply(ctx.call, needed, *ctx.saved_tensors, *bars))
        return None, *(next(found) if need else None for need in needed)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], call: Call, *given: Tensor | None) -> Any:
        found = _Forward.apply(call, *_axis_in_front(in_dims[1:], given))
        return found, (0,) * len(found)


class _Backward(torch.autograd.Function):
    """Its adjoint, which refuses to be differentiated: the cotangents that are needed."""

    @staticmethod
    def forward(call: Call, needed: tuple[bool, ...], *given: Tensor | None) -> tuple[Tensor, ...]:
        count = len(call.function.kept)
        kept, bars = given[:count], [memory(call.sim, x) for x in given[count:]]
        found = differentiable.backward(call, _arrays(call, call.function.kept, kept), bars, needed[-1])
        return tuple(as_tensor(x) for x, need in zip(found, needed, strict=True) if need)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *bars: Tensor) -> Any:
        raise InputError(FIRST_ONLY)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Call, needed: tuple[bool, ...], *given: Tensor | None
    ) -> Any:
        found = _Backward.apply(call, needed, *_axis_in_front(in_dims[2:], given))
        return found, (0,) * len(found)


for _function in (_Forward.forward, _Backward.forward):
    _function.__signature__ = inspect.signature(_function)  # type: ignore[union-attr]  # PyTorch asks for it at every call


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
        return x.to("cpu", torch.float64) if isinstance(x, Tensor) else torch.tensor(x, dtype=torch.float64)

    def _fields(self, params: Any) -> Any:
        """A module gives them when it is called."""
        return params() if isinstance(params, nn.Module) else params

    def _apply(self, call: Call, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
        return _Forward.apply(call, *inputs)


functions = _TensorFunctions()
step = native(functions.step)
rollout = native(functions.rollout)
contacts = native(functions.contacts)
linearize = native(functions.linearize)
outputs = native(functions.outputs)
sites = native(functions.sites)
sensors = native(functions.sensors)
mass_matrix = native(functions.mass_matrix)
inverse_dynamics = native(functions.inverse_dynamics)
forward_dynamics = native(functions.forward_dynamics)
