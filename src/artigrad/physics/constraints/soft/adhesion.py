"""Adhesion: actuators that pull a body to whatever it touches, and contacts that pull by themselves, under the soft law; and
the adjoint.

The force of all such actuators of a body is shared by the points at which the body touches, or would within the gap beyond the
margins, and pulls along their normals:

    pull of a point = sum over both bodies of  force of the body / number of its points

Such an actuator has no length and no velocity. How many points there are is not differentiated.

A contact that pulls by itself does so with a force c along its normal, and its law is that of a contact whose force is c more:
its reference has c/D on the normal, so that pressed together it is the contact it would be without. Beyond its margin and
within its gap it has no friction.
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


def stick(s: Step) -> None:
    """Take the pull of every contact off the forces that its links need."""
    if not s.extras & {"adhesion", "sticky"}:
        return
    if "adhesion" in s.extras:
        measure(s)
    for family in (f for f in families(s) if isinstance(f, Block)):
        for n, row in family.blocks(s):

            def pull(family: Block = family, n: Any = n, row: Row = row) -> None:
                family.add_force(s, n, row, along_normal(family, -pull_of(s, family, n, row)))

            family.by_kind(s, n, pull, lambda: None)


def along_normal(family: Block, f: Any) -> Any:
    force = Vec3(f, 0.0, 0.0)
    return Six(force, Vec3.zero()) if family is WRENCH else force


def measure(s: Step) -> None:
    """ws.glue_force and ws.glue_count: of each body with such actuators, counted from 1; 0 stands for all others."""
    ws = s.ws
    for g in loop(s.model.nglue + 1):
        ws.glue_force[g], ws.glue_count[g] = 0.0, 0.0
    for j in loop(s.model.nu):
        g = s.model.act_glue[j]
        ws.glue_force[g] = ws.glue_force[g] + s.const.actuator[j].gear * drive_of(s, j).force
    ws.glue_force[0] = 0.0
    for family in (f for f in families(s) if isinstance(f, Block)):
        for n, row in family.blocks(s):

            def count(family: Block = family, n: Any = n, row: Row = row) -> None:
                for g in _bodies(s, family, n):
                    ws.glue_count[g] = ws.glue_count[g] + _there(s, family, n, row)

            family.by_kind(s, n, count, lambda: None)


def _bodies(s: Step, family: Block, n: Any) -> Iterator[Any]:
    """Of both shapes of a contact."""
    problem = s.constraints
    k = (problem.point_of if family is POINT else problem.wrench_of)[n]
    for shape in (problem.a[k], problem.b[k]):
        yield s.model.shape_glue[shape]


def _there(s: Step, family: Block, n: Any, row: Row) -> Any:
    """1 for a contact, 0 for one of a neighbour in the pack."""
    gap = s.constraints.gap[getattr(s.constraints, f"{family.name}_of")[n]]
    return select(row.r < gap, 1.0, 0.0)


def pull_of(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Along the normal of a contact."""
    pull: Any = 0.0
    if "adhesion" in s.extras:
        shares = [s.ws.glue_force[g] / maximum(s.ws.glue_count[g], 1.0) for g in _bodies(s, family, n)]
        pull = _there(s, family, n, row) * (shares[0] + shares[1])
    return pull + own_pull(s, family, n, row) if "sticky" in s.extras else pull


# -- contacts that pull by themselves ----------------------------------------------------------------------------------------
def reach(s: Step, k: Any) -> Any:
    """How far beyond its margin a contact of pair k acts: not at all, or within its gap if it pulls."""
    return select(s.const.pair[k].adhesion > 0.0, s.constraints.gap[k], 0.0) if "sticky" in s.extras else 0.0


def own_pull(s: Step, family: Block, n: Any, row: Row) -> Any:
    """c of a contact, 0 of one of a neighbour in the pack."""
    k = getattr(s.constraints, f"{family.name}_of")[n]
    return select(row.r < reach(s, k), s.const.pair[k].adhesion, 0.0)


def rows_of(s: Step, family: Block, row: Row) -> Any:
    """How many rows share c: the edges of a pyramid, or the normal alone."""
    if s.options.cone == "elliptic":
        return 1.0
    edges: Any = 0.0
    for name in family.rubs:
        edges = edges + select(getattr(row, name) > 0.0, 2.0, 0.0)
    return maximum(edges, 1.0)


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def start_bars(s: Step) -> None:
    """Forces and counts once more, and no cotangents yet."""
    measure(s)
    for g in loop(s.model.nglue + 1):
        s.ws.glue_bar[g] = 0.0


def add_pull_bar(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Of the pull of a contact, from the motions s.link.y, which are those under -mu: to its actuators, and as a result."""
    seen = family.seen(s, n, row, Motions("y", s.ws.mu))
    own = seen.lin.x if family is WRENCH else seen.x
    if "adhesion" in s.extras:
        bar = _there(s, family, n, row) * own
        for g in _bodies(s, family, n):
            s.ws.glue_bar[g] = s.ws.glue_bar[g] + bar / maximum(s.ws.glue_count[g], 1.0)
    return own


def adhesion_vjp(s: Step) -> None:
    """From the cotangents of the forces of bodies to those of u, act and constants of their actuators."""
    s.ws.glue_bar[0] = 0.0
    for j in loop(s.model.nu):
        d, bar = drive_of(s, j), s.ws.glue_bar[s.model.act_glue[j]]
        force_vjp(s, j, d, s.const.actuator[j].gear * bar)
        if s.bars.const is not None:
            s.bars.const.actuator[j].gear += d.force * bar
