"""Sensors of limits of joints and tendons: distance, velocity and force; zero where no limit is active.

A limit is active from its margin on. If both limits of a joint or tendon are active, the lower one is read. The choice is
not differentiated.
"""

from __future__ import annotations

from typing import Any

from ...compiler import arctan2, maximum, select, sqrt, steady
from ...model.model import Model, Sensor
from ..spatial import Quat, Vec3, dot, quat_normalize
from .sensor_inputs import Input, SensorInputs
from .sensor_kind import Entry, SensorKind, by_place, function

LEAST = 1e-15  # sine of half the angle below which the axis of a rotation is taken as x


def _acts(x: Any, low: Any, high: Any, margin: Any) -> tuple[Any, Any]:
    """Return masks of the active lower limit and of the active upper one."""
    below = steady(x - low - margin) < 0.0
    above = steady(high - x - margin) < 0.0
    return below, above


def _distance(x: Any, low: Any, high: Any, margin: Any) -> Any:
    """Distance r = +-(x - limit) - margin."""
    below, above = _acts(x, low, high, margin)
    return select(below, x - low - margin, select(above, high - x - margin, 0.0))


def _velocity(x: Any, v: Any, low: Any, high: Any, margin: Any) -> Any:
    below, above = _acts(x, low, high, margin)
    return select(below, v, select(above, -v, 0.0))


# -- ball joints: the angle from zero ----------------------------------------------------------------------------------------
def _angle_and_axis(q: Quat) -> tuple[Any, Vec3]:
    """Angle in [0, pi] and axis of a rotation."""
    q = quat_normalize(q)
    q = select(steady(q.w) < 0.0, -q, q)
    sine = sqrt(dot(q.u, q.u))
    some = steady(sine) > LEAST
    axis = select(some, q.u / select(some, sine, 1.0), Vec3(1.0, 0.0, 0.0))
    return 2.0 * arctan2(sine, q.w), axis


def _reach(low: Any, high: Any, margin: Any, angle: Any) -> Any:
    """Distance r = limit - angle - margin."""
    return maximum(low, high) - angle - margin


def _ball_distance(q: Quat, low: Any, high: Any, margin: Any) -> Any:
    r = _reach(low, high, margin, _angle_and_axis(q)[0])
    return select(steady(r) < 0.0, r, 0.0)


def _ball_velocity(q: Quat, v: Vec3, low: Any, high: Any, margin: Any) -> Any:
    angle, axis = _angle_and_axis(q)
    return select(steady(_reach(low, high, margin, angle)) < 0.0, -dot(axis, v), 0.0)


# -- inputs ----------------------------------------------------------------------------------------------------------------
def _joint_place(m: Model, s: Sensor) -> Entry:
    return m.joint_q[s.on], m.joint_v[s.on], int(m.links.of_body[s.on + 1]), int(not m.joint_kind(s.on).axial)


def _joint_limit(c: SensorInputs, n: Any) -> list[Input]:
    return [c.constant("link", c.table.place(n, 2), name) for name in ("low", "high", "limit_margin")]


def _tendon_limit(c: SensorInputs, n: Any) -> list[Input]:
    return [c.constant("line", c.table.place(n), name) for name in ("low", "high", "margin")]


def _joint(axial: Any, ball: Any, velocity: bool) -> SensorKind:
    def own(number: type, vector: type) -> Any:
        def inputs(c: SensorInputs, n: Any) -> list[Input]:
            v = [c.v(c.table.place(n, 1), vector)] if velocity else []
            return [c.q(c.table.place(n), number), *v, *_joint_limit(c, n)]

        return inputs

    cases = {0: function(own(float, float), axial), 1: function(own(Quat, Vec3), ball)}
    return SensorKind("joint", by_place(3, cases), place=_joint_place)


def _tendon(value: Any, *parts: str) -> SensorKind:
    reading = function(
        lambda c, n: [*(c.actuator_outputs(part, c.table.place(n)) for part in parts), *_tendon_limit(c, n)], value
    )
    return SensorKind("tendon", reading, actuator_outputs=lambda m: True)


_FORCE = function(lambda c, n: [c.limit_force(c.table.place(n))], lambda f: f)


def _link_of_joint(m: Model, s: Sensor) -> Entry:
    return (int(m.links.of_body[s.on + 1]),)


def _after_links(m: Model, s: Sensor) -> Entry:
    return (len(m.links.parent) + s.on,)


LIMIT_SENSORS: dict[str, SensorKind] = {
    "jointlimitpos": _joint(_distance, _ball_distance, velocity=False),
    "jointlimitvel": _joint(_velocity, _ball_velocity, velocity=True),
    "jointlimitfrc": SensorKind("joint", _FORCE, acceleration_data=True, place=_link_of_joint),
    "tendonlimitpos": _tendon(_distance, "tendon_length"),
    "tendonlimitvel": _tendon(_velocity, "tendon_length", "tendon_velocity"),
    "tendonlimitfrc": SensorKind("tendon", _FORCE, acceleration_data=True, place=_after_links),
}
