"""Forward dynamics, (M + armature + h damping) qdd = tau - ID(q, v, 0), and its adjoint  (theory 3.1-3.3).

The adjoint never differentiates M or its factor: one solve with the factor at hand, then the adjoint of inverse
dynamics at the solution.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ..spatial import Force
from ..staging import Reals, loop
from ..tables import Constants, Topology, Workspace
from . import articulated, sparse
from .inverse_dynamics import inverse_dynamics_vjp

FACTOR: dict[str, ModuleType] = {"articulated": articulated, "sparse": sparse}


def forward_dynamics(
    topology: Topology, const: Constants, method: ModuleType, damping_dt: Any, tau: Reals, ws: Workspace, qdd: Reals
) -> None:
    """qdd from the joint forces tau. Kinematics has been run and ws.link.F has the bias forces; ws keeps the factor."""
    method.factor_solve(topology, const, damping_dt, ws, tau, qdd)


def forward_dynamics_vjp(
    topology: Topology,
    const: Constants,
    method: ModuleType,
    damping_dt: Any,
    qdd: Reals,
    qdd_bar: Reals,
    ws: Workspace,
    tau_bar: Reals,
    tangent_bar: Reals,
    v_bar: Reals,
    const_bar: Constants | None,
) -> None:
    """Sets tau_bar = Mt^-1 qdd_bar; adds to the cotangents of q (tangent), v and constants."""
    for i in loop(topology.nl):
        ws.link[i].F = Force.zero()
    method.solve(topology, ws, qdd_bar, tau_bar)
    inverse_dynamics_vjp(topology, const, qdd, ws, tau_bar, -1.0, tangent_bar, v_bar, const_bar)
    diagonal_bars(topology, damping_dt, qdd, tau_bar, const_bar)


def diagonal_bars(topology: Topology, damping_dt: Any, qdd: Reals, tau_bar: Reals, const_bar: Constants | None) -> None:
    """Of what stands on the diagonal of Mt: armature_bar -= tau_bar qdd,  damping_bar -= damping_dt tau_bar qdd"""
    if const_bar is not None:
        for i in loop(1, topology.nl):
            bar, va = const_bar.link[i], topology.link_v[i]
            for k in loop(topology.link_nv[i]):
                product = tau_bar[va + k] * qdd[va + k]
                bar.armature = bar.armature - product
                bar.damping = bar.damping - damping_dt * product
