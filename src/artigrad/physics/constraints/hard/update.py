"""Update of the two tangents of one contact: records that both friction laws share."""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, select
from ...spatial import Mat3, Vec3


class Update(Linear):
    """Inputs of an update of two tangents.

    These are block A of the contact, velocities w, impulses lam and steps inv of its rows, the change dn of the normal
    impulse, and the limit of the tangential ones. The cotangent has the same type.
    """

    A: Mat3
    w: Vec3
    lam: Vec3
    inv: Vec3
    dn: float
    limit: float


class Tangents(Linear):
    """The two tangential impulses of a contact."""

    t1: float
    t2: float


def positive(x: Any) -> Any:
    """Return x if it is above zero, else 0; NaN is kept."""
    return select(x <= 0.0, 0.0, x)


def yes(condition: Any) -> Any:
    """Return 1 where a condition holds, 0 where it does not or compares with NaN."""
    return select(condition, 1.0, 0.0)
