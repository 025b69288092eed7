"""Stage 1: poses, joint axes, velocities and inertias of all links, root to tip; and the adjoint.

All quantities are in world axes, with positions and moments about the origin of the link's tree. A recursion along the
tree is then a plain sum, and a column of the Jacobian is S itself.
"""

from __future__ import annotations

from typing import Any

from ..compiler import loop, switch
from . import joints
from .context import Step
from .spatial import Force, Motion, Transform, Vec3, cross_force, force_to_child, shift


def link_kinematics(s: Step) -> None:
    """Compute X_i = X_p X_T X_J(q),   v_i = v_p + S_i v,   I_i in world axes.

    One loop per part, so that the parts that do not depend on the parent overlap between links. A single loop is 7 %
    slower on one quadruped.
    """
    world = s.link[0]
    world.X, world.v = Transform.identity(), Motion.zero()
    for i in loop(1, s.model.nl):
        joints.prepare(s, i)
    for i in loop(1, s.model.nl):
        link, parent = s.link[i], s.link[s.model.parent[i]]
        X, own = joints.kinematics(s, i, parent.X @ s.const.link[i].placement)
        link.X = X
        link.v = parent.v + own
    for i in loop(1, s.model.nl):
        link = s.link[i]
        link.I = shift(link.X, s.const.link[i].I)


def origin(s: Step, t: Any) -> Vec3:
    """Origin of tree t in the world."""
    fixed = s.const.tree[t]
    cases = {0: lambda: fixed.origin, 1: lambda: s.q.struct(s.model.tree_q[t], Vec3)}
    return switch(s.model.tree_free[t], cases)


def clear_pose_bars(s: Step, velocity_bar: str = "v_bar") -> None:
    """Set zeta and the cotangent of velocities to zero for every link, and o_bar for every tree."""
    for i in loop(s.model.nl):
        s.field[i].zeta = Force.zero()
        setattr(s.field[i] if velocity_bar == "w_bar" else s.link[i], velocity_bar, Force.zero())
    for t in loop(s.model.nt + 1):
        s.tree[t].o_bar = Vec3.zero()


def kinematics_vjp(s: Step) -> None:
    """Add to the cotangents of q (tangent) and v, given those of poses (`zeta`) and velocities (`v_bar`) of links.

    zeta_i is the cotangent of a rigid motion of link i and what is fixed to it, about the tree's origin. A motion of
    joint i moves its subtree, and rotates its velocity relative to the parent's  (theory 0.3, 5.16):  xi_i = zeta_i -
    v_0 x* v_bar_i. o_bar is the cotangent of the tree's origin, which a free joint and the placement of a root move
    without any other effect.
    """
    for i in loop(1, s.model.nl):
        link = s.link[i]
        s.field[i].zeta += cross_force(link.v, link.v_bar)  # v_i is in world axes: it rotates with its link
    for i in loop(1, s.model.nl, inwards=True):
        p = s.model.parent[i]
        link, parent = s.link[i], s.link[p]
        zeta, v_i_bar = s.field[i].zeta, link.v_bar
        xi = zeta - cross_force(joints.before(s, i, parent.v, link.v), v_i_bar)
        o_bar = s.tree[s.model.tree[i]].o_bar
        joints.add_pose_bars(s, i, xi, o_bar)
        joints.add_parameter_bars(s, i, xi, ((parent.v, link.v, v_i_bar),))
        joints.add_projection(s, i, v_i_bar, s.bars.v)
        s.field[p].zeta += zeta
        parent.v_bar += v_i_bar
        add_placement_bar(s, i, xi, o_bar)


def add_placement_bar(s: Step, i: Any, xi: Force, o_bar: Vec3) -> None:
    """Add to the cotangent of the placement of link i, in the frame of its parent; of a root, about the tree's origin."""
    if s.bars.const is None:
        return
    X_p = s.link[s.model.parent[i]].X
    bar = switch(s.model.is_root[i], {0: lambda: force_to_child(X_p, xi), 1: lambda: Force(xi.n, o_bar)})
    s.bars.const.link[i].placement += bar
