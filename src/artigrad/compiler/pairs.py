"""The register of pairs: every differentiable leaf function stands beside its adjoint, and one test walks them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Pair(NamedTuple):
    """`vjp(*inputs, y_bar)` returns the cotangents of the inputs, one or a tuple, for `forward(*inputs)`."""

    forward: Callable
    vjp: Callable


PAIRS: dict[str, Pair] = {}


def vjp_of(forward: Callable) -> Callable[[Callable], Callable]:
    """Decorate the adjoint of `forward`; both enter the register."""

    def register(vjp: Callable) -> Callable:
        name = f"{forward.__module__.rsplit('.', 1)[-1]}.{forward.__name__}"
        if name in PAIRS:
            raise ValueError(f"{name} has an adjoint already")
        PAIRS[name] = Pair(forward, vjp)
        return vjp

    return register
