"""Described functions on tensors: evaluated on their values, and as an operator of PyTorch where a program is traced.

`make_fx`, `torch.func.linearize`, `torch.export` and AOTAutograd record operators. Evaluating a function on the values of the
tensors would make constants of its results. The operator has a fake kernel, which returns shapes alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from ..errors import InputError
from ..simulate import function
from ..simulate.arrays import leading
from ..simulate.function import Call
from .tensor_checks import DTYPES, as_tensor, device_of, is_traced, memory

Given = Sequence[Tensor | None]

_calls: WeakValueDictionary[int, Call] = WeakValueDictionary()
_numbers = count(secrets.randbits(61))  # other ones in each process


def evaluate(call: Call, given: Given) -> tuple[Tensor, ...]:
    """Return the outputs of a function."""
    return _run(0, call, (), given)


def pull_back(call: Call, needed: tuple[bool, ...], given: Given) -> tuple[Tensor, ...]:
    """Return the cotangents that are needed; given: what is kept, and cotangents of the outputs."""
    return _run(1, call, needed, given)


def push_forward(call: Call, given: Given) -> tuple[Tensor, ...]:
    """Return the tangents of the outputs; given: what is kept, and tangents of the inputs."""
    return _run(2, call, (), given)


def push_pull_back(call: Call, needed: tuple[bool, ...], given: Given) -> tuple[Tensor, ...]:
    """Return the tangents of the cotangents that are needed; given: as for `pull_back`, and tangents of all that."""
    return _run(3, call, needed, given)


def _run(kind: int, call: Call, needed: tuple[bool, ...], given: Given) -> tuple[Tensor, ...]:
    if is_traced(given):
        return tuple(_operator(kind, _key(call), needed, list(given)))
    return _on_values(kind, call, needed, given)


# -- on values -------------------------------------------------------------------------------------------------------------
def _axes(kind: int, call: Call) -> list[tuple[str, int]]:
    """Name and number of axes of one robot of all that an operation is given."""
    kept, bars, inputs = (list(x.items()) for x in (call.kept_axes, call.bar_axes, call.inputs))
    return (inputs, kept + bars, kept + inputs, kept + bars + kept + bars)[kind]


def _on_values(kind: int, call: Call, needed: Sequence[bool], given: Given) -> tuple[Tensor, ...]:
    arrays = [_array(call, name, x) for (name, _), x in zip(_axes(kind, call), given, strict=True)]
    if kind == 0:
        return _tensors(function.evaluate(call, arrays))
    n = len(call.kept_axes)
    if kind == 2:
        return _tensors(function.push_forward(call, arrays[:n], arrays[n:]))
    half = n + len(call.bar_axes)
    parts = arrays[:n], arrays[n:half]
    if kind == 1:
        found = function.pull_back(call, *parts, needed[-1])
    else:
        found = function.push_pull_back(call, *parts, arrays[half : half + n], arrays[half + n :], needed[-1])
    return _tensors(x for x, need in zip(found, needed, strict=True) if need)


def _array(call: Call, name: str, x: Tensor | None) -> Any:
    """A tensor as the simulator takes it; parameters are on the CPU always."""
    return x.detach().numpy() if name == "params" and x is not None else memory(call.sim, x)


def _tensors(arrays: Iterable[Any]) -> tuple[Tensor, ...]:
    return tuple(map(as_tensor, arrays))


# -- traced ----------------------------------------------------------------------------------------------------------------
def _key(call: Call) -> int:
    """Number of a call in this process; it is kept with its simulator."""
    known = call.sim.engine.native_calls
    if ("traced", call) not in known:
        known["traced", call] = key = next(_numbers)
        _calls[key] = call
    return int(known["traced", call])


def _call(key: int) -> Call:
    found = _calls.get(key)
    if found is None:
        raise InputError(
            "the simulator of this traced program was deleted, or the program was traced in another process: keep the "
            "simulator, and trace again in each process"
        )
    return found


def _values(kind: int, key: int, needed: Sequence[bool], given: Given) -> list[Tensor]:
    return [x.clone() for x in _on_values(kind, _call(key), needed, given)]


def _shapes(kind: int, key: int, needed: Sequence[bool], given: Given) -> list[Tensor]:
    """Results without values."""
    call = _call(key)
    named = list(zip(_axes(kind, call), given, strict=True))
    lead = leading(*((x, own) for (_, own), x in named))
    flat = next((x for (name, _), x in named if name == "params"), None)
    like = next(x for (name, _), x in named if name != "params" and x is not None)
    about: dict[str, Any] = {"dtype": DTYPES[call.sim.dtype], "device": device_of(call.sim)}
    if kind in (0, 2):
        return [like.new_empty((*lead, *shape), **about) for shape in call.outputs.values()]
    found = []
    for (name, shape), need in zip(call.input_shapes.items(), needed, strict=True):
        if need and name == "params" and flat is not None:
            found.append(flat.new_empty((*lead[: flat.ndim - 1], *shape)))
        elif need:
            found.append(like.new_empty((*lead, *shape), **about))
    return found


def _define() -> Callable[..., list[Tensor]]:
    """Define the operator; it has no autograd, which is around it."""
    torch.library.define("artigrad::run", "(int kind, int key, bool[] needed, Tensor?[] given) -> Tensor[]")
    torch.library.impl("artigrad::run", "CompositeExplicitAutograd", _values)
    torch.library.register_fake("artigrad::run", _shapes)
    return torch.ops.artigrad.run.default


_operator = _define()
