"""Distance, contact point and normal of a candidate point, its adjoint, and feature margins, by the routine of its pair."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...compiler import Row, maximum, switch, target
from ...model.model import HEIGHT_FIELD, PLANE
from ..spatial import Vec3, dot
from .contact_geometry import FAR, ContactGeometry, PairBars, PairPoses, Pose
from .convex.contact_record import CornerBars, Slots, saved_geometry
from .convex.height_field import Grid
from .convex.solids import Solid
from .routines import ROUTINES, Routine

SLACK = {"f64": 1e-9, "f32": 1e-4}  # m, rounding error of positions in the world


class PairRoutine(NamedTuple):
    """Routine of a pair. index: into ROUTINES. among: the routines that the model needs; only these are compiled."""

    index: Any
    among: frozenset[int]

    @property
    def has_collide(self) -> bool:
        """Return True if a routine among these computes all points of a pair jointly."""
        return any(ROUTINES[k].collide for k in self.among)

    @property
    def has_each(self) -> bool:
        """Return True if a routine among these computes the points of a pair one at a time."""
        return any(ROUTINES[k].each for k in self.among)

    def switch(self, of: Callable[[Routine], Callable[[], Any]]) -> Any:
        """Call `of(routine)()` for the routine of the pair and return the result."""
        cases = {k: of(ROUTINES[k]) for k in sorted(self.among)}
        return switch(self.index, cases)


class PairPoint(NamedTuple):
    """Candidate point of a pair, evaluated on demand.

    Attributes:
        feature: Direction to be scaled by the sizes of B.
        record: Row of a jointly computed point.
        solids: Both shapes as support functions.
    """

    feature: Callable[[], Vec3]
    record: Callable[[Routine], Row]
    solids: Callable[[Routine], tuple[Any, Any]]


def bounding_distance(choice: PairRoutine, place: Callable[[], tuple[Pose, Pose]], a: Row, b: Row, near: Any) -> Any:
    """Lower bound of a pair's distance minus `near`, from bounding spheres: negative if the shapes can be nearer than that.

    For a height field its bounding box is used. The value is not a distance: no square root is taken, since most of
    hundreds of pairs end here.

    Args:
        choice: Routine of the pair.
        place: Returns the poses of both shapes.
        a: Constants of A.
        b: Constants of B.
        near: Distance, m.
    """
    radius_a, radius_b, near = a.radius, b.radius, near + SLACK[target().dtype]

    def over_plane() -> Any:
        A, B = place()
        return dot(A.R.column(2), B.r - A.r) - radius_b - near

    def under_plane() -> Any:
        A, B = place()
        return dot(B.R.column(2), A.r - B.r) - radius_a - near

    def between() -> Any:
        A, B = place()
        d, reach = B.r - A.r, maximum(radius_a + radius_b + near, 0.0)
        return dot(d, d) - reach * reach

    def beside_box(X: Pose, own: Row, center: Vec3) -> Any:
        x, y, z = ((X.R.T @ (center - X.r)) - own.center).map(lambda p, h: abs(p) - h, own.extent).leaves()
        return maximum(maximum(x, y), z) - near

    def over_field() -> Any:
        A, B = place()
        return beside_box(A, a, B.r) - radius_b

    def under_field() -> Any:
        A, B = place()
        return beside_box(B, b, A.r) - radius_a

    def bound(routine: Routine) -> Callable[[], Any]:
        if routine.near:
            return lambda: -FAR
        if PLANE in routine.shapes:
            return over_plane if routine.shapes[0] == PLANE else under_plane
        if routine.each:
            return over_field if routine.shapes[0] == HEIGHT_FIELD else under_field
        return between

    return choice.switch(bound)


def collide(choice: PairRoutine, solids: Callable[[Routine], tuple[Any, Any]], near: Any, slots: Slots) -> None:
    """Compute all points of a pair nearer than `near` into the slots, if its routine computes them jointly."""

    def of(routine: Routine) -> None:
        if routine.collide:
            routine.collide(*solids(routine), near, slots)

    choice.switch(lambda routine: partial(of, routine))


def collide_one(choice: PairRoutine, point: PairPoint, near: Any, slots: Slots) -> None:
    """Compute one point of a pair, if its routine computes points one at a time."""

    def of(routine: Routine) -> None:
        if routine.each:
            routine.each(*point.solids(routine), point.feature(), near, slots)

    if choice.has_each:
        choice.switch(lambda routine: partial(of, routine))


def pair_margin(choice: PairRoutine, solids: Callable[[Routine], tuple[Any, Any]], near: Any, slots: Slots) -> Any:
    """Feature margin, m, of the points just computed jointly; FAR for pairs whose points are computed one at a time."""

    def of(routine: Routine) -> Any:
        if routine.collide and routine.margin and not routine.each:
            return routine.margin(*solids(routine), near, slots)
        return FAR

    return choice.switch(lambda routine: partial(of, routine))


def point_margin(choice: PairRoutine, pair: PairPoses, point: PairPoint, near: Any, slots: Slots) -> Any:
    """Feature margin, m, of one point of a pair; FAR for jointly computed points."""

    def of(routine: Routine) -> Any:
        if routine.margin and routine.each:
            return routine.margin(*point.solids(routine), point.feature(), near, slots)
        return routine.margin(*pair, point.feature()) if routine.margin and not routine.collide else FAR

    return choice.switch(lambda routine: partial(of, routine))


def symmetric_margin(choice: PairRoutine, pair: PairPoses) -> tuple[Any, Any]:
    """Distance, m, to a change of features without effect if the rows of the points are equal, and their number."""

    def of(routine: Routine) -> tuple[Any, Any]:
        return (
            (routine.symmetric_margin(*pair), float(routine.symmetric_count))
            if routine.symmetric_margin
            else (FAR, 0.0)
        )

    return choice.switch(lambda routine: partial(of, routine))


def save_if_joint(choice: PairRoutine, do: Callable[[Routine], None]) -> None:
    """Call `do(routine)` if the routine of the pair computes its points jointly."""
    choice.switch(lambda routine: partial(do, routine) if routine.collide else lambda: None)


def contact_geometry(choice: PairRoutine, pair: PairPoses, point: PairPoint) -> ContactGeometry:
    """Return distance, point, normal and tangent of a candidate point."""

    def of(routine: Routine) -> ContactGeometry:
        if routine.forward is None:
            return saved_geometry(point.record(routine))
        return routine.forward(*pair, point.feature())

    return choice.switch(lambda routine: partial(of, routine))


def contact_geometry_vjp(choice: PairRoutine, pair: PairPoses, point: PairPoint, y_bar: ContactGeometry) -> PairBars:
    """Return the cotangents of the poses and sizes of a pair, given those of its contact geometry."""

    def of(routine: Routine) -> tuple[Any, ...]:
        if routine.forward is None:
            return tuple(routine.vjp(*point.solids(routine), point.record(routine), y_bar))
        return tuple(routine.vjp(*pair, point.feature(), y_bar))

    return PairBars(*choice.switch(lambda routine: partial(of, routine)))


def add_corner_bars(
    choice: PairRoutine,
    point: PairPoint,
    y_bar: ContactGeometry,
    add: Callable[[int, Solid, CornerBars], None],
    add_heights: Callable[[int, Grid, CornerBars], None],
) -> None:
    """Add to the cotangents of hull vertices and of field heights at a contact.

    Args:
        choice: Routine of the pair.
        point: The contact.
        y_bar: Cotangent of its geometry.
        add: Called as add(side, solid, bars) for a hull; side 0 is A, 1 is B.
        add_heights: Called as add_heights(side, grid, bars) for a height field.
    """

    def of(routine: Routine) -> None:
        assert routine.corners is not None
        solids = point.solids(routine)
        for side, (solid, bars) in enumerate(
            zip(solids, routine.corners(*solids, point.record(routine), y_bar), strict=True)
        ):
            if isinstance(solid, Grid):
                add_heights(side, solid, bars)
            elif bars is not None:
                add(side, solid, bars)

    if any(ROUTINES[k].corners for k in choice.among):
        choice.switch(lambda routine: partial(of, routine) if routine.corners else lambda: None)
