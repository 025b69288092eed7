"""Friction pyramid of the paper: each tangent has its own bound,  |lam_t| <= limit = mu lam_n + bound  (theory 5.6).

A tangent sticks (w_t = 0), or slides at its bound and follows its normal. `active` marks the rows of the active set:
normals that push, tangents that stick; `slide_sign` is +-1 for a tangent at its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....compiler import Row, clamp, minimum, select, vjp_of
from ...spatial import Mat3, Vec3, bounded_vjp
from .update import Tangents, Update, positive

LINEAR = True  # an active set is solved at once
TRIES = 4  # sets in the first round: the one that is named, and exchanges of its worst row


# -- sweeps --------------------------------------------------------------------------------------------------------------
def steps(A: Mat3) -> Vec3:
    """The step of each row: 1/A_rr"""
    return Vec3(1.0 / A.xx, 1.0 / A.yy, 1.0 / A.zz)


@vjp_of(steps)
def steps_vjp(A: Mat3, inv_bar: Vec3) -> Mat3:
    d = inv_bar.map(lambda x, i: -(x * i * i), steps(A))
    return Mat3(d.x, 0.0, 0.0, 0.0, d.y, 0.0, 0.0, 0.0, d.z)


def tangents(x: Update) -> Tangents:
    """The tangents of one update, one after the other, once the normal has changed by dn."""
    A, w, lam, inv = x.A, x.w, x.lam, x.inv
    t1 = clamp(lam.y - (w.y + A.yx * x.dn) * inv.y, -x.limit, x.limit)
    d1 = t1 - lam.y
    return Tangents(t1, clamp(lam.z - (w.z + A.zx * x.dn + A.zy * d1) * inv.z, -x.limit, x.limit))


@vjp_of(tangents)
def tangents_vjp(x: Update, y_bar: Tangents) -> Update:
    A, w, lam, inv, dn, limit = x.A, x.w, x.lam, x.inv, x.dn, x.limit
    w_1 = w.y + A.yx * dn
    x_1 = lam.y - w_1 * inv.y
    d1 = clamp(x_1, -limit, limit) - lam.y
    w_2 = w.z + A.zx * dn + A.zy * d1
    x_2 = lam.z - w_2 * inv.z

    x_2_bar, low_2, high_2 = bounded_vjp(x_2, -limit, limit, y_bar.t2)
    s_2 = -(x_2_bar * inv.z)
    d1_bar = s_2 * A.zy
    x_1_bar, low_1, high_1 = bounded_vjp(x_1, -limit, limit, y_bar.t1 + d1_bar)
    s_1 = -(x_1_bar * inv.y)
    return Update(
        Mat3(0.0, 0.0, 0.0, s_1 * dn, 0.0, 0.0, s_2 * dn, s_2 * d1, 0.0),
        Vec3(0.0, s_1, s_2),
        Vec3(0.0, x_1_bar - d1_bar, x_2_bar),
        Vec3(0.0, -(x_1_bar * w_1), -(x_2_bar * w_2)),
        s_2 * A.zx + s_1 * A.yx,
        (high_1 - low_1) + (high_2 - low_2),
    )


def margin(w: Vec3, lam: Vec3, inv: Vec3, limit: Any, far: float) -> Any:
    """Distance of the tangents to the other regime (sticking or sliding), m/s."""
    least: Any = far
    for l, v, i in ((lam.y, w.y, inv.y), (lam.z, w.z, inv.z)):
        room = select(abs(l) < limit, (limit - abs(l)) / i, abs(v))
        least = minimum(least, select(limit > 0.0, room, far))
    return least


def distances(w: Vec3, lam: Vec3, limit: Any, far: float) -> tuple[Any, Any]:
    """Distances of the tangents to another active set: of impulses where they stick, of velocities where they slide."""
    first, second = (
        select(limit > 0.0, select(abs(l) < limit, limit - abs(l), abs(v)), far)
        for l, v in ((lam.y, w.y), (lam.z, w.z))
    )
    return first, second


def changes(lam: Vec3, limit: Any, dlam: Vec3, dw: Vec3, dlimit: Any) -> tuple[Any, Any]:
    """Bounds of the changes of `distances`."""
    first, second = (
        select(abs(l) < limit, abs(dlimit) + abs(dl), abs(dv))
        for l, dl, dv in ((lam.y, dlam.y, dw.y), (lam.z, dlam.z, dw.z))
    )
    return first, second


# -- active set ------------------------------------------------------------------------------------------------------------
def active_set(lam: Vec3, limit: Any, w: Callable[[], Vec3]) -> tuple[Vec3, Vec3]:
    """(active, slide_sign) at impulses lam"""
    live = select(limit > 0.0, 1.0, 0.0)
    stick = [live * select(abs(x) < limit, 1.0, 0.0) for x in (lam.y, lam.z)]
    sign = [(live - s) * select(x > 0.0, 1.0, -1.0) for s, x in zip(stick, (lam.y, lam.z), strict=True)]
    return Vec3(select(lam.x > 0.0, 1.0, 0.0), *stick), Vec3(0.0, *sign)


def restrict(row: Row, w: Vec3) -> Vec3:
    """C w: the velocities that the active set makes zero"""
    return w.map(lambda x, active: x * active, row.active)


def restrict_transposed(row: Row, nu: Vec3) -> Vec3:
    """C^T nu"""
    return restrict(row, nu)


def extend_transposed(row: Row, y: Vec3) -> Vec3:
    """E^T y, where lam = E x: a sliding tangent follows its normal. Entries of inactive unknowns are unused."""
    return Vec3(y.x + row.mu * (row.slide_sign.y * y.y + row.slide_sign.z * y.z), y.y, y.z)


def extend(row: Row, x: Vec3) -> Vec3:
    """E x: the change of impulses for a change of the unknowns"""
    limit = row.mu * x.x
    return Vec3(x.x, x.y + row.slide_sign.y * limit, x.z + row.slide_sign.z * limit)


def compliance(row: Row) -> Any:
    """Addition to the diagonal of A for the second unknown."""
    return 0.0


def settle(row: Row, x: Vec3) -> tuple[Vec3, Any]:
    """Return the impulses of the unknowns x, and their difference to those of another round."""
    limit = row.mu * x.x + row.bound
    return Vec3(x.x, x.y + row.slide_sign.y * limit, x.z + row.slide_sign.z * limit), 0.0


def faults(row: Row, w: Vec3, lam: Vec3, limit: Any, tolerance: Any) -> tuple[Any, Any]:
    """Violation of sticking tangents beyond their bound, and of sliding ones that push along the motion, m/s."""
    found: list[Any] = []
    for l, v, stick, i in zip(*(x.leaves()[1:] for x in (lam, w, row.active, row.inv)), strict=True):
        s = row.slide_sign.leaves()[len(found) + 1]
        beyond, along = (abs(l) - limit) / i - tolerance, s * v - tolerance
        found.append(positive(select(stick > 0.5, beyond, along)))
    return found[0], found[1]


def exchanged(row: Row, lam: Vec3, hit: Vec3) -> tuple[Vec3, Vec3]:
    """Return (active, slide_sign) after the hit rows changed sides.

    A normal that pulled is released, one that was pressed in pushes and sticks; a tangent beyond its bound slides, one that
    pushed along the motion sticks.
    """
    n, rubs = row.active.x, select(row.mu > 0.0, hit.x, 0.0)  # with the normal go the tangents that it bounds
    active, sign = [select(hit.x > 0.5, 1.0 - n, n)], [0.0]
    for x, was, s, h in zip(*(v.leaves()[1:] for v in (lam, row.active, row.slide_sign, hit)), strict=True):
        own_active = select(h > 0.5, 1.0 - was, was)
        own_sign = select(h > 0.5, was * select(x > 0.0, 1.0, -1.0), s)
        active.append(select(rubs > 0.5, 1.0 - n, own_active))
        sign.append(select(rubs > 0.5, 0.0, own_sign))
    return Vec3(*active), Vec3(*sign)
