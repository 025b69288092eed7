"""Newton's method for the soft law, in the primal  (theory 9.8, 9.9).

    a = argmin  |a - a0|_M^2/2 + s(J a - aref):      H a' = tau + J^T (f + K J a),   H = M + J^T K J

The first step, from a = 0, is taken in full, so a state has one solution to the bit, independent of history. Afterwards
z with M (a - a0) = J^T z is known, so that the line search needs M through rows only. A SIMD lane that has converged is
frozen.

Tangents are those of one additional full step: at the solution it returns to the solution for any perturbation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....compiler import carry, loop, maximum, select, sqrt, steady, target, when_any
from ...context import Step
from . import coupled
from .factor import assemble, factor_solve
from .families import Motions, every_row

SEARCHES = 10  # largest number of evaluations of a line search
LONGEST = 16.0  # largest step length
ENOUGH = 1e-2  # fraction of the initial slope at which a search ends
FINE = {"f64": 1e-10, "f32": 1e-5}  # of |f|| |z - f| relative to |f| at convergence
STILL = {"f64": 1e-4, "f32": 1e-2}  # m/s^2 or rad/s^2, floor of the size of accelerations
LEAST = {"f64": 1e-4, "f32": 1e-1}  # m/s^2, floor of the response of a row; less is rounding


class Along(NamedTuple):
    """Sums over all rows along the trial step: z . Jd,  (z' - z) . Jd,  -f . Jd at its start and at its end."""

    linear: Any
    quadratic: Any
    at_start: Any
    at_end: Any


def newton(s: Step) -> None:
    """Compute the accelerations problem.accel and the forces of all rows."""
    problem = s.constraints
    for i in loop(s.model.nl):
        problem.base[i].F = s.link[i].F
    for k in loop(s.model.nv):
        problem.accel[k] = 0.0
    stiff = carry(0.0)
    for family, n, row in every_row(s):
        y, D = -row.ref, row.D
        row.y, row.z = y, y * 0.0
        row.f, row.K = family.force_and_stiffness(s, n, row, y)
        stiff.value = stiff.value + D * D
    if problem.has("couplings"):
        for _ in when_any(problem.coupled[0] > 0.5):
            coupled.find_sparsity(s)
    going, first, left = carry(1.0), carry(1.0), carry(0.0)
    kind = target().dtype
    fine, floor = FINE[kind], LEAST[kind] * LEAST[kind] * stiff.value
    for _ in _iterations(problem.iterations, going):
        for _ in when_any(going.value > 0.5):
            assemble(s, with_forces=True)
            factor_solve(s, problem.joint_force, problem.trial)
            along = _try(s)
            start = along.linear + along.at_start
            end = along.linear + along.quadratic + along.at_end
            enough, alpha = ENOUGH * abs(start), carry(1.0)
            # the full step, unless its slope shows a minimum elsewhere; a search within rounding error would be
            # arbitrary
            rounding = 1e-13 if kind == "f64" else 1e-5
            noise = rounding * (abs(along.linear) + abs(along.at_start))
            elsewhere = select(abs(end) > enough, select(abs(start) > noise, going.value, 0.0), 0.0)
            needed = select(first.value > 0.5, 0.0, elsewhere)
            for _ in when_any(needed > 0.5):
                _search(s, along, (end, enough), needed, alpha)
            error, size, change, whole = _move(s, select(going.value > 0.5, steady(alpha.value), 0.0))
            size = size + floor
            if problem.has("stiff"):
                stiff = problem.stiff[0] > 0.5
                error, size = select(stiff, change, error), select(stiff, whole + STILL[kind] ** 2, size)
            left.value = select(going.value > 0.5, sqrt(error / maximum(size, 1e-30)), left.value)
            going.value = select(error <= fine * fine * size, 0.0, going.value)  # NaN stays active and is reported
            first.value = 0.0
    if target().tangents:
        assemble(s, with_forces=True)
        factor_solve(s, problem.joint_force, problem.trial)
        _try(s)
        _move(s, 1.0)
    # the residual is reported for lanes that did not converge
    worst = select(going.value > 0.5, left.value, 0.0)
    status = problem.status
    status[0] = select(worst >= 0.0, maximum(status[0], worst), worst)


def _iterations(count: int, going: carry) -> Iterator[None]:
    """Repeat `count` times, in blocks; after convergence of all lanes the remaining iterations cost almost nothing."""
    block = next(n for n in range(min(10, count), 0, -1) if count % n == 0)
    for _ in loop(count // block):
        for _ in when_any(going.value > 0.5):
            for _ in loop(block):
                yield


def _try(s: Step) -> Along:
    """Compute d = J (a' - a) of every row for the full step to problem.trial, and the linearized forces there."""
    sums = [carry(0.0) for _ in range(4)]
    trial = Motions("y", s.constraints.trial)
    for family, n, row in every_row(s):
        y, f = row.y, row.f
        end = family.jacobian_product(s, n, row, trial) - row.ref
        d = end - y
        ahead = f - family.times(row.K, d)
        row.d, row.ahead = d, ahead
        at_end, _ = family.force_and_stiffness(s, n, row, end)
        z = row.z
        for total, force in zip(sums, (z, ahead - z, -f, -at_end), strict=True):
            total.value = total.value + family.dot(force, d)
    return Along(*(total.value for total in sums))


def _slope(s: Step, alpha: Any) -> tuple[Any, Any]:
    """Return -f . Jd and Jd . K Jd at step length alpha."""
    total, curve = carry(0.0), carry(0.0)
    for family, n, row in every_row(s):
        d = row.d
        f, K = family.force_and_stiffness(s, n, row, row.y + d * alpha)
        total.value = total.value - family.dot(f, d)
        curve.value = curve.value + family.dot(family.times(K, d), d)
    return total.value, curve.value


def _search(s: Step, along: Along, of: tuple[Any, Any], needed: Any, alpha: carry) -> None:
    """Find the zero of the increasing slope along the step by Newton's method with bisection  (theory 9.10).

    The bracket is halved if an iteration does not halve the slope, as beside the apex of a cone.
    """
    end, enough = of
    quadratic = maximum(along.quadratic, 0.0)
    low, high, value, open_ = carry(0.0), carry(LONGEST), carry(end), carry(needed)
    steep = carry(4.0 * abs(end))
    rate = carry(_slope(s, 1.0)[1])
    for _ in loop(SEARCHES):
        for _ in when_any(open_.value > 0.5):
            at, slope = alpha.value, value.value
            low.value = select(slope < 0.0, at, low.value)
            high.value = select(slope < 0.0, high.value, at)
            step = at - slope / maximum(quadratic + rate.value, 1e-30)
            useful = (step > low.value) & (step < high.value) & (abs(slope) < 0.5 * steep.value)
            new = select(open_.value > 0.5, select(useful, step, 0.5 * (low.value + high.value)), at)
            alpha.value, steep.value = new, abs(slope)
            pressed, rate.value = _slope(s, new)
            value.value = along.linear + new * quadratic + pressed
            open_.value = select(abs(value.value) > enough, open_.value, 0.0)


def _move(s: Step, alpha: Any) -> tuple[Any, Any, Any, Any]:
    """Take the step. Return |z - f|^2 and |f|^2 over all rows, |a' - a|^2 of the full step, and |a'|^2."""
    problem, error, size, change, whole = s.constraints, *(carry(0.0) for _ in range(4))
    for family, n, row in every_row(s):
        y, z = row.y + row.d * alpha, row.z + (row.ahead - row.z) * alpha
        f, K = family.force_and_stiffness(s, n, row, y)
        row.y, row.z, row.f, row.K = y, z, f, K
        error.value = error.value + family.dot(z - f, z - f)
        size.value = size.value + family.dot(f, f)
    for k in loop(s.model.nv):
        step = problem.trial[k] - problem.accel[k]
        if problem.has("stiff"):
            change.value = change.value + step * step
            whole.value = whole.value + problem.trial[k] * problem.trial[k]
        problem.accel[k] = problem.accel[k] + alpha * step
    return error.value, size.value, change.value, whole.value
