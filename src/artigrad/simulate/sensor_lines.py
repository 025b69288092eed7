"""Sensors of tendons and actuators. Those of an actuator are for one on a joint with one axis or on a tendon."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import POSITION, VELOCITY, Model, Sensor
from .sensor_kind import At, SensorKind


# -- tendons ---------------------------------------------------------------------------------------------------------------
def _pieces(at: At, t: int) -> tuple[int, int]:
    """The rows of `piece_scale` that tendon t has."""
    start = sum(len(tendon.pieces) for tendon in at.model.tendons[:t])
    return start, start + len(at.model.tendons[t].pieces)


def _straight(at: At, a: int, b: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Length and direction of a straight piece, and the difference of the velocities of its ends."""
    d = at.now.site_position[:, b] - at.now.site_position[:, a]
    long = np.linalg.norm(d, axis=-1, keepdims=True)
    return long, d / np.maximum(long, 1e-15), at.now.site_velocity[:, b] - at.now.site_velocity[:, a]


def length(at: At, t: int) -> np.ndarray:
    """(B, 1)"""
    out = np.zeros((len(at.q), 1))
    for n, piece in zip(range(*_pieces(at, t)), at.model.tendons[t].pieces, strict=True):
        scale = at.params["piece_scale"][:, n, None]
        if piece.kind == "joint":
            out += scale * at.q[:, at.model.joint_q[piece.a], None]
        else:
            out += scale * _straight(at, piece.a, piece.b)[0]
    return out


def length_vjp(at: At, t: int, y_bar: np.ndarray, bars: At) -> None:
    for n, piece in zip(range(*_pieces(at, t)), at.model.tendons[t].pieces, strict=True):
        scale = at.params["piece_scale"][:, n, None]
        if piece.kind == "joint":
            k = at.model.joint_q[piece.a]
            bars.q[:, k] += (scale * y_bar)[:, 0]
            bars.params["piece_scale"][:, n] += at.q[:, k] * y_bar[:, 0]
            continue
        long, direction, _ = _straight(at, piece.a, piece.b)
        bars.params["piece_scale"][:, n] += (long * y_bar)[:, 0]
        bars.now.site_position[:, piece.b] += direction * scale * y_bar
        bars.now.site_position[:, piece.a] -= direction * scale * y_bar


def velocity(at: At, t: int) -> np.ndarray:
    """(B, 1)"""
    out = np.zeros((len(at.q), 1))
    for n, piece in zip(range(*_pieces(at, t)), at.model.tendons[t].pieces, strict=True):
        scale = at.params["piece_scale"][:, n, None]
        if piece.kind == "joint":
            out += scale * at.v[:, at.model.joint_v[piece.a], None]
        else:
            _, direction, apart = _straight(at, piece.a, piece.b)
            out += scale * (direction * apart).sum(-1, keepdims=True)
    return out


def velocity_vjp(at: At, t: int, y_bar: np.ndarray, bars: At) -> None:
    for n, piece in zip(range(*_pieces(at, t)), at.model.tendons[t].pieces, strict=True):
        scale = at.params["piece_scale"][:, n, None]
        if piece.kind == "joint":
            k = at.model.joint_v[piece.a]
            bars.v[:, k] += (scale * y_bar)[:, 0]
            bars.params["piece_scale"][:, n] += at.v[:, k] * y_bar[:, 0]
            continue
        long, direction, apart = _straight(at, piece.a, piece.b)
        along = (direction * apart).sum(-1, keepdims=True)
        bars.params["piece_scale"][:, n] += (along * y_bar)[:, 0]
        across = (apart - direction * along) / np.maximum(long, 1e-15)
        for site, sign in ((piece.b, 1.0), (piece.a, -1.0)):
            bars.now.site_velocity[:, site] += sign * direction * scale * y_bar
            bars.now.site_position[:, site] += sign * across * scale * y_bar


# -- actuators ---------------------------------------------------------------------------------------------------------------
def readable(model: Model, j: int) -> bool:
    """Whether actuator j has sensors: it acts on a tendon, or on a joint with one axis."""
    kind, a = model.transmissions[j]
    return kind == "tendon" or (kind.startswith("joint") and model.joint_kind(a).axial)


def _position(at: At, j: int) -> np.ndarray:
    kind, a = at.model.transmissions[j]
    return length(at, a) if kind == "tendon" else at.q[:, at.model.joint_q[a], None]


def _rate(at: At, j: int) -> np.ndarray:
    kind, a = at.model.transmissions[j]
    return velocity(at, a) if kind == "tendon" else at.v[:, at.model.joint_v[a], None]


def _add(at: At, j: int, position_bar: np.ndarray, rate_bar: np.ndarray, bars: At) -> None:
    kind, a = at.model.transmissions[j]
    if kind == "tendon":
        length_vjp(at, a, position_bar, bars)
        velocity_vjp(at, a, rate_bar, bars)
    else:
        bars.q[:, at.model.joint_q[a]] += position_bar[:, 0]
        bars.v[:, at.model.joint_v[a]] += rate_bar[:, 0]


def _gear(at: At, j: int) -> np.ndarray:
    return at.params["gear"][:, j, None]


def _actuator_position(at: At, s: Sensor) -> np.ndarray:
    return _gear(at, s.on) * _position(at, s.on)


def _actuator_position_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    bars.params["gear"][:, s.on] += (_position(at, s.on) * y_bar)[:, 0]
    _add(at, s.on, _gear(at, s.on) * y_bar, 0.0 * y_bar, bars)


def _actuator_velocity(at: At, s: Sensor) -> np.ndarray:
    return _gear(at, s.on) * _rate(at, s.on)


def _actuator_velocity_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    bars.params["gear"][:, s.on] += (_rate(at, s.on) * y_bar)[:, 0]
    _add(at, s.on, 0.0 * y_bar, _gear(at, s.on) * y_bar, bars)


class _Drive(NamedTuple):
    """The steps from a control to a force, each before its limits."""

    control: np.ndarray
    wanted: np.ndarray
    limit: np.ndarray
    raw: np.ndarray
    force: np.ndarray


def _affine(at: At, j: int) -> tuple[np.ndarray, ...]:
    """gain, b0, b1, b2, servos included"""
    gain = at.params["gain"][:, j, None]
    b0, b1, b2 = (at.params["bias"][:, j, k, None] for k in range(3))
    kind = at.model.actuator_kind[j]
    return gain, b0, b1 - gain * (kind == POSITION), b2 - gain * (kind == VELOCITY)


def _drive(at: At, j: int) -> _Drive:
    gain, b0, b1, b2 = _affine(at, j)
    gear = _gear(at, j)
    control = np.clip(at.u[:, j, None], *(at.params["control_range"][:, j, k, None] for k in range(2)))
    wanted = gain * control + b0 + b1 * gear * _position(at, j)
    top = at.params["max_velocity"][:, j, None]
    limit = np.where(np.isfinite(top), -b2 * np.where(np.isfinite(top), top, 0.0), np.inf)
    on_length, on_velocity = (at.params["gain_slope"][:, j, k, None] for k in range(2))
    slope = on_length * gear * _position(at, j) + on_velocity * gear * _rate(at, j)
    raw = np.clip(wanted, -limit, limit) + b2 * gear * _rate(at, j) + slope * control
    force = np.clip(raw, *(at.params["force_range"][:, j, k, None] for k in range(2)))
    return _Drive(control, wanted, limit, raw, force)


def _add_force_bar(at: At, j: int, bar: np.ndarray, bars: At) -> None:
    """From the cotangent of the force of an actuator."""
    d, (gain, _, b1, b2), gear, p = _drive(at, j), _affine(at, j), _gear(at, j), bars.params
    ranges, kind = at.params["force_range"][:, j], at.model.actuator_kind[j]
    low, high = d.raw < ranges[:, 0, None], d.raw > ranges[:, 1, None]
    p["force_range"][:, j, 0] += (low * bar)[:, 0]
    p["force_range"][:, j, 1] += (high * bar)[:, 0]
    raw_bar = np.where(low | high, 0.0, bar)
    below, above = d.wanted < -d.limit, d.wanted > d.limit
    limit_bar: np.ndarray = above * raw_bar - below * raw_bar
    wanted_bar = np.where(below | above, 0.0, raw_bar)
    top = at.params["max_velocity"][:, j, None]
    known = np.where(np.isfinite(top), top, 0.0)
    b1_bar, b2_bar = wanted_bar * gear * _position(at, j), raw_bar * gear * _rate(at, j) - limit_bar * known
    p["max_velocity"][:, j] += np.where(np.isfinite(top), -limit_bar * b2, 0.0)[:, 0]
    gain_bar = wanted_bar * d.control - b1_bar * (kind == POSITION) - b2_bar * (kind == VELOCITY)
    p["gain"][:, j] += gain_bar[:, 0]
    for k, b_bar in enumerate((wanted_bar, b1_bar, b2_bar)):
        p["bias"][:, j, k] += b_bar[:, 0]
    on_length, on_velocity = (at.params["gain_slope"][:, j, k, None] for k in range(2))
    position, rate = _position(at, j), _rate(at, j)
    p["gain_slope"][:, j, 0] += (raw_bar * gear * position * d.control)[:, 0]
    p["gain_slope"][:, j, 1] += (raw_bar * gear * rate * d.control)[:, 0]
    length_bar = wanted_bar * b1 + raw_bar * on_length * d.control
    velocity_bar = raw_bar * (b2 + on_velocity * d.control)
    p["gear"][:, j] += (length_bar * position + velocity_bar * rate)[:, 0]
    control_bar = wanted_bar * gain + raw_bar * gear * (on_length * position + on_velocity * rate)
    limits, u = at.params["control_range"][:, j], at.u[:, j, None]
    under, over = u < limits[:, 0, None], u > limits[:, 1, None]
    p["control_range"][:, j, 0] += (under * control_bar)[:, 0]
    p["control_range"][:, j, 1] += (over * control_bar)[:, 0]
    bars.u[:, j] += np.where(under | over, 0.0, control_bar)[:, 0]
    _add(at, j, length_bar * gear, velocity_bar * gear, bars)


def _force(at: At, s: Sensor) -> np.ndarray:
    return _drive(at, s.on).force


def _force_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    _add_force_bar(at, s.on, y_bar, bars)


def _on_joint(at: At, s: Sensor) -> np.ndarray:
    """y = sum of gear force over the actuators on a joint"""
    return sum((_gear(at, j) * _drive(at, j).force for j in drivers(at.model, s.on)), np.zeros((len(at.q), 1)))


def _on_joint_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    for j in drivers(at.model, s.on):
        bars.params["gear"][:, j] += (_drive(at, j).force * y_bar)[:, 0]
        _add_force_bar(at, j, _gear(at, j) * y_bar, bars)


def drivers(model: Model, i: int) -> list[int]:
    """The actuators that act on joint i itself."""
    return [j for j, a in enumerate(model.actuator_joint) if a == i]


LINES: dict[str, SensorKind] = {
    "tendonpos": SensorKind(
        "tendon", lambda at, s: length(at, s.on), lambda at, s, y_bar, bars: length_vjp(at, s.on, y_bar, bars)
    ),
    "tendonvel": SensorKind(
        "tendon", lambda at, s: velocity(at, s.on), lambda at, s, y_bar, bars: velocity_vjp(at, s.on, y_bar, bars)
    ),
    "actuatorpos": SensorKind("actuator", _actuator_position, _actuator_position_vjp),
    "actuatorvel": SensorKind("actuator", _actuator_velocity, _actuator_velocity_vjp),
    "actuatorfrc": SensorKind("actuator", _force, _force_vjp),
    "jointactfrc": SensorKind("joint", _on_joint, _on_joint_vjp),
}
