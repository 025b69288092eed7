"""Switch margin of a step: the smallest distance of all rows to a kink, computed in the backward pass  (theory/soft.md).

Rows of a contact, a limit or dry friction have a kink where they begin or end to press, stick or slide. Points that
rotate together about the axis of an upright cylinder have no effect while their forces are equal, which is known only
here, where forces are.
"""

from __future__ import annotations

from typing import Any

from ....compiler import Linear, Row, carry, loop, maximum, select, target, to_real
from ...collision.contact_geometry import FAR
from ...context import Step
from ...margin import keep_distance, keep_speed
from ...spatial import Vec3, norm
from ..narrowphase import has_symmetric_points, symmetric_points_margin
from .adhesion import reach
from .families import BIG, MULTI_DOF, Block, every_row, families
from .impedance import impedance
from .stiffness import Six

ALIKE = {"f64": 1e-6, "f32": 1e-4}  # relative difference below which rows are equal


def note_margins(s: Step) -> None:
    """Record the smallest distance of all rows to another regime."""
    for family, n, row in every_row(s):
        # rows of another SIMD lane have no stiffness
        keep_speed(s, select(row.D > 0.0, family.margin(s, n, row), BIG) * s.dt)
        if isinstance(family, Block):
            family.by_kind(s, n, lambda n=n, row=row, family=family: _end_of_contact(s, n, row, family), lambda: None)
        elif family is MULTI_DOF:
            _end_of_row(s, row.r, row.y, (row.low > -1.0) & (row.high > 0.5 * BIG))
    if s.constraints.has("limit"):
        _ends_of_limits(s)
    for family in families(s):
        if isinstance(family, Block) and has_symmetric_points(s):
            _compare_rows(s, family)


def _end_of_contact(s: Step, n: Any, row: Row, family: Block) -> None:
    """Record the distance of a contact under pressure to its end."""
    force = row.f if isinstance(row.f, Vec3) else row.f.lin
    keep_distance(
        s, -(row.r - reach(s, getattr(s.constraints, f"{family.name}_of")[n])), (row.D > 0.0) & (force.x > 0.0)
    )


def _end_of_row(s: Step, r: Any, y: Any, where: Any = None) -> None:
    """Record the distance of a limit to its activation: to r = 0, and to y = J a - aref below 0."""
    keep_distance(s, maximum(abs(r), y * s.dt * s.dt), where)


def _ends_of_limits(s: Step) -> None:
    """Record the distances of all joint limits."""
    for n in loop(s.constraints.limits):
        i = s.constraints.limit[n]
        own, k = s.const.link[i], s.model.link_v[i]
        x, v, a = s.q[s.model.link_q[i]], s.v[k], s.ws.qdd[k]
        for sign, distance in ((1.0, x - own.low), (-1.0, own.high - x)):
            r = distance - own.limit_margin
            spring = own.limit.k * impedance(own.limit, r, s.constraints.square).d * r
            _end_of_row(s, r, sign * a + own.limit.b * (sign * v) + spring)


class _PairRows(Linear):
    """Rows of one pair: its index, the first row, number of rows, their difference from the first, margin, and the
    required number."""

    pair: float
    first: Six
    rows: float
    off: float
    margin: float
    count: float


def _compare_rows(s: Step, family: Block) -> None:
    """Record the distances of pairs to changes without effect if their rows are equal. Blocks of a pair are contiguous."""
    zero = 0.0 * s.dt
    last = carry(_PairRows(zero - 1.0, Six.zero() * zero, zero, zero, zero + FAR, zero))

    def close(of: _PairRows, where: Any = None) -> None:
        size = maximum(norm(of.first.lin), norm(of.first.ang))
        alike = (abs(of.rows - of.count) < 0.5) & (of.off <= ALIKE[target().dtype] * size)
        keep_distance(s, select(alike, FAR, of.margin), where)

    def compare(n: Any, row: Row) -> None:
        old, k = last.value, getattr(s.constraints, f"{family.name}_of")[n]
        y = row.y if isinstance(row.y, Six) else Six(row.y, Vec3.zero())
        active, same = row.D > 0.0, abs(to_real(k) - old.pair) < 0.5
        close(old, active & (select(same, 0.0, 1.0) > 0.5))
        d = y - old.first
        off = maximum(old.off, maximum(norm(d.lin), norm(d.ang)))
        added = _PairRows(old.pair, old.first, old.rows + 1.0, off, old.margin, old.count)
        begun = _PairRows(to_real(k), y, 1.0, 0.0, *symmetric_points_margin(s, k))
        last.value = select(active, select(same, added, begun), old)

    for n, row in family.blocks(s):
        family.by_kind(s, n, lambda n=n, row=row: compare(n, row), lambda: None)
    close(last.value)
