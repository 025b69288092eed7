"""What a pair of shapes answers: how far apart, where, and in which direction."""

from __future__ import annotations

from ..spatial import Vec3
from ..staging import Linear


class Gap(Linear):
    """Distance `phi` (negative: depth), point `p` halfway between the surfaces, unit normal `n` from shape A to B."""

    phi: float
    p: Vec3
    n: Vec3
