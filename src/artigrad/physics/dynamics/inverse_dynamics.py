"""Inverse dynamics, tau = ID(q, v, a): recursive Newton-Euler, and its adjoint  (theory 2.1-2.6, world axes).

The adjoint has an outward pass (roots to tips) and an inward pass. Further forces on links (wrenches, contacts) are
differentiated between them. Armature, damping and springs are in `passive` and `forward_dynamics`.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, loop
from .. import joints
from ..context import Step
from ..kinematics import add_placement_bar
from ..spatial import Force, Motion, Vec3, cross_force, cross_motion, inertia_pairing, to_child


def start_forces(s: Step) -> None:
    """Initialize the world link: gravity as an upward acceleration, no force."""
    world = s.link[0]
    world.a, world.F = Motion(Vec3.zero(), -s.const.gravity), Force.zero()


def link_force(s: Step, i: Any, qdd: Reals | None) -> None:
    """Compute a_i = a_p + S_i qdd + v_0 x v_i,   F_i = I_i a_i + v_i x* I_i v_i.   Without qdd the bias only.

    v_0 is the motion in which the joint's axes are fixed: the parent's, except for free joints.
    """
    link, parent = s.link[i], s.link[s.model.parent[i]]
    v, I = link.v, link.I
    a = parent.a + cross_motion(joints.before(s, i, parent.v, v), v)
    if qdd is not None:
        a = a + joints.apply(s, i, qdd)
    F = I @ a + cross_force(v, I @ v)
    link.a, link.F = a, F


def link_forces(s: Step, qdd: Reals | None) -> None:
    """Outward pass: the force that each link requires for its own motion."""
    start_forces(s)
    for i in loop(1, s.model.nl):
        link_force(s, i, qdd)


def joint_forces(s: Step, tau: Reals) -> None:
    """Inward pass:  tau_i = S_i^T F_i,   F_p += F_i."""
    for k in loop(s.model.nv):
        tau[k] = 0.0
    for i in loop(1, s.model.nl, inwards=True):
        F = s.link[i].F
        joints.add_projection(s, i, F, tau)
        s.link[s.model.parent[i]].F += F


def inverse_dynamics(s: Step, qdd: Reals, tau: Reals) -> None:
    """Compute tau = ID(q, v, qdd), after kinematics."""
    link_forces(s, qdd)
    joint_forces(s, tau)


def inverse_dynamics_vjp(s: Step, qdd: Reals, tau_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v and constants, given tau_bar.

    That of qdd is M tau_bar = S^T a_bar, for callers that need it.
    """
    outward_vjp(s, qdd, tau_bar, 1.0)
    inward_vjp(s)


def outward_vjp(s: Step, qdd: Reals, tau_bar: Reals, sign: float) -> None:
    """Compute forces of links, and their cotangents y, a_bar, v_bar, for the cotangent sign * tau_bar of tau."""
    start_forces(s)
    root = s.link[0]
    root.y, root.a_bar, root.v_bar = Motion.zero(), Force.zero(), Force.zero()
    for i in loop(1, s.model.nl):
        link_force(s, i, qdd)
        link_bars(s, i, tau_bar, sign)


def link_bars(s: Step, i: Any, tau_bar: Reals, sign: float) -> None:
    """y_i = y_p + S_i tau_bar (cotangent of F_i),   a_bar = I y,   v_bar = -I (v x y) - y x* I v."""
    link = s.link[i]
    v, I = link.v, link.I
    y = s.link[s.model.parent[i]].y + joints.apply(s, i, tau_bar) * sign
    link.y = y
    link.a_bar = I @ y
    link.v_bar = -(I @ cross_motion(v, y) + cross_force(y, I @ v))


def inward_vjp(s: Step, in_world: bool = False, moves: bool = True) -> None:
    """Inward pass, sums over the subtree of each joint; with y_0, a_0, v_0 before the joint:

        v_bar    += S^T (v_bar_i - v_0 x* a_bar_i)
        v_bar_i  += (v_i - v_0) x* a_bar_i
        xi_i      = -y_0 x* F_i - a_0 x* a_bar_i - v_0 x* v_bar_i          q_bar += S^T xi_i

    If the environment acts on links (in_world), poses and a second motion field w have cotangents too, as in
    `kinematics_vjp`: xi_i += zeta_i - w_0 x* w_bar_i,  and if w is a velocity field (moves)  v_bar += S^T w_bar_i.
    """
    const_bar = s.bars.const
    for i in loop(1, s.model.nl, inwards=True):
        p = s.model.parent[i]
        link, parent = s.link[i], s.link[p]
        if const_bar is not None:
            inertia_bars(s, i)
        F, a_bar, own, v = link.F, link.a_bar, link.v_bar, link.v
        v_0, a_0, y_0, w_0 = joints.before_all(s, i, in_world)
        relative = own - cross_force(v_0, a_bar)
        total = relative + cross_force(v, a_bar)
        xi = -(cross_force(y_0, F) + cross_force(a_0, a_bar) + cross_force(v_0, total))
        parent.F += F
        parent.a_bar += a_bar
        parent.v_bar += total
        o_bar = Vec3.zero()
        pairs = [(parent.y, link.y, F), (parent.a, link.a, a_bar), (parent.v, v, relative)]
        if in_world:
            zeta, w_bar, o_bar = s.field[i].zeta, s.field[i].w_bar, s.tree[s.model.tree[i]].o_bar
            xi = xi + zeta - cross_force(w_0, w_bar)
            pairs.append((s.field[p].w, s.field[i].w, w_bar))
            if moves:
                relative, total = relative + w_bar, total + w_bar
            above = s.field[p]
            above.zeta += zeta
            above.w_bar += w_bar
        joints.add_bars(s, i, (relative, total, xi), o_bar)
        joints.add_parameter_bars(s, i, xi, pairs)
        add_placement_bar(s, i, xi, o_bar)
    if const_bar is not None:
        const_bar.gravity = const_bar.gravity - s.link[0].a_bar.f


def inertia_bars(s: Step, i: Any) -> None:
    """I_bar += par(a, y) - par(v, v x y), in the frame of the link."""
    assert s.bars.const is not None
    link, y = s.link[i], s.link[i].y
    X, v = link.X, to_child(link.X, link.v)
    own_y = to_child(X, y)
    s.bars.const.link[i].I += inertia_pairing(to_child(X, link.a), own_y) - inertia_pairing(v, cross_motion(v, own_y))
