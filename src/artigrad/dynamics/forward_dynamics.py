"""Forward dynamics, (M + armature + h damping) qdd = tau - ID(q, v, 0), and its adjoint  (theory 3.1-3.3).

The adjoint never differentiates M or its factor: one solve with the factor at hand, then the adjoint of the balance of
forces at the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from .. import joints
from ..kinematics import clear_pose_bars, kinematics
from ..spatial import Force, Motion
from ..staging import Reals, loop
from ..tables import Bars, Constants, Topology, Workspace
from . import articulated, sparse
from .actuation import actuation, actuation_vjp
from .inverse_dynamics import inverse_dynamics_vjp, link_force, start_forces
from .passive import passive, passive_vjp
from .wrenches import subtract_wrenches, wrenches_vjp

FACTOR: dict[str, ModuleType] = {"articulated": articulated, "sparse": sparse}


class Method(NamedTuple):
    """How accelerations are solved for: the factor, the time over which damping is taken implicitly, and contact.

    filled: on the way back, whether the workspace has the factor, kinematics and contacts of the step already.
    """

    factor: ModuleType
    damping_dt: Any
    contact: Any = None  # contact.Touch, for a model that can touch something
    filled: bool = False


def forces(topology: Topology, const: Constants, q: Reals, v: Reals, u: Reals, ws: Workspace) -> None:
    """Kinematics, forces on links (ws.link.F) and in joints (ws.tau) at (q, v, u)."""
    start_forces(const, ws)
    kinematics(topology, const, q, v, ws, lambda i: link_force(topology, i, None, ws))
    subtract_wrenches(topology, const, ws)
    passive(topology, const, q, v, ws.tau)
    actuation(topology, const, q, v, u, ws.tau)


def accelerate(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """ws.qdd = the joint accelerations at (q, v, u); runs kinematics and keeps in ws what the way back needs."""
    forces(topology, const, q, v, u, ws)
    method.factor.factor_solve(topology, const, method.damping_dt, ws, ws.tau, ws.qdd)


def accelerate_again(
    topology: Topology, const: Constants, method: Method, q: Reals, v: Reals, u: Reals, ws: Workspace
) -> None:
    """Fill ws for the way back where the accelerations are known already: no forces, no solve."""
    kinematics(topology, const, q, v, ws)
    method.factor.factor(topology, const, method.damping_dt, ws)


def accelerate_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    qdd_bar: Reals,
    bars: Bars,
) -> None:
    """Adds to the cotangents of v, u and constants; sets that of q. ws.qdd is known.

    One solve, mu = Mt^-1 qdd_bar, then the adjoint of the balance of forces at the solution  (theory 3.2).
    """
    clear_forces(topology, ws, bars.tangent)
    method.factor.solve(topology, ws, qdd_bar, ws.mu)
    balance_vjp(topology, const, method, q, v, u, ws, bars)


def clear_forces(topology: Topology, ws: Workspace, tangent_bar: Reals) -> None:
    """No forces on links, for a solve of its own; and no cotangent of q yet."""
    for k in loop(topology.nv):
        tangent_bar[k] = 0.0
    for i in loop(topology.nl):
        ws.link[i].F = Force.zero()


def balance_vjp(
    topology: Topology,
    const: Constants,
    method: Method,
    q: Reals,
    v: Reals,
    u: Reals,
    ws: Workspace,
    bars: Bars,
    contacts: Callable[[], None] | None = None,
) -> None:
    """The adjoint of  ID(q, v, qdd) + damping and springs - actuators - wrenches - contacts = 0  at multipliers ws.mu:
    adds to all cotangents. `contacts` takes the forces of contact off ws.link.F, and says what poses and velocities
    mean to them."""

    def world() -> None:
        moving_fields(topology, None if contacts is None else ws.v_next, ws)
        if ws.has_wrench:
            subtract_wrenches(topology, const, ws)
            wrenches_vjp(topology, const, ws, bars)
        if contacts is not None:
            contacts()

    acts = ws.has_wrench or contacts is not None
    inverse_dynamics_vjp(topology, const, ws.qdd, ws, ws.mu, -1.0, bars, world if acts else None)
    diagonal_bars(topology, method.damping_dt, ws.qdd, ws.mu, bars.const)
    actuation_vjp(topology, const, q, v, u, ws.mu, bars)
    passive_vjp(topology, const, q, v, ws.mu, bars)


def moving_fields(topology: Topology, x: Reals | None, ws: Workspace) -> None:
    """w_i = w_p + S_i x, zero without x; and no cotangents of poses and of w yet."""
    clear_pose_bars(topology, ws, "w_bar")
    ws.field[0].w = Motion.zero()
    for i in loop(1, topology.nl):
        w = Motion.zero() if x is None else ws.field[topology.parent[i]].w + joints.apply(topology, i, x, ws)
        ws.field[i].w = w


def diagonal_bars(topology: Topology, damping_dt: Any, qdd: Reals, tau_bar: Reals, const_bar: Constants | None) -> None:
    """Of what stands on the diagonal of Mt: armature_bar -= tau_bar qdd,  damping_bar -= damping_dt tau_bar qdd"""
    if const_bar is not None:
        for i in loop(1, topology.nl):
            bar, va = const_bar.link[i], topology.link_v[i]
            for k in loop(topology.link_nv[i]):
                product = tau_bar[va + k] * qdd[va + k]
                bar.armature = bar.armature - product
                bar.damping = bar.damping - damping_dt * product
