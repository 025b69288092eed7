"""The table of kinds of rows. How a kind is gathered, what its rows are, what is reported and how it is differentiated stands
in one record; nobody else asks what kind a row is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ....compiler import Table, counter, switch
from ...context import Step
from ...spatial import Vec3
from . import contact, joint_rows


class RowKind(NamedTuple):
    """A kind of contact: a block of up to three rows.

    gather(s, g, count, kind): those of group g that are near. rows(s, c): J v and J of the free accelerations, Z left in its
    table. spare: how much of the second diagonal entry of A a third row without use takes. report(s, c, table): what
    `sim.contacts` gives. force_bar(s, c): the cotangent of the force that is reported. bars(s, c): the adjoint at the
    solution, to poses, velocities and parameters; jacobian_bars(s, c): that of the sweeps.
    """

    gather: Callable[[Step, Any, counter, int], None]
    rows: Callable[[Step, Any], tuple[Vec3, Vec3]]
    bars: Callable[[Step, Any], None]
    jacobian_bars: Callable[[Step, Any], None]
    report: Callable[[Step, Any, Table], None] = lambda s, c, table: None
    force_bar: Callable[[Step, Any], Vec3] = lambda s, c: Vec3.zero()
    spare: float = 0.0


KINDS = (
    RowKind(
        contact.gather,
        contact.rows,
        contact.bars,
        contact.jacobian_bars,
        contact.report,
        contact.force_bar,
    ),
    RowKind(joint_rows.gather, joint_rows.rows, joint_rows.bars, joint_rows.jacobian_bars, spare=1.0),
)


def of_kind(what: str, s: Step, c: Any, *more: Any) -> Any:
    """The function `what` of the kind that contact c is of."""
    cases = {k: partial(getattr(kind, what), s, c, *more) for k, kind in enumerate(KINDS)}
    return switch(s.constraints.kind[c], cases)
