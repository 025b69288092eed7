"""Switch margin of a backward pass: the smallest change of velocity in any step that would have made a derivative jump.

It is stored with the constraint rows; a model without constraints has no margin.
"""

from __future__ import annotations

from typing import Any

from ..compiler import maximum, minimum, select
from .collision.contact_geometry import FAR
from .context import Step


def keep_speed(s: Step, speed: Any, where: Any = None) -> None:
    """Reduce the margin to a speed, m/s, if `where` holds."""
    if s.constraints is not None:
        status = s.constraints.status
        status[1] = minimum(status[1], speed if where is None else select(where, speed, FAR))


def keep_distance(s: Step, distance: Any, where: Any = None) -> None:
    """Reduce the margin to the speed that closes a distance to a kink within one step."""
    keep_speed(s, maximum(distance, 0.0) / s.dt, where)
