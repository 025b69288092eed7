"""The adjoint of the hard law at its converged solution  (theory 5.9-5.16).

With the active set given, one small transposed solve gives multipliers nu of the active velocity rows, and one solve
with the factor gives mu. The remainder is the adjoint of inverse dynamics with the contact forces among the external
forces, and one kinematic adjoint of the row velocities. No derivative of M or of A appears.

Not differentiated: the active set itself, the threshold of restitution, and the side of the kink at phi = 0 (one-sided).
"""

from __future__ import annotations

from ....compiler import Reals, loop
from ...context import Step
from ...dynamics import articulated
from ...spatial import dot
from ..paths import jacobian_product
from . import solver
from .contact import along_rows
from .kinds import of_kind
from .restitution import bound_multipliers, mean_velocity, with_bound
from .rows import apply_impulses, scale_free_motion, softness_bars


def multipliers(s: Step, qdd_bar: Reals) -> None:
    """nu = C^T x with (C A E)^T x = E^T (J z + dt lam_bar), z = Mt^-1 qdd_bar;  then  ws.mu = z - Mt^-1 J^T nu"""
    problem, friction = s.constraints, s.constraints.friction
    articulated.clear_forces(s)
    articulated.solve_inward(s, qdd_bar)
    scale_free_motion(s)
    for c in loop(problem.count):
        row = problem.row[c]
        seen = jacobian_product(s, c)
        if problem.force_bar is not None:
            seen = seen + along_rows(row.R, of_kind("force_bar", s, c))
        row.nu = friction.extend_transposed(row, seen).map(lambda x, active: x * active, row.active)
    for n in loop(problem.islands[0]):
        solver.solve_transposed(problem, problem.island[n], problem.island[n + 1])
    bound_multipliers(problem)
    for c in loop(problem.count):
        row = problem.row[c]
        row.nu = friction.restrict_transposed(row, row.nu)
        row.drift = with_bound(row)
    for c in loop(problem.count):
        problem.row[c].change = mean_velocity(problem, c, problem.end(c))
    apply_impulses(s, "drift", -1.0)
    articulated.solve_outward(s, s.ws.mu)


def bars(s: Step) -> None:
    """Add the cotangents of all contacts to poses, velocities and parameters, between the two halves of the adjoint of
    inverse dynamics."""
    for c in loop(s.constraints.count):
        of_kind("bars", s, c)
        row = s.constraints.row[c]
        softness_bars(s, c, -dot(row.nu, row.lam) / s.dt)
