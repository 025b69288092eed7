"""Collision shapes of a compiled file: masks, exclusions, pairs and friction as in MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build.builder import ModelBuilder
from ..build.validate import meaningful as reference
from ..model.findings import Finding
from . import height_record, hull_record
from .drawn_geoms import mesh_of
from .flags import contact_enabled
from .hull import hull_in
from .mujoco_api import GeomType, ObjType, SensorType
from .names import Names

# method of the builder, and number of entries of its size (three are passed as one vector)
METHODS: dict[int, tuple[str, int]] = {
    GeomType.SPHERE: ("add_sphere", 1),
    GeomType.CAPSULE: ("add_capsule", 2),
    GeomType.ELLIPSOID: ("add_ellipsoid", 3),
    GeomType.CYLINDER: ("add_cylinder", 2),
    GeomType.BOX: ("add_box", 3),
}
OTHERS: dict[int, str] = {GeomType.SDF: "a signed distance field"}
DISTANCES = (SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO)


def touching(m: Any) -> list[int]:
    """Return the geoms that can collide, by their masks or an explicit pair."""
    paired = {g for pair in _pairs(m) for g in pair}
    return [g for g in range(m.ngeom) if m.geom_contype[g] or m.geom_conaffinity[g] or g in paired]


def regarded(m: Any) -> list[int]:
    """Return the geoms that cannot collide, but are seen by rangefinders or used for distances."""
    known = set(touching(m))
    found = {g for g in range(m.ngeom) if SensorType.RANGEFINDER in m.sensor_type and visible(m, g)}
    found |= {g for g in range(m.ngeom) if feels_fluid(m, g)}
    for s in (s for s in range(m.nsensor) if m.sensor_type[s] in DISTANCES):
        for kind, i in ((m.sensor_objtype[s], m.sensor_objid[s]), (m.sensor_reftype[s], m.sensor_refid[s])):
            found |= {int(i)} if kind == ObjType.GEOM else {g for g in range(m.ngeom) if m.geom_bodyid[g] == i}
    return sorted(found - known)


def feels_fluid(m: Any, g: int) -> bool:
    """Return True if a geom is treated as an ellipsoid in a fluid; geoms fixed to the world are not."""
    wet = m.geom_fluid[g, 0] and (m.opt.density or m.opt.viscosity) and m.body_weldid[m.geom_bodyid[g]]
    return bool(wet and int(m.geom_type[g]) in (*METHODS, GeomType.MESH))


def visible(m: Any, g: int) -> bool:
    """Return True if rays intersect a geom: its material, or the geom itself, is not fully transparent."""
    return bool(m.mat_rgba[m.geom_matid[g], 3] if m.geom_matid[g] >= 0 else m.geom_rgba[g, 3])


def _pairs(m: Any) -> list[tuple[int, int]]:
    """Return the explicit pairs of geoms."""
    pairs = zip(m.pair_geom1, m.pair_geom2, strict=True)
    return [(int(one), int(other)) for one, other in pairs] if contact_enabled(m) else []


def add_shapes(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add shapes, exclusions and pairs; unsupported geoms are reported."""
    beyond: dict[str, list[str]] = {}
    touch = touching(m)
    for g in (*touch, *regarded(m)):
        kind = int(m.geom_type[g])
        if kind in OTHERS and g not in touch:
            continue
        if kind in OTHERS:
            beyond.setdefault(OTHERS[kind], []).append(names.geom[g])
            continue
        options: dict[str, Any] = {
            "name": names.geom[g],
            "position": m.geom_pos[g],
            "rotation": m.geom_quat[g],
            **_numbers(m, g),
            "group": int(m.geom_contype[g]),
            "touches": int(m.geom_conaffinity[g]),
            "seen": visible(m, g),
            "fluid": np.split(m.geom_fluid[g, 1:], (5, 8)) if feels_fluid(m, g) else None,
        }
        body = names.body[int(m.geom_bodyid[g])]
        saved = hull_record.read(m, g, names.geom[g]) if kind == GeomType.MESH else None
        if saved is not None:
            options |= {"surface_velocity": hull_record.in_its_axes(m, g, saved, m.geom_surfacevel[g])}
            options |= {"position": saved.position, "rotation": saved.rotation, "fluid": saved.fluid}
            own = {"half_axes": saved.half_axes, "hull": saved.hull, "surface": saved.surface}
            b.add_convex_hull(body, saved.points, **own, **options)
        elif kind == GeomType.MESH:
            points, hull = hull_in(m, int(m.geom_dataid[g]))
            surface = mesh_of(m, int(m.geom_dataid[g])) if SensorType.RANGEFINDER in m.sensor_type else None
            b.add_convex_hull(body, points, half_axes=m.geom_size[g], hull=hull, surface=surface, **options)
        elif kind == GeomType.HFIELD:
            heights, size = heights_of(m, int(m.geom_dataid[g]))
            heights = height_record.read(m, names.geom[g], heights)
            b.add_height_field(body, heights, size[:2], float(size[3]), **options)
        elif kind == GeomType.PLANE:
            b.add_plane(body, m.geom_size[g, :2], **options)
        else:
            method, count = METHODS[kind]
            size = m.geom_size[g, :count]
            getattr(b, method)(body, *([size] if count == 3 else map(float, size)), **options)
    b.unsupported += [Finding(f"contact of {what}", tuple(where), "touches nothing") for what, where in beyond.items()]
    _exclude(b, m, names)
    known = {g for g in touching(m) if int(m.geom_type[g]) not in OTHERS}
    twice = list[str]()
    for k, pair in enumerate(_pairs(m)):
        if {*pair} in [{*other} for other in _pairs(m)[:k]]:
            twice.append(" - ".join(names.geom[g] for g in pair))
        elif known.issuperset(pair):
            b.add_pair(
                *(names.geom[g] for g in pair),
                condim=int(m.pair_dim[k]),
                friction=m.pair_friction[k],
                solref=m.pair_solref[k],
                solref_friction=m.pair_solreffriction[k],
                solimp=m.pair_solimp[k],
                margin=m.pair_margin[k],
                gap=float(m.pair_gap[k]),
                adhesion=0.0 if m.opt.noslip_iterations else float(m.pair_adhesion[k]),
            )
    if twice:
        b.unsupported.append(Finding("second explicit pair of two geoms", tuple(twice), "only the first has contacts"))


def heights_of(m: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the heights (rows, columns) of height field k, m, and its four sizes: half extents, elevation, base."""
    first, rows, cols = (int(x[k]) for x in (m.hfield_adr, m.hfield_nrow, m.hfield_ncol))
    data = np.array(m.hfield_data[first : first + rows * cols], float)
    return data.reshape(rows, cols) * m.hfield_size[k, 2], m.hfield_size[k]


def _exclude(b: ModelBuilder, m: Any, names: Names) -> None:
    """Add the file's exclusions."""
    for signature in m.exclude_signature:
        b.add_exclude(names.body[int(signature) >> 16], names.body[int(signature) & 0xFFFF])


def _numbers(m: Any, g: int) -> dict[str, Any]:
    """Contact parameters of a geom."""
    slide, turn, roll = (float(x) for x in m.geom_friction[g])
    return {
        "condim": int(m.geom_condim[g]),
        "friction": max(slide, 0.0),  # MuJoCo treats negative values as zero
        "torsional_friction": max(turn, 0.0),
        "rolling_friction": max(roll, 0.0),
        "solref": reference(m.geom_solref[g]),
        "solimp": m.geom_solimp[g],
        "solmix": max(float(m.geom_solmix[g]), 0.0),
        "margin": float(m.geom_margin[g]),
        "priority": int(m.geom_priority[g]),
        "gap": float(m.geom_gap[g]),
        "surface_velocity": m.geom_surfacevel[g],
        "adhesion": 0.0 if m.opt.noslip_iterations else float(m.geom_adhesion[g]),
    }
