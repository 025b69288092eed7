"""Quaternions w x y z, rotation matrices and inertias as NumPy arrays, for use outside of steps."""

from __future__ import annotations

from typing import Any

import numpy as np


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product a (x) b of quaternions (..., 4): rotate by b, then by a."""
    w, u, x, v = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    return np.concatenate([w * x - np.sum(u * v, -1, keepdims=True), w * v + x * u + np.cross(u, v)], -1)


def hat(a: Any) -> np.ndarray:
    """Matrix of the cross product a x."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def matrix(quaternion: Any) -> np.ndarray:
    """Rotation matrix of a quaternion of any length."""
    q = np.asarray(quaternion, float)
    K = hat(q[1:])
    return np.eye(3) + (2 * q[0] * K + 2 * K @ K) / (q @ q)


def of_matrix(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions w x y z (..., 4) of rotation matrices (..., 3, 3)."""
    R = rotation
    xx, yy, zz = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    # four formulas for the quaternion, each well conditioned where its first entry is the largest
    size = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], -1)
    x, y, z = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    xy, xz, yz = R[..., 0, 1] + R[..., 1, 0], R[..., 0, 2] + R[..., 2, 0], R[..., 1, 2] + R[..., 2, 1]
    ways = np.stack(
        [
            np.stack([size[..., 0], x, y, z], -1),
            np.stack([x, size[..., 1], xy, xz], -1),
            np.stack([y, xy, size[..., 2], yz], -1),
            np.stack([z, xz, yz, size[..., 3]], -1),
        ],
        -2,
    )
    best = np.take_along_axis(ways, size.argmax(-1)[..., None, None], -2)[..., 0, :]
    return best / np.linalg.norm(best, axis=-1, keepdims=True)


def along(start: Any, end: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Center, quaternion (z along it) and half length of a segment."""
    a, b = np.array(start, float), np.array(end, float)
    length = float(np.linalg.norm(b - a))
    x, y, z = (b - a) / length
    q = np.array([1.0 + z, -y, x, 0.0]) if z > -1 + 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
    return (a + b) / 2, q / np.linalg.norm(q), length / 2


def rotate(q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return R(q) x."""
    return matrix(q) @ x


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """Quaternion of a rotation about a unit axis."""
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


def inertia_in(q: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return R diag(moments) R^T."""
    R = matrix(q)
    I = R @ np.diag(moments) @ R.T
    return (I + I.T) / 2
