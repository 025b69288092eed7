"""Contact sensor: data of selected contacts between two sides, or their sum.

    data      found (the number of contacts), force and torque along normal, tangent and their cross product, dist, pos,
    normal,
              tangent, linvel and angvel along the same three
    reduce    none: the first ones; mindist: the deepest; maxforce: the strongest; netforce: the sum in world axes about the
      mean position, weighted by force

The selection is not differentiated. Signs are MuJoCo's: those of the later shape of a pair, or the opposite if the first
side is the later one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...compiler import Linear, carry, loop, maximum, pullback, select, sqrt, steady, switch, to_real, when_any
from ...model.model import ContactSide, Model, Sensor
from ..collision.contact_geometry import FAR
from ..spatial import Mat3, Vec3, cross, dot
from .force_sensors import contact_shapes
from .rangefinders import data_place, in_zone
from .sensor_inputs import ContactRow, FrameRow, SensorInputs
from .sensor_kind import Entry, Reading, SensorKind, Term, put, subtree, taken, term_vjp

CONTACT_DATA = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3}
CONTACT_DATA |= {"normal": 3, "tangent": 3, "linvel": 3, "angvel": 3}
REDUCE = ("none", "mindist", "maxforce", "netforce")
NONE, MINDIST, MAXFORCE, NETFORCE = range(len(REDUCE))


class ContactData(Linear):
    """Data of one contact, in the order of CONTACT_DATA."""

    found: float
    force: Vec3
    torque: Vec3
    dist: float
    pos: Vec3
    normal: Vec3
    tangent: Vec3
    linvel: Vec3
    angvel: Vec3


# -- contacts between the two sides ----------------------------------------------------------------------------------------
def _is(model: Model, part: ContactSide, shape: int) -> bool:
    """Return True if a shape belongs to one side."""
    body = model.shapes.body[shape]
    match part.what:
        case "shape":
            return shape == part.which
        case "body":
            return body == part.which
        case "subtree":
            return part.which < 0 or body in subtree(model, part.which)
    return True


def _between(m: Model, s: Sensor) -> list[list[Entry]]:
    """Return the candidate points between the two sides.

    Each entry has the index; 1 if the first side is the earlier shape, -1 if it is the later; -1 if the pair has its shapes
    in the opposite order of MuJoCo; the frames of both bodies, and 1 for each that can move.
    """
    kinds, (one, other), out = m.shapes.kind, s.between, list[Entry]()
    for k, pair in enumerate(contact_shapes(m)):
        a, b = sorted(pair, key=lambda i: (kinds[i], i))
        way = 1 if _is(m, one, a) and _is(m, other, b) else -1 if _is(m, one, b) and _is(m, other, a) else 0
        if way:
            bodies = [m.shapes.body[i] for i in pair]
            ends = [x for body in bodies for x in (max(body, 0), int(body >= 0))]
            out.append((k, way, 1 if (a, b) == pair else -1, *ends))
    return [out]


def _site(m: Model, s: Sensor) -> Entry:
    """Return the frame of the zone site, 1 if there is one, the type of selection, the maximum number, and 1 for a sum."""
    return m.nb + max(s.on, 0), int(s.zone is not None), REDUCE.index(s.reduce), s.num, int(s.reduce == "netforce")


def _there(c: SensorInputs, n: Any, x: ContactRow) -> Any:
    """Mask of robots in which a contact exists, and is in the zone if there is one."""

    def inside() -> Any:
        site = c.frame(c.table.place(n)).load()
        return in_zone(c, n, (site.R.T @ (x.point - site.p)).map(steady))

    found = switch(c.table.place(n, 1), {0: lambda: 1.0, 1: inside}) if c.table.features.zones else 1.0
    return (steady(x.gap) < FAR) & (found > 0.5)


def _count(c: SensorInputs, n: Any) -> Any:
    """Number of contacts."""
    count = carry(0.0)
    for k, *_ in c.table.entries(n):
        count.value = count.value + select(_there(c, n, c.contact(k).load()), 1.0, 0.0)
    return count.value


LAST = 1e30  # above all keys that contacts are ordered by


def _picks(c: SensorInputs, n: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the slots of a sensor: index, and index of its contact among the entries; -1 for none."""
    key_before, before = carry(-LAST), carry(-1.0)
    for slot in loop(c.table.place(n, 3)):
        key, which, at = carry(LAST), carry(-1.0), carry(0.0)
        for k, *_ in c.table.entries(n):
            x = c.contact(k).load().map(steady)
            own = switch(c.table.place(n, 2), _keys(x))
            after = (own > key_before.value) | ((own >= key_before.value) & (at.value > before.value))
            best = _there(c, n, x) & after & (own < key.value)
            key.value, which.value = select(best, own, key.value), select(best, at.value, which.value)
            at.value = at.value + 1.0
        some = which.value >= 0.0
        key_before.value = select(some, key.value, LAST)
        before.value = select(some, which.value, before.value)
        yield slot, which.value


def _keys(x: ContactRow) -> dict[int, Callable[[], Any]]:
    def strength() -> Any:
        return -sqrt(dot(x.force, x.force))

    return {NONE: lambda: 0.0 * x.gap, MINDIST: lambda: x.gap, MAXFORCE: strength, NETFORCE: lambda: 0.0 * x.gap}


# -- one contact -------------------------------------------------------------------------------------------------------------
def _axes(x: ContactRow) -> Mat3:
    """Matrix with rows normal, tangent and their cross product."""
    return Mat3.columns(x.normal, x.tangent, cross(x.normal, x.tangent)).T


def _one(x: ContactRow, a: FrameRow, b: FrameRow, way: Any, turned: Any) -> ContactData:
    """Data of one contact without `found`; a, b: frames of its bodies, zeros for the world."""

    def along(y: Vec3) -> Vec3:
        return Vec3(y.x, y.y * turned, y.z * way)

    R = _axes(x)
    v = b.v + cross(b.w, x.point - b.p) - (a.v + cross(a.w, x.point - a.p))
    return ContactData(
        0.0,
        along(x.along),
        along(R @ x.torque),
        x.gap,
        x.point,
        x.normal * (turned * way),
        x.tangent * way,
        along(R @ v),
        along(R @ (b.w - a.w)),
    )


def _chosen(c: SensorInputs, n: Any, which: Any) -> Iterator[Term]:
    """Return the contact at an index among the entries, as the single term of a sum."""
    at = carry(0.0)
    for k, way, turned, a, a_moves, b, b_moves in c.table.entries(n):
        this = abs(at.value - which) < 0.5
        at.value = at.value + 1.0
        ends = [c.frame_or_world(a, a_moves), c.frame_or_world(b, b_moves)]
        for _ in when_any(this):
            yield [c.contact(k), *ends], _only(this, to_real(way), to_real(turned))


def _only(this: Any, way: Any, turned: Any) -> Callable[..., ContactData]:
    """Data of a contact where the mask is true, else zeros."""
    return lambda x, a, b: select(this, _one(x, a, b, way, turned), ContactData.zero())


# -- their sum -----------------------------------------------------------------------------------------------------------------
class Net(Linear):
    """Sums over contacts: weight, weight times position, force, and torque about a point."""

    w: float
    wp: Vec3
    force: Vec3
    torque: Vec3


def _all(c: SensorInputs, n: Any, about: Vec3) -> Iterator[Term]:
    """Term of one contact: weight w = |f|, position relative to `about`."""
    for k, way, turned, *_ in c.table.entries(n):
        there, sign = _there(c, n, c.contact(k).load()), to_real(way) * to_real(turned)

        for _ in when_any(there):
            yield [c.contact(k)], _part(about, there, sign)


def _part(about: Vec3, there: Any, sign: Any) -> Callable[[ContactRow], Net]:
    """Contribution of a contact to the sums, where it exists."""

    def part(x: ContactRow) -> Net:
        w, p, f = sqrt(dot(x.force, x.force)), x.point - about, x.force * sign
        return select(there, Net(w, p * w, f, x.torque * sign + cross(p, f)), Net.zero())

    return part


def _net_data(about: Vec3) -> Callable[[Net], ContactData]:
    """Data of the sum: pos = sum w p / sum w,  force = sum f,  torque = sum (t + (p - pos) x f), in world axes."""

    def data(total: Net) -> ContactData:
        some = steady(total.w) > 0.0
        pos = select(some, total.wp / select(some, total.w, 1.0), Vec3.zero())
        place, zero = select(some, about + pos, Vec3.zero()), Vec3.zero()
        torque = total.torque - cross(pos, total.force)
        return ContactData(0.0, total.force, torque, 0.0, place, zero, zero, zero, zero)

    return data


def _mean_point(c: SensorInputs, n: Any) -> Vec3:
    """Mean position. Torques are summed about it to avoid cancellation; not differentiated."""
    w, wp = carry(0.0), carry(Vec3.zero())
    for k, *_ in c.table.entries(n):
        x = c.contact(k).load().map(steady)
        size = select(_there(c, n, x), sqrt(dot(x.force, x.force)), 0.0)
        w.value, wp.value = w.value + size, wp.value + x.point * size
    return wp.value / maximum(w.value, 1e-30)


# -- readings ------------------------------------------------------------------------------------------------------------------
PARTS = tuple(CONTACT_DATA)


def _put(c: SensorInputs, n: Any, slot: Any, data: ContactData) -> None:
    """Write the data of a contact that the sensor returns."""
    for k, name in enumerate(PARTS):
        for at in data_place(c, n, k):
            put(c, n, getattr(data, name), at + slot * c.table.data_width[n])


def _taken(c: SensorInputs, n: Any, slot: Any) -> ContactData:
    """Return the cotangents of the data of a contact; zeros for data that the sensor does not return."""
    cells = {name: carry(0.0 if size == 1 else Vec3.zero()) for name, size in CONTACT_DATA.items()}
    for k, cell in enumerate(cells.values()):
        for at in data_place(c, n, k):
            cell.value = taken(c, n, cell.value, at + slot * c.table.data_width[n])
    return ContactData(*(cell.value for cell in cells.values()))


def _with(data: ContactData, **parts: Any) -> ContactData:
    return ContactData(*(parts.get(name, getattr(data, name)) for name in PARTS))


def _read(c: SensorInputs, n: Any) -> None:
    switch(c.table.place(n, 4), {0: lambda: _read_slots(c, n), 1: lambda: _read_net(c, n)})


def _read_slots(c: SensorInputs, n: Any) -> None:
    count = _count(c, n)
    for slot, which in _picks(c, n):
        total = carry(ContactData.zero())
        for slots, term in _chosen(c, n, which):
            total.value = total.value + term(*(x.load() for x in slots))
        _put(c, n, slot, _with(total.value, found=select(which >= 0.0, count, 0.0)))


def _read_net(c: SensorInputs, n: Any) -> None:
    count, about = _count(c, n), _mean_point(c, n)
    total = carry(Net.zero())
    for slots, term in _all(c, n, about):
        total.value = total.value + term(*(x.load() for x in slots))
    some = count > 0.0
    data = _net_data(about)(total.value)
    one = select(some, 1.0, 0.0)
    axes = {"normal": Vec3(one, 0.0, 0.0), "tangent": Vec3(0.0, one, 0.0)}
    _put(c, n, 0, _with(data, found=count, **axes))
    for slot in loop(1, c.table.place(n, 3)):
        _put(c, n, slot, ContactData.zero())


def _vjp(c: SensorInputs, n: Any) -> None:
    switch(c.table.place(n, 4), {0: lambda: _slots_vjp(c, n), 1: lambda: _net_vjp(c, n)})


def _slots_vjp(c: SensorInputs, n: Any) -> None:
    for slot, which in _picks(c, n):
        bar = _taken(c, n, slot)
        for slots, term in _chosen(c, n, which):
            term_vjp(slots, term, bar)


def _net_vjp(c: SensorInputs, n: Any) -> None:
    about = _mean_point(c, n)
    total = carry(Net.zero())
    for slots, term in _all(c, n, about):
        total.value = total.value + term(*(x.load() for x in slots))
    bar = pullback(_net_data(about), total.value)[1](_taken(c, n, 0))[0]
    for slots, term in _all(c, n, about):
        term_vjp(slots, term, bar)


CONTACT_SENSORS: dict[str, SensorKind] = {
    "contact": SensorKind(
        "zone",
        Reading(_read, _vjp),
        lambda s: s.num * sum(CONTACT_DATA[name] for name in s.data),
        cut="",
        acceleration_data=True,
        place=_site,
        lists=_between,
    )
}
