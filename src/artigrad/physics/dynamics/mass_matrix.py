"""Mass matrix by the composite-rigid-body algorithm, stored along the tree, and its adjoint  (theory 4.1, 4.2).

Row k of M has one entry per ancestor degree of freedom of k, itself included, at `M[row[k] + depth]`. Entries between
different branches are zero and not stored.
"""

from __future__ import annotations

from typing import Any

from ...compiler import Reals, carry, climb, loop
from .. import joints
from ..context import Step
from ..spatial import Force, Inertia, Motion, cross_force, force_to_child, inertia_pairing, power, shift_vjp


def composite_inertias(s: Step) -> None:
    """Ic_p += Ic_i: the inertia of a link and its subtree."""
    s.ws.composite[0].I = Inertia.zero()
    for i in loop(1, s.model.nl):
        s.ws.composite[i].I = s.link[i].I
    for i in loop(1, s.model.nl, inwards=True):
        s.ws.composite[s.model.parent[i]].I += s.ws.composite[i].I


def mass_matrix(s: Step) -> None:
    """M[k, j] = S_j . Ic S_k for j = k and its ancestors, plus armature + damping_dt * damping on the diagonal."""
    composite_inertias(s)
    joints.store_columns(s)
    for i in loop(1, s.model.nl):
        own, first = s.const.link[i], s.model.link_v[i]
        extra = own.armature + s.damping_dt * own.damping
        Ic = s.ws.composite[i].I
        for k in loop(first, first + s.model.link_nv[i]):
            F = Ic @ s.dof[k].S
            row = s.model.dof_row[k]
            for j in climb(s.model.dof_parent, k + 1):
                s.ws.M[row + s.model.dof_depth[j - 1]] = power(s.dof[j - 1].S, F)
            diagonal = row + s.model.dof_depth[k]
            s.ws.M[diagonal] = s.ws.M[diagonal] + extra


def mass_matrix_vjp(s: Step, M_bar: Reals) -> None:
    """Add the cotangents of q (tangent) and constants, given those of the stored entries  (theory 4.2, world axes).

    With F_k = Ic S_k and y_k = sum of M_bar[k, j] S_j over k and its ancestors, the pairing is sum_k y_k . F_k. For k
    at or beyond joint n, a rotation of the subtree of n equals the opposite rotation of the rest of y_k:  xi = -(y_k
    before n) x* F_k. For k before n, the part Ic_n of its inertia rotates:  xi = -y_k x* Ic_n S_k - S_k x* Ic_n y_k.
    The translations of a free joint are before its own rotation. Ic is a sum, so the cotangent of a link's inertia is
    the sum of  par(y_k, S_k)  over all joints that carry it.
    """

    def part(row: Any, first: Any, end: Any) -> Motion:
        """Part of y_k from a range of adjacent degrees of freedom."""
        total = carry(Motion.zero())
        for j in loop(first, end):
            total.value = total.value + s.dof[j].S * M_bar[row + s.model.dof_depth[j]]
        return total.value

    def turn(n: Any, y: Motion, own: Motion, F: Force) -> None:
        s.field[n].zeta -= cross_force(joints.before(s, n, y, own), F)
        joints.add_parameter_bars(s, n, Force.zero(), ((Motion.zero(), own, F),))

    for i in loop(s.model.nl):
        s.field[i].zeta, s.ws.paired[i].I = Force.zero(), Inertia.zero()
    for i in loop(1, s.model.nl):
        Ic, first = s.ws.composite[i].I, s.model.link_v[i]
        for k in loop(first, first + s.model.link_nv[i]):
            S, row = s.dof[k].S, s.model.dof_row[k]
            F, own, above = Ic @ S, part(row, first, k + 1), carry(Motion.zero())
            for n in climb(s.model.parent, s.model.parent[i]):
                above.value = above.value + part(row, s.model.link_v[n], s.model.link_v[n] + s.model.link_nv[n])
            y = above.value + own
            s.dof[k].y = y
            s.ws.paired[i].I += inertia_pairing(y, S)
            turn(i, above.value, own, F)
            shift = joints.before(s, i, Motion.zero(), S)  # part of S that the joint itself does not rotate
            s.field[i].zeta -= cross_force(shift, Ic @ y)
            joints.add_parameter_bars(s, i, Force.zero(), ((Motion.zero(), S, Ic @ y),))
            for n in climb(s.model.parent, s.model.parent[i]):
                here = part(row, s.model.link_v[n], s.model.link_v[n] + s.model.link_nv[n])
                above.value = above.value - here
                turn(n, above.value, here, F)
            if s.bars.const is not None:
                bar, diagonal = s.bars.const.link[i], M_bar[row + s.model.dof_depth[k]]
                bar.armature = bar.armature + diagonal
                bar.damping = bar.damping + s.damping_dt * diagonal
    for i in loop(1, s.model.nl):
        Ic = s.ws.composite[i].I
        for n in climb(s.model.parent, s.model.parent[i]):
            for k in loop(s.model.link_v[n], s.model.link_v[n] + s.model.link_nv[n]):
                S, y = s.dof[k].S, s.dof[k].y
                s.field[i].zeta -= cross_force(y, Ic @ S) + cross_force(S, Ic @ y)
    for i in loop(1, s.model.nl):
        p, link, zeta = s.model.parent[i], s.link[i], s.field[i].zeta
        joints.add_projection(s, i, zeta, s.bars.tangent)
        joints.add_parameter_bars(s, i, zeta, ())
        if s.bars.const is not None:
            s.bars.const.link[i].placement += force_to_child(s.link[p].X, zeta)
            s.ws.paired[i].I += s.ws.paired[p].I
            _, I_bar = shift_vjp(link.X, s.const.link[i].I, s.ws.paired[i].I)
            s.bars.const.link[i].I += I_bar
