"""Sensors of accelerations and forces: accelerometers, force and torque at a site, touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...compiler import select, steady, to_real
from ...model.model import Model, Sensor
from ..collision.candidates import candidates
from ..spatial import Force, Sym3, Vec3, cross
from ..tables import held_bodies
from .body_sensors import body_constants
from .frame_sensors import frame_place
from .rangefinders import meets_zone
from .sensor_inputs import AccelerationRow, ContactRow, FrameRow, HeldRow, Input, SensorInputs
from .sensor_kind import Entry, Reading, SensorKind, Term, function, subtree
from .tendon_forces import pieces, spatial_tendons, tendon_terms


# -- accelerations -----------------------------------------------------------------------------------------------------------
def _proper(own: FrameRow, a: AccelerationRow) -> Vec3:
    return own.R.T @ a.linear


def _accelerometer_inputs(c: SensorInputs, n: Any) -> list[Input]:
    own = c.frame(c.table.place(n))
    return (
        [own, c.velocity_after(c.table.place(n, 3)), c.gravity]
        if c.impulsive
        else [own, c.acceleration(c.table.place(n))]
    )


def _mean(dt: Any) -> Any:
    """Under the hard law, whose forces are impulses, the mean over the coming step: (v_after - v)/dt - g"""
    return lambda own, after, gravity: own.R.T @ ((after - own.v) * (1.0 / dt) - gravity)


def _accelerometer(what: str) -> Any:
    def run(c: SensorInputs, n: Any) -> None:
        value = _mean(c.s.dt) if c.impulsive else _proper
        getattr(function(_accelerometer_inputs, value), what)(c, n)

    return run


def _site_place(m: Model, s: Sensor) -> Entry:
    return (*frame_place(m, s), s.on)


def _world(part: str) -> SensorKind:
    """Acceleration of a site in world axes."""
    reading = function(lambda c, n: [c.acceleration(c.table.place(n))], lambda a: getattr(a, part))
    return SensorKind("site", reading, lambda s: 3, acceleration_data=True, place=frame_place)


# -- force and torque at a site --------------------------------------------------------------------------------------------
BODIES, CONTACTS, EQUALITIES, TENDONS = range(4)  # lists of a sensor of force or torque; pieces of tendons are three


def _lists(m: Model, s: Sensor) -> list[list[Entry]]:
    """Bodies that a site's body carries; contacts that press on them from outside, with the sign of their force; equalities
    likewise, with the side; pieces of tendons."""
    body = m.site_body[s.on]
    inside = set(subtree(m, body))
    contacts = [(k, (b in inside) - (a in inside)) for k, (a, b) in enumerate(contact_bodies(m))]
    held = [(k, held_bodies(m, e)) for k, e in enumerate(m.equalities) if e.kind in ("connect", "weld")]
    sides: list[Entry] = [(k, 2 * side - 1, side) for k, of in held for side in (0, 1) if of[side] in inside]
    return [[(b,) for b in subtree(m, body)], [x for x in contacts if x[1]], sides, *pieces(m, body)]


def contact_bodies(model: Model) -> list[tuple[int, int]]:
    """Bodies of every point of contact of the report; -1 is the world."""
    return [(model.shapes.body[a], model.shapes.body[b]) for a, b in contact_shapes(model)]


def contact_shapes(model: Model) -> list[tuple[int, int]]:
    """Shapes of every point of contact of the report."""
    if not model.shapes.pairs:
        return []
    found = candidates(model)
    counts = np.diff(found.first)
    return [(int(a), int(b)) for a, b, n in zip(found.a, found.b, counts, strict=False) for _ in range(n)]


def _need(own: FrameRow, m: Any, com: Vec3, I: Sym3, a: AccelerationRow, site: FrameRow) -> Force:
    """Force that accelerates a body, and its torque about a site x:
    f = m A,  t = (c - x) x f + I w' + w x I w,  A = a + w' x r + w x (w x r),  r from the body's frame to its center c"""
    r, w = own.R @ com, own.w
    f = (a.linear + cross(a.angular, r) + cross(w, cross(w, r))) * m
    spin, turned = own.R @ (I @ (own.R.T @ w)), own.R @ (I @ (own.R.T @ a.angular))
    return Force(cross(own.p + r - site.p, f) + turned + cross(w, spin), f)


def _terms(c: SensorInputs, n: Any) -> Iterator[Term]:
    """Force, and torque about the site, on the body of a site from its parent, world axes: those that accelerate bodies, less
    those of contacts, connect and weld equalities and spatial tendons. As in MuJoCo actuators at sites, fluids and compensated
    weight are left out: they count as part of the joint."""
    site = c.frame(c.table.place(n))
    for b, *_ in c.table.entries(n, BODIES):
        yield [c.frame(b), *body_constants(c, b), c.acceleration(b), site], _need
    for k, sign, *_ in c.table.entries(n, CONTACTS):
        yield [c.contact(k), site], _pressed(to_real(sign))
    for e, sign, side, *_ in c.table.entries(n, EQUALITIES):
        yield [c.held(e), site], _held(to_real(sign), to_real(side))
    if c.s.has("tendon"):
        yield from tendon_terms(c, n, TENDONS, site)


def _pressed(sign: Any) -> Callable[[ContactRow, FrameRow], Force]:
    """Wrench about a site of a contact on what is carried, with the opposite sign."""

    def wrench(x: ContactRow, site: FrameRow) -> Force:
        f = x.force * -sign
        return Force(cross(x.point - site.p, f) - x.torque * sign, f)

    return wrench


def _held(sign: Any, on_b: Any) -> Callable[[HeldRow, FrameRow], Force]:
    """Wrench of an equality on one of its sides, likewise."""

    def wrench(x: HeldRow, site: FrameRow) -> Force:
        f = x.force * -sign
        return Force(cross(x.a * (1.0 - on_b) + x.b * on_b - site.p, f) - x.torque * sign, f)

    return wrench


def _carried(part: str) -> SensorKind:
    """Force or torque at a site, in its axes."""
    reading = function(
        lambda c, n: [c.frame(c.table.place(n))],
        lambda own, total: own.R.T @ getattr(total, part),
        _terms,
        Force.zero(),
    )
    return SensorKind(
        "site",
        reading,
        lambda s: 3,
        acceleration_data=True,
        actuator_outputs=lambda m: bool(spatial_tendons(m)),
        place=frame_place,
        lists=_lists,
    )


# -- touch ---------------------------------------------------------------------------------------------------------------
def _touching(m: Model, s: Sensor) -> list[list[Entry]]:
    """Points of contact of a site's body, with the sign of their normal."""
    body = m.site_body[s.on]
    return [[(k, 1 if a == body else -1) for k, (a, b) in enumerate(contact_bodies(m)) if body in (a, b)]]


def _pressing(c: SensorInputs, n: Any) -> Iterator[Term]:
    """Normal forces of contacts whose normals meet the zone; which do is not differentiated."""
    site = c.frame(c.table.place(n)).load().map(steady)
    for k, sign, *_ in c.table.entries(n):
        x = c.contact(k).load().map(steady)
        start, ray = site.R.T @ (x.point - site.p), site.R.T @ (x.normal * to_real(sign))
        yield [c.contact(k)], _normal_force(meets_zone(c, n, start, ray) > 0.5)


def _normal_force(met: Any) -> Callable[[ContactRow], Any]:
    return lambda x: select(met & (steady(x.along.x) > 0.0), x.along.x, 0.0)


FORCE_SENSORS: dict[str, SensorKind] = {
    "accelerometer": SensorKind(
        "site",
        Reading(_accelerometer("read"), _accelerometer("vjp")),
        lambda s: 3,
        acceleration_data=True,
        place=_site_place,
    ),
    "framelinacc": _world("linear"),
    "frameangacc": _world("angular"),
    "force": _carried("f"),
    "torque": _carried("n"),
    "touch": SensorKind(
        "site",
        function(lambda c, n: [], lambda total: total, _pressing, 0.0),
        cut="above",
        acceleration_data=True,
        place=frame_place,
        lists=_touching,
    ),
}
