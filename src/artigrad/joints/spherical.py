"""Spherical: any rotation, as a quaternion; velocities in the axes of the moving body.

The quaternion may have any length: the pose is that of q/|q|, so the gradient with respect to q is orthogonal to it.
"""

from __future__ import annotations

from typing import Any

from ..spatial import (
    Motion,
    Quat,
    Transform,
    Vec3,
    cross,
    quat_exp,
    quat_exp_vjp,
    quat_lift,
    quat_matrix,
    quat_normalise,
    quat_normalise_vjp,
    quat_product_vjp,
    quat_rate,
    quat_rate_vjp,
)
from ..staging import Reals, Table


def kinematics(X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table) -> tuple[Transform, Motion]:
    """X' = X R(q),  S = [R ; r x R]: the body's axes"""
    R = X.R @ quat_matrix(quat_normalise(q.struct(qa, Quat)))
    w = R @ v.struct(va, Vec3)
    return Transform(R, X.r), Motion(w, cross(X.r, w))


def columns(X: Transform) -> list[Motion]:
    return [Motion(X.R.column(k), cross(X.r, X.R.column(k))) for k in range(3)]


def integrate(q: Reals, v: Reals, dt: Any, qa: Any, va: Any) -> None:
    """q <- normalise(q (x) exp(dt v / 2))"""
    q.put(qa, quat_normalise(q.struct(qa, Quat) @ quat_exp(v.struct(va, Vec3) * dt)))


def integrate_vjp(q: Reals, v: Reals, dt: Any, qa: Any, va: Any, q_bar: Reals, v_bar: Reals) -> None:
    """The cotangent of the new q becomes that of the old one; v_bar += dt phi_bar  (theory 7.3)"""
    old, phi = q.struct(qa, Quat), v.struct(va, Vec3) * dt
    e = quat_exp(phi)
    turned_bar = quat_normalise_vjp(old @ e, q_bar.struct(qa, Quat))
    old_bar, e_bar = quat_product_vjp(old, e, turned_bar)
    q_bar.put(qa, old_bar)
    v_bar.put(va, v_bar.struct(va, Vec3) + quat_exp_vjp(phi, e_bar) * dt)


def rate(q: Reals, v: Reals, qa: Any, va: Any, out: Reals) -> None:
    """out = dq/dt"""
    out.put(qa, quat_rate(q.struct(qa, Quat), v.struct(va, Vec3)))


def rate_vjp(q: Reals, v: Reals, qa: Any, va: Any, out_bar: Reals, q_bar: Reals, v_bar: Reals) -> None:
    a, b = quat_rate_vjp(q.struct(qa, Quat), v.struct(va, Vec3), out_bar.struct(qa, Quat))
    q_bar.put(qa, q_bar.struct(qa, Quat) + a)
    v_bar.put(va, v_bar.struct(va, Vec3) + b)


def lift(q: Reals, tangent_bar: Reals, qa: Any, va: Any, q_bar: Reals) -> None:
    """q_bar += the ambient cotangent of a tangent one"""
    q_bar.put(qa, q_bar.struct(qa, Quat) + quat_lift(q.struct(qa, Quat), tangent_bar.struct(va, Vec3)))


def drop(q: Reals, q_bar: Reals, qa: Any, va: Any, tangent_bar: Reals) -> None:
    """tangent_bar = the tangent cotangent of an ambient one"""
    _, th_bar = quat_rate_vjp(q.struct(qa, Quat), Vec3.zero(), q_bar.struct(qa, Quat))
    tangent_bar.put(va, th_bar)


def normalised(q: Reals, qa: Any, out: Reals) -> None:
    """out = q / |q|"""
    out.put(qa, quat_normalise(q.struct(qa, Quat)))


def normalised_vjp(q: Reals, qa: Any, out_bar: Reals) -> None:
    """The cotangent of q/|q| becomes that of q, in place."""
    out_bar.put(qa, quat_normalise_vjp(q.struct(qa, Quat), out_bar.struct(qa, Quat)))
