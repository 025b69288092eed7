"""Forces of the joints themselves: springs, and damping at the present velocity  (its implicit part is in the factor)."""

from __future__ import annotations

from ...staging import Reals, loop
from ..context import Step


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
