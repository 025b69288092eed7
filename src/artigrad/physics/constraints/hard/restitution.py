"""Bound on the energy of bounces  (theory 5.26, 5.27).

The work of all impulses of a step,  P = lam . (J v + J v+)/2,  is what they add to the kinetic energy. Newton's hypothesis,
beta = -e g, can make it positive where there is friction. Then the bouncing contacts of a part of an island share a number
h of 0 to 1, and their targets are  beta = h (-e g) + (1 - h) rest,  with the largest h at which P is zero. With h = 0 they do
not bounce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Row, carry, loop, maximum, minimum, select, target, when_any
from ...collision.contact_geometry import FAR
from ...spatial import Vec3, dot
from .contact_problem import ContactProblem
from .islands import first_of_part
from .solver import choose_part, residual, solve_transposed
from .update import yes

TRIES, CLOSE, TINY = 40, {"f64": 1e-13, "f32": 1e-5}, 1e-30


def mean_velocity(problem: ContactProblem, c: Any, end: Any) -> Vec3:
    """(J v + J v+)/2 of contact c"""
    row = problem.row[c]
    return (row.around + pushed(problem, c, end)) * 0.5


def pushed(problem: ContactProblem, c: Any, end: Any) -> Vec3:
    """J Mt^-1 J^T lam of contact c"""
    row = problem.row[c]
    return residual(problem, c, end) - row.b - row.lam * row.soft


def work(problem: ContactProblem, start: Any, end: Any) -> tuple[Any, Any]:
    """The work P of the impulses of all members, J, and the sum of the magnitudes of its terms."""
    total, size = carry(0.0), carry(TINY)
    for c in problem.members(start, end):
        row, mean = problem.row[c], mean_velocity(problem, c, end)
        lam = select(row.member > 0.5, row.lam, Vec3.zero())
        total.value = total.value + dot(lam, mean)
        size.value = size.value + dot(lam.map(abs), row.around.map(abs))
    return total.value, size.value


def scale_bounces(problem: ContactProblem, start: Any, end: Any, go: Any, share: Any) -> None:
    """Give the bouncing members a share of their restitution, for the robots with go > 1/2."""
    for c in problem.members(start, end):
        row = problem.row[c]
        new = select(go * row.member > 0.5, share, row.share)
        row.b = row.b + Vec3((row.share - new) * row.rebound, 0.0, 0.0)
        row.share = new


def bound_energy(problem: ContactProblem, start: Any, end: Any, here: Any, solve: Callable[[Any], None]) -> None:
    """Reduce the restitution of the members of an island until their impulses do no positive work. solve(go) solves them."""
    bounce = carry(0.0)
    for c in problem.members(start, end):
        row = problem.row[c]
        bounce.value = maximum(bounce.value, row.member * row.rebound)
    asked = here * yes(bounce.value > 0.0)
    for _ in when_any(asked > 0.5):
        P, size = work(problem, start, end)
        above = asked * yes(CLOSE[target().dtype] * size < P)
        for _ in when_any(above > 0.5):
            scale_bounces(problem, start, end, above, 0.0)
            solve(above)
            at_zero, _ = work(problem, start, end)
            _find_share(problem, start, end, above * yes(at_zero < 0.0), (at_zero, P), solve)


def _find_share(
    problem: ContactProblem, start: Any, end: Any, go: Any, ends: tuple[Any, Any], solve: Callable[[Any], None]
) -> None:
    """The share at which P is zero, by regula falsi (Illinois). ends: P for the shares 0 and 1."""
    low, high, side = carry(0.0), carry(1.0), carry(0.0)
    P_low, P_high, open_ = carry(ends[0]), carry(ends[1]), carry(go)
    for _ in loop(TRIES):
        for _ in when_any(open_.value > 0.5):
            now, gap = open_.value, maximum(P_high.value - P_low.value, TINY)
            share = (low.value * P_high.value - high.value * P_low.value) / gap
            scale_bounces(problem, start, end, now, share)
            solve(now)
            P, size = work(problem, start, end)
            up, down = select(P > 0.0, now, 0.0), select(P > 0.0, 0.0, now)
            again_up, again_down = up * yes(side.value > 0.5), down * yes(side.value < -0.5)
            P_low.value = select(down > 0.5, P, select(again_up > 0.5, 0.5 * P_low.value, P_low.value))
            P_high.value = select(up > 0.5, P, select(again_down > 0.5, 0.5 * P_high.value, P_high.value))
            low.value, high.value = select(down > 0.5, share, low.value), select(up > 0.5, share, high.value)
            side.value = select(now > 0.5, up - down, side.value)
            open_.value = now * yes(abs(P) > CLOSE[target().dtype] * size)
    for c in problem.members(start, end):
        row = problem.row[c]
        row.limited = select(go * row.member > 0.5, 1.0, row.limited)


def energy_margin(problem: ContactProblem) -> Any:
    """Return the change of velocities, m/s, with which the energy begins or ceases to bound bounces."""
    least = carry(FAR)
    for n in loop(problem.islands[0]):
        start, end = problem.island[n], problem.island[n + 1]
        for first in problem.members(start, end):
            leads = first_of_part(problem, first, start)
            for _ in when_any(leads > 0.5):
                choose_part(problem, first, start, end)
                P, _ = work(problem, start, end)
                bounce, given, lam = carry(0.0), carry(0.0), carry(TINY)
                for c in problem.members(start, end):
                    row = problem.row[c]
                    total = row.lam.map(abs)
                    bounce.value = maximum(bounce.value, row.member * row.rebound)
                    given.value = maximum(given.value, row.member * row.rebound * row.share * (1.0 - row.share))
                    lam.value = lam.value + row.member * (total.x + total.y + total.z)
                free = select(problem.row[first].limited > 0.5, given.value, abs(P) / (2.0 * lam.value))
                least.value = select(leads * bounce.value > 0.0, minimum(least.value, free), least.value)
    return least.value


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def bound_multipliers(problem: ContactProblem) -> None:
    """With K^T nu = r solved: eta of P = 0 where it bounds the bounces,  K^T nu + eta a = r ,  rebound . nu = 0."""
    for c in loop(problem.count):
        problem.row[c].eta = 0.0
    for n in loop(problem.islands[0]):
        start, end = problem.island[n], problem.island[n + 1]
        limited = carry(0.0)
        for c in problem.members(start, end):
            limited.value = maximum(limited.value, problem.row[c].limited)
        for _ in when_any(limited.value > 0.5):
            _bound_island(problem, start, end)


def _bound_island(problem: ContactProblem, start: Any, end: Any) -> None:
    law = problem.friction
    for c in problem.members(start, end):
        row = problem.row[c]
        a = row.around * 0.5 + pushed(problem, c, end)
        row.drift = row.nu
        row.change = select(row.limited > 0.5, a, Vec3.zero())
    for c in problem.members(start, end):
        row = problem.row[c]
        row.nu = law.extend_transposed(row, row.change).map(lambda x, active: x * active, row.active)
    solve_transposed(problem, start, end)
    for first in problem.members(start, end):
        leads = first_of_part(problem, first, start) * problem.row[first].limited
        for _ in when_any(leads > 0.5):
            choose_part(problem, first, start, end)
            of_r, of_a = carry(0.0), carry(0.0)
            for c in problem.members(start, end):
                row = problem.row[c]
                rebound = row.member * row.rebound * row.active.x
                of_r.value, of_a.value = of_r.value + rebound * row.drift.x, of_a.value + rebound * row.nu.x
            eta = of_r.value / select(abs(of_a.value) > TINY, of_a.value, 1.0)
            for c in problem.members(start, end):
                row = problem.row[c]
                row.eta = select(leads * row.member > 0.5, eta, row.eta)
    for c in problem.members(start, end):
        row = problem.row[c]
        row.nu = row.drift - row.nu * row.eta


def with_bound(row: Row) -> Vec3:
    """nu + eta lam/2: what is paired with v+"""
    return row.nu + row.lam * (0.5 * row.eta)
