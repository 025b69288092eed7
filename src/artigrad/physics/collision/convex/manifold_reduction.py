"""Four of the many corners of a ring, far apart, as MuJoCo picks them.

From the first corner and the three after it the last of the four moves on around the ring while the area between them grows,
and after each of its steps the third and then the second one do. Where the first is free it moves on after that, once around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Linear, carry, loop, select, when_any
from ...spatial import Vec3, cross, dot
from .hull_tables import Corner, while_any

CLEARLY = 1.0 + 1e-6  # by which an area is larger: of a regular ring rounding would choose, and does in MuJoCo


class Four(Linear):
    """Corners; how far around they are; twice the area between them; and which of them may move on next: 3 the last, 2 the
    third, 1 the second, 0 the first, -1 none."""

    a: Corner
    b: Corner
    c: Corner
    d: Corner
    at_a: float
    at_b: float
    at_c: float
    at_d: float
    next: float


class Kept(Linear):
    """The best four so far, and twice the area between them."""

    a: Corner
    b: Corner
    c: Corner
    d: Corner
    area: float


def spread(
    corner: Callable[[Any], Corner], count: Any, normal: Vec3, blocks: Any, free: bool = False
) -> tuple[Corner, ...]:
    """Four of the `count` corners of a ring, or as many as there are and others that mean nothing. corner(k): the k-th after
    the first, k below count + 4, and where the first is free below 2 count; normal: about which they go around; blocks: of
    eight corners, as many as any ring has."""
    a, b, c, d = (corner(k) for k in (0.0, 1.0, 2.0, 3.0))
    many = select(count > 4.5, 3.0, -1.0)
    state = carry((Four(a, b, c, d, 0.0, 1.0, 2.0, 3.0, many), Kept(a, b, c, d, _area(normal, a, b, c, d))))
    for _ in when_any(many > 0.0):
        live = carry(select(many > 0.0, 1.0, 0.0))
        for _ in loop(blocks * (3 if free else 1)):
            for _ in while_any(live, 2):
                four, kept = state.value
                state.value = _step(corner, count, normal, four, kept, free)
                live.value = select(state.value[0].next > -0.5, 1.0, 0.0)
    found = state.value[1]
    return found.a, found.b, found.c, found.d


def _area(normal: Vec3, a: Corner, b: Corner, c: Corner, d: Corner) -> Any:
    return abs(dot(cross(c.p - a.p, d.p - b.p), normal))


def _step(
    corner: Callable[[Any], Corner], count: Any, normal: Vec3, f: Four, kept: Kept, free: bool
) -> tuple[Four, Kept]:
    """One of the last three moves on, if that makes the area larger than it ever was; else it is the turn of the one before it,
    and after the second that of the last again, unless that is the one that stays."""
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
    after = Four(
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
    best = select(moves, Kept(f.a, b, c, d, area), kept)
    return (_first_moved(corner, count, f, after), best) if free else (after, best)


def _first_moved(corner: Callable[[Any], Corner], count: Any, f: Four, after: Four) -> Four:
    """Where it is the turn of the first: it moves on, and pushes those that it meets; after one whole turn nobody moves."""
    turn = abs(f.next) < 0.5
    at_b = f.at_b + select(f.at_b < f.at_a + 0.5, 1.0, 0.0)
    at_c = f.at_c + select((at_b > f.at_b + 0.5) & (f.at_c < at_b + 0.5), 1.0, 0.0)
    at_d = f.at_d + select((at_c > f.at_c + 0.5) & (f.at_d < at_c + 0.5), 1.0, 0.0)
    at_a = f.at_a + 1.0
    new = Four(
        corner(at_a), corner(at_b), corner(at_c), corner(at_d), at_a, at_b, at_c, at_d, select(at_a < count, 3.0, -1.0)
    )
    return select(turn, new, after)
