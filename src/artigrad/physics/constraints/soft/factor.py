"""H = M + J^T K J: factored and solved with, once for every Newton step  (theory 9.6, 9.8).

Rows on one link enter the link's inertia, rows on one joint its diagonal: then H is that of an articulated tree, and one
inward and one outward pass solve with it. Rows that tie two moving links, or several joints, together do not fit a tree;
robots that have such rows at this moment are solved in the space of their degrees of freedom (`coupled`).
"""

from __future__ import annotations

from typing import Any

from ....compiler import Reals, loop, select, when_any
from ... import joints
from ...context import Step
from ...dynamics.articulated import solve_outward
from ...spatial import Articulated, Motion
from . import coupled
from .families import every_row
from .soft_problem import TIES
from .stiffness import Cross


def assemble(s: Step, with_forces: bool) -> None:
    """Inertias (s.link.IA) and, if asked for, forces of links (s.link.F) and joints, with all that rows add to them. The
    forces are those of the linearised law at an acceleration of zero."""
    problem = s.constraints
    for i in loop(s.model.nl):
        link = s.link[i]
        link.IA = Articulated.of(link.I)
        if with_forces:
            link.F = problem.base[i].F
    for k in loop(s.model.nv):
        problem.diagonal[k] = 0.0
        if with_forces:
            problem.joint_force[k] = s.ws.tau[k]
    if problem.has("tied"):
        for t in loop(1, problem.count[TIES] + 1):
            problem.cross[t].C = Cross.zero()
    for family, n, row in every_row(s):
        family.add_stiffness(s, n, row)
        if with_forces:
            family.add_force(s, n, row, family.linear_force(row))


def factor_solve(s: Step, b: Reals, x: Reals) -> None:
    """H x = b - S^T F, with what `assemble` left in links and joints (it is used up); leaves the motions y of links under x."""
    problem = s.constraints
    if problem.has("tied"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.keep(s)
    if problem.has("loose"):
        for i in loop(1, s.model.nl, inwards=True):
            own, va, parent = s.const.link[i], s.model.link_v[i], s.link[s.model.parent[i]]

            def extra(k: int, own: Any = own, va: Any = va) -> Any:
                return own.armature + problem.diagonal[va + k]

            parent.IA += joints.eliminate(s, i, s.link[i].IA, extra)
            parent.F += joints.solve_inward(s, i, s.link[i].F, b)
        solve_outward(s, x)
    if problem.has("tied"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.solve(s, b, problem.load)
            for k in loop(s.model.nv):
                x[k] = _choose(s, problem.load[coupled.place(s, k)], x[k])
            if not problem.has("loose"):
                s.link[0].y = Motion.zero()
            for i in loop(1, s.model.nl):
                y = s.link[s.model.parent[i]].y + joints.apply(s, i, x)
                s.link[i].y = _choose(s, y, s.link[i].y) if problem.has("loose") else y


def _choose(s: Step, of_coupled: Any, of_tree: Any) -> Any:
    """What a robot takes: by whether its rows tie links or joints together now."""
    if not s.constraints.has("loose"):
        return of_coupled
    return select(s.constraints.coupled[0] > 0.5, of_coupled, of_tree)
