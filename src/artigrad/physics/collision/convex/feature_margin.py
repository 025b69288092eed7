"""How far shapes are from where other features of theirs touch: the room of a contact, in metres.

There gradients are those of one side. A room is exact, or a bound that goes to zero with it, for small motions of the surfaces.
Where a feature of a solid is named by the point `at` that touches and the normal l out of it, two numbers go with every
neighbour: how far `at` is from the border that it has with it, and how much lower the neighbour lies along l. One of them is
zero; where the other one is too, the neighbour takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Row, Table, carry, clamp, maximum, minimum, select, sqrt, to_real, when_any
from ....model.model import BOX, CAPSULE, CYLINDER, POINTS
from ...spatial import Vec3, cross, norm
from ..gap import FAR, least_of
from .clip import Area
from .contact_polygon import Rings
from .contact_record import Slots
from .solids import SOLIDS, Solid

SMALL = 1e-30
DISTINCT = 1e-6  # m, corners of an area that are not one
LINES = frozenset({CAPSULE, CYLINDER})
ASLANT = 0.5  # of a normal along the axis of a cylinder, below which its side touches


def length(x: Any, y: Any, z: Any = 0.0) -> Any:
    return sqrt(maximum(x * x + y * y + z * z, SMALL))


def beside(p: Vec3, a: Vec3, b: Vec3, side: Any, near: Any) -> Any:
    """How far a corner p is from an edge a, b in the projection, or how far they are from a gap of `near` if that is more.
    side: 1 where the edge is above the corner."""
    d, x, y = b - a, p.x - a.x, p.y - a.y
    t = clamp((x * d.x + y * d.y) / maximum(d.x * d.x + d.y * d.y, SMALL), 0.0, 1.0)
    return maximum(length(x - d.x * t, y - d.y * t), (a.z + d.z * t - p.z) * side - near)


# -- the nearest points of two solids ----------------------------------------------------------------------------------------
def held_room(s: Solid, at: Vec3, l: Vec3, flat: Any, numbers: Vec3) -> Any:
    """Of a point of the core that is nearest to another solid, l the normal out of it, all in its own frame. flat, numbers: of
    the feature of a hull."""
    z = s.size

    def along(x: Any, lx: Any, half: Any) -> Any:
        return maximum(half - abs(x), 2.0 * half * abs(lx))

    def cylinder() -> Any:
        across = maximum(z.x - length(at.x, at.y), 2.0 * z.x * length(l.x, l.y))
        return minimum(along(at.z, l.z, z.y), across)

    smooth: dict[int, Callable[[], Any]] = {k: lambda: FAR for k in SOLIDS}
    corners = {
        CAPSULE: lambda: along(at.z, l.z, z.y),
        CYLINDER: cylinder,
        BOX: lambda: least_of(*at.map(along, l, z).leaves()),
        POINTS: lambda: s.hull.room(at, l, flat, numbers),
    }
    return s.by_kind(smooth | corners)


def witness_room(A: Solid, B: Solid, row: Row) -> Any:
    """To where another feature of either holds the nearest points of two solids. Cores that overlap by more than it is to the
    border of what touches may be as near to each other on another side  (theory 6.12)."""
    one = held_room(A, A.to_own(row.a), A.X.R.T @ row.n, row.a_flat, row.a_numbers)
    other = held_room(B, B.to_own(row.b), -(B.X.R.T @ row.n), row.b_flat, row.b_numbers)
    return minimum(minimum(one, other) - maximum(-row.g, 0.0), _lines_room(A, B, row))


def _lines_room(A: Solid, B: Solid, row: Row) -> Any:
    """Of two lines of capsules or cylinders that touch between their ends: to where they are parallel, and any tilt leads the
    nearest points to an end."""
    if not (A.among & LINES and B.among & LINES):
        return FAR
    halves = _half_line(A, A.to_own(row.a), A.X.R.T @ row.n), _half_line(B, B.to_own(row.b), B.X.R.T @ row.n)
    apart = norm(cross(A.X.R.column(2), B.X.R.column(2)))
    return select(minimum(*halves) > 0.0, apart * minimum(*halves), FAR)


def _half_line(s: Solid, at: Vec3, l: Vec3) -> Any:
    """Half the length of the line of a capsule or cylinder, zero where something else of it touches."""
    none: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}

    def inside() -> Any:
        return select(abs(at.z) < s.size.y, s.size.y, 0.0)

    return s.by_kind(none | {CAPSULE: inside, CYLINDER: lambda: select(abs(l.z) < ASLANT, inside(), 0.0)})


# -- the area that two solids share ------------------------------------------------------------------------------------------
def rings_room(rings: Rings, made: Row, near: Any) -> Any:
    """To where a corner of one ring lies over an edge of the other, at gaps below `near`."""
    rows, second, room = rings.rows, rings.size, carry(FAR + 0.0 * made.small)
    for k in rings.below(made.small):
        p, q = rows[k].at, rows[k + 1].at
        for j in rings.below(made.large):
            a, b = rows[second + j].at, rows[second + j + 1].at
            there = (to_real(k) < made.small) & (to_real(j) < made.large)
            found = minimum(beside(p, a, b, made.side, near), beside(a, p, q, -made.side, near))
            room.value = minimum(room.value, select(there, found, FAR))
    return room.value


def four_room(polygon: Area, order: Table, made: Row, near: Any) -> Any:
    """To where others of the corners of an area are the four that are kept: one more comes nearer than `near`, or the area
    between others is larger."""
    room = carry(FAR + 0.0 * made.many)
    choice = (made.many > 4.5) | (made.small < 2.5)
    for _ in when_any(choice):
        for k in polygon.below(made.many):
            v = polygon.rows[k].at
            off = abs((made.plane.height(v.x, v.y) - v.z) * made.side - near)
            room.value = minimum(room.value, select((to_real(k) < made.many) & choice, off, FAR))
    for _ in when_any(made.count > 4.5):
        numbers = made.four.leaves()[:4]
        kept = [(polygon.corner(k), polygon.kind(made.many, k)) for k in numbers]
        for k in polygon.below(made.count):
            number = order[k].at.number
            new = polygon.corner(number), polygon.kind(made.many, number)
            chosen = least_of(*(abs(number - x) for x in numbers)) < 0.5
            for j in range(4):
                off = _gain(kept[j], new, (kept[j - 3], kept[j - 1]))
                counts = (select(chosen, 0.0, 1.0) > 0.5) & (to_real(k) < made.count) & (made.count > 4.5)
                room.value = minimum(room.value, select(counts, off, FAR))
    return room.value


def _gain(old: tuple[Any, Any], new: tuple[Any, Any], ends: tuple[tuple[Any, Any], ...]) -> Any:
    """By how much one corner of an area is further from the diagonal between two others than another; (corner, kind) of each.
    Corners of one ring move together, and two at one place are one."""
    (p, kind), (q, _), ((a, _), (b, _)) = old, new, ends
    x, y, u, v = q.x - p.x, q.y - p.y, b.x - a.x, b.y - a.y
    together = abs(kind - 1.0) > 0.5
    for _, other in (new, *ends):
        together = together & (abs(other - kind) < 0.5)
    return select(together | (length(x, y) < DISTINCT), FAR, abs(x * v - y * u) / length(u, v))


def convex_room(A: Solid, B: Solid, near: Any, slots: Slots) -> Any:
    """Of all points of two solids."""
    row, made, within = slots.rows[0], slots.made[0], near + A.radius + B.radius
    room = carry(made.room)
    alone = row.patch < 0.5
    for _ in when_any(alone):
        room.value = select(alone, minimum(room.value, witness_room(A, B, row)), room.value)
    for _ in when_any(row.patch > 0.5):
        polygon = Area(slots.polygon, Rings(slots.corners, slots.blocks))
        corners = minimum(rings_room(polygon.rings, made, within), four_room(polygon, slots.order, made, within))
        room.value = select(alone, room.value, minimum(room.value, corners))
    return room.value
