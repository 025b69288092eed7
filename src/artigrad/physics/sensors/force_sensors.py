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
    """Mean acceleration over the coming step under the hard law, whose forces are impulses: (v_after - v)/dt - g."""
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
    """Return the lists of a force sensor.

    These are the bodies of the subtree of the site's body; contacts of the subtree with other bodies, with the sign of
    their force; equalities likewise, with the side; and segments of tendons.
    """
    body = m.site_body[s.on]
    inside = set(subtree(m, body))
    contacts = [(k, (b in inside) - (a in inside)) for k, (a, b) in enumerate(contact_bodies(m))]
    held = [(k, held_bodies(m, e)) for k, e in enumerate(m.equalities) if e.kind in ("connect", "weld")]
    sides: list[Entry] = [(k, 2 * side - 1, side) for k, of in held for side in (0, 1) if of[side] in inside]
    return [[(b,) for b in subtree(m, body)], [x for x in contacts if x[1]], sides, *pieces(m, body)]


def contact_bodies(model: Model) -> list[tuple[int, int]]:
    """Return the bodies of every candidate contact point; -1 is the world."""
    return [(model.shapes.body[a], model.shapes.body[b]) for a, b in contact_shapes(model)]


def contact_shapes(model: Model) -> list[tuple[int, int]]:
    """Return the shapes of every candidate contact point."""
    if not model.shapes.pairs:
        return []
    found = candidates(model)
    counts = np.diff(found.first)
    return [(int(a), int(b)) for a, b, n in zip(found.a, found.b, counts, strict=False) for _ in range(n)]


def _need(own: FrameRow, m: Any, com: Vec3, I: Sym3, a: AccelerationRow, site: FrameRow) -> Force:
    """Force that accelerates a body, and its torque about a site at x.

    f = m A,  t = (c - x) x f + I w' + w x I w,  A = a + w' x r + w x (w x r),  r from the body's frame to its center of
    mass c
    """
    r, w = own.R @ com, own.w
    f = (a.linear + cross(a.angular, r) + cross(w, cross(w, r))) * m
    spin, turned = own.R @ (I @ (own.R.T @ w)), own.R @ (I @ (own.R.T @ a.angular))
    return Force(cross(own.p + r - site.p, f) + turned + cross(w, spin), f)


def _terms(c: SensorInputs, n: Any) -> Iterator[Term]:
    """Force on the body of a site from its parent, and torque about the site, world axes, as terms of a sum.

    They are the forces that accelerate the bodies of the subtree, minus those of contacts, connect and weld equalities and
    spatial tendons. As in MuJoCo, forces of actuators at sites, fluids and gravity compensation are not subtracted: they
    count as part of the joint force.
    """
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
    """Return the function for the wrench of a contact on the subtree about a site, with the opposite sign."""

    def wrench(x: ContactRow, site: FrameRow) -> Force:
        f = x.force * -sign
        return Force(cross(x.point - site.p, f) - x.torque * sign, f)

    return wrench


def _held(sign: Any, on_b: Any) -> Callable[[HeldRow, FrameRow], Force]:
    """Return the function for the wrench of an equality on one of its sides about a site, with the opposite sign."""

    def wrench(x: HeldRow, site: FrameRow) -> Force:
        f = x.force * -sign
        return Force(cross(x.a * (1.0 - on_b) + x.b * on_b - site.p, f) - x.torque * sign, f)

    return wrench


def _joint_wrench(part: str) -> SensorKind:
    """Return the record of a force or torque sensor at a site, in the axes of the site."""
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
    """Return the candidate contact points of a site's body, with the sign of their normal."""
    body = m.site_body[s.on]
    return [[(k, 1 if a == body else -1) for k, (a, b) in enumerate(contact_bodies(m)) if body in (a, b)]]


def _pressing(c: SensorInputs, n: Any) -> Iterator[Term]:
    """Yield normal forces of contacts whose normals intersect the zone; the selection is not differentiated."""
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
    "force": _joint_wrench("f"),
    "torque": _joint_wrench("n"),
    "touch": SensorKind(
        "site",
        function(lambda c, n: [], lambda total: total, _pressing, 0.0),
        cut="above",
        acceleration_data=True,
        place=frame_place,
        lists=_touching,
    ),
}
