"""Feature margins: distance, m, from a contact to the next change of its features, where gradients are one-sided.

A margin is exact, or a bound that vanishes with it, for small displacements of the surfaces. A feature is given by the
touching point `at` and the outward normal l. Each neighboring feature has two numbers: the distance of `at` to the border
with the neighbor, and the height of the neighbor below `at` along l. One of them is zero; where the other vanishes too, the
neighbor becomes the touching feature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Row, Table, carry, clamp, maximum, minimum, select, sqrt, to_real, when_any
from ....model.model import BOX, CAPSULE, CYLINDER, POINTS
from ...spatial import Mat3, Vec3, cross, dot, norm
from ..contact_geometry import FAR, least_of
from .clip import ClippedPolygon
from .contact_polygon import PolygonPair
from .contact_record import Slots
from .solids import SOLIDS, Solid
from .witness import crossing_edges

SMALL = 1e-30
DISTINCT = 1e-6  # m, distance below which two vertices are one
LINES = frozenset({CAPSULE, CYLINDER})
SLOPE = 1e-6  # difference of the slopes of two edges below which they are parallel
ASLANT = 0.5  # component of a normal along a cylinder's axis below which the side touches


def length(x: Any, y: Any, z: Any = 0.0) -> Any:
    """Length of (x, y, z)."""
    return sqrt(maximum(x * x + y * y + z * z, SMALL))


def beside(p: Vec3, a: Vec3, b: Vec3, side: Any, near: Any) -> Any:
    """Distance of a vertex p to an edge a, b in the projection, or of their height difference to `near` if that is larger.

    side: 1 if the edge is above the vertex, -1 if below.
    """
    d, x, y = b - a, p.x - a.x, p.y - a.y
    t = clamp((x * d.x + y * d.y) / maximum(d.x * d.x + d.y * d.y, SMALL), 0.0, 1.0)
    return maximum(length(x - d.x * t, y - d.y * t), (a.z + d.z * t - p.z) * side - near)


# -- nearest points of two solids ------------------------------------------------------------------------------------------
def held_margin(s: Solid, at: Vec3, l: Vec3, flat: Any, numbers: Vec3, bend: Any) -> Any:
    """Margin of the point of a core nearest to another solid.

    Args:
        s: Solid.
        at: Point, in the frame of s.
        l: Outward normal, in the frame of s.
        flat, numbers: Number of flat directions and indices of a hull's feature.
        bend: Displacement of the other solid per change of the normal, m.
    """
    z = s.size

    def along(x: Any, lx: Any, half: Any) -> Any:
        return maximum(half - abs(x), minimum(2.0 * half, bend) * abs(lx))

    def cylinder() -> Any:
        across = maximum(z.x - length(at.x, at.y), minimum(2.0 * z.x, bend) * length(l.x, l.y))
        return minimum(along(at.z, l.z, z.y), across)

    smooth: dict[int, Callable[[], Any]] = {k: lambda: FAR for k in SOLIDS}
    corners = {
        CAPSULE: lambda: along(at.z, l.z, z.y),
        CYLINDER: cylinder,
        BOX: lambda: least_of(*at.map(along, l, z).leaves()),
        POINTS: lambda: s.hull.margin(at, l, flat, numbers),
    }
    return s.by_kind(smooth | corners)


def witness_margin(A: Solid, B: Solid, row: Row) -> Any:
    """Distance to another feature of either solid having the nearest points.

    Cores that overlap by more than the distance to the border of the touching feature may be as near to each other on
    another side  (theory 6.12).
    """
    one = held_margin(A, A.to_own(row.a), A.X.R.T @ row.n, row.a_flat, row.a_numbers, _bend(B, row.CB, row.g))
    other = held_margin(B, B.to_own(row.b), -(B.X.R.T @ row.n), row.b_flat, row.b_numbers, _bend(A, row.CA, row.g))
    return minimum(minimum(one, other) - maximum(-row.g, 0.0), _lines_margin(A, B, row))


def _bend(s: Solid, curvature: Mat3, distance: Any) -> Any:
    """Displacement of a curved solid that changes the normal by 1; beyond that of any solid for vertices and flat parts."""
    curved = s.radius + curvature.xx + curvature.yy + curvature.zz
    return select(curved > SMALL, maximum(curved - s.radius + distance, 0.0), FAR)


def _lines_margin(A: Solid, B: Solid, row: Row) -> Any:
    """Distance of two touching lines of capsules or cylinders to being parallel, where any tilt moves the contact to an end."""
    if not (A.among & LINES and B.among & LINES):
        return FAR
    halves = _half_line(A, A.to_own(row.a), A.X.R.T @ row.n), _half_line(B, B.to_own(row.b), B.X.R.T @ row.n)
    apart = norm(cross(A.X.R.column(2), B.X.R.column(2)))
    return select(minimum(*halves) > 0.0, apart * minimum(*halves), FAR)


def _half_line(s: Solid, at: Vec3, l: Vec3) -> Any:
    """Half length of the line of a capsule or cylinder; zero if another feature of it touches."""
    none: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}

    def inside() -> Any:
        return select(abs(at.z) < s.size.y, s.size.y, 0.0)

    return s.by_kind(none | {CAPSULE: inside, CYLINDER: lambda: select(abs(l.z) < ASLANT, inside(), 0.0)})


# -- shared area of two solids --------------------------------------------------------------------------------------------
def crossing_margin(polygons: PolygonPair, record: Row, near: Any) -> Any:
    """Distance to a vertex of one polygon crossing an edge of the other, at distances below `near`."""
    rows, second, margin = polygons.rows, polygons.size, carry(FAR + 0.0 * record.small)
    for k in polygons.below(record.small):
        p, q = rows[k].at, rows[k + 1].at
        for j in polygons.below(record.large):
            a, b = rows[second + j].at, rows[second + j + 1].at
            there = (to_real(k) < record.small) & (to_real(j) < record.large)
            found = minimum(beside(p, a, b, record.side, near), beside(a, p, q, -record.side, near))
            margin.value = minimum(margin.value, select(there, found, FAR))
    return margin.value


def quad_margin(clipped: ClippedPolygon, order: Table, record: Row, near: Any) -> Any:
    """Distance to another choice of the four vertices kept: a vertex crosses `near`, or another area becomes the largest."""
    margin = carry(FAR + 0.0 * record.many)
    choice = (record.many > 4.5) | (record.small < 2.5)
    for _ in when_any(choice):
        for k in clipped.below(record.many):
            v = clipped.rows[k].at
            off = abs((record.plane.height(v.x, v.y) - v.z) * record.side - near)
            margin.value = minimum(margin.value, select((to_real(k) < record.many) & choice, off, FAR))
    for _ in when_any(record.count > 4.5):
        numbers = record.quad.leaves()[:4]
        kept = [(clipped.corner(k), clipped.kind(record.many, k)) for k in numbers]
        for k in clipped.below(record.count):
            number = order[k].at.number
            new = clipped.corner(number), clipped.kind(record.many, number)
            chosen = least_of(*(abs(number - x) for x in numbers)) < 0.5
            for j in range(4):
                off = _gain(kept[j], new, (kept[j - 3], kept[j - 1]))
                counts = (select(chosen, 0.0, 1.0) > 0.5) & (to_real(k) < record.count) & (record.count > 4.5)
                margin.value = minimum(margin.value, select(counts, off, FAR))
    return margin.value


def _gain(old: tuple[Any, Any], new: tuple[Any, Any], ends: tuple[tuple[Any, Any], ...]) -> Any:
    """Difference of the distances of two vertices to the diagonal `ends`; (vertex, type) of each.

    Vertices of one polygon move together, and two at one position are one: FAR.
    """
    (p, kind), (q, _), ((a, _), (b, _)) = old, new, ends
    x, y, u, v = q.x - p.x, q.y - p.y, b.x - a.x, b.y - a.y
    together = abs(kind - 1.0) > 0.5
    for _, other in (new, *ends):
        together = together & (abs(other - kind) < 0.5)
    return select(together | (length(x, y) < DISTINCT), FAR, abs(x * v - y * u) / length(u, v))


def _level_margin(A: Solid, B: Solid, slots: Slots) -> Any:
    """Distance of the line of a capsule or cylinder to being level on a face, where the nearest points go to its other end.

    The line is on the side of their normal, which rotates about it with the tilt times the slope of the edge that the line
    crosses there, and not at all if the end of the line is on the face.
    """
    if not (A.among | B.among) & LINES:
        return FAR
    first, second = slots.rows[0], slots.rows[1]
    axis = select(first.a_line + _if_capsule(A) > 0.5, A.X.R.column(2), B.X.R.column(2))
    line = first.a_line + first.b_line + _if_capsule(A) + _if_capsule(B) > 0.5
    slopes = [_slope(A, B, row, first.n) for row in (first, second)]
    two = line & (first.patch < 1.5) & (second.phi < 0.5 * FAR) & (abs(slopes[0] - slopes[1]) > SLOPE)
    return select(two, 0.5 * abs(dot(axis, first.n)) * norm(second.p - first.p), FAR)


def _slope(A: Solid, B: Solid, row: Row, n: Vec3) -> Any:
    """Cotangent of the angle between two edges that cross at a point of a patch; zero if none do."""
    of_a, of_b, crossing = crossing_edges(A, B, row)
    sine = dot(cross(of_a, of_b), n)
    there = crossing & (abs(sine) > DISTINCT)
    return select(there, dot(of_a, of_b) / select(there, sine, 1.0), 0.0)


def _if_capsule(s: Solid) -> Any:
    """Return 1 for a capsule."""
    none: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
    return s.by_kind(none | {CAPSULE: lambda: 1.0})


def convex_margin(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    """Smallest distance, m, to a change of contact features over all contact points of a pair of convex solids."""
    row, record, within = slots.rows[0], slots.patch_record[0], near + A.radius + B.radius
    margin = carry(record.margin)
    alone = row.patch < 0.5
    for _ in when_any(alone):
        margin.value = select(alone, minimum(margin.value, witness_margin(A, B, row)), margin.value)
    for _ in when_any(row.patch > 0.5):
        clipped = ClippedPolygon(slots.clipped, PolygonPair(slots.corners, slots.blocks))
        corners = minimum(
            crossing_margin(clipped.polygons, record, within), quad_margin(clipped, slots.order, record, within)
        )
        corners = minimum(corners, _level_margin(A, B, slots))
        margin.value = select(alone, margin.value, minimum(margin.value, corners))
    return margin.value
