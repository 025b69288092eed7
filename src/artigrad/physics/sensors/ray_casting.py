"""Intersection of rays with shapes, as MuJoCo defines it, and its derivative.

Each surface is F(p, size) = 0 in the axes of its shape. The distance x along the ray start + x ray has the derivative

    dx = -(n . (d start + x d ray) + F_size . d size + F_heights . d heights) / (n . ray),     n = dF/dp

The choice of the surface part is not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ...compiler import Linear, Reals, carry, floor, loop, maximum, minimum, select, sqrt, to_real, when_any
from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE
from ..spatial import Vec3, cross, dot

NEVER = 1e30  # distance of a ray that meets nothing, m
LEAST = 1e-15


class Hit(Linear):
    """First intersection of a ray with a shape.

    Attributes:
        x: Distance along the ray; NEVER without an intersection.
        n: Gradient of F with respect to the point.
        by_size: Derivatives of F with respect to the sizes.
        node, share: Of a height field, indices of the three heights of the triangle, and their barycentric weights.
    """

    x: float
    n: Vec3
    by_size: Vec3
    node: Vec3
    share: Vec3


def _hit(x: Any, n: Vec3, by_size: Vec3) -> Hit:
    return Hit(x, n, by_size, Vec3.zero(), Vec3.zero())


MISS = _hit(NEVER, Vec3.zero(), Vec3.zero())


def _no_further(hit: Hit, inside: Any) -> Hit:
    """Return the hit where the mask is true, else no hit."""
    return Hit(select(inside, hit.x, NEVER), hit.n, hit.by_size, hit.node, hit.share)


def nearer(a: Hit, b: Hit) -> Hit:
    """Return the nearer of two hits."""
    return select(b.x < a.x, b, a)


def _nearest(hits: Iterable[Hit]) -> Hit:
    best, *others = hits
    for other in others:
        best = nearer(best, other)
    return best


def _roots(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Return the two roots of a x^2 + 2 b x + c, the smaller first; -1 without real roots."""
    root = b * b - a * c
    real = (root >= LEAST) & (a > 0.0)
    width, scale = sqrt(maximum(root, 0.0)), select(a > 0.0, a, 1.0)
    return select(real, (-b - width) / scale, -1.0), select(real, (-b + width) / scale, -1.0)


def _ahead(x: Any) -> Any:
    return select(x >= 0.0, x, NEVER)


def _first(near: Any, far: Any) -> Any:
    return select(near >= 0.0, near, far)


def _at(start: Vec3, ray: Vec3, x: Any) -> Vec3:
    """Return the point at distance x; without a hit, the origin of the ray."""
    return start + ray * select(x < NEVER, x, 0.0)


def _crossing(position: Any, along: Any) -> Any:
    """Return the distance at which a coordinate is zero; -1 where it is constant."""
    changes = abs(along) > LEAST
    return select(changes, -position / select(changes, along, 1.0), -1.0)


AXES = (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0))


def _flat(size: Any, start: Vec3, ray: Vec3, k: int, side: float) -> Hit:
    """Intersect with the infinite plane side p_k = size."""
    x = _crossing(start.leaves()[k] - side * size, ray.leaves()[k])
    return _hit(_ahead(x), AXES[k] * side, AXES[k] * -1.0)


# -- solids --------------------------------------------------------------------------------------------------------------
def _plane(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    """Intersect with a plane from its front, within the rectangle of its half sizes, if these are not zero."""
    front = ray.z < -LEAST
    x = _ahead(select(front, -start.z / select(front, ray.z, 1.0), -1.0))
    p = _at(start, ray, x).map(abs)
    inside = ((size.x <= 0.0) | (p.x <= size.x)) & ((size.y <= 0.0) | (p.y <= size.y))
    return _no_further(_hit(x, AXES[2], Vec3.zero()), inside)


def _ellipsoid(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    """Intersect with the ellipsoid F = sum (p/size)^2 - 1."""
    s, d = start.map(lambda a, b: a / b, size), ray.map(lambda a, b: a / b, size)
    x = _ahead(_first(*_roots(dot(d, d), dot(s, d), dot(s, s) - 1.0)))
    p = _at(start, ray, x)
    n = p.map(lambda a, b: 2.0 * a / (b * b), size)
    return _hit(x, n, p.map(lambda a, b: -2.0 * (a * a) / (b * b * b), size))


def _sphere(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    """Intersect with the sphere F = |p|^2 - radius^2."""
    r = size.x
    x = _ahead(_first(*_roots(dot(ray, ray), dot(start, ray), dot(start, start) - r * r)))
    return _hit(x, _at(start, ray, x) * 2.0, Vec3(-2.0 * r, 0.0, 0.0))


def _wall(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    """Intersect with the side of a tube about z with radius and half length: F = x^2 + y^2 - radius^2."""
    s, d, r = Vec3(start.x, start.y, 0.0), Vec3(ray.x, ray.y, 0.0), size.x
    x = _first(*_roots(dot(d, d), dot(s, d), dot(s, s) - r * r))
    x = select(abs(start.z + x * ray.z) <= size.y, _ahead(x), NEVER)
    p = _at(start, ray, x)
    return _hit(x, Vec3(2.0 * p.x, 2.0 * p.y, 0.0), Vec3(-2.0 * r, 0.0, 0.0))


def _capsule(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    hits, r, half = [_wall(size, start, ray)], size.x, size.y
    for side in (1.0, -1.0):
        center = AXES[2] * (side * half)
        s = start - center
        for x in _roots(dot(ray, ray), dot(s, ray), dot(s, s) - r * r):
            beyond = side * (start.z + x * ray.z) >= half
            found = select(beyond, _ahead(x), NEVER)
            n = (_at(start, ray, found) - center) * 2.0
            hits.append(_hit(found, n, Vec3(-2.0 * r, -side * n.z, 0.0)))
    return _nearest(hits)


def _cylinder(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    hits = [_wall(size, start, ray)]
    for side in (1.0, -1.0):
        cap = _flat(size.y, start, ray, 2, side)
        p = _at(start, ray, cap.x)
        inside = p.x * p.x + p.y * p.y <= size.x * size.x
        hits.append(_no_further(_hit(cap.x, cap.n, Vec3(0.0, -1.0, 0.0)), inside))
    return _nearest(hits)


def _faces(size: Vec3, start: Vec3, ray: Vec3) -> list[Hit]:
    """Yield the faces of a box, in pairs along x, y and z."""
    found, half = [], size.leaves()
    for k in range(3):
        for side in (-1.0, 1.0):
            face = _flat(half[k], start, ray, k, side)
            p = _at(start, ray, face.x).map(abs).leaves()
            i, j = (i for i in range(3) if i != k)
            found.append(_no_further(face, (p[i] <= half[i]) & (p[j] <= half[j])))
    return found


def _box(size: Vec3, start: Vec3, ray: Vec3) -> Hit:
    return _nearest(_faces(size, start, ray))


SOLIDS: dict[int, Callable[[Vec3, Vec3, Vec3], Hit]] = {
    PLANE: _plane,
    SPHERE: _sphere,
    CAPSULE: _capsule,
    ELLIPSOID: _ellipsoid,
    CYLINDER: _cylinder,
    BOX: _box,
}


# -- triangles -----------------------------------------------------------------------------------------------------------
def _triangle(a: Vec3, b: Vec3, c: Vec3, start: Vec3, ray: Vec3) -> tuple[Any, Vec3]:
    """Return the distance of a triangle along a ray, and the barycentric coordinates of the point."""
    e, f, s = b - a, c - a, start - a
    h, g = cross(ray, f), cross(s, e)
    det = dot(e, h)
    some = abs(det) > LEAST
    scale = 1.0 / select(some, det, 1.0)
    u, v, x = dot(s, h) * scale, dot(g, ray) * scale, dot(f, g) * scale
    met = some & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (x >= 0.0)
    return select(met, x, NEVER), Vec3(1.0 - u - v, u, v)


def meet_triangles(corners: Reals, first: Any, end: Any, start: Vec3, ray: Vec3) -> Hit:
    """Intersect a ray with triangles first .. end, nine values each."""
    best = carry(MISS)
    for k in loop(first, end):
        a, b, c = (corners.struct(k * 9 + 3 * j, Vec3) for j in range(3))
        x, _ = _triangle(a, b, c, start, ray)
        best.value = nearer(best.value, _hit(x, cross(b - a, c - a), Vec3.zero()))
    return best.value


# -- height fields -------------------------------------------------------------------------------------------------------
class Field(NamedTuple):
    """Height field: half sizes and depth of its base, heights by rows, number of rows and columns.

    A cell has two triangles that share a diagonal. There are walls between the border and the base, and a box below.
    """

    size: Vec3
    heights: Reals
    rows: Any
    cols: Any


def meet_field(field: Field, start: Vec3, ray: Vec3) -> Hit:
    """Intersect a ray with a height field: the surface F = z - H(x/half x, y/half y), its walls and its base."""
    size, top = field.size, carry(LEAST)
    for k in loop(field.rows * field.cols):
        top.value = maximum(top.value, field.heights[k])
    half = 0.5 * size.z
    below = _faces(Vec3(size.x, size.y, half), start + AXES[2] * half, ray)
    # the bottom of the base moves with its depth, its top does not
    base = _nearest(_hit(face.x, face.n, Vec3(face.by_size.x, face.by_size.y, _bottom(face))) for face in below)
    best = carry(base)
    half = 0.5 * top.value
    around = _faces(Vec3(size.x, size.y, half), start - AXES[2] * half, ray)
    for _ in when_any(_nearest(around).x < NEVER):
        best.value = nearer(best.value, _over_cells(field, around, start, ray))
        for side, face in enumerate(around[:4]):
            best.value = nearer(best.value, _wall_below_rim(field, side, face, start, ray))
    return best.value


def _bottom(face: Hit) -> Any:
    """Derivative F_size z of a face of the base."""
    return -1.0 if face.n.leaves()[2] == -1.0 else 0.0


def _over_cells(field: Field, around: list[Hit], start: Vec3, ray: Vec3) -> Hit:
    """Intersect a ray with the surface of a height field, within its bounding box."""
    size, rows, cols = field.size, to_real(field.rows), to_real(field.cols)
    step_x, step_y = 2.0 * size.x / (cols - 1.0), 2.0 * size.y / (rows - 1.0)
    low_x, high_x = _span(start.x, ray.x, around, size.x, step_x)
    low_y, high_y = _span(start.y, ray.y, around, size.y, step_y)
    best = carry(MISS)

    def near(r: Any, low: Any, high: Any) -> Any:
        """Return True where the ray can intersect cell r."""
        return (to_real(r) >= low - 2.0) & (to_real(r) <= high + 2.0)

    for r in loop(field.rows - 1):
        for _ in when_any(near(r, low_y, high_y)):
            for c in loop(field.cols - 1):
                for _ in when_any(near(c, low_x, high_x)):
                    at = [(r, c), (r + 1, c), (r, c + 1), (r + 1, c + 1)]
                    p = [
                        Vec3(
                            to_real(j) * step_x - size.x,
                            to_real(i) * step_y - size.y,
                            field.heights[i * field.cols + j],
                        )
                        for i, j in at
                    ]
                    number = [to_real(i * field.cols + j) for i, j in at]
                    for one, two, three in ((0, 3, 2), (0, 3, 1)):
                        corners, nodes = (p[one], p[two], p[three]), (number[one], number[two], number[three])
                        best.value = nearer(best.value, _ground(field, corners, nodes, start, ray))
    return best.value


def _span(position: Any, along: Any, around: list[Hit], half: Any, step: Any) -> tuple[Any, Any]:
    """Return the first and last index of the cells along one axis for the part of the ray in the bounding box.

    A ray that begins inside counts from its origin.
    """
    count = sum((select(face.x < NEVER, 1.0, 0.0) for face in around), 0.0)
    first = (position + half) / step
    low, high = select(count < 1.5, first, NEVER), select(count < 1.5, first, -NEVER)
    for face in around:
        met = face.x < NEVER
        cell = (position + along * select(met, face.x, 0.0) + half) / step
        low, high = select(met, minimum(low, cell), low), select(met, maximum(high, cell), high)
    return low, high


def _ground(field: Field, corners: tuple[Vec3, ...], nodes: tuple[Any, ...], start: Vec3, ray: Vec3) -> Hit:
    a, b, c = corners
    x, share = _triangle(a, b, c, start, ray)
    n = cross(b - a, c - a)
    n = n / n.z
    p, size = _at(start, ray, x), field.size
    return Hit(x, n, Vec3(-n.x * p.x / size.x, -n.y * p.y / size.y, 0.0), Vec3(*nodes), share)


def _wall_below_rim(field: Field, side: int, face: Hit, start: Vec3, ray: Vec3) -> Hit:
    """Intersect a ray with a side wall of a height field: x low, x high, y low, y high."""
    along_y = side < 2
    count, size = (field.rows, field.size.y) if along_y else (field.cols, field.size.x)
    p = _at(start, ray, face.x)
    n = to_real(count)
    place = ((p.y if along_y else p.x) + size) / (2.0 * size / (n - 1.0))
    i = minimum(floor(minimum(maximum(place, 0.0), n)), n - 2.0)
    cols = to_real(field.cols)
    last = 0.0 if side % 2 == 0 else (cols - 1.0 if along_y else (to_real(field.rows) - 1.0) * cols)
    stride, total = (cols if along_y else 1.0), field.rows * field.cols
    low, high = (field.heights.gather(last + (i + k) * stride, total) for k in (0.0, 1.0))
    return _no_further(face, p.z < low * (i + 1.0 - place) + high * (place - i))


# -- inside --------------------------------------------------------------------------------------------------------------
def inside(kind: int, size: Vec3, p: Vec3) -> Any:
    """Return True where a point is in a zone, in the axes of the zone."""
    z, flat = abs(p.z), p.x * p.x + p.y * p.y
    if kind == BOX:
        return (abs(p.x) < size.x) & (abs(p.y) < size.y) & (z < size.z)
    if kind == ELLIPSOID:
        q = p.map(lambda a, b: a / b, size)
        return dot(q, q) < 1.0
    if kind == CYLINDER:
        return (z < size.y) & (flat < size.x * size.x)
    beyond = maximum(z - size.y, 0.0) if kind == CAPSULE else z
    return flat + beyond * beyond < size.x * size.x
