"""External wrenches on bodies: force, then torque, in world axes at the body's center of mass (as MuJoCo's xfrc_applied).

A kernel is staged with them only if a call passes some.
"""

from __future__ import annotations

from typing import Any

from ...compiler import loop
from ..context import Step
from ..spatial import Force, Vec3, at_point, at_point_vjp, cross, cross_force


def _center(s: Step, b: Any) -> Vec3:
    """Center of mass of body b (counted from 0), about the origin of its tree."""
    X = s.link[s.model.link_of_body[b + 1]].X
    return X.r + X.R @ s.const.body[b].com


def subtract_wrenches(s: Step) -> None:
    """Subtract the wrenches on the bodies of link i from F_i."""
    if s.wrench is None:
        return
    for b in loop(s.model.nb):
        force, torque = s.wrench.struct(b * 6, Vec3), s.wrench.struct(b * 6 + 3, Vec3)
        s.link[s.model.link_of_body[b + 1]].F -= at_point(_center(s, b), force, torque)


def wrenches_vjp(s: Step) -> None:
    """Add the cotangents of the poses of links to s.field.zeta, given that of the wrenches' forces, s.link.y."""
    if s.wrench is None:
        return
    wrench_bar = s.bars.wrench
    assert wrench_bar is not None
    for b in loop(s.model.nb):
        link = s.model.link_of_body[b + 1]
        p, y = _center(s, b), s.link[link].y
        force, torque = s.wrench.struct(b * 6, Vec3), s.wrench.struct(b * 6 + 3, Vec3)
        p_bar, force_bar, torque_bar = at_point_vjp(p, force, torque, -y)
        wrench_bar.put(b * 6, wrench_bar.struct(b * 6, Vec3) + force_bar)
        wrench_bar.put(b * 6 + 3, wrench_bar.struct(b * 6 + 3, Vec3) + torque_bar)
        # the arm moves with the link; the wrench itself does not rotate with it  (theory 2.7)
        s.field[link].zeta += Force(cross(p, p_bar), p_bar) - cross_force(y, at_point(p, force, torque))
        if s.bars.const is not None:
            s.bars.const.body[b].com += s.link[link].X.R.T @ p_bar
