"""What the two laws of friction share."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..spatial import Mat3
from ..staging import select


class TangentBars(NamedTuple):
    """Cotangents of what an update of two tangents reads."""

    A: Mat3
    w: tuple[Any, Any]
    lam: tuple[Any, Any]
    inv: tuple[Any, Any]
    dn: Any
    most: Any


def clamp_vjp(x: Any, most: Any, y_bar: Any) -> tuple[Any, Any]:
    """The cotangents of x and of the bound for y = clamp(x, -most, most)."""
    above, below = x > most, x < -most
    return select(above, 0.0, select(below, 0.0, y_bar)), select(above, y_bar, select(below, -y_bar, 0.0))


def positive(x: Any) -> Any:
    """x where it is above zero, else 0; a NaN stays."""
    return select(x <= 0.0, 0.0, x)


def yes(condition: Any) -> Any:
    """1 where a condition holds, 0 where it does not or compares with NaN."""
    return select(condition, 1.0, 0.0)
