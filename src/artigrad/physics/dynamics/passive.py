"""Passive forces of joints and tendons: springs, and damping at the present velocity. (Implicit damping is in the
factor.)"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, loop, minimum, select
from ..context import Step
from ..margin import keep_distance
from ..transmissions.transmission import add_along, add_moment_bars, add_velocity_bars, along


def passive(s: Step, tau: Reals) -> None:
    """Set tau = -damping v - stiffness (q - reference)."""
    for i in loop(1, s.model.nl):
        own, qa, va = s.const.link[i], s.model.link_q[i], s.model.link_v[i]
        damping, stiffness, reference = own.damping, own.stiffness, own.reference
        for k in loop(s.model.link_nv[i]):
            tau[va + k] = -(damping * s.v[va + k] + stiffness * (s.q[qa + k] - reference))


def passive_vjp(s: Step, tau_bar: Reals) -> None:
    """Add to the cotangents. Springs are on axial joints only, whose tangent is q itself."""
    bars = s.bars
    for i in loop(1, s.model.nl):
        own, qa, va = s.const.link[i], s.model.link_q[i], s.model.link_v[i]
        damping, stiffness, reference = own.damping, own.stiffness, own.reference
        for k in loop(s.model.link_nv[i]):
            t = tau_bar[va + k]
            bars.v[va + k] = bars.v[va + k] - damping * t
            bars.tangent[va + k] = bars.tangent[va + k] - stiffness * t
            if bars.const is not None:
                bar = bars.const.link[i]
                bar.damping = bar.damping - t * s.v[va + k]
                bar.stiffness = bar.stiffness - t * (s.q[qa + k] - reference)
                bar.reference = bar.reference + t * stiffness


def stretch_of(s: Step, t: Any) -> Any:
    """Stretch of tendon t beyond its rest lengths."""
    own, length = s.const.line[t], s.ws.length[t]
    beyond = select(length >= own.rest_high, length - own.rest_high, 0.0)
    return select(length < own.rest_low, length - own.rest_low, beyond)


def stretch_bars(s: Step, t: Any, bar: Any) -> None:
    """Add to the cotangents of the length of tendon t and of its rest lengths.

    A tendon with a single rest length is differentiable there.
    """
    own, length = s.const.line[t], s.ws.length[t]
    below = length < own.rest_low
    low_bar, high_bar = select(below, -bar, 0.0), select(below, 0.0, select(length >= own.rest_high, -bar, 0.0))
    s.ws.length_bar[t] = s.ws.length_bar[t] - low_bar - high_bar
    slack = (own.stiffness > 0.0) & (own.rest_low < own.rest_high)
    keep_distance(s, minimum(abs(length - own.rest_low), abs(length - own.rest_high)), slack)
    if s.bars.const is not None:
        s.bars.const.line[t].rest_low += low_bar
        s.bars.const.line[t].rest_high += high_bar


def tendons(s: Step, tau: Reals) -> None:
    """tau += moment f,   f = -v (damping + d1 |v| + d2 v^2) - x (stiffness + c1 x + c2 x^2),   x: stretch, v: velocity."""
    if not s.has("tendon"):
        return
    for t in loop(s.model.ntendon):
        add_along(s, t, tendon_force(s, t), tau)


def tendon_force(s: Step, t: Any) -> Any:
    """Force along tendon t."""
    own, x, v = s.const.line[t], stretch_of(s, t), along(s, t, s.v)
    f = -(own.damping * v + own.stiffness * x)
    return f - v * (own.d1 * abs(v) + own.d2 * (v * v)) - x * (x * (own.c1 + own.c2 * x)) if s.has("curve") else f


def tendon_rate(s: Step, t: Any, v: Any) -> Any:
    """Derivative of a tendon's damping force: damping + 2 d1 |v| + 3 d2 v^2."""
    own = s.const.line[t]
    return own.damping + (2.0 * own.d1 * abs(v) + 3.0 * own.d2 * (v * v)) if s.has("curve") else own.damping


def tendon_rate_vjp(s: Step, t: Any, bar: Any) -> None:
    """Add to the cotangents of constants, and of the velocity if the rate depends on it."""
    const, own = s.bars.const, s.const.line[t]
    if const is not None:
        const.line[t].damping += bar
    if s.has("curve"):
        v = along(s, t, s.v)
        add_velocity_bars(s, t, bar * (select(v < 0.0, -2.0, 2.0) * own.d1 + 6.0 * own.d2 * v))
        if const is not None:
            const.line[t].d1 += 2.0 * abs(v) * bar
            const.line[t].d2 += 3.0 * (v * v) * bar


def tendon_energy(s: Step, t: Any) -> Any:
    """k x^2/2 + c1 x^3/3 + c2 x^4/4"""
    own, x = s.const.line[t], stretch_of(s, t)
    energy = 0.5 * own.stiffness * (x * x)
    return energy + x * x * x * (own.c1 / 3.0 + own.c2 * x / 4.0) if s.has("curve") else energy


def tendon_energy_vjp(s: Step, t: Any, bar: Any) -> None:
    """Add to the cotangents of transmissions and constants."""
    own, x, const = s.const.line[t], stretch_of(s, t), s.bars.const
    pull = own.stiffness * x
    if s.has("curve"):
        pull = pull + x * (x * (own.c1 + own.c2 * x))
    stretch_bars(s, t, pull * bar)
    if const is not None:
        const.line[t].stiffness += 0.5 * (x * x) * bar
        if s.has("curve"):
            const.line[t].c1 += x * x * x / 3.0 * bar
            const.line[t].c2 += x * x * x * x / 4.0 * bar


def tendons_vjp(s: Step, tau_bar: Reals) -> None:
    """Add to the cotangents of transmissions, v and constants."""
    if not s.has("tendon"):
        return
    for t in loop(s.model.ntendon):
        f_bar = along(s, t, tau_bar)
        add_moment_bars(s, t, tau_bar, tendon_force(s, t))
        tendon_force_vjp(s, t, f_bar)


def tendon_force_vjp(s: Step, t: Any, f_bar: Any) -> None:
    """Add to the cotangents of transmissions, v and constants."""
    own, x, v = s.const.line[t], stretch_of(s, t), along(s, t, s.v)
    stiffness = own.stiffness
    if s.has("curve"):
        stiffness = stiffness + x * (2.0 * own.c1 + 3.0 * own.c2 * x)
    add_velocity_bars(s, t, -(tendon_rate(s, t, v) * f_bar))
    stretch_bars(s, t, -(stiffness * f_bar))
    if s.bars.const is not None:
        bar = s.bars.const.line[t]
        bar.damping -= f_bar * v
        bar.stiffness -= f_bar * x
        if s.has("curve"):
            bar.c1 -= f_bar * (x * x)
            bar.c2 -= f_bar * (x * x * x)
            bar.d1 -= f_bar * (v * abs(v))
            bar.d2 -= f_bar * (v * v * v)
