"""The table of pairs of shapes. A pair is one record: its routine and adjoint, and the points that it looks at.

Everybody who wants to know which shapes touch which asks this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...model.height_fields import window
from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, PLANE, POINTS, SHAPES, SPHERE, Model
from ..spatial import Vec3
from .analytic import box, box_box, capsule, cylinder, plane, sphere
from .convex import convex, feature_margin, height_field, plane_hull
from .convex.contact_record import ANY_SOLIDS, MEETING, ON_PLANE
from .convex.solids import SOLIDS
from .gap import Gap, PairBars, Pose

Feature = tuple[float, float, float]
_NONE: tuple[Feature, ...] = ((0.0, 0.0, 0.0),)
_TWO: tuple[Feature, ...] = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
_ENDS: tuple[Feature, ...] = ((0.0, 0.0, -1.0), (0.0, 0.0, 1.0))
_CORNERS: tuple[Feature, ...] = tuple((x, y, z) for z in (-1.0, 1.0) for y in (-1.0, 1.0) for x in (-1.0, 1.0))
# of a cylinder: its lowest point, the one above it on the other rim, and two more that make a triangle of the lower rim
_RIM: tuple[Feature, ...] = ((1.0, 0.0, 1.0), (1.0, 0.0, -1.0), (-0.5, 0.75**0.5, 1.0), (-0.5, -(0.75**0.5), 1.0))


class Routine(NamedTuple):
    """How two kinds of shapes meet.

    shapes: kinds of A and B. forward, vjp: of one point; see `gap`. features: what `at` is for each point of the pair.
    near: whether the gap is as cheap as a bound on it. mirrored: whether the
    functions were written for the two shapes the other way round. collide: of a pair whose points are found together; it
    fills a row of `meeting` for each, and vjp takes such a row, of which a contact keeps the fields `kept`. corners: the
    cotangents of corners of hulls and fields, if there can be any. each: of a pair with a height field; it finds one
    point, and `collide` before where its window lies. room: m, how far a point is from where other features touch
    (`feature_margin.py`), where gradients are those of one side; of points found together, of all of a pair, after these; None:
    none ever do. alike: m, the same for a change of all points of a pair that changes nothing where there are as many of
    them as `together` and their rows are alike.
    """

    shapes: tuple[int, int]
    forward: Callable[..., Gap] | None
    vjp: Callable[..., PairBars]
    features: tuple[Feature, ...] = _NONE
    near: bool = False
    mirrored: bool = False
    collide: Callable[..., None] | None = None
    each: Callable[..., None] | None = None
    kept: tuple[str, ...] = ()
    corners: Callable[..., Any] | None = None
    room: Callable[..., Any] | None = None
    alike: Callable[..., Any] | None = None
    together: int = 0

    def points(self, model: Model, a: int, b: int) -> list[Feature]:
        """The feature of each point of a pair of shapes."""
        if self.each:
            rows, cols = window(model, model.params, *((a, b) if self.shapes[0] == HEIGHT_FIELD else (b, a)))
            return [(float(r), float(c), t) for r in range(rows) for c in range(cols) for t in (0.0, 1.0)]
        return list(self.features)


def _mirrored(routine: Routine) -> Routine:
    """The same pair with its shapes in the other order."""

    def forward(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Gap:
        assert routine.forward is not None
        met = routine.forward(B, size_b, A, size_a, at)
        return Gap(met.phi, met.p, -met.n, met.t)

    def vjp(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3, y_bar: Gap) -> PairBars:
        seen = Gap(y_bar.phi, y_bar.p, -y_bar.n, y_bar.t)
        bars = routine.vjp(B, size_b, A, size_a, at, seen)
        return PairBars(bars.B, bars.size_b, bars.A, bars.size_a, bars.at)

    def room(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3, at: Vec3) -> Any:
        assert routine.room is not None
        return routine.room(B, size_b, A, size_a, at)

    a, b = routine.shapes

    def alike(A: Pose, size_a: Vec3, B: Pose, size_b: Vec3) -> Any:
        assert routine.alike is not None
        return routine.alike(B, size_b, A, size_a)

    own = routine._replace(shapes=(b, a), forward=forward, vjp=vjp, mirrored=True)
    return own._replace(room=room if routine.room else None, alike=alike if routine.alike else None)


_WRITTEN = (
    Routine((PLANE, SPHERE), plane.plane_sphere, plane.plane_sphere_vjp, near=True),
    Routine((PLANE, CAPSULE), plane.plane_capsule, plane.plane_capsule_vjp, _ENDS),
    Routine((PLANE, ELLIPSOID), plane.plane_ellipsoid, plane.plane_ellipsoid_vjp),
    Routine(
        (PLANE, CYLINDER),
        plane.plane_cylinder,
        plane.plane_cylinder_vjp,
        _RIM,
        room=plane.plane_cylinder_room,
        alike=plane.plane_cylinder_turn,
        together=3,
    ),
    Routine((PLANE, BOX), plane.plane_box, plane.plane_box_vjp, _CORNERS, room=plane.plane_box_room),
    Routine(
        (SPHERE, SPHERE), sphere.sphere_sphere, sphere.sphere_sphere_vjp, near=True, room=sphere.sphere_sphere_room
    ),
    Routine((CAPSULE, SPHERE), capsule.capsule_sphere, capsule.capsule_sphere_vjp, room=capsule.capsule_sphere_room),
    Routine(
        (CYLINDER, SPHERE), cylinder.cylinder_sphere, cylinder.cylinder_sphere_vjp, room=cylinder.cylinder_sphere_room
    ),
    Routine((BOX, SPHERE), box.box_sphere, box.box_sphere_vjp, room=box.box_sphere_room),
    Routine(
        (CAPSULE, CAPSULE),
        capsule.capsule_capsule,
        capsule.capsule_capsule_vjp,
        _TWO,
        room=capsule.capsule_capsule_room,
    ),
    Routine(
        (BOX, CAPSULE),
        box.box_capsule,
        box.box_capsule_vjp,
        _TWO,
        room=box.box_capsule_room,
        alike=box.box_capsule_level,
        together=2,
    ),
    Routine(
        (BOX, BOX),
        None,
        box_box.box_box_vjp,
        _NONE * box_box.SLOTS,
        collide=box_box.box_box,
        kept=tuple(MEETING.fields),
        room=box_box.box_box_room,
    ),
)
_ON_PLANES = tuple(
    Routine(shapes, None, vjp, _NONE * plane_hull.SLOTS, collide=collide, kept=ON_PLANE, corners=corners, room=room)
    for shapes, collide, vjp, corners, room in (
        (
            (PLANE, POINTS),
            plane_hull.plane_hull,
            plane_hull.plane_hull_vjp,
            plane_hull.plane_hull_corners,
            plane_hull.plane_hull_room,
        ),
        (
            (POINTS, PLANE),
            plane_hull.hull_plane,
            plane_hull.hull_plane_vjp,
            plane_hull.hull_plane_corners,
            plane_hull.hull_plane_room,
        ),
    )
)
_ANY = Routine(  # two solids of any kinds
    (-1, -1),
    None,
    convex.convex_vjp,
    _NONE * convex.SLOTS,
    collide=convex.convex,
    kept=ANY_SOLIDS,
    corners=convex.corner_bars,
    room=feature_margin.convex_room,
)
_NEAREST = _ANY._replace(  # the same, asked for the nearest points alone
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
        height_field.meet_prism_vjp,
        (),
        collide=height_field.find_window,
        each=height_field.meet_prism,
        kept=ANY_SOLIDS,
        corners=height_field.prism_corner_bars,
        room=height_field.meet_prism_room,
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
ON_FIELD, UNDER_FIELD = (ROUTINES.index(r) for r in _FIELDS)  # a solid as the second shape, or as the first
SLOTS = max(
    len(r.features) for r in ROUTINES if r.collide and r.features
)  # of any pair whose points are found together
BY_SHAPES: dict[Any, int] = {routine.shapes: k for k, routine in enumerate(ROUTINES)}
BY_SHAPES |= {(HEIGHT_FIELD, k): ON_FIELD for k in SOLIDS} | {(k, HEIGHT_FIELD): UNDER_FIELD for k in SOLIDS}
BY_SHAPES |= {(a, b): CONVEX for a in SOLIDS for b in SOLIDS if (a, b) not in BY_SHAPES}


def routine_of(model: Model, a: int, b: int) -> int:
    """The routine of two shapes. Where distances are measured, solids have one that knows of no patches."""
    kinds = model.shapes.kind[a], model.shapes.kind[b]
    routine = BY_SHAPES[kinds]
    return NEAREST if model.shapes.measured and routine in (CONVEX, BY_SHAPES[BOX, BOX]) else routine


def routines_by_pair(model: Model, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The routines of many pairs of shapes."""
    kinds = np.array(model.shapes.kind, int)
    both, first, inverse = np.unique(kinds[a] * len(SHAPES) + kinds[b], return_index=True, return_inverse=True)
    found = [routine_of(model, int(a[k]), int(b[k])) for k in first]
    return np.array(found, int)[inverse.reshape(-1)] if len(both) else np.zeros(0, int)
