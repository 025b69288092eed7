"""Zones of touch sensors: which rays from a point reach a shape, as MuJoCo decides it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..model.model import Zone

Reach = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def reaches(zone: Zone, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Whether each ray start + x ray, x >= 0, meets the zone, all in its axes; one that begins inside does."""
    return ZONES[zone.shape](np.asarray(zone.size), start, ray)


def _ahead(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether a x^2 + 2 b x + c has zeros, and the two of them (none: -1)."""
    root = b * b - a * c
    real = (root >= 0) & (a > 1e-30)
    width, scale = np.sqrt(np.maximum(root, 0.0)), np.where(a > 1e-30, a, 1.0)
    near, far = (np.where(real, (-b + sign * width) / scale, -1.0) for sign in (-1.0, 1.0))
    return real, near, far


def _ellipsoid(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    s, d = start / size, ray / size
    _, near, far = _ahead((d * d).sum(-1), (s * d).sum(-1), (s * s).sum(-1) - 1.0)
    return (near >= 0) | (far >= 0)


def _sphere(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    return _ellipsoid(np.full(3, size[0]), start, ray)


def _wall(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Of a tube about z with half length size[1]."""
    s, d = start[..., :2], ray[..., :2]
    _, near, far = _ahead((d * d).sum(-1), (s * d).sum(-1), (s * s).sum(-1) - size[0] ** 2)
    return np.any([(x >= 0) & (np.abs(start[..., 2] + x * ray[..., 2]) <= size[1]) for x in (near, far)], axis=0)


def _capsule(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    ends = [start - np.array([0.0, 0.0, z]) for z in (size[1], -size[1])]
    return _wall(size, start, ray) | _sphere(size, ends[0], ray) | _sphere(size, ends[1], ray)


def _cylinder(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    found = _wall(size, start, ray)
    for z in (size[1], -size[1]):
        x, forward = _to_plane(start[..., 2] - z, ray[..., 2])
        p = start[..., :2] + x[..., None] * ray[..., :2]
        found = found | (forward & ((p * p).sum(-1) <= size[0] ** 2))
    return found


def _box(size: np.ndarray, start: np.ndarray, ray: np.ndarray) -> np.ndarray:
    found = np.zeros(start.shape[:-1], bool)
    for k in range(3):
        others = [i for i in range(3) if i != k]
        for side in (size[k], -size[k]):
            x, forward = _to_plane(start[..., k] - side, ray[..., k])
            p = np.abs(start + x[..., None] * ray)
            found = found | (forward & np.all([p[..., i] <= size[i] for i in others], axis=0))
    return found


def _to_plane(height: np.ndarray, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far along a ray a plane is, and whether it is ahead."""
    crossing = np.abs(rate) > 1e-15
    x = np.where(crossing, -height / np.where(crossing, rate, 1.0), -1.0)
    return x, crossing & (x >= 0)


ZONES: dict[str, Reach] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "box": _box,
}
