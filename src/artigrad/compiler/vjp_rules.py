"""Registry of primitive functions and their hand-written VJPs. A test checks every entry by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class VjpRule(NamedTuple):
    """Function and its VJP.

    Attributes:
        forward: The function y = forward(*inputs).
        vjp: vjp(*inputs, y_bar) returns the cotangents of the inputs, one or a tuple.
    """

    forward: Callable
    vjp: Callable


VJP_RULES: dict[str, VjpRule] = {}


def vjp_of(forward: Callable) -> Callable[[Callable], Callable]:
    """Decorate the VJP of `forward`, and register both."""

    def register(vjp: Callable) -> Callable:
        name = f"{forward.__module__.rsplit('.', 1)[-1]}.{forward.__name__}"
        if name in VJP_RULES:
            raise ValueError(f"{name} has an adjoint already")
        VJP_RULES[name] = VjpRule(forward, vjp)
        return vjp

    return register
