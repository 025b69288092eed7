"""The contact sensor: contacts between two sides, some of them or their sum.

    data      found (how many there are), force and torque along normal, tangent and their product, dist, pos, normal, tangent,
              linvel and angvel along the same three
    reduce    none: the first ones; mindist: the deepest; maxforce: the strongest; netforce: their sum in the world about the
              mean point, weighted by force

Which contacts are chosen is not differentiated. Signs are MuJoCo's: those of the later shape of a pair, or turned round if the
first side is the later one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import ContactSide, Model, Sensor
from ..physics.collision.contact_geometry import FAR
from .rays import inside
from .sensor_kind import At, Felt, SensorKind, subtree, turn_back

CONTACT_DATA = {"found": 1, "force": 3, "torque": 3, "dist": 1, "pos": 3}
CONTACT_DATA |= {"normal": 3, "tangent": 3, "linvel": 3, "angvel": 3}
REDUCE = ("none", "mindist", "maxforce", "netforce")


# -- which contacts --------------------------------------------------------------------------------------------------------
def _is(model: Model, part: ContactSide, shape: int) -> bool:
    """Whether a shape belongs to one side."""
    body = model.shapes.body[shape]
    match part.what:
        case "shape":
            return shape == part.which
        case "body":
            return body == part.which
        case "subtree":
            return part.which < 0 or body in subtree(model, part.which)
    return True


def _directions(at: At, s: Sensor) -> tuple[np.ndarray, np.ndarray]:
    """Of every point that may touch: 0 if it is not between the two sides, 1 if the first side is the earlier shape, -1 if it
    is the later; and whether our pair has its shapes the other way round than MuJoCo."""
    kinds, (one, other) = at.model.shapes.kind, s.between
    way, swapped = np.zeros(len(at.pairs)), np.zeros(len(at.pairs), bool)
    for k, pair in enumerate(at.pairs):
        a, b = sorted(pair, key=lambda i: (kinds[i], i))
        swapped[k] = (a, b) != pair
        fits = [_is(at.model, one, a) and _is(at.model, other, b), _is(at.model, one, b) and _is(at.model, other, a)]
        way[k] = 1.0 if fits[0] else -1.0 if fits[1] else 0.0
    return way, swapped


class Picked(NamedTuple):
    """Which point each slot has, (B, num), -1 for none; how many there are, (B,); and of every point the signs of what is
    along its three axes, (points, 3), of its normal and tangent, (points, 1)."""

    which: np.ndarray
    found: np.ndarray
    along: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray


def _picked(at: At, s: Sensor) -> Picked:
    assert at.felt is not None
    way, swapped = _directions(at, s)
    there = (at.felt.gap < FAR) & (way != 0)
    if s.zone is not None:
        R, x = at.now.site_rotation[:, None, s.on], at.now.site_position[:, None, s.on]
        there = there & inside(s.zone, turn_back(R, at.felt.point - x))
    count = there.sum(1)
    size = np.linalg.norm(at.felt.force, axis=-1)
    key = {"mindist": at.felt.gap, "maxforce": -size}.get(s.reduce, np.zeros(there.shape))
    order = np.argsort(np.where(there, key, np.inf), axis=1, kind="stable")
    slots = order.shape[1] if s.reduce == "netforce" else s.num
    which = np.full((len(there), slots), -1)
    width = min(slots, order.shape[1])
    which[:, :width] = np.where(np.arange(width) < count[:, None], order[:, :width], -1)
    turned = np.where(swapped, -1.0, 1.0)[:, None]
    back = np.where(way < 0, -1.0, 1.0)[:, None]
    along = np.concatenate([np.ones_like(turned), turned, back], 1)
    return Picked(which, count, along, turned * back, back)


def _take(x: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Rows of x (B, points, n) by slot; zeros for none."""
    rows = (
        np.take_along_axis(x, np.maximum(which, 0)[..., None], 1)
        if x.shape[1]
        else np.zeros((*which.shape, x.shape[2]))
    )
    return np.where(which[..., None] < 0, 0.0, rows)


def _give(total: np.ndarray, which: np.ndarray, bar: np.ndarray) -> None:
    """The adjoint of `_take`."""
    for b, slot in zip(*np.nonzero(which >= 0), strict=True):
        total[b, which[b, slot]] += bar[b, slot]


# -- motions of bodies at contacts -------------------------------------------------------------------------------------------
def _relative(at: At, s: Sensor) -> tuple[np.ndarray, np.ndarray]:
    """Velocity and angular velocity of the second body of every pair less those of the first, at the point, (B, points, 3)."""
    assert at.felt is not None
    v, w = np.zeros_like(at.felt.point), np.zeros_like(at.felt.point)
    for k, sign, body in _sides(at):
        spin = at.now.body_angular_velocity[:, body]
        w[:, k] += sign * spin
        arm = at.felt.point[:, k] - at.now.body_position[:, body]
        v[:, k] += sign * (at.now.body_velocity[:, body] + np.cross(spin, arm))
    return v, w


def _relative_vjp(at: At, v_bar: np.ndarray, w_bar: np.ndarray, bars: At) -> None:
    assert at.felt is not None and bars.felt is not None
    for k, sign, body in _sides(at):
        spin, g = at.now.body_angular_velocity[:, body], sign * v_bar[:, k]
        arm, arm_bar = at.felt.point[:, k] - at.now.body_position[:, body], np.cross(g, spin)
        bars.now.body_angular_velocity[:, body] += sign * w_bar[:, k] + np.cross(arm, g)
        bars.now.body_velocity[:, body] += g
        bars.now.body_position[:, body] -= arm_bar
        bars.felt.point[:, k] += arm_bar


def _sides(at: At) -> list[tuple[int, float, int]]:
    """(point, sign, body) of every body that moves."""
    bodies = at.model.shapes.body
    both = [(k, sign, bodies[i]) for k, pair in enumerate(at.pairs) for sign, i in ((-1.0, pair[0]), (1.0, pair[1]))]
    return [side for side in both if side[2] >= 0]


# -- along the axes of contacts ----------------------------------------------------------------------------------------------
def _axes(felt: Felt) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return felt.normal, felt.tangent, np.cross(felt.normal, felt.tangent)


def _resolved(felt: Felt, x: np.ndarray) -> np.ndarray:
    """A vector along normal, tangent and their product."""
    return np.stack([(axis * x).sum(-1) for axis in _axes(felt)], -1)


def _resolved_vjp(felt: Felt, x: np.ndarray, y_bar: np.ndarray, bars: Felt) -> np.ndarray:
    """The cotangent of the vector; those of the axes are added."""
    n, t, b = _axes(felt)
    n_bar, t_bar, b_bar = (x * y_bar[..., k, None] for k in range(3))
    bars.normal[:] += n_bar + np.cross(t, b_bar)
    bars.tangent[:] += t_bar + np.cross(b_bar, n)
    return n * y_bar[..., :1] + t * y_bar[..., 1:2] + b * y_bar[..., 2:]


# -- readings ----------------------------------------------------------------------------------------------------------------
def _contact(at: At, s: Sensor) -> np.ndarray:
    assert at.felt is not None
    own, felt = _picked(at, s), at.felt
    count = np.where(own.which[:, : s.num] >= 0, own.found[:, None], 0.0)[..., None]
    if s.reduce == "netforce":
        parts = _net(felt, own)._asdict()
        blank = np.zeros((len(at.q), 1, 1))
        axes = {"dist": blank, "normal": blank + np.eye(3)[0], "tangent": blank + np.eye(3)[1]}
        some = (own.found > 0)[:, None, None]
        parts = {k: np.where(some, y, 0.0) for k, y in ({k: x[:, None] for k, x in parts.items()} | axes).items()}
        parts["found"] = own.found[:, None, None]
        one = np.concatenate([parts[name] for name in CONTACT_DATA if name in s.data], -1)
        return np.concatenate([one, np.zeros((len(one), s.num - 1, one.shape[-1]))], 1).reshape(len(one), -1)
    v, w = _relative(at, s)
    rows = {"force": felt.along * own.along, "torque": _resolved(felt, felt.torque) * own.along}
    rows |= {"dist": felt.gap[..., None], "pos": felt.point, "normal": felt.normal * own.normal}
    rows |= {"tangent": felt.tangent * own.tangent}
    rows |= {"linvel": _resolved(felt, v) * own.along, "angvel": _resolved(felt, w) * own.along}
    taken = {
        name: count if name == "found" else _take(rows[name], own.which) for name in CONTACT_DATA if name in s.data
    }
    return np.concatenate(list(taken.values()), -1).reshape(len(at.q), -1)


def _contact_vjp(at: At, s: Sensor, y_bar: np.ndarray, bars: At) -> None:
    assert at.felt is not None and bars.felt is not None
    own, felt, told = _picked(at, s), at.felt, bars.felt
    names = [name for name in CONTACT_DATA if name in s.data]
    wide = y_bar.reshape(len(y_bar), s.num, -1)
    cuts = np.cumsum([CONTACT_DATA[name] for name in names])[:-1]
    given = dict(zip(names, np.split(wide, cuts, axis=-1), strict=True))
    if s.reduce == "netforce":
        none = np.zeros((len(y_bar), 3))
        some = (own.found > 0)[:, None]
        net = Net(*(np.where(some, given[name][:, 0], 0.0) if name in given else none for name in Net._fields))
        _net_vjp(felt, own, net, told)
        return
    rows = {name: np.zeros((*felt.gap.shape, n)) for name, n in CONTACT_DATA.items()}
    for name, bar in given.items():
        _give(rows[name], own.which, bar)
    told.along[:] += rows["force"] * own.along
    told.gap[:] += rows["dist"][..., 0]
    told.point[:] += rows["pos"]
    told.normal[:] += rows["normal"] * own.normal
    told.tangent[:] += rows["tangent"] * own.tangent
    told.torque[:] += _resolved_vjp(felt, felt.torque, rows["torque"] * own.along, told)
    v, w = _relative(at, s)
    v_bar = _resolved_vjp(felt, v, rows["linvel"] * own.along, told)
    _relative_vjp(at, v_bar, _resolved_vjp(felt, w, rows["angvel"] * own.along, told), bars)


# -- the sum of all ------------------------------------------------------------------------------------------------------------
class Net(NamedTuple):
    """Force, torque about the mean point, and that point, (B, 3) each."""

    force: np.ndarray
    torque: np.ndarray
    pos: np.ndarray


def _weights(felt: Felt, own: Picked) -> tuple[np.ndarray, np.ndarray]:
    """Of every point: |force|, and 1 if it is chosen, (B, points, 1)."""
    there = np.zeros(felt.gap.shape)
    for b, slot in zip(*np.nonzero(own.which >= 0), strict=True):
        there[b, own.which[b, slot]] = 1.0
    return there[..., None] * np.linalg.norm(felt.force, axis=-1, keepdims=True), there[..., None]


def _mean(felt: Felt, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = w.sum(1)
    return np.where(total > 0, (w * felt.point).sum(1) / np.where(total > 0, total, 1.0), 0.0), total


def _net(felt: Felt, own: Picked) -> Net:
    """pos = sum w p / sum w with w = |f|,  force = sum f,  torque = sum (t + (p - pos) x f)"""
    w, there = _weights(felt, own)
    pos, _ = _mean(felt, w)
    f, t = felt.force * own.normal * there, felt.torque * own.normal * there
    return Net(f.sum(1), (t + np.cross(felt.point - pos[:, None], f)).sum(1), pos)


def _net_vjp(felt: Felt, own: Picked, bar: Net, told: Felt) -> None:
    w, there = _weights(felt, own)
    pos, total = _mean(felt, w)
    sign = own.normal * there
    f, arm, t_bar = felt.force * sign, felt.point - pos[:, None], bar.torque[:, None]
    arm_bar = np.cross(f, t_bar)
    pos_bar = bar.pos - arm_bar.sum(1)
    share = np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)[:, None]
    told.point[:] += arm_bar + w * share * pos_bar[:, None]
    w_bar = (arm * pos_bar[:, None]).sum(-1, keepdims=True) * share * there
    length = np.linalg.norm(felt.force, axis=-1, keepdims=True)
    along = felt.force / np.where(length > 0, length, 1.0)
    told.force[:] += sign * (bar.force[:, None] + np.cross(np.broadcast_to(t_bar, arm.shape), arm)) + w_bar * along
    told.torque[:] += sign * t_bar


CONTACTS: dict[str, SensorKind] = {"contact": SensorKind("zone", _contact, _contact_vjp, cut="", felt=True)}
