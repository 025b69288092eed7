"""Gravity compensation by the actuators of a joint: an actuator force, within the effort limit of the joint.

Compensation is a force on links (`fluid_and_gravcomp`), and so acts on every joint. On joints whose actuators provide
it, it is subtracted again (`subtract_actuator_gravcomp`) and added to the actuator forces (`add_actuator_gravcomp`),
before these are limited.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, climb, loop, switch
from .. import joints
from ..context import Step
from .fluid_and_gravcomp import gravcomp_force, gravcomp_force_vjp
from .link_motion import add_path_bars, motion_of


def _of_actuators(s: Step, k: Any, x: Any) -> Any:
    """Return x for a degree of freedom whose actuators compensate gravity, else 0."""
    return switch(s.model.dof_actuator_gravcomp[k], {0: lambda: 0.0, 1: lambda: x})


def _fill(s: Step) -> None:
    """Compute ws.lift = S^T of the compensation of all links, for degrees of freedom whose actuators provide it; else 0."""
    for k in loop(s.model.nv):
        s.ws.lift[k] = 0.0
    for i in loop(1, s.model.nl):
        F = gravcomp_force(s, i)
        for j in climb(s.model.parent, i):
            joints.add_projection(s, j, F, s.ws.lift)
    for k in loop(s.model.nv):
        s.ws.lift[k] = _of_actuators(s, k, s.ws.lift[k])


def add_actuator_gravcomp(s: Step, tau: Reals, sign: float = 1.0) -> None:
    """Add the gravity compensation by actuators to tau."""
    _fill(s)
    for k in loop(s.model.nv):
        tau[k] = tau[k] + sign * s.ws.lift[k]


def add_actuator_gravcomp_vjp(s: Step, tau_bar: Reals, sign: float = 1.0) -> None:
    """Add to the cotangents of q (tangent) and constants."""
    ws = s.ws
    for k in loop(s.model.nv):
        ws.lift[k] = _of_actuators(s, k, sign * tau_bar[k])
    for i in loop(1, s.model.nl):
        Y: Any = motion_of(s, i, ws.lift)
        add_path_bars(s, i, ws.lift, Y, gravcomp_force(s, i), gravcomp_force_vjp(s, i, Y))


def subtract_actuator_gravcomp(s: Step, tau: Reals) -> None:
    """Subtract the part of gravity compensation that actuators provide from tau."""
    if s.has("actuator_gravcomp"):
        add_actuator_gravcomp(s, tau, -1.0)


def subtract_actuator_gravcomp_vjp(s: Step, tau_bar: Reals) -> None:
    """Adjoint of `subtract_actuator_gravcomp`."""
    if s.has("actuator_gravcomp"):
        add_actuator_gravcomp_vjp(s, tau_bar, -1.0)
