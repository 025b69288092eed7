"""Sensors of tendons and actuators: entries of what `driving` gives."""

from __future__ import annotations

import numpy as np

from ..model.model import Model, Sensor
from .sensor_kind import At, SensorKind


def _entry(model: Model, part: str, on: int) -> int:
    """Which entry of a part a sensor reads: of joint forces that of its joint."""
    return model.joint_v[on] if part == "joint_force" else on


def _reading(on: str, part: str) -> SensorKind:
    def read(at: At, s: Sensor) -> np.ndarray:
        k = _entry(at.model, part, s.on)
        return getattr(at.driving, part)[:, k : k + 1]

    def add(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
        getattr(bars.driving, part)[:, _entry(at.model, part, s.on)] += y_bar[:, 0]

    return SensorKind(on, read, add, drives=True)


def _tendon_forces(at: At, s: Sensor) -> list[int]:
    """The actuators that pull at a tendon."""
    return [j for j, t in enumerate(at.model.transmissions) if t.kind == "tendon" and t.a == s.on]


def _tendon_force(at: At, s: Sensor) -> np.ndarray:
    """The sum of their forces."""
    assert at.driving is not None
    return at.driving.force[:, _tendon_forces(at, s)].sum(1, keepdims=True)


def _tendon_force_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    assert bars.driving is not None
    bars.driving.force[:, _tendon_forces(at, s)] += y_bar


LINES: dict[str, SensorKind] = {
    "tendonpos": _reading("tendon", "tendon_length"),
    "tendonvel": _reading("tendon", "tendon_velocity"),
    "actuatorpos": _reading("actuator", "length"),
    "actuatorvel": _reading("actuator", "velocity"),
    "actuatorfrc": _reading("actuator", "force"),
    "jointactfrc": _reading("joint", "joint_force"),
    "tendonactfrc": SensorKind("tendon", _tendon_force, _tendon_force_vjp, drives=True),
}
