"""Sensors of the distance of two shapes or bodies, its direction, and the segment between the nearest points.

Every shape of one side forms a pair with every shape of the other; the nearest point of all pairs within the cutoff is
read. Distances, points and normals, and their adjoint, are those of contacts (`narrowphase`), for the nearest points only.
The choice of the nearest pair is not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ...compiler import (
    INTS,
    SHARED,
    WORK,
    ArgumentKind,
    Layout,
    Linear,
    Table,
    carry,
    loop,
    pullback,
    select,
    steady,
    switch,
    to_real,
    when_any,
)
from ...model.model import HEIGHT_FIELD, PLANE, Model, Sensor
from ..collision.candidates import contact_layout, slots_in, slots_size
from ..collision.contact_geometry import ContactGeometry
from ..collision.convex.hull_tables import HULLS, hull_arguments, ways_of
from ..collision.convex.solids import SOLIDS
from ..collision.routines import CONVEX, NEAREST, ON_FIELD, ROUTINES, UNDER_FIELD, distance_routine
from ..constraints.narrowphase import (
    ContactBars,
    add_contact_bars,
    collide_pair,
    collide_point,
    may_touch,
    place_shape,
    point_geometry,
    save_contact,
)
from ..kinematics import origin
from ..spatial import Transform, Vec3, dot
from .sensor_inputs import SensorInputs
from .sensor_kind import Entry, Reading, SensorKind, put, taken

PLACED = Layout(X=Transform, at=Vec3)


# -- pairs -----------------------------------------------------------------------------------------------------------------
class Measured(NamedTuple):
    """Pairs of shapes of all distance sensors.

    Attributes:
        routine, a, b: Routine and shapes of each pair.
        forward: True if its first shape is of the first side.
        first: First pair of each sensor.
        first_point: First point of each pair.
        feature: Feature of each point.
    """

    routine: list[int]
    a: list[int]
    b: list[int]
    forward: list[bool]
    first: dict[str, int]
    first_point: list[int]
    feature: list[tuple[float, float, float]]


def sides_of(model: Model, s: Sensor) -> list[list[int]]:
    """Return the shapes of both sides of a distance sensor."""
    shapes = model.shapes
    return [
        [k for k, body in enumerate(shapes.body) if (k if side.what == "shape" else body) == side.which]
        for side in s.between
    ]


def endless(model: Model, side: list[int]) -> bool:
    """Return True if a side has a plane or a height field."""
    return any(model.shapes.kind[k] in (PLANE, HEIGHT_FIELD) for k in side)


def measured_pairs(model: Model) -> Measured:
    """Return the pairs of all sensors; planes and height fields are the first shapes of theirs."""
    out = Measured([], [], [], [], {}, [0], [])
    for s in (s for s in model.sensors if s.kind in DISTANCE_SENSORS):
        out.first[s.name] = len(out.a)
        one, other = sides_of(model, s)
        forward = not endless(model, other)
        for i in one:
            for j in other:
                a, b = (i, j) if forward else (j, i)
                routine = distance_routine(model, a, b)
                points = ROUTINES[routine].points(model, a, b)
                out.routine.append(routine)
                out.a.append(a)
                out.b.append(b)
                out.forward.append(forward)
                out.first_point.append(out.first_point[-1] + len(points))
                out.feature.extend(points)
    return out


def _pairs(m: Model, s: Sensor) -> list[list[Entry]]:
    """Yield the pairs of a sensor: index, and 1 or -1 for the direction of the normal."""
    found = measured_pairs(m)
    one, other = sides_of(m, s)
    first = found.first[s.name]
    return [[(k, 1 if found.forward[k] else -1) for k in range(first, first + len(one) * len(other))]]


# -- in a kernel -----------------------------------------------------------------------------------------------------------
INTEGERS: dict[str, ArgumentKind] = {
    **dict.fromkeys(("apart_a", "apart_b", "apart_routine", "apart_swapped", "apart_first_point"), INTS),
    "apart_feature": SHARED,
    **{f"apart_{k}": kind for k, kind in HULLS.items()},
    **dict.fromkeys(("apart_placed", "apart_slots", "apart_contact_records"), WORK),
}


def distance_arguments(model: Model, dtype: np.dtype) -> dict[str, Any]:
    """Return the kernel arguments of distance sensors; scratch by its size."""
    found, kinds = measured_pairs(model), model.shapes.kind

    def ints(values: Any) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    routines = frozenset(found.routine)
    sizes = {"apart_placed": len(kinds) * PLACED.size, "apart_slots": slots_size(model, routines)}
    sizes["apart_contact_records"] = contact_layout(routines).size
    return {
        "apart_a": ints(found.a),
        "apart_b": ints(found.b),
        "apart_routine": ints(found.routine),
        "apart_swapped": ints(int((kinds[a], a) > (kinds[b], b)) for a, b in zip(found.a, found.b, strict=True)),
        "apart_first_point": ints(found.first_point),
        "apart_feature": np.array([*(x for point in found.feature for x in point), 0.0], dtype),
        **{f"apart_{k}": x for k, x in hull_arguments(model, dtype).items()},
        **{k: max(1, n) for k, n in sizes.items()},
    }


Features = tuple[frozenset[int], frozenset[int]]  # routines of pairs and kinds of solids that a kernel is compiled for


def distance_features(model: Model) -> Features | None:
    """Return settings of kernels that compute distances; None without distance sensors."""
    found, kinds = measured_pairs(model), model.shapes.kind
    if not found.a:
        return None
    general = (CONVEX, NEAREST, ON_FIELD, UNDER_FIELD)
    pairs = [(a, b) for a, b, r in zip(found.a, found.b, found.routine, strict=True) if r in general]
    solids = frozenset(kinds[k] for pair in pairs for k in pair if kinds[k] in SOLIDS) | ways_of(model)
    return frozenset(found.routine), solids


def take_distances(arguments: dict[str, Any], features: Features) -> SimpleNamespace:
    """Select the fields for the narrow phase from the kernel arguments."""
    routines, solids = features
    found = {name[6:]: arguments.pop(name) for name in INTEGERS}
    found["placed"] = Table(found["placed"].memory, PLACED)
    found["slots"] = slots_in(found["slots"].memory, routines, found["hull_ring"])
    found["contact_records"] = Table(found["contact_records"].memory, contact_layout(routines))
    return SimpleNamespace(**found, routines=routines, solids=solids)


# -- the nearest point -----------------------------------------------------------------------------------------------------
class Nearest(Linear):
    """Nearest point of all pairs: signed distance, world position, and normal from the first side to the second."""

    gap: float
    point: Vec3
    normal: Vec3


def _points(c: SensorInputs, n: Any) -> Iterator[tuple[Any, Any, Any, ContactGeometry]]:
    """Yield the points of the pairs of sensor n: pair, point, sign of the normal, signed distance."""
    near, s = c.table.number(n, 0), c.s.at(constraints=c.table.measured)
    for k, sign, *_ in c.table.entries(n):
        place_shape(s, s.constraints.a[k])
        place_shape(s, s.constraints.b[k])
        for _ in when_any(may_touch(s, k, near)):
            collide_pair(s, k, near)
            for m in loop(s.constraints.first_point[k], s.constraints.first_point[k + 1]):
                collide_point(s, k, m, near)
                yield k, m, sign, point_geometry(s, k, m)[0]


def _tree(c: SensorInputs, k: Any) -> Any:
    """Return the tree whose origin the points of pair k are relative to."""
    m = c.s.model
    return m.tree[m.shape_link[c.table.measured.b[k]]]


def _nearest(c: SensorInputs, n: Any) -> tuple[Nearest, Any]:
    """Return the nearest point and its index among all, counted from 1; 0 for none within the cutoff."""
    best, which, count = carry(Nearest(c.table.number(n, 0), Vec3.zero(), Vec3.zero())), carry(0.0), carry(0.0)
    for k, _, sign, found in _points(c, n):
        count.value = count.value + 1.0
        closer = found.phi < best.value.gap
        own = Nearest(found.phi, found.p + origin(c.s, _tree(c, k)), found.n * to_real(sign))
        best.value, which.value = select(closer, own, best.value), select(closer, count.value, which.value)
    return best.value, steady(which.value)


def _add(c: SensorInputs, n: Any, which: Any, bar: Nearest) -> None:
    """Propagate the cotangent of the nearest point to poses and shapes."""
    s, count = c.s.at(constraints=c.table.measured), carry(0.0)
    for k, m, sign, found in _points(c, n):
        count.value = count.value + 1.0
        this = abs(which - count.value) < 0.5
        for _ in when_any(this):
            own = select(this, bar, Nearest.zero())
            save_contact(s, k, m, 0)
            n_bar = own.normal * to_real(sign)
            n_bar = n_bar - found.n * dot(found.n, n_bar)
            s.tree[_tree(c, k)].o_bar += own.point
            add_contact_bars(s, (k, m, 0), ContactBars(own.gap, Vec3.zero(), own.point, n_bar, Vec3.zero()))


# -- readings ----------------------------------------------------------------------------------------------------------------
class Segment(Linear):
    """Segment from the surface of the first side to that of the second, world axes."""

    start: Vec3
    end: Vec3


def _direction(near: Nearest) -> Vec3:
    """Direction from the surface of the first side to that of the second; opposite to the normal in penetration."""
    return near.normal * select(steady(near.gap) < 0.0, -1.0, 1.0)


def _segment(near: Nearest) -> Segment:
    """Ends of the segment: point -+ distance/2 normal."""
    half = near.normal * (0.5 * near.gap)
    return Segment(near.point - half, near.point + half)


VALUES: tuple[tuple[Callable[[Nearest], Any], int], ...] = ((lambda near: near.gap, 1), (_direction, 3), (_segment, 6))


def _by_value(c: SensorInputs, n: Any, of: Callable[[Callable[[Nearest], Any]], Any]) -> Any:
    """Call `of` with the function of the nearest point that sensor n reads."""
    return switch(c.table.place(n), {k: partial(of, value) for k, (value, _) in enumerate(VALUES)})


def _read(c: SensorInputs, n: Any) -> None:
    """Read the sensor; beyond the cutoff the distance is the cutoff, and directions are zero."""
    near, _ = _nearest(c, n)  # which is at the cutoff, without point and normal, if there is none
    _by_value(c, n, lambda value: put(c, n, value(near)))


def _vjp(c: SensorInputs, n: Any) -> None:
    near, which = _nearest(c, n)

    def back(value: Callable[[Nearest], Any]) -> Nearest:
        y, pull = pullback(value, near)
        return pull(taken(c, n, y))[0]

    _add(c, n, which, select(which > 0.5, _by_value(c, n, back), Nearest.zero()))


_READING = Reading(_read, _vjp)


def _kind(which: int) -> SensorKind:
    """Return the record of a distance sensor; which: index into VALUES."""
    return SensorKind("model", _READING, lambda s: VALUES[which][1], "", place=lambda m, s: (which,), lists=_pairs)


DISTANCE_SENSORS: dict[str, SensorKind] = {"geomdist": _kind(0), "geomnormal": _kind(1), "geomfromto": _kind(2)}
