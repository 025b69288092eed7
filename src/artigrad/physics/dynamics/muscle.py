"""Muscles: force as a function of length and velocity, MuJoCo's model.

    L = low + (length - first)/L0,   V = velocity/(L0 speed),   L0 = (last - first)/(high - low)
    active gain  -force FL(L) FV(V),      passive force  -force passive FP(L)

first, last: bounds of its length. The adjoints are derived while staging.
"""

from __future__ import annotations

from typing import Any

from ...compiler import derived_vjp, maximum, select
from ..tables import Muscle

LEAST = 1e-15


def _optimal_length(m: Muscle, first: Any, last: Any) -> Any:
    """Optimal length L0, m."""
    return maximum(LEAST, (last - first) / maximum(LEAST, m.high - m.low))


def _force_length(m: Muscle, L: Any) -> Any:
    """Force-length curve FL: parabolas with the maximum at L = 1, zero at the shortest and the longest length."""
    left = L < 1.0
    half = maximum(LEAST, 0.5 * select(left, 1.0 - m.shortest, m.longest - 1.0))
    z = select(left, 1.0 - L, L - 1.0) / half
    rest = maximum(2.0 - z, 0.0)
    return select(z < 1.0, 1.0 - 0.5 * z * z, 0.5 * rest * rest)


def _force_velocity(m: Muscle, V: Any) -> Any:
    """Force-velocity curve FV: 0 at the fastest shortening, 1 at rest, `lengthening` at fast lengthening."""
    y = m.lengthening - 1.0
    shortens = select(V < -1.0, 0.0, (V + 1.0) * (V + 1.0))
    lengthens = m.lengthening - (y - V) * (y - V) / maximum(LEAST, y)
    return select(V < 0.0, shortens, select(y > V, lengthens, m.lengthening))


def _force_velocity_slope(m: Muscle, V: Any) -> Any:
    """Derivative dFV/dV."""
    y = m.lengthening - 1.0
    shortens = select(V < -1.0, 0.0, 2.0 * (V + 1.0))
    return select(V < 0.0, shortens, select(y > V, 2.0 * (y - V) / maximum(LEAST, y), 0.0))


def active(m: Muscle, first: float, last: float, length: float, velocity: float) -> float:
    """Active gain -force FL(L) FV(V)."""
    L0 = _optimal_length(m, first, last)
    V = velocity / maximum(LEAST, L0 * m.speed)
    return -(m.force * _force_length(m, m.low + (length - first) / L0) * _force_velocity(m, V))


def active_slope(m: Muscle, first: float, last: float, length: float, velocity: float) -> float:
    """Derivative of `active` with respect to velocity."""
    L0 = _optimal_length(m, first, last)
    top = maximum(LEAST, L0 * m.speed)
    FL = _force_length(m, m.low + (length - first) / L0)
    return -(m.force * FL * _force_velocity_slope(m, velocity / top)) / top


def passive(m: Muscle, first: float, last: float, length: float) -> float:
    """Passive force -force passive FP(L); FP increases from L = 1, first as a parabola, then linearly."""
    L = m.low + (length - first) / _optimal_length(m, first, last)
    x = maximum(L - 1.0, 0.0) / maximum(LEAST, 0.5 * (m.longest - 1.0))
    return -(m.force * m.passive * select(x < 1.0, 0.5 * x * x, x - 0.5))


active_vjp = derived_vjp(active)
active_slope_vjp = derived_vjp(active_slope)
passive_vjp = derived_vjp(passive)
