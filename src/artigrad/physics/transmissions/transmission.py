"""Transmissions: lengths along which forces act, their moments, and the adjoint.

A transmission has a length L(q) and a moment over the degrees of freedom that it moves, its entries: a force f along it
is tau = moment f, its velocity is moment . v.

    fixed     L = sum of scale q                      moment = scales
    spatial   L = sum of scale |x_b - x_a|            moment = dL/dq      (or around a shape, `wrapping`)
    ball      L = gear . rotation vector              moment = gear, in the axes of the body or of the parent
    free      L = 0                                   moment = gear
    site      L = 0                                   moment = that of a wrench, gear in the axes of the site
    relative, crank: between two sites (`site_transmissions`);   adhesion: none, its force acts in contacts

Users of a transmission read ws.length and ws.moment, and add cotangents to ws.length_bar and ws.moment_bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...compiler import Reals, carry, loop, maximum, select, sqrt, switch, to_real
from ...model.transmissions import LINES, PIECES, line_feature
from ..context import Step
from ..kinematics import link_kinematics
from ..spatial import (
    Force,
    Quat,
    Vec3,
    at_point,
    cross,
    dot,
    point_velocity,
    quat_log,
    quat_matrix,
    quat_normalize,
    rotation_vector_rate_vjp,
)
from . import site_transmissions
from .attachment import End, add_end_pull, add_pull, entries, finish_pulls, project, start_pulls
from .wrapping import Around, path_around

NO_LENGTH = 1e-15  # m


def _by_kind(s: Step, t: Any, functions: dict[str, Callable[[Step, Any], None]]) -> None:
    """Call the function of the transmission's kind."""
    cases = {k: partial(functions[name], s, t) for k, name in enumerate(LINES) if s.has(line_feature(name))}
    switch(s.model.line_kind[t], cases)


def kinematics(s: Step) -> None:
    """Stage 1: kinematics of links, then lengths and moments of transmissions."""
    link_kinematics(s)
    if s.has("lines"):
        for t in loop(s.model.nline):
            _by_kind(s, t, FORWARD)


def clear_line_bars(s: Step) -> None:
    """Clear the cotangents of lengths and moments."""
    if not s.has("lines"):
        return
    for t in loop(s.model.nline):
        s.ws.length_bar[t] = 0.0
    for e in loop(s.model.line_entry[s.model.nline]):
        s.ws.moment_bar[e] = 0.0


def lines_vjp(s: Step) -> None:
    """Add to the cotangents of q (tangent) and constants, given ws.length_bar and ws.moment_bar."""
    if not s.has("lines"):
        return
    for t in loop(s.model.nline):
        _by_kind(s, t, BACKWARD)


def along(s: Step, t: Any, x: Reals) -> Any:
    """Return moment . x."""
    total = carry(0.0)
    for e, k in entries(s, t):
        total.value = total.value + s.ws.moment[e] * x[k]
    return total.value


def add_along(s: Step, t: Any, f: Any, tau: Reals) -> None:
    """Add moment f to tau."""
    for e, k in entries(s, t):
        tau[k] = tau[k] + s.ws.moment[e] * f


def force_bar_along(s: Step, t: Any, tau_bar: Reals) -> Any:
    """Cotangent of a force along transmission t from that of tau."""
    return along(s, t, tau_bar)


def add_moment_bars(s: Step, t: Any, x: Reals, bar: Any) -> None:
    """Add the cotangent of the moment in moment . x, whose cotangent is `bar`."""
    for e, k in entries(s, t):
        s.ws.moment_bar[e] = s.ws.moment_bar[e] + x[k] * bar


def add_velocity_bars(s: Step, t: Any, bar: Any) -> None:
    """Add the cotangents of v and of the moment from that of the velocity of transmission t."""
    add_along(s, t, bar, s.bars.v)
    add_moment_bars(s, t, s.v, bar)


# -- sums of joint positions ---------------------------------------------------------------------------------------------
def _pieces(s: Step, t: Any) -> Iterator[Any]:
    """Yield the segments of transmission t."""
    yield from loop(s.model.line_piece[t], s.model.line_piece[t + 1])


def _fixed(s: Step, t: Any) -> None:
    """Sum of joint positions."""
    total, shift = carry(0.0), s.model.line_entry[t] - s.model.line_piece[t]
    for n in _pieces(s, t):
        scale = s.const.piece[n].scale
        s.ws.moment[n + shift] = scale
        total.value = total.value + scale * s.q[s.model.piece_a[n]]
    s.ws.length[t] = total.value


def _fixed_vjp(s: Step, t: Any) -> None:
    """Adjoint of `_fixed`."""
    shift, length_bar = s.model.line_entry[t] - s.model.line_piece[t], s.ws.length_bar[t]
    for n in _pieces(s, t):
        e = n + shift
        k, scale = s.model.entry_dof[e], s.const.piece[n].scale
        s.bars.tangent[k] = s.bars.tangent[k] + scale * length_bar
        if s.bars.const is not None:
            bar = s.bars.const.piece[n]
            bar.scale = bar.scale + s.q[s.model.piece_a[n]] * length_bar + s.ws.moment_bar[e]


# -- paths between sites -------------------------------------------------------------------------------------------------
def _direction(a: End, b: End) -> tuple[Any, Vec3]:
    """Length and direction of a straight segment."""
    return _pull(b.world - a.world)


def _pull(d: Vec3) -> tuple[Any, Vec3]:
    """Length and direction of a vector; without length its direction is x, as in MuJoCo."""
    square = dot(d, d)
    long = sqrt(maximum(square, 1e-30))
    some = long > NO_LENGTH
    return select(some, long, 0.0), select(some, d / long, Vec3(1.0, 0.0, 0.0))


def _by_piece(s: Step, n: Any, straight: Callable[[], Any], around: Callable[[bool], Any]) -> Any:
    """Return straight(), or around(cylinder) for a segment that wraps around a shape."""
    cases = {0: straight}
    cases |= {k: partial(around, name == "cylinder") for k, name in enumerate(PIECES) if k and s.has(name)}
    return switch(s.model.piece_kind[n], cases)


def _spatial(s: Step, t: Any) -> None:
    """Length and moment of a path between sites."""
    ws, total = s.ws, carry(0.0)
    for _, k in entries(s, t):  # segments also act on joints that carry both of their links, which are no entries
        ws.dense[k] = 0.0
    for n in _pieces(s, t):
        long = _by_piece(s, n, partial(_straight, s, n), partial(_around, s, n))
        total.value = total.value + long * s.const.piece[n].scale
    ws.length[t] = total.value
    for e, k in entries(s, t):
        ws.moment[e] = ws.dense[k]


def _ends(s: Step, n: Any) -> tuple[End, End, Any]:
    """Both ends of segment n, and its scale."""
    return End(s, s.model.piece_a[n]), End(s, s.model.piece_b[n]), s.const.piece[n].scale


def _straight(s: Step, n: Any) -> Any:
    """Length of a straight segment; its force is added to ws.dense."""
    a, b, scale = _ends(s, n)
    long, direction = _direction(a, b)
    for end, sign in ((a, -1.0), (b, 1.0)):
        project(s, end.link, at_point(end.X.r, direction * (sign * scale), Vec3.zero()))
    return long


class _Wrapped:
    """Segment around a shape, or straight if the shape is not in its way.

    The first part leads from a to the shape, or to b; the second from the shape to b, if the segment wraps.
    """

    def __init__(self, s: Step, n: Any, cylinder: bool):
        self.a, self.b, self.scale = _ends(s, n)
        self.g = g = End(s, s.model.piece_around[n])
        side = End(s, s.model.piece_side[n]).world - g.world
        axes = g.X.R.column(0), g.X.R.column(1), g.X.R.column(2)
        shape = Around(cylinder, axes, s.const.piece[n].radius, side, to_real(s.model.piece_sided[n]))
        u, v = self.a.world - g.world, self.b.world - g.world
        self.path = path_around(shape, u, v)
        touch = self.touch = self.path.touch()
        self.on = touch.on
        self.first, self.last = touch.first, touch.last
        e0, e1 = select(self.on, touch.first - u, v - u), select(self.on, v - touch.last, v - u)
        (self.l0, self.d0), (self.l1, self.d1) = _pull(e0), _pull(e1)
        self.d0, self.d1 = (
            select(self.on, x, y) for x, y in zip(self.path.directions(), (self.d0, self.d1), strict=True)
        )
        self.long = select(self.on, touch.long, self.l0)

    def force_on_shape(self, scale: Any) -> Force:
        """Force on the shape of a pull along the path."""
        at, pull = self.g.X.r, Vec3.zero()
        F = at_point(at + self.first, self.d0 * scale, pull) - at_point(at + self.last, self.d1 * scale, pull)
        return select(self.on, F, Force.zero())


def _around(s: Step, n: Any, cylinder: bool) -> Any:
    """Length of a segment around a shape; its forces are added to ws.dense."""
    w = _Wrapped(s, n, cylinder)
    project(s, w.a.link, at_point(w.a.X.r, w.d0 * -w.scale, Vec3.zero()))
    project(s, w.b.link, at_point(w.b.X.r, w.d1 * w.scale, Vec3.zero()))
    project(s, w.g.link, w.force_on_shape(w.scale))
    return w.long


def _spatial_vjp(s: Step, t: Any) -> None:
    """Adjoint of `_spatial`, for  length_bar L + moment . x,  x the cotangent of the moment.

    With W the motions under x, moment . x is the sum of  scale n . (W_b at b - W_a at a).
    """
    start_pulls(s, t)
    length_bar = s.ws.length_bar[t]
    for n in _pieces(s, t):
        _by_piece(s, n, partial(_straight_vjp, s, n, length_bar), partial(_around_vjp, s, n, length_bar))
    finish_pulls(s, t)


def _straight_vjp(s: Step, n: Any, length_bar: Any) -> None:
    """Adjoint of `_straight`."""
    a, b, scale = _ends(s, n)
    long, direction = _direction(a, b)
    W_a, W_b = (s.ws.pull[end.link].W for end in (a, b))
    apart = point_velocity(b.X.r, W_b) - point_velocity(a.X.r, W_a)
    across = (apart - direction * dot(direction, apart)) * (scale / maximum(long, NO_LENGTH))
    x_bar = direction * (scale * length_bar) + select(long > NO_LENGTH, across, Vec3.zero())
    for end, sign in ((a, -1.0), (b, 1.0)):
        add_end_pull(s, end, direction * (sign * scale), x_bar * sign)
    if s.bars.const is not None:
        s.bars.const.piece[n].scale += length_bar * long + dot(direction, apart)


def _around_vjp(s: Step, n: Any, length_bar: Any, cylinder: bool) -> None:
    """Adjoint of `_around`.

    The path is of minimal length, so its length changes with the positions of ends and shape as if the points of
    contact were fixed to the shape; its moment does not, since these points move.
    """
    w = _Wrapped(s, n, cylinder)
    a, b, g, on, scale = w.a, w.b, w.g, w.on, w.scale
    W_a, W_b, W_g = (s.ws.pull[end.link].W for end in (a, b, g))
    v_a, v_b = point_velocity(a.X.r, W_a), point_velocity(b.X.r, W_b)
    apart0 = select(on, point_velocity(g.X.r + w.first, W_g), v_b) - v_a
    apart1 = select(on, v_b - point_velocity(g.X.r + w.last, W_g), Vec3.zero())
    across0, across1 = (
        select(x > NO_LENGTH, (apart - d * dot(d, apart)) * (scale / maximum(x, NO_LENGTH)), Vec3.zero())
        for apart, d, x in ((apart0, w.d0, w.l0), (apart1, w.d1, w.l1))
    )
    turned0, turned1 = (
        select(x > NO_LENGTH, cross(d * sign, W_g.w), Vec3.zero())
        for d, x, sign in ((w.d0, w.l0, scale), (w.d1, w.l1, -scale))
    )
    bars = w.path.vjp(across0 + turned0, turned1 - across1)
    pull0, pull1 = w.d0 * (scale * length_bar), w.d1 * (scale * length_bar)
    add_end_pull(s, a, w.d0 * -scale, bars.u - across0 - pull0)
    add_end_pull(s, b, w.d1 * scale, bars.v + select(on, across1, across0) + pull1)
    c_bar = select(on, across0 - across1, Vec3.zero()) - bars.u - bars.v
    o_bar = c_bar + select(on, pull0 - pull1, Vec3.zero())
    c_bar = c_bar + select(on, turned0 + turned1, Vec3.zero())
    moved = Force(cross(g.X.r, c_bar) + cross(g.X.R.column(2), bars.axis), c_bar) + w.force_on_shape(scale * length_bar)
    add_pull(s, g, w.force_on_shape(scale), moved, o_bar)
    if s.bars.const is not None:
        piece = s.bars.const.piece[n]
        piece.scale += length_bar * w.long + dot(w.d0, apart0) + dot(w.d1, apart1)
        piece.radius += bars.radius + select(on, scale * length_bar * w.path.by_radius(), 0.0)


# -- actuators on ball and free joints -----------------------------------------------------------------------------------
def _put_moment(s: Step, t: Any, x: Vec3, shift: int = 0) -> None:
    """Set three entries of the moment."""
    s.ws.moment.put(s.model.line_entry[t] + shift, x)


def _moment_bar(s: Step, t: Any, shift: int = 0) -> Vec3:
    """Cotangent of three entries of the moment."""
    return s.ws.moment_bar.struct(s.model.line_entry[t] + shift, Vec3)


def _turned(s: Step, t: Any) -> Quat:
    """Rotation of a ball or free joint."""
    return quat_normalize(s.q.struct(s.model.line_at[t], Quat))


def _ball(s: Step, t: Any, in_parent: bool = False) -> None:
    """Transmission of a ball joint, gear in the axes of the body or of the parent."""
    gear, q = s.const.line[t].force, _turned(s, t)
    s.ws.length[t] = dot(gear, quat_log(q))
    _put_moment(s, t, quat_matrix(q).T @ gear if in_parent else gear)


def _ball_vjp(s: Step, t: Any, in_parent: bool = False) -> None:
    """Adjoint of `_ball`."""
    gear, q, length_bar = s.const.line[t].force, _turned(s, t), s.ws.length_bar[t]
    k, phi = s.model.entry_dof[s.model.line_entry[t]], quat_log(q)
    _, turn_bar = rotation_vector_rate_vjp(phi, Vec3.zero(), gear * length_bar)
    gear_bar, more = _turned_vjp(q, gear, _moment_bar(s, t), in_parent)
    s.bars.tangent.put(k, s.bars.tangent.struct(k, Vec3) + turn_bar + more)
    if s.bars.const is not None:
        s.bars.const.line[t].force += gear_bar + phi * length_bar


def _turned_vjp(q: Quat, gear: Vec3, bar: Vec3, in_parent: bool) -> tuple[Vec3, Vec3]:
    """Cotangents of the gear and of a rotation in body axes, for R^T gear or for the gear itself."""
    if not in_parent:
        return bar, Vec3.zero()
    R = quat_matrix(q)
    return R @ bar, cross(bar, R.T @ gear)


def _free(s: Step, t: Any, in_parent: bool = False) -> None:
    """Transmission of a free joint, gear in the axes of the body or of the parent."""
    own = s.const.line[t]
    s.ws.length[t] = 0.0
    _put_moment(s, t, own.force)
    _put_moment(s, t, quat_matrix(_turned(s, t)).T @ own.torque if in_parent else own.torque, 3)


def _free_vjp(s: Step, t: Any, in_parent: bool = False) -> None:
    """Adjoint of `_free`."""
    own, k = s.const.line[t], s.model.entry_dof[s.model.line_entry[t] + 3]
    torque_bar, more = _turned_vjp(_turned(s, t), own.torque, _moment_bar(s, t, 3), in_parent)
    s.bars.tangent.put(k, s.bars.tangent.struct(k, Vec3) + more)
    if s.bars.const is not None:
        bar = s.bars.const.line[t]
        bar.force += _moment_bar(s, t)
        bar.torque += torque_bar


def _without_length(s: Step, t: Any) -> None:
    """Transmission without length and moment."""
    s.ws.length[t] = 0.0


FORWARD: dict[str, Callable[[Step, Any], None]] = {
    "fixed": _fixed,
    "spatial": _spatial,
    "ball": _ball,
    "ball_in_parent": partial(_ball, in_parent=True),
    "free": _free,
    "free_in_parent": partial(_free, in_parent=True),
    "site": site_transmissions.site,
    "relative": site_transmissions.relative,
    "crank": site_transmissions.crank,
    "adhesion": _without_length,
}
BACKWARD: dict[str, Callable[[Step, Any], None]] = {
    "fixed": _fixed_vjp,
    "spatial": _spatial_vjp,
    "ball": _ball_vjp,
    "ball_in_parent": partial(_ball_vjp, in_parent=True),
    "free": _free_vjp,
    "free_in_parent": partial(_free_vjp, in_parent=True),
    "site": site_transmissions.site_vjp,
    "relative": site_transmissions.relative_vjp,
    "crank": site_transmissions.crank_vjp,
    "adhesion": lambda s, t: None,
}
