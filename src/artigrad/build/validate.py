"""Validation of values of a model; each message names the part and the rule."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from ..errors import ModelError
from ..model.model import Model
from ..model.quaternions import hat, matrix

INF = float("inf")


def number(x: Any, what: str, finite: bool = True) -> float:
    try:
        if isinstance(x, bool | np.bool_) or np.ma.isMaskedArray(x):
            raise TypeError
        x = float(x)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a number, not {x!r}") from None
    if finite and not np.isfinite(x):
        raise ModelError(f"{what} is {x}; it must be finite")
    return x


def whole(x: Any, what: str) -> int:
    if not isinstance(x, Integral):
        raise ModelError(f"{what} must be a whole number, not {x!r}")
    return int(x)


def mask(x: Any, what: str) -> int:
    """Return a mask of 32 bits."""
    x = whole(x, what)
    if isinstance(x, bool) or not -(2**31) <= x < 2**31:
        raise ModelError(f"{what} is {x}; it is a mask of 32 bits: 0 to 2147483647, or -1 for all of them")
    return x


def not_negative(x: Any, what: str) -> None:
    if np.any(np.asarray(x) < 0):
        raise ModelError(f"{what} is {x}; it cannot be negative")


def vector(x: Any, n: int, what: str) -> np.ndarray:
    try:
        x = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be {n} numbers") from None
    if x.shape != (n,):
        raise ModelError(f"{what} must be {n} numbers, not shape {x.shape}")
    if not np.isfinite(x).all():
        raise ModelError(f"{what} is {x}; all numbers must be finite")
    return x


def unit(x: Any, what: str) -> np.ndarray:
    x = vector(x, 3, what)
    length = np.linalg.norm(x)
    if length < 1e-12:
        raise ModelError(f"{what} is zero; an axis needs a direction")
    return x / length


def quaternion(x: Any, what: str) -> np.ndarray:
    x = vector(x, 4, what)
    length = np.linalg.norm(x)
    if length < 1e-12:
        raise ModelError(f"{what} is a zero quaternion; a rotation is w x y z with length 1")
    return x / length


def bounds(x: Any, what: str) -> np.ndarray:
    if x is None:
        return np.array([-INF, INF])
    try:
        x = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is (lowest, highest): two numbers") from None
    if x.shape != (2,) or np.isnan(x).any() or x[0] > x[1]:
        raise ModelError(f"{what} is (lowest, highest), not {x}")
    return x


def symmetric(limit: Any) -> tuple[float, float]:
    limit = number(limit, "a force limit", finite=False)
    return (-limit, limit)


def six_numbers(x: Any, what: str) -> np.ndarray:
    """Return xx yy zz xy xz yz of an inertia."""
    try:
        x = np.array(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"inertia of {what} must be three moments, six numbers or a 3x3 matrix") from None
    if not np.isfinite(x).all():
        raise ModelError(f"inertia of {what} has an entry that is not finite")
    if x.shape == (3,):
        x = np.concatenate([x, np.zeros(3)])
    if x.shape == (3, 3):
        if not np.allclose(x, x.T, rtol=1e-9, atol=1e-12):
            raise ModelError(f"inertia of {what} is not symmetric")
        x = np.array([x[0, 0], x[1, 1], x[2, 2], x[0, 1], x[0, 2], x[1, 2]])
    return vector(x, 6, f"inertia of {what} (three moments, six numbers or a 3x3 matrix)")


def possible(moments: np.ndarray) -> bool:
    """Return True if a body can have these moments of inertia, in ascending order, up to rounding."""
    slack = 1e-9 * abs(float(moments[2]))
    return bool(moments[0] >= -slack and moments[0] + moments[1] >= moments[2] - slack)


def inertia_of(x: Any, what: str, mass: float) -> np.ndarray:
    """Return six numbers; refused if no body of positive mass density can have them."""
    x = six_numbers(x, what)
    xx, yy, zz, xy, xz, yz = x
    a, b, c = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    slack = 1e-9 * max(abs(c), 1e-12)
    if a < -slack:
        raise ModelError(f"inertia of {what} has a negative principal moment ({a:g}); all three are at least zero")
    if a + b < c - slack:
        raise ModelError(
            f"inertia of {what} has principal moments {a:g}, {b:g}, {c:g}; no body has one larger than the sum of the others"
        )
    if mass == 0 and c > slack:
        raise ModelError(f"{what} has an inertia but no mass")
    return x


def check_mass_matrix(model: Model) -> None:
    """Refuse a joint that can move without moving mass, which makes the mass matrix singular.

    For each moving body, with all joints at zero, the 6x6 inertia of its subtree (origin of its frame, its axes) is
    projected onto the joint's motions.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        _check_joints(model)


def _check_joints(model: Model) -> None:
    p, nb = model.params, model.nb
    inertia = []
    for i in range(nb):
        c, m = p.com[i], p.mass[i]
        xx, yy, zz, xy, xz, yz = p.inertia[i]
        C = hat(c)
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * C @ C
        inertia.append(np.block([[J, m * C], [-m * C, m * np.eye(3)]]))
    for i in reversed(range(nb)):
        joint = model.joint_kind(i)
        S = joint.motions(p.axis[i], p.anchor[i], joint.travel_of(p, i))
        if S.shape[1]:
            D = S.T @ inertia[i] @ S + p.armature[i] * np.eye(S.shape[1])
            if not np.isfinite(D).all():
                raise ModelError(
                    f"the inertia moved by joint '{model.joints[i]}' is not finite: check positions, masses and inertias"
                )
            least = float(np.linalg.eigvalsh(D).min())
            if least <= 1e-12 * max(1e-6, float(np.abs(D).max())):
                raise ModelError(
                    f"joint '{model.joints[i]}' can move without moving mass: give body '{model.bodies[i]}' or one that "
                    "it carries mass away from the axis or an inertia, or the joint an armature"
                )
        if model.parent[i] >= 0:
            R, r = matrix(p.rotation[i]), p.position[i]
            X = np.block([[R.T, np.zeros((3, 3))], [-R.T @ hat(r), R.T]])
            inertia[model.parent[i]] = inertia[model.parent[i]] + X.T @ inertia[i] @ X


def soft_reference(value: Any, what: str, zero: bool = False) -> np.ndarray:
    """Return a solref: a time constant and a damping ratio, or minus a stiffness and minus a damping.

    zero: allow both to be zero, which is a row without force.
    """
    ref = vector(value, 2, f"solref of {what}")
    if (ref[0] > 0) != (ref[1] > 0) or not (zero or ref.any()):
        raise ModelError(
            f"solref of {what} is {ref[0]:g} {ref[1]:g}: both numbers are above zero (time constant, damping ratio) or none "
            "is, and not both zero (minus stiffness, minus damping)"
        )
    return ref


def meaningful(solref: np.ndarray, default: Any = (0.02, 1.0)) -> np.ndarray:
    """Return a solref, or MuJoCo's default if its two numbers have different signs, as MuJoCo does."""
    return solref if (solref[0] > 0) == (solref[1] > 0) else np.array(default)
