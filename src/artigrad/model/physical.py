"""Unconstrained coordinates theta in which a parameter stays physical, for `ag.fit` and `artigrad.torch`.

    added      x = x0 + unit theta              parameters of either sign
    positive   x = x0 exp(theta)                masses, sizes, frictions: positive ones stay positive, zero ones stay
    zero
    share      x = s(s^-1(x0) + theta)          restitution: within 0 and 1; s is the logistic function
    inertia    S = A A^T, A = A0 L(theta)       S = tr(I)/2 - I stays positive semidefinite, so that I is that of a body

All are x0 at theta = 0. Each function stands above its adjoint; arrays of any leading axes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .params import POSITIVE

EDGE = 1e-6  # distance of a share's initial value from 0 and 1
_ROWS, _COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # of xx yy zz xy xz yz


def added(x0: Any, theta: Any, unit: Any = 1.0) -> Any:
    return x0 + unit * theta


def added_vjp(x0: Any, theta: Any, x_bar: Any, unit: Any = 1.0) -> Any:
    return unit * x_bar


def positive(x0: Any, theta: Any) -> Any:
    return x0 * np.exp(theta)


def positive_vjp(x0: Any, theta: Any, x_bar: Any) -> Any:
    return positive(x0, theta) * x_bar


def share(x0: Any, theta: Any) -> Any:
    x0 = np.clip(x0, EDGE, 1.0 - EDGE)
    return 1.0 / (1.0 + np.exp(-(np.log(x0 / (1.0 - x0)) + theta)))


def share_vjp(x0: Any, theta: Any, x_bar: Any) -> Any:
    x = share(x0, theta)
    return x * (1.0 - x) * x_bar


def inertia(x0: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """I = tr(S) 1 - S: principal moments are positive, and none exceeds the sum of the two others."""
    A = inertia_root(x0) @ _factor(theta)
    S = A @ np.swapaxes(A, -1, -2)
    I = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    return I[..., _ROWS, _COLUMNS]


def inertia_vjp(x0: np.ndarray, theta: np.ndarray, x_bar: np.ndarray) -> np.ndarray:
    I_bar = np.zeros((*x_bar.shape[:-1], 3, 3))
    I_bar[..., _ROWS, _COLUMNS] = x_bar
    S_bar = np.trace(I_bar, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - I_bar
    A0 = inertia_root(x0)
    A = A0 @ _factor(theta)
    L_bar = np.swapaxes(A0, -1, -2) @ (S_bar + np.swapaxes(S_bar, -1, -2)) @ A
    diagonal = np.exp(theta[..., :3]) * L_bar[..., _ROWS[:3], _COLUMNS[:3]]
    return np.concatenate([diagonal, L_bar[..., _COLUMNS[3:], _ROWS[3:]]], -1)


def _factor(theta: np.ndarray) -> np.ndarray:
    """L(theta): lower triangular with positive diagonal, the identity at zero."""
    L = np.zeros((*theta.shape[:-1], 3, 3))
    L[..., _ROWS[:3], _COLUMNS[:3]] = np.exp(theta[..., :3])
    L[..., _COLUMNS[3:], _ROWS[3:]] = theta[..., 3:]
    return L


def inertia_root(x0: np.ndarray) -> np.ndarray:
    """A0 with A0 A0^T = tr(I)/2 1 - I, the second moments of the body's mass about its center."""
    I = np.zeros((*x0.shape[:-1], 3, 3))
    I[..., _ROWS, _COLUMNS] = I[..., _COLUMNS, _ROWS] = x0
    moments, axes = np.linalg.eigh(np.trace(I, axis1=-2, axis2=-1)[..., None, None] / 2 * np.eye(3) - I)
    return axes * np.sqrt(np.maximum(moments, 0.0))[..., None, :]


class Coordinates(NamedTuple):
    """Coordinates of a parameter: x(x0, theta), and theta_bar(x0, theta, x_bar)."""

    value: Callable[..., Any]
    vjp: Callable[..., Any]


ADDED, KEPT_POSITIVE = Coordinates(added, added_vjp), Coordinates(positive, positive_vjp)
OF_FIELD: dict[str, Coordinates] = {
    **dict.fromkeys(POSITIVE, KEPT_POSITIVE),
    "restitution": Coordinates(share, share_vjp),
    "inertia": Coordinates(inertia, inertia_vjp),
}


def coordinates_of(field: str) -> Coordinates:
    """Return the coordinates in which a field of Params stays physical."""
    return OF_FIELD.get(field, ADDED)
