"""A plane against a hull: of the face that lies most level around the lowest corner up to four corners, the lowest first.

Corners above the middle of the hull do not count, however deep it is. Of a face with more corners four are kept (`spread.py`).
MuJoCo does the same.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, Row, carry, maximum, minimum, select
from ...spatial import Vec3, dot
from ..analytic.plane import meet_bars
from ..gap import FAR, ZERO, Gap, PairBars, chord
from .contact_record import CornerBars, Slots
from .hull_tables import Corner, PlacedHull
from .manifold_reduction import spread
from .solids import Solid

SLOTS = 4
LEVEL = 1e-6  # m, off its plane a corner is not one of a face


class Ring(Linear):
    """A face: where its corners begin, how many there are, at which of them the lowest is, and its normal."""

    first: float
    count: float
    lowest: float
    normal: Vec3


def _ring(hull: PlacedHull, lowest: Corner, down: Vec3) -> Ring:
    """The face around a corner that looks most along `down`; a corner without one is a face alone."""
    face, cosine, _next = hull.face_towards(lowest.number, down)
    first, end = hull.span(hull.faces, face)
    place = carry(0.0 * down.x)
    for number, there, at in hull.each(hull.faces, hull.most_corners, face):
        here = there & (abs(number - lowest.number) < 0.5)
        place.value = select(here, at, place.value)
    some = cosine > -1.5
    return Ring(first, select(some, end - first, 1.0), place.value, hull.normal(face))


def _corner(hull: PlacedHull, ring: Ring, k: Any) -> Corner:
    """The k-th after the lowest."""
    at = ring.lowest + k
    return hull.corner(hull.table.gather(ring.first + select(at < ring.count, at, at - ring.count), hull.size))


def _middle(solid: Solid) -> Vec3:
    """The origin of its frame, or the middle of its box where that is elsewhere."""
    x, y, z = solid.centre.map(lambda c, h: abs(c) - h, solid.extent).leaves()
    return select((x <= 0.0) & (y <= 0.0) & (z <= 0.0), ZERO, solid.centre)


def _meet(plane: Solid, solid: Solid, sign: float, slots: Slots) -> None:
    n, X, middle = plane.X.R.column(2), solid.X, _middle(solid)
    down = -(X.R.T @ n)
    lowest = solid.hull.furthest(down)
    ring = _ring(solid.hull, lowest, down)
    four = spread(lambda k: _corner(solid.hull, ring, k), ring.count, ring.normal, solid.hull.most_corners)
    for k, corner in enumerate((lowest, *four[1:])):
        row, at = slots.rows[k], solid.to_world(corner.p)
        gap = dot(n, at - plane.X.r)
        counts = (ring.count > k + 0.5) & (dot(down, corner.p - middle) >= 0.0)
        row.phi = select(counts, gap, FAR) if k else gap
        row.p, row.n = at - n * (0.5 * gap), n * sign
        row.corner, row.number = corner.p, corner.number


def _meet_vjp(plane: Solid, solid: Solid, sign: float, row: Row, y_bar: Gap) -> tuple[PairBars, Vec3]:
    """The cotangents of both poses, the plane's first, and of the corner."""
    bars, corner_bar, _ = meet_bars(plane.X, solid.X, row.corner, 0.0, Gap(y_bar.phi, y_bar.p, y_bar.n * sign, ZERO))
    return bars, corner_bar


def plane_hull(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    _meet(A, B, 1.0, slots)


def hull_plane(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    _meet(B, A, -1.0, slots)


def plane_hull_vjp(A: Solid, B: Solid, row: Row, y_bar: Gap) -> PairBars:
    return _meet_vjp(A, B, 1.0, row, y_bar)[0]


def hull_plane_vjp(A: Solid, B: Solid, row: Row, y_bar: Gap) -> PairBars:
    bars = _meet_vjp(B, A, -1.0, row, y_bar)[0]
    return PairBars(bars.B, bars.size_b, bars.A, bars.size_a, bars.at)


def plane_hull_corners(A: Solid, B: Solid, row: Row, y_bar: Gap) -> tuple[None, CornerBars]:
    return None, CornerBars((row.corner,), (_meet_vjp(A, B, 1.0, row, y_bar)[1],), (row.number,))


def hull_plane_corners(A: Solid, B: Solid, row: Row, y_bar: Gap) -> tuple[CornerBars, None]:
    return CornerBars((row.corner,), (_meet_vjp(B, A, -1.0, row, y_bar)[1],), (row.number,)), None


# -- how far it is to other features -----------------------------------------------------------------------------------------
def plane_hull_room(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    return _room(A, B, slots)


def hull_plane_room(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    return _room(B, A, slots)


def _room(plane: Solid, solid: Solid, slots: Slots) -> Any:
    """To where another face is the most level, or a corner beyond it the lowest, of a face with many corners any; and to where
    a corner is as high as the middle."""
    hull, down, middle = solid.hull, -(solid.X.R.T @ plane.X.R.column(2)), _middle(solid)
    lowest = hull.corner(slots.rows[0].number)
    ring, (_face, cosine, next_) = _ring(hull, lowest, down), hull.face_towards(lowest.number, down)
    reach = maximum(maximum(solid.extent.x, solid.extent.y), solid.extent.z)
    room = carry((chord(next_) - chord(cosine)) * reach)
    for number, there, _k in hull.each(hull.edges, hull.degree, lowest.number):
        way = lowest.p - hull.corner(number).p
        counts = there & ((abs(dot(ring.normal, way)) > LEVEL) | (ring.count > 4.5))
        room.value = select(counts, minimum(room.value, dot(down, way)), room.value)
    for k in range(1, SLOTS):
        row = slots.rows[k]
        above = abs(dot(down, row.corner - middle))
        room.value = select(row.phi < 0.5 * FAR, minimum(room.value, above), room.value)
    return room.value
