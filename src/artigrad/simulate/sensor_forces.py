"""Sensors of accelerations and forces: accelerometers, what a joint carries, what touches."""

from __future__ import annotations

import numpy as np

from ..model.model import Sensor
from ..physics.tables import held_bodies
from .rays import reaches
from .sensor_bodies import symmetric, symmetric_vjp
from .sensor_kind import At, SensorKind, outer, subtree, turn, turn_back
from .sensor_tendons import Press, presses, presses_vjp


# -- accelerations -----------------------------------------------------------------------------------------------------------
def _proper(at: At, i: int) -> np.ndarray:
    """In world axes; under the hard law, whose forces are impulses, the mean over the coming step: (v_later - v)/dt - g"""
    if at.felt is not None:
        return at.felt.site_linear[:, i]
    assert at.later is not None
    return (at.later.site_velocity[:, i] - at.now.site_velocity[:, i]) / at.dt - at.params["gravity"]


def _accelerometer(at: At, s: Sensor) -> np.ndarray:
    return turn_back(at.now.site_rotation[:, s.on], _proper(at, s.on))


def _accelerometer_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    a_bar = turn(at.now.site_rotation[:, s.on], y_bar)
    bars.now.site_rotation[:, s.on] += outer(_proper(at, s.on), y_bar)
    if bars.felt is not None:
        bars.felt.site_linear[:, s.on] += a_bar
        return
    assert bars.later is not None
    bars.later.site_velocity[:, s.on] += a_bar / at.dt
    bars.now.site_velocity[:, s.on] -= a_bar / at.dt
    bars.params["gravity"][:] -= a_bar


def _world(name: str) -> SensorKind:
    """An acceleration of a site in world axes."""

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars.felt, name)[:, s.on] += y_bar

    return SensorKind("site", lambda at, s: getattr(at.felt, name)[:, s.on], add, felt=True)


# -- what a body's joint carries -----------------------------------------------------------------------------------------
def _outside(at: At, s: Sensor) -> np.ndarray:
    """Of every point that may touch, +1 if it presses on the second body and only this is carried, -1 if only the first."""
    inside = set(subtree(at.model, at.model.site_body[s.on]))
    return np.array([(b in inside) - (a in inside) for a, b in at.body_pairs], float).reshape(-1, 1)


def _held(at: At, s: Sensor) -> list[tuple[list[int], float, str]]:
    """Equalities that act on what is carried, (which, sign, where): at b on the second body, at a with -1 on the first."""
    inside = set(subtree(at.model, at.model.site_body[s.on]))
    bodies = {k: held_bodies(at.model, e) for k, e in enumerate(at.model.equalities) if e.kind in ("connect", "weld")}
    sides = ((0, -1.0, "held_a"), (1, 1.0, "held_b"))
    return [([k for k, of in bodies.items() if of[side] in inside], sign, where) for side, sign, where in sides]


def _carried(at: At, s: Sensor) -> tuple[np.ndarray, np.ndarray]:
    """Force, and torque about the site, that the body of a site needs from its parent, world axes:

    f = sum m A - sum pressed,   t = sum (c - x) x m A + I w' + w x I w - sum (p - x) x pressed + its torque,
    A = a + w' x r + w x (w x r),  r from the body's frame to its centre of mass c;  pressed: by contacts, connect and weld
    equalities and spatial tendons. As in MuJoCo actuators at sites, fluids and compensated weight are left out: they count as
    what the joint does.
    """
    assert at.felt is not None
    b, sign = subtree(at.model, at.model.site_body[s.on]), _outside(at, s)
    R, w, m = at.now.body_rotation[:, b], at.now.body_angular_velocity[:, b], at.params["mass"][:, b, None]
    r, I, turning = turn(R, at.params["com"][:, b]), symmetric(at.params["inertia"][:, b]), at.felt.body_angular[:, b]
    need = m * (at.felt.body_linear[:, b] + np.cross(turning, r) + np.cross(w, np.cross(w, r)))
    I_world = R @ I @ np.swapaxes(R, -1, -2)
    x = at.now.site_position[:, None, s.on]
    pressed = sign * at.felt.force
    force = need.sum(1) - pressed.sum(1)
    torque = -(np.cross(at.felt.point - x, pressed) + sign * at.felt.torque).sum(1)
    for e, way, where in _held(at, s):
        pulled = way * at.felt.held_force[:, e]
        force = force - pulled.sum(1)
        torque = torque - (np.cross(getattr(at.felt, where)[:, e] - x, pulled) + way * at.felt.held_torque[:, e]).sum(1)
    for press in presses(at):
        if press.body in b:
            force = force - press.force
            torque = torque - np.cross(press.place - x[:, 0], press.force)
    spun = np.cross(at.now.body_position[:, b] + r - x, need) + turn(I_world, turning) + np.cross(w, turn(I_world, w))
    return force, torque + spun.sum(1)


def _carried_vjp(at: At, s: Sensor, force_bar: np.ndarray, torque_bar: np.ndarray, bars: At) -> None:
    assert at.felt is not None and bars.felt is not None
    b, sign = subtree(at.model, at.model.site_body[s.on]), _outside(at, s)
    R, w, m = at.now.body_rotation[:, b], at.now.body_angular_velocity[:, b], at.params["mass"][:, b, None]
    c, I, turning = at.params["com"][:, b], symmetric(at.params["inertia"][:, b]), at.felt.body_angular[:, b]
    r, Rt = turn(R, c), np.swapaxes(R, -1, -2)
    A = at.felt.body_linear[:, b] + np.cross(turning, r) + np.cross(w, np.cross(w, r))
    I_world, x = R @ I @ Rt, at.now.site_position[:, None, s.on]
    arm, f, t = at.now.body_position[:, b] + r - x, force_bar[:, None], torque_bar[:, None]
    t = np.broadcast_to(t, w.shape)
    need_bar = f + np.cross(t, arm)
    arm_bar = np.cross(m * A, t)
    A_bar = m * need_bar
    wr = np.cross(w, r)
    wr_bar = np.cross(A_bar, w)
    spun_bar = np.cross(t, w)  # of I w
    w_bar = np.cross(wr, A_bar) + np.cross(r, wr_bar) + np.cross(turn(I_world, w), t) + turn(I_world, spun_bar)
    r_bar = arm_bar + np.cross(A_bar, turning) + np.cross(wr_bar, w)
    world_bar = outer(t, turning) + outer(spun_bar, w)  # of I_world
    bars.felt.body_linear[:, b] += A_bar
    bars.felt.body_angular[:, b] += np.cross(r, A_bar) + turn(I_world, t)
    bars.now.body_angular_velocity[:, b] += w_bar
    bars.now.body_position[:, b] += arm_bar
    bars.now.body_rotation[:, b] += outer(r_bar, c) + (world_bar + np.swapaxes(world_bar, -1, -2)) @ R @ I
    bars.params["com"][:, b] += turn_back(R, r_bar)
    bars.params["mass"][:, b] += (need_bar * A).sum(-1)
    bars.params["inertia"][:, b] += symmetric_vjp(Rt @ world_bar @ R)
    pressed, away = sign * at.felt.force, at.felt.point - x
    t = np.broadcast_to(torque_bar[:, None], away.shape)
    away_bar = -np.cross(pressed, t)
    bars.felt.force[:] -= sign * (f + np.cross(t, away))
    bars.felt.point[:] += away_bar
    bars.felt.torque[:] -= sign * t
    bars.now.site_position[:, s.on] -= arm_bar.sum(1) + away_bar.sum(1)
    for e, way, where in _held(at, s):
        away = getattr(at.felt, where)[:, e] - x
        t = np.broadcast_to(torque_bar[:, None], away.shape)
        away_bar = -np.cross(way * at.felt.held_force[:, e], t)
        bars.felt.held_force[:, e] -= way * (f + np.cross(t, away))
        bars.felt.held_torque[:, e] -= way * t
        getattr(bars.felt, where)[:, e] += away_bar
        bars.now.site_position[:, s.on] -= away_bar.sum(1)
    nothing = np.zeros_like(force_bar)

    def bars_of(press: Press) -> tuple[np.ndarray, np.ndarray]:
        if press.body not in b:
            return nothing, nothing
        place_bar = -np.cross(press.force, torque_bar)
        bars.now.site_position[:, s.on] -= place_bar
        return -(force_bar + np.cross(torque_bar, press.place - x[:, 0])), place_bar

    presses_vjp(at, bars_of, bars)


def _carries(k: int) -> SensorKind:
    """Force (0) or torque (1) in the axes of the site."""

    def read(at: At, s: Sensor) -> np.ndarray:
        return turn_back(at.now.site_rotation[:, s.on], _carried(at, s)[k])

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        R, x = at.now.site_rotation[:, s.on], _carried(at, s)[k]
        bar, none = turn(R, y_bar), np.zeros_like(y_bar)
        bars.now.site_rotation[:, s.on] += outer(x, y_bar)
        _carried_vjp(at, s, *((bar, none) if k == 0 else (none, bar)), bars)

    return SensorKind("site", read, add, felt=True, presses=True)


# -- touch ---------------------------------------------------------------------------------------------------------------
def _pressing(at: At, s: Sensor) -> np.ndarray:
    """Which points press on the body of a site where its zone is: (B, points) of 0 and 1. Not differentiated."""
    assert at.felt is not None and s.zone is not None
    body = at.model.site_body[s.on]
    side = np.array([1.0 if a == body else -1.0 if b == body else 0.0 for a, b in at.body_pairs])
    R, x = at.now.site_rotation[:, None, s.on], at.now.site_position[:, None, s.on]
    start, ray = turn_back(R, at.felt.point - x), turn_back(R, at.felt.normal * side[:, None])
    return (side != 0) & (at.felt.along[..., 0] > 0) & reaches(s.zone, start, ray)


def _touch(at: At, s: Sensor) -> np.ndarray:
    """y = sum of the normal forces in the zone"""
    assert at.felt is not None
    return (_pressing(at, s) * at.felt.along[..., 0]).sum(1, keepdims=True)


def _touch_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    assert bars.felt is not None
    bars.felt.along[..., 0] += _pressing(at, s) * y_bar


FORCES: dict[str, SensorKind] = {
    "accelerometer": SensorKind("site", _accelerometer, _accelerometer_vjp, felt=True),
    "framelinacc": _world("site_linear"),
    "frameangacc": _world("site_angular"),
    "force": _carries(0),
    "torque": _carries(1),
    "touch": SensorKind("site", _touch, _touch_vjp, cut="above", felt=True),
}
