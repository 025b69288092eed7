"""Outputs for losses: poses and velocities of bodies and sites, center of mass, energies; and their adjoint.

Reads the result of kinematics in the workspace. Frames are the bodies, then the sites.
"""

from __future__ import annotations

from typing import Any

from ..compiler import Layout, Reals, Table, carry, loop
from .context import Step
from .dynamics.passive import tendon_energy, tendon_energy_vjp
from .dynamics.springs import spring_energy, spring_energy_vjp
from .kinematics import clear_pose_bars, kinematics_vjp, origin
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
from .transmissions.transmission import clear_line_bars, lines_vjp

FRAME = Layout(p=Vec3, R=Mat3, v=Vec3, w=Vec3)
# entries after the frames
COM, KINETIC, POTENTIAL, TOTALS = 0, 3, 4, 5


def outputs_size(nb: Any, ns: Any) -> Any:
    """Number of entries of the output."""
    return (nb + ns) * FRAME.size + TOTALS


def outputs(s: Step, out: Reals) -> None:
    """Fill `out`: a row of FRAME for each body and site, then center of mass, kinetic and potential energy."""
    frames = Table(out.memory, FRAME, out.start)
    for k in loop(s.model.nb + s.model.ns):
        i = s.model.frame_link[k]
        link, row = s.link[i], frames[k]
        X = compose(link.X, s.const.frame[k].X)
        row.p, row.R = origin(s, s.model.tree[i]) + X.r, X.R
        row.v, row.w = point_velocity(X.r, link.v), link.v.w

    totals = out.shifted((s.model.nb + s.model.ns) * FRAME.size)
    mass, moment = carry(0.0), carry(Vec3.zero())
    kinetic, spring = carry(0.0), carry(0.0)
    _world_inertia(s)
    for i in loop(s.model.nl):
        link = s.link[i]
        mass.value = mass.value + link.I.m
        moment.value = moment.value + link.I.h + origin(s, s.model.tree[i]) * link.I.m
        kinetic.value = kinetic.value + 0.5 * power(link.v, link.I @ link.v)
    for i in loop(1, s.model.nl):
        own, qa, va = s.const.link[i], s.model.link_q[i], s.model.link_v[i]
        for k in loop(s.model.link_nv[i]):
            kinetic.value = kinetic.value + 0.5 * own.armature * (s.v[va + k] * s.v[va + k])
            stretch = s.q[qa + k] - own.reference
            spring.value = spring.value + 0.5 * own.stiffness * (stretch * stretch)
        if s.has("spring"):
            spring.value = spring.value + spring_energy(s, i)
    if s.has("tendon"):
        for n in loop(s.model.ntendon):
            spring.value = spring.value + tendon_energy(s, n)
    totals.put(COM, moment.value / mass.value)
    totals[KINETIC] = kinetic.value
    totals[POTENTIAL] = spring.value - dot(s.const.gravity, moment.value)


def _world_inertia(s: Step) -> None:
    """Include bodies fixed to the world in the center of mass and the potential energy."""
    s.link[0].I = s.const.link[0].I


def outputs_vjp(s: Step, out_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v and constants."""
    clear_pose_bars(s)
    outputs_and_poses_vjp(s, out_bar)


def outputs_and_poses_vjp(s: Step, out_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v and constants, for those of `out` and for accumulated ones of poses."""
    frames, const_bar = Table(out_bar.memory, FRAME, out_bar.start), s.bars.const
    totals = out_bar.shifted((s.model.nb + s.model.ns) * FRAME.size)
    assert const_bar is not None
    for k in loop(s.model.nb + s.model.ns):
        i = s.model.frame_link[k]
        link, bar = s.link[i], frames[k]
        X = compose(link.X, s.const.frame[k].X)
        p_bar, velocity_bar = point_velocity_vjp(X.r, link.v, bar.v)
        p_bar = p_bar + bar.p
        zeta = Force(cross(X.r, p_bar) + axial(bar.R @ X.R.T), p_bar)
        s.field[i].zeta += zeta
        link.v_bar += velocity_bar + Force(bar.w, Vec3.zero())
        s.tree[s.model.tree[i]].o_bar += bar.p
        const_bar.frame[k].X += force_to_child(X, zeta)
    _totals_vjp(s, totals)
    _joint_energies_vjp(s, totals)
    kinematics_vjp(s)
    if s.has("tendon"):
        clear_line_bars(s)
        for n in loop(s.model.ntendon):
            tendon_energy_vjp(s, n, totals[POTENTIAL])
        lines_vjp(s)


def _totals_vjp(s: Step, bar: Reals) -> None:
    """Adjoint of com = N/m with N = sum (h_i + m_i o),  T = sum v_i . I_i v_i / 2,  V = -g . N."""
    const_bar = s.bars.const
    assert const_bar is not None
    _world_inertia(s)
    mass, moment = carry(0.0), carry(Vec3.zero())
    for i in loop(s.model.nl):
        I = s.link[i].I
        mass.value = mass.value + I.m
        moment.value = moment.value + I.h + origin(s, s.model.tree[i]) * I.m
    com_bar, t_bar, u_bar = bar.struct(COM, Vec3), bar[KINETIC], bar[POTENTIAL]
    moment_bar = com_bar / mass.value - s.const.gravity * u_bar
    mass_bar = -(dot(com_bar, moment.value) / (mass.value * mass.value))
    const_bar.gravity = const_bar.gravity - moment.value * u_bar
    for i in loop(s.model.nl):
        link, t = s.link[i], s.model.tree[i]
        pairing = inertia_pairing(link.v, link.v) * (0.5 * t_bar)
        I_bar = pairing + Inertia(mass_bar + dot(moment_bar, origin(s, t)), moment_bar, Sym3.zero())
        twist, own_bar = shift_vjp(link.X, s.const.link[i].I, I_bar)
        const_bar.link[i].I += own_bar
        s.field[i].zeta += force_to_parent(link.X, twist)
        link.v_bar += (link.I @ link.v) * t_bar
        s.tree[t].o_bar += moment_bar * link.I.m


def _joint_energies_vjp(s: Step, bar: Reals) -> None:
    """Adjoint of T = armature v^2 / 2,  V = stiffness (q - reference)^2 / 2."""
    t_bar, u_bar, const_bar = bar[KINETIC], bar[POTENTIAL], s.bars.const
    assert const_bar is not None
    for i in loop(1, s.model.nl):
        own, own_bar, qa, va = s.const.link[i], const_bar.link[i], s.model.link_q[i], s.model.link_v[i]
        for k in loop(s.model.link_nv[i]):
            rate, stretch = s.v[va + k], s.q[qa + k] - own.reference
            s.bars.v[va + k] = s.bars.v[va + k] + own.armature * rate * t_bar
            own_bar.armature = own_bar.armature + 0.5 * (rate * rate) * t_bar
            pull = own.stiffness * stretch * u_bar
            s.bars.tangent[va + k] = s.bars.tangent[va + k] + pull
            own_bar.reference = own_bar.reference - pull
            own_bar.stiffness = own_bar.stiffness + 0.5 * (stretch * stretch) * u_bar
        if s.has("spring"):
            spring_energy_vjp(s, i, u_bar)
