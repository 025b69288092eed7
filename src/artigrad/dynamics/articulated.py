"""The articulated-body recursion as factor and solve, O(n)  (theory 3.4-3.6, world axes).

In world axes the inertia that a joint passes inwards is a plain sum: there is no congruence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import joints
from ..spatial import Articulated, Motion
from ..staging import Reals, loop, switch
from ..tables import Constants, Topology, Workspace


def factor(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace) -> None:
    """Mt = M + armature + damping_dt * damping;  IA_p += what joint i leaves of IA_i"""
    for i in loop(1, topology.nl, inwards=True):
        _eliminate(topology, const, damping_dt, i, ws)


def solve(topology: Topology, ws: Workspace, b: Reals, x: Reals) -> None:
    """Mt x = b - S^T F, with the forces on links that ws.link.F holds (they are used up)."""
    pull(topology, ws, b)
    push(topology, ws, x)


def factor_solve(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace, b: Reals, x: Reals) -> None:
    """`factor`, then `solve`, in one inward pass."""
    factor_pull(topology, const, damping_dt, ws, b)
    push(topology, ws, x)


def factor_pull(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace, b: Reals) -> None:
    """`factor` and the inward half of `solve`."""
    for i in loop(1, topology.nl, inwards=True):
        _eliminate(topology, const, damping_dt, i, ws)
        _pull(topology, i, b, ws)


def pull(topology: Topology, ws: Workspace, b: Reals) -> None:
    """The inward half of `solve`: ws.dof.u = d^-1 L (b - S^T F)"""
    for i in loop(1, topology.nl, inwards=True):
        _pull(topology, i, b, ws)


def _eliminate(topology: Topology, const: Constants, damping_dt: Any, i: Any, ws: Workspace) -> None:
    own, parent = const.link[i], ws.link[topology.parent[i]]
    left = joints.eliminate(topology, i, _felt(topology, i, ws), own.armature + damping_dt * own.damping, ws)

    def first() -> None:
        parent.IA = left

    def another() -> None:
        parent.IA += left

    switch(topology.first_inwards[i], {1: first, 0: another})


def _pull(topology: Topology, i: Any, b: Reals, ws: Workspace) -> None:
    ws.link[topology.parent[i]].F += joints.pull(topology, i, ws.link[i].F, b, ws)


def push(topology: Topology, ws: Workspace, x: Reals) -> None:
    """The outward half of `solve`: x = L^T u"""
    ws.link[0].y = Motion.zero()
    for i in loop(1, topology.nl):
        ws.link[i].y = joints.push(topology, i, ws.link[topology.parent[i]].y, ws, x)


def _felt(topology: Topology, i: Any, ws: Workspace) -> Articulated:
    """The inertia of link i, and what the joints it carries have left of theirs in IA."""
    link = ws.link[i]
    tip: Callable[[], Articulated] = lambda: Articulated.of(link.I)  # noqa: E731
    inner: Callable[[], Articulated] = lambda: Articulated.of(link.I) + link.IA  # noqa: E731
    return switch(topology.is_tip[i], {1: tip, 0: inner})
