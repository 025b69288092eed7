"""The mass matrix by the composite-rigid-body algorithm, stored along the tree, and its adjoint  (theory 4.1, 4.2).

Row k of M has one entry per ancestor degree of freedom of k, itself included: entry `depth` of `M[row[k] + depth]`.
Entries between different branches are zero and have no place.
"""

from __future__ import annotations

from typing import Any

from .. import joints
from ..spatial import Force, Inertia, Motion, cross_force, force_to_child, inertia_pairing, power, shift_vjp
from ..staging import Reals, carry, climb, loop
from ..tables import Bars, Constants, Topology, Workspace


def composite_inertias(topology: Topology, ws: Workspace) -> None:
    """Ic_p += Ic_i: the inertia of a link and all it carries."""
    ws.composite[0].I = Inertia.zero()
    for i in loop(1, topology.nl):
        ws.composite[i].I = ws.link[i].I
    for i in loop(1, topology.nl, inwards=True):
        ws.composite[topology.parent[i]].I += ws.composite[i].I


def mass_matrix(topology: Topology, const: Constants, damping_dt: Any, ws: Workspace) -> None:
    """M[k, j] = S_j . Ic S_k for j = k and its ancestors, plus armature + damping_dt * damping on the diagonal"""
    composite_inertias(topology, ws)
    joints.store_columns(topology, ws)
    for i in loop(1, topology.nl):
        own, first = const.link[i], topology.link_v[i]
        extra = own.armature + damping_dt * own.damping
        Ic = ws.composite[i].I
        for k in loop(first, first + topology.link_nv[i]):
            F = Ic @ ws.dof[k].S
            row = topology.dof_row[k]
            for j in climb(topology.dof_parent, k + 1):
                ws.M[row + topology.dof_depth[j - 1]] = power(ws.dof[j - 1].S, F)
            diagonal = row + topology.dof_depth[k]
            ws.M[diagonal] = ws.M[diagonal] + extra


def mass_matrix_vjp(
    topology: Topology,
    const: Constants,
    damping_dt: Any,
    ws: Workspace,
    M_bar: Reals,
    bars: Bars,
) -> None:
    """Adds the cotangents of q (tangent) and constants, for cotangents of the stored entries  (theory 4.2, world axes).

    With F_k = Ic S_k and y_k = sum of M_bar[k, j] S_j over k and its ancestors, the pairing is sum_k y_k . F_k. For k at or
    beyond joint n, turning all that n carries is turning the rest of y_k the other way:  xi = -(y_k before n) x* F_k.
    For k before n, the part Ic_n of its inertia turns:  xi = -y_k x* Ic_n S_k - S_k x* Ic_n y_k. The shifts of a free
    joint are before its own rotation.
    Ic is a sum, so the cotangent of a link's inertia gathers  par(y_k, S_k)  from every joint that carries it.
    """

    def part(row: Any, first: Any, end: Any) -> Motion:
        """The share of y_k that some neighbouring degrees of freedom have."""
        total = carry(Motion.zero())
        for j in loop(first, end):
            total.value = total.value + ws.dof[j].S * M_bar[row + topology.dof_depth[j]]
        return total.value

    def turn(n: Any, y: Motion, own: Motion, F: Force) -> None:
        ws.field[n].zeta -= cross_force(joints.before(topology, n, y, own), F)

    for i in loop(topology.nl):
        ws.field[i].zeta, ws.paired[i].I = Force.zero(), Inertia.zero()
    for i in loop(1, topology.nl):
        Ic, first = ws.composite[i].I, topology.link_v[i]
        for k in loop(first, first + topology.link_nv[i]):
            S, row = ws.dof[k].S, topology.dof_row[k]
            F, own, above = Ic @ S, part(row, first, k + 1), carry(Motion.zero())
            for n in climb(topology.parent, topology.parent[i]):
                above.value = above.value + part(row, topology.link_v[n], topology.link_v[n] + topology.link_nv[n])
            y = above.value + own
            ws.dof[k].y = y
            ws.paired[i].I += inertia_pairing(y, S)
            turn(i, above.value, own, F)
            shift = joints.before(topology, i, Motion.zero(), S)  # what of S the joint itself does not turn
            ws.field[i].zeta -= cross_force(shift, Ic @ y)
            for n in climb(topology.parent, topology.parent[i]):
                here = part(row, topology.link_v[n], topology.link_v[n] + topology.link_nv[n])
                above.value = above.value - here
                turn(n, above.value, here, F)
            if bars.const is not None:
                bar, diagonal = bars.const.link[i], M_bar[row + topology.dof_depth[k]]
                bar.armature = bar.armature + diagonal
                bar.damping = bar.damping + damping_dt * diagonal
    for i in loop(1, topology.nl):
        Ic = ws.composite[i].I
        for n in climb(topology.parent, topology.parent[i]):
            for k in loop(topology.link_v[n], topology.link_v[n] + topology.link_nv[n]):
                S, y = ws.dof[k].S, ws.dof[k].y
                ws.field[i].zeta -= cross_force(y, Ic @ S) + cross_force(S, Ic @ y)
    for i in loop(1, topology.nl):
        p, link, zeta = topology.parent[i], ws.link[i], ws.field[i].zeta
        joints.add_projection(topology, i, zeta, ws, bars.tangent)
        if bars.const is not None:
            bars.const.link[i].placement += force_to_child(ws.link[p].X, zeta)
            ws.paired[i].I += ws.paired[p].I
            _, I_bar = shift_vjp(link.X, const.link[i].I, ws.paired[i].I)
            bars.const.link[i].I += I_bar
