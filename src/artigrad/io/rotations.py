"""Quaternions w x y z and inertias as NumPy arrays, for what happens once per file."""

from __future__ import annotations

import numpy as np


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a (x) b: first b, then a"""
    w, u, x, v = a[0], a[1:], b[0], b[1:]
    return np.concatenate([[w * x - u @ v], w * v + x * u + np.cross(u, v)])


def matrix(q: np.ndarray) -> np.ndarray:
    """R of a quaternion of any length."""
    w, u = q[0], q[1:]
    K = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
    return np.eye(3) + (2 * w * K + 2 * K @ K) / (q @ q)


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
