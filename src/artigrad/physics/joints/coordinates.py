"""Joint coordinates: integration with velocities, and conversion of their cotangents.

A joint has a number of additive coordinates, followed by one quaternion or none. Cotangents of q are ambient (one entry per
entry of q) or tangent (one per entry of v; for a quaternion, of a rotation vector in body axes).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...compiler import Reals, loop, switch
from ..spatial import (
    Quat,
    Vec3,
    quat_exp,
    quat_exp_vjp,
    quat_normalize,
    quat_normalize_vjp,
    quat_product_vjp,
    quat_rate_vjp,
    quat_to_ambient,
    rotation_vector_rate,
    rotation_vector_rate_vjp,
)
from .joint import Joint
from .table import compiled

if TYPE_CHECKING:
    from ..context import Step

Entry = Callable[[Any, Any], None]


def each(s: Step, number: Entry, quaternion: Entry) -> None:
    """Call number(q index, v index) for each additive coordinate, quaternion(qa, va) for each quaternion."""
    for i in loop(1, s.model.nl):
        qa, va = s.model.link_q[i], s.model.link_v[i]

        def of(joint: Joint, qa: Any = qa, va: Any = va) -> None:
            for k in range(joint.straight):
                number(qa + k, va + k)
            if joint.quaternion:
                quaternion(qa + joint.straight, va + joint.straight)

        switch(s.model.kind[i], {k: partial(of, joint) for k, joint in compiled(s.has).items()})


def integrate(s: Step, q: Reals, v: Reals) -> None:
    """q <- q (+) dt v, in place; for a quaternion q <- normalize(q (x) exp(dt v / 2))"""

    def number(a: Any, k: Any) -> None:
        q[a] = q[a] + s.dt * v[k]

    def quaternion(a: Any, k: Any) -> None:
        q.put(a, quat_normalize(q.struct(a, Quat) @ quat_exp(v.struct(k, Vec3) * s.dt)))

    each(s, number, quaternion)


def integrate_vjp(s: Step, q: Reals, v: Reals, q_bar: Reals, v_bar: Reals) -> None:
    """Replace q_bar of the new q by that of the old one (`q` has the old one); add to v_bar  (theory 7.3)."""

    def number(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + s.dt * q_bar[a]

    def quaternion(a: Any, k: Any) -> None:
        old, phi = q.struct(a, Quat), v.struct(k, Vec3) * s.dt
        e = quat_exp(phi)
        turned_bar = quat_normalize_vjp(old @ e, q_bar.struct(a, Quat))
        old_bar, e_bar = quat_product_vjp(old, e, turned_bar)
        q_bar.put(a, old_bar)
        v_bar.put(k, v_bar.struct(k, Vec3) + quat_exp_vjp(phi, e_bar) * s.dt)

    each(s, number, quaternion)


def normalize(s: Step, q: Reals) -> None:
    """Normalize the quaternions of q in place."""
    each(s, lambda a, k: None, lambda a, k: q.put(a, quat_normalize(q.struct(a, Quat))))


def normalize_vjp(s: Step, q: Reals, q_bar: Reals) -> None:
    """Replace q_bar of the normalized q by that of q."""
    each(s, lambda a, k: None, lambda a, k: q_bar.put(a, quat_normalize_vjp(q.struct(a, Quat), q_bar.struct(a, Quat))))


def rate_along(s: Step, x: Reals, v: Reals, out: Reals) -> None:
    """Time derivative of dt x for velocities v at q (+) dt x: v for additive ones, `rotation_vector_rate` for rotations."""

    def number(a: Any, k: Any) -> None:
        out[k] = v[k]

    def quaternion(a: Any, k: Any) -> None:
        out.put(k, rotation_vector_rate(x.struct(k, Vec3) * s.dt, v.struct(k, Vec3)))

    each(s, number, quaternion)


def rate_along_vjp(s: Step, x: Reals, v: Reals, out_bar: Reals, x_bar: Reals, v_bar: Reals) -> None:
    """Add to x_bar and v_bar."""

    def number(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + out_bar[k]

    def quaternion(a: Any, k: Any) -> None:
        phi, w = x.struct(k, Vec3) * s.dt, v.struct(k, Vec3)
        phi_bar, w_bar = rotation_vector_rate_vjp(phi, w, out_bar.struct(k, Vec3))
        x_bar.put(k, x_bar.struct(k, Vec3) + phi_bar * s.dt)
        v_bar.put(k, v_bar.struct(k, Vec3) + w_bar)

    each(s, number, quaternion)


def to_ambient(s: Step, q: Reals, tangent_bar: Reals, q_bar: Reals) -> None:
    """Add the ambient cotangent of a tangent one to q_bar."""

    def number(a: Any, k: Any) -> None:
        q_bar[a] = q_bar[a] + tangent_bar[k]

    def quaternion(a: Any, k: Any) -> None:
        q_bar.put(a, q_bar.struct(a, Quat) + quat_to_ambient(q.struct(a, Quat), tangent_bar.struct(k, Vec3)))

    each(s, number, quaternion)


def to_tangent(s: Step, q: Reals, q_bar: Reals, tangent_bar: Reals) -> None:
    """Compute the tangent cotangent of an ambient one."""

    def number(a: Any, k: Any) -> None:
        tangent_bar[k] = q_bar[a]

    def quaternion(a: Any, k: Any) -> None:
        _, turn_bar = quat_rate_vjp(q.struct(a, Quat), Vec3.zero(), q_bar.struct(a, Quat))
        tangent_bar.put(k, turn_bar)

    each(s, number, quaternion)
