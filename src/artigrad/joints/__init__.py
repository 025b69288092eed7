"""Joints: what each kind of link does with its coordinates. Nothing else knows joint types.

A joint is a map from coordinates to a pose, and a linear map S from its velocities to motions. A new kind is one file
with `kinematics` and `columns` (and, if its coordinates do not simply add, the other functions of `spherical`); it
enters the tables below.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from ..model import FREE, PRISMATIC, REVOLUTE, SPHERICAL
from ..spatial import Articulated, Force, Motion, Transform, Vec3
from ..staging import Reals, Table, loop, switch
from ..tables import Topology, Workspace
from . import columns, free, prismatic, revolute, spherical

_KINDS: dict[int, ModuleType] = {REVOLUTE: revolute, PRISMATIC: prismatic, SPHERICAL: spherical, FREE: free}


def prepare(topology: Topology, i: Any, q: Reals, dof: Table) -> None:
    """What depends on one coordinate alone, ahead of the walk along the tree."""
    qa, va = topology.link_q[i], topology.link_v[i]
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    turn: Callable[[], None] = lambda: revolute.prepare(q, qa, va, dof)  # noqa: E731
    switch(topology.kind[i], {REVOLUTE: turn, PRISMATIC: nothing, SPHERICAL: nothing, FREE: nothing})


def kinematics(topology: Topology, i: Any, X: Transform, q: Reals, v: Reals, dof: Table) -> tuple[Transform, Motion]:
    """The pose beyond the joint of link i that sits at X, and the velocity it adds."""
    qa, va = topology.link_q[i], topology.link_v[i]
    cases: dict[int, Callable[[], Any]] = {
        k: partial(joint.kinematics, X, q, v, qa, va, dof) for k, joint in _KINDS.items()
    }
    return switch(topology.kind[i], cases)


def _by_columns(
    topology: Topology,
    i: Any,
    ws: Workspace,
    of_columns: Callable[[list[Motion]], Any],
    of_free: Callable[[Transform], Any],
) -> Any:
    """`of_columns(S)` for a joint given by its columns, `of_free(X)` for the free one. X is read only where needed."""
    link, va = ws.link[i], topology.link_v[i]
    axial = lambda: of_columns([ws.dof[va].S])  # noqa: E731
    ball = lambda: of_columns(spherical.columns(link.X))  # noqa: E731
    cases = {REVOLUTE: axial, PRISMATIC: axial, SPHERICAL: ball, FREE: lambda: of_free(link.X)}
    return switch(topology.kind[i], cases)


def apply(topology: Topology, i: Any, x: Reals, ws: Workspace) -> Motion:
    """S x: the motion that joint velocities (or accelerations) x give link i relative to its parent."""
    (motion,) = apply_rows(topology, i, (x,), ws)
    return motion


def apply_rows(topology: Topology, i: Any, rows: tuple[Reals, ...], ws: Workspace) -> tuple[Motion, ...]:
    """S x of several x at once."""
    va = topology.link_v[i]
    return _by_columns(
        topology,
        i,
        ws,
        lambda S: tuple(columns.apply(S, x, va) for x in rows),
        lambda X: tuple(free.apply(X, x, va) for x in rows),
    )


def add_projection(topology: Topology, i: Any, f: Force, ws: Workspace, out: Reals) -> None:
    """out += S^T f: what a force on link i is for its joint."""
    va = topology.link_v[i]
    _by_columns(
        topology,
        i,
        ws,
        lambda S: columns.add_projection(S, f, va, out),
        lambda X: free.add_projection(X, f, va, out),
    )


def eliminate(topology: Topology, i: Any, IA: Articulated, extra: Any, ws: Workspace) -> Articulated:
    """What the parent feels of the inertia IA of link i through its joint; keeps the factor in ws.dof."""
    va = topology.link_v[i]

    def alone(X: Transform) -> Articulated:
        free.eliminate(IA, extra, va, ws.dof)
        return Articulated.zero()

    return _by_columns(topology, i, ws, lambda S: columns.eliminate(S, IA, extra, va, ws.dof), alone)


def pull(topology: Topology, i: Any, F: Force, b: Reals, ws: Workspace) -> Force:
    """The force that reaches the parent of link i with force F and joint forces b."""
    va = topology.link_v[i]

    def alone(X: Transform) -> Force:
        free.pull(X, F, b, va, ws.dof)
        return Force.zero()

    return _by_columns(topology, i, ws, lambda S: columns.pull(S, F, b, va, ws.dof), alone)


def push(topology: Topology, i: Any, a: Motion, ws: Workspace, x: Reals) -> Motion:
    """The acceleration of link i whose parent has a; writes the joint's accelerations to x."""
    (motion,) = _push(topology, i, (a,), ws, lambda k: ws.dof[k].u, (x,))
    return motion


def push_rows(
    topology: Topology, i: Any, a: tuple[Motion, ...], ws: Workspace, rows: tuple[Reals, ...]
) -> tuple[Motion, ...]:
    """`push` of several at once, each of which has its inward half where its result goes."""
    return _push(topology, i, a, ws, None, rows)


def _push(topology: Topology, i: Any, a: tuple[Motion, ...], ws: Workspace, u: Any, rows: tuple[Reals, ...]) -> Any:
    va, each = topology.link_v[i], list(zip(a, rows, strict=True))
    return _by_columns(
        topology,
        i,
        ws,
        lambda S: tuple(columns.push(S, one, va, ws.dof, u or x.__getitem__, x) for one, x in each),
        lambda X: tuple(free.push(X, va, ws.dof, u or x.__getitem__, x) for _, x in each),
    )


def path_rows(topology: Topology, i: Any, rows: tuple[Force, ...], ws: Workspace, put: Any) -> tuple[Force, ...]:
    """Take forces on link i through its joint: `put(k, entries)` gets what degree of freedom k feels of each row, scaled
    by sqrt(1/d); returned are the forces on the parent."""
    va = topology.link_v[i]

    def alone(X: Transform) -> tuple[Force, ...]:
        free.path_rows(rows, va, ws, put)
        return tuple(Force.zero() for _ in rows)

    return _by_columns(topology, i, ws, lambda S: columns.path_rows(S, rows, va, ws, put), alone)


def _free_or_not(topology: Topology, i: Any, of_free: Callable[[], Any], other: Callable[[], Any]) -> Any:
    return switch(topology.kind[i], {REVOLUTE: other, PRISMATIC: other, SPHERICAL: other, FREE: of_free})


def before(topology: Topology, i: Any, parent: Motion, own: Motion) -> Motion:
    """The motion in which the joint's axes are fixed: the parent's, or what the shifts of a free joint do."""
    return _free_or_not(topology, i, lambda: free.before(own), lambda: parent)


def beyond(topology: Topology, i: Any, total: tuple[Motion, ...], own: tuple[Motion, ...]) -> tuple[Motion, ...]:
    """What the axes of joint i turn of motions that begin with its own: all, or without the shifts of a free joint."""

    def without_shifts() -> tuple[Motion, ...]:
        return tuple(x - free.before(y) for x, y in zip(total, own, strict=True))

    return _free_or_not(topology, i, without_shifts, lambda: total)


def before_all(topology: Topology, i: Any, ws: Workspace, in_world: bool) -> tuple[Motion, Motion, Motion, Motion]:
    """`before` of velocity, acceleration and the fields y and w (if there is a world) of link i, at one branch."""
    link, parent = ws.link[i], ws.link[topology.parent[i]]

    def w(of: Any) -> Motion:
        return ws.field[of].w if in_world else Motion.zero()

    return _free_or_not(
        topology,
        i,
        lambda: (*free.before_all(link.v, link.a, link.y), free.before(w(i))),
        lambda: (parent.v, parent.a, parent.y, w(topology.parent[i])),
    )


def add_bars(
    topology: Topology,
    i: Any,
    relative: Force,
    total: Force,
    xi: Force,
    o_bar: Vec3,
    ws: Workspace,
    tangent_bar: Reals,
    v_bar: Reals,
) -> None:
    """v_bar += S^T relative,  tangent_bar += S^T xi. The shifts of a free joint also carry its rotation, so the
    cotangent of their velocities is that of everything they move, `total`; they move the tree's origin, and nothing
    relative to it."""
    va = topology.link_v[i]

    def by_columns(S: list[Motion]) -> None:
        columns.add_projection(S, relative, va, v_bar)
        columns.add_projection(S, xi, va, tangent_bar)

    def of_free(X: Transform) -> None:
        free.add_projection(X, Force(relative.n, total.f), va, v_bar)
        free.add_projection(X, Force(xi.n, o_bar), va, tangent_bar)

    _by_columns(topology, i, ws, by_columns, of_free)


def add_pose_bars(topology: Topology, i: Any, xi: Force, o_bar: Vec3, ws: Workspace, tangent_bar: Reals) -> None:
    """tangent_bar += S^T xi; the shifts of a free joint move the tree's origin and nothing relative to it."""
    va = topology.link_v[i]
    _by_columns(
        topology,
        i,
        ws,
        lambda S: columns.add_projection(S, xi, va, tangent_bar),
        lambda X: free.add_projection(X, Force(xi.n, o_bar), va, tangent_bar),
    )


def store_columns(topology: Topology, ws: Workspace) -> None:
    """Write all columns of S to ws.dof.S, for what works on single degrees of freedom."""
    for i in loop(1, topology.nl):
        va = topology.link_v[i]

        def store(S: list[Motion], va: Any = va) -> None:
            for k, column in enumerate(S):
                ws.dof[va + k].S = column

        _by_columns(topology, i, ws, store, lambda X: store(free.columns(X)))


# -- coordinates ---------------------------------------------------------------------------------------------------------
def each(topology: Topology, straight: Callable[[Any, Any], None], round_: Callable[[Any, Any], None]) -> None:
    """For every coordinate: `straight(q index, v index)` where coordinates add, `round_(qa, va)` for a quaternion."""
    for i in loop(1, topology.nl):
        qa, va = topology.link_q[i], topology.link_v[i]

        def scalar(qa: Any = qa, va: Any = va) -> None:
            straight(qa, va)

        def quaternion(qa: Any = qa, va: Any = va) -> None:
            round_(qa, va)

        def both(qa: Any = qa, va: Any = va) -> None:
            for k in range(3):
                straight(qa + k, va + k)
            round_(qa + 3, va + 3)

        switch(topology.kind[i], {REVOLUTE: scalar, PRISMATIC: scalar, SPHERICAL: quaternion, FREE: both})


def integrate(topology: Topology, q: Reals, v: Reals, dt: Any) -> None:
    """q <- q (+) dt v, in place"""

    def straight(a: Any, k: Any) -> None:
        q[a] = q[a] + dt * v[k]

    each(topology, straight, lambda a, k: spherical.integrate(q, v, dt, a, k))


def integrate_vjp(topology: Topology, q: Reals, v: Reals, dt: Any, q_bar: Reals, v_bar: Reals) -> None:
    """q_bar of the new q becomes that of the old one (`q` holds the old one); v_bar accumulates."""

    def straight(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + dt * q_bar[a]

    each(topology, straight, lambda a, k: spherical.integrate_vjp(q, v, dt, a, k, q_bar, v_bar))


def rate(topology: Topology, q: Reals, v: Reals, out: Reals) -> None:
    """out = dq/dt, ambient"""

    def straight(a: Any, k: Any) -> None:
        out[a] = v[k]

    each(topology, straight, lambda a, k: spherical.rate(q, v, a, k, out))


def rate_vjp(topology: Topology, q: Reals, v: Reals, out_bar: Reals, q_bar: Reals, v_bar: Reals) -> None:
    """Adds to q_bar and v_bar."""

    def straight(a: Any, k: Any) -> None:
        v_bar[k] = v_bar[k] + out_bar[a]

    each(topology, straight, lambda a, k: spherical.rate_vjp(q, v, a, k, out_bar, q_bar, v_bar))


def lift(topology: Topology, q: Reals, tangent_bar: Reals, q_bar: Reals) -> None:
    """q_bar += the ambient cotangent of a tangent one (size nv)"""

    def straight(a: Any, k: Any) -> None:
        q_bar[a] = q_bar[a] + tangent_bar[k]

    each(topology, straight, lambda a, k: spherical.lift(q, tangent_bar, a, k, q_bar))


def drop(topology: Topology, q: Reals, q_bar: Reals, tangent_bar: Reals) -> None:
    """tangent_bar (size nv) = the tangent cotangent of an ambient one"""

    def straight(a: Any, k: Any) -> None:
        tangent_bar[k] = q_bar[a]

    each(topology, straight, lambda a, k: spherical.drop(q, q_bar, a, k, tangent_bar))


def normalised(topology: Topology, q: Reals, out: Reals) -> None:
    """out = q with unit quaternions"""

    def straight(a: Any, k: Any) -> None:
        out[a] = q[a]

    each(topology, straight, lambda a, k: spherical.normalised(q, a, out))


def normalised_vjp(topology: Topology, q: Reals, out_bar: Reals) -> None:
    """The cotangent of the normalised q becomes that of q, in place."""
    each(topology, lambda a, k: None, lambda a, k: spherical.normalised_vjp(q, a, out_bar))
