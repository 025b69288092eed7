"""Actuators: motors, servos and muscles by one law with limits.

    length = gear q,   velocity = gear v,   c: the control, or the activation (`activation`)
    drive  = clamp(gain c + b0 + b1 length, +-b2 max_velocity)
    force  = clamp(drive + b2 velocity + slope . (length, velocity) c + muscle, force range),   tau = gear force

A motor has a gain only; a position servo b1 = -gain and its damping in b2; a velocity servo b2 = -gain; a muscle has an
active force times c and a passive one (`muscle`). The limit on `drive` is the speed limit of a servo: at that drive,
damping balances it at max_velocity. Gradients of a clamped quantity go to the active limit. An angular position servo
wraps c to within half a turn of the length (`circle`). q and v are those of an axial joint or of a transmission. The
sum of tau over all actuators is within the effort limit of a joint; gravity compensation by actuators counts too
(`gravity_compensation`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...compiler import Reals, clamp, loop, minimum, pullback, select, switch
from ..context import Step
from ..margin import keep_speed
from ..spatial import bounded_vjp
from ..transmissions.transmission import add_along, add_moment_bars, add_velocity_bars, along
from .activation import gain_input, gain_input_vjp
from .circle import wrap_angle, wrap_angle_vjp
from .gravity_compensation import add_actuator_gravcomp, add_actuator_gravcomp_vjp
from .muscle import active, active_slope, passive, passive_vjp


def by_transmission(s: Step, j: Any, joint: Callable[[], Any], line: Callable[[Any], Any]) -> Any:
    """Return joint() for an actuator on an axial joint, line(t) for one on transmission t."""
    if not s.has("pulled"):
        return joint()
    t = s.model.act_line[j] - 1
    return switch(s.model.act_on_line[j], {0: joint, 1: lambda: line(t)})


def along_actuator(s: Step, j: Any, x: Reals) -> Any:
    """Project a vector over the degrees of freedom onto actuator j, without its gear."""
    return by_transmission(s, j, lambda: x[s.model.act_v[j]], lambda t: along(s, t, x))


def add_actuator_bars(s: Step, j: Any, x_bar: Any, rate_bar: Any) -> None:
    """Add the cotangents of the position and velocity of actuator j to those of q and v."""
    bars, va = s.bars, s.model.act_v[j]

    def on_joint() -> None:
        bars.tangent[va] = bars.tangent[va] + x_bar
        bars.v[va] = bars.v[va] + rate_bar

    def on_line(t: Any) -> None:
        s.ws.length_bar[t] = s.ws.length_bar[t] + x_bar
        add_velocity_bars(s, t, rate_bar)

    by_transmission(s, j, on_joint, on_line)


def with_muscle(s: Step, j: Any, absent: Any, muscle: Callable[[Any], Any]) -> Any:
    """Return muscle(row) if actuator j is a muscle, else `absent`."""
    if not s.has("muscle"):
        return absent
    return switch(
        s.model.act_is_muscle[j], {0: lambda: absent, 1: lambda: muscle(s.const.muscle[s.model.act_muscle[j]])}
    )


class Drive(NamedTuple):
    """Intermediate results from a control to a force."""

    x: Any  # position of the joint or transmission, without gear
    rate: Any
    length: Any
    velocity: Any
    gain_input: Any  # control or activation
    c: Any  # the same, wrapped for an angular servo
    wanted: Any  # before the limits of the drive, and of the force
    raw: Any
    force: Any


def drive_of(s: Step, j: Any) -> Drive:
    """Compute the force of actuator j."""
    row = s.const.actuator[j]
    x = by_transmission(s, j, lambda: s.q[s.model.act_q[j]], lambda t: s.ws.length[t])
    rate = along_actuator(s, j, s.v)
    length, velocity, given = row.gear * x, row.gear * rate, gain_input(s, j)
    c = wrap_angle(s, j, given)
    wanted = row.gain * c + row.b0 + row.b1 * length
    raw = clamp(wanted, -row.drive, row.drive) + row.b2 * velocity
    if s.has("slope"):
        own = s.const.slope[j]
        raw = raw + (own.on_length * length + own.on_velocity * velocity) * c

    def muscle(m: Any) -> Any:
        ends = m.low, m.high
        return active(m.gain, *ends, length, velocity) * c + passive(m.bias, *ends, length)

    if s.has("muscle"):
        raw = raw + with_muscle(s, j, 0.0, muscle)
    return Drive(x, rate, length, velocity, given, c, wanted, raw, clamp(raw, row.force_low, row.force_high))


def force_vjp(s: Step, j: Any, d: Drive, force_bar: Any) -> tuple[Any, Any]:
    """Return the cotangents of the position and velocity of actuator j; add to those of u, act and constants."""
    row, const = s.const.actuator[j], s.bars.const
    raw_bar, force_low_bar, force_high_bar = bounded_vjp(d.raw, row.force_low, row.force_high, force_bar)
    wanted_bar, down_bar, up_bar = bounded_vjp(d.wanted, -row.drive, row.drive, raw_bar)
    c_bar, length_bar, velocity_bar = wanted_bar * row.gain, wanted_bar * row.b1, raw_bar * row.b2
    if s.has("slope"):
        slope = s.const.slope[j]
        c_bar = c_bar + raw_bar * (slope.on_length * d.length + slope.on_velocity * d.velocity)
        length_bar = length_bar + raw_bar * slope.on_length * d.c
        velocity_bar = velocity_bar + raw_bar * slope.on_velocity * d.c
        if const is not None:
            const.slope[j].on_length += raw_bar * d.length * d.c
            const.slope[j].on_velocity += raw_bar * d.velocity * d.c
    if s.has("muscle"):
        more = with_muscle(s, j, (0.0, 0.0, 0.0), lambda m: _muscle_vjp(s, j, d, m, raw_bar))
        c_bar, length_bar, velocity_bar = c_bar + more[0], length_bar + more[1], velocity_bar + more[2]
    wrap_angle_vjp(s, j, d.gain_input, c_bar)
    gain_input_vjp(s, j, c_bar)
    if const is not None:
        bar = const.actuator[j]
        bar.gear += d.x * length_bar + d.rate * velocity_bar
        bar.gain += wanted_bar * d.c
        bar.b0 += wanted_bar
        bar.b1 += wanted_bar * d.length
        bar.b2 += raw_bar * d.velocity
        bar.force_low += force_low_bar
        bar.force_high += force_high_bar
        bar.drive += up_bar - down_bar
    return row.gear * length_bar, row.gear * velocity_bar


def _muscle_vjp(s: Step, j: Any, d: Drive, m: Any, bar: Any) -> tuple[Any, Any, Any]:
    """Cotangents of c, length and velocity from that of a muscle's force."""
    ends = m.low, m.high
    gain, y_bars = pullback(active, m.gain, *ends, d.length, d.velocity)
    gain_bar, low_bar, high_bar, length_bar, velocity_bar = y_bars(bar * d.c)
    bias_bar, *more = passive_vjp(m.bias, *ends, d.length, bar)
    if s.bars.const is not None:
        own = s.bars.const.muscle[s.model.act_muscle[j]]
        own.gain += gain_bar
        own.bias += bias_bar
        own.low += low_bar + more[0]
        own.high += high_bar + more[1]
    return gain * bar, length_bar + more[2], velocity_bar


def actuation(s: Step, tau: Reals) -> None:
    """Add the forces of all actuators to tau, within the effort limits of joints."""
    if not s.has("effort"):
        return _pull(s, tau)
    efforts(s)
    for k in loop(s.model.nv):
        own = s.const.effort[k]
        tau[k] = tau[k] + clamp(s.ws.effort[k], own.low, own.high)


def efforts(s: Step) -> None:
    """Compute ws.effort, the forces of all actuators with gravity compensation, before these limits."""
    for k in loop(s.model.nv):
        s.ws.effort[k] = 0.0
    _pull(s, s.ws.effort)
    if s.has("actuator_gravcomp"):
        add_actuator_gravcomp(s, s.ws.effort)


def effort_limit_vjp(s: Step, tau_bar: Reals) -> Reals:
    """VJP of clamping actuator torques to `effort_limit`.

    Returns:
        Cotangent of the unclamped torques; those of the limits are added to s.bars.const.
    """
    if not s.has("effort"):
        return tau_bar
    efforts(s)
    for k in loop(s.model.nv):
        own = s.const.effort[k]
        s.ws.effort_bar[k], low_bar, high_bar = bounded_vjp(s.ws.effort[k], own.low, own.high, tau_bar[k])
        if s.bars.const is not None:
            s.bars.const.effort[k].low += low_bar
            s.bars.const.effort[k].high += high_bar
    if s.has("actuator_gravcomp"):
        add_actuator_gravcomp_vjp(s, s.ws.effort_bar)
    return s.ws.effort_bar


def _pull(s: Step, tau: Reals) -> None:
    """Add the forces of all actuators to tau."""
    for j in loop(s.model.nu):
        pull, va = s.const.actuator[j].gear * drive_of(s, j).force, s.model.act_v[j]

        def on_joint(va: Any = va, pull: Any = pull) -> None:
            tau[va] = tau[va] + pull

        def on_line(t: Any, pull: Any = pull) -> None:
            add_along(s, t, pull, tau)

        by_transmission(s, j, on_joint, on_line)


def actuation_vjp(s: Step, tau_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v, act, u and constants."""
    tau_bar = effort_limit_vjp(s, tau_bar)
    for j in loop(s.model.nu):
        d, gear, t = drive_of(s, j), s.const.actuator[j].gear, along_actuator(s, j, tau_bar)
        keep_force_range_margin(s, j, d)
        add_actuator_bars(s, j, *force_vjp(s, j, d, gear * t))
        if s.has("pulled"):
            pull = gear * d.force
            by_transmission(s, j, lambda: None, lambda n, pull=pull: add_moment_bars(s, n, tau_bar, pull))  # type: ignore[misc]
        if s.bars.const is not None:
            s.bars.const.actuator[j].gear += d.force * t


def keep_force_range_margin(s: Step, j: Any, d: Drive) -> None:
    """Reduce the switch margin to the speed at which the force or drive of actuator j would reach a limit.

    Limits that depend on the control only have no margin.
    """
    row = s.const.actuator[j]
    by_position = abs(row.gear * row.b1) * s.dt
    rate = by_position + abs(row.gear * row.b2)
    for x, low, high, by in (
        (d.raw, row.force_low, row.force_high, rate),
        (d.wanted, -row.drive, row.drive, by_position),
    ):
        moves = by > 0.0
        keep_speed(s, minimum(abs(x - low), abs(high - x)) / select(moves, by, 1.0), moves & (low < high))


# -- velocity derivatives of forces
# ----------------------------------------------------------------------------------------------
def depends_on_velocity(s: Step, j: Any, d: Drive) -> Any:
    """Return 1 if the force of actuator j depends on velocity, 0 at a limit of it or of its joint (ws.effort: `efforts`)."""
    row, k = s.const.actuator[j], s.model.act_v[j]
    free = select((d.raw > row.force_low) & (d.raw < row.force_high), 1.0, 0.0)
    if not s.has("effort"):
        return free

    def on_joint() -> Any:
        own, effort = s.const.effort[k], s.ws.effort[k]
        return select((effort > own.low) & (effort < own.high), free, 0.0)

    return by_transmission(s, j, on_joint, lambda t: free)


def velocity_gain(s: Step, j: Any, d: Drive) -> Any:
    """Derivative of the force of actuator j with respect to its velocity."""
    gain = s.const.actuator[j].b2
    if s.has("slope"):
        gain = gain + s.const.slope[j].on_velocity * d.c

    def muscle(m: Any) -> Any:
        return active_slope(m.gain, m.low, m.high, d.length, d.velocity) * d.c

    return gain + with_muscle(s, j, 0.0, muscle) if s.has("muscle") else gain


def velocity_gain_vjp(s: Step, j: Any, d: Drive, bar: Any) -> None:
    """Add to the cotangents of q, v, u, act and constants."""
    const, c_bar = s.bars.const, 0.0
    if const is not None:
        const.actuator[j].b2 += bar
    if s.has("slope"):
        c_bar = c_bar + bar * s.const.slope[j].on_velocity
        if const is not None:
            const.slope[j].on_velocity += bar * d.c

    def muscle(m: Any) -> tuple[Any, Any, Any]:
        slope, y_bars = pullback(active_slope, m.gain, m.low, m.high, d.length, d.velocity)
        gain_bar, low_bar, high_bar, length_bar, velocity_bar = y_bars(bar * d.c)
        if const is not None:
            own = const.muscle[s.model.act_muscle[j]]
            own.gain += gain_bar
            own.low += low_bar
            own.high += high_bar
        return slope * bar, length_bar, velocity_bar

    if s.has("muscle"):
        more, length_bar, velocity_bar = with_muscle(s, j, (0.0, 0.0, 0.0), muscle)
        gear, c_bar = s.const.actuator[j].gear, c_bar + more
        add_actuator_bars(s, j, gear * length_bar, gear * velocity_bar)
        if const is not None:
            const.actuator[j].gear += d.x * length_bar + d.rate * velocity_bar
    if s.has("slope", "muscle"):
        gain_input_vjp(s, j, c_bar)
