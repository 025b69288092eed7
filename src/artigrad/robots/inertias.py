"""Principal moments of inertia of simple solids about their centers."""

from __future__ import annotations

import math


def box(mass: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the moments of a box with the given edge lengths."""
    return mass / 12 * (y * y + z * z), mass / 12 * (x * x + z * z), mass / 12 * (x * x + y * y)


def rod(mass: float, length: float, radius: float) -> tuple[float, float, float]:
    """Return the moments of a cylinder along z."""
    side = mass * (3 * radius * radius + length * length) / 12
    return side, side, mass * radius * radius / 2


def sphere(mass: float, radius: float) -> tuple[float, float, float]:
    """Return the moments of a solid sphere."""
    moment = 0.4 * mass * radius * radius
    return moment, moment, moment


def capsule(density: float, radius: float, half_length: float) -> tuple[float, tuple[float, float, float]]:
    """Return mass and moments of a solid capsule along z."""
    r, h = radius, half_length
    tube, ball = density * math.pi * r * r * 2 * h, density * 4 / 3 * math.pi * r**3
    side = tube * (h * h / 3 + r * r / 4) + ball * (0.4 * r * r + h * h + 0.75 * h * r)
    axis = tube * r * r / 2 + ball * 0.4 * r * r
    return tube + ball, (side, side, axis)
