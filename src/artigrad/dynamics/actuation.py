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

from ..staging import Reals, clamp, loop, select
from ..tables import Bars, Constants, Topology


def _clamp_vjp(x: Any, low: Any, high: Any, y_bar: Any) -> tuple[Any, Any, Any]:
    """The cotangents of x, low and high for y = clamp(x, low, high)."""
    below, above = x < low, x > high
    return (
        select(below, 0.0, select(above, 0.0, y_bar)),
        select(below, y_bar, 0.0),
        select(above, y_bar, 0.0),
    )


def actuation(topology: Topology, const: Constants, q: Reals, v: Reals, u: Reals, tau: Reals) -> None:
    """tau += the forces of all actuators"""
    for j in loop(topology.nu):
        row, qa, va = const.actuator[j], topology.act_q[j], topology.act_v[j]
        gear, limit = row.gear, row.drive
        control = clamp(u[j], row.low, row.high)
        drive = clamp(row.gain * control + row.b0 + row.b1 * (gear * q[qa]), -limit, limit)
        force = clamp(drive + row.b2 * (gear * v[va]), row.force_low, row.force_high)
        tau[va] = tau[va] + gear * force


def actuation_vjp(
    topology: Topology, const: Constants, q: Reals, v: Reals, u: Reals, tau_bar: Reals, bars: Bars
) -> None:
    """Adds to the cotangents of q (tangent), v, u and constants."""
    for j in loop(topology.nu):
        row, qa, va = const.actuator[j], topology.act_q[j], topology.act_v[j]
        gear, limit = row.gear, row.drive
        length, velocity = gear * q[qa], gear * v[va]
        control = clamp(u[j], row.low, row.high)
        wanted = row.gain * control + row.b0 + row.b1 * length
        drive = clamp(wanted, -limit, limit)
        raw = drive + row.b2 * velocity
        force = clamp(raw, row.force_low, row.force_high)

        t = tau_bar[va]
        raw_bar, force_low_bar, force_high_bar = _clamp_vjp(raw, row.force_low, row.force_high, gear * t)
        wanted_bar, down_bar, up_bar = _clamp_vjp(wanted, -limit, limit, raw_bar)
        control_bar, low_bar, high_bar = _clamp_vjp(u[j], row.low, row.high, wanted_bar * row.gain)
        length_bar, velocity_bar = wanted_bar * row.b1, raw_bar * row.b2
        bars.u[j] = bars.u[j] + control_bar
        bars.tangent[va] = bars.tangent[va] + gear * length_bar
        bars.v[va] = bars.v[va] + gear * velocity_bar
        if bars.const is not None:
            bar = bars.const.actuator[j]
            bar.gear += force * t + q[qa] * length_bar + v[va] * velocity_bar
            bar.gain += wanted_bar * control
            bar.b0 += wanted_bar
            bar.b1 += wanted_bar * length
            bar.b2 += raw_bar * velocity
            bar.low += low_bar
            bar.high += high_bar
            bar.force_low += force_low_bar
            bar.force_high += force_high_bar
            bar.drive += up_bar - down_bar
