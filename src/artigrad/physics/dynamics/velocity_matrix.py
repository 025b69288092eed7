"""Matrix M + h (B + C), where C = d(bias)/dv is the velocity derivative of gyroscopic and Coriolis forces  (theory 7.6).

Entries between degrees of freedom of different branches are zero. The others are stored along the tree, as those of the
mass matrix: row k has one entry per ancestor of k, those on and below the diagonal in ws.M, those above it in ws.upper.
Elimination from the last degree of freedom to the first keeps that pattern.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, carry, climb, loop
from .. import joints
from ..context import Step
from ..kinematics import link_kinematics
from ..spatial import Force, Motion, cross_force, cross_motion
from .fluid_derivatives import add_fluid_derivatives
from .inverse_dynamics import inverse_dynamics_vjp
from .mass_matrix import mass_matrix
from .transmission_derivatives import add_transmission_derivatives


def _column(s: Step, i: Any, j: Any, out: Reals) -> None:
    """Compute out = C e_j, the change of bias forces with velocity j of link i. Only the subtree of link i moves:

        dv = S_j,   da_k = da_p + dv_0 x v_k + v_0 x dv,   dF_k = I da_k + dv x* I v_k + v_k x* I dv

    For links outside, s.link.y (dv), a (da) and F (dF) are zero before and after. Uses s.dof.S.
    """
    m = s.model
    first, end = m.carried_at[i], m.carried_at[i + 1]
    _move(s, i, s.dof[j].S)
    for n in loop(first + 1, end):
        k = m.carried[n]
        _move(s, k, s.link[m.parent[k]].y)
    for n in loop(first, end, inwards=True):
        k = m.carried[n]
        link, F = s.link[k], s.link[k].F
        joints.add_projection(s, k, F, out)
        s.link[m.parent[k]].F += F
        link.y, link.a, link.F = Motion.zero(), Motion.zero(), Force.zero()
    for k in climb(m.parent, m.parent[i]):
        F = s.link[k].F
        joints.add_projection(s, k, F, out)
        s.link[m.parent[k]].F += F
        s.link[k].F = Force.zero()
    s.link[0].F = Force.zero()


def _move(s: Step, k: Any, dv: Motion) -> None:
    """Change of acceleration and force of link k for a change dv of its velocity."""
    link, parent = s.link[k], s.link[s.model.parent[k]]
    v, I = link.v, link.I
    da = parent.a + cross_motion(joints.before(s, k, parent.y, dv), v)
    da = da + cross_motion(joints.before(s, k, parent.v, v), dv)
    link.y, link.a = dv, da
    link.F = I @ da + cross_force(dv, I @ v) + cross_force(v, I @ dv)


def bias_derivatives_vjp(s: Step, x: Reals, mu: Reals) -> None:
    """Add the cotangents of  -h mu . C x  to those of q (tangent), v and constants.

    Bias forces are quadratic in v, so  h C x = (bias(v + h x) - bias(v - h x))/2:  two adjoints of inverse dynamics.
    These move the links at other velocities; if the workspace is used again (s.filled), those of the step are restored.
    """
    ws, nv = s.ws, s.model.nv
    if s.implicit_terms == "lone":
        for i in loop(1, s.model.nl):
            for _ in loop(1 - s.model.is_lone[i]):
                for k in loop(s.model.link_v[i], s.model.link_v[i] + s.model.link_nv[i]):
                    x[k], mu[k] = 0.0, 0.0
    for k in loop(nv):
        ws.qdd[k] = 0.0
    for sign in (1.0, -1.0):
        for k in loop(nv):
            ws.v_aside[k] = s.v[k] + sign * s.dt * x[k]
            ws.rate[k] = -0.5 * sign * mu[k]
        aside = s.at(v=ws.v_aside)
        link_kinematics(aside)
        inverse_dynamics_vjp(aside, ws.qdd, ws.rate)
    if s.filled:
        link_kinematics(s)


def fill(s: Step, rate: Reals) -> None:
    """Compute ws.M and ws.upper, with the diagonal `rate` of B; all of C, or for `lone` its columns of lone free bodies."""
    m, ws = s.model, s.ws
    mass_matrix(s)
    for k in loop(m.nv * m.nv):
        ws.columns[k] = 0.0
    for i in loop(m.nl):
        s.link[i].y, s.link[i].a, s.link[i].F = Motion.zero(), Motion.zero(), Force.zero()
    for i in loop(1, m.nl):
        for _ in loop(m.is_lone[i]) if s.implicit_terms == "lone" else (0,):
            for j in loop(m.link_v[i], m.link_v[i] + m.link_nv[i]):
                _column(s, i, j, ws.columns.shifted(j * m.nv))
    for k in loop(m.nv):
        row = m.dof_row[k]
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            at = row + m.dof_depth[j - 1]
            ws.upper[at] = ws.M[at] + s.dt * ws.columns[k * m.nv + (j - 1)]
            ws.M[at] = ws.M[at] + s.dt * ws.columns[(j - 1) * m.nv + k]
        diagonal = row + m.dof_depth[k]
        ws.M[diagonal] = ws.M[diagonal] + s.dt * (rate[k] + ws.columns[k * m.nv + k])
    if s.has("lines"):
        add_transmission_derivatives(s)
    if s.has("fluid"):
        add_fluid_derivatives(s)


def times(s: Step, x: Reals, out: Reals) -> None:
    """Compute out = A x, before A is factored."""
    m, ws = s.model, s.ws
    for k in loop(m.nv):
        out[k] = 0.0
    for k in loop(m.nv):
        row, total = m.dof_row[k], carry(out[k] + ws.M[m.dof_row[k] + m.dof_depth[k]] * x[k])
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            at = row + m.dof_depth[j - 1]
            total.value = total.value + ws.M[at] * x[j - 1]
            out[j - 1] = out[j - 1] + ws.upper[at] * x[k]
        out[k] = total.value


def factor(s: Step) -> None:
    """Factor A = U D L in place, with unit diagonals: L in ws.M below the diagonal, 1/D on it, U in ws.upper."""
    m, M, upper = s.model, s.ws.M, s.ws.upper
    for k in loop(m.nv, inwards=True):
        row_k = m.dof_row[k]
        diagonal = row_k + m.dof_depth[k]
        dinv = 1.0 / M[diagonal]
        M[diagonal] = dinv
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            d_j, row_j = m.dof_depth[j - 1], m.dof_row[j - 1]
            low, up = M[row_k + d_j] * dinv, upper[row_k + d_j] * dinv
            for d in loop(d_j + 1):
                M[row_j + d] = M[row_j + d] - up * M[row_k + d]
            for d in loop(d_j):
                upper[row_j + d] = upper[row_j + d] - low * upper[row_k + d]
            M[row_k + d_j], upper[row_k + d_j] = low, up


def solve(s: Step, x: Reals) -> None:
    """Compute x <- A^-1 x."""
    _substitute(s, x, s.ws.upper, s.ws.M)


def solve_transposed(s: Step, x: Reals) -> None:
    """Compute x <- A^-T x."""
    _substitute(s, x, s.ws.M, s.ws.upper)


def _substitute(s: Step, x: Reals, first: Reals, second: Reals) -> None:
    m, M = s.model, s.ws.M
    for k in loop(m.nv, inwards=True):
        row, xk = m.dof_row[k], x[k]
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            x[j - 1] = x[j - 1] - first[row + m.dof_depth[j - 1]] * xk
        x[k] = xk * M[row + m.dof_depth[k]]
    for k in loop(m.nv):
        row, xk = m.dof_row[k], carry(x[k])
        for j in climb(m.dof_parent, m.dof_parent[k + 1]):
            xk.value = xk.value - second[row + m.dof_depth[j - 1]] * x[j - 1]
        x[k] = xk.value
