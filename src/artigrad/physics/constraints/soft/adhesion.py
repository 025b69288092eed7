"""Adhesion actuators and adhesive contacts under the soft law, and their adjoint.

The force of all adhesion actuators of a body is shared equally by the points at which the body touches, or would within
the gap beyond the margins, and acts along their normals:

    pull of a point = sum over both bodies of  force of the body / number of its points

Such an actuator has no length and no velocity. The number of points is not differentiated.

An adhesive contact pulls with a force c along its normal, and its law is that of a contact with a force larger by c:
its reference has c/D on the normal, so that in compression it equals the contact without adhesion. Beyond its margin
and within its gap it has no friction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....compiler import Row, loop, maximum, select
from ...context import Step
from ...dynamics.actuation import drive_of, force_vjp
from ...spatial import Vec3
from .families import POINT, WRENCH, Block, Motions, families
from .stiffness import Six


def apply_adhesion(s: Step) -> None:
    """Subtract the pull of every contact from the required forces of its links."""
    if not s.has("adhesion", "sticky"):
        return
    if s.has("adhesion"):
        measure(s)
    for family in (f for f in families(s) if isinstance(f, Block)):
        for n, row in family.blocks(s):

            def pull(family: Block = family, n: Any = n, row: Row = row) -> None:
                family.add_force(s, n, row, along_normal(family, -pull_of(s, family, n, row)))

            family.by_kind(s, n, pull, lambda: None)


def along_normal(family: Block, f: Any) -> Any:
    """Vector over the rows of a contact with f along the normal."""
    force = Vec3(f, 0.0, 0.0)
    return Six(force, Vec3.zero()) if family is WRENCH else force


def measure(s: Step) -> None:
    """Compute ws.adhesion_force and ws.adhesion_count per body with adhesion actuators, from 1; entry 0: all other
    bodies."""
    ws = s.ws
    for g in loop(s.model.nadhesion + 1):
        ws.adhesion_force[g], ws.adhesion_count[g] = 0.0, 0.0
    for j in loop(s.model.nu):
        g = s.model.act_adhesion[j]
        ws.adhesion_force[g] = ws.adhesion_force[g] + s.const.actuator[j].gear * drive_of(s, j).force
    ws.adhesion_force[0] = 0.0
    for family in (f for f in families(s) if isinstance(f, Block)):
        for n, row in family.blocks(s):

            def count(family: Block = family, n: Any = n, row: Row = row) -> None:
                for g in _bodies(s, family, n):
                    ws.adhesion_count[g] = ws.adhesion_count[g] + _there(s, family, n, row)

            family.by_kind(s, n, count, lambda: None)


def _bodies(s: Step, family: Block, n: Any) -> Iterator[Any]:
    """Yield the adhesion indices of both shapes' bodies of a contact."""
    problem = s.constraints
    k = (problem.point_of if family is POINT else problem.wrench_of)[n]
    for shape in (problem.a[k], problem.b[k]):
        yield s.model.shape_adhesion[shape]


def _there(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Return 1 for a contact of this SIMD lane, 0 for one of another lane."""
    gap = s.constraints.gap[getattr(s.constraints, f"{family.name}_of")[n]]
    return select(row.r < gap, 1.0, 0.0)


def pull_of(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Pull along the normal of a contact, N."""
    pull: Any = 0.0
    if s.has("adhesion"):
        shares = [s.ws.adhesion_force[g] / maximum(s.ws.adhesion_count[g], 1.0) for g in _bodies(s, family, n)]
        pull = _there(s, family, n, row) * (shares[0] + shares[1])
    return pull + contact_pull(s, family, n, row) if s.has("sticky") else pull


# -- adhesive contacts
# ---------------------------------------------------------------------------------------------------
def reach(s: Step, k: Any) -> Any:
    """Range beyond its margin in which a contact of pair k acts: zero, or its gap if it is adhesive."""
    return select(s.const.pair[k].adhesion > 0.0, s.constraints.gap[k], 0.0) if s.has("sticky") else 0.0


def contact_pull(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Pull c of an adhesive contact, N; 0 for one of another SIMD lane."""
    k = getattr(s.constraints, f"{family.name}_of")[n]
    return select(row.r < reach(s, k), s.const.pair[k].adhesion, 0.0)


def adhesion_row_count(s: Step, family: Block, row: Row) -> Any:
    """Number of rows that share c: the edges of a pyramid, or the normal only."""
    if s.options.cone == "elliptic":
        return 1.0
    edges: Any = 0.0
    for name in family.friction_names:
        edges = edges + select(getattr(row, name) > 0.0, 2.0, 0.0)
    return maximum(edges, 1.0)


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def start_bars(s: Step) -> None:
    """Recompute forces and counts, and clear their cotangents."""
    measure(s)
    for g in loop(s.model.nadhesion + 1):
        s.ws.adhesion_bar[g] = 0.0


def add_pull_bar(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Return the cotangent of the pull of a contact, and add it to that of its actuators' forces.

    It is computed from the motions s.link.y, which are those under -mu.
    """
    seen = family.jacobian_product(s, n, row, Motions("y", s.ws.mu))
    own = seen.lin.x if family is WRENCH else seen.x
    if s.has("adhesion"):
        bar = _there(s, family, n, row) * own
        for g in _bodies(s, family, n):
            s.ws.adhesion_bar[g] = s.ws.adhesion_bar[g] + bar / maximum(s.ws.adhesion_count[g], 1.0)
    return own


def adhesion_vjp(s: Step) -> None:
    """Cotangents of u, act and constants of adhesion actuators from those of the forces of bodies."""
    s.ws.adhesion_bar[0] = 0.0
    for j in loop(s.model.nu):
        d, bar = drive_of(s, j), s.ws.adhesion_bar[s.model.act_adhesion[j]]
        force_vjp(s, j, d, s.const.actuator[j].gear * bar)
        if s.bars.const is not None:
            s.bars.const.actuator[j].gear += d.force * bar
