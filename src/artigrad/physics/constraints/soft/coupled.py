"""H in the space of degrees of freedom, for robots whose rows tie links or joints together  (theory 9.8).

    H = S^T (I + stiffness of links) S  +  X + X^T  +  sum of K c c^T

The first part is the composite-rigid-body algorithm on stiffened inertias; X = -J_a^T K J_b couples the path of one link to
that of another; c are the coefficients of combos. H = L^T D L is found from the last degree of freedom to the first, on the
entries that a tree has and on those that couplings add, which are listed once per step (`structure`).

How much elimination fills depends on the order. In a scene of many trees those that are coupled stand near each other
(`_order_trees`), so that a pile has a band of entries and not all of them. H, its lists and its unknowns go by place in that
order. It is one for all robots of a pack, and rounding follows it: such scenes run one by one, to have the same bits anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....compiler import Reals, carry, climb, counter, loop, to_real, when_any
from ... import joints
from ...context import Step
from ...spatial import power
from .families import COMBO
from .soft_problem import COMBOS, TIES


def _path(s: Step, i: Any) -> Iterator[Any]:
    """The degrees of freedom between link i and the world."""
    for n in climb(s.model.parent, i):
        yield from loop(s.model.link_v[n], s.model.link_v[n] + s.model.link_nv[n])


def _combo_pairs(s: Step, n: Any) -> Iterator[tuple[Any, Any]]:
    """All ordered pairs of entries of a combo."""
    problem = s.constraints
    first, end = problem.entry[n], problem.entry[n + 1]
    for a in loop(first, end):
        for b in loop(first, end):
            yield a, b


def structure(s: Step) -> None:
    """Which entries of H are not zero, those that elimination fills included: a list of columns for every row."""
    problem, nv = s.constraints, s.model.nv
    mark, column = problem.mark, problem.column
    if problem.has("pile"):
        _order_trees(s)
    for k in loop(nv * nv):
        mark[k] = 0
    for k in loop(nv):
        for j in climb(s.model.dof_parent, s.model.dof_parent[k + 1]):
            mark[_at(s, k, j - 1)] = 1
    for t in loop(1, problem.count[TIES] + 1):
        for j in _path(s, problem.tie_b[t]):
            for k in _path(s, problem.tie_a[t]):
                mark[_at(s, k, j)] = 1
                mark[_at(s, j, k)] = 1
    if problem.has(*COMBOS):
        for n in loop(problem.combos):
            for a, b in _combo_pairs(s, n):
                mark[_at(s, problem.entry_dof[a], problem.entry_dof[b])] = 1
    end = counter(0)
    for k in loop(nv, inwards=True):
        start = end.value
        problem.row_start[k] = start
        for j in loop(k):
            for _ in loop(mark[k * nv + j]):
                column[end.value] = j
                end.value = end.value + 1
        problem.row_end[k] = end.value
        for p in loop(start, end.value):
            for q in loop(start, p):
                mark[column[p] * nv + column[q]] = 1


def _at(s: Step, k: Any, j: Any) -> Any:
    """Where the entry of two degrees of freedom is."""
    return place(s, k) * s.model.nv + place(s, j)


def place(s: Step, k: Any) -> Any:
    """Of a degree of freedom in the order of elimination, which ends with the first."""
    return s.constraints.place[k] if s.constraints.has("pile") else k


def _order_trees(s: Step) -> None:
    """The place of every degree of freedom: tree by tree, each followed by those it is coupled to (Cuthill and McKee)."""
    problem, n = s.constraints, s.model.nt + 1  # the world counts as a tree of no freedom
    near, waiting, fresh = problem.near, problem.waiting, problem.fresh
    for k in loop(n * n):
        near[k] = 0
    for t in loop(n):
        fresh[t] = 1

    def couple(a: Any, b: Any) -> None:
        near[a * n + b] = 1
        near[b * n + a] = 1

    for t in loop(1, problem.count[TIES] + 1):
        couple(s.model.tree[problem.tie_a[t]], s.model.tree[problem.tie_b[t]])
    if problem.has(*COMBOS):
        for c in loop(problem.combos):
            for a, b in _combo_pairs(s, c):
                couple(problem.dof_tree[problem.entry_dof[a]], problem.dof_tree[problem.entry_dof[b]])
    end, next_place = counter(0), counter(0)

    def put(t: Any) -> None:
        waiting[end.value] = t
        end.value = end.value + 1
        fresh[t] = 0

    for h in loop(n):
        for _ in when_any(to_real(end.value - h) < 0.5):  # nothing waits: go on with the first that is left
            left = counter(1)
            for t in loop(n):
                for _ in loop(fresh[t] * left.value):
                    put(t)
                    left.value = 0
        own = waiting[h]
        for t in loop(n):
            for _ in loop(fresh[t] * near[own * n + t]):
                put(t)
        for e in loop(problem.tree_at[own], problem.tree_at[own + 1]):
            problem.place[problem.tree_dof[e]] = next_place.value
            next_place.value = next_place.value + 1


def _columns(s: Step, k: Any, inwards: bool = False) -> Iterator[Any]:
    """The columns of the row at place k before its diagonal."""
    for p in loop(s.constraints.row_start[k], s.constraints.row_end[k], inwards=inwards):
        yield s.constraints.column[p]


def keep(s: Step) -> None:
    """Stiffened inertias and forces of links, before the passes along the tree use them up."""
    for i in loop(s.model.nl):
        own, link = s.constraints.composite[i], s.link[i]
        own.I, own.F = link.IA, link.F


def solve(s: Step, b: Reals, x: Reals) -> None:
    """H x = b - S^T F, with x by places"""
    composite = s.constraints.composite
    for i in loop(1, s.model.nl, inwards=True):
        above, own = composite[s.model.parent[i]], composite[i]
        above.I += own.I
        above.F += own.F
    joints.store_columns(s)
    _fill(s)
    _factor(s)
    for i in loop(1, s.model.nl):
        F = composite[i].F
        for k in loop(s.model.link_v[i], s.model.link_v[i] + s.model.link_nv[i]):
            x[place(s, k)] = b[k] - power(s.dof[k].S, F)
    _substitute(s, x)


def _fill(s: Step) -> None:
    """The entries of H."""
    problem, m, H = s.constraints, s.model, s.constraints.H
    nv = m.nv
    for k in loop(nv):
        for j in _columns(s, k):
            H[k * nv + j] = 0.0
            H[j * nv + k] = 0.0
    for i in loop(1, m.nl):
        I, own = problem.composite[i].I, s.const.link[i]
        for k in loop(m.link_v[i], m.link_v[i] + m.link_nv[i]):
            F = I @ s.dof[k].S
            for j in climb(m.dof_parent, k + 1):
                H[_at(s, k, j - 1)] = power(s.dof[j - 1].S, F)
            diagonal = _at(s, k, k)
            H[diagonal] = H[diagonal] + own.armature + problem.diagonal[k]
    for t in loop(1, problem.count[TIES] + 1):
        C = problem.cross[t].C
        for j in _path(s, problem.tie_b[t]):
            F = C @ s.dof[j].S
            for k in _path(s, problem.tie_a[t]):
                x, at, mirrored = power(s.dof[k].S, F), _at(s, k, j), _at(s, j, k)
                H[at] = H[at] + x
                H[mirrored] = H[mirrored] + x
    if problem.has(*COMBOS):
        for n, row in COMBO.blocks(s):
            K = row.K
            for a, b in _combo_pairs(s, n):
                at = _at(s, problem.entry_dof[a], problem.entry_dof[b])
                H[at] = H[at] + K * problem.coef[a] * problem.coef[b]


def _factor(s: Step) -> None:
    """H = L^T D L in place: L before the diagonal, 1/D on it"""
    nv, H = s.model.nv, s.constraints.H
    for k in loop(nv, inwards=True):
        dinv = 1.0 / H[k * nv + k]
        H[k * nv + k] = dinv
        start, column = s.constraints.row_start[k], s.constraints.column
        for p in loop(start, s.constraints.row_end[k], inwards=True):
            j = column[p]
            a = H[k * nv + j] * dinv
            for q in loop(start, p + 1):
                l = column[q]
                H[j * nv + l] = H[j * nv + l] - a * H[k * nv + l]
            H[k * nv + j] = a


def _substitute(s: Step, x: Reals) -> None:
    """x <- H^-1 x"""
    nv, H = s.model.nv, s.constraints.H
    for k in loop(nv, inwards=True):
        xk = x[k]
        for j in _columns(s, k):
            x[j] = x[j] - H[k * nv + j] * xk
        x[k] = xk * H[k * nv + k]
    for k in loop(nv):
        total = carry(x[k])
        for j in _columns(s, k):
            total.value = total.value - H[k * nv + j] * x[j]
        x[k] = total.value
