"""The adjoint of the soft law at its solution  (theory 9.11-9.13).

No Newton steps: the accelerations are known, so one evaluation of the rows, one factor of H and one solve give

    nu = H^-1 (a_bar - J^T K f_bar),     kappa = K (J nu + f_bar)

and everything else is the adjoint of the balance of forces at nu, where rows pair nu with their forces f, accelerations with
-kappa, and velocities with -b kappa. f_bar is the cotangent of the forces of contacts and limits, where a loss has one.

Not differentiated: the zone that a row is in, and whether it is there at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Reals, Row, when_any
from ...context import Step
from ...dynamics.articulated import clear_forces
from ...dynamics.inverse_dynamics import link_forces
from ...transmissions.transmission import place
from . import coupled
from .adhesion import adhesion_vjp, start_bars
from .assemble_rows import start_rows
from .contact_rows import contact_bars, edges_kappa, force_cotangent
from .equality_rows import held_bars, held_cotangent
from .factor import assemble, factor_solve
from .families import SINGLE, Block, Family, Motions, Scalar, every_row
from .limit_forces import limit_cotangent
from .limit_rows import single_bars
from .multi_dof_rows import combo_bars
from .row_margins import note_margins


def recompute(s: Step) -> None:
    """Kinematics and rows of this state."""
    place(s)
    if s.constraints.has("connect", "weld"):
        link_forces(s, None)  # for the accelerations that velocities alone make
    start_rows(s)


def at_solution(s: Step) -> None:
    """Rows at the accelerations ws.qdd, whose motions of links are in s.field.w."""
    found = Motions("w", s.ws.qdd)
    for family, n, row in every_row(s):
        y = family.seen(s, n, row, found) - row.ref
        row.y = y
        row.f, row.K = family.respond(s, n, row, y)


def multipliers(s: Step, qdd_bar: Reals) -> None:
    """ws.mu = nu; rows keep J nu + f_bar in z and kappa in d."""
    soft_multipliers(s, qdd_bar, lambda family, n, row: _told(s, family, n, row))


def soft_multipliers(s: Step, qdd_bar: Reals, f_bar: Callable[[Family, Any, Row], Any]) -> None:
    """The same for f_bar(family, n, row), None for a family of which nobody asks."""
    problem = s.constraints
    at_solution(s)
    note_margins(s)
    assemble(s, with_forces=False)
    clear_forces(s)
    if problem.has("tied"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.structure(s)
    for family, n, row in every_row(s):
        asked = f_bar(family, n, row)
        if asked is None:
            continue
        force = -_with_edges(s, family, n, row, family.times(row.K, asked))
        if isinstance(family, Scalar):
            family.add_to(s, n, row, qdd_bar, force)
        else:
            family.add_force(s, n, row, force)
    factor_solve(s, qdd_bar, s.ws.mu)
    nu = Motions("y", s.ws.mu)
    for family, n, row in every_row(s):
        felt, asked = family.seen(s, n, row, nu), f_bar(family, n, row)
        felt = felt if asked is None else felt + asked
        row.z, row.d = felt, _with_edges(s, family, n, row, family.times(row.K, felt))


def _told(s: Step, family: Family, n: Any, row: Row) -> Any:
    """f_bar of a row, or None."""
    problem = s.constraints
    if isinstance(family, Block):
        return _asked(s, family, n, row) if problem.asked or problem.held_bar is not None else None
    return limit_cotangent(s, family, n, row) if problem.limit_bar is not None else None


def asked_of(s: Step, family: Family, n: Any, row: Row) -> Any:
    """f_bar of a row, or zero."""
    told = _told(s, family, n, row)
    return row.f * 0.0 if told is None else told


def _with_edges(s: Step, family: Family, n: Any, row: Row, kappa: Any) -> Any:
    """kappa, with what the cotangents of the pressure of a pyramid's edges add to it, after sweeps against creep."""
    if not (s.constraints.edges and isinstance(family, Block)):
        return kappa
    return family.by_kind(s, n, lambda: kappa + edges_kappa(s, family, n, row), lambda: kappa)


def _asked(s: Step, family: Block, n: Any, row: Row) -> Any:
    """f_bar of a block."""
    contact: Callable[[], Any] = lambda: force_cotangent(s, family, n, row) if s.constraints.asked else row.f * 0.0  # noqa: E731
    return family.by_kind(s, n, contact, lambda: held_cotangent(s, family, n, row))


def bars(s: Step) -> None:
    """Between the two halves of the adjoint of inverse dynamics: what all rows say to poses, velocities, parameters."""
    if "adhesion" in s.extras:
        start_bars(s)
    for family, n, row in every_row(s):
        if isinstance(family, Block):
            _block_bars(s, family, n, row)
        else:
            (single_bars if family is SINGLE else combo_bars)(s, n, row)
    if "adhesion" in s.extras:
        adhesion_vjp(s)


def _block_bars(s: Step, family: Block, n: Any, row: Row) -> None:
    family.by_kind(s, n, lambda: contact_bars(s, family, n, row), lambda: held_bars(s, family, n, row))
