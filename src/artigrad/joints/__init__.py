"""Joints: what each kind of link does with its coordinates. Nothing else knows joint types.

A new kind is one file with `kinematics`, and the seven functions of `spherical` if its coordinates do not simply add;
it enters the tables below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model import PRISMATIC, REVOLUTE, SPHERICAL, TRANSLATION
from ..spatial import Motion, Transform
from ..staging import Reals, Table, loop, switch
from ..tables import Topology
from . import prismatic, revolute, spherical, translation

_KINEMATICS = {
    REVOLUTE: revolute.kinematics,
    PRISMATIC: prismatic.kinematics,
    SPHERICAL: spherical.kinematics,
    TRANSLATION: translation.kinematics,
}


def kinematics(
    kind: Any, X: Transform, q: Reals, v: Reals, qa: Any, va: Any, dof: Table
) -> tuple[Transform, Motion]:
    """The pose beyond a joint at X, and the velocity it adds; writes the joint's rows S of `dof`."""
    return switch(kind, {k: lambda f=f: f(X, q, v, qa, va, dof) for k, f in _KINEMATICS.items()})


def each(topology: Topology, straight: Callable[[Any, Any], None], round_: Callable[[Any, Any], None]) -> None:
    """For every coordinate: `straight(q index, v index)` where coordinates add, `round_(qa, va)` for a quaternion."""
    for i in loop(1, topology.nl):
        qa, va = topology.link_q[i], topology.link_v[i]

        def scalar(qa: Any = qa, va: Any = va) -> None:
            straight(qa, va)

        def triple(qa: Any = qa, va: Any = va) -> None:
            for k in range(3):
                straight(qa + k, va + k)

        def quaternion(qa: Any = qa, va: Any = va) -> None:
            round_(qa, va)

        switch(topology.kind[i], {REVOLUTE: scalar, PRISMATIC: scalar, TRANSLATION: triple, SPHERICAL: quaternion})


def integrate(topology: Topology, q: Reals, v: Reals, dt: Any) -> None:
    """q <- q (+) dt v, in place"""

    def straight(a: Any, k: Any) -> None:
        q[a] = q[a] + dt * v[k]

    each(topology, straight, lambda a, k: spherical.integrate(q, v, dt, a, k))


def integrate_vjp(topology: Topology, q: Reals, v: Reals, dt: Any, q_bar: Reals, v_bar: Reals) -> None:
    """q_bar of the new q becomes that of the old one (`q` holds the old one); v_bar accumulates."""

    def straight(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + dt * q_bar[a]

    each(topology, straight, lambda a, k: spherical.integrate_vjp(q, v, dt, a, k, q_bar, v_bar))


def rate(topology: Topology, q: Reals, v: Reals, out: Reals) -> None:
    """out = dq/dt, ambient"""

    def straight(a: Any, k: Any) -> None:
        out[a] = v[k]

    each(topology, straight, lambda a, k: spherical.rate(q, v, a, k, out))


def rate_vjp(topology: Topology, q: Reals, v: Reals, out_bar: Reals, q_bar: Reals, v_bar: Reals) -> None:
    """Adds to q_bar and v_bar."""

    def straight(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + out_bar[a]

    each(topology, straight, lambda a, k: spherical.rate_vjp(q, v, a, k, out_bar, q_bar, v_bar))


def lift(topology: Topology, q: Reals, tangent_bar: Reals, q_bar: Reals) -> None:
    """q_bar += the ambient cotangent of a tangent one (size nv)"""

    def straight(a: Any, k: Any) -> None:
        q_bar[a] = q_bar[a] + tangent_bar[k]

    each(topology, straight, lambda a, k: spherical.lift(q, tangent_bar, a, k, q_bar))


def normalised(topology: Topology, q: Reals, out: Reals) -> None:
    """out = q with unit quaternions"""

    def straight(a: Any, k: Any) -> None:
        out[a] = q[a]

    each(topology, straight, lambda a, k: spherical.normalised(q, a, out))


def normalised_vjp(topology: Topology, q: Reals, out_bar: Reals) -> None:
    """The cotangent of the normalised q becomes that of q, in place."""
    each(topology, lambda a, k: None, lambda a, k: spherical.normalised_vjp(q, a, out_bar))
