"""The table of pairs of shapes. A pair is one record: its routine and adjoint, and the points of B that it looks at.

Everybody who wants to know which shapes touch which asks this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...model.model import BOX, CAPSULE, CYLINDER, PLANE, POINTS, SPHERE, Shapes
from . import box, capsule, plane, sphere
from .gap import Gap, PairBars

Feature = tuple[float, float, float]
RIM = 8  # points on each rim of a cylinder
_NONE: tuple[Feature, ...] = ((0.0, 0.0, 0.0),)
_ENDS: tuple[Feature, ...] = ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
_CORNERS: tuple[Feature, ...] = tuple((x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0))
_RIMS: tuple[Feature, ...] = tuple(
    (float(np.cos(t)), float(np.sin(t)), s) for t in 2 * np.pi * np.arange(RIM) / RIM for s in (-1.0, 1.0)
)


class Routine(NamedTuple):
    """How two kinds of shapes meet.

    shapes: kinds of A and B. forward, vjp: of one point; see `gap`. features: what `at` is for each point of the pair; None
    where the points are the vertices of B. near: whether the gap is as cheap as a bound on it.
    """

    shapes: tuple[int, int]
    forward: Callable[..., Gap]
    vjp: Callable[..., PairBars]
    features: tuple[Feature, ...] | None = _NONE
    near: bool = False

    def points(self, shapes: Shapes, b: int) -> list[tuple[int, Feature]]:
        """(vertex, feature) of each point of a pair whose second shape is b."""
        if self.features is not None:
            return [(0, feature) for feature in self.features]
        first, count = shapes.vertices[b]
        return [(first + k, _NONE[0]) for k in range(count)]


ROUTINES = (
    Routine((PLANE, SPHERE), plane.plane_sphere, plane.plane_sphere_vjp, near=True),
    Routine((PLANE, CAPSULE), plane.plane_capsule, plane.plane_capsule_vjp, _ENDS),
    Routine((PLANE, BOX), plane.plane_box, plane.plane_box_vjp, _CORNERS),
    Routine((PLANE, CYLINDER), plane.plane_cylinder, plane.plane_cylinder_vjp, _RIMS),
    Routine((PLANE, POINTS), plane.plane_point, plane.plane_point_vjp, None),
    Routine((SPHERE, SPHERE), sphere.sphere_sphere, sphere.sphere_sphere_vjp, near=True),
    Routine((CAPSULE, SPHERE), capsule.capsule_sphere, capsule.capsule_sphere_vjp),
    Routine((CAPSULE, CAPSULE), capsule.capsule_capsule, capsule.capsule_capsule_vjp),
    Routine((BOX, SPHERE), box.box_sphere, box.box_sphere_vjp),
)
BY_SHAPES: dict[Any, int] = {routine.shapes: k for k, routine in enumerate(ROUTINES)}
