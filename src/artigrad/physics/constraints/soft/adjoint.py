"""Adjoint of the soft law at its solution  (theory 9.11-9.13).

It needs no Newton steps: the accelerations are known, so one evaluation of the rows, one factor of H and one solve give

    nu = H^-1 (a_bar - J^T K f_bar),     kappa = K (J nu + f_bar)

and the rest is the adjoint of the equation of motion at nu, in which rows pair nu with their forces f, accelerations
with -kappa, and velocities with -b kappa. f_bar is the cotangent of the forces of contacts and limits, if the loss has
one.

Not differentiated: the regime of a row, and whether the row is active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Reals, Row, when_any
from ...context import Step
from ...dynamics.articulated import clear_forces
from ...dynamics.inverse_dynamics import link_forces
from ...transmissions.transmission import kinematics
from . import coupled
from .adhesion import adhesion_vjp, start_bars
from .assemble_rows import assemble_rows
from .contact_rows import contact_bars, edges_kappa, force_cotangent
from .equality_rows import held_bars, held_cotangent
from .factor import assemble, factor_solve
from .families import SINGLE, Block, Family, Motions, Scalar, every_row
from .limit_forces import limit_cotangent
from .limit_rows import single_bars
from .multi_dof_rows import multi_dof_bars
from .row_margins import note_margins


def recompute(s: Step) -> None:
    """Recompute kinematics and rows of this state."""
    kinematics(s)
    if s.constraints.has("connect", "weld"):
        link_forces(s, None)  # velocity-dependent accelerations
    assemble_rows(s)


def at_solution(s: Step) -> None:
    """Evaluate rows at the accelerations ws.qdd, with the motions of links in s.field.w."""
    found = Motions("w", s.ws.qdd)
    for family, n, row in every_row(s):
        y = family.jacobian_product(s, n, row, found) - row.ref
        row.y = y
        row.f, row.K = family.force_and_stiffness(s, n, row, y)


def multipliers(s: Step, qdd_bar: Reals) -> None:
    """Compute ws.mu = nu; rows store J nu + f_bar in z and kappa in d."""
    soft_multipliers(s, qdd_bar, lambda family, n, row: _force_bars(s, family, n, row))


def soft_multipliers(s: Step, qdd_bar: Reals, f_bar: Callable[[Family, Any, Row], Any]) -> None:
    """The computation of `multipliers` for given cotangents f_bar(family, n, row); None for a family without any."""
    problem = s.constraints
    at_solution(s)
    note_margins(s)
    assemble(s, with_forces=False)
    clear_forces(s)
    if problem.has("couplings"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.find_sparsity(s)
    for family, n, row in every_row(s):
        force_bar = f_bar(family, n, row)
        if force_bar is None:
            continue
        force = -_with_edges(s, family, n, row, family.times(row.K, force_bar))
        if isinstance(family, Scalar):
            family.add_to(s, n, row, qdd_bar, force)
        else:
            family.add_force(s, n, row, force)
    factor_solve(s, qdd_bar, s.ws.mu)
    nu = Motions("y", s.ws.mu)
    for family, n, row in every_row(s):
        multiplier, force_bar = family.jacobian_product(s, n, row, nu), f_bar(family, n, row)
        multiplier = multiplier if force_bar is None else multiplier + force_bar
        row.z, row.d = multiplier, _with_edges(s, family, n, row, family.times(row.K, multiplier))


def _force_bars(s: Step, family: Family, n: Any, row: Row) -> Any:
    """Cotangent of the force of a row, or None."""
    problem = s.constraints
    if isinstance(family, Block):
        return _block_force_bar(s, family, n, row) if problem.has_output_bars or problem.held_bar is not None else None
    return limit_cotangent(s, family, n, row) if problem.limit_bar is not None else None


def force_bar_or_zero(s: Step, family: Family, n: Any, row: Row) -> Any:
    """Cotangent of the force of a row, or zero."""
    force_bar = _force_bars(s, family, n, row)
    return row.f * 0.0 if force_bar is None else force_bar


def _with_edges(s: Step, family: Family, n: Any, row: Row, kappa: Any) -> Any:
    """Return kappa plus the contribution of the pressure of pyramid edges, which noslip sweeps differentiate."""
    if not (s.constraints.edges and isinstance(family, Block)):
        return kappa
    return family.by_kind(s, n, lambda: kappa + edges_kappa(s, family, n, row), lambda: kappa)


def _block_force_bar(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Cotangent of the force of a block."""

    def contact() -> Any:
        return force_cotangent(s, family, n, row) if s.constraints.has_output_bars else row.f * 0.0

    return family.by_kind(s, n, contact, lambda: held_cotangent(s, family, n, row))


def bars(s: Step) -> None:
    """Add the cotangents of all rows to those of poses, velocities and parameters.

    Runs between the two halves of the adjoint of inverse dynamics.
    """
    if s.has("adhesion"):
        start_bars(s)
    for family, n, row in every_row(s):
        if isinstance(family, Block):
            _block_bars(s, family, n, row)
        else:
            (single_bars if family is SINGLE else multi_dof_bars)(s, n, row)
    if s.has("adhesion"):
        adhesion_vjp(s)


def _block_bars(s: Step, family: Block, n: Any, row: Row) -> None:
    """Adjoint of a contact or an equality."""
    family.by_kind(s, n, lambda: contact_bars(s, family, n, row), lambda: held_bars(s, family, n, row))
