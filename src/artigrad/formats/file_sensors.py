"""Sensors of a compiled file. Frames other than sites become sites, named like the sensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import SEEN_FROM, ModelBuilder
from ..model.findings import Finding
from ..physics.sensors.contact_sensors import CONTACT_DATA, REDUCE
from ..physics.sensors.distance_sensors import DISTANCE_SENSORS
from ..physics.sensors.sensor_table import KINDS
from .contacts import visible
from .mujoco_api import GeomType, ObjType, member
from .names import Names

ZONE_SHAPES: dict[int, str] = {
    kind: kind.name.lower()
    for kind in (GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.BOX)
}
# types of parts of contact sensors
SIDES: dict[int, str] = {
    ObjType.UNKNOWN: "",
    ObjType.BODY: "body",
    ObjType.XBODY: "subtree",
    ObjType.GEOM: "shape",
    ObjType.SITE: "",
}
NORMAL = 4  # mjtRayDataField
RANGE_BITS = {0: "dist", 1: "dir", 2: "origin", 3: "point", 5: "depth"}


def add_sensors(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add all supported sensors; others are reported."""
    beyond: dict[str, list[str]] = {}
    for s in range(m.nsensor):
        kind = member("mjtSensor", m.sensor_type[s])
        problem = _problem(b, m, names, s, kind)
        if problem is not None:
            beyond.setdefault(f"sensor '{kind}'{problem}", []).append(names.sensor[s])
        else:
            _add(b, m, names, s, kind)
    b.unsupported += [Finding(what, tuple(where), "not read") for what, where in beyond.items()]


def _problem(b: ModelBuilder, m: Any, names: Names, s: int, kind: str) -> str | None:
    """Return the reason why a sensor is not supported, to follow its name in a message; None if it is."""
    i = int(m.sensor_objid[s])
    if kind not in KINDS:
        return ""
    if m.sensor_delay[s] or (m.sensor_interval[s].any() and m.sensor_interval[s][0] > 0):
        return " with a delay or an interval"
    if kind in DISTANCE_SENSORS:
        return _without_distance(b, m, names, s)
    if m.sensor_reftype[s] and kind not in (*SEEN_FROM, "contact", "insidesite"):
        return " in another frame"
    if kind == "rangefinder":
        return _unsupported_data(m, s)
    if kind == "contact" and not {int(m.sensor_objtype[s]), int(m.sensor_reftype[s])} <= set(SIDES):
        return " of this kind of part"
    if kind in ("tendonpos", "tendonvel") and names.tendon[i] not in b._tendons:
        return " of a tendon that is left out"
    return None


def _without_distance(b: ModelBuilder, m: Any, names: Names, s: int) -> str | None:
    """Return the shapes without distance computation."""
    geoms = [
        [g for g in range(m.ngeom) if (g if SIDES[kind] == "shape" else m.geom_bodyid[g]) == i]
        for kind, i in _ends(m, s)
    ]
    return " of a signed distance field" if any(names.geom[g] not in b._shapes for own in geoms for g in own) else None


def _unsupported_data(m: Any, s: int) -> str | None:
    """Return the data that a rangefinder does not support."""
    if m.sensor_objtype[s] != ObjType.SITE:
        return " of a camera"
    if int(m.sensor_intprm[s][0]) >> NORMAL & 1:
        return " of normals"
    fields = [g for g in range(m.ngeom) if m.geom_type[g] == GeomType.SDF and visible(m, g)]
    return " beside signed distance fields" if fields else None


def _add(b: ModelBuilder, m: Any, names: Names, s: int, kind: str) -> None:
    name, i, on = names.sensor[s], int(m.sensor_objid[s]), KINDS[kind].on
    more: dict[str, Any] = {"cutoff": float(m.sensor_cutoff[s])}
    if kind == "contact":
        where = _contact(m, names, s, more)
    elif kind in DISTANCE_SENSORS:
        where, more["between"] = "", _between(m, names, s)
    elif kind == "insidesite":  # in the file the frame comes first
        where = names.site[int(m.sensor_refid[s])]
        more["ref"] = _site(b, m, names, int(m.sensor_objtype[s]), i, name)
        more["zone"] = _zone(m, int(m.sensor_refid[s]))
    elif on == "site":
        where = _site(b, m, names, int(m.sensor_objtype[s]), i, name)
        if m.sensor_reftype[s]:
            more["ref"] = _site(b, m, names, int(m.sensor_reftype[s]), int(m.sensor_refid[s]), f"{name}:reference")
        if kind == "touch":
            more["zone"] = _zone(m, i)
        if kind == "rangefinder":
            more["data"] = [what for bit, what in RANGE_BITS.items() if int(m.sensor_intprm[s][0]) >> bit & 1]
    else:
        parts = {"joint": names.joint, "body": names.body, "tendon": names.tendon, "actuator": names.actuator}
        where = parts[on][i] if on in parts else ""
    b.add_sensor(name, kind, where, **more)


def _zone(m: Any, i: int) -> tuple[str, np.ndarray]:
    return GeomType(m.site_type[i]).name.lower(), m.site_size[i]


def _between(m: Any, names: Names, s: int) -> list[tuple[str, str]]:
    """Both sides of contacts or of a distance."""
    known = {"": [""], "shape": names.geom, "body": names.body, "subtree": names.body}
    return [(SIDES[kind], known[SIDES[kind]][i if SIDES[kind] else 0]) for kind, i in _ends(m, s)]


def _ends(m: Any, s: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the types (mjtObj) and indices of a sensor's object and reference."""
    first, second = (m.sensor_objtype[s], m.sensor_objid[s]), (m.sensor_reftype[s], m.sensor_refid[s])
    return (int(first[0]), int(first[1])), (int(second[0]), int(second[1]))


def _contact(m: Any, names: Names, s: int, more: dict[str, Any]) -> str:
    """Parse a contact sensor into `more`; return its site, if it has one."""
    data, reduce, num = (int(x) for x in m.sensor_intprm[s])
    more |= {
        "data": [what for k, what in enumerate(CONTACT_DATA) if data >> k & 1],
        "reduce": REDUCE[reduce],
        "num": num,
    }
    more["between"] = _between(m, names, s)
    if int(m.sensor_objtype[s]) != ObjType.SITE:
        return ""
    more["zone"] = _zone(m, int(m.sensor_objid[s]))
    return names.site[int(m.sensor_objid[s])]


def _site(b: ModelBuilder, m: Any, names: Names, kind: int, i: int, sensor: str) -> str:
    """Return the site of a sensor, added for another frame: of a body, its inertia, a geom or a camera."""
    if kind == ObjType.SITE:
        return names.site[i]
    if kind == ObjType.GEOM:
        body, position, rotation = int(m.geom_bodyid[i]), m.geom_pos[i], m.geom_quat[i]
    elif kind == ObjType.CAMERA:
        body, position, rotation = int(m.cam_bodyid[i]), m.cam_pos[i], m.cam_quat[i]
    elif kind == ObjType.BODY:
        body, position, rotation = i, m.body_ipos[i], m.body_iquat[i]
    else:  # of a body frame
        body, position, rotation = i, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    name = sensor if sensor not in names.site else f"{sensor}:frame"
    return b.add_site(name, names.body[body], position=position, rotation=rotation)
