"""Solvers of the contact problem  w = A lam + b,  per group of contacts  (theory 5.6, 5.7).

    normals:   0 <= lam_n, 0 <= w_n, one of them zero
    tangents:  |lam_t| <= mu lam_n + bound;  w_t = 0 inside,  w_t against lam_t at the bound

`gauss_seidel` sweeps a fixed number of times. `hybrid` lets a few sweeps name the active set, solves that set exactly by
a 3x3-block LU, and checks every row; what fails sweeps on from there. A robot that is done is frozen: its neighbours in
the pack do not change its bits.
"""

from __future__ import annotations

from typing import Any

from ..spatial import Mat3, Vec3, cross, dot
from ..staging import Reals, carry, clamp, loop, maximum, minimum, select, to_real, when_any
from .tables import Contacts

ROUNDS, SWEEPS = 12, 3
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


def sweep(contacts: Contacts, start: Any, end: Any, go: Any, relax: Any = 1.0) -> None:
    """One projected Gauss-Seidel sweep over a group, for the robots with go > 1/2. With relax < 1 shorter steps are taken:
    where contacts slide, full ones can go back and forth for ever."""
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv
        A = contacts.A.struct(contacts.block(c, c), Mat3)
        inv = inv * relax
        n = maximum(lam.x - w.x * inv.x, 0.0)
        dn = n - lam.x
        most = row.mu * n + row.bound
        t1 = clamp(lam.y - (w.y + A.yx * dn) * inv.y, -most, most)
        d1 = t1 - lam.y
        t2 = clamp(lam.z - (w.z + A.zx * dn + A.zy * d1) * inv.z, -most, most)
        row.lam = select(go > 0.5, Vec3(n, t1, t2), lam)


def violation(contacts: Contacts, start: Any, end: Any) -> Any:
    """How far a group is from solved, m/s: what one more projection of each row would change, as a velocity."""
    worst = carry(0.0)
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv
        most = row.mu * lam.x + row.bound
        changes = [(maximum(lam.x - w.x * inv.x, 0.0) - lam.x) / inv.x]
        for l, v, i in ((lam.y, w.y, inv.y), (lam.z, w.z, inv.z)):
            changes.append((clamp(l - v * i, -most, most) - l) / i)
        for change in changes:
            worst.value = maximum(worst.value, abs(change))
    return worst.value


def margin(contacts: Contacts) -> Any:
    """How far the active set is from changing, m/s: the least of what separated normals part by, pushing ones press by,
    sticking tangents have left, and sliding ones slip by. Impulses count by the velocity they could undo."""
    least = carry(FAR)
    for c in loop(contacts.group[contacts.groups]):
        row, end = contacts.row[c], contacts.end(c)
        w, lam, inv = residual(contacts, c, end), row.lam, row.inv
        least.value = minimum(least.value, select(lam.x > 0.0, lam.x / inv.x, abs(w.x)))
        most = row.mu * lam.x + row.bound
        for l, v, i in ((lam.y, w.y, inv.y), (lam.z, w.z, inv.z)):
            room = select(abs(l) < most, (most - abs(l)) / i, abs(v))
            least.value = minimum(least.value, select(most > 0.0, room, FAR))
    return least.value


def gauss_seidel(contacts: Contacts, sweeps: int, tape: Reals | None = None) -> None:
    """A fixed number of sweeps over every group; the tape keeps the impulses that each sweep found."""
    clear_impulses(contacts)
    for g in loop(contacts.groups):
        start, end = contacts.group[g], contacts.group[g + 1]
        for s in loop(sweeps):
            if tape is not None:
                for c in loop(start, end):
                    tape.put((s * contacts.cap + c) * 3, contacts.row[c].lam)
            sweep(contacts, start, end, 1.0)
        contacts.status[0] = maximum(contacts.status[0], violation(contacts, start, end))
        name_active_set(contacts, start, end, None)
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
                name_active_set(contacts, start, end, active)
                build(contacts, start, end)
                factor(contacts, start, end)
                for c in loop(start, end):
                    row = contacts.row[c]
                    row.old, row.lam = row.lam, right_side(contacts, c, end)
                solve(contacts, start, end)
                spread(contacts, start, end)
                bad = check(contacts, start, end, tolerance)
                failed = select(bad > 0.5, active, 0.0)
                for c in loop(start, end):  # robots that failed go on from their sweeps; those done before keep theirs
                    row = contacts.row[c]
                    keep = select(active > 0.5, failed, 1.0)
                    row.lam = select(keep > 0.5, row.old, row.lam)
                go.value = failed
        for _ in when_any(go.value > 0.5):  # what is left are the sweeps' impulses: say how good they are
            left = select(go.value > 0.5, violation(contacts, start, end), 0.0)
            contacts.status[0] = maximum(contacts.status[0], left)


def name_active_set(contacts: Contacts, start: Any, end: Any, go: Any) -> None:
    """on = 1 for normals that push and tangents inside their bound; side = +-1 for tangents at it."""
    for c in loop(start, end):
        row = contacts.row[c]
        lam = row.lam
        most = row.mu * lam.x + row.bound
        on_n = select(lam.x > 0.0, 1.0, 0.0)
        live = select(most > 0.0, 1.0, 0.0)
        stick = [live * select(abs(x) < most, 1.0, 0.0) for x in (lam.y, lam.z)]
        side = [(live - s) * select(x > 0.0, 1.0, -1.0) for s, x in zip(stick, (lam.y, lam.z), strict=True)]
        on, sides = Vec3(on_n, *stick), Vec3(0.0, *side)
        if go is None:
            row.on, row.side = on, sides
        else:
            row.on, row.side = select(go > 0.5, on, row.on), select(go > 0.5, sides, row.side)


def _columns(contacts: Contacts, d: Any, A: Mat3) -> Mat3:
    """A E: a sliding tangent follows its normal."""
    row = contacts.row[d]
    s1, s2 = row.side.y * row.mu, row.side.z * row.mu
    a = A.leaves()
    out: list[Any] = []
    for r in range(3):
        n, t1, t2 = a[3 * r : 3 * r + 3]
        out += [n + s1 * t1 + s2 * t2, t1, t2]
    return Mat3(*out)


def build(contacts: Contacts, start: Any, end: Any) -> None:
    """K = C A E on the active rows and columns, the identity on the others."""
    for c in loop(start, end):
        on = contacts.row[c].on.leaves()
        for d in loop(start, end):
            across = contacts.row[d].on.leaves()
            full = _columns(contacts, d, contacts.A.struct(contacts.block(c, d), Mat3)).leaves()
            kept = [on[r] * across[s] * full[3 * r + s] for r in range(3) for s in range(3)]
            contacts.K.put(contacts.block(c, d), Mat3(*kept))
        at = contacts.block(c, c)
        own = contacts.K.struct(at, Mat3).leaves()
        for r in range(3):
            own[4 * r] = own[4 * r] + (1.0 - on[r])
        contacts.K.put(at, Mat3(*own))


def right_side(contacts: Contacts, c: Any, end: Any) -> Vec3:
    """-(b + A of the constant parts of impulses at their bounds), on active rows."""
    row = contacts.row[c]
    total = carry(row.b)
    for d in loop(contacts.start[c], end):
        other = contacts.row[d]
        A = contacts.A.struct(contacts.block(c, d), Mat3)
        total.value = total.value + A @ Vec3(0.0, other.side.y * other.bound, other.side.z * other.bound)
    return -total.value.map(lambda x, m: x * m, row.on)


def spread(contacts: Contacts, start: Any, end: Any) -> None:
    """From the unknowns of the active set to all impulses."""
    for c in loop(start, end):
        row = contacts.row[c]
        x, side = row.lam, row.side
        most = row.mu * x.x + row.bound
        row.lam = Vec3(x.x, x.y + side.y * most, x.z + side.z * most)


def check(contacts: Contacts, start: Any, end: Any, tolerance: Any) -> Any:
    """1 where some row breaks its condition by more than the tolerance (a velocity), or is not a number.

    Active rows were solved for, so their velocity is zero to rounding; a wide bound catches a solve that went wrong.
    """
    bad = carry(0.0)
    for c in loop(start, end):
        row = contacts.row[c]
        w, lam, on, side, inv, b = residual(contacts, c, end), row.lam, row.on, row.side, row.inv, row.b
        fine = select(on.x > 0.5, _yes(lam.x >= 0.0), _yes(w.x >= -tolerance))
        most = row.mu * maximum(lam.x, 0.0) + row.bound
        for l, v, stick, s, i in zip(*(x.leaves()[1:] for x in (lam, w, on, side, inv)), strict=True):
            inside, against = _yes(abs(l) <= most + tolerance * i), _yes(s * v <= tolerance)
            fine = fine * (1.0 - stick * (1.0 - inside)) * (1.0 - abs(s) * (1.0 - against))
        for v, active, drive in zip(w.leaves(), on.leaves(), b.leaves(), strict=True):
            solved = _yes(abs(v) <= 100.0 * tolerance + 1e-4 * abs(drive))
            fine = fine * (1.0 - active * (1.0 - solved))
        bad.value = bad.value + (1.0 - fine)
    return select(bad.value <= 0.5, 0.0, 1.0)


def _yes(condition: Any) -> Any:
    """1 where a condition holds, 0 where it does not or compares with NaN."""
    return select(condition, 1.0, 0.0)


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
    """lam_r minus what the blocks first .. end of its row make of theirs."""
    x = carry(contacts.row[r].lam)
    for k in loop(first, end):
        x.value = x.value - contacts.K.struct(contacts.block(r, k), Mat3) @ contacts.row[k].lam
    return x.value


def _substitute_transposed(contacts: Contacts, r: Any, first: Any, end: Any) -> Vec3:
    """nu_r minus what the blocks first .. end of its column make of theirs."""
    x = carry(contacts.row[r].nu)
    for k in loop(first, end):
        x.value = x.value - contacts.K.struct(contacts.block(k, r), Mat3).T @ contacts.row[k].nu
    return x.value


def solve(contacts: Contacts, start: Any, end: Any) -> None:
    """lam <- K^-1 lam"""
    for r in loop(start, end):
        contacts.row[r].lam = _substitute(contacts, r, start, r)
    for r in loop(start, end, inwards=True):
        pivot = contacts.K.struct(contacts.block(r, r), Mat3)
        contacts.row[r].lam = pivot @ _substitute(contacts, r, r + 1, end)


def solve_transposed(contacts: Contacts, start: Any, end: Any) -> None:
    """nu <- K^-T nu"""
    for r in loop(start, end):
        pivot = contacts.K.struct(contacts.block(r, r), Mat3)
        contacts.row[r].nu = pivot.T @ _substitute_transposed(contacts, r, start, r)
    for r in loop(start, end, inwards=True):
        contacts.row[r].nu = _substitute_transposed(contacts, r, r + 1, end)
