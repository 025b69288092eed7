"""Height field and convex solid: a prism under each triangle of the grid, and its nearest points to the solid  (theory
6.11).

Heights are given at the corners of cells. A cell is two triangles that share the diagonal from its first corner; a
prism extends from a triangle down to the base. A pair has a window of as many cells as the solid can cover
(`model/height_fields.py`); its position differs between SIMD lanes, so heights are gathered. Prisms outside the solid's
bounding box are skipped. Two adjacent prisms may both touch, each with its own normal, as in MuJoCo. At a point of a level
part of the field that is exactly on the border of several triangles, their features are decided together, as after one
small displacement of the solid: one touches with its face, the others with edges or a vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....compiler import Layout, Reals, Row, floor, maximum, minimum, select, sqrt, target, when_any
from ....model.model import POINTS
from ...spatial import Vec3, cross, dot
from ..contact_geometry import FAR, ZERO, ContactGeometry, PairBars, Pose, least_of
from .contact_polygon import flat2
from .contact_record import CornerBars, Slots
from .convex import find_contact, put_witness, witness_corner_bars, witness_vjp
from .feature_margin import witness_margin
from .hull_tables import Corner
from .solids import Solid
from .witness import Facet

# First cell of the window, and the solid's bounding box: x and y in cells, z in m, in the frame of the field.
WINDOW = Layout(row=float, col=float, low=Vec3, high=Vec3)
BASE = {"f64": 1e-9, "f32": 1e-5}  # m, distance within which a vertex is one of the base
FLAT = 1e-24  # m^2, squared length below which a direction is undefined
ASIDE = {"f64": 1e-9, "f32": 1e-6}  # m, displacement that decides between triangles
LEVEL = {
    "f64": 1e-9,
    "f32": 1e-5,
}  # angle between the normal of a contact and that of a triangle below which they are one


class Prism(NamedTuple):
    """Prism between a triangle and the base."""

    top: tuple[Vec3, ...]
    base: Any

    def furthest(self, d: Vec3) -> Corner:
        """Return the vertex furthest along d; vertices of prisms have no index."""
        best, at = -1e30, ZERO
        for p in self.top:
            corner = Vec3(p.x, p.y, select(d.z < 0.0, self.base, p.z))
            height = dot(corner, d)
            more = height > best
            best, at = select(more, height, best), select(more, corner, at)
        return Corner(at, 0.0)

    def neighbors(self, p: Vec3, _number: Any) -> Iterator[tuple[Corner, Any]]:
        """Yield the vertices that share a face with a vertex, each with its validity."""
        for at in self.top:
            for height in (at.z, self.base):
                other = Corner(Vec3(at.x, at.y, height), 0.0)
                yield other, dot(other.p - p, other.p - p) > FLAT

    def margin(self, at: Vec3, l: Vec3, flat: Any, numbers: Vec3) -> Any:
        """Distance of a point `at` with outward normal l to another feature.

        For each upper vertex it is the larger of the distance to the opposite side and of the height below; likewise for
        the base.
        """
        p, q, s = self.top
        margin = maximum(abs(at.z - self.base), abs(l.z) * (least_of(p.z, q.z, s.z) - self.base))
        for a, b, c in ((p, q, s), (q, s, p), (s, p, q)):
            off = abs((c.x - b.x) * (at.y - b.y) - (c.y - b.y) * (at.x - b.x))
            side = off / sqrt(maximum((c.x - b.x) * (c.x - b.x) + (c.y - b.y) * (c.y - b.y), FLAT))
            margin = minimum(margin, maximum(side, dot(l, at - a)))
        return margin


class Grid(NamedTuple):
    """Placed height field. size: half extents along x and y, depth of the base. rows, cols: numbers of heights; n: their
    total."""

    X: Pose
    size: Vec3
    rows: Any
    cols: Any
    heights: Reals
    n: Any

    def solid(self, top: tuple[Vec3, ...] = ()) -> Solid:
        """Return the prism under a triangle as a solid."""
        if not top:  # for the adjoint, which stores its vertices
            return Solid(POINTS, frozenset({POINTS}), ZERO, self.X, ZERO, ZERO, ZERO, None)
        base = -self.size.z
        low, high = top[0], top[0]
        for p in top[1:]:
            low, high = low.map(minimum, p), high.map(maximum, p)
        low = Vec3(low.x, low.y, base)
        center, extent = (low + high) * 0.5, (high - low) * 0.5
        middle = (top[0] + top[1] + top[2]) * (1.0 / 3.0)
        inner = Vec3(middle.x, middle.y, 0.5 * (middle.z + base))
        return Solid(POINTS, frozenset({POINTS}), ZERO, self.X, center, extent, inner, Prism(top, base))

    def number(self, row: Any, col: Any) -> Any:
        """Index of a height."""
        return row * self.cols + col

    def corner(self, row: Any, col: Any) -> Vec3:
        """Position of a grid point in the frame of the field."""
        x = self.size.x * (2.0 * col / (self.cols - 1.0) - 1.0)
        y = self.size.y * (2.0 * row / (self.rows - 1.0) - 1.0)
        return Vec3(x, y, self.heights.gather(self.number(row, col), self.n))

    def top(self, row: Any, col: Any, second: Any) -> tuple[Vec3, ...]:
        """Return the vertices of one of the two triangles of a cell."""
        return self.corner(row, col), self.corner(row + 1.0, col + 1.0), self.corner(row + 1.0 - second, col + second)

    def cells(self, p: Vec3) -> tuple[Any, Any]:
        """Return (column, row) of a position in the frame of the field, in cells."""
        col = (p.x / self.size.x + 1.0) * 0.5 * (self.cols - 1.0)
        return col, (p.y / self.size.y + 1.0) * 0.5 * (self.rows - 1.0)


def find_window(A: Grid | Solid, B: Grid | Solid, near: Any, slots: Slots) -> None:
    """Compute the window of cells of a pair."""
    field, solid = (A, B) if isinstance(A, Grid) else (B, A)
    assert isinstance(field, Grid) and isinstance(solid, Solid)
    R, r = field.X.R, solid.radius
    center = R.T @ (solid.to_world(solid.center) - field.X.r)
    half = (R.T @ solid.X.R).map(abs) @ solid.extent + Vec3(r, r, r)
    low, high = center - half, center + half
    (left, back), (right, front) = field.cells(low), field.cells(high)
    row = slots.window[0]
    row.low, row.high = Vec3(left, back, low.z), Vec3(right, front, high.z)
    row.col, row.row = floor(maximum(left, 0.0)), floor(maximum(back, 0.0))


def collide_prism(A: Grid | Solid, B: Grid | Solid, at: Vec3, near: Any, slots: Slots) -> None:
    """Compute the nearest points of one prism and the solid into the first row.

    at: row and column of the cell in the window, and which of its two triangles.
    """
    field = A if isinstance(A, Grid) else B
    assert isinstance(field, Grid)
    row, place = slots.rows[0], slots.window[0]
    r, c = place.row + at.x, place.col + at.y
    row.phi = FAR
    under = (c < field.cols - 1.5) & (c < place.high.x) & (c + 1.0 > place.low.x)
    under = under & (r < field.rows - 1.5) & (r < place.high.y) & (r + 1.0 > place.low.y)
    for _ in when_any(under):
        top = field.top(r, c, at.z)
        highest = maximum(maximum(top[0].z, top[1].z), top[2].z)
        there = under & (highest + near > place.low.z)
        for _ in when_any(there):
            _collide(A, B, field.solid(top), top, (near, there), row)


def prism_margin(A: Grid | Solid, B: Grid | Solid, at: Vec3, near: Any, slots: Slots) -> Any:
    """Feature margin of one prism and the solid, after `collide_prism`."""
    field, row, place = A if isinstance(A, Grid) else B, slots.rows[0], slots.window[0]
    assert isinstance(field, Grid)
    prism = field.solid(field.top(place.row + at.x, place.col + at.y, at.z))
    one, other = prism if isinstance(A, Grid) else A, B if isinstance(A, Grid) else prism
    assert isinstance(one, Solid) and isinstance(other, Solid)
    return witness_margin(one, other, row)


def _collide(
    A: Grid | Solid, B: Grid | Solid, prism: Solid, top: tuple[Vec3, ...], ask: tuple[Any, Any], row: Row
) -> None:
    """Nearest points of a prism and the solid."""
    near, there = ask
    one, other = prism if isinstance(A, Grid) else A, B if isinstance(A, Grid) else prism
    assert isinstance(one, Solid) and isinstance(other, Solid)
    solid = other if isinstance(A, Grid) else one
    above, _ = _separation(prism, solid, _up(top))
    below = there & (above - solid.radius < near)
    for _ in when_any(below):  # most of the prisms in a window are under the solid and out of reach
        distance, axis = _widest(prism, top, solid)
        by_axes = below & (distance - solid.radius < near)
        for _ in when_any(by_axes):
            wanted = by_axes, maximum(near + solid.radius, 0.0)
            fa, fb, n, touch = find_contact(one, other, axis if isinstance(A, Grid) else -axis, wanted)
            for _ in when_any(touch):
                first = _on_top(prism, fa, top, n, fb) if isinstance(A, Grid) else fa
                second = fb if isinstance(A, Grid) else _on_top(prism, fb, top, -n, fa)
                put_witness(row, one, other, first, second, n)
                row.phi = select(touch, row.phi, FAR)


def _on_top(prism: Solid, f: Facet, top: tuple[Vec3, ...], out: Vec3, other: Facet) -> Facet:
    """Feature of the upper triangle of a prism that is nearest after a small displacement, if a point touches its plane.

    Args:
        prism: Prism.
        f: Touching feature.
        top: Upper triangle.
        out: Contact normal out of the prism, common axes.
        other: Touching feature of the other solid.
    """
    up, kind = _up(top), target().dtype
    apart, aside = prism.X.R.T @ out - up / sqrt(dot(up, up)), ASIDE[kind]
    level = (dot(apart, apart) < LEVEL[kind] * LEVEL[kind]) & (other.k < 0.5)
    x, y = f.at.x + 0.85 * aside, f.at.y + 0.53 * aside
    p, q, s = top
    inside, edge, corner, least, found = level, f, f, 1e30 + 0.0 * x, 0.0 * x
    for a, b, c in ((p, q, s), (q, s, p), (s, p, q)):
        way = ((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)) > 0.0
        side = (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x)
        beyond = select(way, side, -side) < 0.0
        share = ((x - a.x) * (b.x - a.x) + (y - a.y) * (b.y - a.y)) / maximum(flat2(b - a), FLAT)
        inside = inside & (select(beyond, 1.0, 0.0) < 0.5)
        on_edge = beyond & (share > 0.0) & (share < 1.0)
        edge = select(on_edge, Facet(f.at, a, b, b, 1.0, 0.0, ZERO), edge)
        far = (x - a.x) * (x - a.x) + (y - a.y) * (y - a.y)
        corner = select(far < least, Facet(f.at, a, a, a, 0.0, 0.0, ZERO), corner)
        least = minimum(least, far)
        found = maximum(found, select(on_edge, 1.0, 0.0))
    border = select(found > 0.5, edge, corner)
    return select(level, select(inside, Facet(f.at, p, q, s, 2.0, 0.0, ZERO), border), f)


def _up(top: tuple[Vec3, ...]) -> Vec3:
    """Upward normal of a triangle, not of unit length."""
    p, q, s = top
    n = cross(q - p, s - p)
    return n * select(n.z < 0.0, -1.0, 1.0)


def _separation(prism: Solid, solid: Solid, axis: Vec3) -> tuple[Any, Vec3]:
    """Distance of both along an axis in the frame of the prism, and the unit axis in the world; -FAR without an axis."""
    square = dot(axis, axis)
    n = prism.X.R @ (axis / sqrt(maximum(square, FLAT)))
    return select(square > FLAT, dot(n, solid.support(-n) - prism.support(n)), -FAR), n


def _widest(prism: Solid, top: tuple[Vec3, ...], solid: Solid) -> tuple[Any, Vec3]:
    """Return (distance, axis from the prism to the solid) along the best separating axis.

    Candidates are the prism's faces, the faces of the solid's bounding box, and products of an edge of each. For a box
    these are all separating axes.
    """
    p, q, s = top
    towards = prism.to_own(solid.to_world(solid.center)) - (p + q + s) * (1.0 / 3.0)
    own = [prism.X.R.T @ solid.X.R.column(k) for k in range(3)]
    up, edges = Vec3(0.0, 0.0, 1.0), (q - p, s - p, s - q)
    walls = [cross(e, up) for e in edges]
    outwards = [
        w * select(dot(w, third - a) > 0.0, -1.0, 1.0) for w, third, a in zip(walls, (s, q, p), (p, p, q), strict=True)
    ]
    either = [*own, *(cross(e, axis) for e in (*edges, up) for axis in own)]
    axes = [_up(top), *outwards, -up, *(n * select(dot(n, towards) < 0.0, -1.0, 1.0) for n in either)]
    best, found = -FAR, up
    for axis in axes:
        distance, n = _separation(prism, solid, axis)
        more = distance > best
        best, found = select(more, distance, best), select(more, n, found)
    return best, found


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def _as_solids(A: Grid | Solid, B: Grid | Solid) -> tuple[Solid, Solid]:
    """Both shapes as solids, a field as a prism without vertices."""
    return A.solid() if isinstance(A, Grid) else A, B.solid() if isinstance(B, Grid) else B


def collide_prism_vjp(A: Grid | Solid, B: Grid | Solid, row: Row, y_bar: ContactGeometry) -> PairBars:
    """Cotangents of both poses and the size of the solid; those of the field follow from `prism_corner_bars`."""
    return witness_vjp(*_as_solids(A, B), row, y_bar)


def prism_corner_bars(
    A: Grid | Solid, B: Grid | Solid, row: Row, y_bar: ContactGeometry
) -> tuple[CornerBars, CornerBars]:
    """Cotangents of the vertices of the touching features."""
    return witness_corner_bars(*_as_solids(A, B), row, y_bar)


def field_bars(field: Grid, corners: CornerBars, bars: Reals) -> Vec3:
    """Add the cotangents of prism vertices to those of heights; return the cotangent of the field's size."""
    size, total = field.size, ZERO
    for p, bar in zip(corners.at, corners.bar, strict=True):
        above = p.z > BASE[target().dtype] - size.z
        col, row = (floor(x + 0.5) for x in field.cells(p))
        bars.scatter_add(field.number(row, col), field.n, select(above, bar.z, 0.0))
        total = total + Vec3(bar.x * p.x / size.x, bar.y * p.y / size.y, select(above, 0.0, -bar.z))
    return total
