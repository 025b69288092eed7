"""Switch margin of the hard law: the distance to another active set, m/s  (theory 5.25).

Two distances are computed for each row, and the least of all is the margin:

- alone: the change of the row's own velocity that moves it to the edge of its condition, by its diagonal entry of A;
- together: the change of the state that does so, by the inverse of the active system K. All velocities change by up to one
  unit, and positions by up to dt times as much. The change of an impulse is estimated from a few directions of such
  changes.

The second one counts where rows are redundant. There the impulses respond to the state with 1/softness.
"""

from __future__ import annotations

from typing import Any

from ....compiler import carry, floor, loop, maximum, minimum, select, sqrt, to_real
from ...collision.contact_geometry import FAR
from ...context import Step
from ...spatial import Mat3, Vec3
from ..paths import jacobian_product
from . import solver
from .restitution import energy_margin
from .target_velocity import rest_velocity

DIRECTIONS = ((2.0, 11.0), (3.0, 13.0), (5.0, 17.0))  # seeds, of velocities and of positions
TINY = 1e-30


def margin(s: Step, factored: bool) -> Any:
    """Return the switch margin. `factored`: K has the factor of the active set at the solution."""
    problem, least = s.constraints, carry(FAR)
    for c in loop(problem.count):
        row, end = problem.row[c], problem.end(c)
        w, lam, inv = solver.residual(problem, c, end), row.lam, row.inv
        normal = select(lam.x > 0.0, lam.x / inv.x, abs(w.x))
        tangents = problem.friction.margin(w, lam, inv, row.mu * lam.x + row.bound, FAR)
        least.value = minimum(least.value, minimum(normal, tangents))
        row.change, row.swept = Vec3.zero(), w
    if factored:
        least.value = minimum(least.value, energy_margin(problem))
        for velocities, positions in DIRECTIONS:
            add_changes(s, velocities, positions)
        for g in loop(problem.groups):
            least.value = minimum(least.value, joint_margin(s, g))
    return least.value


def joint_margin(s: Step, g: Any) -> Any:
    """Return the change of the state that changes the active set of group g."""
    problem, m, least, count = s.constraints, s.model, carry(FAR), carry(0.0)
    for n in loop(problem.link_first[g], problem.link_first[g + 1]):
        count.value = count.value + to_real(m.link_nv[problem.links[n]])
    scale = 3.0 / len(DIRECTIONS) * count.value  # a sum of count changes is at most sqrt(count) of its norm
    for c in loop(problem.group[g], problem.group[g + 1]):
        row = problem.row[c]
        w, lam, change = row.swept, row.lam, row.change.map(lambda x: sqrt(scale * x))
        normal = select(lam.x > 0.0, lam.x, abs(w.x))
        tangents = problem.friction.distances(w, lam, row.mu * lam.x + row.bound, FAR)
        for distance, moved in zip((normal, *tangents), change.leaves(), strict=True):
            near = select(distance < FAR, distance / maximum(moved, TINY), FAR)
            least.value = minimum(least.value, near)
    return least.value


def add_changes(s: Step, velocities: float, positions: float) -> None:
    """Add the squares of the changes of all distances for one change of the state."""
    problem, friction = s.constraints, s.constraints.friction
    put_direction(s, velocities)
    for c in loop(problem.count):
        problem.row[c].drift = jacobian_product(s, c)
    put_direction(s, positions)
    for c in loop(problem.count):
        row = problem.row[c]
        _, slope = rest_velocity(s, row.phi)
        row.drift = row.drift - Vec3(s.dt * slope * jacobian_product(s, c).x, 0.0, 0.0)
        row.x = -friction.restrict(row, row.drift)
    for n in loop(problem.islands[0]):
        solver.solve(problem, problem.island[n], problem.island[n + 1])
    for c in loop(problem.count):
        problem.row[c].x = friction.extend(problem.row[c], problem.row[c].x)
    for c in loop(problem.count):
        row = problem.row[c]
        lam, dw, dlam = row.lam, carry(row.drift), row.x
        for d in problem.members(problem.start[c], problem.end(c)):
            dw.value = dw.value + problem.A.struct(problem.block(c, d), Mat3) @ problem.row[d].x
        normal = select(lam.x > 0.0, dlam.x, dw.value.x)
        limit, dlimit = row.mu * lam.x + row.bound, row.mu * dlam.x
        moved = Vec3(normal, *friction.changes(lam, limit, dlam, dw.value, dlimit))
        row.change = row.change + moved.map(lambda x: x * x)


def put_direction(s: Step, seed: float) -> None:
    """Write a direction of the state to ut: entries of -1 to 1 along all degrees of freedom, the others responding freely."""
    irrational = seed**0.5
    for k in loop(s.model.nv):
        x = (to_real(k) + 1.0) * irrational
        s.constraints.ut[k] = (2.0 * (x - floor(x)) - 1.0) / s.constraints.root[k]
