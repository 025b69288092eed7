"""Articulated-body recursion as factor and solve, O(n)  (theory 3.4-3.6, world axes).

The inward pass goes from the tips of the tree to the roots, the outward pass back. In world axes the inertia that a joint
adds to its parent is a plain sum, without a congruence transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...compiler import Reals, loop, switch
from .. import joints
from ..context import Step
from ..joints.joint import Extra
from ..spatial import Articulated, Force, Motion

Diagonal = Callable[[Step, Any], Extra]  # diagonal terms of a joint besides S^T I S


def damped(s: Step, i: Any) -> Extra:
    """Diagonal terms armature + damping_dt * damping."""
    own = s.const.link[i]
    extra = own.armature + s.damping_dt * own.damping
    return lambda k: extra


def factor(s: Step, diagonal: Diagonal = damped) -> None:
    """Factor Mt = M + diagonal; add the articulated inertia of each link i behind its joint to the parent: IA_p += ..."""
    for i in loop(1, s.model.nl, inwards=True):
        _eliminate(s, i, diagonal)


def clear_forces(s: Step) -> None:
    """Clear the forces on links, for an independent solve."""
    for i in loop(s.model.nl):
        s.link[i].F = Force.zero()


def solve(s: Step, b: Reals, x: Reals) -> None:
    """Solve Mt x = b - S^T F, with the forces on links s.link.F, which are overwritten."""
    solve_inward(s, b)
    solve_outward(s, x)


def factor_solve(s: Step, b: Reals, x: Reals) -> None:
    """`factor`, then `solve`, in one inward pass."""
    factor_solve_inward(s, b)
    solve_outward(s, x)


def factor_solve_inward(s: Step, b: Reals) -> None:
    """Run `factor` and the inward pass of `solve`."""
    for i in loop(1, s.model.nl, inwards=True):
        _eliminate(s, i, damped)
        _solve_inward(s, i, b)


def solve_inward(s: Step, b: Reals) -> None:
    """Inward pass of `solve`: s.dof.u = d^-1 L (b - S^T F)."""
    for i in loop(1, s.model.nl, inwards=True):
        _solve_inward(s, i, b)


def solve_outward(s: Step, x: Reals) -> None:
    """Outward pass of `solve`: x = L^T u; leaves the motions y of links under x."""
    s.link[0].y = Motion.zero()
    for i in loop(1, s.model.nl):
        s.link[i].y = joints.solve_outward(s, i, s.link[s.model.parent[i]].y, x)


def _solve_inward(s: Step, i: Any, b: Reals) -> None:
    s.link[s.model.parent[i]].F += joints.solve_inward(s, i, s.link[i].F, b)


def _eliminate(s: Step, i: Any, diagonal: Diagonal) -> None:
    parent = s.link[s.model.parent[i]]
    left = joints.eliminate(s, i, _articulated_inertia(s, i), diagonal(s, i))

    def first() -> None:
        parent.IA = left

    def another() -> None:
        parent.IA += left

    switch(s.model.first_inwards[i], {1: first, 0: another})


def _articulated_inertia(s: Step, i: Any) -> Articulated:
    """Return the articulated inertia of link i: that of the link plus the contributions of its children."""
    link = s.link[i]
    tip: Callable[[], Articulated] = lambda: Articulated.of(link.I)  # noqa: E731
    inner: Callable[[], Articulated] = lambda: Articulated.of(link.I) + link.IA  # noqa: E731
    return switch(s.model.is_tip[i], {1: tip, 0: inner})
