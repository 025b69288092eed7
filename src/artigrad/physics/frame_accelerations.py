"""Inputs of acceleration and force sensors, and the adjoint: accelerations, forces of limits and equalities, contacts.

Accelerations include the forces of all constraints. Accelerations of frames are proper accelerations, without gravity, as
an accelerometer measures them. Damping is evaluated at the current velocity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compiler import Layout, Reals, Table, loop
from ..model.model import Model
from . import joints
from .collision.candidates import candidates
from .constraints.report import REPORT, report
from .constraints.soft.equality_rows import HELD_REPORT, report_held
from .constraints.soft.limit_forces import limit_count, report_limits
from .context import Step
from .dynamics.inverse_dynamics import inward_vjp, link_forces
from .kinematics import clear_pose_bars
from .spatial import Force, Motion, Vec3, compose, cross, cross_force, force_to_child
from .step import accelerations, accelerations_vjp, recompute
from .tables import Topology

FRAME_MOTION = Layout(linear=Vec3, angular=Vec3)  # one row per body and site


def acceleration_data_size(model: Model) -> int:
    """Return the size of the output.

    The output has joint accelerations, a row of FRAME_MOTION per body and site, forces of joint limits, forces of rows of
    tendons, a row of HELD_REPORT per equality, and a row of REPORT per candidate contact point.
    """
    points = int(candidates(model).first[-1]) if model.shapes.pairs else 0
    held = len(model.equalities) * HELD_REPORT.size
    return model.nv + (model.nb + model.ns) * FRAME_MOTION.size + limit_count(model) + held + points * REPORT.size


class AccelerationDataOffsets(NamedTuple):
    """First entries of the parts of the output: rows of FRAME_MOTION, limit forces, rows of HELD_REPORT, contact rows."""

    frames: Any
    limits: Any
    held: Any
    contacts: Any


def acceleration_data_offsets(m: Topology) -> AccelerationDataOffsets:
    """Return the first entries of the parts of the output."""
    limits = m.nv + (m.nb + m.ns) * FRAME_MOTION.size
    held = limits + m.nl + 2 * m.ntendon
    return AccelerationDataOffsets(m.nv, limits, held, held + m.nequality * HELD_REPORT.size)


def _parts(s: Step, out: Reals) -> tuple[Table, Reals, Table, Reals]:
    """Return the parts of the output as tables and arrays."""
    at = acceleration_data_offsets(s.model)
    tables = (
        Table(out.memory, FRAME_MOTION, out.start + at.frames),
        Table(out.memory, HELD_REPORT, out.start + at.held),
    )
    return tables[0], out.shifted(at.limits), tables[1], out.shifted(at.contacts)


def _touches(s: Step) -> bool:
    return s.constraints is not None and s.constraints.has("contact", "patch")


def _stops(s: Step) -> bool:
    kinds = "limit", "ball", "tendon_low", "tendon_high", "tendon_dry", "tendon_couple"
    return s.constraints is not None and s.constraints.has(*kinds)


def _holds(s: Step) -> bool:
    return s.constraints is not None and s.constraints.has("connect", "weld")


def acceleration_data(s: Step, out: Reals) -> None:
    """Compute the output at the current state."""
    accelerations(s)
    for k in loop(s.model.nv):
        out[k] = s.ws.qdd[k]
    frames, limits, held, contacts = _parts(s, out)
    if _touches(s):
        report(s, contacts)
    if s.constraints is not None:
        report_held(s, held)
    if _stops(s):
        report_limits(s, limits)
    else:
        for k in loop(s.model.nl + 2 * s.model.ntendon):
            limits[k] = 0.0
    link_forces(s, s.ws.qdd)
    for k in loop(s.model.nb + s.model.ns):
        link, row = s.link[s.model.frame_link[k]], frames[k]
        p, a, v = compose(link.X, s.const.frame[k].X).r, link.a, link.v
        row.linear = a.v + cross(a.w, p) + cross(v.w, v.v + cross(v.w, p))
        row.angular = a.w


def acceleration_data_vjp(s: Step, out_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v, u and constants."""
    accelerations(s)
    solved_acceleration_data_vjp(s, out_bar)


def solved_acceleration_data_vjp(s: Step, out_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v, u and constants, given ws.qdd and the kinematics."""
    link_forces(s, s.ws.qdd)
    frames, limits, held, contacts = _parts(s, out_bar)
    clear_pose_bars(s, "w_bar")
    for i in loop(s.model.nl):
        link = s.link[i]
        link.F, link.y, link.a_bar, link.v_bar = Force.zero(), Motion.zero(), Force.zero(), Force.zero()
        s.field[i].w = Motion.zero()
    for k in loop(s.model.nb + s.model.ns):
        _frame_vjp(s, k, frames[k].linear, frames[k].angular)
    inward_vjp(s, in_world=True, moves=False)
    for k in loop(s.model.nv):
        s.ws.qdd_bar[k] = out_bar[k]
    for i in loop(1, s.model.nl):
        joints.add_projection(s, i, s.link[i].a_bar, s.ws.qdd_bar)
    if _touches(s):
        s.constraints.report_bar = Table(contacts.memory, REPORT, contacts.start)
    if _stops(s):
        s.constraints.limit_bar = limits
    if _holds(s):
        s.constraints.held_bar = held
    recompute(s)
    accelerations_vjp(s, s.ws.qdd_bar)


def _frame_vjp(s: Step, k: Any, linear: Vec3, angular: Vec3) -> None:
    """Propagate cotangents of the acceleration of frame k to acceleration, velocity and pose of its link."""
    i = s.model.frame_link[k]
    link, X = s.link[i], compose(s.link[i].X, s.const.frame[k].X)
    p, a, v = X.r, link.a, link.v
    u = v.v + cross(v.w, p)
    u_bar = cross(linear, v.w)
    p_bar = cross(u_bar, v.w) + cross(linear, a.w)
    a_bar = Force(cross(p, linear) + angular, linear)
    v_bar = Force(cross(u, linear) + cross(p, u_bar), u_bar)
    moved = Force(cross(p, p_bar), p_bar)
    link.a_bar += a_bar
    link.v_bar += v_bar
    s.field[i].zeta += moved + cross_force(a, a_bar) + cross_force(v, v_bar)
    if s.bars.const is not None:
        s.bars.const.frame[k].X += force_to_child(X, moved)
