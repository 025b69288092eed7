"""Inverse dynamics, tau = ID(q, v, a): Newton-Euler outwards and inwards, and its adjoint  (theory 2.1-2.6, world axes).

Armature, damping and springs are not here but in `passive` and `forward_dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import joints
from ..kinematics import placement_bar
from ..spatial import (
    Force,
    Motion,
    Vec3,
    cross_force,
    cross_motion,
    inertia_pairing,
    to_child,
)
from ..staging import Reals, loop
from ..tables import Bars, Constants, Topology, Workspace


def start_forces(const: Constants, ws: Workspace) -> None:
    """The world: falling upwards is gravity, and nothing presses on it."""
    world = ws.link[0]
    world.a, world.F = Motion(Vec3.zero(), -const.gravity), Force.zero()


def link_force(topology: Topology, i: Any, qdd: Reals | None, ws: Workspace) -> None:
    """a_i = a_p + S_i qdd + v_0 x v_i,   F_i = I_i a_i + v_i x* I_i v_i.   Without qdd the bias alone.

    v_0 is the motion in which the joint's axes are fixed: the parent's, but for free joints.
    """
    link, parent = ws.link[i], ws.link[topology.parent[i]]
    v, I = link.v, link.I
    a = parent.a + cross_motion(joints.before(topology, i, parent.v, v), v)
    if qdd is not None:
        a = a + joints.apply(topology, i, qdd, ws)
    F = I @ a + cross_force(v, I @ v)
    link.a, link.F = a, F


def link_forces(topology: Topology, const: Constants, qdd: Reals | None, ws: Workspace) -> None:
    """Outwards: the force that each link needs for its own motion."""
    start_forces(const, ws)
    for i in loop(1, topology.nl):
        link_force(topology, i, qdd, ws)


def joint_forces(topology: Topology, ws: Workspace, tau: Reals) -> None:
    """Inwards:  tau_i = S_i^T F_i,   F_p += F_i"""
    for k in loop(topology.nv):
        tau[k] = 0.0
    for i in loop(1, topology.nl, inwards=True):
        F = ws.link[i].F
        joints.add_projection(topology, i, F, ws, tau)
        ws.link[topology.parent[i]].F += F


def inverse_dynamics(topology: Topology, const: Constants, qdd: Reals, ws: Workspace, tau: Reals) -> None:
    """tau = ID(q, v, qdd); kinematics has been run."""
    link_forces(topology, const, qdd, ws)
    joint_forces(topology, ws, tau)


def inverse_dynamics_vjp(
    topology: Topology,
    const: Constants,
    qdd: Reals,
    ws: Workspace,
    tau_bar: Reals,
    sign: float,
    bars: Bars,
    world: Callable[[], None] | None = None,
) -> None:
    """Adds the cotangents of q (tangent), v and constants at the cotangent sign * tau_bar of tau.

    That of qdd is M tau_bar: S^T a_bar, for a caller that wants it. `world` takes further forces of the world off
    ws.link.F, and puts what the poses and velocities of links mean to them in the fields of `gather_bars`.
    """
    start_forces(const, ws)
    root = ws.link[0]
    root.y, root.a_bar, root.v_bar = Motion.zero(), Force.zero(), Force.zero()
    for i in loop(1, topology.nl):
        link_force(topology, i, qdd, ws)
        link_bars(topology, i, tau_bar, sign, ws)
    if world is not None:
        world()
    gather_bars(topology, ws, bars, world is not None)


def link_bars(topology: Topology, i: Any, tau_bar: Reals, sign: float, ws: Workspace) -> None:
    """y_i = y_p + S_i tau_bar (cotangent of F_i),   a_bar = I y,   v_bar = -I (v x y) - y x* I v"""
    link = ws.link[i]
    v, I = link.v, link.I
    y = ws.link[topology.parent[i]].y + joints.apply(topology, i, tau_bar, ws) * sign
    link.y = y
    link.a_bar = I @ y
    link.v_bar = -(I @ cross_motion(v, y) + cross_force(y, I @ v))


def gather_bars(topology: Topology, ws: Workspace, bars: Bars, in_world: bool = False) -> None:
    """Inwards, sums over what each joint carries; with y_0, a_0, v_0 before the joint:

    v_bar    += S^T (v_bar_i - v_0 x* a_bar_i)
    v_bar_i  += (v_i - v_0) x* a_bar_i
    xi_i      = -y_0 x* F_i - a_0 x* a_bar_i - v_0 x* v_bar_i          q_bar += S^T xi_i

    In a world that acts on links, poses and another field w of velocities have cotangents too, as in `kinematics_vjp`:
    xi_i += zeta_i - w_0 x* w_bar_i,  v_bar += S^T w_bar_i.
    """
    for i in loop(1, topology.nl, inwards=True):
        link, parent = ws.link[i], ws.link[topology.parent[i]]
        if bars.const is not None:
            inertia_bars(ws, i, bars.const)
        F, a_bar, own, v = link.F, link.a_bar, link.v_bar, link.v
        v_0, a_0, y_0, w_0 = joints.before_all(topology, i, ws, in_world)
        relative = own - cross_force(v_0, a_bar)
        total = relative + cross_force(v, a_bar)
        xi = -(cross_force(y_0, F) + cross_force(a_0, a_bar) + cross_force(v_0, total))
        parent.F += F
        parent.a_bar += a_bar
        parent.v_bar += total
        o_bar = Vec3.zero()
        if in_world:
            zeta, w_bar, o_bar = ws.field[i].zeta, ws.field[i].w_bar, ws.tree[topology.tree[i]].o_bar
            relative, total, xi = relative + w_bar, total + w_bar, xi + zeta - cross_force(w_0, w_bar)
            above = ws.field[topology.parent[i]]
            above.zeta += zeta
            above.w_bar += w_bar
        joints.add_bars(topology, i, relative, total, xi, o_bar, ws, bars.tangent, bars.v)
        if bars.const is not None:
            bars.const.link[i].placement += placement_bar(topology, i, parent.X, xi, o_bar)
    if bars.const is not None:
        bars.const.gravity = bars.const.gravity - ws.link[0].a_bar.f


def inertia_bars(ws: Workspace, i: Any, const_bar: Constants) -> None:
    """I_bar += par(a, y) - par(v, v x y), in the link's own frame"""
    link, y = ws.link[i], ws.link[i].y
    X, v = link.X, to_child(link.X, link.v)
    own_y = to_child(X, y)
    const_bar.link[i].I += inertia_pairing(to_child(X, link.a), own_y) - inertia_pairing(v, cross_motion(v, own_y))
