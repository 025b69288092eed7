"""Four of the many corners of a ring, far apart, as MuJoCo picks them.

From the first corner and the three after it the last of the four moves on around the ring while the area between them grows,
and after each of its steps the third and then the second one do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...spatial import Vec3, cross, dot
from ...staging import Linear, carry, loop, select, when_any
from .hull_tables import Corner, while_any


class Four(Linear):
    """Corners; how far around the last three are; twice the area between them; and which of these three may move on next: 2 the
    last, 1 the third, 0 the second, -1 none."""

    a: Corner
    b: Corner
    c: Corner
    d: Corner
    at_b: float
    at_c: float
    at_d: float
    area: float
    next: float


def spread(corner: Callable[[Any], Corner], count: Any, normal: Vec3, blocks: Any) -> tuple[Corner, ...]:
    """Four of the `count` corners of a ring, or as many as there are and others that mean nothing. corner(k): the k-th after
    the first, k below count + 4; normal: about which they go around; blocks: of eight corners, as many as any ring has."""
    a, b, c, d = (corner(k) for k in (0.0, 1.0, 2.0, 3.0))
    many = select(count > 4.5, 2.0, -1.0)
    four = carry(Four(a, b, c, d, 1.0, 2.0, 3.0, _area(normal, a, b, c, d), many))
    for _ in when_any(many > 0.0):
        live = carry(select(many > 0.0, 1.0, 0.0))
        for _ in loop(blocks):
            for _ in while_any(live, 2):
                four.value = _step(corner, count, normal, four.value)
                live.value = select(four.value.next > -0.5, 1.0, 0.0)
    found = four.value
    return found.a, found.b, found.c, found.d


def _area(normal: Vec3, a: Corner, b: Corner, c: Corner, d: Corner) -> Any:
    return dot(cross(c.p - a.p, d.p - b.p), normal)


def _step(corner: Callable[[Any], Corner], count: Any, normal: Vec3, f: Four) -> Four:
    """One of the three moves on, if that makes the area larger; else it is the turn of the one before it, and after the second
    that of the last again, unless that is the one that stays."""
    last, third = f.next > 1.5, abs(f.next - 1.0) < 0.5
    at = 1.0 + select(last, f.at_d, select(third, f.at_c, f.at_b))
    end = select(last, count, select(third, f.at_d, f.at_c))
    new = corner(at)
    b, c, d = select(f.next < 0.5, new, f.b), select(third, new, f.c), select(last, new, f.d)
    area = _area(normal, f.a, b, c, d)
    moves = (f.next > -0.5) & (at < end - 0.5) & (area > f.area)
    otherwise = select(last, -1.0, select(third, 0.0, select(f.next > -0.5, 2.0, -1.0)))
    return Four(
        f.a,
        select(moves, b, f.b),
        select(moves, c, f.c),
        select(moves, d, f.d),
        select((f.next < 0.5) & moves, at, f.at_b),
        select(third & moves, at, f.at_c),
        select(last & moves, at, f.at_d),
        select(moves, area, f.area),
        select(moves, select(last, 1.0, f.next), otherwise),
    )
