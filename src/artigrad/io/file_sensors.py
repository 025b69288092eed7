"""Sensors of a compiled file. Frames that are no site become one, named like the sensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.findings import Finding
from ..simulate.sensors import KINDS
from .builder import SEEN_FROM, ModelBuilder
from .compiler import mujoco
from .names import Names

ZONE_SHAPES = {2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box"}  # mjtGeom
SAME_BODIES = 2  # mjtEq below it hold bodies


def add_sensors(b: ModelBuilder, m: Any, names: Names) -> None:
    """All that are read; the others go to the report."""
    beyond: dict[str, list[str]] = {}
    for s in range(m.nsensor):
        kind = mujoco().mjtSensor(int(m.sensor_type[s])).name.removeprefix("mjSENS_").lower()
        problem = _problem(b, m, names, s, kind)
        if problem is not None:
            beyond.setdefault(f"sensor '{kind}'{problem}", []).append(names.sensor[s])
        else:
            _add(b, m, names, s, kind)
    b.unsupported += [Finding(what, tuple(where), "not read") for what, where in beyond.items()]


def _problem(b: ModelBuilder, m: Any, names: Names, s: int, kind: str) -> str | None:
    """Why a sensor is not read, as a continuation of its name; None if it is."""
    i = int(m.sensor_objid[s])
    if kind not in KINDS:
        return ""
    if m.sensor_reftype[s] and kind not in SEEN_FROM:
        return " in another frame"
    if m.sensor_delay[s] or (m.sensor_interval[s].any() and m.sensor_interval[s][0] > 0):
        return " with a delay or an interval"
    if kind in ("tendonpos", "tendonvel") and names.tendon[i] not in b._tendons:
        return " of a tendon that is left out"
    if kind in ("force", "torque"):
        return _unheld(m)
    return None


def _unheld(m: Any) -> str | None:
    """What a joint carries is known where nothing but contacts presses on bodies."""
    held = any(m.eq_active0[e] and m.eq_type[e] < SAME_BODIES for e in range(m.neq))
    return " beside equalities of bodies" if held else None


def _add(b: ModelBuilder, m: Any, names: Names, s: int, kind: str) -> None:
    name, i, on = names.sensor[s], int(m.sensor_objid[s]), KINDS[kind].on
    more: dict[str, Any] = {"cutoff": float(m.sensor_cutoff[s])}
    if on == "site":
        where = _site(b, m, names, int(m.sensor_objtype[s]), i, name)
        if m.sensor_reftype[s]:
            more["ref"] = _site(b, m, names, int(m.sensor_reftype[s]), int(m.sensor_refid[s]), f"{name}:reference")
        if kind == "touch":
            more["zone"] = (ZONE_SHAPES[int(m.site_type[i])], m.site_size[i])
    else:
        parts = {"joint": names.joint, "body": names.body, "tendon": names.tendon, "actuator": names.actuator}
        where = parts[on][i] if on in parts else ""
    b.sensor(name, kind, where, **more)


def _site(b: ModelBuilder, m: Any, names: Names, kind: int, i: int, sensor: str) -> str:
    """The site of a sensor, added where the file names another frame: of a body, its inertia, a geom or a camera."""
    mj = mujoco()
    if kind == mj.mjtObj.mjOBJ_SITE:
        return names.site[i]
    if kind == mj.mjtObj.mjOBJ_GEOM:
        body, position, rotation = int(m.geom_bodyid[i]), m.geom_pos[i], m.geom_quat[i]
    elif kind == mj.mjtObj.mjOBJ_CAMERA:
        body, position, rotation = int(m.cam_bodyid[i]), m.cam_pos[i], m.cam_quat[i]
    elif kind == mj.mjtObj.mjOBJ_BODY:
        body, position, rotation = i, m.body_ipos[i], m.body_iquat[i]
    else:  # of a body's own frame
        body, position, rotation = i, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    name = sensor if sensor not in names.site else f"{sensor}:frame"
    return b.site(name, names.body[body], position=position, rotation=rotation)
