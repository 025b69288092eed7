"""The articulated-body recursion as factor and solve, O(n)  (theory 3.4-3.6, world axes).

In world axes the inertia that a joint passes inwards is a plain sum: no congruence, and a joint with several degrees of
freedom is eliminated one column at a time.
"""

from __future__ import annotations

from typing import Any

from ..spatial import Articulated, Motion, articulated_outer, power
from ..staging import Reals, carry, loop
from ..tables import Constants, Topology, Workspace


def factor(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace) -> None:
    """Mt = M + armature + damping_dt * damping.   U = IA S,  1/d = 1/(S . U + ...),  IA_p += IA - U U^T/d"""
    ws.link[0].IA = Articulated.zero()
    for i in loop(1, topology.nl):
        ws.link[i].IA = Articulated.of(ws.link[i].I)
    for i in loop(1, topology.nl, inwards=True):
        own, first = const.link[i], topology.link_v[i]
        extra = own.armature + damping_dt * own.damping
        IA = carry(ws.link[i].IA)
        for k in loop(first, first + topology.link_nv[i], inwards=True):
            dof = ws.dof[k]
            S = dof.S
            U = IA.value @ S
            dinv = 1.0 / (power(S, U) + extra)
            dof.U, dof.dinv = U, dinv
            IA.value = IA.value - articulated_outer(U, dinv)
        ws.link[topology.parent[i]].IA += IA.value


def solve(topology: Topology, ws: Workspace, b: Reals, x: Reals) -> None:
    """Mt x = b - S^T F, with the forces on links that ws.link.F holds (they are used up).

    inwards:  u = b - S . F,   F_p += F + U u/d         outwards:  x = (u - U . a_p)/d,   a = a_p + S x
    """
    for i in loop(1, topology.nl, inwards=True):
        F, first = carry(ws.link[i].F), topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i], inwards=True):
            dof = ws.dof[k]
            u = (b[k] - power(dof.S, F.value)) * dof.dinv
            dof.u = u
            F.value = F.value + dof.U * u
        ws.link[topology.parent[i]].F += F.value
    ws.bar[0].y = Motion.zero()
    for i in loop(1, topology.nl):
        a, first = carry(ws.bar[topology.parent[i]].y), topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i]):
            dof = ws.dof[k]
            xk = dof.u - power(a.value, dof.U) * dof.dinv
            x[k] = xk
            a.value = a.value + dof.S * xk
        ws.bar[i].y = a.value
