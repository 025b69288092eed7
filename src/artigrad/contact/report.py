"""Contact forces as an output of a step: one row for every point that may touch, in the order of `contact_names`.

Their cotangents enter the adjoints of a step beside those of the next state: see `force_bar` in `implicit` and `reverse`.
"""

from __future__ import annotations

from typing import Any

from ..outputs import origin
from ..spatial import Mat3, Vec3
from ..staging import Layout, Reals, Table, loop, minimum, switch
from ..tables import Constants, Topology
from .gather import Law
from .tables import Contacts

REPORT = Layout(force=Vec3, point=Vec3, gap=float)


def world_force(R: Mat3, k: Vec3) -> Vec3:
    """k_n n + k_1 t1 + k_2 t2"""
    return R @ Vec3(k.y, k.z, k.x)


def along_rows(R: Mat3, f: Vec3) -> Vec3:
    """(f . n, f . t1, f . t2): the transpose of `world_force`"""
    x = R.T @ f
    return Vec3(x.z, x.x, x.y)


def report(topology: Topology, const: Constants, law: Law, q: Reals, contacts: Contacts, out: Reals) -> None:
    """Fill `out` after the impulses were found: force on B (its mean over the step), place, and gap up to the margin."""
    table = Table(out.memory, REPORT, out.start)
    for k in loop(contacts.points):
        row = table[k]
        row.force, row.point, row.gap = Vec3.zero(), Vec3.zero(), law.margin
    for c in loop(contacts.group[contacts.groups]):

        def touching(c: Any = c) -> None:
            row, at = contacts.row[c], table[contacts.source[c]]
            tree = topology.tree[contacts.link_b[c]]
            at.force = world_force(row.R, row.lam) * (1.0 / law.dt)
            at.point, at.gap = row.p + origin(topology, const, tree, q), minimum(row.phi, law.margin)

        switch(contacts.of_joint[c], {0: touching, 1: lambda: None})
