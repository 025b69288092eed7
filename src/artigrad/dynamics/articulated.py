"""The articulated-body recursion as factor and solve, O(n)  (theory 3.4-3.6, world axes).

In world axes the inertia that a joint passes inwards is a plain sum: there is no congruence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import joints
from ..spatial import Articulated, Motion
from ..staging import Reals, loop, switch
from ..staging.memory import Row
from ..tables import Constants, Topology, Workspace


def factor(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace) -> None:
    """Mt = M + armature + damping_dt * damping;  IA_p += what joint i leaves of IA_i"""
    for i in loop(1, topology.nl, inwards=True):
        own = const.link[i]
        left = joints.eliminate(topology, i, _felt(topology, i, ws), own.armature + damping_dt * own.damping, ws)
        parent = ws.link[topology.parent[i]]

        def first(parent: Row = parent, left: Articulated = left) -> None:
            parent.IA = left

        def another(parent: Row = parent, left: Articulated = left) -> None:
            parent.IA += left

        switch(topology.first_inwards[i], {1: first, 0: another})


def _felt(topology: Topology, i: Any, ws: Workspace) -> Articulated:
    """The inertia of link i, and what the joints it carries have left of theirs in IA."""
    link = ws.link[i]
    tip: Callable[[], Articulated] = lambda: Articulated.of(link.I)  # noqa: E731
    inner: Callable[[], Articulated] = lambda: Articulated.of(link.I) + link.IA  # noqa: E731
    return switch(topology.is_tip[i], {1: tip, 0: inner})


def solve(topology: Topology, ws: Workspace, b: Reals, x: Reals) -> None:
    """Mt x = b - S^T F, with the forces on links that ws.link.F holds (they are used up)."""
    for i in loop(1, topology.nl, inwards=True):
        ws.link[topology.parent[i]].F += joints.pull(topology, i, ws.link[i].F, b, ws)
    ws.link[0].y = Motion.zero()
    for i in loop(1, topology.nl):
        ws.link[i].y = joints.push(topology, i, ws.link[topology.parent[i]].y, ws, x)
