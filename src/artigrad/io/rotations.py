"""Quaternions w x y z and inertias as NumPy arrays, for what happens once per file."""

from __future__ import annotations

from typing import Any

import numpy as np


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a (x) b: first b, then a"""
    w, u, x, v = a[0], a[1:], b[0], b[1:]
    return np.concatenate([[w * x - u @ v], w * v + x * u + np.cross(u, v)])


def hat(a: Any) -> np.ndarray:
    """The matrix of a x ..."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def matrix(quaternion: Any) -> np.ndarray:
    """R of a quaternion of any length."""
    q = np.asarray(quaternion, float)
    K = hat(q[1:])
    return np.eye(3) + (2 * q[0] * K + 2 * K @ K) / (q @ q)


def along(start: Any, end: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Middle, quaternion (z along it) and half length of a segment."""
    a, b = np.array(start, float), np.array(end, float)
    length = float(np.linalg.norm(b - a))
    x, y, z = (b - a) / length
    q = np.array([1.0 + z, -y, x, 0.0]) if z > -1 + 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])
    return (a + b) / 2, q / np.linalg.norm(q), length / 2


def rotate(q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """R(q) x"""
    return matrix(q) @ x


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """The quaternion of a turn about a unit axis."""
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])


def inertia_in(q: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """R diag(moments) R^T"""
    R = matrix(q)
    I = R @ np.diag(moments) @ R.T
    return (I + I.T) / 2
