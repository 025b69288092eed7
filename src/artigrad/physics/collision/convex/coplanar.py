"""Flat face around a touching vertex or edge: if all neighbors of the feature are in one plane, the feature is that face
(theory 6.8).

A search returns vertices of A - B that need not span a whole feature: two of them may be the ends of a diagonal of a face,
and a mesh may have edges and vertices between triangles of one plane. The normal does not rotate as the other solid moves
across these, so the feature is the face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....compiler import Linear, carry, select, target, when_any
from ....model.model import BOX, POINTS
from ...spatial import Vec3, cross, dot
from .solids import SOLIDS, Solid
from .witness import SHORT, Facet

LEVEL = {"f64": 1e-5, "f32": 1e-4}  # sine of an edge to the plane across the normal; vertices in files are f32
STRAIGHT = 1e-4  # sine below which two edges are on one line


class _Neighbor(Linear):
    """Vector from the first vertex of a feature to the vertex with this index."""

    d: Vec3
    number: float


class _Around(Linear):
    """Edges in the plane that are rotated furthest to the left and right of a given edge, and 1 if an edge continues it
    backwards."""

    left: _Neighbor
    right: _Neighbor
    behind: float


_Neighbors = Callable[[], Iterator[tuple[_Neighbor, Any]]]  # neighbors of a vertex, each with its validity


def whole_feature(s: Solid, f: Facet, outwards: Vec3) -> Facet:
    """Return the feature of a solid that contains the corner or edge f. outwards: the normal out of the solid, common axes."""
    l = s.X.R.T @ outwards

    def box() -> Iterator[tuple[_Neighbor, Any]]:
        p = f.p0
        for d in (Vec3(-2.0 * p.x, 0.0, 0.0), Vec3(0.0, -2.0 * p.y, 0.0), Vec3(0.0, 0.0, -2.0 * p.z)):
            yield _Neighbor(d, 0.0), f.k > -0.5

    def hull() -> Iterator[tuple[_Neighbor, Any]]:
        for corner, there in s.hull.neighbors(f.p0, f.numbers.x):
            yield _Neighbor(corner.p - f.p0, corner.number), there

    same: dict[int, Callable[[], Facet]] = {k: lambda: f for k in SOLIDS}
    return s.by_kind(same | {BOX: lambda: _whole(f, l, box), POINTS: lambda: _whole(f, l, hull)})


def _whole(f: Facet, l: Vec3, edges: _Neighbors) -> Facet:
    """Extend a vertex or edge to the feature in the plane across l."""
    at_corner, at_edge = f.k < 0.5, (f.k > 0.5) & (f.k < 1.5)
    first = carry(_Neighbor(select(at_edge, f.p1 - f.p0, Vec3.zero()), f.numbers.y))
    for _ in when_any(at_corner):
        for edge, there in edges():
            takes = there & at_corner & _level(edge, l) & _none(first.value)
            first.value = select(takes, edge, first.value)
    active, whole = (at_corner | at_edge) & _some(first.value), carry(f)
    for _ in when_any(active):
        whole.value = select(active, _extended(f, l, first.value, edges), f)
    return whole.value


def _extended(f: Facet, l: Vec3, first: _Neighbor, edges: _Neighbors) -> Facet:
    """Return the feature that contains an edge in the plane.

    It is a face if other edges in the plane are on both sides of a touching edge, or all around a vertex; it is an edge if
    one edge continues the first one straight behind a vertex.
    """
    across, none = cross(l, first.d), _Neighbor(0.0 * l, 0.0 * l.x)  # across points left
    around = carry(_Around(none, none, 0.0 * l.x))
    for edge, there in edges():
        now, side = around.value, dot(across, edge.d)
        beside = side * side > STRAIGHT * STRAIGHT * dot(across, across) * dot(edge.d, edge.d)
        level = there & _level(edge, l)
        left, right = level & beside & (side > 0.0), level & beside & (side < 0.0)
        left = left & (_none(now.left) | (dot(cross(now.left.d, edge.d), l) > 0.0))
        right = right & (_none(now.right) | (dot(cross(now.right.d, edge.d), l) < 0.0))
        behind = level & (dot(first.d, edge.d) < 0.0) & (select(beside, 0.0, 1.0) > 0.5)
        around.value = _Around(
            select(left, edge, now.left), select(right, edge, now.right), select(behind, 1.0, now.behind)
        )
    left, right, straight = around.value.left, around.value.right, around.value.behind > 0.5
    closed = (f.k > 0.5) | straight | (dot(cross(right.d, left.d), l) < 0.0)
    face, line = _some(left) & _some(right) & closed, (f.k < 0.5) & straight
    areas = [dot(area, area) for area in (cross(first.d, edge.d) for edge in (left, right))]
    third = select(face, select(areas[1] > areas[0], right, left), first)
    numbers = Vec3(f.numbers.x, first.number, third.number)
    kind = select(face, 2.0, 1.0)
    return select(face | line, Facet(f.at, f.p0, f.p0 + first.d, f.p0 + third.d, kind, f.round, numbers), f)


def _level(edge: _Neighbor, l: Vec3) -> Any:
    """Return True if an edge is in the plane across l."""
    height, most = dot(edge.d, l), LEVEL[target().dtype]
    return (height * height < most * most * dot(edge.d, edge.d)) & _some(edge)


def _some(edge: _Neighbor) -> Any:
    """Return True if the edge exists."""
    return dot(edge.d, edge.d) > SHORT


def _none(edge: _Neighbor) -> Any:
    """Return True if the edge does not exist."""
    return dot(edge.d, edge.d) <= SHORT
