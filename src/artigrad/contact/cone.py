"""Friction as a circular cone: both tangents together,  |lam_t| <= most = mu lam_n + bound  (theory 5.8, 5.12).

A contact sticks (w_t = 0), or slides with its impulse d most against the slip w_t. Where it slides, the direction d
answers to the slip like a compliant row along d' = (-d2, d1). `on` = (pushes, sticks or slides, sticks);
`side` = (|w_t|/most, d1, d2) where it slides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spatial import Mat3, Vec3
from ..staging import maximum, select, sqrt
from ..staging.memory import Row
from .update import TangentBars, positive

LINEAR = False  # the direction of sliding is not linear: an active set is solved by Newton's method
TRIES = 6  # its steps
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


def steps_vjp(A: Mat3, inv: Vec3, inv_bar: Vec3) -> Mat3:
    normal, norm_bar = -(inv_bar.x * inv.x * inv.x), -((inv_bar.y + inv_bar.z) * inv.y * inv.y)
    scale = norm_bar * inv.y  # over the norm
    return Mat3(normal, 0.0, 0.0, 0.0, scale * A.yy, 2.0 * scale * A.yz, 0.0, 0.0, scale * A.zz)


def tangents(A: Mat3, w: Vec3, lam: Vec3, inv: Vec3, dn: Any, most: Any) -> tuple[Any, Any]:
    """The tangents of one update, once the normal has changed by dn: a step, and the nearest point of the disc."""
    x, y = lam.y - (w.y + A.yx * dn) * inv.y, lam.z - (w.z + A.zx * dn) * inv.z
    r = _length(x, y)
    cut = select(r > most, most / maximum(r, TINY), 1.0)
    return x * cut, y * cut


def tangents_vjp(A: Mat3, w: Vec3, lam: Vec3, inv: Vec3, dn: Any, most: Any, t_bar: tuple[Any, Any]) -> TangentBars:
    w_1, w_2 = w.y + A.yx * dn, w.z + A.zx * dn
    x, y = lam.y - w_1 * inv.y, lam.z - w_2 * inv.z
    r = maximum(_length(x, y), TINY)
    outside = r > most

    d1, d2 = x / r, y / r
    along = d1 * t_bar[0] + d2 * t_bar[1]
    shrink = most / r
    x_bar = select(outside, shrink * (t_bar[0] - d1 * along), t_bar[0])
    y_bar = select(outside, shrink * (t_bar[1] - d2 * along), t_bar[1])
    s_1, s_2 = -(x_bar * inv.y), -(y_bar * inv.z)
    return TangentBars(
        A=Mat3(0.0, 0.0, 0.0, s_1 * dn, 0.0, 0.0, s_2 * dn, 0.0, 0.0),
        w=(s_1, s_2),
        lam=(x_bar, y_bar),
        inv=(-(x_bar * w_1), -(y_bar * w_2)),
        dn=s_1 * A.yx + s_2 * A.zx,
        most=select(outside, along, 0.0),
    )


def margin(w: Vec3, lam: Vec3, inv: Vec3, most: Any, far: float) -> Any:
    """How far the tangents are from letting go or from catching, m/s."""
    r = _length(lam.y, lam.z)
    room = select(r < most * EDGE, (most - r) / inv.y, _length(w.y, w.z))
    return select(most > 0.0, room, far)


# -- active set ------------------------------------------------------------------------------------------------------------
def active(lam: Vec3, most: Any, w: Callable[[], Vec3]) -> tuple[Vec3, Vec3]:
    """(on, side) at impulses lam"""
    live = select(most > 0.0, 1.0, 0.0)
    r, slip = _length(lam.y, lam.z), w()
    stick = live * select(r < most * EDGE, 1.0, 0.0)
    slide = live - stick
    scale = slide / maximum(r, TINY)
    speed = slide * _length(slip.y, slip.z) / maximum(most, TINY)
    return Vec3(select(lam.x > 0.0, 1.0, 0.0), live, stick), Vec3(speed, lam.y * scale, lam.z * scale)


def restrict(row: Row, w: Vec3) -> Vec3:
    """C w: the velocities that the active set makes zero; where it slides, that along d'"""
    on, side = row.on, row.side
    return Vec3(on.x * w.x, on.z * w.y + side.y * w.z - side.z * w.y, on.z * w.z)


def restrict_transposed(row: Row, nu: Vec3) -> Vec3:
    """C^T nu"""
    on, side = row.on, row.side
    return Vec3(on.x * nu.x, on.z * nu.y - side.z * nu.y, on.z * nu.z + side.y * nu.y)


def extend_transposed(row: Row, y: Vec3) -> Vec3:
    """E^T y, where lam = E x: sliding impulses follow their normal along d, and the second unknown along d'."""
    on, side = row.on, row.side
    return Vec3(
        y.x + row.mu * (side.y * y.y + side.z * y.z),
        on.z * y.y + side.y * y.z - side.z * y.y,
        on.z * y.z,
    )


def compliance(row: Row) -> Any:
    """What stands on the diagonal of the second unknown beside A: |w_t|/most where the contact slides."""
    return row.side.x


def settle(row: Row, x: Vec3) -> tuple[Vec3, Any]:
    """The impulses of the unknowns x, cut to the cone where they slide, and how far their direction turned."""
    on, side = row.on, row.side
    most, slides = row.mu * x.x + row.bound, on.y - on.z > 0.5
    t1, t2 = on.z * x.y - side.z * x.y + side.y * most, on.z * x.z + side.y * x.y + side.z * most
    cut = select(slides, most / maximum(_length(t1, t2), TINY), 1.0)
    turn = select(slides, abs(x.y) / maximum(abs(most), TINY), 0.0)
    return Vec3(x.x, t1 * cut, t2 * cut), turn


def faults(row: Row, w: Vec3, lam: Vec3, most: Any, tolerance: Any) -> tuple[Any, Any]:
    """How far a contact that sticks is beyond its bound or one that slides pushes along its slip; and how far across, m/s."""
    on, side, drive = row.on, row.side, row.b
    beyond = (_length(lam.y, lam.z) - most) / row.inv.y - tolerance
    along = side.y * w.y + side.z * w.z - tolerance
    across = abs(lam.y * w.z - lam.z * w.y) / maximum(most, TINY)
    across = across - (100.0 * tolerance + 1e-4 * _length(drive.y, drive.z))
    return positive(select(on.z > 0.5, beyond, along)), (on.y - on.z) * positive(across)
