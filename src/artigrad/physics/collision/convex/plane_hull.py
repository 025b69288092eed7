"""Contact of a plane and a hull: up to four vertices of the most level face around the lowest vertex, the lowest first.

Vertices above the center of the hull are excluded, at any penetration. Of a face with more vertices four are kept
(`manifold_reduction.py`). MuJoCo does the same.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, Row, carry, maximum, minimum, select
from ...spatial import Vec3, dot
from ..analytic.plane import plane_point_bars
from ..contact_geometry import FAR, ZERO, ContactGeometry, PairBars, chord
from .contact_record import CornerBars, Slots
from .hull_tables import Corner, PlacedHull
from .manifold_reduction import reduce_manifold
from .solids import Solid

SLOTS = 4
LEVEL = 1e-6  # m, distance from a face's plane beyond which a vertex is not part of it


class Ring(Linear):
    """Face of a hull: position of its list of vertices, their number, position of the lowest, and normal."""

    first: float
    count: float
    lowest: float
    normal: Vec3


def _ring(hull: PlacedHull, lowest: Corner, down: Vec3) -> Ring:
    """Face at a vertex most aligned with `down`; a vertex without faces is a face of one vertex."""
    face, cosine, _next = hull.face_towards(lowest.number, down)
    first, end = hull.span(hull.faces, face)
    place = carry(0.0 * down.x)
    for number, there, at in hull.each(hull.faces, hull.most_corners, face):
        here = there & (abs(number - lowest.number) < 0.5)
        place.value = select(here, at, place.value)
    some = cosine > -1.5
    return Ring(first, select(some, end - first, 1.0), place.value, hull.normal(face))


def _corner(hull: PlacedHull, ring: Ring, k: Any) -> Corner:
    """The k-th vertex after the lowest."""
    at = ring.lowest + k
    return hull.corner(hull.table.gather(ring.first + select(at < ring.count, at, at - ring.count), hull.size))


def _middle(solid: Solid) -> Vec3:
    """Origin of the solid's frame, or the center of its bounding box if the origin is outside."""
    x, y, z = solid.center.map(lambda c, h: abs(c) - h, solid.extent).leaves()
    return select((x <= 0.0) & (y <= 0.0) & (z <= 0.0), ZERO, solid.center)


def _collide(plane: Solid, solid: Solid, sign: float, slots: Slots) -> None:
    """Compute the points of a plane and a hull. sign: 1 if the plane is the first shape, else -1."""
    n, X, middle = plane.X.R.column(2), solid.X, _middle(solid)
    down = -(X.R.T @ n)
    lowest = solid.hull.furthest(down)
    ring = _ring(solid.hull, lowest, down)
    quad = reduce_manifold(lambda k: _corner(solid.hull, ring, k), ring.count, ring.normal, solid.hull.most_corners)
    for k, corner in enumerate((lowest, *quad[1:])):
        row, at = slots.rows[k], solid.to_world(corner.p)
        distance = dot(n, at - plane.X.r)
        counts = (ring.count > k + 0.5) & (dot(down, corner.p - middle) >= 0.0)
        row.phi = select(counts, distance, FAR) if k else distance
        row.p, row.n = at - n * (0.5 * distance), n * sign
        row.corner, row.number = corner.p, corner.number


def _collide_vjp(plane: Solid, solid: Solid, sign: float, row: Row, y_bar: ContactGeometry) -> tuple[PairBars, Vec3]:
    """Return the cotangents of both poses, the plane's first, and of the vertex."""
    bars, corner_bar, _ = plane_point_bars(
        plane.X, solid.X, row.corner, 0.0, ContactGeometry(y_bar.phi, y_bar.p, y_bar.n * sign, ZERO)
    )
    return bars, corner_bar


def plane_hull(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    """Contact points of a plane A and a hull B."""
    _collide(A, B, 1.0, slots)


def hull_plane(A: Solid, B: Solid, near: Any, slots: Slots) -> None:
    """Contact points of a hull A and a plane B."""
    _collide(B, A, -1.0, slots)


def plane_hull_vjp(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `plane_hull`."""
    return _collide_vjp(A, B, 1.0, row, y_bar)[0]


def hull_plane_vjp(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """Adjoint of `hull_plane`."""
    bars = _collide_vjp(B, A, -1.0, row, y_bar)[0]
    return PairBars(bars.B, bars.size_b, bars.A, bars.size_a, bars.feature)


def plane_hull_corners(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> tuple[None, CornerBars]:
    """Cotangent of the vertex of B."""
    return None, CornerBars((row.corner,), (_collide_vjp(A, B, 1.0, row, y_bar)[1],), (row.number,))


def hull_plane_corners(A: Solid, B: Solid, row: Row, y_bar: ContactGeometry) -> tuple[CornerBars, None]:
    """Cotangent of the vertex of A."""
    return CornerBars((row.corner,), (_collide_vjp(B, A, -1.0, row, y_bar)[1],), (row.number,)), None


# -- feature margin ------------------------------------------------------------------------------------------------------
def plane_hull_margin(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    """Feature margin of a plane A and a hull B."""
    return _margin(A, B, slots)


def hull_plane_margin(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    """Feature margin of a hull A and a plane B."""
    return _margin(B, A, slots)


def _margin(plane: Solid, solid: Solid, slots: Slots) -> Any:
    """Distance to another face or vertex being the lowest, and to a vertex at the height of the center.

    Of a face with more than four vertices, any other vertex of the face counts as well.
    """
    hull, down, middle = solid.hull, -(solid.X.R.T @ plane.X.R.column(2)), _middle(solid)
    lowest = hull.corner(slots.rows[0].number)
    ring, (_face, cosine, next_) = _ring(hull, lowest, down), hull.face_towards(lowest.number, down)
    reach = maximum(maximum(solid.extent.x, solid.extent.y), solid.extent.z)
    margin = carry((chord(next_) - chord(cosine)) * reach)
    for number, there, _k in hull.each(hull.edges, hull.degree, lowest.number):
        way = lowest.p - hull.corner(number).p
        counts = there & ((abs(dot(ring.normal, way)) > LEVEL) | (ring.count > 4.5))
        margin.value = select(counts, minimum(margin.value, dot(down, way)), margin.value)
    for k in range(1, SLOTS):
        row = slots.rows[k]
        above = abs(dot(down, row.corner - middle))
        margin.value = select(row.phi < 0.5 * FAR, minimum(margin.value, above), margin.value)
    return margin.value
