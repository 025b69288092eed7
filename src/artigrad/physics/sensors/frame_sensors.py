"""Sensors of joints and frames. A frame is read in the world or relative to a reference frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiler import carry, loop, select, sincos, steady, switch
from ...model.model import Model, Sensor
from ..spatial import Mat3, Quat, Vec3, cross, quat_normalize, quat_of_matrix
from ..spatial.vectors import hat
from .sensor_inputs import FrameRow, Input, SensorInputs
from .sensor_kind import Entry, Reading, SensorKind, by_place, function, put, taken


# -- joints --------------------------------------------------------------------------------------------------------------
def _q_place(m: Model, s: Sensor) -> Entry:
    return (m.joint_q[s.on],)


def _v_place(m: Model, s: Sensor) -> Entry:
    return (m.joint_v[s.on],)


def _as_it_is(x: Any) -> Any:
    return x


_Q = function(lambda c, n: [c.q(c.table.place(n))], _as_it_is)
_V = function(lambda c, n: [c.v(c.table.place(n))], _as_it_is)
_BALL_Q = function(lambda c, n: [c.q(c.table.place(n), Quat)], quat_normalize)
_BALL_V = function(lambda c, n: [c.v(c.table.place(n), Vec3)], _as_it_is)


# -- frames --------------------------------------------------------------------------------------------------------------
def frame_place(m: Model, s: Sensor) -> Entry:
    """Return the row of the frame of a site, the row of its reference frame, and 1 if it has one."""
    return m.nb + s.on, m.nb + max(s.ref, 0), int(s.ref >= 0)


def _own(c: SensorInputs, n: Any) -> list[Input]:
    return [c.frame(c.table.place(n))]


def _both(c: SensorInputs, n: Any) -> list[Input]:
    return [c.frame(c.table.place(n)), c.frame(c.table.place(n, 1))]


def _relative(own: FrameRow, ref: FrameRow) -> FrameRow:
    """Relative motion p' = Rr^T (p - pr),  R' = Rr^T R,  v' = Rr^T (v - vr - wr x (p - pr)),  w' = Rr^T (w - wr)."""
    apart, T = own.p - ref.p, ref.R.T
    return FrameRow(T @ apart, T @ own.R, T @ (own.v - ref.v - cross(ref.w, apart)), T @ (own.w - ref.w))


def _of_frame(part: Callable[[FrameRow], Any], cut: str = "both") -> SensorKind:
    """Return the record of a part of a frame, relative to its reference if it has one."""
    cases = {0: function(_own, part), 1: function(_both, lambda own, ref: part(_relative(own, ref)))}
    return SensorKind("site", by_place(2, cases), lambda s: 3, cut, place=frame_place)


def _of_site(value: Callable[[FrameRow], Vec3]) -> SensorKind:
    """Return the record of a vector of a site in the axes of the site."""
    return SensorKind("site", function(_own, value), lambda s: 3, place=frame_place)


_MAGNETOMETER = function(
    lambda c, n: [c.frame(c.table.place(n)), c.constant("magnetic", 0, "field")], lambda own, field: own.R.T @ field
)


# -- quaternions ---------------------------------------------------------------------------------------------------------
FIXED, ANGULAR, QUATERNION, FLOATING = range(4)  # rotations of joints


def _quaternion_path(m: Model, s: Sensor) -> list[list[Entry]]:
    """Return the bodies from that of the site to the world: body, rotation of its joint, its entry of q.

    Then those of the reference, and both sites.
    """
    return [_chain(m, s.on), _chain(m, s.ref) if s.ref >= 0 else []]


def _chain(m: Model, site: int) -> list[Entry]:
    out, body = list[Entry](), m.site_body[site]
    while body >= 0:
        joint, first = m.joint_kind(body), m.joint_q[body]
        kind = FLOATING if joint.floating else QUATERNION if joint.quaternion else ANGULAR if joint.angular else FIXED
        out.append((body, kind, first + (joint.straight if joint.quaternion else 0)))
        body = m.parent[body]
    return out


def _along_tree(c: SensorInputs, n: Any, which: int, frame: Any) -> Quat:
    """Product of the quaternions of a site and all bodies and joints between it and the world.

    It is continuous in q and selects the sign of the quaternion; not differentiated.
    """
    s = c.s
    q = carry(_steady(c.constant("site_turn", frame - s.model.nb, "rotation").load()))
    for body, kind, first, *_ in c.table.entries(n, which):

        def half_turn(first: Any = first, body: Any = body) -> Quat:
            sine, cos = sincos(0.5 * steady(s.q[first]))
            return Quat.of(cos, _steady(s.const.sensed[body].axis) * sine)

        def own(first: Any = first) -> Quat:
            return _steady(s.q.struct(first, Quat))

        q.value = (
            switch(
                kind,
                {
                    FIXED: lambda: Quat(1.0, 0.0, 0.0, 0.0),
                    ANGULAR: half_turn,
                    QUATERNION: own,
                    FLOATING: own,
                },
            )
            @ q.value
        )

        def inner(body: Any = body) -> Quat:
            return _steady(s.const.sensed[body].rotation)

        turn = dict.fromkeys((FIXED, ANGULAR, QUATERNION), inner) | {FLOATING: lambda: Quat(1.0, 0.0, 0.0, 0.0)}
        q.value = switch(kind, turn) @ q.value
    return q.value


def _steady(q: Any) -> Any:
    return q.map(steady)


def _quaternion(c: SensorInputs, n: Any, R: Mat3) -> Quat:
    """Quaternion w x y z of R, with the sign of the product along the tree."""
    along = _along_tree(c, n, 0, c.table.place(n))
    seen = carry(along)
    for _ in loop(c.table.place(n, 2)):
        seen.value = _along_tree(c, n, 1, c.table.place(n, 1)).conjugate @ along
    y, other = quat_of_matrix(R), seen.value
    same = y.w * other.w + y.x * other.x + y.y * other.y + y.z * other.z
    return select(steady(same) < 0.0, -y, y)


def _turn_bar(y: Quat, R: Mat3, y_bar: Quat) -> Mat3:
    """Cotangent R_bar = [g] R / 2 with g_k = y_bar . (0, e_k) (x) y / 2; a world rotation w gives dR = [w] R."""
    g = (y_bar @ y.conjugate).u * 0.5
    return (hat(g) @ R) * 0.5


def _read_quaternion(c: SensorInputs, n: Any) -> None:
    put(c, n, _quaternion(c, n, _orientation(c, n)))


def _read_quaternion_vjp(c: SensorInputs, n: Any) -> None:
    R = _orientation(c, n)
    y = _quaternion(c, n, R)
    bar = _turn_bar(y, R, taken(c, n, y))
    own, ref = _both(c, n)

    def alone() -> None:
        own.add(_rotation(bar))

    def relative() -> None:
        own.add(_rotation(ref.load().R @ bar))
        ref.add(_rotation(own.load().R @ bar.T))

    switch(c.table.place(n, 2), {0: alone, 1: relative})


def _rotation(R: Mat3) -> FrameRow:
    return FrameRow(Vec3.zero(), R, Vec3.zero(), Vec3.zero())


def _orientation(c: SensorInputs, n: Any) -> Mat3:
    own, ref = _both(c, n)
    cases = {0: lambda: own.load().R, 1: lambda: ref.load().R.T @ own.load().R}
    return switch(c.table.place(n, 2), cases)


FRAME_SENSORS: dict[str, SensorKind] = {
    "jointpos": SensorKind("joint", _Q, place=_q_place),
    "jointvel": SensorKind("joint", _V, place=_v_place),
    "ballquat": SensorKind("joint", _BALL_Q, lambda s: 4, "", place=_q_place),
    "ballangvel": SensorKind("joint", _BALL_V, lambda s: 3, place=_v_place),
    "framepos": _of_frame(lambda f: f.p),
    "framequat": SensorKind(
        "site",
        Reading(_read_quaternion, _read_quaternion_vjp),
        lambda s: 4,
        "",
        place=frame_place,
        lists=_quaternion_path,
    ),
    "framexaxis": _of_frame(lambda f: f.R.column(0), ""),
    "frameyaxis": _of_frame(lambda f: f.R.column(1), ""),
    "framezaxis": _of_frame(lambda f: f.R.column(2), ""),
    "framelinvel": _of_frame(lambda f: f.v),
    "frameangvel": _of_frame(lambda f: f.w),
    "velocimeter": _of_site(lambda f: f.R.T @ f.v),
    "gyro": _of_site(lambda f: f.R.T @ f.w),
    "magnetometer": SensorKind("site", _MAGNETOMETER, lambda s: 3, place=frame_place),
}
