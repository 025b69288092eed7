"""Angle wrapping of position servos on ball joints and relative sites, whose length is an angle.

The length of a ball joint, or of a site relative to another, is an angle times the norm g of its gear. A position servo
on it, force = gain (c - length) + .., uses the error within +-pi g:

    c  ->  c - 2 pi g n,   n: the integer nearest to (c - length)/(2 pi g)

Activations are wrapped likewise after a step; a filter wraps its control relative to its activation. As in MuJoCo, a
servo is an actuator whose bias on the length is exactly -gain; a gear with a translational part is not wrapped. n is
not differentiated: where it changes, c jumps by a full turn and the force with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ...compiler import floor, maximum, select, sqrt, switch
from ...model.transmissions import LINES, line_feature
from ..context import Step
from ..spatial import Vec3, dot

TAU = 6.283185307179586
ANGULAR_GEARS = {
    "ball": "force",
    "ball_in_parent": "force",
    "relative": "torque",
}  # kinds of transmissions, and the field with their gear


def full_turns(s: Step, j: Any, c: Any, beside: Any = None) -> tuple[Any, Any]:
    """Return the number of full turns from the length of actuator j (or from `beside`) to c, and the length of a turn.

    Both are 0 unless the actuator is an angular servo.
    """
    if not s.has(*map(line_feature, ANGULAR_GEARS)):
        return 0.0, 0.0
    row, t = s.const.actuator[j], s.model.act_line[j] - 1
    other = row.gain + row.b1
    servo = (other >= 0.0) & (other <= 0.0)
    for slope in (s.const.slope[j].on_length, s.const.slope[j].on_velocity) if s.has("slope") else ():
        servo = servo & (slope >= 0.0) & (slope <= 0.0)

    def on_line() -> tuple[Any, Any]:
        size, _ = _gear(s, t)
        turn = select(servo, TAU * maximum(row.gear, -row.gear) * size, 0.0)
        some = turn > 0.0
        error = (c - (row.gear * s.ws.length[t] if beside is None else beside)) / select(some, turn, 1.0)
        whole = floor(maximum(error, -error) + 0.5)
        return select(some, select(error < 0.0, -whole, whole), 0.0), turn

    return switch(s.model.act_on_line[j], {0: lambda: (0.0, 0.0), 1: on_line})


def wrap_angle(s: Step, j: Any, c: Any, beside: Any = None) -> Any:
    """Return c - turn n."""
    n, turn = full_turns(s, j, c, beside)
    return c - turn * n


def wrap_angle_vjp(s: Step, j: Any, c: Any, bar: Any, beside: Any = None) -> None:
    """Add the cotangent of the gear, given that of the wrapped c, which equals that of c."""
    const = s.bars.const
    if const is None or not s.has(*map(line_feature, ANGULAR_GEARS)):
        return
    n, turn = full_turns(s, j, c, beside)
    row, t = s.const.actuator[j], s.model.act_line[j] - 1
    turn_bar = -(n * bar)
    const.actuator[j].gear += select(turn > 0.0, turn_bar * turn / select(turn > 0.0, row.gear, 1.0), 0.0)

    def add(part: str | None) -> None:
        if part is not None:
            axes, line = _gear(s, t)[1], const.line[t]
            share = turn_bar * turn / maximum(dot(axes, axes), 1e-30)
            setattr(line, part, getattr(line, part) + axes * share)

    def on_line() -> None:
        switch(s.model.line_kind[t], {k: partial(add, part) for k, part in _kinds(s)})

    switch(s.model.act_on_line[j], {0: lambda: None, 1: on_line})


def _kinds(s: Step) -> list[tuple[int, str | None]]:
    """Return the index of every kind of transmission, with the field of its angular gear, if any."""
    return [(k, ANGULAR_GEARS.get(name)) for k, name in enumerate(LINES) if s.has(line_feature(name))]


def _gear(s: Step, t: Any) -> tuple[Any, Vec3]:
    """Return the norm of the gear of transmission t, 0 if it is not angular, and the gear."""
    own = s.const.line[t]

    def norm(part: str | None) -> tuple[Any, Vec3]:
        if part is None:
            return 0.0, Vec3.zero()
        axes = getattr(own, part)
        square = dot(axes, axes)
        some = square > 1e-30 if part == "force" else (square > 1e-30) & (dot(own.force, own.force) <= 0.0)
        return select(some, sqrt(select(some, square, 1.0)), 0.0), axes

    cases = {k: partial(norm, part) for k, part in _kinds(s)}
    return switch(s.model.line_kind[t], cases)
