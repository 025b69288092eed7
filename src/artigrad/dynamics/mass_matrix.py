"""The mass matrix by the composite-rigid-body algorithm, stored along the tree, and its adjoint  (theory 4.1, 4.2).

Row k of M has one entry per ancestor degree of freedom of k, itself included: entry `depth` of `M[row[k] + depth]`.
Entries between different branches are zero and have no place.
"""

from __future__ import annotations

from typing import Any

from .. import joints
from ..spatial import Inertia, power
from ..staging import climb, loop
from ..tables import Constants, Topology, Workspace


def composite_inertias(topology: Topology, ws: Workspace) -> None:
    """Ic_p += Ic_i: the inertia of a link and all it carries, kept where IA would be."""
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


