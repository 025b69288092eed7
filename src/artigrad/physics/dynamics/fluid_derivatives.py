"""Velocity derivatives of fluid drag: B has  J^T D J  of each box or ellipsoid, J the velocities of its frame in its own
axes.

D = -d(force)/d(velocity) in these axes. For a box D is diagonal: that of a force -(k1 + k2 |v|) v is  k1 + 2 k2 |v|.
For an ellipsoid it is a matrix; `implicitfast` (`lone`) uses its symmetric part, except for lone free bodies, as MuJoCo
does.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Dual, Reals, StagingError, change, climb, loop, select, switch, target
from .. import joints
from ..context import Step
from ..spatial import Force, Motion, Vec3, at_point, cross, cross_force, force_to_child, point_velocity, power
from .ellipsoids import Ellipsoid, add_ellipsoid_bars, law_vjp
from .fluid_and_gravcomp import Box, Drag, coefficients_vjp
from .link_motion import add_path_bars, motion_of


class _Rates:
    """Derivative D of the drag on a body, and its frame."""

    def __init__(self, at: Box | Ellipsoid):
        self.at, self.link, self.R, self.p = at, at.link, at.X.R, at.X.r

    def frame_motion(self, W: Motion) -> tuple[Vec3, Vec3]:
        """Velocity and angular velocity of the frame under a motion of its link, in the axes of the frame."""
        return self.R.T @ point_velocity(self.p, W), self.R.T @ W.w

    def wrench(self, v: Vec3, w: Vec3) -> Force:
        """Wrench about the tree's origin of a force v and a torque w given in the drag frame's axes."""
        return at_point(self.p, self.R @ v, self.R @ w)

    def times(self, W: Motion, transposed: bool = False) -> Force:
        """Return J^T D J, or J^T D^T J, times a motion."""
        raise NotImplementedError


class _BoxRates(_Rates):
    def __init__(self, s: Step, n: Any):
        super().__init__(box := Box(s, n))
        self.box = box
        self.of_v = [k.v1 + 2.0 * k.v2 * abs(x) for k, x in zip(box.drag, box.v.leaves(), strict=True)]
        self.of_w = [k.w1 + 2.0 * k.w2 * abs(x) for k, x in zip(box.drag, box.w.leaves(), strict=True)]

    def times(self, W: Motion, transposed: bool = False) -> Force:
        v, w = self.frame_motion(W)
        scaled = [
            [a * x for a, x in zip(rate, y.leaves(), strict=True)] for rate, y in ((self.of_v, v), (self.of_w, w))
        ]
        return self.wrench(*(Vec3(*x) for x in scaled))


class _EllipsoidRates(_Rates):
    def __init__(self, s: Step, n: Any):
        super().__init__(ellipsoid := Ellipsoid(s, n))
        self.ellipsoid, rows, none = ellipsoid, [], Vec3.zero()
        for unit in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)):
            rows.append(law_vjp(ellipsoid, unit, none))
        for unit in (Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)):
            rows.append(law_vjp(ellipsoid, none, unit))
        D = [[-x for x in (*v.leaves(), *w.leaves())] for v, w, _ in rows]
        self.share: Any = 0.0  # weight of the transposed matrix
        if s.implicit_terms == "lone":
            self.share = switch(s.model.is_lone[self.link], {0: lambda: 0.5, 1: lambda: 0.0})
        self.D = [[D[i][j] + self.share * (D[j][i] - D[i][j]) for j in range(6)] for i in range(6)]

    def times(self, W: Motion, transposed: bool = False) -> Force:
        v, w = self.frame_motion(W)
        x = [*v.leaves(), *w.leaves()]
        rows = [[self.D[j][i] if transposed else self.D[i][j] for j in range(6)] for i in range(6)]
        out = [sum((a * b for a, b in zip(row, x, strict=True)), 0.0) for row in rows]
        return self.wrench(Vec3(*out[:3]), Vec3(*out[3:]))


def add_fluid_derivatives(s: Step) -> None:
    """Add h J^T D J to ws.M and ws.upper. Uses s.dof.S."""
    for n in loop(s.model.nfluid):
        _add(s, _BoxRates(s, n))
    if s.has("ellipsoid"):
        for n in loop(s.model.nwet):
            _add(s, _EllipsoidRates(s, n))


def _add(s: Step, rates: _Rates) -> None:
    m, M, upper, i = s.model, s.ws.M, s.ws.upper, rates.link
    for k in climb(m.dof_parent, m.link_v[i] + m.link_nv[i]):
        row, S = m.dof_row[k - 1], s.dof[k - 1].S
        F, G = rates.times(S), rates.times(S, transposed=True)
        diagonal = row + m.dof_depth[k - 1]
        M[diagonal] = M[diagonal] + s.dt * power(S, F)
        for j in climb(m.dof_parent, m.dof_parent[k]):
            at, other = row + m.dof_depth[j - 1], s.dof[j - 1].S
            M[at], upper[at] = M[at] + s.dt * power(other, G), upper[at] + s.dt * power(other, F)


def fluid_derivatives_vjp(s: Step, x: Reals, mu: Reals) -> None:
    """Add the cotangents of  -h sum y . D z  to those of q (tangent), v and constants.

    y, z and the velocities on which D depends are those of a drag frame under three joint velocity fields: mu, x and v.
    """
    for n in loop(s.model.nfluid):
        _box_rates_vjp(s, n, x, mu)
    if s.has("ellipsoid"):
        for n in loop(s.model.nwet):
            _ellipsoid_rates_vjp(s, n, x, mu)


def _box_rates_vjp(s: Step, n: Any, x: Reals, mu: Reals) -> None:
    rates = _BoxRates(s, n)
    box = rates.box
    Y, Z = motion_of(s, rates.link, mu), motion_of(s, rates.link, x)
    (y_v, y_w), (z_v, z_w) = rates.frame_motion(Y), rates.frame_motion(Z)
    pair_v = [-(s.dt * a * b) for a, b in zip(y_v.leaves(), z_v.leaves(), strict=True)]
    pair_w = [-(s.dt * a * b) for a, b in zip(y_w.leaves(), z_w.leaves(), strict=True)]
    each = list(zip(box.drag, box.v.leaves(), box.w.leaves(), pair_v, pair_w, strict=True))
    of_v = Vec3(*(2.0 * k.v2 * select(v < 0.0, -g, g) for k, v, _, g, _ in each))
    of_w = Vec3(*(2.0 * k.w2 * select(w < 0.0, -g, g) for k, _, w, _, g in each))
    X_bar = _motion_bars(s, rates, (x, mu), (Y, Z), (of_v, of_w))
    if s.bars.const is not None:
        bar, medium = s.bars.const.fluid[n], s.bars.const.medium[0]
        bar.X += X_bar
        drag_bar = [Drag(g, 2.0 * abs(v) * g, h, 2.0 * abs(w) * h) for _, v, w, g, h in each]
        box_bar, density_bar, viscosity_bar = coefficients_vjp(s, n, drag_bar)
        bar.box += box_bar
        medium.density += density_bar
        medium.viscosity += viscosity_bar


def _ellipsoid_rates_vjp(s: Step, n: Any, x: Reals, mu: Reals) -> None:
    """Adjoint for an ellipsoid: -y . D z = y . F'(V) z, whose gradient is the derivative of that of  y . F  along z.

    In the symmetric part y and z are also exchanged.
    """
    if target().tangents:
        raise StagingError("ellipsoids in a fluid have no second derivatives under implicit integrators: use euler")
    rates = _EllipsoidRates(s, n)
    Y, Z = motion_of(s, rates.link, mu), motion_of(s, rates.link, x)
    ways = [(Y, Z, (1.0 - rates.share) * s.dt)]
    if s.implicit_terms == "lone":
        ways.append((Z, Y, rates.share * s.dt))
    found = []
    for one, along, share in ways:
        f, t = rates.frame_motion(one)
        moving = rates.ellipsoid.moving(
            *(v.map(Dual, z) for v, z in zip(rates.ellipsoid.velocity, rates.frame_motion(along), strict=True))
        )
        v_bar, w_bar, own = law_vjp(moving, f * share, t * share)
        rest = {name: bar.map(change) if isinstance(bar, Vec3) else change(bar) for name, bar in own.items()}
        found.append((v_bar.map(change), w_bar.map(change), rest))
    v_bar, w_bar, own = found[0]
    for more_v, more_w, more in found[1:]:
        v_bar, w_bar, own = v_bar + more_v, w_bar + more_w, {name: bar + more[name] for name, bar in own.items()}
    X_bar = _motion_bars(s, rates, (x, mu), (Y, Z), (v_bar, w_bar))
    if s.bars.const is not None:
        s.bars.const.shape[rates.ellipsoid.shape].X += X_bar
        add_ellipsoid_bars(s, n, rates.ellipsoid, own)


def _motion_bars(
    s: Step, rates: _Rates, fields: tuple[Reals, Reals], motions: tuple[Motion, Motion], bars: tuple[Vec3, Vec3]
) -> Force:
    """Return the cotangent of the drag frame in its link; add to the cotangents of q (tangent), v and the wind.

    They have two parts: from the two motions that are paired by -h D, and from the velocities on which D depends, in frame
    axes.
    """
    (x, mu), (Y, Z), V, wind = fields, motions, s.link[rates.link].v, s.const.medium[0].wind
    y_bar, z_bar, v_bar = rates.times(Z) * -s.dt, rates.times(Y, transposed=True) * -s.dt, rates.wrench(*bars)
    blow = rates.R @ bars[0]
    blown = Force(cross(wind, blow), Vec3.zero())
    for field, W, F, zeta in ((mu, Y, y_bar, blown), (x, Z, z_bar, Force.zero()), (s.v, V, v_bar, Force.zero())):
        add_path_bars(s, rates.link, field, W, F, zeta)
    for k in climb(s.model.parent, rates.link):
        joints.add_projection(s, k, v_bar, s.bars.v)
    if s.bars.const is not None:
        s.bars.const.medium[0].wind -= blow
    turned = cross_force(Y, y_bar) + cross_force(Z, z_bar) + cross_force(V, v_bar)
    return force_to_child(rates.at.X, blown - turned)
