"""Solvers of the contact problem  w = A lam + b,  island by island  (theory 5.6, 5.7).

    normals:   0 <= lam_n, 0 <= w_n, one of them zero
    tangents:  |lam_t| <= mu lam_n + bound;  w_t = 0 inside,  w_t against lam_t at the bound

The friction law, `pyramid` or `cone`, defines |lam_t| and its bound.

`gauss_seidel` sweeps until no impulse moves by more than the tolerance, at most a given number of times. `hybrid` estimates
the active set by a few sweeps, solves that set exactly by a 3x3-block LU, and checks every row. If the check fails, the worst
row changes sides and the set is solved again; after some exchanges the sweeps continue from the impulses before them. A
robot that has converged is frozen: other lanes of the SIMD pack do not change its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ....compiler import Row, carry, loop, maximum, minimum, select, target, to_real, when_any
from ...spatial import Mat3, Vec3, cross, dot
from .contact_problem import ContactProblem
from .islands import first_of_part
from .update import Update, positive, yes

ROUNDS, SWEEPS, MORE = 5, 3, 60  # sweeps of the first round, and how many more each later one has
FEW, SWEEPS_EACH, TRIES_EACH = 8.0, 3, 0.25  # contacts, beyond which each is worth more sweeps and more tries
WORK, WORK_EACH = (
    400.0,
    400.0,
)  # that a robot may do on a part of an island, in sweeps, and more for each contact beyond FEW
TRY = 3.0  # sweeps that an exact solve costs, beside one for each contact
RELAX = 0.8  # of a step of a sweep
TINY = 1e-30
TURN = {"f64": 1e-7, "f32": 1e-5}  # rad, by which directions of sliding may still turn


def clear_impulses(problem: ContactProblem) -> None:
    for c in loop(problem.count):
        row = problem.row[c]
        row.lam, row.active, row.slide_sign, row.member = Vec3.zero(), Vec3.zero(), Vec3.zero(), 1.0


def choose_part(problem: ContactProblem, first: Any, start: Any, end: Any) -> None:
    """Make the contacts of an island that are tied to `first` its members, robot by robot."""
    part = problem.row[first].part
    for c in problem.members(start, end):
        row = problem.row[c]
        row.member = yes(abs(row.part - part) < 0.5)


def residual(problem: ContactProblem, c: Any, end: Any) -> Vec3:
    """w_c = A lam + b"""
    w = carry(problem.row[c].b)
    for d in problem.members(problem.start[c], end):
        w.value = w.value + problem.A.struct(problem.block(c, d), Mat3) @ problem.row[d].lam
    return w.value


def worse(a: Any, b: Any) -> Any:
    """Return the larger of two non-negative numbers; NaN is kept."""
    return select(b >= 0.0, maximum(a, b), b)


def sweep(problem: ContactProblem, start: Any, end: Any, go: Any, relax: Any = 1.0, tape: Any = None) -> Any:
    """Make one projected Gauss-Seidel sweep over an island, for the robots with go > 1/2.

    Returns the largest change, as a velocity.

    With relax < 1 the steps are shorter: full steps of sliding contacts can oscillate. tape: first row of the tape that is
    written; without a tape, x of each contact has the change of its impulses.
    """
    moved = carry(0.0)
    for c in problem.members(start, end):
        row = problem.row[c]
        w, lam, inv = residual(problem, c, end), row.lam, row.inv * relax
        if tape is not None:
            problem.tape[tape + c].lam, problem.tape[tape + c].w = lam, w
        n = maximum(lam.x - w.x * inv.x, 0.0)
        A, limit = problem.A.struct(problem.block(c, c), Mat3), row.mu * n + row.bound
        new = Vec3(n, *problem.friction.tangents(Update(A, w, lam, inv, n - lam.x, limit)).leaves())
        if tape is None:
            row.x = new - lam
        moved.value = maximum(moved.value, select(row.member > 0.5, largest_change(row, new - lam), 0.0))
        row.lam = select(go * row.member > 0.5, new, lam)
    return moved.value


def largest_change(row: Row, change: Vec3) -> Any:
    """Return the largest velocity change of the rows that a change of impulses causes."""
    worst: Any = 0.0
    for x, i in zip(change.leaves(), row.inv.leaves(), strict=True):
        worst = worse(worst, abs(x / i))
    return worst


def violation(problem: ContactProblem, start: Any, end: Any) -> Any:
    """Residual of an island, m/s: the velocity that one more update of each contact would change."""
    worst = carry(0.0)
    for c in problem.members(start, end):
        row = problem.row[c]
        w, lam, inv = residual(problem, c, end), row.lam, row.inv
        n, A = maximum(lam.x - w.x * inv.x, 0.0), problem.A.struct(problem.block(c, c), Mat3)
        limit = row.mu * lam.x + row.bound
        new = Vec3(n, *problem.friction.tangents(Update(A, w, lam, inv, 0.0, limit)).leaves())
        worst.value = worse(worst.value, select(row.member > 0.5, largest_change(row, new - lam), 0.0))
    return worst.value


def gauss_seidel(
    problem: ContactProblem, sweeps: int, tolerance: Any, tape: bool = False, factored: bool = True
) -> None:
    """Make at most `sweeps` sweeps over every island.

    tape stores the intermediate values of every update and the number of sweeps; `factored` leaves the factor of the active
    set in K, for the implicit adjoint.
    """
    clear_impulses(problem)
    for g in loop(problem.islands[0]):
        start, end = problem.island[g], problem.island[g + 1]
        go, ran = carry(1.0), carry(0.0)
        for s in loop(sweeps):
            for _ in when_any(go.value > 0.5):
                moved = sweep(problem, start, end, go.value, tape=s * problem.cap if tape else None)
                ran.value = ran.value + go.value
                go.value = select(moved > tolerance, go.value, 0.0)
        if tape:
            problem.ran[g] = ran.value
        problem.status[0] = worse(problem.status[0], violation(problem, start, end))
        if factored:
            name_active_set(problem, start, end, 1.0)
            build(problem, start, end)
            factor(problem, start, end)


def hybrid(problem: ContactProblem, tolerance: Any, bounded: Callable[..., None] | None = None) -> None:
    """Sweep, solve the active set, check; repeat for the robots that fail the check and have work left.

    `bounded` changes the targets of a solved part and solves it again (`restitution.bound_energy`).
    """
    clear_impulses(problem)
    for g in loop(problem.islands[0]):
        start, end = problem.island[g], problem.island[g + 1]
        for first in problem.members(start, end):
            here = first_of_part(problem, first, start)
            for _ in when_any(here > 0.5):
                choose_part(problem, first, start, end)
                solve_part(problem, start, end, here, tolerance)
                if bounded is not None:

                    def again(go: Any, start: Any = start, end: Any = end) -> None:
                        solve_part(problem, start, end, go, tolerance)

                    bounded(problem, start, end, here, again)


def solve_part(problem: ContactProblem, start: Any, end: Any, here: Any, tolerance: Any) -> None:
    """Solve the members of an island, for the robots with here > 1/2."""
    own = own_contacts(problem, start, end)
    many = maximum(own - FEW, 0.0)
    unsolved, left = carry(here), carry(WORK - own + WORK_EACH * many)
    for r in loop(ROUNDS):
        go = select(left.value > 0.0, unsolved.value, 0.0)
        for _ in when_any(go > 0.5):
            sweeps = minimum(to_real(SWEEPS + r * MORE) + SWEEPS_EACH * many, left.value)
            accelerated_sweeps(problem, start, end, go, sweeps, SWEEPS + r * MORE + (end - start) * SWEEPS_EACH)
            left.value = left.value - go * sweeps
            for c in problem.members(start, end):
                problem.row[c].swept = problem.row[c].lam
            tries = to_real((r + 1) * problem.friction.TRIES) + TRIES_EACH * many
            failed = solve_active_set(problem, start, end, go, tolerance, Work(left, own + TRY, tries))
            for c in problem.members(start, end):  # robots that failed continue from their sweeps
                row = problem.row[c]
                row.lam = select(failed * row.member > 0.5, row.swept, row.lam)
            unsolved.value = select(go > 0.5, failed, unsolved.value)
    for _ in when_any(unsolved.value > 0.5):  # the impulses are those of the sweeps: report their residual
        rest = select(unsolved.value > 0.5, worse(TINY, violation(problem, start, end)), 0.0)
        problem.status[0] = worse(problem.status[0], rest)
        name_active_set(problem, start, end, unsolved.value)
        build(problem, start, end)
        factor(problem, start, end)


def factor_at_solution(problem: ContactProblem) -> None:
    """Leave in K the factor of the active set at the final impulses.

    Newton's method for a nonlinear friction law ends with the set of the step before the solution, whose derivative differs.
    """
    if problem.friction.LINEAR:
        return
    for g in loop(problem.islands[0]):
        start, end = problem.island[g], problem.island[g + 1]
        for c in problem.members(start, end):
            problem.row[c].member = 1.0
        name_active_set(problem, start, end, 1.0)
        build(problem, start, end)
        factor(problem, start, end)


def accelerated_sweeps(problem: ContactProblem, start: Any, end: Any, go: Any, sweeps: Any, most: Any) -> None:
    """Make at most `most` sweeps for the robots with go > 1/2, by nonlinear conjugate gradients.

    Each sweep but the last continues along the changes of those before it, scaled by the rate at which changes decrease. The
    method restarts where changes increase.
    """
    before = carry(0.0)
    for c in problem.members(start, end):
        problem.row[c].drift = Vec3.zero()
    for k in loop(most):
        now = select(to_real(k) < sweeps, go, 0.0)
        for _ in when_any(now > 0.5):
            sweep(problem, start, end, now, RELAX)
            size = carry(0.0)
            for c in problem.members(start, end):
                row = problem.row[c]
                size.value = size.value + row.member * dot(row.x, row.x.map(lambda x, i: x / i, row.inv))
            smaller, first = size.value < before.value, before.value <= 0.0
            share = select(smaller, size.value / maximum(before.value, TINY), 0.0)
            ahead = select(to_real(k) + 1.5 < sweeps, share * now, 0.0)
            keep = select(smaller, 1.0, select(first, 1.0, 0.0))
            before.value = size.value
            for c in problem.members(start, end):
                row = problem.row[c]
                drift = row.drift
                row.lam = row.lam + drift * (ahead * row.member)
                row.drift = (drift * share + row.x) * keep


def own_contacts(problem: ContactProblem, start: Any, end: Any) -> Any:
    """Number of contacts of a part of an island, per robot."""
    own = carry(0.0)
    for c in problem.members(start, end):
        row = problem.row[c]
        own.value = own.value + row.member
    return own.value


class Work(NamedTuple):
    """Work on a part of an island: remaining sweeps, cost of an exact solve in sweeps, and the maximum."""

    left: carry
    cost: Any
    tries: Any


def solve_active_set(problem: ContactProblem, start: Any, end: Any, active: Any, tolerance: Any, work: Work) -> Any:
    """Determine the active set from the impulses and replace them by its solution. Return 1 where no solution was found.

    Other sets are tried for the robots that fail the check (if the law is linear), or while directions of sliding turn. K
    keeps the factor.
    """
    law, go = problem.friction, carry(active)
    if law.LINEAR:
        name_active_set(problem, start, end, active)
    for t in loop(ROUNDS * law.TRIES + end - start):
        here = select(work.left.value > 0.0, select(to_real(t) < work.tries, go.value, 0.0), 0.0)
        for _ in when_any(here > 0.5):
            turned = carry(0.0)
            if not law.LINEAR:  # before each try, so that K is always of the set that is named
                name_active_set(problem, start, end, here)
            build(problem, start, end)
            factor(problem, start, end)
            for c in problem.members(start, end):
                problem.row[c].x = right_side(problem, c, end)
            solve(problem, start, end)
            for c in problem.members(start, end):
                row = problem.row[c]
                lam, turn = law.settle(row, row.x)
                row.lam = select(here * row.member > 0.5, lam, row.lam)
                turned.value = maximum(turned.value, row.member * turn)
            work.left.value = work.left.value - here * work.cost
            if law.LINEAR:
                bad, worst = check(problem, start, end, tolerance)
                go.value = select(here > 0.5, bad, go.value)
                exchange(problem, start, end, select(here > 0.5, bad, 0.0), worst)
            else:
                go.value = select(here > 0.5, yes(turned.value > TURN[target().dtype]), go.value)
    if law.LINEAR:
        return go.value
    bad, _ = check(problem, start, end, tolerance)
    return select(active > 0.5, bad, 0.0)


def exchange(problem: ContactProblem, start: Any, end: Any, go: Any, worst: Any) -> None:
    """Move the worst row of the members to the other side, for the robots with go > 1/2; x of each contact has its
    violations."""
    for _ in when_any(go > 0.5):
        for c in problem.members(start, end):
            row = problem.row[c]
            here = yes(go * row.member > 0.5)
            hit = row.x.map(lambda x, here: yes(x >= worst) * here, Vec3(here, here, here))
            row.active, row.slide_sign = problem.friction.exchanged(row, row.lam, hit)


def name_active_set(problem: ContactProblem, start: Any, end: Any, go: Any) -> None:
    """Determine active and slide_sign of each contact, for the robots with go > 1/2."""
    for c in problem.members(start, end):
        row = problem.row[c]
        lam, limit = row.lam, row.mu * row.lam.x + row.bound
        active, sign = problem.friction.active_set(lam, limit, partial(residual, problem, c, end))
        named = go * row.member > 0.5
        row.active, row.slide_sign = select(named, active, row.active), select(named, sign, row.slide_sign)


def build(problem: ContactProblem, start: Any, end: Any) -> None:
    """K = C A E on the active unknowns, the identity on the others."""
    law = problem.friction
    for c in problem.members(start, end):
        row = problem.row[c]
        for d in problem.members(start, end):
            at = problem.block(c, d)
            A, across = problem.A.struct(at, Mat3).leaves(), problem.row[d]
            AE = [law.extend_transposed(across, Vec3(*A[3 * r : 3 * r + 3])) for r in range(3)]
            columns = zip(*(x.leaves() for x in AE), strict=True)
            problem.K.put(at, Mat3.columns(*(law.restrict(row, Vec3(*column)) for column in columns)))
        at, active = problem.block(c, c), row.active
        idle = Vec3(1.0 - active.x, 1.0 - active.y + law.compliance(row), 1.0 - active.z)
        own = problem.K.struct(at, Mat3)
        problem.K.put(at, own + Mat3(idle.x, 0.0, 0.0, 0.0, idle.y, 0.0, 0.0, 0.0, idle.z))


def right_side(problem: ContactProblem, c: Any, end: Any) -> Vec3:
    """-C (b + A of the constant parts of impulses at their bounds). Only joints have such parts: dry friction."""
    total = carry(problem.row[c].b)
    for d in problem.members(problem.joints[problem.of_island[c]], end):
        other = problem.row[d]
        A = problem.A.struct(problem.block(c, d), Mat3)
        total.value = total.value + A @ Vec3(0.0, other.slide_sign.y * other.bound, other.slide_sign.z * other.bound)
    return -problem.friction.restrict(problem.row[c], total.value)


def check(problem: ContactProblem, start: Any, end: Any, tolerance: Any) -> tuple[Any, Any]:
    """Return 1 where a row violates its condition by more than the tolerance (a velocity) or is NaN, and the worst violation.

    x of each contact has the violations of its rows. Active rows were solved for, so their velocity is zero to rounding; a
    wide bound detects a failed solve.
    """
    total, worst = carry(0.0), carry(0.0)
    for c in problem.members(start, end):
        row = problem.row[c]
        w, lam, active, b = residual(problem, c, end), row.lam, row.active, row.b
        limit = row.mu * maximum(lam.x, 0.0) + row.bound
        normal = positive(select(active.x > 0.5, -(lam.x / row.inv.x), -(w.x + tolerance)))
        faults = Vec3(normal, *problem.friction.faults(row, w, lam, limit, tolerance))
        row.x = select(row.member > 0.5, faults, Vec3.zero())
        for fault in row.x.leaves():
            total.value = total.value + fault
            worst.value = maximum(worst.value, fault)
        for v, drive in zip(problem.friction.restrict(row, w).leaves(), b.leaves(), strict=True):
            beside = positive(abs(v) - (100.0 * tolerance + 1e-4 * abs(drive)))
            total.value = total.value + select(row.member > 0.5, beside, 0.0)
    return select(total.value <= 0.0, 0.0, 1.0), worst.value


# -- 3x3-block LU ----------------------------------------------------------------------------------------------------------
def inverse(a: Mat3) -> Mat3:
    x, y, z = (Vec3(*a.leaves()[3 * r : 3 * r + 3]) for r in range(3))
    yz, zx, xy = cross(y, z), cross(z, x), cross(x, y)
    return Mat3.columns(yz, zx, xy) / dot(x, yz)


def factor(problem: ContactProblem, start: Any, end: Any) -> None:
    """K = L U in place, inverses of the pivots on the diagonal."""
    K = problem.K
    for p in loop(start, end):
        k = problem.order[p]
        pivot = inverse(K.struct(problem.block(k, k), Mat3))
        K.put(problem.block(k, k), pivot)
        for r in problem.members(p + 1, end):
            f = K.struct(problem.block(r, k), Mat3) @ pivot
            K.put(problem.block(r, k), f)
            for s in problem.members(p + 1, end):
                at = problem.block(r, s)
                K.put(at, K.struct(at, Mat3) - f @ K.struct(problem.block(k, s), Mat3))


def _substitute(problem: ContactProblem, r: Any, first: Any, end: Any) -> Vec3:
    """x_r minus the contribution of the blocks first .. end of its row."""
    x = carry(problem.row[r].x)
    for k in problem.members(first, end):
        x.value = x.value - problem.K.struct(problem.block(r, k), Mat3) @ problem.row[k].x
    return x.value


def _substitute_transposed(problem: ContactProblem, r: Any, first: Any, end: Any) -> Vec3:
    """nu_r minus the contribution of the blocks first .. end of its column."""
    x = carry(problem.row[r].nu)
    for k in problem.members(first, end):
        x.value = x.value - problem.K.struct(problem.block(k, r), Mat3).T @ problem.row[k].nu
    return x.value


def solve(problem: ContactProblem, start: Any, end: Any) -> None:
    """x <- K^-1 x"""
    for p in loop(start, end):
        r = problem.order[p]
        problem.row[r].x = _substitute(problem, r, start, p)
    for p in loop(start, end, inwards=True):
        r = problem.order[p]
        pivot = problem.K.struct(problem.block(r, r), Mat3)
        problem.row[r].x = pivot @ _substitute(problem, r, p + 1, end)


def solve_transposed(problem: ContactProblem, start: Any, end: Any) -> None:
    """nu <- K^-T nu"""
    for p in loop(start, end):
        r = problem.order[p]
        pivot = problem.K.struct(problem.block(r, r), Mat3)
        problem.row[r].nu = pivot.T @ _substitute_transposed(problem, r, start, p)
    for p in loop(start, end, inwards=True):
        r = problem.order[p]
        problem.row[r].nu = _substitute_transposed(problem, r, p + 1, end)
