"""Table of the kinds of rows: one record each, with functions that collect, build, report and differentiate its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ....compiler import Table, counter, loop, switch
from ...context import Step
from ...spatial import Vec3
from ..narrowphase import clear_report
from . import contact, joint_rows


class RowKind(NamedTuple):
    """A kind of contact: a block of up to three rows.

    Attributes:
        gather: Called as gather(s, g, count, kind); appends the contacts of group g that are near.
        rows: Called as rows(s, c); returns J v and J of the free accelerations, and writes Z.
        bars: Adds the cotangents of contact c at the solution to those of poses, velocities and parameters.
        jacobian_bars: The same for the adjoint of the sweeps.
        inverse_mass: Returns the inverse mass that softness is a share of, 1/kg or 1/(kg m^2).
        inverse_mass_bar: Called as inverse_mass_bar(s, c, bar); adds its cotangent to those of the constants.
        report: Called as report(s, c, table); writes a row of `sim.contacts`.
        force_bar: Returns the cotangent of the force that is reported.
        spare: Share of the second diagonal entry of A that an unused third row takes.
    """

    gather: Callable[[Step, Any, counter, int], None]
    rows: Callable[[Step, Any], tuple[Vec3, Vec3]]
    bars: Callable[[Step, Any], None]
    jacobian_bars: Callable[[Step, Any], None]
    inverse_mass: Callable[[Step, Any], Any]
    inverse_mass_bar: Callable[[Step, Any, Any], None]
    report: Callable[[Step, Any, Table], None] = lambda s, c, table: None
    force_bar: Callable[[Step, Any], Vec3] = lambda s, c: Vec3.zero()
    spare: float = 0.0


KINDS = (
    RowKind(
        contact.gather,
        contact.rows,
        contact.bars,
        contact.jacobian_bars,
        contact.inverse_mass,
        contact.inverse_mass_bar,
        contact.report,
        contact.force_bar,
    ),
    RowKind(
        joint_rows.gather,
        joint_rows.rows,
        joint_rows.bars,
        joint_rows.jacobian_bars,
        joint_rows.inverse_mass,
        joint_rows.inverse_mass_bar,
        spare=1.0,
    ),
)


def of_kind(what: str, s: Step, c: Any, *more: Any) -> Any:
    """The function `what` of the kind that contact c is of."""
    cases = {k: partial(getattr(kind, what), s, c, *more) for k, kind in enumerate(KINDS)}
    return switch(s.constraints.kind[c], cases)


def report_rows(s: Step, table: Table) -> None:
    """Fill a row of the contact report for every point that may touch."""
    problem = s.constraints
    for k in loop(problem.all_points):
        clear_report(table[k], problem.options.near)
    for c in loop(problem.count):
        of_kind("report", s, c, table)
