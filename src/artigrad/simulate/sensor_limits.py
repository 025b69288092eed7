"""Sensors of limits of joints and tendons: how far from the limit, how fast, and with what force; zero where none acts.

A limit acts from its margin on. Where both of a joint or tendon do, the lower one is read. Which acts is not differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Sensor
from .sensor_kind import At, SensorKind

LEAST = 1e-15


class Stop(NamedTuple):
    """Of a limit that acts, (B,) each: distance without the margin r, its rate, its sign (0: none acts), and whether the lower
    one does."""

    r: np.ndarray
    rate: np.ndarray
    sign: np.ndarray
    low: np.ndarray


def _stop(x: np.ndarray, rate: np.ndarray, limit: np.ndarray, margin: np.ndarray) -> Stop:
    """r = +-(x - limit) - margin"""
    below, above = x - limit[:, 0] - margin, limit[:, 1] - x - margin
    low = below < 0
    sign = np.where(low, 1.0, np.where(above < 0, -1.0, 0.0))
    return Stop(np.where(low, below, np.where(above < 0, above, 0.0)), sign * rate, sign, low)


def _ball(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angle within 0 and pi, and axis, of quaternions (B, 4)."""
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    q = np.where(q[:, :1] < 0, -q, q)
    sin = np.linalg.norm(q[:, 1:], axis=-1, keepdims=True)
    axis = np.where(sin > LEAST, q[:, 1:] / np.maximum(sin, LEAST), np.array([1.0, 0.0, 0.0]))
    return 2 * np.arctan2(sin[:, 0], q[:, 0]), axis


def _is_ball(at: At, s: Sensor) -> bool:
    return not at.model.joint_kind(s.on).axial


def _of_joint(at: At, s: Sensor) -> Stop:
    m, limit, margin = at.model, at.params["limit"][:, s.on], at.params["limit_margin"][:, s.on]
    k, a = m.joint_v[s.on], m.joint_q[s.on]
    if not _is_ball(at, s):
        return _stop(at.q[:, a], at.v[:, k], limit, margin)
    angle, axis = _ball(at.q[:, a : a + 4])
    r = np.max(limit, -1) - angle - margin
    sign = np.where(r < 0, -1.0, 0.0)
    return Stop(np.where(r < 0, r, 0.0), sign * (axis * at.v[:, k : k + 3]).sum(-1), sign, np.zeros(len(r), bool))


def _of_tendon(at: At, s: Sensor) -> Stop:
    assert at.driving is not None
    length, rate = at.driving.tendon_length[:, s.on], at.driving.tendon_velocity[:, s.on]
    return _stop(length, rate, at.params["tendon_limit"][:, s.on], at.params["tendon_limit_margin"][:, s.on])


def _add_limit(bars: At, stop: Stop, r_bar: np.ndarray, i: int, prefix: str = "") -> None:
    """To the limits and the margin that r is made of."""
    limit_bar = np.stack([np.where(stop.low, -r_bar, 0.0), np.where(stop.low, 0.0, r_bar)], -1)
    bars.params[f"{prefix}limit"][:, i] += limit_bar
    bars.params[f"{prefix}limit_margin"][:, i] -= r_bar


def _joint_position_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    stop, a = _of_joint(at, s), at.model.joint_q[s.on]
    r_bar = np.where(stop.sign != 0, y_bar[:, 0], 0.0)
    _add_limit(bars, stop, r_bar, s.on)
    if not _is_ball(at, s):
        bars.q[:, a] += stop.sign * r_bar
        return
    bars.q[:, a : a + 4] += _turn_bar(at.q[:, a : a + 4], -_ball(at.q[:, a : a + 4])[1] * r_bar[:, None])


def _turn_bar(q: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The cotangent of a quaternion for that of a turn in the axes of the body: theta = 2 vec(q* dq)"""
    size = np.linalg.norm(q, axis=-1, keepdims=True)
    w, v = q[:, :1] / size, q[:, 1:] / size
    return 2 / size * np.concatenate([-(v * g).sum(-1, keepdims=True), w * g - np.cross(g, v)], -1)


def _joint_rate_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    stop, k, a = _of_joint(at, s), at.model.joint_v[s.on], at.model.joint_q[s.on]
    g = stop.sign * y_bar[:, 0]
    if not _is_ball(at, s):
        bars.v[:, k] += g
        return
    angle, axis = _ball(at.q[:, a : a + 4])
    v, wide = at.v[:, k : k + 3], g[:, None]
    bars.v[:, k : k + 3] += wide * axis
    across = v - axis * (axis * v).sum(-1, keepdims=True)
    turn_bar = 0.5 * (across / np.tan(np.maximum(angle, LEAST) / 2)[:, None] + np.cross(v, axis))
    bars.q[:, a : a + 4] += _turn_bar(at.q[:, a : a + 4], wide * turn_bar)


def _tendon_position_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    stop = _of_tendon(at, s)
    r_bar = np.where(stop.sign != 0, y_bar[:, 0], 0.0)
    _add_limit(bars, stop, r_bar, s.on, "tendon_")
    assert bars.driving is not None
    bars.driving.tendon_length[:, s.on] += stop.sign * r_bar


def _tendon_rate_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    assert bars.driving is not None
    bars.driving.tendon_velocity[:, s.on] += _of_tendon(at, s).sign * y_bar[:, 0]


def _force(on: str) -> SensorKind:
    """Of the limit of a joint or tendon, as `sensing` gives it."""

    def place(at: At, s: Sensor) -> int:
        links = at.model.links
        return int(links.of_body[s.on + 1]) if on == "joint" else len(links.parent) + s.on

    def read(at: At, s: Sensor) -> np.ndarray:
        assert at.felt is not None
        return at.felt.limit_force[:, place(at, s), None]

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        assert bars.felt is not None
        bars.felt.limit_force[:, place(at, s)] += y_bar[:, 0]

    return SensorKind(on, read, add, felt=True)


LIMITS: dict[str, SensorKind] = {
    "jointlimitpos": SensorKind("joint", lambda at, s: _of_joint(at, s).r[:, None], _joint_position_vjp),
    "jointlimitvel": SensorKind("joint", lambda at, s: _of_joint(at, s).rate[:, None], _joint_rate_vjp),
    "jointlimitfrc": _force("joint"),
    "tendonlimitpos": SensorKind(
        "tendon", lambda at, s: _of_tendon(at, s).r[:, None], _tendon_position_vjp, drives=True
    ),
    "tendonlimitvel": SensorKind(
        "tendon", lambda at, s: _of_tendon(at, s).rate[:, None], _tendon_rate_vjp, drives=True
    ),
    "tendonlimitfrc": _force("tendon"),
}
