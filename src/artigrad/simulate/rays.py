"""Where rays meet shapes, as MuJoCo decides it; and how that changes with all they depend on.

Each surface is F(p, size) = 0 in the axes of its shape, so that where a ray start + x ray meets it

    dx = -(n . (d start + x d ray) + F_size . d size + F_heights . d heights) / (n . ray),     n = dF/dp

Which part of a surface is met is not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ..model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SHAPES, SPHERE, Surface, Zone

NEVER = np.inf
LEAST = 1e-15


class Hit(NamedTuple):
    """Of rays (..., 3): how far it is, `NEVER` where nothing is met; n and F_size there, (..., 3); and of a height field which
    three heights carry the point, and how much of it each does, (..., 3)."""

    x: np.ndarray
    n: np.ndarray
    by_size: np.ndarray
    heights: np.ndarray | None = None
    shares: np.ndarray | None = None


def _vectors(*parts: np.ndarray | float) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*parts), -1)


def _nearest(hits: Iterable[Hit]) -> Hit:
    """The first thing met, ray by ray."""
    best, *others = hits
    for other in others:
        closer = other.x < best.x
        wide = closer[..., None]
        best = Hit(
            np.where(closer, other.x, best.x),
            np.where(wide, other.n, best.n),
            np.where(wide, other.by_size, best.by_size),
        )
    return best


def _roots(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two zeros of a x^2 + 2 b x + c, the smaller first; -1 where there are none."""
    root = b * b - a * c
    real = (root >= LEAST) & (a > 0)
    width, scale = np.sqrt(np.maximum(root, 0.0)), np.where(a > 0, a, 1.0)
    near, far = (np.where(real, (-b + sign * width) / scale, -1.0) for sign in (-1.0, 1.0))
    return near, far


def _ahead(x: np.ndarray, ok: np.ndarray | bool = True) -> np.ndarray:
    return np.where((x >= 0) & ok, x, NEVER)


def _first(near: np.ndarray, far: np.ndarray) -> np.ndarray:
    return np.where(near >= 0, near, far)


def _at(start: np.ndarray, ray: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The point that is x away; where nothing is met, its start."""
    return start + np.where(np.isfinite(x), x, 0.0)[..., None] * ray


def _flat(size: np.ndarray, start: np.ndarray, ray: np.ndarray, k: int, side: float) -> Hit:
    """The plane side p_k = size_k, anywhere; the caller looks whether the point is on the face."""
    crossing = np.abs(ray[..., k]) > LEAST
    x = np.where(crossing, (side * size[..., k] - start[..., k]) / np.where(crossing, ray[..., k], 1.0), -1.0)
    n, by_size = np.zeros(start.shape), np.zeros(start.shape)
    n[..., k], by_size[..., k] = side, -1.0
    return Hit(_ahead(x), n, by_size)


# -- solids --------------------------------------------------------------------------------------------------------------
def _plane(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """From its front alone, and within the rectangle of its half sizes, where these are not zero."""
    front = ray[..., 2] < -LEAST
    x = _ahead(np.where(front, -start[..., 2] / np.where(front, ray[..., 2], 1.0), -1.0))
    p = np.abs(_at(start, ray, x))
    inside = np.all([(size[..., k] <= 0) | (p[..., k] <= size[..., k]) for k in (0, 1)], axis=0)
    n = np.broadcast_to(np.array([0.0, 0.0, 1.0]), start.shape)
    return Hit(np.where(inside, x, NEVER), n, np.zeros(start.shape))


def _ellipsoid(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """F = sum (p/size)^2 - 1"""
    s, d = start / size, ray / size
    x = _ahead(_first(*_roots((d * d).sum(-1), (s * d).sum(-1), (s * s).sum(-1) - 1.0)))
    p = _at(start, ray, x)
    return Hit(x, 2 * p / size**2, -2 * p**2 / size**3)


def _sphere(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """F = |p|^2 - radius^2"""
    r = size[..., 0]
    x = _ahead(_first(*_roots((ray * ray).sum(-1), (start * ray).sum(-1), (start * start).sum(-1) - r * r)))
    return Hit(x, 2 * _at(start, ray, x), _vectors(-2 * r, 0.0, 0.0))


def _wall(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """Of a tube about z, radius and half length: F = x^2 + y^2 - radius^2"""
    s, d, r = start[..., :2], ray[..., :2], size[..., 0]
    x = _first(*_roots((d * d).sum(-1), (s * d).sum(-1), (s * s).sum(-1) - r * r))
    x = _ahead(x, np.abs(start[..., 2] + x * ray[..., 2]) <= size[..., 1])
    p = _at(start, ray, x)
    return Hit(x, _vectors(2 * p[..., 0], 2 * p[..., 1], 0.0), _vectors(-2 * r, 0.0, 0.0))


def _capsule(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    hits, r, half = [_wall(size, start, ray)], size[..., 0], size[..., 1]
    for side in (1.0, -1.0):
        centre = _vectors(0.0, 0.0, side * half)
        s = start - centre
        roots = _roots((ray * ray).sum(-1), (s * ray).sum(-1), (s * s).sum(-1) - r * r)
        for x in roots:
            x = _ahead(x, side * (start[..., 2] + x * ray[..., 2]) >= half)
            n = 2 * (_at(start, ray, x) - centre)
            hits.append(Hit(x, n, _vectors(-2 * r, -side * n[..., 2], 0.0)))
    return _nearest(hits)


def _cylinder(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    hits = [_wall(size, start, ray)]
    caps = _vectors(size[..., 0], size[..., 0], size[..., 1])
    for side in (1.0, -1.0):
        cap = _flat(caps, start, ray, 2, side)
        p = _at(start, ray, cap.x)[..., :2]
        x = np.where((p * p).sum(-1) <= size[..., 0] ** 2, cap.x, NEVER)
        hits.append(Hit(x, cap.n, cap.by_size[..., [0, 2, 1]]))
    return _nearest(hits)


def _box(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    return _nearest(_faces(size, start, ray))


def _faces(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> list[Hit]:
    """Of a box, two and two along x, y and z."""
    found = []
    for k in range(3):
        for side in (-1.0, 1.0):
            face = _flat(size, start, ray, k, side)
            p = np.abs(_at(start, ray, face.x))
            inside = np.all([p[..., i] <= size[..., i] for i in range(3) if i != k], axis=0)
            found.append(face._replace(x=np.where(inside, face.x, NEVER)))
    return found


SOLIDS: dict[int, Callable[[np.ndarray, np.ndarray, np.ndarray], Hit]] = {
    PLANE: _plane,
    SPHERE: _sphere,
    CAPSULE: _capsule,
    ELLIPSOID: _ellipsoid,
    CYLINDER: _cylinder,
    BOX: _box,
}


def meet(kind: int, size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """Of rays with a shape that has a size, all in its axes."""
    return SOLIDS[kind](np.broadcast_to(size, start.shape), start, ray)


# -- triangles -----------------------------------------------------------------------------------------------------------
def _triangles(corners: np.ndarray, start: np.ndarray, ray: np.ndarray) -> tuple[float, int, np.ndarray]:
    """How far along one ray the first of triangles (n, 3, 3) is, which it is, and the shares of its corners in the point."""
    a, e, f = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    h, s = np.cross(ray, f), start - a
    det = (e * h).sum(-1)
    scale = np.where(np.abs(det) > LEAST, det, np.inf)
    g = np.cross(s, e)
    u, v, x = (s * h).sum(-1) / scale, (g @ ray) / scale, (f * g).sum(-1) / scale
    x = np.where((np.abs(det) > LEAST) & (u >= 0) & (v >= 0) & (u + v <= 1) & (x >= 0), x, NEVER)
    k = int(np.argmin(x)) if len(x) else -1
    return (float(x[k]), k, np.array([1 - u[k] - v[k], u[k], v[k]])) if k >= 0 else (NEVER, k, np.zeros(3))


def meet_surface(surface: Surface, start: np.ndarray, ray: np.ndarray) -> Hit:
    """Of rays (B, 3) with triangles."""
    x, n = np.full(len(start), NEVER), np.zeros(start.shape)
    corners = surface.vertices[surface.faces]
    for b in range(len(start)):
        x[b], k, _ = _triangles(corners, start[b], ray[b])
        n[b] = np.cross(corners[k, 1] - corners[k, 0], corners[k, 2] - corners[k, 0])
    return Hit(x, n, np.zeros(start.shape))


# -- height fields -------------------------------------------------------------------------------------------------------
def meet_field(heights: np.ndarray, size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Hit:
    """Of rays (B, 3) with ground of heights (B, rows, columns): its triangles, its rims, and the box below its origin."""
    size = np.broadcast_to(size, start.shape)
    base, middle = size * np.array([1.0, 1.0, 0.5]), _vectors(0.0, 0.0, -0.5 * size[..., 2])
    box = _nearest(_faces(base, start - middle, ray))
    box = box._replace(by_size=_of_base(box))
    x, n, by_size = (np.array(y) for y in (box.x, box.n, box.by_size))
    carried, shares = np.zeros(start.shape, int), np.zeros(start.shape)
    for b in range(len(start)):
        for found in _over_cells(heights[b], size[b], start[b], ray[b]):
            if found.x < x[b]:
                x[b], n[b], by_size[b] = found.x, found.n, found.by_size
                carried[b], shares[b] = (0, 0) if found.heights is None else (found.heights, found.shares)
    return Hit(x, n, by_size, carried, shares)


def _of_base(box: Hit) -> np.ndarray:
    """F_size of the box below: its bottom is as deep as the base, its top stays."""
    by_size = np.array(box.by_size)
    by_size[..., 2] = np.where(box.n[..., 2] < 0, -1.0, 0.0)
    return by_size


def _over_cells(heights: np.ndarray, size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> Iterable[Hit]:
    """One ray and what stands above the origin of a field: the cells under its way, and the rims it enters by."""
    rows, cols = heights.shape
    top = max(float(heights.max()), LEAST)
    faces = _faces(np.array([size[0], size[1], top / 2]), start - np.array([0.0, 0.0, top / 2]), ray)
    ways = [float(face.x) for face in faces if np.isfinite(face.x)]
    if not ways:
        return
    step = np.array([2 * size[0] / (cols - 1), 2 * size[1] / (rows - 1)])
    ends = np.array([start + x * ray for x in ([0.0, *ways] if len(ways) == 1 else ways)])
    cells = (ends[:, :2] + size[:2]) / step
    (c0, r0), (c1, r1) = np.floor(cells.min(0)).astype(int) - 1, np.ceil(cells.max(0)).astype(int) + 1
    r, c = (y.ravel() for y in np.mgrid[max(0, r0) : min(rows - 1, r1), max(0, c0) : min(cols - 1, c1)])
    yield from _in_cells(heights, size, (np.concatenate([r, r]), np.concatenate([c, c]), len(r)), start, ray)
    for side, face in enumerate(faces[:4]):
        yield from _by_rim(heights, size, side, face, start + (face.x if np.isfinite(face.x) else 0.0) * ray)


def _in_cells(
    heights: np.ndarray, size: np.ndarray, cells: tuple[np.ndarray, np.ndarray, int], start: np.ndarray, ray: np.ndarray
) -> Iterable[Hit]:
    """F = z - H(x/half x, y/half y): two triangles a cell, which share the diagonal."""
    rows, cols = heights.shape
    r, c, n = cells
    first = np.arange(2 * n) < n
    at_r = np.stack([r, r + 1, np.where(first, r, r + 1)], 1)
    at_c = np.stack([c, c + 1, np.where(first, c + 1, c)], 1)
    x, y = 2 * size[0] / (cols - 1) * at_c - size[0], 2 * size[1] / (rows - 1) * at_r - size[1]
    corners = np.stack([x, y, heights[at_r, at_c]], -1)
    found, k, shares = _triangles(corners, start, ray)
    if np.isfinite(found):
        normal = np.cross(corners[k, 1] - corners[k, 0], corners[k, 2] - corners[k, 0])
        normal = normal / normal[2]
        p = start + found * ray
        by_size = np.array([-normal[0] * p[0] / size[0], -normal[1] * p[1] / size[1], 0.0])
        yield Hit(np.array(found), normal, by_size, at_r[k] * cols + at_c[k], shares)


def _by_rim(heights: np.ndarray, size: np.ndarray, side: int, face: Hit, p: np.ndarray) -> Iterable[Hit]:
    """A wall between the ground's rim and its origin; side: of x low, x high, y low, y high."""
    if np.isfinite(face.x):
        rim = heights[:, -1 if side % 2 else 0] if side < 2 else heights[-1 if side % 2 else 0]
        k = 1 if side < 2 else 0
        place = (p[k] + size[k]) / (2 * size[k] / (len(rim) - 1))
        i = int(np.clip(np.floor(place), 0, len(rim) - 2))
        if p[2] < rim[i] * (i + 1 - place) + rim[i + 1] * (place - i):
            yield Hit(face.x, face.n, face.by_size)


# -- what is inside ------------------------------------------------------------------------------------------------------
def reaches(zone: Zone, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Whether each ray meets a zone, all in its axes; one that begins inside does."""
    return np.isfinite(meet(SHAPES.index(zone.shape), np.asarray(zone.size), start, ray).x)


def inside(zone: Zone, p: np.ndarray) -> np.ndarray:
    """Which of the points (..., 3) are in a zone, in its axes."""
    kind, size, z = SHAPES.index(zone.shape), np.asarray(zone.size), np.abs(p[..., 2])
    flat = (p[..., :2] ** 2).sum(-1)
    if kind == BOX:
        return np.all(np.abs(p) < size, -1)
    if kind == ELLIPSOID:
        return ((p / size) ** 2).sum(-1) < 1
    if kind == CYLINDER:
        return (z < size[1]) & (flat < size[0] ** 2)
    beyond = np.maximum(z - size[1], 0.0) if kind == CAPSULE else z
    return flat + beyond**2 < size[0] ** 2
