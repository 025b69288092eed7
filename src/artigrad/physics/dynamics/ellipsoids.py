"""Shapes treated as ellipsoids in a fluid: added mass, lift and drag; and the adjoint.

In the axes of a shape with half axes a, velocities (v, w) relative to the wind, density rho and viscosity mu:

    force    p x w + c_magnus rho V w x v + c_kutta rho g (n x v) x v - (mu l + rho |v| (c_blunt A + c_slender (A_max -
    A))) v
    torque   p x v + h x w - (mu t + rho |m|) w

    p = rho virtual_mass * v,  h = rho virtual_inertia * w,  n_i = q_i v_i,  q_i = (a_j a_k)^2
    A = pi sqrt(sum q_i^2 v_i^2 / sum q_i v_i^2) the projected area along v,  g = (sum q_i v_i^2 / (|v| sum q_i^2
    v_i^2)) A
    m_i = w_i (c_angular I_i + c_slender (I_max - I_i)),  I_i = 8/15 pi a_i max(a_j, a_k)^4

V, A_max, I_max, l and t depend on the half axes only (`_Form`).
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

from ...compiler import loop, maximum, minimum, select, sqrt, switch, target
from ...model.model import CAPSULE, CYLINDER, SHAPES, SPHERE
from ..context import Step
from ..spatial import Force, Transform, Vec3, at_point, compose, cross, cross_force, dot, force_to_child, point_velocity

LEAST = 1e-15
# m^4 m^2/s^2 and m^8 m^3/s^3: lower bounds at rest; those of thin shapes of a centimeter are far below LEAST
LEAST_SHOWN = {"f64": 1e-140, "f32": 1e-18}
LEAST_LIFT = {"f64": 1e-140, "f32": 1e-30}
ROUND = 8.0 / 15.0 * math.pi


def _fourth(x: Any) -> Any:
    return x * x * (x * x)


def half_axes(kind: Any, size: Vec3) -> Vec3:
    """Half axes of the ellipsoid that represents a shape."""
    x, y = size.x, size.y
    cases = {k: (lambda: size) for k in range(len(SHAPES))}
    cases |= {SPHERE: lambda: Vec3(x, x, x), CAPSULE: lambda: Vec3(x, x, x + y), CYLINDER: lambda: Vec3(x, x, y)}
    return switch(kind, cases)


def half_axes_vjp(kind: Any, bar: Vec3) -> Vec3:
    """Adjoint of `half_axes`."""
    b1, b2, b3 = bar.leaves()
    cases = {k: (lambda: bar) for k in range(len(SHAPES))}
    cases |= {
        SPHERE: lambda: Vec3(b1 + b2 + b3, 0.0, 0.0),
        CAPSULE: lambda: Vec3(b1 + b2 + b3, b3, 0.0),
        CYLINDER: lambda: Vec3(b1 + b2, b3, 0.0),
    }
    return switch(kind, cases)


class _Form:
    """Quantities derived from half axes."""

    def __init__(self, a: Vec3):
        self.a = x = a.leaves()
        self.volume = (4.0 / 3.0 * math.pi) * x[0] * x[1] * x[2]
        self.most = maximum(maximum(x[0], x[1]), x[2])
        self.least = minimum(minimum(x[0], x[1]), x[2])
        self.mid = x[0] + x[1] + x[2] - self.most - self.least
        self.area = math.pi * self.most * self.mid
        self.q = [(x[(i + 1) % 3] * x[(i + 2) % 3]) * (x[(i + 1) % 3] * x[(i + 2) % 3]) for i in range(3)]
        self.width = (2.0 / 3.0) * (x[0] + x[1] + x[2])
        self.top = ROUND * self.mid * _fourth(self.most)
        self.inertia = [ROUND * x[i] * _fourth(maximum(x[(i + 1) % 3], x[(i + 2) % 3])) for i in range(3)]

    def vjp(self, volume: Any, area: Any, q: list[Any], width: Any, top: Any, inertia: list[Any]) -> Vec3:
        """Cotangent of the half axes."""
        x, out = self.a, [0.0, 0.0, 0.0]
        mid_bar = math.pi * self.most * area + ROUND * _fourth(self.most) * top
        most_bar = math.pi * self.mid * area + 4.0 * ROUND * self.mid * (self.most * self.most * self.most) * top
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            out[i] = out[i] + (4.0 / 3.0 * math.pi) * x[j] * x[k] * volume + (2.0 / 3.0) * width
            # q_i = (x_j x_k)^2
            out[j] = out[j] + 2.0 * x[j] * (x[k] * x[k]) * q[i]
            out[k] = out[k] + 2.0 * x[k] * (x[j] * x[j]) * q[i]
            wide = maximum(x[j], x[k])
            out[i] = out[i] + ROUND * _fourth(wide) * inertia[i]
            slope = 4.0 * ROUND * x[i] * (wide * wide * wide) * inertia[i]
            out[j] = out[j] + select(x[j] < x[k], 0.0, slope)
            out[k] = out[k] + select(x[j] < x[k], slope, 0.0)
        # most, mid and least are a permutation of the three
        first = [select(x[0] < x[1], 0.0, 1.0) * select(x[0] < x[2], 0.0, 1.0)]
        first.append((1.0 - first[0]) * select(x[1] < x[2], 0.0, 1.0))
        first.append(1.0 - first[0] - first[1])
        last = [select(x[0] < x[1], 1.0, 0.0) * select(x[0] < x[2], 1.0, 0.0)]
        last.append((1.0 - last[0]) * (1.0 - select(x[2] < x[1], 1.0, 0.0)) * (1.0 - first[1]))
        last.append(1.0 - last[0] - last[1])
        for i in range(3):
            out[i] = out[i] + first[i] * most_bar + (1.0 - first[i] - last[i]) * mid_bar
        return Vec3(*out)


class Ellipsoid:
    """Shape in a fluid: its link, its pose, its velocities in its own axes, and the wrench on it."""

    def __init__(self, s: Step, n: Any):
        self.shape = s.model.wet_shape[n]
        own, medium, row = s.const.shape[self.shape], s.const.medium[0], s.const.wet[n]
        self.link, self.row, self.rho, self.mu = s.model.shape_link[self.shape], row, medium.density, medium.viscosity
        self.X: Transform = compose(s.link[self.link].X, own.X)
        R, p = self.X.R, self.X.r
        self.v = R.T @ (point_velocity(p, s.link[self.link].v) - medium.wind)
        self.w = R.T @ s.link[self.link].v.w
        self.form = _Form(half_axes(s.model.shape_kind[self.shape], own.size))
        self.f, self.t = self._law()
        self.wrench = at_point(p, R @ self.f, R @ self.t)

    @property
    def velocity(self) -> tuple[Vec3, Vec3]:
        """Velocity and angular velocity relative to the wind, in its axes."""
        return self.v, self.w

    def moving(self, v: Vec3, w: Vec3) -> Ellipsoid:
        """Return a copy with other velocities."""
        other = copy(self)
        other.v, other.w = v, w
        other.f, other.t = other._law()
        return other

    def _law(self) -> tuple[Vec3, Vec3]:
        v, w, form, row, rho = self.v, self.w, self.form, self.row, self.rho
        x = v.leaves()
        self.num = sum((q * (y * y) for q, y in zip(form.q, x, strict=True)), 0.0)
        self.den = sum((q * q * (y * y) for q, y in zip(form.q, x, strict=True)), 0.0)
        self.speed = sqrt(maximum(dot(v, v), LEAST * LEAST))
        self.seen = math.pi * sqrt(self.den / maximum(self.num, LEAST_SHOWN[target().dtype]))
        self.n = Vec3(*(q * y for q, y in zip(form.q, x, strict=True)))
        self.g = self.num / maximum(self.speed * self.den, LEAST_LIFT[target().dtype]) * self.seen
        self.lift = cross(self.n, v)
        kutta = cross(self.lift, v) * (row.kutta * rho * self.g)
        magnus = cross(w, v) * (row.magnus * rho * form.volume)
        self.turns = [row.angular * I + row.slender * (form.top - I) for I in form.inertia]
        self.m = Vec3(*(y * k for y, k in zip(w.leaves(), self.turns, strict=True)))
        self.spin = sqrt(maximum(dot(self.m, self.m), LEAST * LEAST))
        self.shown = row.blunt * self.seen + row.slender * (form.area - self.seen)
        self.drag = self.mu * (3.0 * math.pi * form.width) + rho * self.speed * self.shown
        self.twist = self.mu * (math.pi * (form.width * form.width * form.width)) + rho * self.spin
        self.p = Vec3(*(rho * k * y for k, y in zip(row.mass.leaves(), x, strict=True)))
        self.h = Vec3(*(rho * k * y for k, y in zip(row.inertia.leaves(), w.leaves(), strict=True)))
        force = cross(self.p, w) + magnus + kutta - v * self.drag
        return force, cross(self.p, v) + cross(self.h, w) - w * self.twist


def ellipsoid_vjp(s: Step, n: Any) -> None:
    """Adjoint of an ellipsoid. As for a box, with y and v rotated along, a rigid motion changes the relative wind only."""
    e = Ellipsoid(s, n)
    link, R, p = s.link[e.link], e.X.R, e.X.r
    y, wind, bars = link.y, s.const.medium[0].wind, s.bars.const
    f_bar, t_bar = -(R.T @ point_velocity(p, y)), -(R.T @ y.w)
    v_own, w_own, own = law_vjp(e, f_bar, t_bar)
    v_bar, w_bar = R @ v_own, R @ w_own
    seen_bar, blown = at_point(p, v_bar, w_bar), Force(cross(wind, v_bar), Vec3.zero())
    link.v_bar += seen_bar
    s.field[e.link].zeta += blown
    if bars is not None:
        bars.shape[e.shape].X += force_to_child(e.X, blown + cross_force(y, e.wrench) - cross_force(link.v, seen_bar))
        bars.medium[0].wind -= v_bar
        add_ellipsoid_bars(s, n, e, own)


def add_ellipsoid_bars(s: Step, n: Any, e: Ellipsoid, own: dict[str, Any]) -> None:
    """Add the cotangents of constants from `law_vjp`."""
    assert s.bars.const is not None
    shape, medium, row = s.bars.const.shape[e.shape], s.bars.const.medium[0], s.bars.const.wet[n]
    shape.size += half_axes_vjp(s.model.shape_kind[e.shape], own["axes"])
    medium.density += own["rho"]
    medium.viscosity += own["mu"]
    for name in ("blunt", "slender", "angular", "kutta", "magnus", "mass", "inertia"):
        setattr(row, name, getattr(row, name) + own[name])


def law_vjp(e: Ellipsoid, f: Vec3, t: Vec3) -> tuple[Vec3, Vec3, dict[str, Any]]:
    """Return the cotangents of v and w, and of all parameters, given those of force and torque."""
    v, w, form, row, rho, mu = e.v, e.w, e.form, e.row, e.rho, e.mu
    x, z = v.leaves(), w.leaves()
    # force = p x w + magnus + kutta - drag v,  torque = p x v + h x w - twist w
    p_bar = cross(w, f) + cross(v, t)
    h_bar = cross(w, t)
    w_bar = cross(f, e.p) + cross(t, e.h) - t * e.twist
    v_bar = cross(t, e.p) - f * e.drag
    drag_bar, twist_bar = -dot(f, v), -dot(t, w)
    # magnus = c rho V w x v
    scale = row.magnus * rho * form.volume
    along = dot(f, cross(w, v))
    w_bar, v_bar = w_bar + cross(v, f) * scale, v_bar + cross(f, w) * scale
    # kutta = c rho g (n x v) x v
    k = row.kutta * rho * e.g
    lifted = dot(f, cross(e.lift, v))
    lift_bar = cross(v, f) * k
    v_bar = v_bar + cross(f, e.lift) * k + cross(lift_bar, e.n)
    n_bar = cross(v, lift_bar)
    g_bar = row.kutta * rho * lifted
    # drag = mu 3 pi width + rho speed shown,  shown = c_b seen + c_s (area - seen)
    speed_bar = rho * e.shown * drag_bar
    shown_bar = rho * e.speed * drag_bar
    seen_bar = (row.blunt - row.slender) * shown_bar
    # g = num/max(speed den, least) seen
    least = LEAST_LIFT[target().dtype]
    below = maximum(e.speed * e.den, least)
    some = select(e.speed * e.den > least, 1.0, 0.0)
    seen_bar = seen_bar + e.num / below * g_bar
    num_bar = e.seen / below * g_bar
    below_bar = -(e.g / below) * g_bar * some
    speed_bar, den_bar = speed_bar + e.den * below_bar, e.speed * below_bar
    # seen = pi sqrt(den/max(num, least))
    least = LEAST_SHOWN[target().dtype]
    safe = maximum(e.num, least)
    moving = select(e.seen > 0.0, 1.0, 0.0)
    root_bar = moving * seen_bar * (math.pi * math.pi) / (2.0 * maximum(e.seen, LEAST))
    den_bar = den_bar + root_bar / safe
    num_bar = num_bar - select(e.num > least, root_bar * e.den / (safe * safe), 0.0)
    # twist = mu pi width^3 + rho |m|
    m_bar = e.m * (rho * twist_bar / e.spin)
    turns_bar = [a * b for a, b in zip(m_bar.leaves(), z, strict=True)]
    q_bar, vs, ws, inertia_bar = [], [], [], []
    angular, slender, top_bar = 0.0, (form.area - e.seen) * shown_bar, 0.0
    for i in range(3):
        nb = n_bar.leaves()[i]
        q_bar.append(nb * x[i] + x[i] * x[i] * (num_bar + 2.0 * form.q[i] * den_bar))
        own = form.q[i] * nb + 2.0 * form.q[i] * x[i] * (num_bar + form.q[i] * den_bar)
        vs.append(own + x[i] / e.speed * speed_bar + rho * row.mass.leaves()[i] * p_bar.leaves()[i])
        ws.append(m_bar.leaves()[i] * e.turns[i] + rho * row.inertia.leaves()[i] * h_bar.leaves()[i])
        inertia_bar.append((row.angular - row.slender) * turns_bar[i])
        angular, slender = (
            angular + form.inertia[i] * turns_bar[i],
            slender + (form.top - form.inertia[i]) * turns_bar[i],
        )
        top_bar = top_bar + row.slender * turns_bar[i]
    width_bar = mu * (3.0 * math.pi * drag_bar + 3.0 * math.pi * (form.width * form.width) * twist_bar)
    cube = form.width * form.width * form.width
    volume_bar, area_bar = row.magnus * rho * along, row.slender * shown_bar
    mass_bar = Vec3(*(a * b for a, b in zip(p_bar.leaves(), x, strict=True)))
    spin_bar = Vec3(*(a * b for a, b in zip(h_bar.leaves(), z, strict=True)))
    rho_bar = (
        row.magnus * form.volume * along + row.kutta * e.g * lifted + e.speed * e.shown * drag_bar + e.spin * twist_bar
    )
    rho_bar = rho_bar + dot(mass_bar, row.mass) + dot(spin_bar, row.inertia)
    found = {
        "axes": form.vjp(volume_bar, area_bar, q_bar, width_bar, top_bar, inertia_bar),
        "rho": rho_bar,
        "mu": 3.0 * math.pi * form.width * drag_bar + math.pi * cube * twist_bar,
        "blunt": e.seen * shown_bar,
        "slender": slender,
        "angular": angular,
        "kutta": rho * e.g * lifted,
        "magnus": rho * form.volume * along,
        "mass": mass_bar * rho,
        "inertia": spin_bar * rho,
    }
    return v_bar + Vec3(*vs), w_bar + Vec3(*ws), found


def subtract_ellipsoids(s: Step) -> None:
    """Subtract the wrenches from the required forces of links."""
    for n in loop(s.model.nwet):
        e = Ellipsoid(s, n)
        s.link[e.link].F -= e.wrench


def ellipsoids_vjp(s: Step) -> None:
    """Adjoint of `subtract_ellipsoids`."""
    for n in loop(s.model.nwet):
        ellipsoid_vjp(s, n)
