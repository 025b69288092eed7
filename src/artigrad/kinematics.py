"""Stage 1: poses, joint axes, velocities and inertias of all links, from the roots to the tips; and the way back.

Everything is in world axes, with positions and moments about the origin of the link's tree. A recursion along the tree
is then a plain sum, and a column of the Jacobian is S itself.
"""

from __future__ import annotations

from . import joints
from .spatial import Force, Motion, Transform, cross_force, force_to_child, power, shift
from .staging import Reals, loop
from .tables import Constants, Topology, Workspace


def kinematics(topology: Topology, const: Constants, q: Reals, v: Reals, ws: Workspace) -> None:
    """X_i = X_p X_T X_J(q),  v_i = v_p + S_i v,  I_i in world axes"""
    world = ws.link[0]
    world.X, world.v = Transform.identity(), Motion.zero()
    for i in loop(1, topology.nl):
        link, parent, own = ws.link[i], ws.link[topology.parent[i]], const.link[i]
        base = parent.X @ own.placement
        X, s = joints.kinematics(topology.kind[i], base, q, v, topology.link_q[i], topology.link_v[i], ws.dof)
        link.X = X
        link.v = parent.v + s
        link.I = shift(X, own.I)


def clear_pose_bars(topology: Topology, ws: Workspace) -> None:
    """zeta = 0, v_bar = 0 for every link, ready to be added to."""
    for i in loop(topology.nl):
        bar = ws.bar[i]
        bar.zeta, bar.v = Force.zero(), Force.zero()


def kinematics_vjp(
    topology: Topology, ws: Workspace, tangent_bar: Reals, v_bar: Reals, const_bar: Constants | None
) -> None:
    """Adds to the cotangents of q (tangent) and v what the cotangents `zeta` of poses and `v` of velocities say.

    zeta_i: force of a rigid motion of link i and what is fixed to it. Moving joint i moves all it carries, and turns
    its velocity relative to the parent's  (theory 0.3, 5.16):  xi_i = zeta_i - v_p x* v_bar_i
    """
    for i in loop(1, topology.nl, inwards=True):
        p = topology.parent[i]
        bar, parent = ws.bar[i], ws.bar[p]
        zeta, v_i_bar = bar.zeta, bar.v
        xi = zeta - cross_force(ws.link[p].v, v_i_bar)
        first = topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i]):
            S = ws.dof[k].S
            tangent_bar[k] = tangent_bar[k] + power(S, xi)
            v_bar[k] = v_bar[k] + power(S, v_i_bar)
        parent.zeta += zeta
        parent.v += v_i_bar
        if const_bar is not None:
            const_bar.link[i].placement += force_to_child(ws.link[p].X, xi)

