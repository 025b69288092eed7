"""Sensors of a body and all it carries, of the energy of the model, and of the time."""

from __future__ import annotations

import numpy as np

from ..model.model import Sensor
from .sensor_kind import At, SensorKind, outer, subtree, turn, turn_back


def symmetric(I: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of xx yy zz xy xz yz"""
    xx, yy, zz, xy, xz, yz = np.moveaxis(I, -1, 0)
    return np.stack([np.stack(row, -1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))], -2)


def symmetric_vjp(M_bar: np.ndarray) -> np.ndarray:
    """Of the six numbers, for the cotangent of the matrix."""
    twice = M_bar + np.swapaxes(M_bar, -1, -2)
    pairs = [twice[..., i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    return np.stack([M_bar[..., 0, 0], M_bar[..., 1, 1], M_bar[..., 2, 2], *pairs], -1)


def _subtree_com(at: At, s: Sensor) -> np.ndarray:
    """y = sum m (p + R c) / sum m"""
    b = subtree(at.model, s.on)
    m, c = at.params["mass"][:, b, None], at.params["com"][:, b]
    return (m * (at.now.body_position[:, b] + turn(at.now.body_rotation[:, b], c))).sum(1) / m.sum(1)


def _subtree_com_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    b = subtree(at.model, s.on)
    m, c, R = at.params["mass"][:, b, None], at.params["com"][:, b], at.now.body_rotation[:, b]
    y, share = _subtree_com(at, s), m / m.sum(1, keepdims=True) * y_bar[:, None]
    x = at.now.body_position[:, b] + turn(R, c)
    bars.params["mass"][:, b] += ((x - y[:, None]) * y_bar[:, None]).sum(-1) / m.sum(1)
    bars.params["com"][:, b] += turn_back(R, share)
    bars.now.body_position[:, b] += share
    bars.now.body_rotation[:, b] += outer(share, c)


def _subtree_velocity(at: At, s: Sensor) -> np.ndarray:
    """y = sum m (v + w x R c) / sum m"""
    b = subtree(at.model, s.on)
    m, r = at.params["mass"][:, b, None], turn(at.now.body_rotation[:, b], at.params["com"][:, b])
    v = at.now.body_velocity[:, b] + np.cross(at.now.body_angular_velocity[:, b], r)
    return (m * v).sum(1) / m.sum(1)


def _subtree_velocity_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    b = subtree(at.model, s.on)
    m, c, R = at.params["mass"][:, b, None], at.params["com"][:, b], at.now.body_rotation[:, b]
    w, r = at.now.body_angular_velocity[:, b], turn(R, c)
    y, share = _subtree_velocity(at, s), m / m.sum(1, keepdims=True) * y_bar[:, None]
    v, r_bar = at.now.body_velocity[:, b] + np.cross(w, r), np.cross(share, w)
    bars.params["mass"][:, b] += ((v - y[:, None]) * y_bar[:, None]).sum(-1) / m.sum(1)
    bars.params["com"][:, b] += turn_back(R, r_bar)
    bars.now.body_velocity[:, b] += share
    bars.now.body_angular_velocity[:, b] += np.cross(r, share)
    bars.now.body_rotation[:, b] += outer(r_bar, c)


def _momentum(at: At, s: Sensor) -> np.ndarray:
    """y = sum R I R^T w + m (x - x0) x (v - v0), about the centre of mass x0 of the subtree"""
    b = subtree(at.model, s.on)
    m, R, w = at.params["mass"][:, b, None], at.now.body_rotation[:, b], at.now.body_angular_velocity[:, b]
    r = turn(R, at.params["com"][:, b])
    x = at.now.body_position[:, b] + r - _subtree_com(at, s)[:, None]
    v = at.now.body_velocity[:, b] + np.cross(w, r) - _subtree_velocity(at, s)[:, None]
    spin = turn(R, turn(symmetric(at.params["inertia"][:, b]), turn_back(R, w)))
    return (spin + m * np.cross(x, v)).sum(1)


def _momentum_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    """x0 and v0 say nothing: all m (x - x0) and all m (v - v0) add up to zero."""
    b, g = subtree(at.model, s.on), y_bar[:, None]
    m, c, R = at.params["mass"][:, b, None], at.params["com"][:, b], at.now.body_rotation[:, b]
    w, I, r = at.now.body_angular_velocity[:, b], symmetric(at.params["inertia"][:, b]), turn(R, c)
    x = at.now.body_position[:, b] + r - _subtree_com(at, s)[:, None]
    v = at.now.body_velocity[:, b] + np.cross(w, r) - _subtree_velocity(at, s)[:, None]
    own_w, own_g = turn_back(R, w), turn_back(R, np.broadcast_to(g, w.shape))
    x_bar, v_bar = m * np.cross(v, g), m * np.cross(g, x)
    r_bar = x_bar + np.cross(v_bar, w)
    bars.params["mass"][:, b] += (g * np.cross(x, v)).sum(-1)
    bars.params["com"][:, b] += turn_back(R, r_bar)
    bars.params["inertia"][:, b] += symmetric_vjp(outer(own_g, own_w))
    bars.now.body_position[:, b] += x_bar
    bars.now.body_velocity[:, b] += v_bar
    bars.now.body_angular_velocity[:, b] += np.cross(r, v_bar) + turn(R, turn(I, own_g))
    bars.now.body_rotation[:, b] += outer(r_bar, c) + outer(np.broadcast_to(g, w.shape), turn(I, own_w))
    bars.now.body_rotation[:, b] += outer(w, turn(I, own_g))


def _energy(name: str) -> SensorKind:
    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars.now, name)[:] += y_bar[:, 0]

    return SensorKind("model", lambda at, s: getattr(at.now, name)[:, None], add)


BODIES: dict[str, SensorKind] = {
    "subtreecom": SensorKind("body", _subtree_com, _subtree_com_vjp),
    "subtreelinvel": SensorKind("body", _subtree_velocity, _subtree_velocity_vjp),
    "subtreeangmom": SensorKind("body", _momentum, _momentum_vjp),
    "e_potential": _energy("potential_energy"),
    "e_kinetic": _energy("kinetic_energy"),
    "clock": SensorKind("model", lambda at, s: at.time[:, None], lambda at, s, y_bar, bars: None),
}
