"""Sparse factor L^T D L of the mass matrix along the tree, and its solve  (Featherstone 2008, chapter 6).

Rows are contiguous (`mass_matrix`), so the inner loop of the elimination is a plain update of one row by another.
"""

from __future__ import annotations

from ...compiler import Reals, carry, climb, loop
from ..context import Step
from .inverse_dynamics import joint_forces
from .mass_matrix import mass_matrix


def factor(s: Step) -> None:
    """Factor Mt = M + armature + damping_dt * damping = L^T D L in place: L below the diagonal, 1/D on it."""
    mass_matrix(s)
    m, M = s.model, s.ws.M
    for k in loop(m.nv, inwards=True):
        row_k = m.dof_row[k]
        diagonal = row_k + m.dof_depth[k]
        dinv = 1.0 / M[diagonal]
        M[diagonal] = dinv
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            d_j, row_j = m.dof_depth[j - 1], m.dof_row[j - 1]
            a = M[row_k + d_j] * dinv
            for d in loop(d_j + 1):
                M[row_j + d] = M[row_j + d] - a * M[row_k + d]
            M[row_k + d_j] = a


def solve(s: Step, b: Reals, x: Reals) -> None:
    """Solve Mt x = b - S^T F, with the forces on links s.link.F, which are overwritten."""
    m, M, load = s.model, s.ws.M, s.ws.load
    joint_forces(s, load)
    for k in loop(m.nv):
        x[k] = b[k] - load[k]
    for k in loop(m.nv, inwards=True):  # L^T, then D
        row, xk = m.dof_row[k], x[k]
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            x[j - 1] = x[j - 1] - M[row + m.dof_depth[j - 1]] * xk
        x[k] = xk * M[row + m.dof_depth[k]]
    for k in loop(m.nv):  # L
        row, xk = m.dof_row[k], carry(x[k])
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            xk.value = xk.value - M[row + m.dof_depth[j - 1]] * x[j - 1]
        x[k] = xk.value


def factor_solve(s: Step, b: Reals, x: Reals) -> None:
    """`factor`, then `solve`."""
    factor(s)
    solve(s, b, x)
