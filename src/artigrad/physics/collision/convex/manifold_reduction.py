"""Reduction of a contact polygon to four vertices far apart, by MuJoCo's algorithm.

Beginning with the first four vertices, the last of the four advances around the polygon while the area of the quadrilateral
grows; after each of its steps the third and then the second advance likewise. If the first is free, it advances after that,
once around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Linear, carry, loop, select, when_any
from ...spatial import Vec3, cross, dot
from .hull_tables import Corner, while_any

# ratio by which an area must be larger; in regular polygons rounding would decide otherwise, as it does in MuJoCo
CLEARLY = 1.0 + 1e-6


class Quad(Linear):
    """Current four vertices, their positions around the polygon, and which advances next: 3 the last, ... 0 the first, -1
    none."""

    a: Corner
    b: Corner
    c: Corner
    d: Corner
    at_a: float
    at_b: float
    at_c: float
    at_d: float
    next: float


class BestQuad(Linear):
    """Best four vertices so far, and twice their area."""

    a: Corner
    b: Corner
    c: Corner
    d: Corner
    area: float


def reduce_manifold(
    corner: Callable[[Any], Corner], count: Any, normal: Vec3, blocks: Any, free: bool = False
) -> tuple[Corner, ...]:
    """Return four of the `count` vertices of a polygon; with fewer, the rest is undefined.

    Args:
        corner: corner(k) is the k-th vertex after the first, for k below count + 4, and below 2 count if the first is free.
        count: Number of vertices.
        normal: Normal of the polygon.
        blocks: Number of blocks of eight vertices of the largest polygon.
        free: Let the first vertex advance, too.
    """
    a, b, c, d = (corner(k) for k in (0.0, 1.0, 2.0, 3.0))
    many = select(count > 4.5, 3.0, -1.0)
    state = carry((Quad(a, b, c, d, 0.0, 1.0, 2.0, 3.0, many), BestQuad(a, b, c, d, _area(normal, a, b, c, d))))
    for _ in when_any(many > 0.0):
        live = carry(select(many > 0.0, 1.0, 0.0))
        for _ in loop(blocks * (3 if free else 1)):
            for _ in while_any(live, 2):
                quad, kept = state.value
                state.value = _step(corner, count, normal, quad, kept, free)
                live.value = select(state.value[0].next > -0.5, 1.0, 0.0)
    found = state.value[1]
    return found.a, found.b, found.c, found.d


def _area(normal: Vec3, a: Corner, b: Corner, c: Corner, d: Corner) -> Any:
    """Twice the area of the quadrilateral."""
    return abs(dot(cross(c.p - a.p, d.p - b.p), normal))


def _step(
    corner: Callable[[Any], Corner], count: Any, normal: Vec3, f: Quad, kept: BestQuad, free: bool
) -> tuple[Quad, BestQuad]:
    """Advance one of the last three vertices if that makes the area larger than the best so far, else select the vertex
    before
    it.

    After the second vertex the last one is next again, unless it did not advance.
    """
    last, third, second = f.next > 2.5, abs(f.next - 2.0) < 0.5, abs(f.next - 1.0) < 0.5
    at = 1.0 + select(last, f.at_d, select(third, f.at_c, f.at_b))
    end = select(last, count, select(third, f.at_d, f.at_c))
    new = corner(at)
    b, c, d = select(second, new, f.b), select(third, new, f.c), select(last, new, f.d)
    area = _area(normal, f.a, b, c, d)
    moves = (f.next > 0.5) & (area > kept.area * CLEARLY)
    moves = moves if free else moves & (at < end - 0.5)
    stays = 0.0 if free else -1.0
    otherwise = select(last, stays, select(third, 1.0, select(second, 3.0, -1.0)))
    after = Quad(
        f.a,
        select(moves, b, f.b),
        select(moves, c, f.c),
        select(moves, d, f.d),
        f.at_a,
        select(second & moves, at, f.at_b),
        select(third & moves, at, f.at_c),
        select(last & moves, at, f.at_d),
        select(moves, select(last, 2.0, f.next), otherwise),
    )
    best = select(moves, BestQuad(f.a, b, c, d, area), kept)
    return (_first_moved(corner, count, f, after), best) if free else (after, best)


def _first_moved(corner: Callable[[Any], Corner], count: Any, f: Quad, after: Quad) -> Quad:
    """Advance the first vertex if it is next, and push those that it reaches; after one round the search ends."""
    turn = abs(f.next) < 0.5
    at_b = f.at_b + select(f.at_b < f.at_a + 0.5, 1.0, 0.0)
    at_c = f.at_c + select((at_b > f.at_b + 0.5) & (f.at_c < at_b + 0.5), 1.0, 0.0)
    at_d = f.at_d + select((at_c > f.at_c + 0.5) & (f.at_d < at_c + 0.5), 1.0, 0.0)
    at_a = f.at_a + 1.0
    new = Quad(
        corner(at_a), corner(at_b), corner(at_c), corner(at_d), at_a, at_b, at_c, at_d, select(at_a < count, 3.0, -1.0)
    )
    return select(turn, new, after)
