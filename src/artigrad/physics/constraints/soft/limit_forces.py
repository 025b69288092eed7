"""Forces of limits and along tendons as an output, and their cotangents.

The output has the limit force of every link, then of every tendon, then the total force along every tendon from limits,
dry friction and couplings. If both limits of a joint or tendon act, which is possible with margins, the lower one is
reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Reals, Row, loop, select, switch
from ....model.model import Model
from ...context import Step
from .families import MULTI_DOF, SINGLE, Family, families
from .soft_problem import BALL, DRY, LIMIT, MOTOR, MULTI_DOF_KINDS, TENDON_COUPLE, TENDON_DRY, TENDON_HIGH, TENDON_LOW
from .tendon_rows import polynomial

SINGLE_KINDS = {LIMIT: "limit", DRY: "dry", MOTOR: "motor"}


def limit_count(model: Model) -> int:
    """Number of entries: forces of limits, and forces along tendons."""
    return len(model.links.parent) + 2 * len(model.tendons)


def _by_limit(
    s: Step, family: Family, n: Any, row: Row, then: Callable[[Any, Any], Any], other: Callable[[], Any]
) -> Any:
    """Return then(index, weight) for the row of a limit, else other().

    The weight is 0 if the lower limit is reported in its place.
    """
    problem = s.constraints
    if family is SINGLE:
        names, kind = SINGLE_KINDS, problem.single_kind[n]
        own: dict[int, Callable[[], Any]] = {LIMIT: lambda: then(problem.single_link[n], _share(s, n, row))}
    else:
        names, kind, of = dict(enumerate(MULTI_DOF_KINDS)), problem.multi_dof_kind[n], problem.multi_dof_of[n]
        own = {
            BALL: lambda: then(of, 1.0),
            TENDON_LOW: lambda: then(s.model.nl + of, 1.0),
            TENDON_HIGH: lambda: then(s.model.nl + of, _tendon_share(s, of)),
        }
    cases = {k: own.get(k, other) for k, name in names.items() if problem.has(name)}
    return switch(kind, cases)


def _share(s: Step, n: Any, row: Row) -> Any:
    """Weight of a joint limit."""
    link = s.constraints.single_link[n]
    own = s.const.link[link]
    lower = s.q[s.model.link_q[link]] - own.low - own.limit_margin < 0.0
    return select(row.sign > 0.0, 1.0, select(lower, 0.0, 1.0))


def _tendon_share(s: Step, t: Any) -> Any:
    """Weight of the upper limit of a tendon."""
    own = s.const.line[t]
    return select(s.ws.length[t] - own.low - own.margin < 0.0, 0.0, 1.0)


def _by_pull(s: Step, family: Family, n: Any, one: Callable[[Any, Any], Any], other: Callable[[], Any]) -> Any:
    """Return the sum of one(output index, weight) over the tendons on which row n acts; other() for rows of no tendon."""
    problem = s.constraints
    if family is SINGLE or not problem.has("tendon_low", "tendon_high", "tendon_dry", "tendon_couple"):
        return other()
    of, first = problem.multi_dof_of[n], s.model.nl + s.model.ntendon

    def couple() -> Any:
        a, b = first + problem.tendon_a[of], problem.tendon_b[of]

        def both() -> Any:
            slope = polynomial(s, of, s.ws.length[b])[1]
            found, second = one(a, 1.0), one(first + b, -slope)
            return None if found is None else found + second

        return switch(problem.couple_two[of], {1: both, 0: lambda: one(a, 1.0)})

    own: dict[int, Callable[[], Any]] = {
        TENDON_LOW: lambda: one(first + of, 1.0),
        TENDON_HIGH: lambda: one(first + of, -1.0),
        TENDON_DRY: lambda: one(first + of, 1.0),
        TENDON_COUPLE: couple,
    }
    cases = {k: own.get(k, other) for k, name in enumerate(MULTI_DOF_KINDS) if problem.has(name)}
    return switch(problem.multi_dof_kind[n], cases)


def report_limits(s: Step, out: Reals) -> None:
    """Fill `out` after the accelerations are computed."""
    for k in loop(s.model.nl + 2 * s.model.ntendon):
        out[k] = 0.0
    for family in (f for f in families(s) if f in (SINGLE, MULTI_DOF)):
        for n, row in family.blocks(s):

            def put(k: Any, share: Any, row: Row = row) -> None:
                out[k] = out[k] + share * row.f

            _by_limit(s, family, n, row, put, lambda: None)
            _by_pull(s, family, n, put, lambda: None)


def limit_cotangent(s: Step, family: Family, n: Any, row: Row) -> Any:
    """Cotangent of the force of a row on one or several degrees of freedom."""
    bar: Callable[[Any, Any], Any] = lambda k, share: s.constraints.limit_bar[k] * share  # noqa: E731
    return _by_limit(s, family, n, row, bar, lambda: 0.0) + _by_pull(s, family, n, bar, lambda: 0.0)
