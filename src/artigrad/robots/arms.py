"""Robot arms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import checked
from ..build.builder import ModelBuilder
from ..errors import ModelError
from ..model.model import Model
from .inertias import rod


@checked
def arm_dh(params: Any, *, mass: float = 1.0, radius: float = 0.05) -> Model:
    """Build an arm from Denavit-Hartenberg parameters. Each joint has a torque motor and a rod as its link.

    Sites: `tool` at the end. Body i is the frame after joint i at q = 0, so lengths are `position` of the next bodies.

    Args:
      params: Rows (d, a, alpha), one per joint: rotation q about z, shift d along z, shift a along the new x, rotation
        alpha about that x; m and rad.
      mass: Mass of each rod, kg.
      radius: Radius of the rods, m.
    """
    try:
        rows = np.array(params, dtype=float)
    except (TypeError, ValueError):
        rows = np.zeros(0)
    if rows.ndim != 2 or rows.shape[1] != 3 or len(rows) == 0:
        raise ModelError(f"Denavit-Hartenberg rows are numbers (n, 3): d, a, alpha; not {params!r}")
    b = ModelBuilder(f"arm-{len(rows)}")
    place: dict[str, Any] = {}
    parent = "world"
    for i, (d, a, alpha) in enumerate(rows, start=1):
        end = np.array([a, 0.0, d])
        reach = max(float(np.linalg.norm(end)), radius)
        b.add_body(
            f"link{i}",
            parent,
            joint="revolute",
            axis=(0.0, 0.0, 1.0),
            mass=mass,
            com=end / 2,
            inertia=np.full(3, rod(mass, reach, radius)[0]),
            **place,
        )
        place = {"position": end, "rotation": (np.cos(alpha / 2), np.sin(alpha / 2), 0.0, 0.0)}
        parent = f"link{i}"
        b.add_motor(f"joint{i}", parent)
    b.add_site("tool", parent, **place)
    return b.build()
