"""Factor of H in the space of degrees of freedom, for states with rows that couple links or joints  (theory 9.8).

    H = S^T (I + stiffness of links) S  +  X + X^T  +  sum of K c c^T

The first part is the composite-rigid-body algorithm on inertias with stiffness; X = -J_a^T K J_b couples the path of
one link to that of another; c are the coefficients of rows on several degrees of freedom. H = L^T D L is computed from
the last degree of freedom to the first, on the entries of the tree and of the couplings, which are listed once per step
(`find_sparsity`).

Fill-in depends on the order. In a scene of many trees, coupled trees are numbered near each other (`_order_trees`), so
that a pile of bodies has a band matrix. H, its lists and its unknowns are indexed by position in that order. The order
is shared by all lanes of a SIMD vector and affects rounding: such scenes run one by one, so that their bits do not
depend on the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....compiler import Reals, carry, climb, counter, loop, target, to_real
from ... import joints
from ...context import Step
from ...spatial import power
from ..counting_sort import sort_by
from .families import MULTI_DOF
from .soft_problem import COUPLINGS, MULTI_DOF_KINDS


def _path_dofs(s: Step, i: Any) -> Iterator[Any]:
    """Yield the degrees of freedom between link i and the world."""
    for n in climb(s.model.parent, i):
        yield from loop(s.model.link_v[n], s.model.link_v[n] + s.model.link_nv[n])


def _entry_pairs(s: Step, n: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all ordered pairs of entries of a row on several dofs."""
    problem = s.constraints
    first, end = problem.entry[n], problem.entry[n + 1]
    for a in loop(first, end):
        for b in loop(first, end):
            yield a, b


def find_sparsity(s: Step) -> None:
    """List the nonzero entries of H, with fill-in, as columns of each row.

    Row by row in the order of elimination: a row has its own entries, and those of the rows of which it is the last column.
    What couples many degrees of freedom is noted at the first of them to be eliminated: fill-in adds the others.
    """
    problem, nv = s.constraints, s.model.nv
    column, flag = problem.column, problem.flag
    if problem.has("many_trees"):
        _order_trees(s)
    for k in loop(nv):
        flag[k] = 0
        problem.first_coupling[k], problem.first_child[k] = 0, 0
        problem.dof_at[elimination_index(s, k)] = k
    _note_couplings(s)
    end = counter(0)
    for k in loop(nv, inwards=True):
        lowest = counter(k)

        def mark(j: Any, k: Any = k, lowest: counter = lowest) -> None:
            for _ in loop(_above(k, j)):
                flag[j] = 1
                lowest.value = _least(lowest.value, j)

        dof = problem.dof_at[k]
        for j in climb(s.model.dof_parent, s.model.dof_parent[dof + 1]):
            mark(elimination_index(s, j - 1))
        for e in climb(problem.next_coupling, problem.first_coupling[k]):
            for j in _coupled_dofs(s, e - 1):
                mark(elimination_index(s, j))
        for child in climb(problem.next_child, problem.first_child[k]):
            for p in loop(problem.row_start[child - 1], problem.row_end[child - 1]):
                mark(column[p])
        start = end.value
        problem.row_start[k] = start
        for j in loop(lowest.value, k):
            for _ in loop(flag[j]):
                column[end.value] = j
                end.value = end.value + 1
                flag[j] = 0
        problem.row_end[k] = end.value
        for _ in loop(_above(end.value, start)):
            parent = column[end.value - 1]
            problem.next_child[k + 1] = problem.first_child[parent]
            problem.first_child[parent] = k + 1


def _above(a: Any, b: Any) -> Any:
    """1 if a > b, else 0."""
    return target().any_lane(to_real(a - b) > 0.5)


def _least(a: Any, b: Any) -> Any:
    """The smaller of two integers."""
    return a - (a - b) * _above(a, b)


def _note_couplings(s: Step) -> None:
    """List couplings of links, then rows on several dofs, from 1, under the first of their dofs to be eliminated."""
    problem = s.constraints
    couplings = problem.count[COUPLINGS]

    def note(e: Any) -> None:
        last = counter(0)
        for j in _coupled_dofs(s, e):
            at = elimination_index(s, j)
            last.value = at - (at - last.value) * _above(last.value, at)
        problem.next_coupling[e + 1] = problem.first_coupling[last.value]
        problem.first_coupling[last.value] = e + 1

    for e in loop(couplings + (problem.multi_dofs if problem.has(*MULTI_DOF_KINDS) else 0)):
        note(e)


def _coupled_dofs(s: Step, e: Any) -> Iterator[Any]:
    """Yield the degrees of freedom of coupling e; beyond the couplings, of the row on several dofs with that index."""
    problem = s.constraints
    count = problem.count[COUPLINGS]
    of_link = _above(count, e)
    t, n = (e + 1) * of_link, (e - count) * (1 - of_link)
    for side in (problem.coupling_a, problem.coupling_b):
        yield from _path_dofs(s, side[t] * of_link)
    if problem.has(*MULTI_DOF_KINDS):
        first = problem.entry[n]
        for p in loop(first, first + (problem.entry[n + 1] - first) * (1 - of_link)):
            yield problem.entry_dof[p]


def _entry(s: Step, k: Any, j: Any) -> Any:
    """Position of the entry of two degrees of freedom."""
    return elimination_index(s, k) * s.model.nv + elimination_index(s, j)


def elimination_index(s: Step, k: Any) -> Any:
    """Position of a degree of freedom in the elimination order, which ends with the first."""
    return s.constraints.place[k] if s.constraints.has("many_trees") else k


def _order_trees(s: Step) -> None:
    """Order the degrees of freedom tree by tree, each followed by the trees coupled to it (Cuthill-McKee)."""
    problem, n = s.constraints, s.model.nt + 1  # the world is a tree without degrees of freedom
    queue, unvisited = problem.queue, problem.unvisited  # next tree of each in the queue, 0: none
    _list_edges(s)
    for t in loop(n):
        queue[t], unvisited[t] = 0, 1
    last, next_place = counter(0), counter(0)
    for t in loop(1, n):
        for _ in loop(unvisited[t]):
            unvisited[t] = 0
            last.value = t
            for own in climb(queue, t):
                for e in loop(problem.edge_first[own], problem.edge_first[own + 1]):
                    other = problem.edge_to[problem.edge_sorted[e]]
                    for _ in loop(unvisited[other]):
                        unvisited[other] = 0
                        queue[last.value] = other
                        last.value = other
                for e in loop(problem.tree_at[own], problem.tree_at[own + 1]):
                    problem.place[problem.tree_dof[e]] = next_place.value
                    next_place.value = next_place.value + 1


def _list_edges(s: Step) -> None:
    """Pairs of coupled trees, both ways, sorted by the first and then by the second."""
    problem, m, count = s.constraints, s.model, counter(0)

    def couple(a: Any, b: Any) -> None:
        for one, other in ((a, b), (b, a)):
            e = count.value
            problem.edge_from[e], problem.edge_to[e], problem.edge_order[e] = one, other, e
            count.value = e + 1

    for t in loop(1, problem.count[COUPLINGS] + 1):
        couple(m.tree[problem.coupling_a[t]], m.tree[problem.coupling_b[t]])
    for e in loop(problem.tree_pairs):
        couple(problem.tree_pair_a[e], problem.tree_pair_b[e])
    sort_by(problem.edge_to, problem.edge_order, problem.edge_sorted, count.value, problem.edge_first, m.nt + 1)
    sort_by(problem.edge_from, problem.edge_sorted, problem.edge_order, count.value, problem.edge_first, m.nt + 1)
    for e in loop(count.value):
        problem.edge_sorted[e] = problem.edge_order[e]


def _columns(s: Step, k: Any, inwards: bool = False) -> Iterator[Any]:
    """Yield the columns of row k before its diagonal."""
    for p in loop(s.constraints.row_start[k], s.constraints.row_end[k], inwards=inwards):
        yield s.constraints.column[p]


def save_composites(s: Step) -> None:
    """Save inertias and forces of links before the tree passes overwrite them."""
    for i in loop(s.model.nl):
        own, link = s.constraints.composite[i], s.link[i]
        own.I, own.F = link.IA, link.F


def solve(s: Step, b: Reals, x: Reals) -> None:
    """Solve H x = b - S^T F, with x in elimination order."""
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
            x[elimination_index(s, k)] = b[k] - power(s.dof[k].S, F)
    _substitute(s, x)


def _fill(s: Step) -> None:
    """Compute the entries of H."""
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
                H[_entry(s, k, j - 1)] = power(s.dof[j - 1].S, F)
            diagonal = _entry(s, k, k)
            H[diagonal] = H[diagonal] + own.armature + problem.diagonal[k]
    for t in loop(1, problem.count[COUPLINGS] + 1):
        C = problem.cross[t].C
        for j in _path_dofs(s, problem.coupling_b[t]):
            F = C @ s.dof[j].S
            for k in _path_dofs(s, problem.coupling_a[t]):
                x, at, mirrored = power(s.dof[k].S, F), _entry(s, k, j), _entry(s, j, k)
                H[at] = H[at] + x
                H[mirrored] = H[mirrored] + x
    if problem.has(*MULTI_DOF_KINDS):
        for n, row in MULTI_DOF.blocks(s):
            K = row.K
            for a, b in _entry_pairs(s, n):
                at = _entry(s, problem.entry_dof[a], problem.entry_dof[b])
                H[at] = H[at] + K * problem.coef[a] * problem.coef[b]


def _factor(s: Step) -> None:
    """Factor H = L^T D L in place: L before the diagonal, 1/D on it."""
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
    """Compute x <- H^-1 x."""
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
