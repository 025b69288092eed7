"""Forces of spatial tendons on bodies along their paths, for force sensors.

A force f along a tendon acts at both ends of each straight part of its path: scale f d at the end, d the direction of the
part, and the opposite at the start. A segment around a shape has two straight parts, to and from the shape. f is the force
of spring, damper, actuators and constraint rows (limits, dry friction, couplings). As in MuJoCo, fixed tendons are left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...compiler import Linear, carry, loop, select, sqrt, steady, to_real
from ...model.model import Model
from ..spatial import Force, Mat3, Vec3, cross, dot
from ..transmissions.wrapping import Around, path_around
from .line_sensors import actuators_on
from .sensor_inputs import FrameRow, Input, SensorInputs
from .sensor_kind import Entry, Term, subtree

NO_LENGTH = 1e-15  # m
STRAIGHT, SPHERE, CYLINDER = range(3)  # lists of pieces
KINDS = {"": STRAIGHT, "sphere": SPHERE, "cylinder": CYLINDER}


def spatial_tendons(model: Model) -> list[int]:
    """Return the tendons that are paths between sites."""
    return [t for t, tendon in enumerate(model.tendons) if not tendon.fixed]


def pieces(model: Model, body: int) -> list[list[Entry]]:
    """Return the segments of spatial tendons that act on the subtree of a body: straight, around spheres, around cylinders.

    Each entry has the index, the tendon, and 1 or 0 for both ends and the shape: whether they are in the subtree.
    """
    inside, out = set(subtree(model, body)), [list[Entry]() for _ in KINDS]
    bodies, n = (*model.site_body, -1), 0
    for t, tendon in enumerate(model.tendons):
        for piece in tendon.pieces:
            if not tendon.fixed:
                parts = [int(bodies[k] in inside) for k in (piece.a, piece.b, piece.around)]
                which = KINDS[piece.kind if piece.around >= 0 else ""]
                if any(parts[: 2 if piece.around < 0 else 3]):
                    out[which].append((n, t, *parts))
            n += 1
    return out


class Tension(NamedTuple):
    """Force along tendon t, as an input of readings."""

    c: SensorInputs
    t: Any

    def _parts(self) -> list[Input]:
        return [self.c.row_force(self.t), self.c.actuator_outputs("tendon_force", self.t)]

    def _actuators(self) -> Iterator[tuple[Input, Input]]:
        c = self.c
        for e in loop(c.table.tendon_first[self.t], c.table.tendon_first[self.t + 1]):
            j = c.table.tendon_actuator[e]
            yield c.actuator_outputs("force", j), c.constant("actuator", j, "gear")

    def load(self) -> Any:
        one, other = self._parts()
        total = carry(one.load() + other.load())
        for force, gear in self._actuators():
            total.value = total.value + force.load() * gear.load()
        return total.value

    def add(self, bar: Any) -> None:
        for part in self._parts():
            part.add(bar)
        for force, gear in self._actuators():
            f, g = force.load(), gear.load()
            force.add(bar * g)
            gear.add(bar * f)


def tendon_actuators(model: Model) -> tuple[list[int], list[int]]:
    """Return the actuators of all tendons, and the first of each."""
    each = [[j for (j,) in actuators_on(model, t)] for t in range(len(model.tendons))]
    first = [sum(map(len, each[:t])) for t in range(len(each) + 1)]
    return [j for own in each for j in own], first


class TouchPoints(Linear):
    """Points where a tendon touches the shape that it wraps around."""

    first: Vec3
    last: Vec3


class TouchInput(NamedTuple):
    """Contact points of segment n and its shape, as an input of readings."""

    c: SensorInputs
    n: Any
    cylinder: bool

    def _path(self) -> Any:
        c, n, m = self.c, self.n, self.c.s.model
        a, b, around, side = (c.frame(k[n]) for k in (m.piece_a, m.piece_b, m.piece_around, m.piece_side))
        shape, sided = around.load(), to_real(m.piece_sided[n])
        R, radius = shape.R, c.constant("piece", n, "radius").load()
        away = (side.load().p - shape.p) * sided
        path = path_around(
            Around(self.cylinder, (R.column(0), R.column(1), R.column(2)), radius, away, sided),
            a.load().p - shape.p,
            b.load().p - shape.p,
        )
        return path, shape.p

    @property
    def wraps(self) -> Any:
        """Return 1 where the tendon touches its shape, else 0."""
        return select(self._path()[0].touch().on, 1.0, 0.0)

    def load(self) -> TouchPoints:
        path, center = self._path()
        touch = path.touch()
        return TouchPoints(center + touch.first, center + touch.last)

    def add(self, bar: TouchPoints) -> None:
        c, n, m = self.c, self.n, self.c.s.model
        found, zero = self._path()[0].vjp(bar.first, bar.last), Vec3.zero()
        c.frame(m.piece_a[n]).add(_place(found.u))
        c.frame(m.piece_b[n]).add(_place(found.v))
        moved = bar.first + bar.last - found.u - found.v
        c.frame(m.piece_around[n]).add(FrameRow(moved, Mat3.columns(zero, zero, found.axis), zero, zero))
        c.constant("piece", n, "radius").add(found.radius)


def _place(p: Vec3) -> FrameRow:
    zero = Vec3.zero()
    return FrameRow(p, Mat3.zero(), zero, zero)


def _leg(start: Vec3, end: Vec3, pull: Any, on_start: Any, on_end: Any, x: Vec3) -> Force:
    """Wrench about x of the forces at both ends of a straight part; on_start, on_end: 1 where the body of that end counts."""
    d = end - start
    size = sqrt(dot(d, d))
    some = steady(size) > NO_LENGTH
    # a leg without length counts as along x
    F = select(some, d / select(some, size, 1.0), Vec3(1.0, 0.0, 0.0)) * pull
    f, g = F * on_end, F * -on_start
    return Force(cross(end - x, f) + cross(start - x, g), f + g)


def tendon_terms(c: SensorInputs, n: Any, lists: int, site: Input) -> Iterator[Term]:
    """Return the wrenches of tendons on the subtree of a site's body about the site, with the opposite sign, as terms of a sum.

    lists: the first list of segments of sensor n.
    """
    m = c.s.model
    for k, t, on_a, on_b, *_ in c.table.entries(n, lists + STRAIGHT):
        yield [*_piece(c, k, m), Tension(c, t), site], _straight(to_real(on_a), to_real(on_b))
    for name, which in (("sphere", SPHERE), ("cylinder", CYLINDER)):
        for k, t, on_a, on_b, on_shape, *_ in c.table.entries(n, lists + which) if c.s.has(name) else ():
            touch, ends = TouchInput(c, k, name == "cylinder"), (to_real(on_a), to_real(on_b), to_real(on_shape))
            yield [*_piece(c, k, m), Tension(c, t), site, touch], _wrapped(*ends, touch.wraps)


def _straight(on_a: Any, on_b: Any) -> Callable[..., Force]:
    """Wrench of a straight segment."""

    def wrench(a: FrameRow, b: FrameRow, scale: Any, f: Any, site: FrameRow) -> Force:
        return -_leg(a.p, b.p, scale * f, on_a, on_b, site.p)

    return wrench


def _wrapped(on_a: Any, on_b: Any, on_shape: Any, wraps: Any) -> Callable[..., Force]:
    """Wrench of a segment that may wrap around a shape."""

    def wrench(a: FrameRow, b: FrameRow, scale: Any, f: Any, site: FrameRow, touch: TouchPoints) -> Force:
        pull = scale * f
        first = _leg(a.p, touch.first, pull, on_a, on_shape, site.p)
        last = _leg(touch.last, b.p, pull, on_shape, on_b, site.p)
        return -select(wraps > 0.5, first + last, _leg(a.p, b.p, pull, on_a, on_b, site.p))

    return wrench


def _piece(c: SensorInputs, k: Any, m: Any) -> list[Input]:
    """Both ends of a segment and its scale."""
    return [c.frame(m.piece_a[k]), c.frame(m.piece_b[k]), c.constant("piece", k, "scale")]
