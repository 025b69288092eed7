"""Forces of the joints themselves: springs, and damping at the present velocity  (its implicit part is in the factor)."""

from __future__ import annotations

from ..staging import Reals, loop
from ..tables import Bars, Constants, Topology


def passive(topology: Topology, const: Constants, q: Reals, v: Reals, tau: Reals) -> None:
    """tau = -damping v - stiffness (q - reference)"""
    for i in loop(1, topology.nl):
        own, qa, va = const.link[i], topology.link_q[i], topology.link_v[i]
        damping, stiffness, reference = own.damping, own.stiffness, own.reference
        for k in loop(topology.link_nv[i]):
            tau[va + k] = -(damping * v[va + k] + stiffness * (q[qa + k] - reference))


def passive_vjp(topology: Topology, const: Constants, q: Reals, v: Reals, tau_bar: Reals, bars: Bars) -> None:
    """Adds to the cotangents. Springs are on revolute and prismatic joints only, whose tangent is q itself."""
    for i in loop(1, topology.nl):
        own, qa, va = const.link[i], topology.link_q[i], topology.link_v[i]
        damping, stiffness, reference = own.damping, own.stiffness, own.reference
        for k in loop(topology.link_nv[i]):
            t = tau_bar[va + k]
            bars.v[va + k] = bars.v[va + k] - damping * t
            bars.tangent[va + k] = bars.tangent[va + k] - stiffness * t
            if bars.const is not None:
                bar = bars.const.link[i]
                bar.damping = bar.damping - t * v[va + k]
                bar.stiffness = bar.stiffness - t * (q[qa + k] - reference)
                bar.reference = bar.reference + t * stiffness
