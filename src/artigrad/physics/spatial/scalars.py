"""Scalar functions with their adjoints."""

from __future__ import annotations

from ...compiler import clamp, select, vjp_of


def bounded(x: float, low: float, high: float) -> float:
    """Clamp: y = x within [low, high]."""
    return clamp(x, low, high)


@vjp_of(bounded)
def bounded_vjp(x: float, low: float, high: float, y_bar: float) -> tuple[float, float, float]:
    """Adjoint of the clamp: a clamped value passes its cotangent to the active bound."""
    below, above = x < low, x > high
    return (
        select(below, 0.0, select(above, 0.0, y_bar)),
        select(below, y_bar, 0.0),
        select(above, y_bar, 0.0),
    )
