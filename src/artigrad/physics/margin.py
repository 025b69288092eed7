"""The margin of a backward pass: the least speed, of all steps, by which something would have had to move otherwise for a
derivative to jump. Constraints hold it; a model that can have none has no margin."""

from __future__ import annotations

from typing import Any

from ..compiler import maximum, minimum, select
from .collision.contact_geometry import FAR
from .context import Step


def keep_speed(s: Step, speed: Any, where: Any = None) -> None:
    """Keep a speed, where asked."""
    if s.constraints is not None:
        status = s.constraints.status
        status[1] = minimum(status[1], speed if where is None else select(where, speed, FAR))


def keep_distance(s: Step, distance: Any, where: Any = None) -> None:
    """Keep the speed at which a distance of positions to a kink closes within a step."""
    keep_speed(s, maximum(distance, 0.0) / s.dt, where)
