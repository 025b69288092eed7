"""Forces of the environment on links: gravity compensation and fluid drag; and the adjoint.

    compensation   the weight of a body, times its fraction, acts upwards at its center of mass
    fluid          each body is a box with edges b, in whose axes (v, w) are its velocities relative to the wind:
                   f_i = -3 pi d viscosity v_i - density b_j b_k |v_i| v_i / 2,                        d = mean of b
                   t_i = -pi d^3 viscosity w_i - density b_i (b_j^4 + b_k^4) |w_i| w_i / 64

Shapes treated as ellipsoids are in `ellipsoids`. All are forces on links; a kernel is staged with those that its model
has.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...compiler import loop
from ..context import Step
from ..spatial import (
    Force,
    Motion,
    Transform,
    Vec3,
    at_point,
    compose,
    cross,
    cross_force,
    dot,
    force_to_child,
    point_velocity,
)
from .ellipsoids import ellipsoids_vjp, subtract_ellipsoids


def subtract_fluid_and_gravcomp(s: Step) -> None:
    """Subtract these forces from the required forces of links."""
    if s.has("compensation"):
        for i in loop(1, s.model.nl):
            s.link[i].F -= gravcomp_force(s, i)
    if s.has("fluid"):
        for n in loop(s.model.nfluid):
            box = Box(s, n)
            s.link[box.link].F -= box.wrench
        if s.has("ellipsoid"):
            subtract_ellipsoids(s)


def fluid_and_gravcomp_vjp(s: Step) -> None:
    """Add the cotangents of poses (s.field.zeta), velocities (s.link.v_bar) and constants.

    The cotangent of the forces is -s.link.y.
    """
    if s.has("compensation"):
        for i in loop(1, s.model.nl):
            s.field[i].zeta += gravcomp_force_vjp(s, i, -s.link[i].y)
    if s.has("fluid"):
        for n in loop(s.model.nfluid):
            _box_vjp(s, n)
        if s.has("ellipsoid"):
            ellipsoids_vjp(s)


# -- compensation ------------------------------------------------------------------------------------------------------------
def _moment(s: Step, i: Any) -> Vec3:
    """First moment of the compensated mass about the origin of the tree."""
    X, own = s.link[i].X, s.const.lifted[i]
    return X.r * own.m + X.R @ own.h


def gravcomp_force(s: Step, i: Any) -> Force:
    """Force on link i that compensates its weight."""
    up = -s.const.gravity
    return Force(cross(_moment(s, i), up), up * s.const.lifted[i].m)


def gravcomp_force_vjp(s: Step, i: Any, bar: Motion) -> Force:
    """Return the cotangent of a rigid motion of link i, with the cotangent `bar` rotated along; add to those of
    constants."""
    own, up, P, X = s.const.lifted[i], -s.const.gravity, _moment(s, i), s.link[i].X
    P_bar = cross(up, bar.w)
    if s.bars.const is not None:
        row = s.bars.const.lifted[i]
        row.m += dot(P_bar, X.r) + dot(bar.v, up)
        row.h += X.R.T @ P_bar
        s.bars.const.gravity = s.bars.const.gravity - cross(bar.w, P) - bar.v * own.m
    return Force(cross(P, P_bar), P_bar * own.m) + cross_force(bar, gravcomp_force(s, i))


# -- fluid -------------------------------------------------------------------------------------------------------------------
class Drag(NamedTuple):
    """Coefficients of one axis: viscous and quadratic, of translation and of rotation."""

    v1: Any
    v2: Any
    w1: Any
    w2: Any


def _coefficients(b: Vec3, density: Any, viscosity: Any) -> list[Drag]:
    """Drag coefficients of a box."""
    edges = b.leaves()
    d = (edges[0] + edges[1] + edges[2]) / 3.0
    out = []
    for i in range(3):
        p, q = edges[(i + 1) % 3], edges[(i + 2) % 3]
        flat = edges[i] * (p * p * p * p + q * q * q * q) / 64.0
        out.append(
            Drag(3.0 * math.pi * d * viscosity, 0.5 * density * p * q, math.pi * d * d * d * viscosity, density * flat)
        )
    return out


class Box:
    """Body in a fluid: its link, the pose of its box, its velocities in the axes of the box, and the wrench on it."""

    def __init__(self, s: Step, n: Any):
        own, medium = s.const.fluid[n], s.const.medium[0]
        self.link = s.model.link_of_body[s.model.fluid_body[n]]
        self.X: Transform = compose(s.link[self.link].X, own.X)
        self.drag = _coefficients(own.box, medium.density, medium.viscosity)
        R, p = self.X.R, self.X.r
        self.v = R.T @ (point_velocity(p, s.link[self.link].v) - medium.wind)
        self.w = R.T @ s.link[self.link].v.w
        each = zip(self.drag, self.v.leaves(), self.w.leaves(), strict=True)
        pairs = [(-(k.v1 + k.v2 * abs(v)) * v, -(k.w1 + k.w2 * abs(w)) * w) for k, v, w in each]
        self.f, self.t = Vec3(*(f for f, _ in pairs)), Vec3(*(t for _, t in pairs))
        self.wrench = at_point(p, R @ self.f, R @ self.t)


def _box_vjp(s: Step, n: Any) -> None:
    """Adjoint of a box. With y and v rotated along, a rigid motion of the link changes the relative wind only."""
    box = Box(s, n)
    link, R, p = s.link[box.link], box.X.R, box.X.r
    y, v, wind = link.y, link.v, s.const.medium[0].wind
    f_bar, t_bar = -(R.T @ point_velocity(p, y)), -(R.T @ y.w)
    axes = list(zip(box.drag, box.v.leaves(), box.w.leaves(), f_bar.leaves(), t_bar.leaves(), strict=True))
    v_bar = R @ Vec3(*(-(k.v1 + 2.0 * k.v2 * abs(x)) * g for k, x, _, g, _ in axes))
    w_bar = R @ Vec3(*(-(k.w1 + 2.0 * k.w2 * abs(x)) * g for k, _, x, _, g in axes))
    seen_bar, blown = at_point(p, v_bar, w_bar), Force(cross(wind, v_bar), Vec3.zero())
    link.v_bar += seen_bar
    s.field[box.link].zeta += blown
    if s.bars.const is not None:
        bar, medium = s.bars.const.fluid[n], s.bars.const.medium[0]
        bar.X += force_to_child(box.X, blown + cross_force(y, box.wrench) - cross_force(v, seen_bar))
        medium.wind -= v_bar
        drag_bar = [Drag(-(x * g), -(abs(x) * x * g), -(z * h), -(abs(z) * z * h)) for _, x, z, g, h in axes]
        box_bar, density_bar, viscosity_bar = coefficients_vjp(s, n, drag_bar)
        bar.box += box_bar
        medium.density += density_bar
        medium.viscosity += viscosity_bar


def coefficients_vjp(s: Step, n: Any, bars: list[Drag]) -> tuple[Vec3, Any, Any]:
    """Cotangents of the box, the density and the viscosity."""
    edges, medium = s.const.fluid[n].box.leaves(), s.const.medium[0]
    density, viscosity = medium.density, medium.viscosity
    d = (edges[0] + edges[1] + edges[2]) / 3.0
    out, density_bar, viscosity_bar, d_bar = [0.0, 0.0, 0.0], 0.0, 0.0, 0.0
    for i, k in enumerate(bars):
        a, b = (i + 1) % 3, (i + 2) % 3
        p, q = edges[a], edges[b]
        p4, q4 = p * p * p * p, q * q * q * q
        viscosity_bar = viscosity_bar + k.v1 * (3.0 * math.pi * d) + k.w1 * (math.pi * d * d * d)
        d_bar = d_bar + k.v1 * (3.0 * math.pi * viscosity) + k.w1 * (3.0 * math.pi * d * d * viscosity)
        density_bar = density_bar + k.v2 * (0.5 * p * q) + k.w2 * (edges[i] * (p4 + q4) / 64.0)
        out[i] = out[i] + k.w2 * density * (p4 + q4) / 64.0
        out[a] = out[a] + k.v2 * (0.5 * density * q) + k.w2 * density * edges[i] * (p * p * p) / 16.0
        out[b] = out[b] + k.v2 * (0.5 * density * p) + k.w2 * density * edges[i] * (q * q * q) / 16.0
    return Vec3(*(x + d_bar / 3.0 for x in out)), density_bar, viscosity_bar
