"""The functions of a simulator on tensors, with autograd, `torch.func` and `vmap`, on the CPU and on a GPU.

A backward pass reads what the description of the function keeps (for a rollout: its states, controls and parameters). Forward
mode is there for all functions, and for gradients too. Second derivatives come from it in any order of the modes but forward
over forward, which raises, as derivatives of third order do. Under `torch.compile` each call is a break in the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from ..arguments import numbers
from ..errors import InputError
from ..model.state import State
from ..simulate.arrays import Axes
from ..simulate.framework_api import Functions
from ..simulate.function import Call
from ..simulate.results import Contacts
from ..simulate.simulator import Simulator
from . import traced_calls
from .compiled_calls import compiled
from .tensor_checks import (
    DTYPES,
    FORWARD_TWICE,
    THIRD_ORDER,
    device_of,
    is_legacy_batched,
    native,
    tensor,
)


class _Forward(torch.autograd.Function):
    """A described function, on tensors. Parameters are on the CPU always."""

    @staticmethod
    def forward(call: Call, *given: Tensor | None) -> tuple[Tensor, ...]:
        return traced_calls.evaluate(call, given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *given = inputs
        _keep(ctx, call, call.kept(given, output))

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        needed = ctx.needs_input_grad[1:]
        if all(bar is None for bar in bars):
            return None, *(None for _ in needed)
        found = iter(_apply(_Backward, (ctx.call, needed), (*ctx.saved_tensors, *bars)))
        return None, *(next(found) if need else None for need in needed)

    @staticmethod
    def jvp(ctx: Any, _: None, *d_given: Tensor | None) -> Any:
        return tuple(_apply(_ForwardJvp, (ctx.call,), (*ctx.saved_tensors, *d_given)))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], call: Call, *given: Tensor | None) -> Any:
        found = _Forward.apply(call, *_axis_in_front(in_dims[1:], given))
        return found, (0,) * len(found)


class _Backward(torch.autograd.Function):
    """Its adjoint: the cotangents that are needed. Their own adjoint is forward mode over it, since Hessians are symmetric."""

    @staticmethod
    def forward(call: Call, needed: tuple[bool, ...], *given: Tensor | None) -> tuple[Tensor, ...]:
        return traced_calls.pull_back(call, needed, given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, needed, *given = inputs
        ctx.needed = needed
        _keep(ctx, call, given)

    @staticmethod
    def backward(ctx: Any, *w: Tensor | None) -> Any:
        call, needed, given = ctx.call, ctx.needed, ctx.saved_tensors
        if all(x is None for x in w):
            return None, None, *(None for _ in given)
        kept, bars = given[: len(call.kept_axes)], given[len(call.kept_axes) :]
        spread = iter(w)
        moved = tuple(next(spread) if need else None for need in needed)
        changed = _apply(_ForwardJvp, (call,), (*kept, *moved))
        bars_bars = (None if bar is None else x for bar, x in zip(bars, changed, strict=True))
        return None, None, *_second(call, kept, bars, moved, changed, ctx.needs_input_grad[2:]), *bars_bars

    @staticmethod
    def jvp(ctx: Any, _call: None, _needed: None, *d_given: Tensor | None) -> Any:
        given = ctx.saved_tensors
        refused = _Refused.apply(THIRD_ORDER, *given)
        return tuple(_apply(_BackwardJvp, (ctx.call, ctx.needed), (*refused, *d_given)))

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Call, needed: tuple[bool, ...], *given: Tensor | None
    ) -> Any:
        found = _Backward.apply(call, needed, *_axis_in_front(in_dims[2:], given))
        return found, (0,) * len(found)


class _ForwardJvp(torch.autograd.Function):
    """Tangents of the outputs, for what the adjoint keeps and tangents of the inputs."""

    @staticmethod
    def forward(call: Call, *given: Tensor | None) -> tuple[Tensor, ...]:
        return traced_calls.push_forward(call, given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, *given = inputs
        _keep(ctx, call, (*given, *output))

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        call, saved, count = ctx.call, ctx.saved_tensors, len(ctx.call.kept_axes)
        if all(bar is None for bar in bars):
            return None, *(None for _ in ctx.needs_input_grad[1:])
        end = count + len(call.inputs)
        kept, moved, changed = saved[:count], saved[count:end], saved[end:]
        needed = tuple(x is not None for x in moved)
        found = iter(_apply(_Backward, (call, needed), (*kept, *bars)))
        moved_bars = [next(found) if need else None for need in needed]
        return None, *_second(call, kept, bars, moved, changed, ctx.needs_input_grad[1 : count + 1]), *moved_bars

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise InputError(FORWARD_TWICE)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], call: Call, *given: Tensor | None) -> Any:
        found = _ForwardJvp.apply(call, *_axis_in_front(in_dims[1:], given))
        return found, (0,) * len(found)


class _Refused(torch.autograd.Function):
    """The identity, which raises where it is to be differentiated. None stays None."""

    @staticmethod
    def forward(sentence: str, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        return tuple(None if x is None else x.view_as(x) for x in given)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.sentence = inputs[0]

    @staticmethod
    def backward(ctx: Any, *bars: Tensor | None) -> Any:
        raise InputError(ctx.sentence)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise InputError(ctx.sentence)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], sentence: str, *given: Tensor | None) -> Any:
        return _Refused.apply(sentence, *given), tuple(in_dims[1:])


class _BackwardJvp(torch.autograd.Function):
    """Tangents of the cotangents that are needed, for what is kept, cotangents, and tangents of both, in which it is linear:
    of those it has a derivative."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        call, needed, *given = inputs
        ctx.needed = needed
        _keep(ctx, call, given)

    @staticmethod
    def backward(ctx: Any, *w: Tensor | None) -> Any:
        call, given = ctx.call, ctx.saved_tensors
        half, count = len(given) // 2, len(call.kept_axes)
        nothing = [None] * half
        if all(x is None for x in w):
            return None, None, *nothing, *nothing
        kept, bars, d_bars = given[:count], given[count:half], given[half + count :]
        spread = iter(w)
        moved = tuple(next(spread) if need else None for need in ctx.needed)
        changed = _apply(_ForwardJvp, (call,), (*kept, *moved))
        second = _second(call, kept, bars, moved, changed, ctx.needs_input_grad[2 + half :])
        return None, None, *nothing, *second, *(None if x is None else y for x, y in zip(d_bars, changed, strict=True))

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise InputError(THIRD_ORDER)

    @staticmethod
    def forward(call: Call, needed: tuple[bool, ...], *given: Tensor | None) -> tuple[Tensor, ...]:
        return traced_calls.push_pull_back(call, needed, given)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Call, needed: tuple[bool, ...], *given: Tensor | None
    ) -> Any:
        found = _BackwardJvp.apply(call, needed, *_axis_in_front(in_dims[2:], given))
        return found, (0,) * len(found)


def _second(
    call: Call,
    kept: Sequence[Tensor | None],
    bars: Sequence[Tensor | None],
    moved: Sequence[Tensor | None],
    changed: Sequence[Tensor],
    needed: Sequence[bool],
) -> list[Tensor | None]:
    """Cotangents of what an adjoint keeps, of the product of cotangents of the outputs, Jacobian and tangents of the inputs:
    the Hessian's product with these tangents. Of a rollout's states that of the first has it all."""
    if not any(needed[: len(kept)]):
        return [None] * len(kept)
    dots = dict(zip(call.outputs, changed, strict=True)) | dict(zip(call.inputs, moved, strict=True))
    own = dict(zip(call.kept_axes, kept, strict=True))
    present = tuple(own.get(name, own.get(f"{name}_all")) is not None for name in call.inputs)
    tangents = [dots.get(name) for name in call.kept_axes]
    given = _Refused.apply(THIRD_ORDER, *kept, *bars)
    found = _apply(_BackwardJvp, (call, present), (*given, *tangents, *(None for _ in bars)))
    names = [name for name, here in zip(call.inputs, present, strict=True) if here]
    by_name = dict(zip(names, found, strict=True))

    def of(name: str, x: Tensor | None, need: bool) -> Tensor | None:
        if not need or x is None:
            return None
        if name in by_name:
            return by_name[name]
        first = by_name.get(name.removesuffix("_all"))
        if first is None:
            return None
        rest = first.new_zeros(*first.shape[:-1], x.shape[-2] - 1, x.shape[-1])
        return torch.cat([first.unsqueeze(-2), rest], -2)

    return [of(name, x, need) for (name, x), need in zip(own.items(), needed, strict=False)]


for _function in (_Forward.forward, _Backward.forward, _ForwardJvp.forward, _BackwardJvp.forward):
    _function.__signature__ = inspect.signature(_function)  # type: ignore[union-attr]  # PyTorch asks for it at every call


def _apply(function: Any, first: tuple[Any, ...], given: Sequence[Tensor | None]) -> Sequence[Tensor]:
    """Evaluate a function, of tensors of `is_grads_batched` and of `vectorize=True` in one call of the whole batch."""
    if any(map(is_legacy_batched, given)):
        return _of_batch(function, first, given)
    run = function.apply if _is_differentiated(given) else function.forward
    return run(*first, *given)


def _of_batch(function: Any, first: tuple[Any, ...], given: Iterable[Tensor | None]) -> list[Tensor]:
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    whole = []
    for x in given:
        whole.append(None if x is None else torch._remove_batch_dim(x, level, 1, 0))
    if any(map(is_legacy_batched, whole)):
        raise InputError("batches of batches of gradients are not available here: use torch.func.vmap")
    return [torch._add_batch_dim(x, 0, level) for x in _apply(function, first, whole)]


def _is_differentiated(inputs: Sequence[Tensor | None]) -> bool:
    """Return True if PyTorch records a call: for gradients, a transformation or forward mode."""
    recorded = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    return recorded or torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def _keep(ctx: Any, call: Call, tensors: Iterable[Tensor | None]) -> None:
    """Save the tensors that both modes read."""
    ctx.call = call
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.set_materialize_grads(False)


def _axis_in_front(in_dims: tuple[int | None, ...], given: tuple[Tensor | None, ...]) -> list[Tensor | None]:
    """Tensors with the axis of `vmap` first, of length one where a tensor has none: what robots share stays shared."""
    return [
        None if x is None else x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
        for dim, x in zip(in_dims, given, strict=True)
    ]


def apply_call(call: Call, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Evaluate a described function."""
    if _is_differentiated(inputs):
        return _Forward.apply(call, *inputs)
    return _Forward.forward(call, *inputs)  # what PyTorch does around it takes as long as a short step


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
        return apply_call(call, inputs)


functions = _TensorFunctions()
step = compiled(functions, "step", State)
rollout = compiled(functions, "rollout", State)
contacts = compiled(functions, "contacts", Contacts)
linearize = compiled(functions, "linearize")
outputs = native(functions.outputs)
sites = compiled(functions, "sites")
sensors = compiled(functions, "sensors")
mass_matrix = compiled(functions, "mass_matrix")
reweighted = native(functions.reweighted)
inverse_dynamics = compiled(functions, "inverse_dynamics")
forward_dynamics = compiled(functions, "forward_dynamics")
