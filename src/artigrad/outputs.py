"""What losses are built on: poses and velocities of bodies and sites, centre of mass, energies; and their adjoints.

Reads what kinematics left in the workspace. Frames are the bodies, then the sites.
"""

from __future__ import annotations

from typing import Any

from .kinematics import clear_pose_bars, kinematics_vjp
from .spatial import (
    Force,
    Inertia,
    Mat3,
    Sym3,
    Vec3,
    compose,
    cross,
    dot,
    force_to_child,
    force_to_parent,
    inertia_pairing,
    point_velocity,
    point_velocity_vjp,
    power,
    shift_vjp,
)
from .spatial.vectors import axial
from .staging import Layout, Reals, Table, carry, loop, switch
from .tables import Bars, Constants, Topology, Workspace, wanted

FRAME = Layout(p=Vec3, R=Mat3, v=Vec3, w=Vec3)
# after the frames
COM, KINETIC, POTENTIAL, TOTALS = 0, 3, 4, 5


def outputs_size(nb: Any, ns: Any) -> Any:
    return (nb + ns) * FRAME.size + TOTALS


def origin(topology: Topology, const: Constants, t: Any, q: Reals) -> Vec3:
    """The origin of tree t in the world."""
    fixed = const.tree[t]
    cases = {0: lambda: fixed.origin, 1: lambda: q.struct(topology.tree_q[t], Vec3)}
    return switch(topology.tree_free[t], cases)


def outputs(topology: Topology, const: Constants, q: Reals, v: Reals, ws: Workspace, out: Reals) -> None:
    """Fill `out`: a row of FRAME for each body and site, then centre of mass, kinetic and potential energy."""
    frames = Table(out.memory, FRAME, out.start)
    for k in loop(topology.nb + topology.ns):
        i = topology.frame_link[k]
        link, row = ws.link[i], frames[k]
        X = compose(link.X, const.frame[k].X)
        row.p, row.R = origin(topology, const, topology.tree[i], q) + X.r, X.R
        row.v, row.w = point_velocity(X.r, link.v), link.v.w

    totals = out.shifted((topology.nb + topology.ns) * FRAME.size)
    mass, moment = carry(0.0), carry(Vec3.zero())
    kinetic, spring = carry(0.0), carry(0.0)
    _world_inertia(const, ws)
    for i in loop(topology.nl):
        link = ws.link[i]
        mass.value = mass.value + link.I.m
        moment.value = moment.value + link.I.h + origin(topology, const, topology.tree[i], q) * link.I.m
        kinetic.value = kinetic.value + 0.5 * power(link.v, link.I @ link.v)
    for i in loop(1, topology.nl):
        own, qa, va = const.link[i], topology.link_q[i], topology.link_v[i]
        for k in loop(topology.link_nv[i]):
            kinetic.value = kinetic.value + 0.5 * own.armature * (v[va + k] * v[va + k])
            stretch = q[qa + k] - own.reference
            spring.value = spring.value + 0.5 * own.stiffness * (stretch * stretch)
    totals.put(COM, moment.value / mass.value)
    totals[KINETIC] = kinetic.value
    totals[POTENTIAL] = spring.value - dot(const.gravity, moment.value)


def _world_inertia(const: Constants, ws: Workspace) -> None:
    """Bodies that are fixed to the world count in the centre of mass and the potential energy."""
    ws.link[0].I = const.link[0].I


def outputs_vjp(
    topology: Topology, const: Constants, q: Reals, v: Reals, ws: Workspace, out_bar: Reals, bars: Bars
) -> None:
    """Adds to the cotangents of q (tangent), v and constants."""
    frames, const_bar = Table(out_bar.memory, FRAME, out_bar.start), wanted(bars)
    clear_pose_bars(topology, ws)
    for k in loop(topology.nb + topology.ns):
        i = topology.frame_link[k]
        link, bar = ws.link[i], frames[k]
        X = compose(link.X, const.frame[k].X)
        p_bar, velocity_bar = point_velocity_vjp(X.r, link.v, bar.v)
        p_bar = p_bar + bar.p
        zeta = Force(cross(X.r, p_bar) + axial(bar.R @ X.R.T), p_bar)
        ws.field[i].zeta += zeta
        link.v_bar += velocity_bar + Force(bar.w, Vec3.zero())
        ws.tree[topology.tree[i]].o_bar += bar.p
        const_bar.frame[k].X += force_to_child(X, zeta)
    _totals_vjp(topology, const, q, ws, out_bar.shifted((topology.nb + topology.ns) * FRAME.size), const_bar)
    _joint_energies_vjp(topology, const, q, v, out_bar, bars)
    kinematics_vjp(topology, ws, bars)


def _totals_vjp(
    topology: Topology, const: Constants, q: Reals, ws: Workspace, bar: Reals, const_bar: Constants
) -> None:
    """com = N/m with N = sum (h_i + m_i o),  T = sum v_i . I_i v_i / 2,  V = -g . N"""
    _world_inertia(const, ws)
    mass, moment = carry(0.0), carry(Vec3.zero())
    for i in loop(topology.nl):
        I = ws.link[i].I
        mass.value = mass.value + I.m
        moment.value = moment.value + I.h + origin(topology, const, topology.tree[i], q) * I.m
    com_bar, t_bar, u_bar = bar.struct(COM, Vec3), bar[KINETIC], bar[POTENTIAL]
    moment_bar = com_bar / mass.value - const.gravity * u_bar
    mass_bar = -(dot(com_bar, moment.value) / (mass.value * mass.value))
    const_bar.gravity = const_bar.gravity - moment.value * u_bar
    for i in loop(topology.nl):
        link, t = ws.link[i], topology.tree[i]
        pairing = inertia_pairing(link.v, link.v) * (0.5 * t_bar)
        I_bar = pairing + Inertia(mass_bar + dot(moment_bar, origin(topology, const, t, q)), moment_bar, Sym3.zero())
        twist, own_bar = shift_vjp(link.X, const.link[i].I, I_bar)
        const_bar.link[i].I += own_bar
        ws.field[i].zeta += force_to_parent(link.X, twist)
        link.v_bar += (link.I @ link.v) * t_bar
        ws.tree[t].o_bar += moment_bar * link.I.m


def _joint_energies_vjp(topology: Topology, const: Constants, q: Reals, v: Reals, out_bar: Reals, bars: Bars) -> None:
    """T = armature v^2 / 2,  V = stiffness (q - reference)^2 / 2"""
    totals = out_bar.shifted((topology.nb + topology.ns) * FRAME.size)
    t_bar, u_bar, const_bar = totals[KINETIC], totals[POTENTIAL], wanted(bars)
    for i in loop(1, topology.nl):
        own, bar, qa, va = const.link[i], const_bar.link[i], topology.link_q[i], topology.link_v[i]
        for k in loop(topology.link_nv[i]):
            rate, stretch = v[va + k], q[qa + k] - own.reference
            bars.v[va + k] = bars.v[va + k] + own.armature * rate * t_bar
            bar.armature = bar.armature + 0.5 * (rate * rate) * t_bar
            pull = own.stiffness * stretch * u_bar
            bars.tangent[va + k] = bars.tangent[va + k] + pull
            bar.reference = bar.reference - pull
            bar.stiffness = bar.stiffness + 0.5 * (stretch * stretch) * u_bar
