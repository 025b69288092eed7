"""Target velocity of a closed contact at the end of a step: depth correction, or restitution.

It rests at depth `slop`: inside the surface the error shrinks by `erp` a step, at most `out` m/s, and above it the gap may
close at once. Kinks are at phi = 0 and where `out` is reached; nothing rests there.
"""

from __future__ import annotations

from typing import Any

from ....compiler import minimum, select
from ...collision.contact_geometry import FAR
from ...context import Step

UNBOUNDED = 1e15  # m/s: the speed at which a gap of FAR, one that is not there, may close


def target_velocity(s: Step, phi: Any, e: Any, g: Any) -> Any:
    """beta = min(-erp (phi + slop)/dt, out) within the surface, -phi/dt more above it. A contact that would close in this
    step, faster than the threshold, bounces if that is more:  beta = -e g."""
    rest, _ = rest_velocity(s, phi)
    return select(bounces(s, phi, e, g, rest), -(e * g), rest)


def bounces(s: Step, phi: Any, e: Any, g: Any, rest: Any) -> Any:
    """Return 1 if restitution determines the velocity of a contact."""
    threshold = s.constraints.options.threshold
    return (e > 0.0) & (phi + s.dt * g < 0.0) & (g < -threshold) & (-(e * g) > rest)


def rest_velocity(s: Step, phi: Any) -> tuple[Any, Any]:
    """Return the velocity of depth correction, and its derivative with respect to the gap."""
    options, dt = s.constraints.options, s.dt
    inside, above = -(options.erp * (phi + options.slop)) / dt, -(phi + options.erp * options.slop) / dt
    corrected, slope = minimum(inside, options.out), select(inside < options.out, -options.erp / dt, 0.0)
    above, above_slope = select(phi < FAR, above, -UNBOUNDED), select(phi < FAR, -1.0 / dt, 0.0)
    return select(phi > 0.0, above, corrected), select(phi > 0.0, above_slope, slope)
