"""Connectivity of convex hulls inside a kernel: neighbors of a vertex, faces at a vertex, vertices of a face.

The queried vertex differs between SIMD lanes, so all lists are in one array of reals and are gathered. List k begins at the
position stored in entry k of its index, and ends at that in entry k + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....compiler import (
    INT,
    INTS,
    SHARED,
    ArgumentKind,
    Linear,
    Reals,
    carry,
    floor,
    loop,
    maximum,
    minimum,
    select,
    sqrt,
    switch,
    to_real,
    when_any,
)
from ....model.hulls import Hull
from ....model.model import Model
from ...spatial import Vec3, cross, dot, norm

BEYOND = 1e3  # m, upper bound of all distances
FEW = 80  # number of vertices up to which all are tested, which is faster than a lookup of the starting vertex
SCANNED, CLIMBED = -1, -2  # search methods that a model needs, listed beside its kinds of solids
WAYS = frozenset({SCANNED, CLIMBED})
CELLS = 16  # cells along an edge of the cube of directions
BLOCK = 8  # entries of a block of a list
END = 16  # vertices of a cylinder's end, as in MuJoCo
TINY = 1e-30  # m^4, squared area below which a face is degenerate
LARGEST = 255  # largest number of polygon vertices of a face; larger faces are sampled
# iterations of hill climbing: TURNS ** LEVELS, far more than the vertices between a start and the furthest
TURNS, LEVELS = 8, 3

# Per shape: positions of the starting vertices and of the indices of neighbors, of faces at a vertex and of vertices of a
# face; blocks of the longest list of each; its first face; whether it has more than FEW vertices. Global: blocks of a
# polygon.
HULLS: dict[str, ArgumentKind] = {
    "hull": SHARED,
    "hull_size": INT,
    "hull_ring": INT,
    **dict.fromkeys(("hull_starts", "hull_edges", "hull_around", "hull_faces", "hull_large"), INTS),
    **dict.fromkeys(("hull_degree", "hull_most_around", "hull_most_corners", "hull_first_face"), INTS),
}


def hull_arguments(model: Model, dtype: np.dtype) -> dict[str, Any]:
    """Return the kernel arguments of a model."""
    reals, face = list[float](), 0
    columns: dict[str, list[int]] = {k: [] for k, kind in HULLS.items() if kind is INTS}
    for (first, count), hull in zip(model.shapes.vertices, model.shapes.hulls, strict=True):
        row, more = tables_of(model.params.vertex[first : first + count], hull, len(reals))
        for name, value in (row | {"hull_first_face": face}).items():
            columns[name].append(value)
        reals += more
        face += len(hull.faces)
    columns["hull_first_face"].append(face)
    array, ring = np.array([*reals, 0.0], dtype), ring_blocks(model)
    columned = {k: np.array([*x, 0], np.int32) for k, x in columns.items()}
    return {"hull": array, "hull_size": len(array), "hull_ring": ring} | columned


def ring_blocks(model: Model) -> int:
    """Number of blocks of a polygon that fits any face of a model's hulls and the end of a cylinder, with its first vertex
    repeated."""
    corners = max((len(f) for hull in model.shapes.hulls for f in hull.faces), default=0)
    return -(-(min(max(corners, END), LARGEST) + 1) // BLOCK)


def tables_of(points: np.ndarray, hull: Hull, at: int = 0) -> tuple[dict[str, int], list[float]]:
    """Return the integers of one hull and its lists, for position `at` of the array."""
    large, around = len(points) > FEW, _around(hull, len(points))
    row, reals = {"hull_large": int(large), "hull_starts": at}, _starts(points, hull) if large else []
    for index, longest, lists in (
        ("hull_edges", "hull_degree", _neighbor_lists(hull, around)),
        ("hull_around", "hull_most_around", around),
        ("hull_faces", "hull_most_corners", hull.faces),
    ):
        row |= {index: at + len(reals), longest: -(-max(map(len, lists), default=0) // BLOCK)}
        reals += _indexed(lists, at + len(reals))
    return row, reals


def ways_of(model: Model) -> frozenset[int]:
    """Return the search methods for furthest vertices that the hulls of a model need."""
    return frozenset(CLIMBED if count > FEW else SCANNED for _, count in model.shapes.vertices if count)


def spanning_corners(model: Model) -> list[int]:
    """Return three vertices of each face of all hulls that span a large triangle, as indices among all vertices."""
    out = list[int]()
    for (first, count), hull in zip(model.shapes.vertices, model.shapes.hulls, strict=True):
        points = model.params.vertex[first : first + count]
        lengths, three = np.array([len(ring) for ring in hull.faces]), np.zeros((len(hull.faces), 3), int)
        for length in np.unique(lengths):  # all faces with the same number of vertices at once
            alike = np.flatnonzero(lengths == length)
            rings = np.array([hull.faces[k] for k in alike])
            from_first = points[rings] - points[rings[:, :1]]
            far = np.argmax(np.linalg.norm(from_first, axis=2), axis=1)
            along = np.take_along_axis(from_first, far[:, None, None], axis=1)
            wide = np.argmax(np.linalg.norm(np.cross(from_first, along), axis=2), axis=1)
            chosen = np.stack([0 * far, np.minimum(far, wide), np.maximum(far, wide)], axis=1)
            three[alike] = first + np.take_along_axis(rings, chosen, axis=1)
        out += three.ravel().tolist()
    return out


def _around(hull: Hull, count: int) -> list[list[int]]:
    """Return the faces at each vertex."""
    out: list[list[int]] = [[] for _ in range(count)]
    for f, ring in enumerate(hull.faces):
        for v in ring:
            out[v].append(f)
    return out


def _neighbor_lists(hull: Hull, around: list[list[int]]) -> list[list[int]]:
    """Return the neighbors of each vertex: along edges in MuJoCo's order, then along lines inside faces."""
    out = list[list[int]]()
    for v, (near, faces) in enumerate(zip(hull.neighbors, around, strict=True)):
        edges = [ring[ring.index(v) - 1] for ring in (hull.faces[f] for f in faces)]
        out.append(list(dict.fromkeys([*edges, *near])))
    return out


def _indexed(lists: Sequence[Sequence[int]], at: int) -> list[float]:
    """Return an index followed by its lists, for position `at` of the array."""
    starts = np.cumsum([at + len(lists) + 1, *map(len, lists)])
    return [*starts.tolist(), *(k for own in lists for k in own)]


def _starts(points: np.ndarray, hull: Hull) -> list[float]:
    """Return the furthest vertex along the center of each cell of the cube of directions (six faces of CELLS x CELLS)."""
    corners = np.flatnonzero([len(x) > 0 for x in hull.neighbors])
    t = (np.arange(CELLS) + 0.5) * (2 / CELLS) - 1
    u, v = (x.ravel() for x in np.meshgrid(t, t, indexing="ij"))
    one, faces = np.ones_like(u), []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            faces.append(np.roll(np.stack([sign * one, u, v]), axis, axis=0))
    return corners[np.argmax(points[corners] @ np.concatenate(faces, 1), axis=0)].tolist()


class Corner(Linear):
    """Vertex and its index in the hull (zero if it has none)."""

    p: Vec3
    number: float


class PlacedHull(NamedTuple):
    """Hull of one shape: its lists, vertices and face normals."""

    table: Reals
    size: Any
    starts: Any
    edges: Any
    degree: Any
    around: Any
    most_around: Any
    faces: Any
    most_corners: Any
    large: Any
    ways: frozenset[int]
    vertices: Reals
    count: Any
    normals: Reals
    face_count: Any

    def corner(self, number: Any) -> Corner:
        return Corner(self.vertices.gather_row(number, self.count, Vec3), number)

    def span(self, index: Any, of: Any) -> tuple[Any, Any]:
        """Return begin and end of a list."""
        first, end = (self.table.gather(to_real(index) + of + k, self.size) for k in (0.0, 1.0))
        return first, end

    def each(self, index: Any, longest: Any, of: Any) -> Iterator[tuple[Any, Any, Any]]:
        """Yield (entry, validity, position) of a list, as often as the longest list of any SIMD lane requires.

        Entries beyond all lists are skipped a block at a time.
        """
        first, end = self.span(index, of)
        for block in loop(longest):
            for _ in when_any(first + to_real(block * BLOCK) < end):
                for j in loop(BLOCK):
                    place = to_real(block * BLOCK + j)
                    at = first + place
                    there = at < end
                    for _ in when_any(there):
                        yield self.table.gather(at, self.size), there, place

    def neighbors(self, _p: Vec3, number: Any) -> Iterator[tuple[Corner, Any]]:
        """Yield the vertices adjacent to a vertex, each with its validity."""
        for other, there, _k in self.each(self.edges, self.degree, number):
            yield self.corner(other), there

    def furthest(self, d: Vec3) -> Corner:
        """Return the vertex furthest along d."""
        ways = {0: lambda: self._scan(d), 1: lambda: self._climb(d)}
        known = {k: ways[k] for k, way in enumerate((SCANNED, CLIMBED)) if way in self.ways}
        return switch(self.large, known)

    def _scan(self, d: Vec3) -> Corner:
        """Find the furthest vertex by testing all."""
        best = carry((-1e30, 0.0))
        for k in loop(self.count):
            top, number = best.value
            height = dot(self.vertices.struct(k * 3, Vec3), d)
            more = height > top
            best.value = (select(more, height, top), select(more, to_real(k), number))
        return self.corner(best.value[1])

    def _climb(self, d: Vec3) -> Corner:
        """Find the furthest vertex by hill climbing from a nearby start. SIMD lanes that have arrived keep their vertex."""
        begin = self.table.gather(to_real(self.starts) + _cell(d), self.size)
        state, live = carry((begin, dot(self.corner(begin).p, d))), carry(1.0 + 0.0 * d.x)
        for _ in while_any(live):
            self._higher(d, state, live)
        return self.corner(state.value[0])

    def _higher(self, d: Vec3, state: carry, live: carry) -> None:
        """Move to the highest neighbor, if it is higher."""
        now, before = state.value
        for number, there, _k in self.each(self.edges, self.degree, now):
            best, top = state.value
            height = dot(self.corner(number).p, d)
            more = there & (height > top)
            state.value = (select(more, number, best), select(more, height, top))
        live.value = select(state.value[1] > before, 1.0, 0.0)

    def normal(self, face: Any) -> Vec3:
        return self.normals.gather_row(face, self.face_count, Vec3)

    def normal_vjp(self, face: Any, n_bar: Vec3, add: Callable[[Any, Vec3], None]) -> None:
        """Adjoint of the normal of a face.

            n = a/|a|,  a = sum of p x p_next around a face:  p_bar = (p_next - p_before) x (n_bar - n (n . n_bar))/|a|

        add: called with the index of a vertex and its cotangent.
        """
        first, end = self.span(self.faces, face)

        def ring() -> Iterator[tuple[Any, Any, Vec3, Vec3, Vec3]]:
            for number, there, place in self.each(self.faces, self.most_corners, face):
                at = first + place
                after, before = select(at < end - 1.5, at + 1.0, first), select(place > 0.5, at - 1.0, end - 1.0)
                near = [self.corner(self.table.gather(k, self.size)).p for k in (before, after)]
                yield number, there, self.corner(number).p, near[0], near[1]

        area = carry(Vec3.zero())
        for _number, there, p, _before, after in ring():
            area.value = area.value + select(there, cross(p, after), Vec3.zero())
        length = sqrt(maximum(dot(area.value, area.value), TINY))
        n = area.value / length
        z = (n_bar - n * dot(n, n_bar)) / length
        for number, there, _p, before, after in ring():
            add(number, select(there, cross(after - before, z), Vec3.zero()))

    def face_towards(self, number: Any, d: Vec3) -> tuple[Any, Any, Any]:
        """Return the face at a vertex most aligned with d, its cosine, and that of the next; -2 if there is none."""
        best = carry((0.0 * d.x, -2.0 + 0.0 * d.x, -2.0 + 0.0 * d.x))
        for face, there, _k in self.each(self.around, self.most_around, number):
            now, most, second = best.value
            cosine = select(there, dot(self.normal(face), d), -2.0)
            more = cosine > most
            best.value = (
                select(more, face, now),
                select(more, cosine, most),
                maximum(second, minimum(most, cosine)),
            )
        return best.value

    def faces_at_edge(self, number: Any, way: Vec3, active: Any) -> tuple[Any, Any]:
        """Return the two faces of the edge from a vertex along `way`, lower index first, where `active`.

        These are the faces at the vertex that are most nearly parallel to the edge.
        """
        best = carry(((0.0 * way.x, BEYOND), (0.0 * way.x, BEYOND)))
        for _ in when_any(active):
            for face, there, _k in self.each(self.around, self.most_around, number):
                (one, least), (two, second) = best.value
                off = select(there, abs(dot(self.normal(face), way)), BEYOND)
                first, next_ = off < least, off < second
                best.value = (
                    (select(first, face, one), minimum(off, least)),
                    (select(first, one, select(next_, face, two)), select(first, least, minimum(off, second))),
                )
        (one, _), (two, _) = best.value
        return minimum(one, two), maximum(one, two)

    def first_face_along(
        self, number: Any, d: Vec3, most: float, priority: tuple[Vec3, float], active: Any
    ) -> tuple[Any, Any]:
        """Return the first face at a vertex to which d is parallel with a sine below `most`, and 1 if there is one.

        A face whose normal has a cosine above priority[1] with the direction priority[0] has priority.
        Evaluated where `active`.
        """
        best = carry((0.0 * d.x, 0.0 * d.x))
        for _ in when_any(active):
            for face, there, _k in self.each(self.around, self.most_around, number):
                now, found = best.value
                normal = self.normal(face)
                rank = select(dot(normal, priority[0]) > priority[1], 2.0, 1.0)
                takes = there & (abs(dot(normal, d)) < most) & (found < rank)
                best.value = (select(takes, face, now), select(takes, rank, found))
        face, rank = best.value
        return face, minimum(rank, 1.0)

    def first_level(self, number: Any, n: Vec3, most: float, active: Any) -> tuple[Any, Any, Any]:
        """Return the first neighbor along an edge whose sine to the plane across n is below `most`.

        Returns:
            Vertex index, 1 if there is one, and the smallest distance of any sine to `most`. Evaluated where `active`.
        """
        best = carry((number, 0.0 * n.x, BEYOND + 0.0 * n.x))
        for _ in when_any(active):
            begin, end = self.span(self.around, number)
            start = self.corner(number).p
            for other, there, place in self.each(self.edges, self.degree, number):
                now, found, off = best.value
                way = self.corner(other).p - start
                slope = abs(dot(way, n)) / sqrt(maximum(dot(way, way), 1e-30))
                counts = there & (place < end - begin)  # edges of faces come first, lines inside faces after them
                takes = counts & (slope < most) & (found < 0.5)
                best.value = (
                    select(takes, other, now),
                    select(takes, 1.0, found),
                    select(counts, minimum(off, abs(slope - most)), off),
                )
        return best.value

    def margin(self, at: Vec3, l: Vec3, flat: Any, numbers: Vec3) -> Any:
        """Distance of a point `at` with outward normal l to another feature.

        At a vertex or an edge: height of the neighbors of the first vertex below it, and distance to the ends. On a face:
        distance to its edges.
        """
        p0, p1, edge, face = self.corner(numbers.x), self.corner(numbers.y), flat > 0.5, flat > 1.5
        margin = carry(select(edge, minimum(norm(at - p0.p), norm(at - p1.p)), BEYOND))
        for number, there, _k in self.each(self.edges, self.degree, p0.number):
            own = edge & (abs(number - p1.number) < 0.5)
            lower = select(own, BEYOND, dot(l, p0.p - self.corner(number).p))
            margin.value = select(there, minimum(margin.value, lower), margin.value)
        for _ in when_any(face):
            found, sides = self.face_towards(p0.number, l)[0], carry(BEYOND + 0.0 * flat)
            first, end = self.span(self.faces, found)
            for number, there, place in self.each(self.faces, self.most_corners, found):
                p, after = self.corner(number).p, select(first + place < end - 1.5, first + place + 1.0, first)
                e = self.corner(self.table.gather(after, self.size)).p - p
                d = cross(at - p, e)
                off = norm(d) / sqrt(maximum(dot(e, e), 1e-30))
                sides.value = select(there, minimum(sides.value, off), sides.value)
            margin.value = select(face, sides.value, margin.value)
        return margin.value


def while_any(live: carry, levels: int = LEVELS) -> Iterator[None]:
    """Repeat while `live` is 1 in any SIMD lane, at most TURNS ** levels times; idle iterations are skipped in blocks."""
    for _ in loop(TURNS):
        for _ in when_any(live.value > 0.5):
            if levels == 1:
                yield
            else:
                yield from while_any(live, levels - 1)


def _cell(d: Vec3) -> Any:
    """Return the cell of the cube of directions that contains d."""
    x, y, z = abs(d.x), abs(d.y), abs(d.z)
    by_z = (z > x) & (z > y)
    by_y = (y > x) & (z <= y)
    along = select(by_z, d.z, select(by_y, d.y, d.x))
    u = select(by_z, d.x, select(by_y, d.z, d.y))
    v = select(by_z, d.y, select(by_y, d.x, d.z))
    face = select(by_z, 4.0, select(by_y, 2.0, 0.0)) + select(along > 0.0, 1.0, 0.0)
    scale = 0.5 * CELLS / maximum(abs(along), 1e-30)

    def place(x: Any) -> Any:
        return minimum(floor(maximum(x * scale + 0.5 * CELLS, 0.0)), CELLS - 1.0)

    return (face * CELLS + place(u)) * CELLS + place(v)
