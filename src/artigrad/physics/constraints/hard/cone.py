"""Circular friction cone: both tangents together,  |lam_t| <= limit = mu lam_n + bound  (theory 5.8, 5.12).

A contact sticks (w_t = 0), or slides with the impulse d limit opposite to its slip velocity w_t. A sliding contact acts as a
compliant row along d' = (-d2, d1). `active` = (pushes, sticks or slides, sticks); `slide_sign` = (|w_t|/limit, d1, d2) where
it slides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Row, maximum, select, sqrt, vjp_of
from ...spatial import Mat3, Vec3
from .update import Tangents, Update, positive

LINEAR = False  # the direction of sliding is not linear: an active set is solved by Newton's method
TRIES = 6  # its steps in the first round
EDGE = 1.0 - 1e-6  # of the bound: what sticks is below it
TINY = 1e-30


def _length(x: Any, y: Any) -> Any:
    return sqrt(x * x + y * y)


# -- sweeps --------------------------------------------------------------------------------------------------------------
def steps(A: Mat3) -> Vec3:
    """1/A_nn, and one step for both tangents: only then is the fixed point against the slip. It is 1/|A_t| with the
    Frobenius norm, which is at least the largest eigenvalue and, unlike sums of absolute values, smooth."""
    rho = 1.0 / _norm(A)
    return Vec3(1.0 / A.xx, rho, rho)


def _norm(A: Mat3) -> Any:
    return sqrt(A.yy * A.yy + A.zz * A.zz + 2.0 * (A.yz * A.yz))


@vjp_of(steps)
def steps_vjp(A: Mat3, inv_bar: Vec3) -> Mat3:
    inv = steps(A)
    normal, norm_bar = -(inv_bar.x * inv.x * inv.x), -((inv_bar.y + inv_bar.z) * inv.y * inv.y)
    scale = norm_bar * inv.y  # over the norm
    return Mat3(normal, 0.0, 0.0, 0.0, scale * A.yy, 2.0 * scale * A.yz, 0.0, 0.0, scale * A.zz)


def tangents(x: Update) -> Tangents:
    """Return the tangents after one update with the change dn of the normal: a step, and the nearest point of the disc."""
    A, w, lam, inv, dn = x.A, x.w, x.lam, x.inv, x.dn
    t1, t2 = lam.y - (w.y + A.yx * dn) * inv.y, lam.z - (w.z + A.zx * dn) * inv.z
    r = _length(t1, t2)
    cut = select(r > x.limit, x.limit / maximum(r, TINY), 1.0)
    return Tangents(t1 * cut, t2 * cut)


@vjp_of(tangents)
def tangents_vjp(x: Update, y_bar: Tangents) -> Update:
    A, w, lam, inv, dn, limit = x.A, x.w, x.lam, x.inv, x.dn, x.limit
    w_1, w_2 = w.y + A.yx * dn, w.z + A.zx * dn
    t1, t2 = lam.y - w_1 * inv.y, lam.z - w_2 * inv.z
    r = maximum(_length(t1, t2), TINY)
    outside = r > limit

    d1, d2 = t1 / r, t2 / r
    along = d1 * y_bar.t1 + d2 * y_bar.t2
    shrink = limit / r
    t1_bar = select(outside, shrink * (y_bar.t1 - d1 * along), y_bar.t1)
    t2_bar = select(outside, shrink * (y_bar.t2 - d2 * along), y_bar.t2)
    s_1, s_2 = -(t1_bar * inv.y), -(t2_bar * inv.z)
    return Update(
        Mat3(0.0, 0.0, 0.0, s_1 * dn, 0.0, 0.0, s_2 * dn, 0.0, 0.0),
        Vec3(0.0, s_1, s_2),
        Vec3(0.0, t1_bar, t2_bar),
        Vec3(0.0, -(t1_bar * w_1), -(t2_bar * w_2)),
        s_1 * A.yx + s_2 * A.zx,
        select(outside, along, 0.0),
    )


def margin(w: Vec3, lam: Vec3, inv: Vec3, limit: Any, far: float) -> Any:
    """Distance of the tangents to the other regime (sticking or sliding), m/s."""
    r = _length(lam.y, lam.z)
    room = select(r < limit * EDGE, (limit - r) / inv.y, _length(w.y, w.z))
    return select(limit > 0.0, room, far)


def distances(w: Vec3, lam: Vec3, limit: Any, far: float) -> tuple[Any, Any]:
    """Distances of the tangents to another active set: of impulses where they stick, of velocities where they slide."""
    r = _length(lam.y, lam.z)
    distance = select(limit > 0.0, select(r < limit * EDGE, limit - r, _length(w.y, w.z)), far)
    return distance, distance


def changes(lam: Vec3, limit: Any, dlam: Vec3, dw: Vec3, dlimit: Any) -> tuple[Any, Any]:
    """Bounds of the changes of `distances`."""
    sticks = _length(lam.y, lam.z) < limit * EDGE
    change = select(sticks, abs(dlimit) + _length(dlam.y, dlam.z), _length(dw.y, dw.z))
    return change, change


# -- active set ------------------------------------------------------------------------------------------------------------
def active_set(lam: Vec3, limit: Any, w: Callable[[], Vec3]) -> tuple[Vec3, Vec3]:
    """(active, slide_sign) at impulses lam"""
    live = select(limit > 0.0, 1.0, 0.0)
    r, slip = _length(lam.y, lam.z), w()
    stick = live * select(r < limit * EDGE, 1.0, 0.0)
    slide = live - stick
    scale = slide / maximum(r, TINY)
    speed = slide * _length(slip.y, slip.z) / maximum(limit, TINY)
    return Vec3(select(lam.x > 0.0, 1.0, 0.0), live, stick), Vec3(speed, lam.y * scale, lam.z * scale)


def restrict(row: Row, w: Vec3) -> Vec3:
    """C w: the velocities that the active set makes zero; where it slides, that along d'"""
    active, sign = row.active, row.slide_sign
    return Vec3(active.x * w.x, active.z * w.y + sign.y * w.z - sign.z * w.y, active.z * w.z)


def restrict_transposed(row: Row, nu: Vec3) -> Vec3:
    """C^T nu"""
    active, sign = row.active, row.slide_sign
    return Vec3(active.x * nu.x, active.z * nu.y - sign.z * nu.y, active.z * nu.z + sign.y * nu.y)


def extend_transposed(row: Row, y: Vec3) -> Vec3:
    """E^T y, where lam = E x: sliding impulses follow their normal along d, and the second unknown along d'."""
    active, sign = row.active, row.slide_sign
    return Vec3(
        y.x + row.mu * (sign.y * y.y + sign.z * y.z),
        active.z * y.y + sign.y * y.z - sign.z * y.y,
        active.z * y.z,
    )


def extend(row: Row, x: Vec3) -> Vec3:
    """E x: the change of impulses for a change of the unknowns"""
    active, sign, limit = row.active, row.slide_sign, row.mu * x.x
    return Vec3(
        x.x,
        active.z * x.y - sign.z * x.y + sign.y * limit,
        active.z * x.z + sign.y * x.y + sign.z * limit,
    )


def compliance(row: Row) -> Any:
    """Addition to the diagonal of A for the second unknown: |w_t|/limit where the contact slides."""
    return row.slide_sign.x


def settle(row: Row, x: Vec3) -> tuple[Vec3, Any]:
    """Return the impulses of the unknowns x, cut to the cone where they slide, and the turn of their direction."""
    active, sign = row.active, row.slide_sign
    limit, slides = row.mu * x.x + row.bound, active.y - active.z > 0.5
    t1, t2 = active.z * x.y - sign.z * x.y + sign.y * limit, active.z * x.z + sign.y * x.y + sign.z * limit
    cut = select(slides, limit / maximum(_length(t1, t2), TINY), 1.0)
    turn = select(slides, abs(x.y) / maximum(abs(limit), TINY), 0.0)
    return Vec3(x.x, t1 * cut, t2 * cut), turn


def faults(row: Row, w: Vec3, lam: Vec3, limit: Any, tolerance: Any) -> tuple[Any, Any]:
    """Return two violations, m/s: of a sticking contact beyond its bound or a sliding one that pushes along its slip, and the
    same across."""
    active, sign, drive = row.active, row.slide_sign, row.b
    beyond = (_length(lam.y, lam.z) - limit) / row.inv.y - tolerance
    along = sign.y * w.y + sign.z * w.z - tolerance
    across = abs(lam.y * w.z - lam.z * w.y) / maximum(limit, TINY)
    across = across - (100.0 * tolerance + 1e-4 * _length(drive.y, drive.z))
    return positive(select(active.z > 0.5, beyond, along)), (active.y - active.z) * positive(across)
