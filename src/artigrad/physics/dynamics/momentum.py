"""Products with the mass matrix, and the adjoint of y . M x, without forming it  (theory 2.8)."""

from __future__ import annotations

from ...compiler import Reals, loop
from .. import joints
from ..context import Step
from ..kinematics import add_placement_bar
from ..spatial import Force, Motion, Vec3, cross_force, inertia_pairing, to_child


def mass_times(s: Step, x: Reals, out: Reals) -> None:
    """Compute out = M x, armature included, after kinematics. Uses s.link.y and s.link.F."""
    s.link[0].y, s.link[0].F = Motion.zero(), Force.zero()
    for i in loop(1, s.model.nl):
        link = s.link[i]
        y = s.link[s.model.parent[i]].y + joints.apply(s, i, x)
        link.y, link.F = y, link.I @ y
    for k in loop(s.model.nv):
        out[k] = 0.0
    for i in loop(1, s.model.nl, inwards=True):
        F, own, va = s.link[i].F, s.const.link[i], s.model.link_v[i]
        joints.add_projection(s, i, F, out)
        s.link[s.model.parent[i]].F += F
        for k in loop(va, va + s.model.link_nv[i]):
            out[k] = out[k] + own.armature * x[k]


def mass_times_vjp(s: Step, x: Reals, y: Reals) -> None:
    """Add the cotangents of q (tangent) and constants of y . M(q) x.

    A rotation of the subtree of joint n rotates the rest of both motions the other way:  xi = -y_0 x* F - x_0 x* G,
    with F and G the momenta of the subtree under x and y. Uses s.link.y, F, a and a_bar.
    """
    world = s.link[0]
    world.y, world.a, world.F, world.a_bar = Motion.zero(), Motion.zero(), Force.zero(), Force.zero()
    for i in loop(1, s.model.nl):
        link, parent = s.link[i], s.link[s.model.parent[i]]
        own_x, own_y = joints.apply_rows(s, i, (x, y))
        link.a, link.y = parent.a + own_x, parent.y + own_y
        link.F, link.a_bar = link.I @ link.a, link.I @ link.y
    for i in loop(1, s.model.nl, inwards=True):
        link, parent = s.link[i], s.link[s.model.parent[i]]
        F, G, m, n = link.F, link.a_bar, link.a, link.y
        if s.bars.const is not None:
            X, bar, va = link.X, s.bars.const.link[i], s.model.link_v[i]
            bar.I += inertia_pairing(to_child(X, m), to_child(X, n))
            for k in loop(va, va + s.model.link_nv[i]):
                bar.armature = bar.armature + x[k] * y[k]
        xi = -(cross_force(joints.before(s, i, parent.y, n), F) + cross_force(joints.before(s, i, parent.a, m), G))
        parent.F += F
        parent.a_bar += G
        joints.add_pose_bars(s, i, xi, Vec3.zero())
        joints.add_parameter_bars(s, i, xi, ((parent.a, m, G), (parent.y, n, F)))
        add_placement_bar(s, i, xi, Vec3.zero())
