"""Islands: contacts that are coupled through the trees that they touch. Each is a separate problem.

The contacts of a step are ordered by island (`order`), and A and K hold the blocks of islands only, one after the other.
Islands are those of the whole SIMD pack. In the state of one robot an island may fall into uncoupled parts, numbered by
`part`, so that a robot has the same bits alone and in a pack.
"""

from __future__ import annotations

from typing import Any

from ....compiler import carry, counter, loop, maximum, minimum, select, target, to_real, when_any
from ...collision.contact_geometry import FAR
from ...context import Step
from .contact_problem import A_SIDE, B_SIDE, ContactProblem
from .update import yes


def find_islands(s: Step) -> None:
    """Order all contacts by island, and number the parts of each robot."""
    problem, trees = s.constraints, s.model.nt + 1
    for t in loop(trees):
        problem.tree_island[t], problem.island_number[t], problem.tree_part[t] = t, 0, to_real(t)
    for c in loop(problem.count):
        _unite(s, trees, c)
    _number(s)
    _order(problem)
    for c in loop(problem.count):
        problem.row[c].part = select(is_own(problem, c), problem.tree_part[_tree(s, c)], -1.0)


def is_own(problem: ContactProblem, c: Any) -> Any:
    """True for the robots that have contact c, and not only a neighbor in the pack."""
    row = problem.row[c]
    return (row.phi < FAR) | (row.bound > 0.0)


def first_of_part(problem: ContactProblem, c: Any, start: Any) -> Any:
    """1 where contact c is the first of a part of its island, for the robots that have it."""
    part = problem.row[c].part
    first = carry(yes(part >= 0.0))
    for p in loop(start, problem.place[c]):
        first.value = select(
            problem.row[problem.order[p]].part >= part,
            select(problem.row[problem.order[p]].part <= part, 0.0, first.value),
            first.value,
        )
    return first.value


def _tree(s: Step, c: Any) -> Any:
    """The tree on side B of contact c, or that on side A where B is fixed to the world."""
    b, a = s.model.tree[s.constraints.link(c, B_SIDE)], s.model.tree[s.constraints.link(c, A_SIDE)]
    return b + target().any_lane(to_real(b) < 0.5) * a


def _unite(s: Step, trees: Any, c: Any) -> None:
    """Unite the islands, and for the robots that have contact c the parts, of its two trees."""
    problem = s.constraints
    a, b = s.model.tree[problem.link(c, A_SIDE)], s.model.tree[problem.link(c, B_SIDE)]
    for _ in loop(target().any_lane((to_real(a) > 0.5) & (to_real(b) > 0.5))):
        i, j = problem.tree_island[a], problem.tree_island[b]
        for _ in loop(target().any_lane(abs(to_real(i) - to_real(j)) > 0.5)):
            for t in loop(trees):
                known = problem.tree_island[t]
                problem.tree_island[t] = known + target().any_lane(abs(to_real(known) - to_real(i)) < 0.5) * (j - i)
        p, q = problem.tree_part[a], problem.tree_part[b]
        low, high = minimum(p, q), maximum(p, q)
        differs = select(is_own(problem, c), high - low, 0.0) > 0.5
        for _ in when_any(differs):
            for t in loop(trees):
                part = problem.tree_part[t]
                found = select(abs(part - high) < 0.5, low, part)
                problem.tree_part[t] = select(differs, found, part)


def _number(s: Step) -> None:
    """Number the islands in the order of their first contacts, and count their contacts."""
    problem, count = s.constraints, counter(0)
    for c in loop(problem.count):
        t = problem.tree_island[_tree(s, c)]
        new = target().any_lane(to_real(problem.island_number[t]) < 0.5)
        for _ in loop(new):
            problem.island_number[t] = count.value + 1
            problem.sizes[count.value], problem.joints[count.value] = 0, 0
        count.value = count.value + new
        n = problem.island_number[t] - 1
        problem.of_island[c] = n
        problem.sizes[n] = problem.sizes[n] + 1
        problem.joints[n] = problem.joints[n] + target().any_lane(to_real(problem.kind[c]) < 0.5)
    problem.islands[0] = count.value


def _order(problem: ContactProblem) -> None:
    """Give the contacts of an island consecutive places, those between shapes before those of joints."""
    first, offset = counter(0), counter(0)
    for n in loop(problem.islands[0]):
        size = problem.sizes[n]
        problem.island[n], problem.blocks[n] = first.value, offset.value
        problem.joints[n] = problem.joints[n] + first.value
        first.value, offset.value = first.value + size, offset.value + size * size
        problem.sizes[n] = 0
    problem.island[problem.islands[0]] = first.value
    for c in loop(problem.count):
        n = problem.of_island[c]
        place = problem.island[n] + problem.sizes[n]
        size = problem.island[n + 1] - problem.island[n]
        problem.order[place], problem.place[c], problem.start[c] = c, place, problem.island[n]
        problem.base[c] = problem.blocks[n] + (place - problem.island[n]) * size
        problem.sizes[n] = problem.sizes[n] + 1
