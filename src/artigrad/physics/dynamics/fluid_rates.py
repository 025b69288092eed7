"""How the drag of a fluid changes with velocities: B has  J^T D J  of each box, J the velocities of its frame in its own axes.

D is diagonal: that of a force -(k1 + k2 |v|) v is  k1 + 2 k2 |v|.
"""

from __future__ import annotations

from typing import Any

from ... import joints
from ...spatial import Force, Motion, Vec3, at_point, cross, cross_force, force_to_child, point_velocity, power
from ...staging import Reals, climb, loop, select
from ..context import Step
from .link_motion import add_path_bars, motion_of
from .surroundings import Box, Drag, coefficients_vjp


class _Rates:
    """D of box n, and its frame."""

    def __init__(self, s: Step, n: Any):
        self.box = box = Box(s, n)
        self.link, self.R, self.p = box.link, box.X.R, box.X.r
        self.of_v = [k.v1 + 2.0 * k.v2 * abs(x) for k, x in zip(box.drag, box.v.leaves(), strict=True)]
        self.of_w = [k.w1 + 2.0 * k.w2 * abs(x) for k, x in zip(box.drag, box.w.leaves(), strict=True)]

    def seen(self, W: Motion) -> tuple[list[Any], list[Any]]:
        """Velocity and angular velocity of the frame under a motion of its link, in its axes."""
        return (self.R.T @ point_velocity(self.p, W)).leaves(), (self.R.T @ W.w).leaves()

    def wrench(self, v: list[Any], w: list[Any]) -> Force:
        """The force on the link that has these parts in the axes of the frame."""
        return at_point(self.p, self.R @ Vec3(*v), self.R @ Vec3(*w))

    def times(self, W: Motion) -> Force:
        """J^T D J of a motion"""
        v, w = self.seen(W)
        scaled = [[a * x for a, x in zip(rate, y, strict=True)] for rate, y in ((self.of_v, v), (self.of_w, w))]
        return self.wrench(*scaled)


def add_fluid_rates(s: Step) -> None:
    """To ws.M and ws.upper: h J^T D J. Uses s.dof.S."""
    m, M, upper = s.model, s.ws.M, s.ws.upper
    for n in loop(m.nfluid):
        rates = _Rates(s, n)
        i = rates.link
        for k in climb(m.dof_parent, m.link_v[i] + m.link_nv[i]):
            row, F = m.dof_row[k - 1], rates.times(s.dof[k - 1].S)
            diagonal = row + m.dof_depth[k - 1]
            M[diagonal] = M[diagonal] + s.dt * power(s.dof[k - 1].S, F)
            for j in climb(m.dof_parent, m.dof_parent[k]):
                at, more = row + m.dof_depth[j - 1], s.dt * power(s.dof[j - 1].S, F)
                M[at], upper[at] = M[at] + more, upper[at] + more


def fluid_rates_vjp(s: Step, x: Reals, mu: Reals) -> None:
    """Adds the cotangents of  -h sum y . D z  to those of q (tangent), v and constants: y, z and the velocities that D depends
    on are what three fields of joint velocities, mu, x and v, make of the frame of a box."""
    for n in loop(s.model.nfluid):
        rates = _Rates(s, n)
        box, i = rates.box, rates.link
        Y, Z, V = motion_of(s, i, mu), motion_of(s, i, x), s.link[i].v
        (y_v, y_w), (z_v, z_w) = rates.seen(Y), rates.seen(Z)
        y_bar = rates.times(Z) * -s.dt
        z_bar = rates.times(Y) * -s.dt
        pair_v = [-(s.dt * a * b) for a, b in zip(y_v, z_v, strict=True)]
        pair_w = [-(s.dt * a * b) for a, b in zip(y_w, z_w, strict=True)]
        each = list(zip(box.drag, box.v.leaves(), box.w.leaves(), pair_v, pair_w, strict=True))
        of_v = [2.0 * k.v2 * select(v < 0.0, -g, g) for k, v, _, g, _ in each]
        of_w = [2.0 * k.w2 * select(w < 0.0, -g, g) for k, _, w, _, g in each]
        v_bar = rates.wrench(of_v, of_w)
        wind, blow = s.const.medium[0].wind, rates.R @ Vec3(*of_v)
        blown = Force(cross(wind, blow), Vec3.zero())
        for field, W, F, zeta in ((mu, Y, y_bar, blown), (x, Z, z_bar, Force.zero()), (s.v, V, v_bar, Force.zero())):
            add_path_bars(s, i, field, W, F, zeta)
        for k in climb(s.model.parent, i):
            joints.add_projection(s, k, v_bar, s.bars.v)
        if s.bars.const is not None:
            bar, medium = s.bars.const.fluid[n], s.bars.const.medium[0]
            turned = cross_force(Y, y_bar) + cross_force(Z, z_bar) + cross_force(V, v_bar)
            bar.X += force_to_child(box.X, blown - turned)
            medium.wind -= blow
            drag_bar = [Drag(g, 2.0 * abs(v) * g, h, 2.0 * abs(w) * h) for _, v, w, g, h in each]
            box_bar, density_bar, viscosity_bar = coefficients_vjp(s, n, drag_bar)
            bar.box += box_bar
            medium.density += density_bar
            medium.viscosity += viscosity_bar
