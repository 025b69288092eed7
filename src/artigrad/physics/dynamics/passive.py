"""Forces of joints and tendons themselves: springs, and damping at the present velocity  (its implicit part is in the
factor)."""

from __future__ import annotations

from typing import Any

from ...staging import Reals, loop, select
from ..context import Step
from ..lines import add_along, add_moment_bars, add_velocity_bars, along


def passive(s: Step, tau: Reals) -> None:
    """tau = -damping v - stiffness (q - reference)"""
    for i in loop(1, s.model.nl):
        own, qa, va = s.const.link[i], s.model.link_q[i], s.model.link_v[i]
        damping, stiffness, reference = own.damping, own.stiffness, own.reference
        for k in loop(s.model.link_nv[i]):
            tau[va + k] = -(damping * s.v[va + k] + stiffness * (s.q[qa + k] - reference))


def passive_vjp(s: Step, tau_bar: Reals) -> None:
    """Adds to the cotangents. Springs are on axial joints only, whose tangent is q itself."""
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
    """How far tendon t is beyond the lengths at which its spring rests."""
    own, length = s.const.line[t], s.ws.length[t]
    beyond = select(length >= own.rest_high, length - own.rest_high, 0.0)
    return select(length < own.rest_low, length - own.rest_low, beyond)


def stretch_bars(s: Step, t: Any, bar: Any) -> None:
    """To the length of tendon t and to the lengths at which its spring rests. One that rests at one length alone has a slope
    there."""
    own, length = s.const.line[t], s.ws.length[t]
    below = length < own.rest_low
    low_bar, high_bar = select(below, -bar, 0.0), select(below, 0.0, select(length >= own.rest_high, -bar, 0.0))
    s.ws.length_bar[t] = s.ws.length_bar[t] - low_bar - high_bar
    if s.bars.const is not None:
        s.bars.const.line[t].rest_low += low_bar
        s.bars.const.line[t].rest_high += high_bar


def tendons(s: Step, tau: Reals) -> None:
    """tau += moment f,   f = -damping velocity - stiffness stretch"""
    if "tendon" not in s.lines:
        return
    for t in loop(s.model.ntendon):
        own = s.const.line[t]
        add_along(s, t, -(own.damping * along(s, t, s.v) + own.stiffness * stretch_of(s, t)), tau)


def tendons_vjp(s: Step, tau_bar: Reals) -> None:
    """Adds to the cotangents of lines, v and constants."""
    if "tendon" not in s.lines:
        return
    for t in loop(s.model.ntendon):
        own, stretch, rate = s.const.line[t], stretch_of(s, t), along(s, t, s.v)
        f_bar = along(s, t, tau_bar)
        add_moment_bars(s, t, tau_bar, -(own.damping * rate + own.stiffness * stretch))
        add_velocity_bars(s, t, -(own.damping * f_bar))
        stretch_bars(s, t, -(own.stiffness * f_bar))
        if s.bars.const is not None:
            bar = s.bars.const.line[t]
            bar.damping -= f_bar * rate
            bar.stiffness -= f_bar * stretch
