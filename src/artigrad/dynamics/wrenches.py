"""External wrenches on bodies: force, then torque, in world axes at the body's centre of mass (as MuJoCo's xfrc_applied).

A kernel is staged with them only when a call passes some.
"""

from __future__ import annotations

from typing import Any

from ..spatial import Force, Vec3, at_point, at_point_vjp, cross, cross_force
from ..staging import loop
from ..tables import Bars, Constants, Topology, Workspace


def _centre(topology: Topology, const: Constants, ws: Workspace, b: Any) -> Vec3:
    """The centre of mass of body b (counted from 0), about the origin of its tree."""
    X = ws.link[topology.link_of_body[b + 1]].X
    return X.r + X.R @ const.body[b].com


def subtract_wrenches(topology: Topology, const: Constants, ws: Workspace) -> None:
    """F_i -= the wrenches on the bodies of link i"""
    if not ws.has_wrench:
        return
    for b in loop(topology.nb):
        force, torque = ws.wrench.struct(b * 6, Vec3), ws.wrench.struct(b * 6 + 3, Vec3)
        ws.link[topology.link_of_body[b + 1]].F -= at_point(_centre(topology, const, ws, b), force, torque)


def wrenches_vjp(topology: Topology, const: Constants, ws: Workspace, bars: Bars) -> None:
    """Adds to ws.field.zeta what the wrenches, whose forces F have the cotangent ws.link.y, say to the poses of links."""
    for b in loop(topology.nb):
        link = topology.link_of_body[b + 1]
        p, y = _centre(topology, const, ws, b), ws.link[link].y
        force, torque = ws.wrench.struct(b * 6, Vec3), ws.wrench.struct(b * 6 + 3, Vec3)
        p_bar, force_bar, torque_bar = at_point_vjp(p, force, torque, -y)
        ws.wrench_bar.put(b * 6, ws.wrench_bar.struct(b * 6, Vec3) + force_bar)
        ws.wrench_bar.put(b * 6 + 3, ws.wrench_bar.struct(b * 6 + 3, Vec3) + torque_bar)
        # the arm moves with the link; the wrench itself does not turn with it  (theory 2.7)
        ws.field[link].zeta += Force(cross(p, p_bar), p_bar) - cross_force(y, at_point(p, force, torque))
        if bars.const is not None:
            bars.const.body[b].com += ws.link[link].X.R.T @ p_bar
