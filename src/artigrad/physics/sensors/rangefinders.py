"""Rangefinders, with rays along z of their sites that ignore the body of the site; and sensors of a site inside a zone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...compiler import Reals, carry, loop, select, steady, switch, when_any
from ...errors import ModelError
from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, POINTS, SHAPES, SPHERE, Model, Sensor
from ..spatial import Mat3, Vec3, dot
from ..spatial.vectors import outer
from .ray_casting import NEVER, SOLIDS, Field, Hit, inside, meet_field, meet_triangles
from .sensor_inputs import FrameRow, Placed, SensorInputs, ShapePlace
from .sensor_kind import Entry, Reading, SensorKind, put, taken

NONE = -1.0  # reading where nothing is
RANGE_DATA = {"dist": 1, "dir": 3, "origin": 3, "point": 3, "depth": 1}
ZONES = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX)  # kinds of shapes of a zone


# -- shapes in the way -----------------------------------------------------------------------------------------------------
def castable_shapes(model: Model, site: int) -> list[int]:
    """Return the shapes that the rays of a site can hit: all but those of its body."""
    shapes = model.shapes
    return [k for k, body in enumerate(shapes.body) if body != model.site_body[site] and k not in shapes.unseen]


def check_surfaces(model: Model) -> None:
    """Raise InputError for a convex hull without a surface mesh that rays can hit."""
    for s in model.sensors:
        for k in castable_shapes(model, s.on) if s.kind == "rangefinder" else ():
            if model.shapes.kind[k] == POINTS and model.shapes.surfaces[k] is None:
                name = model.shapes.names[k]
                raise ModelError(
                    f"rangefinder '{s.name}' sees '{name}', corners without a surface: give it one, or seen=False"
                )


def surface_corners(model: Model) -> np.ndarray:
    """Return the vertices of all triangles that rays can hit, nine values each."""
    parts = [surface.vertices[surface.faces].reshape(-1) for surface in _surfaces(model) if surface is not None]
    return np.concatenate([*parts, np.zeros(1)])


def _surfaces(model: Model) -> list[Any]:
    """Return the surface mesh of each shape that rays can hit, if it has one."""
    seen = {k for s in model.sensors if s.kind == "rangefinder" for k in castable_shapes(model, s.on)}
    return [surface if k in seen else None for k, surface in enumerate(model.shapes.surfaces)]


def _shapes(m: Model, s: Sensor) -> list[list[Entry]]:
    """Return the shapes: index, kind (POINTS: a surface mesh), first and last triangle."""
    surfaces, out, ends = _surfaces(m), list[Entry](), dict[int, int]()
    total = 0
    for k, surface in enumerate(surfaces):
        total += 0 if surface is None else len(surface.faces)
        ends[k] = total
    for k in castable_shapes(m, s.on):
        surface = surfaces[k]
        count = 0 if surface is None else len(surface.faces)
        out.append((k, m.shapes.kind[k] if surface is None else POINTS, ends[k] - count, ends[k]))
    return [out]


# -- rays ------------------------------------------------------------------------------------------------------------------
class Cast(NamedTuple):
    """Ray and shape: the hit, and origin and direction of the ray in the axes of the shape."""

    hit: Hit
    start: Vec3
    ray: Vec3


def _cast(c: SensorInputs, entry: tuple[Any, ...], p: Vec3, d: Vec3) -> Cast:
    """Return the cast of a world ray on the shape of an entry."""
    shape, kind, first, end, *_ = entry
    s, X = c.s, c.shape(shape).load()
    start, ray, size = X.R.T @ (p - X.p), X.R.T @ d, s.const.shape[shape].size

    def field() -> Hit:
        m = s.model
        return meet_field(
            Field(size, _heights(s.const, m.shape_height[shape]), m.shape_rows[shape], m.shape_cols[shape]), start, ray
        )

    cases: dict[int, Callable[[], Hit]] = {k: partial(solid, size, start, ray) for k, solid in SOLIDS.items()}
    cases |= {POINTS: lambda: meet_triangles(c.table.corners, first, end, start, ray), HEIGHT_FIELD: field}
    return Cast(switch(kind, {k: f for k, f in cases.items() if k in c.table.features.cast}), start, ray)


def _heights(const: Any, first: Any) -> Reals:
    return Reals(const.height.memory, const.height.start + first)


def _first_hit(c: SensorInputs, n: Any, own: FrameRow) -> tuple[Any, Any]:
    """Return the distance of the nearest shape along a ray, and its index among the shapes, counted from 1."""
    far, which, count = carry(NEVER), carry(0.0), carry(0.0)
    for entry in c.table.entries(n):
        x = _cast(c, entry, own.p, own.R.column(2)).hit.x
        count.value = count.value + 1.0
        nearer = x < far.value
        which.value, far.value = select(nearer, count.value, which.value), select(nearer, x, far.value)
    return far.value, steady(which.value)


def _read(c: SensorInputs, n: Any) -> None:
    """Write the requested data: distance, direction, origin, point, normal, depth; without a hit -1, and zeros."""
    own = c.frame(c.table.place(n)).load()
    d, (far, _) = own.R.column(2), _first_hit(c, n, own)
    met = far < NEVER
    length, nothing = select(met, far, NONE), Vec3.zero()
    point = select(met, own.p + d * select(met, far, 0.0), nothing)
    parts = {"dist": length, "dir": select(met, d, nothing), "origin": own.p, "point": point, "depth": length}
    for k, y in enumerate(parts.values()):
        for at in data_place(c, n, k):
            put(c, n, y, at)
    assert tuple(parts) == tuple(RANGE_DATA)


def data_place(c: SensorInputs, n: Any, k: int) -> Any:
    """Yield the index of part k among the readings of a sensor; nothing if it has no such part."""
    row = c.table.data_row[n] + k
    for _ in loop(c.table.has_data[row]):
        yield c.table.data_at[row]


def _vjp(c: SensorInputs, n: Any) -> None:
    slot = c.frame(c.table.place(n))
    own = slot.load()
    d, (far, which) = own.R.column(2), _first_hit(c, n, own)
    met = far < NEVER
    bars = {name: carry(0.0 if size == 1 else Vec3.zero()) for name, size in RANGE_DATA.items()}
    for k, (name, cell) in enumerate(bars.items()):
        for at in data_place(c, n, k):
            bar = taken(c, n, cell.value, at)
            nothing = 0.0 if RANGE_DATA[name] == 1 else Vec3.zero()
            cell.value = bar if name == "origin" else select(met, bar, nothing)
    own_bar = {name: cell.value for name, cell in bars.items()}
    far_bar = own_bar["dist"] + own_bar["depth"] + dot(own_bar["point"], d)
    length = select(met, far, 0.0)
    slot.add(_ray_bar(own_bar["origin"] + own_bar["point"], own_bar["dir"] + own_bar["point"] * length))
    count = carry(0.0)
    for entry in c.table.entries(n):
        count.value = count.value + 1.0
        this = abs(which - count.value) < 0.5
        for _ in when_any(this):
            slot.add(_ray_bar(*_hit_vjp(c, entry, own, select(this, far_bar, 0.0))))


def _ray_bar(p_bar: Vec3, d_bar: Vec3) -> FrameRow:
    """Cotangent of a frame from that of its origin and its z axis."""
    zero = Vec3.zero()
    return FrameRow(p_bar, Mat3.columns(zero, zero, d_bar), zero, zero)


def _hit_vjp(c: SensorInputs, entry: tuple[Any, ...], own: FrameRow, far_bar: Any) -> tuple[Vec3, Vec3]:
    """Return cotangents of origin and direction of the ray from that of the distance; add those of the shape."""
    shape = entry[0]
    place: ShapePlace = c.shape(shape)
    X, d = place.load(), own.R.column(2)
    cast = _cast(c, entry, own.p, d)
    hit, ray = cast.hit, cast.ray
    asked = (abs(far_bar) > 0.0) & (hit.x < NEVER)
    g = select(asked, far_bar / select(asked, -dot(hit.n, ray), 1.0), 0.0)
    start_bar, far = hit.n * g, select(asked, hit.x, 0.0)
    ray_bar = start_bar * far
    p_bar, d_bar = X.R @ start_bar, X.R @ ray_bar  # start = R^T (p - X),  ray = R^T d
    place.add(Placed(-p_bar, outer(own.p - X.p, start_bar) + outer(d, ray_bar)))
    bars = c.s.bars.const
    if bars is not None:
        bars.shape[shape].size += hit.by_size * g
        if HEIGHT_FIELD in c.table.features.cast:
            cases = dict.fromkeys(c.table.features.cast, lambda: None)
            switch(entry[1], cases | {HEIGHT_FIELD: lambda: _add_heights(c, shape, hit, g)})
    return p_bar, d_bar


def _add_heights(c: SensorInputs, shape: Any, hit: Hit, g: Any) -> None:
    m, bars = c.s.model, c.s.bars.const
    heights, count = _heights(bars, m.shape_height[shape]), m.shape_rows[shape] * m.shape_cols[shape]
    for node, share in zip(hit.node.leaves(), hit.share.leaves(), strict=True):
        heights.scatter_add(node, count, -(share * g))


# -- zones -----------------------------------------------------------------------------------------------------------------
def zone_size(c: SensorInputs, n: Any) -> Vec3:
    """Sizes of the zone of a sensor."""
    return Vec3(*(c.table.number(n, 1 + k) for k in range(3)))


def _zone_kind(c: SensorInputs, n: Any, of: Callable[[int], Any]) -> Any:
    return switch(c.table.zone[n], {k: partial(of, k) for k in ZONES if k in c.table.features.zones})


def in_zone(c: SensorInputs, n: Any, p: Vec3) -> Any:
    """Return 1 where a point is in the zone of a sensor, in the axes of its site; else 0."""
    return _zone_kind(c, n, lambda kind: select(inside(kind, zone_size(c, n), p), 1.0, 0.0))


def meets_zone(c: SensorInputs, n: Any, start: Vec3, ray: Vec3) -> Any:
    """Return 1 where a ray intersects the zone of a sensor, also from inside; else 0."""
    size = zone_size(c, n)
    return _zone_kind(c, n, lambda kind: select(SOLIDS[kind](size, start, ray).x < NEVER, 1.0, 0.0))


def zone_of(s: Sensor) -> int:
    """Return the kind of the zone of a sensor."""
    return ZONES[0] if s.zone is None else SHAPES.index(s.zone.shape)


def _read_inside(c: SensorInputs, n: Any) -> None:
    """Write 1 if the reference point is in the zone of the site, else 0. Not differentiated."""
    own, ref = (c.frame(c.table.place(n, k)).load() for k in (0, 1))
    put(c, n, in_zone(c, n, (own.R.T @ (ref.p - own.p)).map(steady)))


RANGE_SENSORS: dict[str, SensorKind] = {
    "rangefinder": SensorKind(
        "site",
        Reading(_read, _vjp),
        lambda s: sum(RANGE_DATA[name] for name in s.data),
        place=lambda m, s: (m.nb + s.on,),
        lists=_shapes,
    ),
    "insidesite": SensorKind(
        "site",
        Reading(_read_inside, lambda c, n: None),
        cut="above",
        place=lambda m, s: (m.nb + s.on, m.nb + s.ref),
    ),
}
