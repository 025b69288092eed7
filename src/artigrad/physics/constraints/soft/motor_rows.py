"""Servo motors as single rows on the joint they drive, and their adjoint.

    target = clamp(gain (u - length)/(1 + dt gain), +-max_velocity),   length = gear q      position control
    target = clamp(gain u, +-max_velocity)                                                  velocity control
    y      = a - (target/gear - v)/dt,                                 a force within gear * force range

The row requests a velocity at the end of the step, and the position error is that at the end: q + dt target. Therefore
no gain makes a motor overshoot in a step or become unstable. Beyond its force range a motor yields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....compiler import Row, clamp, counter, loop, maximum, minimum, select
from ...context import Step
from ...margin import keep_distance
from ...spatial import bounded_vjp
from .families import BIG
from .soft_problem import MOTOR


def add_motor_rows(s: Step, count: counter) -> None:
    """Add a row for every servo motor."""
    problem = s.constraints
    if not problem.has("motor"):
        return
    for m in loop(problem.motors):
        j, n = problem.motor[m], count.value
        k, row, own, gear = s.model.act_v[j], problem.single[n], s.const.servo[j], s.const.actuator[j].gear
        row.sign, row.r, row.D = 1.0, 0.0, own.D
        row.ref = (_target(s, j).velocity / gear - s.v[k]) / s.dt
        one, other = gear * own.low, gear * own.high
        row.low, row.high = maximum(minimum(one, other), -BIG), minimum(maximum(one, other), BIG)
        problem.single_dof[n], problem.single_link[n], problem.single_kind[n] = k, j, MOTOR
        count.value = n + 1


class _Target(NamedTuple):
    """Target velocity of a motor.

    Attributes:
        velocity: Target within the velocity limit.
        free: Target before the limit.
        control: Control within its range.
        error: Position or velocity error.
        share: Reduction of the gain at the end of the step.
    """

    velocity: Any
    free: Any
    control: Any
    error: Any
    share: Any


def _target(s: Step, j: Any) -> _Target:
    """Compute the target velocity of actuator j."""
    own, row = s.const.servo[j], s.const.actuator[j]
    control = clamp(s.u[j], row.low, row.high)
    error = control - own.on_length * (row.gear * s.q[s.model.act_q[j]])
    share = 1.0 / (1.0 + s.dt * own.gain * own.on_length)
    free = own.gain * error * share
    return _Target(clamp(free, -own.top, own.top), free, control, error, share)


def motor_bars(s: Step, n: Any, row: Row) -> None:
    """Add the cotangents of position, velocity, control and parameters, from J nu (row.z), kappa (row.d) and the force."""
    j, k, bars = s.constraints.single_link[n], s.constraints.single_dof[n], s.bars
    own, actuator, goal = s.const.servo[j], s.const.actuator[j], _target(s, j)
    gear, on_length, rate = actuator.gear, own.on_length, row.d / s.dt
    by = abs(own.gain * goal.share * on_length * gear)
    keep_distance(s, abs(own.top - abs(goal.free)) / select(by > 0.0, by, 1.0), by > 0.0)
    bars.v[k] = bars.v[k] - rate
    free_bar, down_bar, up_bar = bounded_vjp(goal.free, -own.top, own.top, rate / gear)
    error_bar = free_bar * own.gain * goal.share
    length_bar = -(error_bar * on_length)
    bars.tangent[k] = bars.tangent[k] + gear * length_bar
    control_bar, low_bar, high_bar = bounded_vjp(s.u[j], actuator.low, actuator.high, error_bar)
    bars.u[j] = bars.u[j] + control_bar
    if bars.const is None:
        return
    bar, more = bars.const.servo[j], bars.const.actuator[j]
    bar.gain += free_bar * goal.error * goal.share * goal.share  # of gain/(1 + dt gain)
    bar.top += up_bar - down_bar
    bar.D -= select(row.K > 0.0, row.z * row.y, 0.0)
    # at a limit the force is gear times that limit: the upper one if a positive gear acts forwards
    beyond = select(row.K > 0.0, 0.0, select(row.D > 0.0, row.z, 0.0))
    upper = gear * row.y < 0.0
    bar.high += select(upper, gear * beyond, 0.0)
    bar.low += select(upper, 0.0, gear * beyond)
    q = s.q[s.model.act_q[j]]
    pushed = select(abs(beyond) > 0.0, beyond * row.f / gear, 0.0)
    more.gear += q * length_bar - rate * goal.velocity / (gear * gear) + pushed
    more.low += low_bar
    more.high += high_bar
