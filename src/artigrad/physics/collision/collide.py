"""The gap of one point of a pair, and its adjoint: one branch over the routines that a model needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...compiler import Row, maximum, switch, target
from ...model.model import HEIGHT_FIELD, PLANE
from ..spatial import Vec3, dot
from .convex.contact_record import CornerBars, Slots, found
from .convex.height_field import Grid
from .convex.solids import Solid
from .gap import FAR, Gap, PairBars, PairPoses, Pose
from .routines import ROUTINES, Routine

SLACK = {"f64": 1e-9, "f32": 1e-4}  # m, what places in the world may be off


class Kind(NamedTuple):
    """Which routine a pair has, among those that the model needs: no other is compiled."""

    index: Any
    among: frozenset[int]

    @property
    def together(self) -> bool:
        """Whether the points of some pair are found together."""
        return any(ROUTINES[k].collide for k in self.among)

    @property
    def one_by_one(self) -> bool:
        """Whether those of some pair are found one by one."""
        return any(ROUTINES[k].each for k in self.among)

    def switch(self, of: Callable[[Routine], Callable[[], Any]]) -> Any:
        """What `of` makes of the pair's routine, called."""
        cases = {k: of(ROUTINES[k]) for k in sorted(self.among)}
        return switch(self.index, cases) if len(cases) > 1 else next(iter(cases.values()))()


class Point(NamedTuple):
    """A point of a pair: a direction to multiply lengths with, or what was met there; read where it is wanted."""

    feature: Callable[[], Vec3]
    met: Callable[[Routine], Row]
    solids: Callable[[Routine], tuple[Any, Any]]


def out_of_reach(kind: Kind, place: Callable[[], tuple[Pose, Pose]], a: Row, b: Row, near: Any) -> Any:
    """Below zero where the shapes may be nearer than `near`, by the spheres around them; a, b: their constants. A height field
    has a box around it. No root is taken: of hundreds of pairs most are passed over here."""
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

    def beside_box(X: Pose, own: Row, centre: Vec3) -> Any:
        x, y, z = ((X.R.T @ (centre - X.r)) - own.centre).map(lambda p, h: abs(p) - h, own.extent).leaves()
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

    return kind.switch(bound)


def collide(kind: Kind, solids: Callable[[Routine], tuple[Any, Any]], near: Any, slots: Slots) -> None:
    """Find all points of a pair that are nearer than `near`, if its routine finds them together."""

    def of(routine: Routine) -> None:
        if routine.collide:
            routine.collide(*solids(routine), near, slots)

    kind.switch(lambda routine: partial(of, routine))


def collide_one(kind: Kind, point: Point, near: Any, slots: Slots) -> None:
    """Find one point of a pair whose points are found one by one."""

    def of(routine: Routine) -> None:
        if routine.each:
            routine.each(*point.solids(routine), point.feature(), near, slots)

    if kind.one_by_one:
        kind.switch(lambda routine: partial(of, routine))


def pair_room(kind: Kind, solids: Callable[[Routine], tuple[Any, Any]], near: Any, slots: Slots) -> Any:
    """Distance of points that were found together just now to other features, m; FAR for points found one by one."""

    def of(routine: Routine) -> Any:
        if routine.collide and routine.room and not routine.each:
            return routine.room(*solids(routine), near, slots)
        return FAR

    return kind.switch(lambda routine: partial(of, routine))


def point_room(kind: Kind, pair: PairPoses, point: Point, near: Any, slots: Slots) -> Any:
    """Distance of one point of a pair to other features, m; FAR for points found together."""

    def of(routine: Routine) -> Any:
        if routine.room and routine.each:
            return routine.room(*point.solids(routine), point.feature(), near, slots)
        return routine.room(*pair, point.feature()) if routine.room and not routine.collide else FAR

    return kind.switch(lambda routine: partial(of, routine))


def alike_room(kind: Kind, pair: PairPoses) -> tuple[Any, Any]:
    """Distance of a pair to a change that changes nothing where the rows of its points are alike, m; and how many points there
    must be for that."""

    def of(routine: Routine) -> tuple[Any, Any]:
        return (routine.alike(*pair), float(routine.together)) if routine.alike else (FAR, 0.0)

    return kind.switch(lambda routine: partial(of, routine))


def when_together(kind: Kind, do: Callable[[Routine], None]) -> None:
    """Do something for a pair that fills rows of its points."""
    kind.switch(lambda routine: partial(do, routine) if routine.collide else lambda: None)


def gap(kind: Kind, pair: PairPoses, point: Point) -> Gap:
    """How far apart the shapes of a pair are, where, and in which direction."""

    def of(routine: Routine) -> Gap:
        if routine.forward is None:
            return found(point.met(routine))
        return routine.forward(*pair, point.feature())

    return kind.switch(lambda routine: partial(of, routine))


def gap_vjp(kind: Kind, pair: PairPoses, point: Point, y_bar: Gap) -> PairBars:
    """The cotangents of a pair for that of its gap."""

    def of(routine: Routine) -> tuple[Any, ...]:
        if routine.forward is None:
            return tuple(routine.vjp(*point.solids(routine), point.met(routine), y_bar))
        return tuple(routine.vjp(*pair, point.feature(), y_bar))

    return PairBars(*kind.switch(lambda routine: partial(of, routine)))


def add_corner_bars(
    kind: Kind,
    point: Point,
    y_bar: Gap,
    add: Callable[[int, Solid, CornerBars], None],
    add_heights: Callable[[int, Grid, CornerBars], None],
) -> None:
    """To the cotangents of the vertices of hulls and of the heights of fields that hold a contact; add(side, ...) and
    add_heights(side, ...) do it for A (0), B (1)."""

    def of(routine: Routine) -> None:
        assert routine.corners is not None
        solids = point.solids(routine)
        for side, (solid, bars) in enumerate(
            zip(solids, routine.corners(*solids, point.met(routine), y_bar), strict=True)
        ):
            if isinstance(solid, Grid):
                add_heights(side, solid, bars)
            elif bars is not None:
                add(side, solid, bars)

    if any(ROUTINES[k].corners for k in kind.among):
        kind.switch(lambda routine: partial(of, routine) if routine.corners else lambda: None)
