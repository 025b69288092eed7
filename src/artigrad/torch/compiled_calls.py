"""Functions of a simulator under `torch.compile`: one node of its graph each, or a break in the graph.

Arguments that are tensors, numbers and mappings of tensors become inputs of the node, which AOTAutograd traces as operators
(`traced_calls`), forward and back. With other arguments (modules, `Params`, checkpoints) the graph breaks at the call.
"""

from __future__ import annotations

import functools
import gc
import re
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from ..simulate.framework_api import Functions
from ..simulate.simulator import Simulator
from .tensor_checks import native

# Dynamo of earlier versions cannot make a State: there the graph breaks at each call
_tested = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) >= (2, 13)
_nonstrict = getattr(torch._dynamo, "nonstrict_trace", None) if _tested else None
_simulators: WeakValueDictionary[int, Simulator] = WeakValueDictionary()


def _simulator(key: int) -> Simulator:
    """The simulator with this identity, which lives as long as programs that were compiled for it."""
    found = _simulators.get(key)
    if found is None:
        found = _simulators[key] = next(x for x in gc.get_objects() if id(x) == key)
    return found


def compiled(functions: Functions, name: str, result: Any = None) -> Any:
    """Return a function of a simulator as a node of compiled graphs; result: makes its result of a tuple."""
    method = getattr(functions, name)
    apart = native(method)
    if _nonstrict is None:
        return apart

    def run(key: int, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        found = method(_simulator(key), *given, **named)
        return tuple(found) if isinstance(found, tuple) else found

    node = _nonstrict(run)

    @functools.wraps(method)
    def call(sim: Simulator, *given: Any, **named: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling() or not all(map(_is_plain, (*given, *named.values()))):
            return apart(sim, *given, **named)
        plain = tuple(tuple(x) if isinstance(x, tuple) else x for x in given)
        found = node(id(sim), plain, {k: tuple(x) if isinstance(x, tuple) else x for k, x in named.items()})
        return found if result is None else result(*found)

    return call


def _is_plain(x: Any) -> bool:
    """Return True for an argument that can be the input of a node."""
    if isinstance(x, tuple):
        return all(isinstance(y, Tensor) for y in x)
    if isinstance(x, dict):
        return all(isinstance(y, Tensor) for y in x.values())
    return x is None or isinstance(x, Tensor | int)
