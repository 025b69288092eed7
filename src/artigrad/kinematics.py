"""Stage 1: poses, joint axes, velocities and inertias of all links, from the roots to the tips; and the way back.

Everything is in world axes, with positions and moments about the origin of the link's tree. A recursion along the tree
is then a plain sum, and a column of the Jacobian is S itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import joints
from .spatial import Force, Motion, Transform, Vec3, cross_force, force_to_child, shift
from .staging import Reals, loop, switch
from .tables import Bars, Constants, Topology, Workspace


def kinematics(topology: Topology, const: Constants, q: Reals, v: Reals, ws: Workspace, *more: Part) -> None:
    """Run stage 1, and what `more` does with each link once it is placed."""
    world = ws.link[0]
    world.X, world.v = Transform.identity(), Motion.zero()
    outwards(
        topology,
        lambda i: joints.prepare(topology, i, q, ws.dof),
        lambda i: place(topology, const, i, q, v, ws),
        lambda i: turn_inertia(const, i, ws),
        *more,
    )


def place(topology: Topology, const: Constants, i: Any, q: Reals, v: Reals, ws: Workspace) -> None:
    """X_i = X_p X_T X_J(q),   v_i = v_p + S_i v"""
    link, parent = ws.link[i], ws.link[topology.parent[i]]
    X, s = joints.kinematics(topology, i, parent.X @ const.link[i].placement, q, v, ws.dof)
    link.X = X
    link.v = parent.v + s


def turn_inertia(const: Constants, i: Any, ws: Workspace) -> None:
    """I_i in world axes"""
    link = ws.link[i]
    link.I = shift(link.X, const.link[i].I)


Part = Callable[[Any], None]


def outwards(topology: Topology, *parts: Part) -> None:
    """Every part for every link, from the roots to the tips: one loop for each part, so that the parts which do not wait
    for the parent overlap from link to link. One loop for all of them is 7 % slower on one quadruped."""
    for part in parts:
        for i in loop(1, topology.nl):
            part(i)


def clear_pose_bars(topology: Topology, ws: Workspace, velocity_bar: str = "v_bar") -> None:
    """zeta = 0 and the cotangent of velocities = 0 for every link, o_bar = 0 for every tree, ready to be added to."""
    for i in loop(topology.nl):
        ws.field[i].zeta = Force.zero()
        setattr(ws.field[i] if velocity_bar == "w_bar" else ws.link[i], velocity_bar, Force.zero())
    for t in loop(topology.nt + 1):
        ws.tree[t].o_bar = Vec3.zero()


def kinematics_vjp(topology: Topology, ws: Workspace, bars: Bars) -> None:
    """Adds to the cotangents of q (tangent) and v what the cotangents `zeta` of poses and `v_bar` of velocities say.

    zeta_i: force of a rigid motion of link i and what is fixed to it, about the tree's origin. Moving joint i moves all
    it carries, and turns its velocity relative to the parent's  (theory 0.3, 5.16):  xi_i = zeta_i - v_0 x* v_bar_i.
    o_bar: of the tree's origin, which a free joint and the placement of a root move without changing anything else.
    """
    for i in loop(1, topology.nl):
        link = ws.link[i]
        ws.field[i].zeta += cross_force(link.v, link.v_bar)  # v_i is in world axes: it turns with its link
    for i in loop(1, topology.nl, inwards=True):
        link, parent = ws.link[i], ws.link[topology.parent[i]]
        zeta, v_i_bar = ws.field[i].zeta, link.v_bar
        xi = zeta - cross_force(joints.before(topology, i, parent.v, link.v), v_i_bar)
        o_bar = ws.tree[topology.tree[i]].o_bar
        joints.add_pose_bars(topology, i, xi, o_bar, ws, bars.tangent)
        joints.add_projection(topology, i, v_i_bar, ws, bars.v)
        ws.field[topology.parent[i]].zeta += zeta
        parent.v_bar += v_i_bar
        if bars.const is not None:
            bars.const.link[i].placement += placement_bar(topology, i, parent.X, xi, o_bar)


def placement_bar(topology: Topology, i: Any, X_p: Transform, xi: Force, o_bar: Vec3) -> Force:
    """The cotangent of the placement of link i, in the frame of its parent; of a root, about the tree's origin."""
    return switch(topology.is_root[i], {0: lambda: force_to_child(X_p, xi), 1: lambda: Force(xi.n, o_bar)})
