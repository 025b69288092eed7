"""Broad phase: the pairs whose bounding spheres overlap, without a visit to every pair.

Spheres are sorted by their lower ends along the axis on which shapes are spread most, into as many buckets as there are
spheres, and only those that overlap along it are compared. Pairs with a plane or a height field, which have no end, are
compared one by one: there are a few for every shape. The result is sorted by number, so that contacts come in the same order
as where every pair is visited, with the same bits.

It is for kernels of one lane and models with many pairs. Where more pairs are near than there is room for, all are visited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...compiler import carry, counter, loop, maximum, minimum, select, steady, target, to_int, to_real, when_any
from ..collision.collide import SLACK
from ..collision.contact_geometry import FAR
from ..context import Step
from ..spatial import Vec3, dot
from .counting_sort import sort_by
from .narrowphase import may_touch

TINY = 1e-30  # m, spread of shapes


def has_broad_phase(s: Step) -> bool:
    """Return whether this kernel finds pairs by `near_pairs`."""
    return s.constraints.has("sweep") and target().lanes == 1


def near_pairs(s: Step, near: Callable[[Any], Any]) -> Iterator[Any]:
    """The pairs k whose shapes may be nearer than near(k), in their order, and perhaps some others. Shapes are in their
    places."""
    problem, found = s.constraints, counter(0)
    for e in loop(problem.endless):
        k = problem.endless_pair[e]
        for _ in when_any(may_touch(s, k, near(k))):
            _append(s, found, k)
    _sort_spheres(s)
    for p in loop(problem.spheres):
        _compare(s, p, found)
    overflow = target().any_lane(to_real(found.value - problem.near_room) > 0.5)
    count = found.value * (1 - overflow)
    for digit, source, to in (("low", "near_pair", "near_sorted"), ("high", "near_sorted", "near_pair")):
        key, source, to = (getattr(problem, name) for name in (f"pair_{digit}", source, to))
        sort_by(key, source, to, count, problem.digit_count, problem.digits)
    for e in loop(count + overflow * problem.pairs):
        yield problem.near_pair[e * (1 - overflow)] * (1 - overflow) + e * overflow


def _append(s: Step, found: counter, k: Any) -> None:
    """To the pairs found, if there is room."""
    n = found.value
    for _ in when_any(to_real(s.constraints.near_room - n) > 0.5):
        s.constraints.near_pair[n] = k
    found.value = n + 1


def _sort_spheres(s: Step) -> None:
    """problem.sphere: spheres by their lower ends along an axis; first_in_bucket: the first of each bucket, problem.reach_end:
    the end of those that may overlap each sphere beyond it."""
    problem = s.constraints
    n, axis = problem.spheres, _widest_axis(s)

    def ends(p: Any) -> tuple[Vec3, Any, Any]:
        """Center and radius of sphere p, and its place along the axis."""
        i = problem.sphere_shape[p]
        at, own = problem.placed[i].at.map(steady), s.const.shape[i]
        radius = steady(own.radius + own.reach) + problem.widest_gap[0] + SLACK[target().dtype]
        return at, radius, dot(at, axis)

    lowest, highest = carry(0.0 * s.dt + FAR), carry(0.0 * s.dt - FAR)
    for p in loop(n):
        _, radius, x = ends(p)
        lowest.value, highest.value = minimum(lowest.value, x - radius), maximum(highest.value, x - radius)
    last = to_real(n) - 1.0
    low, scale = lowest.value, last / maximum(highest.value - lowest.value, TINY)

    def bucket(x: Any) -> Any:
        t = (x - low) * scale
        return to_int(select(t >= 0.0, minimum(t, last), 0.0))  # NaN goes to the first and touches nothing

    first = problem.bucket
    for b in loop(n + 2):
        first[b] = 0
    for p in loop(n):
        _, radius, x = ends(p)
        b = bucket(x - radius)
        problem.sphere_bucket[p] = b
        first[b + 2] = first[b + 2] + 1
    for b in loop(n):
        first[b + 2] = first[b + 2] + first[b + 1]
    for p in loop(n):
        at, radius, x = ends(p)
        b = problem.sphere_bucket[p] + 1
        row, k = problem.sphere[first[b]], first[b]
        row.at, row.radius, row.end = at, radius, x + radius
        problem.sphere_order[k] = problem.sphere_shape[p]
        first[b] = k + 1
    for p in loop(n):
        problem.sphere_bucket[p] = first[bucket(problem.sphere[p].end) + 1]


def _widest_axis(s: Step) -> Vec3:
    """The axis of the world along which the centers of shapes are spread most."""
    problem = s.constraints
    start = Vec3(0.0, 0.0, 0.0) + Vec3(0.0, 0.0, 0.0) * s.dt
    low, high = carry(start + Vec3(FAR, FAR, FAR)), carry(start - Vec3(FAR, FAR, FAR))
    for p in loop(problem.spheres):
        at = problem.placed[problem.sphere_shape[p]].at.map(steady)
        low.value, high.value = low.value.map(minimum, at), high.value.map(maximum, at)
    d = high.value - low.value
    along_x = select(d.x >= d.y, select(d.x >= d.z, 1.0, 0.0), 0.0)
    along_y = select(along_x > 0.5, 0.0, select(d.y >= d.z, 1.0, 0.0))
    return Vec3(along_x, along_y, 1.0 - along_x - along_y)


def _compare(s: Step, p: Any, found: counter) -> None:
    """Sphere p with those after it that overlap it along the axis."""
    problem = s.constraints
    own, i = problem.sphere[p], problem.sphere_order[p]
    at, radius = own.at, own.radius
    for q in loop(p + 1, problem.sphere_bucket[p]):
        other = problem.sphere[q]
        d, reach = other.at - at, radius + other.radius
        for _ in when_any(dot(d, d) < reach * reach):
            k = problem.pair_of[i * s.model.nshape + problem.sphere_order[q]]
            for _ in when_any(to_real(k) > 0.5):
                _append(s, found, k - 1)
