"""The margin of a step: the least distance of all rows to a kink, found in the backward pass  (theory/soft.md).

Rows of a contact, a limit or dry friction change where they begin or end to press, stick or slide. Points that turn about the
axis of an upright cylinder at once change nothing while they press alike, which is known only here, where forces are.
"""

from __future__ import annotations

from typing import Any

from ....spatial import Vec3, norm
from ....staging import Linear, Row, carry, maximum, minimum, select, target, to_real
from ...collision.gap import FAR
from ...context import Step
from ..touching import alike_distance, compares, keep_distance
from .families import BIG, Block, every_row, families
from .stiffness import Six

ALIKE = {"f64": 1e-8, "f32": 1e-4}  # by which rows that press alike may differ, relative to their size


def note_margins(s: Step) -> None:
    """Keep the least distance of all rows to another zone."""
    for family, n, row in every_row(s):
        # a row of a neighbour in the pack has no stiffness
        keep_margin(s, select(row.D > 0.0, family.margin(s, n, row), BIG))
    for family in families(s):
        if isinstance(family, Block) and compares(s):
            _compare_rows(s, family)


def keep_margin(s: Step, near: Any) -> None:
    """The least distance to where gradients change, m/s, of all steps."""
    status = s.constraints.status
    status[1] = minimum(status[1], near * s.dt)


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
