"""Sensors of tendons and actuators: lengths, velocities and forces."""

from __future__ import annotations

from ...model.model import Model, Sensor
from .sensor_kind import Entry, SensorKind, function


def _part(on: str, part: str) -> SensorKind:
    """Return the record of a sensor that reads one value of `actuator_outputs`."""
    reading = function(lambda c, n: [c.actuator_outputs(part, c.table.place(n))], lambda x: x)
    place = (lambda m, s: (m.joint_v[s.on],)) if part == "joint_force" else (lambda m, s: (s.on,))
    return SensorKind(on, reading, actuator_outputs=lambda m: True, place=place)


def actuators_on(model: Model, tendon: int) -> list[Entry]:
    """Return the actuators that act on a tendon."""
    return [(j,) for j, t in enumerate(model.transmissions) if t.kind == "tendon" and t.a == tendon]


def _actuators(model: Model, s: Sensor) -> list[list[Entry]]:
    return [actuators_on(model, s.on)]


# sum of their forces
_TENDON_FORCE = function(
    lambda c, n: [],
    lambda total: total,
    lambda c, n: (([c.actuator_outputs("force", j)], lambda f: f) for j, *_ in c.table.entries(n)),
    0.0,
)


LINE_SENSORS: dict[str, SensorKind] = {
    "tendonpos": _part("tendon", "tendon_length"),
    "tendonvel": _part("tendon", "tendon_velocity"),
    "actuatorpos": _part("actuator", "length"),
    "actuatorvel": _part("actuator", "velocity"),
    "actuatorfrc": _part("actuator", "force"),
    "jointactfrc": _part("joint", "joint_force"),
    "tendonactfrc": SensorKind("tendon", _TENDON_FORCE, actuator_outputs=lambda m: True, lists=_actuators),
}
