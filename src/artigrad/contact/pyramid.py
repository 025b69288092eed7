"""Friction as a pyramid, the paper's: each tangent is bounded by itself,  |lam_t| <= most = mu lam_n + bound  (theory 5.6).

A tangent sticks (w_t = 0), or slides at its bound and follows its normal. `on` names the active rows: normals that push,
tangents that stick; `side` is +-1 for a tangent at its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spatial import Mat3, Vec3
from ..staging import clamp, minimum, select
from ..staging.memory import Row
from .update import TangentBars, clamp_vjp, positive

LINEAR = True  # an active set is solved at once
TRIES = 9  # sets: the first, and exchanges of its worst row


# -- sweeps --------------------------------------------------------------------------------------------------------------
def steps(A: Mat3) -> Vec3:
    """The step of each row: 1/A_rr"""
    return Vec3(1.0 / A.xx, 1.0 / A.yy, 1.0 / A.zz)


def steps_vjp(A: Mat3, inv: Vec3, inv_bar: Vec3) -> Mat3:
    d = inv_bar.map(lambda x, i: -(x * i * i), inv)
    return Mat3(d.x, 0.0, 0.0, 0.0, d.y, 0.0, 0.0, 0.0, d.z)


def tangents(A: Mat3, w: Vec3, lam: Vec3, inv: Vec3, dn: Any, most: Any) -> tuple[Any, Any]:
    """The tangents of one update, one after the other, once the normal has changed by dn."""
    t1 = clamp(lam.y - (w.y + A.yx * dn) * inv.y, -most, most)
    d1 = t1 - lam.y
    return t1, clamp(lam.z - (w.z + A.zx * dn + A.zy * d1) * inv.z, -most, most)


def tangents_vjp(A: Mat3, w: Vec3, lam: Vec3, inv: Vec3, dn: Any, most: Any, t_bar: tuple[Any, Any]) -> TangentBars:
    w_1 = w.y + A.yx * dn
    x_1 = lam.y - w_1 * inv.y
    d1 = clamp(x_1, -most, most) - lam.y
    w_2 = w.z + A.zx * dn + A.zy * d1
    x_2 = lam.z - w_2 * inv.z

    x_2_bar, most_2 = clamp_vjp(x_2, most, t_bar[1])
    s_2 = -(x_2_bar * inv.z)
    d1_bar = s_2 * A.zy
    x_1_bar, most_1 = clamp_vjp(x_1, most, t_bar[0] + d1_bar)
    s_1 = -(x_1_bar * inv.y)
    return TangentBars(
        A=Mat3(0.0, 0.0, 0.0, s_1 * dn, 0.0, 0.0, s_2 * dn, s_2 * d1, 0.0),
        w=(s_1, s_2),
        lam=(x_1_bar - d1_bar, x_2_bar),
        inv=(-(x_1_bar * w_1), -(x_2_bar * w_2)),
        dn=s_2 * A.zx + s_1 * A.yx,
        most=most_1 + most_2,
    )


def margin(w: Vec3, lam: Vec3, inv: Vec3, most: Any, far: float) -> Any:
    """How far tangents are from letting go or from catching, m/s."""
    least: Any = far
    for l, v, i in ((lam.y, w.y, inv.y), (lam.z, w.z, inv.z)):
        room = select(abs(l) < most, (most - abs(l)) / i, abs(v))
        least = minimum(least, select(most > 0.0, room, far))
    return least


# -- active set ------------------------------------------------------------------------------------------------------------
def active(lam: Vec3, most: Any, w: Callable[[], Vec3]) -> tuple[Vec3, Vec3]:
    """(on, side) at impulses lam"""
    live = select(most > 0.0, 1.0, 0.0)
    stick = [live * select(abs(x) < most, 1.0, 0.0) for x in (lam.y, lam.z)]
    side = [(live - s) * select(x > 0.0, 1.0, -1.0) for s, x in zip(stick, (lam.y, lam.z), strict=True)]
    return Vec3(select(lam.x > 0.0, 1.0, 0.0), *stick), Vec3(0.0, *side)


def restrict(row: Row, w: Vec3) -> Vec3:
    """C w: the velocities that the active set makes zero"""
    return w.map(lambda x, on: x * on, row.on)


def restrict_transposed(row: Row, nu: Vec3) -> Vec3:
    """C^T nu"""
    return restrict(row, nu)


def extend_transposed(row: Row, y: Vec3) -> Vec3:
    """E^T y, where lam = E x: a sliding tangent follows its normal. What belongs to unknowns that are not active is of no
    use."""
    return Vec3(y.x + row.mu * (row.side.y * y.y + row.side.z * y.z), y.y, y.z)


def compliance(row: Row) -> Any:
    """What stands on the diagonal of the second unknown beside A."""
    return 0.0


def settle(row: Row, x: Vec3) -> tuple[Vec3, Any]:
    """The impulses of the unknowns x, and how far they are from those of another round."""
    most = row.mu * x.x + row.bound
    return Vec3(x.x, x.y + row.side.y * most, x.z + row.side.z * most), 0.0


def faults(row: Row, w: Vec3, lam: Vec3, most: Any, tolerance: Any) -> tuple[Any, Any]:
    """How far tangents that stick are beyond their bound, and those that slide push along the motion, m/s."""
    found: list[Any] = []
    for l, v, stick, i in zip(*(x.leaves()[1:] for x in (lam, w, row.on, row.inv)), strict=True):
        s = row.side.leaves()[len(found) + 1]
        beyond, along = (abs(l) - most) / i - tolerance, s * v - tolerance
        found.append(positive(select(stick > 0.5, beyond, along)))
    return found[0], found[1]


def exchanged(row: Row, lam: Vec3, hit: Vec3) -> tuple[Vec3, Vec3]:
    """(on, side) once the rows that were hit have changed sides: a normal that pulled lets go, one that was pressed in pushes
    and sticks; a tangent beyond its bound slides, one that pushed along the motion sticks."""
    n, rubs = row.on.x, select(row.mu > 0.0, hit.x, 0.0)  # with the normal go the tangents that it bounds
    on, side = [select(hit.x > 0.5, 1.0 - n, n)], [0.0]
    for x, was, s, h in zip(*(v.leaves()[1:] for v in (lam, row.on, row.side, hit)), strict=True):
        own_on = select(h > 0.5, 1.0 - was, was)
        own_side = select(h > 0.5, was * select(x > 0.0, 1.0, -1.0), s)
        on.append(select(rubs > 0.5, 1.0 - n, own_on))
        side.append(select(rubs > 0.5, 0.0, own_side))
    return Vec3(*on), Vec3(*side)
