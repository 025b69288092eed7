"""Actuators: torque motors and servos by one affine law with limits.

    length = gear q,   velocity = gear v
    drive  = clamp(gain clamp(u, control range) + b0 + b1 length, +-b2 max_velocity)
    force  = clamp(drive + b2 velocity, force range),   tau = gear force

A motor has gain alone; a position servo b1 = -gain and its damping in b2; a velocity servo b2 = -gain. The limit on
`drive` is the speed limit of a servo: driven that hard, damping balances it at max_velocity. Gradients of a clamped
quantity go to the limit it sits on.
"""

from __future__ import annotations

from typing import Any

from ...spatial import bounded_vjp
from ...staging import Reals, clamp, loop
from ..context import Step


def actuation(s: Step, tau: Reals) -> None:
    """tau += the forces of all actuators"""
    for j in loop(s.model.nu):
        row, qa, va = s.const.actuator[j], s.model.act_q[j], s.model.act_v[j]
        gear, limit = row.gear, row.drive
        control = clamp(s.u[j], row.low, row.high)
        drive = clamp(row.gain * control + row.b0 + row.b1 * (gear * s.q[qa]), -limit, limit)
        force = clamp(drive + row.b2 * (gear * s.v[va]), row.force_low, row.force_high)
        tau[va] = tau[va] + gear * force


def follows(s: Step, j: Any) -> Any:
    """Whether the force of actuator j changes with its velocity: it is at no limit."""
    row, qa, va = s.const.actuator[j], s.model.act_q[j], s.model.act_v[j]
    control = clamp(s.u[j], row.low, row.high)
    drive = clamp(row.gain * control + row.b0 + row.b1 * (row.gear * s.q[qa]), -row.drive, row.drive)
    raw = drive + row.b2 * (row.gear * s.v[va])
    return (raw > row.force_low) & (raw < row.force_high)


def actuation_vjp(s: Step, tau_bar: Reals) -> None:
    """Adds to the cotangents of q (tangent), v, u and constants."""
    bars = s.bars
    for j in loop(s.model.nu):
        row, qa, va = s.const.actuator[j], s.model.act_q[j], s.model.act_v[j]
        gear, limit = row.gear, row.drive
        length, velocity = gear * s.q[qa], gear * s.v[va]
        control = clamp(s.u[j], row.low, row.high)
        wanted = row.gain * control + row.b0 + row.b1 * length
        drive = clamp(wanted, -limit, limit)
        raw = drive + row.b2 * velocity
        force = clamp(raw, row.force_low, row.force_high)

        t = tau_bar[va]
        raw_bar, force_low_bar, force_high_bar = bounded_vjp(raw, row.force_low, row.force_high, gear * t)
        wanted_bar, down_bar, up_bar = bounded_vjp(wanted, -limit, limit, raw_bar)
        control_bar, low_bar, high_bar = bounded_vjp(s.u[j], row.low, row.high, wanted_bar * row.gain)
        length_bar, velocity_bar = wanted_bar * row.b1, raw_bar * row.b2
        bars.u[j] = bars.u[j] + control_bar
        bars.tangent[va] = bars.tangent[va] + gear * length_bar
        bars.v[va] = bars.v[va] + gear * velocity_bar
        if bars.const is not None:
            bar = bars.const.actuator[j]
            bar.gear += force * t + s.q[qa] * length_bar + s.v[va] * velocity_bar
            bar.gain += wanted_bar * control
            bar.b0 += wanted_bar
            bar.b1 += wanted_bar * length
            bar.b2 += raw_bar * velocity
            bar.low += low_bar
            bar.high += high_bar
            bar.force_low += force_low_bar
            bar.force_high += force_high_bar
            bar.drive += up_bar - down_bar
