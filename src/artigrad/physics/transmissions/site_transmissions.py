"""Transmissions of actuators at sites: at one site, and between two.

    site      L = 0                                            a wrench, gear in the axes of the site
    relative  L = gear . (position, rotation) from the reference site   the same wrench, in the axes of that site, on
    both
    crank     L = a . d - sqrt((a . d)^2 + rod^2 - d . d)      moment = dL/dq

d is the vector from the slider (or the reference site) to the site, a the slider's axis z. Degrees of freedom that
carry both sites of a relative transmission do not move it and are not among its entries.
"""

from __future__ import annotations

from typing import Any

from ...compiler import select, sqrt, vjp_of
from ..context import Step
from ..spatial import (
    Force,
    Vec3,
    at_point,
    cross,
    cross_force,
    dot,
    force_to_child,
    point_velocity,
    quat_log,
    quat_of_matrix,
    rotation_vector_rate_vjp,
)
from .attachment import End, add_bars, add_frame_bars, clear_path, entries, motion, project, spread


def _take_moment(s: Step, t: Any) -> None:
    """Copy the projected forces to the moment."""
    for e, k in entries(s, t):
        s.ws.moment[e] = s.ws.dense[k]


# -- a wrench at one site ------------------------------------------------------------------------------------------------
def _wrench(s: Step, t: Any) -> tuple[End, Force]:
    """Site of a transmission and its wrench."""
    end, own = End(s, s.model.line_at[t]), s.const.line[t]
    return end, at_point(end.X.r, end.X.R @ own.force, end.X.R @ own.torque)


def site(s: Step, t: Any) -> None:
    """Wrench at a site."""
    end, F = _wrench(s, t)
    clear_path(s, end.link)
    project(s, end.link, F)
    s.ws.length[t] = 0.0
    _take_moment(s, t)


def site_vjp(s: Step, t: Any) -> None:
    """Adjoint of `site`. The wrench rotates with its link, so a rigid motion of both it and W leaves W . F unchanged."""
    spread(s, t)
    end, F = _wrench(s, t)
    W = motion(s, end.link)
    add_bars(s, end.link, W, F, Force.zero(), Vec3.zero())
    if s.bars.const is not None:
        bar, X = s.bars.const.line[t], end.X
        bar.force += X.R.T @ point_velocity(X.r, W)
        bar.torque += X.R.T @ W.w
        s.bars.const.frame[end.frame].X -= force_to_child(X, cross_force(W, F))


# -- relative to a reference site
# ---------------------------------------------------------------------------------------------
class _Relative:
    """Site, reference site, and the wrench between them in world axes."""

    def __init__(self, s: Step, t: Any):
        own = s.const.line[t]
        self.a, self.b = End(s, s.model.line_at[t]), End(s, s.model.line_other[t])
        self.d = self.a.world - self.b.world
        self.force, self.torque = self.b.X.R @ own.force, self.b.X.R @ own.torque
        self.turn = quat_log(quat_of_matrix(self.b.X.R.T @ self.a.X.R))
        self.length = dot(self.force, self.d) + dot(own.torque, self.turn)

    def wrench_at(self, end: End) -> Force:
        """Wrench at one of the sites."""
        return at_point(end.X.r, self.force, self.torque)


def relative(s: Step, t: Any) -> None:
    """Wrench between two sites."""
    line = _Relative(s, t)
    for end in (line.a, line.b):
        clear_path(s, end.link)
    project(s, line.a.link, line.wrench_at(line.a))
    project(s, line.b.link, -line.wrench_at(line.b))
    s.ws.length[t] = line.length
    _take_moment(s, t)


def relative_vjp(s: Step, t: Any) -> None:
    """Adjoint of `relative`, for  length_bar L + W_a . F_a - W_b . F_b,  where both wrenches rotate with b."""
    line, length_bar = _Relative(s, t), s.ws.length_bar[t]
    a, b, force, torque = line.a, line.b, line.force, line.torque
    for end in (a, b):
        clear_path(s, end.link)
    spread(s, t)
    W_a, W_b = motion(s, a.link), motion(s, b.link)
    force_bar = point_velocity(a.X.r, W_a) - point_velocity(b.X.r, W_b) + line.d * length_bar
    torque_bar = W_a.w - W_b.w
    _, own_turn_bar = rotation_vector_rate_vjp(line.turn, Vec3.zero(), s.const.line[t].torque * length_bar)
    turn_bar, o_bar = a.X.R @ own_turn_bar, force * length_bar
    wrench_turned = cross(force, force_bar) + cross(torque, torque_bar)
    for end, W, sign, turned in ((a, W_a, 1.0, turn_bar), (b, W_b, -1.0, wrench_turned - turn_bar)):
        p_bar = (o_bar + cross(force, W.w)) * sign
        moved = Force(cross(end.X.r, p_bar) + turned, p_bar)
        add_frame_bars(s, end, W, line.wrench_at(end) * sign, moved, o_bar * sign)
    if s.bars.const is not None:
        bar, R = s.bars.const.line[t], b.X.R
        bar.force += R.T @ force_bar
        bar.torque += R.T @ torque_bar + line.turn * length_bar


# -- a slider-crank --------------------------------------------------------------------------------------------------------
def _root(d: Vec3, a: Vec3, rod: float) -> tuple[Any, Any, Any]:
    """Return whether the rod reaches the axis, a . d, and the square root of the rest (1 if it does not)."""
    along = dot(a, d)
    left = along * along + rod * rod - dot(d, d)
    reaches = left > 0.0
    return reaches, along, sqrt(select(reaches, left, 1.0))


def crank_length(d: Vec3, a: Vec3, rod: float) -> float:
    """L = a . d - sqrt((a . d)^2 + rod^2 - d . d),  or  a . d  if the rod does not reach the axis."""
    reaches, along, root = _root(d, a, rod)
    return along - select(reaches, root, 0.0)


@vjp_of(crank_length)
def crank_length_vjp(d: Vec3, a: Vec3, rod: float, y_bar: float) -> tuple[Vec3, Vec3, Any]:
    """Adjoint of `crank_length`."""
    reaches, along, root = _root(d, a, rod)
    share = y_bar * (1.0 - select(reaches, along / root, 0.0))
    over = select(reaches, y_bar / root, 0.0)
    return a * share + d * over, d * share, -(rod * over)


def crank_rate(d: Vec3, a: Vec3, rod: float, d_rate: Vec3, a_rate: Vec3) -> float:
    """Rate of L under rates of d and a."""
    d_bar, a_bar, _ = crank_length_vjp(d, a, rod, 1.0)
    return dot(d_bar, d_rate) + dot(a_bar, a_rate)


@vjp_of(crank_rate)
def crank_rate_vjp(
    d: Vec3, a: Vec3, rod: float, d_rate: Vec3, a_rate: Vec3, y_bar: float
) -> tuple[Vec3, Vec3, Any, Vec3, Vec3]:
    """Adjoint of `crank_rate`."""
    reaches, along, root = _root(d, a, rod)
    rate = dot(a, d_rate) + dot(d, a_rate)
    N = along * rate - dot(d, d_rate)
    over = select(reaches, y_bar / root, 0.0)
    root_bar = over * N / root
    along_bar, rate_bar = root_bar * along / root - over * rate, y_bar - over * along
    d_bar = a * along_bar + a_rate * rate_bar + d_rate * over - d * (root_bar / root)
    a_bar = d * along_bar + d_rate * rate_bar
    return d_bar, a_bar, root_bar * rod / root, a * rate_bar + d * over, d * rate_bar


class _Crank:
    """Sites of crank and slider, and the derivatives of the length with respect to d, a and the rod."""

    def __init__(self, s: Step, t: Any):
        self.crank, self.slider = End(s, s.model.line_at[t]), End(s, s.model.line_other[t])
        self.rod, self.axis = s.const.line[t].rod, self.slider.X.R.column(2)
        self.d = self.crank.world - self.slider.world
        self.by_d, self.by_axis, self.by_rod = crank_length_vjp(self.d, self.axis, self.rod, 1.0)

    @property
    def on_crank(self) -> Force:
        """Force on the crank per unit of force."""
        return at_point(self.crank.X.r, self.by_d, Vec3.zero())

    @property
    def on_slider(self) -> Force:
        """Force on the slider per unit of force."""
        return at_point(self.slider.X.r, -self.by_d, cross(self.axis, self.by_axis))


def crank(s: Step, t: Any) -> None:
    """Slider-crank."""
    line = _Crank(s, t)
    for end in (line.crank, line.slider):
        clear_path(s, end.link)
    project(s, line.crank.link, line.on_crank)
    project(s, line.slider.link, line.on_slider)
    s.ws.length[t] = crank_length(line.d, line.axis, line.rod)
    _take_moment(s, t)


def crank_vjp(s: Step, t: Any) -> None:
    """Adjoint of `crank`, for length_bar L and the rate of L under the motions W."""
    line, length_bar = _Crank(s, t), s.ws.length_bar[t]
    spread(s, t)
    at, slider = line.crank, line.slider
    W, W_s = motion(s, at.link), motion(s, slider.link)
    rates = point_velocity(at.X.r, W) - point_velocity(slider.X.r, W_s), cross(W_s.w, line.axis)
    d_bar, axis_bar, rod_bar, *_ = crank_rate_vjp(line.d, line.axis, line.rod, *rates, 1.0)
    o_bar = d_bar + line.by_d * length_bar
    axis_bar = axis_bar + line.by_axis * length_bar + cross(line.by_axis, W_s.w)
    p_bar = o_bar + cross(line.by_d, W.w)
    add_frame_bars(s, at, W, line.on_crank, Force(cross(at.X.r, p_bar), p_bar), o_bar)
    p_bar = -(o_bar + cross(line.by_d, W_s.w))
    moved = Force(cross(slider.X.r, p_bar) + cross(line.axis, axis_bar), p_bar)
    add_frame_bars(s, slider, W_s, line.on_slider, moved, -o_bar)
    if s.bars.const is not None:
        s.bars.const.line[t].rod += rod_bar + line.by_rod * length_bar
