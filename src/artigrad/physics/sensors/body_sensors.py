"""Sensors of a body subtree, of the energy of the model, and of the time."""

from __future__ import annotations

from typing import Any

from ...compiler import Linear, select
from ...model.model import Model, Sensor
from ..outputs import KINETIC, POTENTIAL
from ..spatial import Sym3, Vec3, cross
from .sensor_inputs import FrameRow, Input, SensorInputs
from .sensor_kind import Entry, Reading, SensorKind, bodies_of, function, put, subtree

LEAST = 1e-15  # kg: subtrees of less have no mass


class Moments(Linear):
    """Sums over bodies: mass, first moment, momentum, angular momentum."""

    m: float
    mx: Vec3
    mv: Vec3
    L: Vec3


def body_constants(c: SensorInputs, b: Any) -> list[Input]:
    """Mass, center of mass and inertia of a body, in its frame."""
    return [c.constant("sensed", b, name) for name in ("mass", "com", "I")]


def _center(own: FrameRow, m: Any, com: Vec3) -> Moments:
    return Moments(m, (own.p + own.R @ com) * m, Vec3.zero(), Vec3.zero())


def _velocity(own: FrameRow, m: Any, com: Vec3) -> Moments:
    """Term m v of the center of mass."""
    return Moments(m, Vec3.zero(), (own.v + cross(own.w, own.R @ com)) * m, Vec3.zero())


def _momentum(own: FrameRow, m: Any, com: Vec3, I: Sym3, ref: FrameRow) -> Moments:
    """Term R I R^T w + x x m v, with positions x and velocities v relative to the frame `ref`."""
    r = own.R @ com
    x, mv = own.p + r - ref.p, (own.v + cross(own.w, r) - ref.v) * m
    return Moments(m, x * m, mv, own.R @ (I @ (own.R.T @ own.w)) + cross(x, mv))


def _massless(total: Moments) -> Any:
    """Return 1 for a subtree without mass, else 0. As in MuJoCo, it is at its first body's center and has no velocity."""
    return select(total.m > LEAST, 0.0, 1.0)


def _center_of(own: FrameRow, com: Vec3, total: Moments) -> Vec3:
    massless = _massless(total)
    return total.mx / (total.m + massless) + (own.p + own.R @ com) * massless


def _velocity_of(total: Moments) -> Vec3:
    return total.mv / (total.m + _massless(total))


def _about_center(total: Moments) -> Vec3:
    """Angular momentum about the center of mass x0 with velocity v0: L - m x0 x v0."""
    return total.L - cross(total.mx, total.mv) / (total.m + _massless(total))


def _bodies(c: SensorInputs, n: Any, term: Any, count: int, more: Any = ()) -> Any:
    for b, *_ in c.table.entries(n):
        yield [c.frame(b), *body_constants(c, b)[:count], *more], term


def _nothing(c: SensorInputs, n: Any) -> list[Input]:
    return []


def _first(c: SensorInputs, n: Any) -> list[Input]:
    """Return the frame and the center of mass of the subtree's first body."""
    b = c.table.place(n)
    return [c.frame(b), c.constant("sensed", b, "com")]


def _over_bodies(own: Any, term: Any, value: Any) -> Reading:
    return function(own, value, lambda c, n: _bodies(c, n, term, 2), Moments.zero())


_ANGULAR_MOMENTUM = function(
    _nothing,
    _about_center,
    lambda c, n: _bodies(c, n, _momentum, 3, [c.frame(c.table.place(n))]),
    Moments.zero(),
)


def _first_body(m: Model, s: Sensor) -> Entry:
    return (next(iter(subtree(m, s.on)), 0),)


def _energy(k: int) -> SensorKind:
    return SensorKind("model", function(lambda c, n: [c.total(k)], lambda x: x))


def _of_subtree(reading: Reading) -> SensorKind:
    return SensorKind("body", reading, lambda s: 3, place=_first_body, lists=bodies_of)


BODY_SENSORS: dict[str, SensorKind] = {
    "subtreecom": _of_subtree(_over_bodies(_first, _center, _center_of)),
    "subtreelinvel": _of_subtree(_over_bodies(_nothing, _velocity, _velocity_of)),
    "subtreeangmom": _of_subtree(_ANGULAR_MOMENTUM),
    "e_potential": _energy(POTENTIAL),
    "e_kinetic": _energy(KINETIC),
    "clock": SensorKind("model", Reading(lambda c, n: put(c, n, c.time), lambda c, n: None), timed=True),
}
