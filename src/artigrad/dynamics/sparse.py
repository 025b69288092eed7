"""The sparse factor L^T D L of the mass matrix along the tree, and its solve  (Featherstone 2008, chapter 6).

Rows are contiguous (`mass_matrix`), so the inner loop of the elimination is a plain update of one row by another.
"""

from __future__ import annotations

from typing import Any

from ..staging import Reals, carry, climb, loop
from ..tables import Constants, Topology, Workspace
from .inverse_dynamics import joint_forces
from .mass_matrix import mass_matrix


def factor(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace) -> None:
    """Mt = M + armature + damping_dt * damping = L^T D L, in place: L below the diagonal, 1/D on it."""
    mass_matrix(topology, const, damping_dt, ws)
    M = ws.M
    for k in loop(topology.nv, inwards=True):
        row_k = topology.dof_row[k]
        diagonal = row_k + topology.dof_depth[k]
        dinv = 1.0 / M[diagonal]
        M[diagonal] = dinv
        for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
            d_j, row_j = topology.dof_depth[j - 1], topology.dof_row[j - 1]
            a = M[row_k + d_j] * dinv
            for d in loop(d_j + 1):
                M[row_j + d] = M[row_j + d] - a * M[row_k + d]
            M[row_k + d_j] = a


def solve(topology: Topology, ws: Workspace, b: Reals, x: Reals) -> None:
    """Mt x = b - S^T F, with the forces on links that ws.link.F holds (they are used up)."""
    M = ws.M
    joint_forces(topology, ws, ws.load)
    for k in loop(topology.nv):
        x[k] = b[k] - ws.load[k]
    for k in loop(topology.nv, inwards=True):  # L^T, then D
        row, xk = topology.dof_row[k], x[k]
        for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
            x[j - 1] = x[j - 1] - M[row + topology.dof_depth[j - 1]] * xk
        x[k] = xk * M[row + topology.dof_depth[k]]
    for k in loop(topology.nv):  # L
        row, xk = topology.dof_row[k], carry(x[k])
        for j in climb(topology.dof_parent, topology.dof_parent[k + 1]):
            xk.value = xk.value - M[row + topology.dof_depth[j - 1]] * x[j - 1]
        x[k] = xk.value


def factor_solve(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace, b: Reals, x: Reals) -> None:
    """`factor`, then `solve`."""
    factor(topology, const, damping_dt, ws)
    solve(topology, ws, b, x)
