"""Reverse mode: the adjoint of a function without loops, staged from the function itself.

    y, back = pullback(f, *inputs)
    bars = back(y_bar)                  the cotangents of the inputs

`f` runs on `Traced` values, which record their operands; `back` visits them from the last to the first and emits the
adjoint. The kernel contains no tape. `f` may use all operations but loops, branches, carries and memory. Choices by
`select` are constant in the adjoint, as in forward mode.

Adjoints are written by hand for functions with loops, for implicit differentiation at a solution, and where they need fewer
instructions.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from .struct import Linear, Struct, leaves_of
from .values import StagingError, Traced, is_real, untraced
from .vjp_rules import vjp_of


def pullback(f: Callable, *inputs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return f(*inputs) and a function from the cotangent of the result to those of the inputs.

    Args:
        f: Function of reals and structs to a real, a struct or a tuple of them. Without loops.
        inputs: Reals and structs that are vector spaces. Anything else (an index, a flag) is passed on and has no cotangent.

    Returns:
        The result, and `back(y_bar)`, the cotangents of all inputs in their order: None for those that have none.
    """
    traced = tuple(_traced(x) for x in inputs)
    y = f(*traced)

    def back(y_bar: Any) -> tuple[Any, ...]:
        found = _cotangents(y, y_bar)
        return tuple(_bar(x, found) for x in traced)

    return _plain(y), back


def derived_vjp(forward: Callable) -> Callable:
    """Return the adjoint of a leaf function, `vjp(*inputs, y_bar)`, and register the pair."""

    def vjp(*inputs_and_bar: Any) -> Any:
        *inputs, y_bar = inputs_and_bar
        bars = pullback(forward, *inputs)[1](y_bar)
        return bars if len(bars) > 1 else bars[0]

    vjp.__name__ = vjp.__qualname__ = f"{forward.__name__}_vjp"
    vjp.__module__ = forward.__module__
    vjp.__doc__ = f"Cotangents of the inputs of `{forward.__name__}`, derived while staging."
    return vjp_of(forward)(vjp)


def _traced(x: Any) -> Any:
    if isinstance(x, Linear):
        return x.map(Traced)
    if isinstance(x, Struct):
        raise StagingError(f"a {type(x).__name__} is no vector space: its cotangent is written by hand")
    return Traced(x) if is_real(x) else x


def _plain(y: Any) -> Any:
    if isinstance(y, tuple):
        return type(y)._make(map(_plain, y)) if hasattr(y, "_make") else tuple(map(_plain, y))
    return y.map(untraced) if isinstance(y, Struct) else untraced(y)


def _bar(x: Any, found: dict[int, Any]) -> Any:
    if isinstance(x, Struct):
        return x.map(lambda leaf: found.get(leaf.order, 0.0))
    return found.get(x.order, 0.0) if isinstance(x, Traced) else None


def _cotangents(y: Any, y_bar: Any) -> dict[int, Any]:
    """Return cotangents of all values that y depends on, by their order."""
    bars: dict[int, Any] = {}
    pending: dict[int, Traced] = {}
    latest: list[int] = []  # a heap of -order of what is pending

    def add(value: Traced, bar: Any) -> None:
        n = value.order
        bars[n] = bars[n] + bar if n in bars else bar
        if n not in pending:
            pending[n] = value
            heapq.heappush(latest, -n)

    for value, bar in zip(leaves_of(y), leaves_of(y_bar), strict=True):
        if isinstance(value, Traced):
            add(value, bar)
    while pending:
        value = pending.pop(-heapq.heappop(latest))
        for operand, rule in value.operands:
            add(operand, rule(bars[value.order]))
    return bars
