"""The gap of one point of a pair, and its adjoint: one branch over the table of routines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...model.model import PLANE
from ...spatial import Vec3, dot
from ...staging import Row, sqrt, switch
from .gap import FAR, Gap, PairBars, PairPoses
from .routines import ROUTINES, Routine


class Point(NamedTuple):
    """A point of B: a direction to multiply B's lengths with, or a vertex; either is read where it is wanted."""

    feature: Callable[[], Vec3]
    vertex: Callable[[], Vec3]

    def at(self, routine: Routine) -> Vec3:
        return self.feature() if routine.features is not None else self.vertex()


def distance(kind: Any, place: Callable[[], PairPoses], radius_a: Any, radius_b: Any) -> Any:
    """A lower bound of the gap, by the spheres around the shapes."""

    def from_plane() -> Any:
        A, _, B, _ = place()
        return dot(A.R.column(2), B.r - A.r) - radius_b

    def between() -> Any:
        A, _, B, _ = place()
        apart = B.r - A.r
        return sqrt(dot(apart, apart)) - radius_a - radius_b

    def bound(routine: Routine) -> Callable[[], Any]:
        if routine.near:
            return lambda: -FAR
        return from_plane if routine.shapes[0] == PLANE else between

    return switch(kind, {k: bound(routine) for k, routine in enumerate(ROUTINES)})


def gap(kind: Any, pair: PairPoses, point: Point) -> Gap:
    """How far apart the shapes of a pair are, where, and in which direction."""

    def of(routine: Routine) -> Gap:
        return routine.forward(*pair, point.at(routine))

    return switch(kind, {k: partial(of, routine) for k, routine in enumerate(ROUTINES)})


def gap_vjp(kind: Any, pair: PairPoses, point: Point, y_bar: Gap) -> PairBars:
    """The cotangents of a pair for that of its gap."""

    def of(routine: Routine) -> tuple[Any, ...]:
        return tuple(routine.vjp(*pair, point.at(routine), y_bar))

    return PairBars(*switch(kind, {k: partial(of, routine) for k, routine in enumerate(ROUTINES)}))


def add_vertex_bar(kind: Any, row: Callable[[], Row], bar: Vec3) -> None:
    """To the cotangent of the vertex that the point is, if it is one."""

    def of(routine: Routine) -> None:
        if routine.features is None:
            row().p += bar

    switch(kind, {k: partial(of, routine) for k, routine in enumerate(ROUTINES)})
