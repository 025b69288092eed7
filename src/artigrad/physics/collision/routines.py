"""Table of pairs of shape types. A record has the routine of a pair, its adjoint and its candidate points.

This table is the only place that decides which shape types can touch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...model.height_fields import window
from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, PLANE, POINTS, SHAPES, SPHERE, Model
from ..spatial import Vec3
from .analytic import box, box_box, capsule, cylinder, plane, sphere
from .contact_geometry import ContactGeometry, PairBars, Pose
from .convex import convex, feature_margin, height_field, plane_hull
from .convex.contact_record import ANY_SOLIDS, CONTACT, ON_PLANE
from .convex.solids import SOLIDS

Feature = tuple[float, float, float]
_NONE: tuple[Feature, ...] = ((0.0, 0.0, 0.0),)
_TWO: tuple[Feature, ...] = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
_ENDS: tuple[Feature, ...] = ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
_CORNERS: tuple[Feature, ...] = tuple((x, y, z) for z in (-1.0, 1.0) for y in (-1.0, 1.0) for x in (-1.0, 1.0))
# cylinder: lowest point, the point above it on the other rim, and two that complete a triangle on the lower rim
_RIM: tuple[Feature, ...] = ((1.0, 0.0, 1.0), (1.0, 0.0, -1.0), (-0.5, 0.75**0.5, 1.0), (-0.5, -(0.75**0.5), 1.0))


class Routine(NamedTuple):
    """Collision routine of two shape types.

    Attributes:
        shapes: Types of A and B.
        forward: Contact geometry of one point; see `ContactGeometry`. None for jointly computed points.
        vjp: Its adjoint. For jointly computed points it takes the row of the point.
        features: Value of `feature` for each point of the pair.
        near: True if the distance is as cheap as a bound on it.
        mirrored: True if the functions were written for the two shapes in the other order.
        collide: Computes all points of a pair jointly, one row of scratch each.
        each: Computes one point of a pair with a height field, after `collide` has located the window of cells.
        kept: Fields of the row that a contact keeps.
        corners: Cotangents of vertices of hulls and of heights of fields; None if the pair has neither.
        margin: Feature margin of a point, m (`feature_margin.py`), at which gradients are one-sided; of jointly
            computed points, of the whole pair after `collide`. None: the features never change.
        symmetric_margin: Distance, m, to a change of all points of a pair that has no effect if there are
            `symmetric_count` points with equal rows.
        symmetric_count: Number of points in that case.
    """

    shapes: tuple[int, int]
    forward: Callable[..., ContactGeometry] | None
    vjp: Callable[..., PairBars]
    features: tuple[Feature, ...] = _NONE
    near: bool = False
    mirrored: bool = False
    collide: Callable[..., None] | None = None
    each: Callable[..., None] | None = None
    kept: tuple[str, ...] = ()
    corners: Callable[..., Any] | None = None
    margin: Callable[..., Any] | None = None
    symmetric_margin: Callable[..., Any] | None = None
    symmetric_count: int = 0

    def points(self, model: Model, a: int, b: int) -> list[Feature]:
        """Return the feature of each candidate point of a pair of shapes."""
        if self.each:
            rows, cols = window(model, model.params, *((a, b) if self.shapes[0] == HEIGHT_FIELD else (b, a)))
            return [(float(r), float(c), t) for r in range(rows) for c in range(cols) for t in (0.0, 1.0)]
        return list(self.features)


def _mirrored(routine: Routine) -> Routine:
    """Return the routine of the same pair with its shapes in the other order."""

    def forward(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> ContactGeometry:
        assert routine.forward is not None
        contact = routine.forward(B, size_b, A, size_a, feature)
        return ContactGeometry(contact.phi, contact.p, -contact.n, contact.t)

    def vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3, y_bar: ContactGeometry) -> PairBars:
        flipped = ContactGeometry(y_bar.phi, y_bar.p, -y_bar.n, y_bar.t)
        bars = routine.vjp(B, size_b, A, size_a, feature, flipped)
        return PairBars(bars.B, bars.size_b, bars.A, bars.size_a, bars.feature)

    def margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, feature: Vec3) -> Any:
        assert routine.margin is not None
        return routine.margin(B, size_b, A, size_a, feature)

    a, b = routine.shapes

    def symmetric_margin(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Any:
        assert routine.symmetric_margin is not None
        return routine.symmetric_margin(B, size_b, A, size_a)

    mirrored = routine._replace(shapes=(b, a), forward=forward, vjp=vjp, mirrored=True)
    return mirrored._replace(
        margin=margin if routine.margin else None,
        symmetric_margin=symmetric_margin if routine.symmetric_margin else None,
    )


_WRITTEN = (
    Routine((PLANE, SPHERE), plane.plane_sphere, plane.plane_sphere_vjp, near=True),
    Routine((PLANE, CAPSULE), plane.plane_capsule, plane.plane_capsule_vjp, _ENDS),
    Routine((PLANE, ELLIPSOID), plane.plane_ellipsoid, plane.plane_ellipsoid_vjp),
    Routine(
        (PLANE, CYLINDER),
        plane.plane_cylinder,
        plane.plane_cylinder_vjp,
        _RIM,
        margin=plane.plane_cylinder_margin,
        symmetric_margin=plane.plane_cylinder_symmetric_margin,
        symmetric_count=3,
    ),
    Routine((PLANE, BOX), plane.plane_box, plane.plane_box_vjp, _CORNERS, margin=plane.plane_box_margin),
    Routine(
        (SPHERE, SPHERE), sphere.sphere_sphere, sphere.sphere_sphere_vjp, near=True, margin=sphere.sphere_sphere_margin
    ),
    Routine(
        (CAPSULE, SPHERE), capsule.capsule_sphere, capsule.capsule_sphere_vjp, margin=capsule.capsule_sphere_margin
    ),
    Routine(
        (CYLINDER, SPHERE),
        cylinder.cylinder_sphere,
        cylinder.cylinder_sphere_vjp,
        margin=cylinder.cylinder_sphere_margin,
    ),
    Routine((BOX, SPHERE), box.box_sphere, box.box_sphere_vjp, margin=box.box_sphere_margin),
    Routine(
        (CAPSULE, CAPSULE),
        capsule.capsule_capsule,
        capsule.capsule_capsule_vjp,
        _TWO,
        margin=capsule.capsule_capsule_margin,
    ),
    Routine(
        (BOX, CAPSULE),
        box.box_capsule,
        box.box_capsule_vjp,
        _TWO,
        margin=box.box_capsule_margin,
        symmetric_margin=box.box_capsule_symmetric_margin,
        symmetric_count=2,
    ),
    Routine(
        (BOX, BOX),
        None,
        box_box.box_box_vjp,
        _NONE * box_box.SLOTS,
        collide=box_box.box_box,
        kept=tuple(CONTACT.fields),
        margin=box_box.box_box_margin,
    ),
)
_ON_PLANES = tuple(
    Routine(shapes, None, vjp, _NONE * plane_hull.SLOTS, collide=collide, kept=ON_PLANE, corners=corners, margin=margin)
    for shapes, collide, vjp, corners, margin in (
        (
            (PLANE, POINTS),
            plane_hull.plane_hull,
            plane_hull.plane_hull_vjp,
            plane_hull.plane_hull_corners,
            plane_hull.plane_hull_margin,
        ),
        (
            (POINTS, PLANE),
            plane_hull.hull_plane,
            plane_hull.hull_plane_vjp,
            plane_hull.hull_plane_corners,
            plane_hull.hull_plane_margin,
        ),
    )
)
_ANY = Routine(  # two solids of any types
    (-1, -1),
    None,
    convex.convex_vjp,
    _NONE * convex.SLOTS,
    collide=convex.convex,
    kept=ANY_SOLIDS,
    corners=convex.corner_bars,
    margin=feature_margin.convex_margin,
)
_NEAREST = _ANY._replace(  # the same, nearest points only
    shapes=(-2, -2),
    vjp=convex.witness_vjp,
    features=_NONE,
    collide=convex.nearest,
    corners=convex.witness_corner_bars,
)
_FIELDS = tuple(
    Routine(
        shapes,
        None,
        height_field.collide_prism_vjp,
        (),
        collide=height_field.find_window,
        each=height_field.collide_prism,
        kept=ANY_SOLIDS,
        corners=height_field.prism_corner_bars,
        margin=height_field.prism_margin,
    )
    for shapes in ((HEIGHT_FIELD, -1), (-1, HEIGHT_FIELD))
)
ROUTINES = (
    *_WRITTEN,
    *(_mirrored(r) for r in _WRITTEN if r.shapes[0] != r.shapes[1]),
    *_ON_PLANES,
    _ANY,
    _NEAREST,
    *_FIELDS,
)
CONVEX, NEAREST = ROUTINES.index(_ANY), ROUTINES.index(_NEAREST)
ON_FIELD, UNDER_FIELD = (ROUTINES.index(r) for r in _FIELDS)  # the solid is the second shape, or the first
SLOTS = max(
    len(r.features) for r in ROUTINES if r.collide and r.features
)  # largest number of jointly computed points of a pair
BY_SHAPES: dict[Any, int] = {routine.shapes: k for k, routine in enumerate(ROUTINES)}
BY_SHAPES |= {(HEIGHT_FIELD, k): ON_FIELD for k in SOLIDS} | {(k, HEIGHT_FIELD): UNDER_FIELD for k in SOLIDS}
BY_SHAPES |= {(a, b): CONVEX for a in SOLIDS for b in SOLIDS if (a, b) not in BY_SHAPES}


def routine_of(model: Model, a: int, b: int) -> int:
    """Return the routine of two shapes."""
    return BY_SHAPES[model.shapes.kind[a], model.shapes.kind[b]]


def distance_routine(model: Model, a: int, b: int) -> int:
    """Return the routine of the nearest points of two shapes: that of contacts, but for solids without patches."""
    routine = routine_of(model, a, b)
    return NEAREST if routine in (CONVEX, BY_SHAPES[BOX, BOX]) else routine


def routines_by_pair(model: Model, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the routines of many pairs of shapes."""
    kinds = np.array(model.shapes.kind, int)
    both, first, inverse = np.unique(kinds[a] * len(SHAPES) + kinds[b], return_index=True, return_inverse=True)
    found = [routine_of(model, int(a[k]), int(b[k])) for k in first]
    return np.array(found, int)[inverse.reshape(-1)] if len(both) else np.zeros(0, int)
