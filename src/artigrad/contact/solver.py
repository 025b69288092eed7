"""Solvers of the contact problem  w = A lam + b,  per group of contacts  (theory 5.6, 5.7).

    normals:   0 <= lam_n, 0 <= w_n, one of them zero
    tangents:  |lam_t| <= mu lam_n + bound;  w_t = 0 inside,  w_t against lam_t at the bound

What |lam_t| is and how it is bounded is the law of friction: `pyramid` or `cone`.

`gauss_seidel` sweeps until nothing moves by more than the tolerance, at most a given number of times. `hybrid` lets a few
sweeps name the active set, solves that set exactly by a 3x3-block LU, and checks every row. Where the check fails the worst
row changes sides and the set is solved again; what still fails after some exchanges sweeps on from before them. A robot
that is done is frozen: its neighbours in the pack do not change its bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..spatial import Mat3, Vec3, cross, dot
from ..staging import carry, clamp, loop, maximum, minimum, select, target, to_real, when_any
from ..staging.memory import Row
from .tables import Contacts
from .update import positive, yes

ROUNDS, SWEEPS = 12, 3
TURN = {"f64": 1e-7, "f32": 1e-5}  # rad, by which directions of sliding may still turn
FAR = 1e3  # m/s, the margin of what touches nothing


def clear_impulses(contacts: Contacts) -> None:
    for c in loop(contacts.group[contacts.groups]):
        contacts.row[c].lam = Vec3.zero()


def residual(contacts: Contacts, c: Any, end: Any) -> Vec3:
    """w_c = A lam + b"""
    w = carry(contacts.row[c].b)
    for d in loop(contacts.start[c], end):
        w.value = w.value + contacts.A.struct(contacts.block(c, d), Mat3) @ contacts.row[d].lam
    return w.value


def worse(a: Any, b: Any) -> Any:
    """The larger of two numbers that are not negative; a NaN stays."""
    return select(b >= 0.0, maximum(a, b), b)


def sweep(contacts: Contacts, start: Any, end: Any, go: Any, relax: Any = 1.0, tape: Any = None) -> Any:
    """One projected Gauss-Seidel sweep over a group, for the robots with go > 1/2. With relax < 1 shorter steps are taken:
    where contacts slide, full ones can go back and forth for ever. tape: first row of the tape that is written. Returns
    the largest change, as a velocity."""
    moved = carry(0.0)
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv * relax
        if tape is not None:
            contacts.tape[tape + c].lam, contacts.tape[tape + c].w = lam, w
        n = maximum(lam.x - w.x * inv.x, 0.0)
        A, most = contacts.A.struct(contacts.block(c, c), Mat3), row.mu * n + row.bound
        new = Vec3(n, *contacts.friction.tangents(A, w, lam, inv, n - lam.x, most))
        moved.value = maximum(moved.value, largest_change(row, new - lam))
        row.lam = select(go > 0.5, new, lam)
    return moved.value


def largest_change(row: Row, change: Vec3) -> Any:
    """A change of impulses, as the largest of the velocities that its rows would feel."""
    worst: Any = 0.0
    for x, i in zip(change.leaves(), row.inv.leaves(), strict=True):
        worst = worse(worst, abs(x / i))
    return worst


def violation(contacts: Contacts, start: Any, end: Any) -> Any:
    """How far a group is from solved, m/s: what one more update of each contact would change, as a velocity."""
    worst = carry(0.0)
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv
        n, A = maximum(lam.x - w.x * inv.x, 0.0), contacts.A.struct(contacts.block(c, c), Mat3)
        new = Vec3(n, *contacts.friction.tangents(A, w, lam, inv, 0.0, row.mu * lam.x + row.bound))
        worst.value = worse(worst.value, largest_change(row, new - lam))
    return worst.value


def margin(contacts: Contacts) -> Any:
    """How far the active set is from changing, m/s: the least of what separated normals part by, pushing ones press by,
    sticking tangents have left, and sliding ones slip by. Impulses count by the velocity they could undo."""
    least = carry(FAR)
    for c in loop(contacts.group[contacts.groups]):
        row, end = contacts.row[c], contacts.end(c)
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv
        normal = select(lam.x > 0.0, lam.x / inv.x, abs(w.x))
        tangents = contacts.friction.margin(w, lam, inv, row.mu * lam.x + row.bound, FAR)
        least.value = minimum(least.value, minimum(normal, tangents))
    return least.value


def gauss_seidel(contacts: Contacts, sweeps: int, tolerance: Any, tape: bool = False, factored: bool = True) -> None:
    """At most so many sweeps over every group. With `tape` what every update found and how many sweeps were run are kept;
    `factored` leaves the factor of the active set in K, for the implicit way back."""
    clear_impulses(contacts)
    for g in loop(contacts.groups):
        start, end = contacts.group[g], contacts.group[g + 1]
        go, ran = carry(1.0), carry(0.0)
        for s in loop(sweeps):
            for _ in when_any(go.value > 0.5):
                moved = sweep(contacts, start, end, go.value, tape=s * contacts.cap if tape else None)
                ran.value = ran.value + go.value
                go.value = select(moved > tolerance, go.value, 0.0)
        if tape:
            contacts.ran[g] = ran.value
        contacts.status[0] = worse(contacts.status[0], violation(contacts, start, end))
        if factored:
            name_active_set(contacts, start, end, 1.0)
            build(contacts, start, end)
            factor(contacts, start, end)


def hybrid(contacts: Contacts, tolerance: Any) -> None:
    """Sweeps, exact solve of the active set, check; again for the robots that fail the check."""
    clear_impulses(contacts)
    for g in loop(contacts.groups):
        start, end = contacts.group[g], contacts.group[g + 1]
        go = carry(1.0)
        for r in loop(ROUNDS):
            for _ in when_any(go.value > 0.5):
                active = go.value
                relax = 1.0 - 0.3 * clamp(to_real(r), 0.0, 1.0)
                for _ in loop((r + 1) * SWEEPS):
                    sweep(contacts, start, end, active, relax)
                for c in loop(start, end):
                    contacts.row[c].old = contacts.row[c].lam
                failed = solve_active_set(contacts, start, end, active, tolerance)
                for c in loop(start, end):  # robots that failed go on from their sweeps
                    row = contacts.row[c]
                    row.lam = select(failed > 0.5, row.old, row.lam)
                go.value = failed
        for _ in when_any(go.value > 0.5):  # what is left are the sweeps' impulses: say how good they are
            left = select(go.value > 0.5, violation(contacts, start, end), 0.0)
            contacts.status[0] = worse(contacts.status[0], left)
            name_active_set(contacts, start, end, go.value)
            build(contacts, start, end)
            factor(contacts, start, end)


def solve_active_set(contacts: Contacts, start: Any, end: Any, active: Any, tolerance: Any) -> Any:
    """Name the active set at the impulses, and put the impulses that solve it in their place; again with another set for
    the robots that fail the check (where the law is linear), or while directions of sliding turn. K keeps the factor.
    Returns 1 where no solution was found."""
    law, go = contacts.friction, carry(active)
    if law.LINEAR:
        name_active_set(contacts, start, end, active)
    for _ in loop(law.TRIES):
        for _ in when_any(go.value > 0.5):
            here, turned = go.value, carry(0.0)
            if not law.LINEAR:
                name_active_set(
                    contacts, start, end, here
                )  # before each try, so that K is always of the set that is named
            build(contacts, start, end)
            factor(contacts, start, end)
            for c in loop(start, end):
                contacts.row[c].x = right_side(contacts, c, end)
            solve(contacts, start, end)
            for c in loop(start, end):
                row = contacts.row[c]
                lam, turn = law.settle(row, row.x)
                row.lam = select(here > 0.5, lam, row.lam)
                turned.value = maximum(turned.value, turn)
            if law.LINEAR:
                bad, worst = check(contacts, start, end, tolerance)
                go.value = select(bad > 0.5, here, 0.0)
                exchange(contacts, start, end, go.value, worst)
            else:
                go.value = select(turned.value > TURN[target().dtype], here, 0.0)
    if law.LINEAR:
        return go.value
    bad, _ = check(contacts, start, end, tolerance)
    return select(bad > 0.5, active, 0.0)


def exchange(contacts: Contacts, start: Any, end: Any, go: Any, worst: Any) -> None:
    """The worst row of a group changes sides, for the robots with go > 1/2; `check` left in x how bad each row is."""
    for _ in when_any(go > 0.5):
        for c in loop(start, end):
            row = contacts.row[c]
            hit = row.x.map(lambda x: yes(x >= worst) * yes(go > 0.5))
            row.on, row.side = contacts.friction.exchanged(row, row.lam, hit)


def name_active_set(contacts: Contacts, start: Any, end: Any, go: Any) -> None:
    """on and side of each contact, for the robots with go > 1/2."""
    for c in loop(start, end):
        row = contacts.row[c]
        lam, most = row.lam, row.mu * row.lam.x + row.bound
        on, side = contacts.friction.active(lam, most, partial(residual, contacts, c, end))
        row.on, row.side = select(go > 0.5, on, row.on), select(go > 0.5, side, row.side)


def build(contacts: Contacts, start: Any, end: Any) -> None:
    """K = C A E on the active unknowns, the identity on the others."""
    law = contacts.friction
    for c in loop(start, end):
        row = contacts.row[c]
        for d in loop(start, end):
            at = contacts.block(c, d)
            A, across = contacts.A.struct(at, Mat3).leaves(), contacts.row[d]
            AE = [law.extend_transposed(across, Vec3(*A[3 * r : 3 * r + 3])) for r in range(3)]
            columns = zip(*(x.leaves() for x in AE), strict=True)
            contacts.K.put(at, Mat3.columns(*(law.restrict(row, Vec3(*column)) for column in columns)))
        at, on = contacts.block(c, c), row.on
        idle = Vec3(1.0 - on.x, 1.0 - on.y + law.compliance(row), 1.0 - on.z)
        own = contacts.K.struct(at, Mat3)
        contacts.K.put(at, own + Mat3(idle.x, 0.0, 0.0, 0.0, idle.y, 0.0, 0.0, 0.0, idle.z))


def right_side(contacts: Contacts, c: Any, end: Any) -> Vec3:
    """-C (b + A of the constant parts of impulses at their bounds). Only joints have such parts: dry friction."""
    total = carry(contacts.row[c].b)
    for d in loop(contacts.joints[contacts.in_group[c]], end):
        other = contacts.row[d]
        A = contacts.A.struct(contacts.block(c, d), Mat3)
        total.value = total.value + A @ Vec3(0.0, other.side.y * other.bound, other.side.z * other.bound)
    return -contacts.friction.restrict(contacts.row[c], total.value)


def check(contacts: Contacts, start: Any, end: Any, tolerance: Any) -> tuple[Any, Any]:
    """1 where some row breaks its condition by more than the tolerance (a velocity), or is not a number; and by how much
    the worst one does. x of each contact has that of its rows.

    Active rows were solved for, so their velocity is zero to rounding; a wide bound catches a solve that went wrong.
    """
    total, worst = carry(0.0), carry(0.0)
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, on, b = residual(contacts, c, end), row.lam, row.on, row.b
        most = row.mu * maximum(lam.x, 0.0) + row.bound
        normal = positive(select(on.x > 0.5, -(lam.x / row.inv.x), -(w.x + tolerance)))
        row.x = Vec3(normal, *contacts.friction.faults(row, w, lam, most, tolerance))
        for fault in row.x.leaves():
            total.value = total.value + fault
            worst.value = maximum(worst.value, fault)
        for v, drive in zip(contacts.friction.restrict(row, w).leaves(), b.leaves(), strict=True):
            total.value = total.value + positive(abs(v) - (100.0 * tolerance + 1e-4 * abs(drive)))
    return select(total.value <= 0.0, 0.0, 1.0), worst.value


# -- 3x3-block LU ----------------------------------------------------------------------------------------------------------
def inverse(a: Mat3) -> Mat3:
    x, y, z = (Vec3(*a.leaves()[3 * r : 3 * r + 3]) for r in range(3))
    yz, zx, xy = cross(y, z), cross(z, x), cross(x, y)
    return Mat3.columns(yz, zx, xy) / dot(x, yz)


def factor(contacts: Contacts, start: Any, end: Any) -> None:
    """K = L U in place, inverses of the pivots on the diagonal."""
    K = contacts.K
    for k in loop(start, end):
        pivot = inverse(K.struct(contacts.block(k, k), Mat3))
        K.put(contacts.block(k, k), pivot)
        for r in loop(k + 1, end):
            f = K.struct(contacts.block(r, k), Mat3) @ pivot
            K.put(contacts.block(r, k), f)
            for s in loop(k + 1, end):
                at = contacts.block(r, s)
                K.put(at, K.struct(at, Mat3) - f @ K.struct(contacts.block(k, s), Mat3))


def _substitute(contacts: Contacts, r: Any, first: Any, end: Any) -> Vec3:
    """x_r minus what the blocks first .. end of its row make of theirs."""
    x = carry(contacts.row[r].x)
    for k in loop(first, end):
        x.value = x.value - contacts.K.struct(contacts.block(r, k), Mat3) @ contacts.row[k].x
    return x.value


def _substitute_transposed(contacts: Contacts, r: Any, first: Any, end: Any) -> Vec3:
    """nu_r minus what the blocks first .. end of its column make of theirs."""
    x = carry(contacts.row[r].nu)
    for k in loop(first, end):
        x.value = x.value - contacts.K.struct(contacts.block(k, r), Mat3).T @ contacts.row[k].nu
    return x.value


def solve(contacts: Contacts, start: Any, end: Any) -> None:
    """x <- K^-1 x"""
    for r in loop(start, end):
        contacts.row[r].x = _substitute(contacts, r, start, r)
    for r in loop(start, end, inwards=True):
        pivot = contacts.K.struct(contacts.block(r, r), Mat3)
        contacts.row[r].x = pivot @ _substitute(contacts, r, r + 1, end)


def solve_transposed(contacts: Contacts, start: Any, end: Any) -> None:
    """nu <- K^-T nu"""
    for r in loop(start, end):
        pivot = contacts.K.struct(contacts.block(r, r), Mat3)
        contacts.row[r].nu = pivot.T @ _substitute_transposed(contacts, r, start, r)
    for r in loop(start, end, inwards=True):
        contacts.row[r].nu = _substitute_transposed(contacts, r, r + 1, end)
