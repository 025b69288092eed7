"""Sensors of joints and frames; a frame may be seen from another one, its reference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import Model, Sensor
from ..model.quaternions import of_matrix, product
from .sensor_kind import At, SensorKind, hat, outer, turn, turn_back


# -- joints --------------------------------------------------------------------------------------------------------------
def entries(what: str, count: int) -> SensorKind:
    """Entries of q or v as they are."""

    def place(m: Model, i: int) -> slice:
        start = m.joint_q[i] if what == "q" else m.joint_v[i]
        return slice(start, start + count)

    def read(at: At, s: Sensor) -> np.ndarray:
        return getattr(at, what)[:, place(at.model, s.on)]

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars, what)[:, place(at.model, s.on)] += y_bar

    return SensorKind("joint", read, add, cut="" if count == 4 else "both")


# -- frames --------------------------------------------------------------------------------------------------------------
class SiteFrame(NamedTuple):
    """Pose and velocities of a site, in the world or in its reference; (B, ...) each."""

    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray


def _world(at: At, i: int) -> SiteFrame:
    return SiteFrame(*(getattr(at.now, f"site_{name}")[:, i] for name in SiteFrame._fields))


def _add_world(bars: At, i: int, frame_bar: SiteFrame) -> None:
    for name, bar in frame_bar._asdict().items():
        getattr(bars.now, f"site_{name}")[:, i] += bar


def frame(at: At, s: Sensor) -> SiteFrame:
    """x' = Rr^T (x - xr),  R' = Rr^T R,  v' = Rr^T (v - vr - wr x (x - xr)),  w' = Rr^T (w - wr)"""
    own = _world(at, s.on)
    if s.ref < 0:
        return own
    ref = _world(at, s.ref)
    apart = own.position - ref.position
    drift = own.velocity - ref.velocity - np.cross(ref.angular_velocity, apart)
    R = ref.rotation
    spin = own.angular_velocity - ref.angular_velocity
    return SiteFrame(turn_back(R, apart), R.transpose(0, 2, 1) @ own.rotation, turn_back(R, drift), turn_back(R, spin))


def frame_vjp(at: At, s: Sensor, bar: SiteFrame, bars: At) -> None:
    if s.ref < 0:
        _add_world(bars, s.on, bar)
        return
    own, ref = _world(at, s.on), _world(at, s.ref)
    R, apart = ref.rotation, own.position - ref.position
    drift = own.velocity - ref.velocity - np.cross(ref.angular_velocity, apart)
    spin = own.angular_velocity - ref.angular_velocity
    x, v, w = (turn(R, y) for y in (bar.position, bar.velocity, bar.angular_velocity))
    R_bar = outer(apart, bar.position) + outer(drift, bar.velocity) + outer(spin, bar.angular_velocity)
    R_bar = R_bar + own.rotation @ bar.rotation.transpose(0, 2, 1)
    x = x + np.cross(ref.angular_velocity, v)  # -(wr x apart) . v
    _add_world(bars, s.on, SiteFrame(x, R @ bar.rotation, v, w))
    _add_world(bars, s.ref, SiteFrame(-x, R_bar, -v, -w - np.cross(apart, v)))


def _part(name: str) -> SensorKind:
    """One part of the frame as it is."""

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        frame_vjp(at, s, _only(at, **{name: y_bar}), bars)

    return SensorKind("site", lambda at, s: getattr(frame(at, s), name), add)


def _only(at: At, **parts: np.ndarray) -> SiteFrame:
    B = len(at.q)
    zero = SiteFrame(np.zeros((B, 3)), np.zeros((B, 3, 3)), np.zeros((B, 3)), np.zeros((B, 3)))
    return zero._replace(**parts)


def _axis(k: int) -> SensorKind:
    """An axis of a site: column k of R."""

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        R_bar = np.zeros((len(at.q), 3, 3))
        R_bar[:, :, k] = y_bar
        frame_vjp(at, s, _only(at, rotation=R_bar), bars)

    return SensorKind("site", lambda at, s: frame(at, s).rotation[:, :, k], add, cut="")


def _quaternion(at: At, s: Sensor) -> np.ndarray:
    """w x y z of R, of the two that of the product of all quaternions along the tree, which changes continuously"""
    q, along = of_matrix(frame(at, s).rotation), _along_tree(at, s.on)
    if s.ref >= 0:
        along = product(_along_tree(at, s.ref) * [1.0, -1.0, -1.0, -1.0], along)
    return np.where(np.sum(q * along, 1, keepdims=True) < 0, -q, q)


def _along_tree(at: At, i: int) -> np.ndarray:
    """The product of the quaternions of all bodies and joints between the world and site i, and that of the site (B, 4)."""
    m, q = at.model, at.params["site_rotation"][:, i]
    body = m.site_body[i]
    while body >= 0:
        joint, first = m.joint_kind(body), m.joint_q[body]
        if joint.quaternion:
            first += joint.straight
            q = product(at.q[:, first : first + 4], q)
        elif joint.angular:
            half = 0.5 * at.q[:, first : first + 1]
            q = product(np.concatenate([np.cos(half), np.sin(half) * at.params["axis"][:, body]], 1), q)
        q, body = q if joint.floating else product(at.params["rotation"][:, body], q), m.parent[body]
    return np.broadcast_to(q, (len(at.q), 4))


def _quaternion_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    """R_bar = [g] R / 2 with g_k = y_bar . (0, e_k) (x) y / 2: a turn w of the world does dR = [w] R"""
    w, x, y, z = _quaternion(at, s).T
    rates = 0.5 * np.array([[-x, w, -z, y], [-y, z, w, -x], [-z, -y, x, w]])  # (3, 4, B)
    g = np.einsum("kcb,bc->bk", rates, y_bar)
    frame_vjp(at, s, _only(at, rotation=0.5 * hat(g) @ frame(at, s).rotation), bars)


def _own(field: str) -> SensorKind:
    """y = R^T x: a vector of a site in its own axes."""

    def read(at: At, s: Sensor) -> np.ndarray:
        return turn_back(at.now.site_rotation[:, s.on], getattr(at.now, field)[:, s.on])

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        R, x = at.now.site_rotation[:, s.on], getattr(at.now, field)[:, s.on]
        getattr(bars.now, field)[:, s.on] += turn(R, y_bar)
        bars.now.site_rotation[:, s.on] += outer(x, y_bar)

    return SensorKind("site", read, add)


def _magnetometer(at: At, s: Sensor) -> np.ndarray:
    """y = R^T magnetic"""
    return turn_back(at.now.site_rotation[:, s.on], np.broadcast_to(at.params["magnetic"], (len(at.q), 3)))


def _magnetometer_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    field = np.broadcast_to(at.params["magnetic"], (len(at.q), 3))
    bars.params["magnetic"][:] += turn(at.now.site_rotation[:, s.on], y_bar)
    bars.now.site_rotation[:, s.on] += outer(field, y_bar)


JOINTS_AND_FRAMES: dict[str, SensorKind] = {
    "jointpos": entries("q", 1),
    "jointvel": entries("v", 1),
    "ballquat": entries("q", 4),
    "ballangvel": entries("v", 3),
    "framepos": _part("position"),
    "framequat": SensorKind("site", _quaternion, _quaternion_vjp, cut=""),
    "framexaxis": _axis(0),
    "frameyaxis": _axis(1),
    "framezaxis": _axis(2),
    "framelinvel": _part("velocity"),
    "frameangvel": _part("angular_velocity"),
    "velocimeter": _own("site_velocity"),
    "gyro": _own("site_angular_velocity"),
    "magnetometer": SensorKind("site", _magnetometer, _magnetometer_vjp),
}
