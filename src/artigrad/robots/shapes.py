"""Principal moments of inertia of simple solids, about their centre."""

from __future__ import annotations


def box(mass: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A box with the given edge lengths."""
    return mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y)


def rod(mass: float, length: float, radius: float) -> tuple[float, float, float]:
    """A cylinder along z."""
    side = mass * (3 * radius * radius + length * length) / 12
    return side, side, mass * radius * radius / 2


def sphere(mass: float, radius: float) -> tuple[float, float, float]:
    """A solid sphere."""
    moment = 0.4 * mass * radius * radius
    return moment, moment, moment
