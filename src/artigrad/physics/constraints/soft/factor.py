"""Factor of H = M + J^T K J and solve, once per Newton step  (theory 9.6, 9.8).

The stiffness of rows on one link is added to its inertia, that of rows on one joint to its diagonal: H is then that of
an articulated tree, and one inward and one outward pass solve with it. Rows that couple two moving links or several
joints do not fit a tree; states with such rows are solved in the space of degrees of freedom (`coupled`).
"""

from __future__ import annotations

from typing import Any

from ....compiler import Reals, loop, select, target, when_any
from ... import joints
from ...context import Step
from ...dynamics.articulated import solve_outward
from ...spatial import Articulated, Motion
from . import coupled
from .families import every_row
from .soft_problem import COUPLINGS
from .stiffness import Cross


def assemble(s: Step, with_forces: bool) -> None:
    """Compute inertias (s.link.IA) and, if requested, forces of links (s.link.F) and joints, with those of all rows.

    The forces are those of the linearized law at zero acceleration.
    """
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
    if problem.has("couplings"):
        for t in loop(1, problem.count[COUPLINGS] + 1):
            problem.cross[t].C = Cross.zero()
    for family, n, row in every_row(s):
        family.add_stiffness(s, n, row)
        if with_forces:
            family.add_force(s, n, row, family.linear_force(row))


def factor_solve(s: Step, b: Reals, x: Reals) -> None:
    """Solve H x = b - S^T F with the result of `assemble`, which is overwritten. Leaves the motions y of links under x."""
    problem = s.constraints
    if problem.has("couplings"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.save_composites(s)
    if problem.has("uncoupled"):
        if problem.has("couplings"):
            for _ in when_any(problem.coupled[0] < 0.5):
                _solve_trees(s, b, x)
        else:
            _solve_trees(s, b, x)
    if problem.has("couplings"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.solve(s, b, problem.load)
            for k in loop(s.model.nv):
                x[k] = _choose(s, problem.load[coupled.elimination_index(s, k)], x[k])
            s.link[0].y = Motion.zero()
            if problem.has("uncoupled"):
                for _ in loop(1 - target().any_lane(problem.coupled[0] < 0.5)):  # without trees nothing is in y yet
                    for i in loop(1, s.model.nl):
                        s.link[i].y = Motion.zero()
            for i in loop(1, s.model.nl):
                y = s.link[s.model.parent[i]].y + joints.apply(s, i, x)
                s.link[i].y = _choose(s, y, s.link[i].y) if problem.has("uncoupled") else y


def _solve_trees(s: Step, b: Reals, x: Reals) -> None:
    """Solve where no rows couple links or joints, by passes along the trees."""
    problem = s.constraints
    for i in loop(1, s.model.nl, inwards=True):
        own, va, parent = s.const.link[i], s.model.link_v[i], s.link[s.model.parent[i]]

        def extra(k: int, own: Any = own, va: Any = va) -> Any:
            return own.armature + problem.diagonal[va + k]

        parent.IA += joints.eliminate(s, i, s.link[i].IA, extra)
        parent.F += joints.solve_inward(s, i, s.link[i].F, b)
    solve_outward(s, x)


def _choose(s: Step, of_coupled: Any, of_tree: Any) -> Any:
    """Select the coupled solution where rows couple links or joints."""
    if not s.constraints.has("uncoupled"):
        return of_coupled
    return select(s.constraints.coupled[0] > 0.5, of_coupled, of_tree)
