"""The margin of a step: the least distance of all rows to a kink, found in the backward pass  (theory/soft.md).

Rows of a contact, a limit or dry friction change where they begin or end to press, stick or slide. Points that turn about the
axis of an upright cylinder at once change nothing while they press alike, which is known only here, where forces are.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, Row, carry, loop, maximum, select, target, to_real
from ...collision.gap import FAR
from ...context import Step
from ...margin import keep_distance, keep_speed
from ...spatial import Vec3, norm
from ..narrowphase import alike_distance, compares
from .adhesion import reach
from .families import BIG, COMBO, Block, every_row, families
from .impedance import impedance
from .stiffness import Six

ALIKE = {"f64": 1e-6, "f32": 1e-4}  # by which rows that press alike may differ, relative to their size


def note_margins(s: Step) -> None:
    """Keep the least distance of all rows to another zone."""
    for family, n, row in every_row(s):
        # a row of a neighbour in the pack has no stiffness
        keep_speed(s, select(row.D > 0.0, family.margin(s, n, row), BIG) * s.dt)
        if isinstance(family, Block):
            family.by_kind(s, n, lambda n=n, row=row, family=family: _end_of_contact(s, n, row, family), lambda: None)
        elif family is COMBO:
            _end_of_row(s, row.r, row.y, (row.low > -1.0) & (row.high > 0.5 * BIG))
    if s.constraints.has("limit"):
        _ends_of_limits(s)
    for family in families(s):
        if isinstance(family, Block) and compares(s):
            _compare_rows(s, family)


def _end_of_contact(s: Step, n: Any, row: Row, family: Block) -> None:
    """Keep the distance of a contact that presses to where it ends."""
    force = row.f if isinstance(row.f, Vec3) else row.f.lin
    keep_distance(
        s, -(row.r - reach(s, getattr(s.constraints, f"{family.name}_of")[n])), (row.D > 0.0) & (force.x > 0.0)
    )


def _end_of_row(s: Step, r: Any, y: Any, where: Any = None) -> None:
    """Keep the distance of a limit to where it begins or ends to press: to r = 0, and to y = J a - aref below 0."""
    keep_distance(s, maximum(abs(r), y * s.dt * s.dt), where)


def _ends_of_limits(s: Step) -> None:
    """Of all joints with a limit."""
    for n in loop(s.constraints.limits):
        i = s.constraints.limit[n]
        own, k = s.const.link[i], s.model.link_v[i]
        x, v, a = s.q[s.model.link_q[i]], s.v[k], s.ws.qdd[k]
        for sign, distance in ((1.0, x - own.low), (-1.0, own.high - x)):
            r = distance - own.limit_margin
            spring = own.limit.k * impedance(own.limit, r, s.constraints.square).d * r
            _end_of_row(s, r, sign * a + own.limit.b * (sign * v) + spring)


class _Compared(Linear):
    """Rows of one pair: its number, the first row, how many rows there are, by how much others differ from the first, and the
    distance that counts unless as many as `together` are alike."""

    pair: float
    first: Six
    many: float
    off: float
    room: float
    together: float


def _compare_rows(s: Step, family: Block) -> None:
    """Keep the distances of pairs to changes of their points that change nothing where their rows are alike. Blocks of
    a pair follow each other."""
    zero = 0.0 * s.dt
    last = carry(_Compared(zero - 1.0, Six.zero() * zero, zero, zero, zero + FAR, zero))

    def close(of: _Compared, where: Any = None) -> None:
        size = maximum(norm(of.first.lin), norm(of.first.ang))
        alike = (abs(of.many - of.together) < 0.5) & (of.off <= ALIKE[target().dtype] * size)
        keep_distance(s, select(alike, FAR, of.room), where)

    def compare(n: Any, row: Row) -> None:
        old, k = last.value, getattr(s.constraints, f"{family.name}_of")[n]
        y = row.y if isinstance(row.y, Six) else Six(row.y, Vec3.zero())
        active, same = row.D > 0.0, abs(to_real(k) - old.pair) < 0.5
        close(old, active & (select(same, 0.0, 1.0) > 0.5))
        d = y - old.first
        off = maximum(old.off, maximum(norm(d.lin), norm(d.ang)))
        added = _Compared(old.pair, old.first, old.many + 1.0, off, old.room, old.together)
        begun = _Compared(to_real(k), y, 1.0, 0.0, *alike_distance(s, k))
        last.value = select(active, select(same, added, begun), old)

    for n, row in family.blocks(s):
        family.by_kind(s, n, lambda n=n, row=row: compare(n, row), lambda: None)
    close(last.value)
