"""Broad phase: list of shape pairs whose bounding spheres overlap, by sweep and prune along one axis.

Spheres are sorted by their lower ends along the axis with the largest extent of centers, into as many buckets as there are
spheres; only spheres that overlap along it are compared. Pairs with a plane or a height field, which have no bounding
sphere, are tested one by one. The result is sorted by pair index, so that contacts have the same order, and results the
same bits, as with a loop over all pairs.

It is used in kernels with one SIMD lane, for models with many pairs. If the list of near pairs overflows, all pairs are
returned.
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

TINY = 1e-30  # m, lower bound of the extent of shapes


def has_broad_phase(s: Step) -> bool:
    """Return True if this kernel uses `near_pairs`."""
    return s.constraints.has("sweep") and target().lanes == 1


def near_pairs(s: Step, near: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield in order the indices k of pairs whose shapes may be closer than near(k), and possibly some others.

    Poses of shapes must be computed before.
    """
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
    """Append pair k to the list if it has room; count it in any case."""
    n = found.value
    for _ in when_any(to_real(s.constraints.near_room - n) > 0.5):
        s.constraints.near_pair[n] = k
    found.value = n + 1


def _sort_spheres(s: Step) -> None:
    """Sort spheres by their lower ends along the widest axis.

    Writes problem.sphere (sorted spheres), sphere_order (their shapes), bucket (end of each bucket) and sphere_bucket (for
    each sphere the end of the range of spheres that may overlap it).
    """
    problem = s.constraints
    n, axis = problem.spheres, _widest_axis(s)

    def ends(p: Any) -> tuple[Vec3, Any, Any]:
        """Return center and radius of sphere p, and the coordinate of its center along the axis."""
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
        return to_int(
            select(t >= 0.0, minimum(t, last), 0.0)
        )  # NaN is sorted into the first bucket and overlaps nothing

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
    """Return the world axis along which the centers of shapes have the largest extent."""
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
    """Compare sphere p with the spheres after it that overlap it along the axis, and append overlapping pairs."""
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
