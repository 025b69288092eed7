"""Actuators: torque motors and servos by one affine law with limits.

    length = gear q,   velocity = gear v
    drive  = clamp(gain clamp(u, control range) + b0 + b1 length, +-b2 max_velocity)
    force  = clamp(drive + b2 velocity + slope . (length, velocity) clamp(u), force range),   tau = gear force

A motor has gain alone; a position servo b1 = -gain and its damping in b2; a velocity servo b2 = -gain. The limit on
`drive` is the speed limit of a servo: driven that hard, damping balances it at max_velocity. Gradients of a clamped
quantity go to the limit it sits on. q and v are those of a joint with one axis, or of a line (`lines`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spatial import bounded_vjp
from ...staging import Reals, clamp, loop, switch
from ..context import Step
from ..lines import add_along, add_moment_bars, add_velocity_bars, along


def by_transmission(s: Step, j: Any, joint: Callable[[], Any], line: Callable[[Any], Any]) -> Any:
    """`joint()` for an actuator on a joint with one axis, `line(t)` for one on line t."""
    if "pulled" not in s.lines:
        return joint()
    t = s.model.act_line[j] - 1
    return switch(s.model.act_on_line[j], {0: joint, 1: lambda: line(t)})


def _position(s: Step, j: Any) -> Any:
    return by_transmission(s, j, lambda: s.q[s.model.act_q[j]], lambda t: s.ws.length[t])


def _of_joints(s: Step, j: Any, x: Reals) -> Any:
    """What actuator j sees of a vector over the degrees of freedom, but for its gear."""
    return by_transmission(s, j, lambda: x[s.model.act_v[j]], lambda t: along(s, t, x))


def _velocity(s: Step, j: Any) -> Any:
    return _of_joints(s, j, s.v)


def _sloped(s: Step, j: Any, control: Any, length: Any, velocity: Any) -> Any:
    """What the slope of a gain adds to the force."""
    own = s.const.slope[j]
    return (own.on_length * length + own.on_velocity * velocity) * control


def _raw(s: Step, j: Any, drive: Any, control: Any) -> Any:
    """The force before its limits."""
    row = s.const.actuator[j]
    velocity = row.gear * _velocity(s, j)
    raw = drive + row.b2 * velocity
    return raw + _sloped(s, j, control, row.gear * _position(s, j), velocity) if "slope" in s.extras else raw


def velocity_gain(s: Step, j: Any) -> Any:
    """How the force of actuator j changes with its velocity."""
    b2 = s.const.actuator[j].b2
    return b2 + s.const.slope[j].on_velocity * _control(s, j) if "slope" in s.extras else b2


def velocity_gain_vjp(s: Step, j: Any, bar: Any) -> None:
    row = s.const.actuator[j]
    if s.bars.const is not None:
        s.bars.const.actuator[j].b2 += bar
    if "slope" in s.extras:
        control_bar, low_bar, high_bar = bounded_vjp(s.u[j], row.low, row.high, bar * s.const.slope[j].on_velocity)
        s.bars.u[j] = s.bars.u[j] + control_bar
        if s.bars.const is not None:
            s.bars.const.slope[j].on_velocity += bar * _control(s, j)
            s.bars.const.actuator[j].low += low_bar
            s.bars.const.actuator[j].high += high_bar


def _control(s: Step, j: Any) -> Any:
    row = s.const.actuator[j]
    return clamp(s.u[j], row.low, row.high)


def actuation(s: Step, tau: Reals) -> None:
    """tau += the forces of all actuators"""
    for j in loop(s.model.nu):
        row, va = s.const.actuator[j], s.model.act_v[j]
        gear, limit = row.gear, row.drive
        control = clamp(s.u[j], row.low, row.high)
        drive = clamp(row.gain * control + row.b0 + row.b1 * (gear * _position(s, j)), -limit, limit)
        force = clamp(_raw(s, j, drive, control), row.force_low, row.force_high)

        def on_joint(va: Any = va, pull: Any = gear * force) -> None:
            tau[va] = tau[va] + pull

        def on_line(t: Any, pull: Any = gear * force) -> None:
            add_along(s, t, pull, tau)

        by_transmission(s, j, on_joint, on_line)


def follows(s: Step, j: Any) -> Any:
    """Whether the force of actuator j changes with its velocity: it is at no limit."""
    row = s.const.actuator[j]
    control = clamp(s.u[j], row.low, row.high)
    drive = clamp(row.gain * control + row.b0 + row.b1 * (row.gear * _position(s, j)), -row.drive, row.drive)
    raw = _raw(s, j, drive, control)
    return (raw > row.force_low) & (raw < row.force_high)


def actuation_vjp(s: Step, tau_bar: Reals) -> None:
    """Adds to the cotangents of q (tangent), v, u and constants."""
    bars = s.bars
    for j in loop(s.model.nu):
        row, va = s.const.actuator[j], s.model.act_v[j]
        gear, limit = row.gear, row.drive
        x, rate = _position(s, j), _velocity(s, j)
        length, velocity = gear * x, gear * rate
        control = clamp(s.u[j], row.low, row.high)
        wanted = row.gain * control + row.b0 + row.b1 * length
        drive = clamp(wanted, -limit, limit)
        raw = drive + row.b2 * velocity
        if "slope" in s.extras:
            raw = raw + _sloped(s, j, control, length, velocity)
        force = clamp(raw, row.force_low, row.force_high)

        t = _of_joints(s, j, tau_bar)
        raw_bar, force_low_bar, force_high_bar = bounded_vjp(raw, row.force_low, row.force_high, gear * t)
        wanted_bar, down_bar, up_bar = bounded_vjp(wanted, -limit, limit, raw_bar)
        felt_bar, length_bar, velocity_bar = wanted_bar * row.gain, wanted_bar * row.b1, raw_bar * row.b2
        if "slope" in s.extras:
            slope = s.const.slope[j]
            felt_bar = felt_bar + raw_bar * (slope.on_length * length + slope.on_velocity * velocity)
            length_bar = length_bar + raw_bar * slope.on_length * control
            velocity_bar = velocity_bar + raw_bar * slope.on_velocity * control
            if bars.const is not None:
                bars.const.slope[j].on_length += raw_bar * length * control
                bars.const.slope[j].on_velocity += raw_bar * velocity * control
        control_bar, low_bar, high_bar = bounded_vjp(s.u[j], row.low, row.high, felt_bar)
        bars.u[j] = bars.u[j] + control_bar
        x_bar, rate_bar = gear * length_bar, gear * velocity_bar

        def on_joint(va: Any = va, x_bar: Any = x_bar, rate_bar: Any = rate_bar) -> None:
            bars.tangent[va] = bars.tangent[va] + x_bar
            bars.v[va] = bars.v[va] + rate_bar

        def on_line(t: Any, x_bar: Any = x_bar, rate_bar: Any = rate_bar, pull: Any = gear * force) -> None:
            s.ws.length_bar[t] = s.ws.length_bar[t] + x_bar
            add_velocity_bars(s, t, rate_bar)
            add_moment_bars(s, t, tau_bar, pull)

        by_transmission(s, j, on_joint, on_line)
        if bars.const is not None:
            bar = bars.const.actuator[j]
            bar.gear += force * t + x * length_bar + rate * velocity_bar
            bar.gain += wanted_bar * control
            bar.b0 += wanted_bar
            bar.b1 += wanted_bar * length
            bar.b2 += raw_bar * velocity
            bar.low += low_bar
            bar.high += high_bar
            bar.force_low += force_low_bar
            bar.force_high += force_high_bar
            bar.drive += up_bar - down_bar
