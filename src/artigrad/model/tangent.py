"""Cotangents of q: ambient (one entry per entry of q) and tangent (one per entry of v), and conversions.

A tangent direction moves a quaternion by q (x) exp(th/2), th in body axes; all other coordinates add. PyTorch and JAX
expect ambient cotangents; tangent ones have no redundant direction (linearization, Gauss-Newton).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import checked
from ..errors import InputError
from .model import Model


def quaternions(model: Model) -> list[tuple[int, int]]:
    """(first entry in q, first entry in v) of every quaternion."""
    joints = [(model.joint_kind(i), a, k) for i, (a, k) in enumerate(zip(model.joint_q, model.joint_v, strict=True))]
    return [(a + joint.straight, k + joint.straight) for joint, a, k in joints if joint.quaternion]


def _straight(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices in q and in v of the additive entries."""
    q, v = np.ones(model.nq, bool), np.ones(model.nv, bool)
    for a, k in quaternions(model):
        q[a : a + 4], v[k : k + 3] = False, False
    return np.flatnonzero(q), np.flatnonzero(v)


def _row(model: Model, name: str, x: Any, n: int) -> np.ndarray:
    """Return an array (..., n)."""
    try:
        x = np.asarray(x)
    except ValueError:
        raise InputError(
            f"{name} of '{model.name}' is an array of numbers (..., {n}), not lists of several lengths"
        ) from None
    if x.shape[-1:] != (n,) or x.dtype.kind not in "fiu":
        raise InputError(f"{name} of '{model.name}' is an array of numbers (..., {n}), not {x.dtype} {x.shape}")
    return x


def _left(q: np.ndarray) -> np.ndarray:
    """G(q): th -> q (x) (0, th), shape (..., 4, 3)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack([np.stack(r, -1) for r in ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))], -2)


@checked
def to_tangent(model: Model, q: np.ndarray, q_bar: np.ndarray) -> np.ndarray:
    """Convert an ambient cotangent (..., nq) to a tangent one (..., nv)."""
    q, q_bar = _row(model, "q", q, model.nq), _row(model, "q_bar", q_bar, model.nq)
    a, k = _straight(model)
    out = np.empty((*q_bar.shape[:-1], model.nv), q_bar.dtype)
    out[..., k] = q_bar[..., a]
    for i, j in quaternions(model):
        out[..., j : j + 3] = 0.5 * np.einsum("...ij,...i->...j", _left(q[..., i : i + 4]), q_bar[..., i : i + 4])
    return out


@checked
def to_ambient(model: Model, q: np.ndarray, tangent_bar: np.ndarray) -> np.ndarray:
    """Convert a tangent cotangent (..., nv) to the ambient one (..., nq), orthogonal to each quaternion."""
    q, tangent_bar = _row(model, "q", q, model.nq), _row(model, "tangent_bar", tangent_bar, model.nv)
    a, k = _straight(model)
    out = np.empty((*tangent_bar.shape[:-1], model.nq), tangent_bar.dtype)
    out[..., a] = tangent_bar[..., k]
    for i, j in quaternions(model):
        quat = q[..., i : i + 4]
        lifted = np.einsum("...ij,...j->...i", _left(quat), tangent_bar[..., j : j + 3])
        out[..., i : i + 4] = 2.0 * lifted / np.sum(quat * quat, -1, keepdims=True)
    return out


@checked
def integrate(model: Model, q: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return q (+) d: the positions reached from q by the tangent displacement d (..., nv)."""
    q, d = _row(model, "q", q, model.nq), _row(model, "d", d, model.nv)
    a, k = _straight(model)
    lead = np.broadcast_shapes(q.shape[:-1], d.shape[:-1])
    out = np.array(np.broadcast_to(q, (*lead, model.nq)), np.result_type(q, d, np.float32))
    out[..., a] += d[..., k]
    for i, j in quaternions(model):
        th = d[..., j : j + 3]
        t = np.linalg.norm(th, axis=-1, keepdims=True)
        e = np.concatenate([np.cos(t / 2), 0.5 * np.sinc(t / (2 * np.pi)) * th], -1)
        quat = out[..., i : i + 4]
        out[..., i : i + 4] = quat * e[..., :1] + np.einsum("...ij,...j->...i", _left(quat), e[..., 1:])
    return out


@checked
def difference(model: Model, q_from: np.ndarray, q_to: np.ndarray) -> np.ndarray:
    """Return q_to (-) q_from: the tangent displacement d (..., nv) with integrate(model, q_from, d) = q_to.

    Rotations take the shorter way. Quaternions of any length represent their rotations.
    """
    q_from, q_to = _row(model, "q_from", q_from, model.nq), _row(model, "q_to", q_to, model.nq)
    out = chord(model, q_from, q_to)
    for i, j in quaternions(model):
        th = out[..., j : j + 3]  # 2 sin(t/2) along its axis, times the lengths of both quaternions
        sine = 0.5 * np.linalg.norm(th, axis=-1, keepdims=True)
        cosine = np.abs(np.sum(q_from[..., i : i + 4] * q_to[..., i : i + 4], -1, keepdims=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(sine > 0.0, np.arctan2(sine, cosine) / sine, 1.0 / cosine)
        out[..., j : j + 3] = th * factor
    return out


def difference_jacobian(model: Model, d: np.ndarray) -> np.ndarray:
    """Jacobian (..., nv, nv) of d = difference(model, q_from, q_to) with respect to a tangent displacement of q_to.

    It is the identity, except for rotation vectors th: the inverse of the right Jacobian of the exponential map, I +
    hat(th)/2 + (1 - (t/2) cot(t/2))/t^2 hat(th)^2 with t = |th|. Not differentiable at half turns.
    """
    d = _row(model, "d", d, model.nv)
    out = np.zeros((*d.shape, model.nv))
    out[..., range(model.nv), range(model.nv)] = 1.0
    for _, j in quaternions(model):
        th = d[..., j : j + 3]
        square = np.sum(th * th, -1)[..., None, None]
        half = 0.5 * np.sqrt(np.where(square < 1e-2, 1.0, square))
        series = 1 / 12 + square * (1 / 720 + square * (1 / 30240 + square / 1209600))
        factor = np.where(square < 1e-2, series, (1.0 - half / np.tan(half)) / (4.0 * half * half))
        x, y, z = np.moveaxis(th, -1, 0)
        none = np.zeros_like(x)
        hat = np.stack([np.stack(r, -1) for r in ((none, -z, y), (z, none, -x), (-y, x, none))], -2)
        out[..., j : j + 3, j : j + 3] += 0.5 * hat + factor * (hat @ hat)
    return out


def chord(model: Model, q_from: np.ndarray, q_to: np.ndarray) -> np.ndarray:
    """Return q_to (-) q_from, (..., nv), linear in q_to: for quaternions 2 sin(t/2) replaces the angle t between them."""
    a, k = _straight(model)
    out = np.empty((*np.broadcast_shapes(q_from.shape[:-1], q_to.shape[:-1]), model.nv))
    out[..., k] = q_to[..., a] - q_from[..., a]
    for i, j in quaternions(model):
        G, near = _left(q_from[..., i : i + 4]), _same_side(q_from, q_to, i)
        out[..., j : j + 3] = 2.0 * near * np.einsum("...ij,...i->...j", G, q_to[..., i : i + 4])
    return out


def chord_vjp(model: Model, q_from: np.ndarray, q_to: np.ndarray, d_bar: np.ndarray) -> np.ndarray:
    """Return the ambient cotangent (..., nq) of q_to, given that of the chord (..., nv). That of q_from is not computed."""
    a, k = _straight(model)
    out = np.empty((*d_bar.shape[:-1], model.nq))
    out[..., a] = d_bar[..., k]
    for i, j in quaternions(model):
        G, near = _left(q_from[..., i : i + 4]), _same_side(q_from, q_to, i)
        out[..., i : i + 4] = 2.0 * near * np.einsum("...ij,...j->...i", G, d_bar[..., j : j + 3])
    return out


def _same_side(q_from: np.ndarray, q_to: np.ndarray, i: int) -> np.ndarray:
    """Return 1, or -1 where the quaternions that start at entry i have opposite signs; (..., 1)."""
    dot = np.sum(q_from[..., i : i + 4] * q_to[..., i : i + 4], -1, keepdims=True)
    return np.where(dot < 0, -1.0, 1.0)
