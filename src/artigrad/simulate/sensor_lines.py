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


LINES: dict[str, SensorKind] = {
    "tendonpos": _reading("tendon", "tendon_length"),
    "tendonvel": _reading("tendon", "tendon_velocity"),
    "actuatorpos": _reading("actuator", "length"),
    "actuatorvel": _reading("actuator", "velocity"),
    "actuatorfrc": _reading("actuator", "force"),
    "jointactfrc": _reading("joint", "joint_force"),
}
