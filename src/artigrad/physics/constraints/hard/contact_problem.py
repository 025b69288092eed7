"""Arguments of a kernel with contact: integers of the candidate pairs, numbers of the options, scratch for the rows."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ....compiler import INT, INT_WORK, INTS, SHARED, WORK, ArgumentKind, Layout, Reals, Table, loop
from ....model.model import Model
from ...collision.candidates import candidates, contact_layout, contact_sizes, slots_in
from ...collision.convex.contact_record import Slots
from ...collision.convex.hull_tables import HULLS, hull_arguments
from ...spatial import Mat3, Motion, Transform, Vec3
from ...tables import dof_rows
from . import cone, pyramid

FRICTION: dict[str, ModuleType] = {"pyramidal": pyramid, "elliptic": cone}

INTEGERS: dict[str, ArgumentKind] = {
    **dict.fromkeys(("c_groups", "c_cap", "c_width", "c_depth", "c_sides"), INT),
    **dict.fromkeys(("c_routine", "c_a", "c_b", "c_swapped", "c_first", "c_first_point", "c_limit"), INTS),
    **dict.fromkeys(("c_joint", "c_joint_first", "c_common"), INTS),
    **dict.fromkeys(("c_links", "c_link_first", "c_dof_first", "c_dof_end"), INTS),
    "c_feature": SHARED,
    **{f"c_{k}": kind for k, kind in HULLS.items()},
}
# One row per contact (or limited joint): three rows of the problem, in the order normal, tangent, tangent.
CONTACT = Layout(
    phi=float,  # gap
    p=Vec3,  # point, about the origin of B's tree
    p_a=Vec3,  # the same about that of A's
    R=Mat3,  # columns: tangents, normal; of a limited joint, its sign in the corner
    mu=float,
    bound=float,  # of a tangential impulse, beside mu times the normal one
    e=float,  # restitution
    around=Vec3,  # velocities at the start, and those at the end of the free motion
    soft=float,  # softness, 1/kg
    rebound=float,  # by which restitution exceeds the other target velocity, where the contact bounces
    share=float,  # of its restitution that it gets
    limited=float,  # 1 where the energy decides that share
    eta=float,  # backwards: the multiplier of the energy
    b=Vec3,
    lam=Vec3,  # impulses
    inv=Vec3,  # 1 / diagonal of A
    active=Vec3,  # the active set, as the law of friction names it
    slide_sign=Vec3,
    part=float,  # number of the part of the island; below zero where only a neighbor in the pack has the contact
    member=float,  # 1 in the part that is solved, else 0
    swept=Vec3,  # impulses that sweeps have left, or that were applied
    drift=Vec3,  # where accelerated sweeps go
    change=Vec3,  # of the distances to another active set, for a unit change of the state
    inv_bar=Vec3,  # backwards: cotangents of what the sweeps read
    mu_bar=float,
    bound_bar=float,
).overlay("swept", nu=Vec3)  # backwards: multipliers of the active velocity rows
CONTACT.overlay("inv_bar", x=Vec3)  # unknowns of the active set
# the adjoint of the sweeps has no active set
CONTACT.overlay("active", lam_bar=Vec3)
CONTACT.overlay("slide_sign", b_bar=Vec3)
TAPED = Layout(lam=Vec3, w=Vec3)  # of an update: the impulses and the residual that it found
MOVED = Layout(n=Motion, t=Motion, s=Motion)  # one row per link: its motions under the three columns of a contact
PLACED = Layout(
    X=Transform, at=Vec3
)  # one row per shape: its pose, about the origin of its tree; its place in the world
A_SIDE, B_SIDE = 0, 1
REALS = ("contact", "placed", "slots", "contact_records", "Z", "A", "K", "root", "ut", "status", "tree_part")
REVERSE = ("tape", "ran", "Y", "X", "moved", "free", "dual", "push", "M_bar")  # what the adjoint of the sweeps adds
PLACES = ("link_a", "link_b", "pair", "source", "start", "in_group", "kind", "order", "place", "of_island", "base")
ISLANDS = ("island", "islands", "sizes", "joints", "blocks")
SCRATCH = (*PLACES, *ISLANDS, "group", "tree_island", "island_number")


def contact_arguments(model: Model, max_contacts: int, dtype: np.dtype) -> dict[str, Any]:
    """The integer arguments of a kernel with contact; of each group at most max_contacts points may be near at a time."""
    c, links = candidates(model), model.links
    rows = dof_rows(model)
    nl = len(links.parent)
    last = [int(links.v[i] + links.nv[i]) - 1 for i in range(nl)]
    path = np.array([0] + [int(rows["dof_depth"][last[i]]) + 1 for i in range(1, nl)], np.int32)
    common = np.zeros((nl, nl), np.int32)  # degrees of freedom that two links have before them both
    for i in range(1, nl):
        above = set(_ancestors(links.parent, i))
        for j in np.flatnonzero(links.tree == links.tree[i]):
            common[i, j] = next((path[k] for k in _ancestors(links.parent, int(j)) if k in above), 0)
    first = np.searchsorted(c.group[:-1], np.arange(c.groups + 1)).astype(np.int32)
    joint_first = np.searchsorted(c.limited_group[:-1], np.arange(c.groups + 1)).astype(np.int32)
    limit = np.minimum(np.diff(c.first[first]), max_contacts)
    sizes = limit + np.diff(joint_first)
    return {
        "c_groups": c.groups,
        "c_cap": int(sizes.sum()),
        "c_width": int(sizes.max(initial=1)),
        "c_depth": int(path.max(initial=1)),
        "c_sides": 2 if any(links.of_body[model.shapes.body[a] + 1] for a in c.a[:-1]) else 1,
        "c_routine": c.routine,
        "c_a": c.a,
        "c_b": c.b,
        "c_swapped": c.swapped,
        "c_first": first,
        "c_first_point": c.first,
        "c_limit": np.array([*limit, 0], np.int32),
        "c_joint": c.limited,
        "c_joint_first": joint_first,
        "c_common": np.ascontiguousarray(common.reshape(-1)),
        "c_links": np.array([*(i for own in c.links for i in own), 0], np.int32),
        "c_link_first": np.cumsum([0, *map(len, c.links)]).astype(np.int32),
        "c_dof_first": np.array([*(links.v[own].min() for own in c.links), 0], np.int32),
        "c_dof_end": np.array([*((links.v[own] + links.nv[own]).max() for own in c.links), 0], np.int32),
        "c_feature": np.ascontiguousarray(c.feature.reshape(-1), dtype),
        **{f"c_{k}": x for k, x in hull_arguments(model, dtype).items()},
    }


def _ancestors(parent: np.ndarray, i: int) -> list[int]:
    out = []
    while i > 0:
        out.append(i)
        i = int(parent[i])
    return out


def contact_work(model: Model, integers: dict[str, Any]) -> dict[str, int]:
    """Sizes of the scratch."""
    cap, width, depth, sides = (integers[k] for k in ("c_cap", "c_width", "c_depth", "c_sides"))
    sizes = {"contact": cap * CONTACT.size, "Z": cap * sides * depth * 3, "A": cap * width * 9, "K": cap * width * 9}
    sizes |= {
        "root": model.nv,
        "ut": model.nv,
        "status": 3,
        "group": integers["c_groups"] + 1,
        **dict.fromkeys(("tree_part", "tree_island", "island_number"), model.links.trees + 1),
        **dict.fromkeys(ISLANDS, cap + 1),
    }
    sizes |= {"placed": len(model.shapes.names) * PLACED.size}
    sizes |= contact_sizes(model, cap)
    sizes |= dict.fromkeys(PLACES, cap)
    return {f"cw_{k}": max(sizes.get(k, 0), 1) for k in (*REALS, *SCRATCH)}


def reverse_work(model: Model, integers: dict[str, Any], sweeps: int) -> dict[str, int]:
    """Sizes of the further scratch of the adjoint of the sweeps."""
    cap, nv = integers["c_cap"], model.nv
    sizes = {
        "tape": sweeps * cap * TAPED.size,
        "ran": cap + 1,
        "Y": cap * 3 * nv,
        "X": cap * 3 * nv,
        "moved": len(model.links.parent) * MOVED.size,
        "M_bar": int(dof_rows(model)["dof_row"][nv]),
    }
    sizes |= dict.fromkeys(("free", "dual", "push"), nv)
    return {f"cw_{k}": max(n, 1) for k, n in sizes.items()}


def contact_signature(reverse: bool = False) -> dict[str, ArgumentKind]:
    """Signature of the contact arguments of a kernel; with those of the adjoint of the sweeps if `reverse`."""
    return {
        **INTEGERS,
        **{f"cw_{k}": WORK for k in (*REALS, *(REVERSE if reverse else ()))},
        **{f"cw_{k}": INT_WORK for k in SCRATCH},
        "contact_options": SHARED,
    }


class ContactOptions:
    """Numbers of Options that contact depends on, beside the parameters of the shapes."""

    def __init__(self, numbers: Reals):
        self.near, self.erp, self.out, self.slop, self.softness = (numbers[k] for k in range(5))
        self.threshold, self.tolerance, self.absolute_softness = numbers[5], numbers[6], numbers[7]


class ContactProblem(SimpleNamespace):
    """The rows of one step inside a kernel. A `contact` is a block of three rows, whatever its kind."""

    routines: frozenset[int]  # those of the model's pairs
    solids: frozenset[int]  # kinds of shapes in pairs of any solids
    options: ContactOptions
    friction: ModuleType
    groups: Any
    cap: Any
    width: Any
    depth: Any
    sides: Any  # of a contact with a path through joints: 1 where all touch the world alone
    routine: Any  # of each pair
    a: Any
    b: Any
    swapped: Any  # 1 where MuJoCo has a and b the other way round
    first: Any  # pair of each group, and the number of all pairs
    first_point: Any  # of each pair
    limit: Any  # how many points of each group may be near at a time
    joint: Any  # links whose joint has a limit or dry friction
    joint_first: Any  # of each group, and the number of all
    common: Any
    links: Any  # those that may push each other, group by group
    link_first: Any  # of each group, and the number of all
    dof_first: Any  # the degrees of freedom of a group are among these
    dof_end: Any
    feature: Reals
    row: Table
    placed: Table
    slots: Slots  # what a pair whose points are found together has just met
    contact_records: Table  # of each contact of such a pair
    Z: Reals
    A: Reals
    K: Reals
    root: Reals  # sqrt(1/d) of each degree of freedom
    ut: Reals  # d^1/2 u of each degree of freedom: what Z is paired with
    status: Reals  # worst violation, least margin, 1 where a contact found no place
    tape: Table  # of each sweep and contact
    ran: Reals  # sweeps that each group took
    Y: Reals  # Mt^-1 J^T
    X: Reals  # (A_bar + A_bar^T) Y^T, then the cotangents of J
    moved: Table
    free: Reals  # accelerations without contact
    dual: Reals  # dt Mt^-1 v+_bar
    push: Reals  # Y lam / dt
    M_bar: Reals
    link_a: Any
    link_b: Any
    pair: Any
    source: Any  # point, or limited joint
    kind: Any  # its place in `kinds.KINDS`
    in_group: Any
    group: Any  # first contact of each group, and the number of all
    order: Any  # contacts, island by island
    place: Any  # of each contact in that order
    start: Any  # first place of the island a contact is in
    base: Any  # first block of each contact in A and K
    of_island: Any  # of each contact
    islands: Any  # the number of islands
    island: Any  # first place of each, and the number of all contacts
    joints: Any  # first place of each that is a limited joint
    sizes: Any  # how many contacts each has
    blocks: Any  # first block of each in A and K
    tree_island: Any
    island_number: Any  # of each tree, 1 for the first
    tree_part: Any  # number of the part of each tree, robot by robot
    force_bar: Any  # optional Reals: cotangents of the forces of a step

    @classmethod
    def take(
        cls, arguments: dict[str, Any], cone: str, routines: frozenset[int], solids: frozenset[int]
    ) -> ContactProblem:
        """Return the contact arguments among those of a kernel."""
        found = {k[2:]: arguments.pop(k) for k in INTEGERS}
        found |= {k: arguments.pop(f"cw_{k}") for k in (*REALS, *SCRATCH)}
        found |= {k: arguments.pop(f"cw_{k}") for k in REVERSE if f"cw_{k}" in arguments}
        found["row"] = Table(found.pop("contact").memory, CONTACT)
        found["placed"] = Table(found["placed"].memory, PLACED)
        found["slots"] = slots_in(found["slots"].memory, routines, found["hull_ring"])
        found["contact_records"] = Table(found["contact_records"].memory, contact_layout(routines))
        if "tape" in found:
            found["tape"], found["moved"] = Table(found["tape"].memory, TAPED), Table(found["moved"].memory, MOVED)
        options = ContactOptions(arguments.pop("contact_options"))
        return cls(**found, routines=routines, solids=solids, options=options, friction=FRICTION[cone], force_bar=None)

    @property
    def count(self) -> Any:
        """Number of contacts."""
        return self.group[self.groups]

    @property
    def all_points(self) -> Any:
        """Number of candidate points of all pairs."""
        return self.first_point[self.first[self.groups]]

    def link(self, c: Any, side: int) -> Any:
        """The link on one side of contact c."""
        return self.link_b[c] if side == B_SIDE else self.link_a[c]

    def end(self, c: Any) -> Any:
        """One past the last place of the island that contact c is in."""
        return self.island[self.of_island[c] + 1]

    def members(self, first: Any, end: Any, inwards: bool = False) -> Iterator[Any]:
        """Loop over the contacts at the places from first to before end."""
        for p in loop(first, end, inwards=inwards):
            yield self.order[p]

    def dofs(self, g: Any) -> tuple[Any, Any]:
        """Return the first of the degrees of freedom that group g may push, and one past the last."""
        return self.dof_first[g], self.dof_end[g]

    def z(self, c: Any, side: int, depth: Any) -> Any:
        """Index in Z of the three entries of contact c, side and depth."""
        return ((c * self.sides + side * (self.sides - 1)) * self.depth + depth) * 3

    def block(self, c: Any, d: Any) -> Any:
        """Index in A and K of the 3x3 block of contacts c and d."""
        return (self.base[c] + (self.place[d] - self.start[d])) * 9
