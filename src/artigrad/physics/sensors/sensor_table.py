"""Table of all sensor kinds; integers and parameters of the sensors of a model for kernels."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...compiler import INT, INTS, SHARED, ArgumentKind
from ...model.model import Model, Sensor
from ..actuator_outputs import actuator_outputs_size
from ..frame_accelerations import acceleration_data_size
from ..outputs import outputs_size
from .body_sensors import BODY_SENSORS
from .contact_sensors import CONTACT_DATA, CONTACT_SENSORS
from .distance_sensors import DISTANCE_SENSORS, distance_arguments, distance_features, take_distances
from .distance_sensors import INTEGERS as DISTANCE_INTEGERS
from .force_sensors import FORCE_SENSORS
from .frame_sensors import FRAME_SENSORS
from .limit_sensors import LIMIT_SENSORS
from .line_sensors import LINE_SENSORS
from .rangefinders import RANGE_DATA, RANGE_SENSORS, surface_corners, zone_of
from .sensor_kind import LISTS, PLACES, WIDTH, SensorFeatures, SensorKind, SensorTable
from .tendon_forces import tendon_actuators

KINDS: dict[str, SensorKind] = {**FRAME_SENSORS, **BODY_SENSORS, **LINE_SENSORS, **LIMIT_SENSORS, **FORCE_SENSORS}
KINDS |= CONTACT_SENSORS | RANGE_SENSORS | DISTANCE_SENSORS
READINGS = tuple(dict.fromkeys(kind.reading for kind in KINDS.values()))  # some kinds share one
ABOVE, BOTH = range(2)  # how a cutoff bounds a reading
DATA = {"rangefinder": RANGE_DATA, "contact": CONTACT_DATA}  # parts of readings that a sensor has or has not
PARTS = max(map(len, DATA.values()))

INTEGERS: dict[str, ArgumentKind] = {
    "sensor_count": INT,
    **dict.fromkeys(
        (f"sensor_{k}" for k in ("reading", "first", "size", "is_cut", "cut", "zone", "places", "starts", "entry")),
        INTS,
    ),
    **dict.fromkeys((f"sensor_{k}" for k in ("data_row", "has_data", "data_at", "data_width")), INTS),
    **dict.fromkeys((f"sensor_{k}" for k in ("tendon_first", "tendon_actuator")), INTS),
    **dict.fromkeys((f"sensor_{k}" for k in ("numbers", "corners")), SHARED),
}


def size_of(s: Sensor) -> int:
    """Return the number of readings of a sensor."""
    return KINDS[s.kind].size(s)


def is_cut(s: Sensor) -> bool:
    """Return True if a cutoff bounds the readings of a sensor."""
    return s.cutoff > 0 and KINDS[s.kind].cut != ""


def sensor_sizes(model: Model) -> list[int]:
    """Return the number of readings of each sensor."""
    return [size_of(s) for s in model.sensors]


def readings_size(model: Model) -> int:
    """Return the number of readings of all sensors."""
    return sum(sensor_sizes(model))


_features: WeakKeyDictionary[Model, SensorFeatures] = WeakKeyDictionary()


def sensor_features(model: Model, impulses: bool) -> SensorFeatures:
    """Return the settings that kernels of the sensors are compiled for. impulses: True if contacts act by impulses."""
    if model not in _features:
        _features[model] = _find_features(model)
    found = _features[model]
    if found.acceleration_data and impulses and model.has_contact:
        return found._replace(acceleration_data=False, after=True)
    return found


def _find_features(model: Model) -> SensorFeatures:
    kinds = frozenset(s.kind for s in model.sensors)
    cast = frozenset(entry[1] for s in model.sensors if s.kind == "rangefinder" for entry in _lists(model, s)[0])
    zones = frozenset(zone_of(s) for s in model.sensors if s.zone is not None)
    acceleration_data = any(KINDS[kind].acceleration_data for kind in kinds)
    actuator_outputs = any(KINDS[kind].actuator_outputs(model) for kind in kinds)
    cut = frozenset(s.kind for s in model.sensors if is_cut(s))
    return SensorFeatures(
        kinds, cut, cast, zones, acceleration_data, actuator_outputs, distances=distance_features(model)
    )


def sensor_signature(features: SensorFeatures) -> dict[str, ArgumentKind]:
    """Return the arguments that sensors add to a kernel."""
    return INTEGERS | (DISTANCE_INTEGERS if features.distances else {})


def _lists(model: Model, s: Sensor) -> list[list[tuple[int, ...]]]:
    """Return the lists of entries of a sensor, each entry WIDTH integers."""
    own = [[(*entry, *(0,) * (WIDTH - len(entry))) for entry in entries] for entries in KINDS[s.kind].lists(model, s)]
    return own + [[] for _ in range(LISTS - len(own))]


def sensor_arguments(model: Model, dtype: np.dtype) -> dict[str, Any]:
    """Return the values of the sensor arguments of a model."""
    sensors = model.sensors
    places = [KINDS[s.kind].place(model, s) for s in sensors]
    lists = [entries for s in sensors for entries in _lists(model, s)]
    parts = [[(name in s.data, size) for name, size in DATA.get(s.kind, {}).items()] for s in sensors]
    offsets = [np.cumsum([0, *(size * there for there, size in own)]) for own in parts]
    actuators, tendon_first = tendon_actuators(model)

    def ints(values: Any) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    def filled(rows: Any) -> np.ndarray:
        return ints(x for row in rows for x in (*row, *(0,) * (PARTS - len(row))))

    sizes = sensor_sizes(model)
    numbers = [(s.cutoff, *((0.0, 0.0, 0.0) if s.zone is None else s.zone.size)) for s in sensors]
    return {
        "sensor_count": len(sensors),
        "sensor_reading": ints(READINGS.index(KINDS[s.kind].reading) for s in sensors),
        "sensor_first": ints(np.cumsum([0, *sizes])),
        "sensor_size": ints(sizes),
        "sensor_is_cut": ints(is_cut(s) for s in sensors),
        "sensor_cut": ints(ABOVE if KINDS[s.kind].cut == "above" else BOTH for s in sensors),
        "sensor_zone": ints(zone_of(s) for s in sensors),
        "sensor_places": ints(x for row in places for x in (*row, *(0,) * (PLACES - len(row)))),
        "sensor_starts": ints(np.cumsum([0, *map(len, lists)])),
        "sensor_entry": ints(x for entries in lists for entry in entries for x in entry),
        "sensor_data_row": ints(n * PARTS for n in range(len(sensors))),
        "sensor_has_data": filled([int(there) for there, _ in own] for own in parts),
        "sensor_data_at": filled(own[:-1].tolist() for own in offsets),
        "sensor_data_width": ints(own[-1] for own in offsets),
        "sensor_tendon_first": ints(tendon_first),
        "sensor_tendon_actuator": ints(actuators),
        "sensor_numbers": np.array([x for row in numbers for x in row] + [0.0], dtype),
        "sensor_corners": np.ascontiguousarray(surface_corners(model), dtype),
        **(distance_arguments(model, dtype) if distance_features(model) else {}),
    }


def sensor_work(model: Model) -> dict[str, int]:
    """Return scratch sizes of the readings and their cotangents."""
    n = readings_size(model)
    sizes = {
        "frames": outputs_size(model.nb, model.ns),
        "acceleration_data": acceleration_data_size(model),
        "actuator_outputs": actuator_outputs_size(model),
    }
    sizes = {name: max(size, 1) for name, size in sizes.items()}
    return sizes | {f"{name}_bar": size for name, size in sizes.items()} | {"readings": n}


def take_sensors(arguments: dict[str, Any], features: SensorFeatures) -> SensorTable:
    """Select the sensor arguments from a kernel's arguments."""
    measured = take_distances(arguments, features.distances) if features.distances else None
    return SensorTable(features=features, measured=measured, **{name[7:]: arguments.pop(name) for name in INTEGERS})
