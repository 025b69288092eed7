"""Sensors of a compiled file. Frames that are no site become one, named like the sensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.findings import Finding
from ..simulate.sensors import KINDS
from .builder import ModelBuilder
from .compiler import mujoco
from .names import Names


def add_sensors(b: ModelBuilder, m: Any, names: Names) -> None:
    beyond: dict[str, list[str]] = {}
    for s in range(m.nsensor):
        kind = mujoco().mjtSensor(int(m.sensor_type[s])).name.removeprefix("mjSENS_").lower()
        name, i = names.sensor[s], int(m.sensor_objid[s])
        if kind not in KINDS or m.sensor_reftype[s] or m.sensor_cutoff[s] > 0:
            more = " in another frame" if m.sensor_reftype[s] else " with a cutoff" if m.sensor_cutoff[s] > 0 else ""
            beyond.setdefault(f"sensor '{kind}'{more}", []).append(name)
            continue
        on = KINDS[kind].on
        if on == "site":
            b.sensor(name, kind, _site(b, m, names, int(m.sensor_objtype[s]), i, name))
        else:
            b.sensor(name, kind, names.joint[i] if on == "joint" else names.body[i])
    b.unsupported += [Finding(what, tuple(where), "not read") for what, where in beyond.items()]


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
