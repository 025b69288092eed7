"""Weight that the actuators of a joint compensate: it is an actuator force, within the limits of effort of the joint.

Compensation is a force on links (`surroundings`), and so acts in every joint. In those whose actuators do it, it is taken away
again (`subtract_actuator_gravcomp`) and added to the forces of actuators (`add_actuator_gravcomp`), before they are limited.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, climb, loop, switch
from .. import joints
from ..context import Step
from .fluid_and_gravcomp import gravcomp_force, gravcomp_force_vjp
from .link_motion import add_path_bars, motion_of


def _of_actuators(s: Step, k: Any, x: Any) -> Any:
    return switch(s.model.dof_lifts[k], {0: lambda: 0.0, 1: lambda: x})


def _fill(s: Step) -> None:
    """ws.lift = S^T of the lift of all links, of degrees of freedom whose actuators do it; 0 of others"""
    for k in loop(s.model.nv):
        s.ws.lift[k] = 0.0
    for i in loop(1, s.model.nl):
        F = gravcomp_force(s, i)
        for j in climb(s.model.parent, i):
            joints.add_projection(s, j, F, s.ws.lift)
    for k in loop(s.model.nv):
        s.ws.lift[k] = _of_actuators(s, k, s.ws.lift[k])


def add_actuator_gravcomp(s: Step, tau: Reals, sign: float = 1.0) -> None:
    """tau += the weight that actuators compensate"""
    _fill(s)
    for k in loop(s.model.nv):
        tau[k] = tau[k] + sign * s.ws.lift[k]


def add_actuator_gravcomp_vjp(s: Step, tau_bar: Reals, sign: float = 1.0) -> None:
    """Adds to the cotangents of q (tangent) and constants."""
    ws = s.ws
    for k in loop(s.model.nv):
        ws.lift[k] = _of_actuators(s, k, sign * tau_bar[k])
    for i in loop(1, s.model.nl):
        Y: Any = motion_of(s, i, ws.lift)
        add_path_bars(s, i, ws.lift, Y, gravcomp_force(s, i), gravcomp_force_vjp(s, i, Y))


def subtract_actuator_gravcomp(s: Step, tau: Reals) -> None:
    if "lifting" in s.extras:
        add_actuator_gravcomp(s, tau, -1.0)


def subtract_actuator_gravcomp_vjp(s: Step, tau_bar: Reals) -> None:
    if "lifting" in s.extras:
        add_actuator_gravcomp_vjp(s, tau_bar, -1.0)
