"""Stage 2: from positions, velocities and controls to joint accelerations, and the way back."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

from ..kinematics import kinematics
from ..staging import Reals, loop
from ..tables import Constants, Topology, Workspace
from .actuation import actuation, actuation_vjp
from .forward_dynamics import FACTOR, forward_dynamics, forward_dynamics_vjp
from .inverse_dynamics import link_force, start_forces
from .passive import passive, passive_vjp
from .wrenches import subtract_wrenches, wrenches_vjp

__all__ = ["FACTOR", "Method", "accelerate", "accelerate_again", "accelerate_vjp", "forces"]


class Method(NamedTuple):
    """How accelerations are solved for: the factor, the time over which damping is taken implicitly, and contact."""

    factor: ModuleType
    damping_dt: Any
    contact: Any = None  # contact.Touch, for a model that can touch something


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
    forward_dynamics(topology, const, method.factor, method.damping_dt, ws.tau, ws, ws.qdd)


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
    tangent_bar: Reals,
    v_bar: Reals,
    u_bar: Reals,
    const_bar: Constants | None,
) -> None:
    """Adds to v_bar, u_bar and const_bar; sets tangent_bar, the cotangent of q on the tangent space. ws.qdd is known."""
    for k in loop(topology.nv):
        tangent_bar[k] = 0.0
    factor, damping_dt, _ = method
    forward_dynamics_vjp(topology, const, factor, damping_dt, ws.qdd, qdd_bar, ws, ws.mu, tangent_bar, v_bar, const_bar)
    wrenches_vjp(topology, const, ws, tangent_bar, v_bar, const_bar)
    actuation_vjp(topology, const, q, v, u, ws.mu, tangent_bar, v_bar, u_bar, const_bar)
    passive_vjp(topology, const, q, v, ws.mu, tangent_bar, v_bar, const_bar)
