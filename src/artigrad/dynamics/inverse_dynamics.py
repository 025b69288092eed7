"""Inverse dynamics, tau = ID(q, v, a): Newton-Euler outwards and inwards, and its adjoint  (theory 2.1-2.6, world axes).

Armature, damping and springs are not here but in `passive` and `forward_dynamics`.
"""

from __future__ import annotations

from typing import Any

from ..spatial import (
    Force,
    Motion,
    Vec3,
    cross_force,
    cross_motion,
    force_to_child,
    inertia_pairing,
    power,
    to_child,
)
from ..staging import Reals, carry, loop
from ..tables import Constants, Topology, Workspace


def motion_of(topology: Topology, ws: Workspace, i: Any, x: Reals) -> Motion:
    """S_i x: the motion that joint velocities (or accelerations) x give link i relative to its parent."""
    first = topology.link_v[i]
    total = carry(Motion.zero())
    for k in loop(first, first + topology.link_nv[i]):
        total.value = total.value + ws.dof[k].S * x[k]
    return total.value


def link_forces(topology: Topology, const: Constants, qdd: Reals | None, ws: Workspace) -> None:
    """Outwards:  a_i = a_p + S_i qdd + v_p x v_i,   F_i = I_i a_i + v_i x* I_i v_i.   Without qdd the bias alone."""
    world = ws.link[0]
    world.a, world.F = Motion(Vec3.zero(), -const.gravity), Force.zero()
    for i in loop(1, topology.nl):
        link, parent = ws.link[i], ws.link[topology.parent[i]]
        v, I = link.v, link.I
        a = parent.a + cross_motion(parent.v, v)
        if qdd is not None:
            a = a + motion_of(topology, ws, i, qdd)
        link.a = a
        link.F = I @ a + cross_force(v, I @ v)


def joint_forces(topology: Topology, ws: Workspace, tau: Reals) -> None:
    """Inwards:  tau_i = S_i . F_i,   F_p += F_i"""
    for i in loop(1, topology.nl, inwards=True):
        F, first = ws.link[i].F, topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i]):
            tau[k] = power(ws.dof[k].S, F)
        ws.link[topology.parent[i]].F += F


def inverse_dynamics(topology: Topology, const: Constants, qdd: Reals, ws: Workspace, tau: Reals) -> None:
    """tau = ID(q, v, qdd); kinematics has been run. Forces of the world on links are expected in ws.link.F after
    `link_forces`, so callers that have wrenches call the two halves themselves."""
    link_forces(topology, const, qdd, ws)
    joint_forces(topology, ws, tau)


def inverse_dynamics_vjp(
    topology: Topology,
    ws: Workspace,
    tau_bar: Reals,
    sign: float,
    tangent_bar: Reals,
    v_bar: Reals,
    const_bar: Constants | None,
) -> None:
    """Adds the cotangents of q (tangent), v and constants at the cotangent sign * tau_bar of tau.

    `link_forces` has been run with the true qdd: ws.link has a and, not yet summed, F. That of qdd is M tau_bar and is
    not returned: forward dynamics, the only caller with a qdd of its own, has it already.
    """
    link_bars(topology, ws, tau_bar, sign)
    gather_bars(topology, ws, tangent_bar, v_bar, const_bar)


def link_bars(topology: Topology, ws: Workspace, tau_bar: Reals, sign: float) -> None:
    """Outwards:  y_i = y_p + S_i tau_bar (cotangent of F_i),   a_bar = I y,   v_bar = -I (v x y) - y x* I v"""
    world = ws.bar[0]
    world.y, world.a, world.v = Motion.zero(), Force.zero(), Force.zero()
    for i in loop(1, topology.nl):
        link, bar = ws.link[i], ws.bar[i]
        v, I = link.v, link.I
        y = ws.bar[topology.parent[i]].y + motion_of(topology, ws, i, tau_bar) * sign
        bar.y = y
        bar.a = I @ y
        bar.v = -(I @ cross_motion(v, y) + cross_force(y, I @ v))


def gather_bars(
    topology: Topology, ws: Workspace, tangent_bar: Reals, v_bar: Reals, const_bar: Constants | None
) -> None:
    """Inwards, sums over what each joint carries:

    v_bar_k  += S_k . (v_bar_i - v_p x* a_bar_i)
    v_bar_i  += (v_i - v_p) x* a_bar_i
    xi_i      = -y_p x* F_i - a_p x* a_bar_i - v_p x* v_bar_i          q_bar_k += S_k . xi_i
    """
    for i in loop(1, topology.nl, inwards=True):
        p = topology.parent[i]
        link, parent, bar, parent_bar = ws.link[i], ws.link[p], ws.bar[i], ws.bar[p]
        if const_bar is not None:
            inertia_bars(ws, i, const_bar)
        F, a_bar = link.F, bar.a
        v, v_p = link.v, parent.v
        own = bar.v
        rate = own - cross_force(v_p, a_bar)
        total = own + cross_force(v - v_p, a_bar)
        xi = -(cross_force(parent_bar.y, F) + cross_force(parent.a, a_bar) + cross_force(v_p, total))
        first = topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i]):
            S = ws.dof[k].S
            v_bar[k] = v_bar[k] + power(S, rate)
            tangent_bar[k] = tangent_bar[k] + power(S, xi)
        parent.F += F
        parent_bar.a += a_bar
        parent_bar.v += total
        if const_bar is not None:
            const_bar.link[i].placement += force_to_child(parent.X, xi)
    if const_bar is not None:
        const_bar.gravity = const_bar.gravity - ws.bar[0].a.f


def inertia_bars(ws: Workspace, i: Any, const_bar: Constants) -> None:
    """I_bar += par(a, y) - par(v, v x y), in the link's own frame"""
    link, y = ws.link[i], ws.bar[i].y
    X, v = link.X, to_child(link.X, link.v)
    own_y = to_child(X, y)
    const_bar.link[i].I += inertia_pairing(to_child(X, link.a), own_y) - inertia_pairing(v, cross_motion(v, own_y))
