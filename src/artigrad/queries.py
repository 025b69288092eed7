"""Functions of one state: outputs, joint accelerations, inverse dynamics, mass matrix; each with its adjoint.

A query reads (q, v, x) and fills `out`, all flat arrays per robot; x is what else it needs: controls, accelerations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from . import joints
from .dynamics import FACTOR, Method, accelerate, accelerate_vjp
from .dynamics.inverse_dynamics import inverse_dynamics, inverse_dynamics_vjp
from .dynamics.mass_matrix import mass_matrix, mass_matrix_vjp
from .kinematics import kinematics
from .model import Model
from .options import Options
from .outputs import outputs, outputs_size, outputs_vjp
from .rollout import Variant
from .staging import PACKED, ROBOTS, SHARED, WORK, Kernel, Reals, copy, loop
from .staging.kernel import Kind
from .tables import COMPOSITE, ORIGIN, TOPOLOGY, Bars, Constants, Topology, Workspace, dof_rows, wanted


@dataclass(frozen=True)
class Query:
    """A function of one state: its size, its staged forward and its staged adjoint (where bars.u is the cotangent of x)."""

    size: Callable[[Model], int]
    x_size: Callable[[Model], int]
    forward: Callable[..., None]
    vjp: Callable[..., None]


class At(NamedTuple):
    """Where a query is asked."""

    q: Reals
    v: Reals
    x: Reals


def _outputs(t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out: Reals) -> None:
    kinematics(t, const, at.q, at.v, ws)
    outputs(t, const, at.q, at.v, ws, out)


def _outputs_vjp(
    t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out_bar: Reals, bars: Bars
) -> None:
    kinematics(t, const, at.q, at.v, ws)
    outputs_vjp(t, const, at.q, at.v, ws, out_bar, bars)


def _acceleration(t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out: Reals) -> None:
    accelerate(t, const, method, *at, ws)
    for k in loop(t.nv):
        out[k] = ws.qdd[k]


def _acceleration_vjp(
    t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out_bar: Reals, bars: Bars
) -> None:
    accelerate(t, const, method, *at, ws)
    accelerate_vjp(t, const, method, *at, ws, out_bar, bars)


def _inverse(t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out: Reals) -> None:
    """out = M a + bias: armature is part of M; damping, springs and actuators are not part of the result."""
    kinematics(t, const, at.q, at.v, ws)
    inverse_dynamics(t, const, at.x, ws, out)
    for i in loop(1, t.nl):
        own, va = const.link[i], t.link_v[i]
        for k in loop(t.link_nv[i]):
            out[va + k] = out[va + k] + own.armature * at.x[va + k]


def _inverse_vjp(
    t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out_bar: Reals, bars: Bars
) -> None:
    kinematics(t, const, at.q, at.v, ws)
    inverse_dynamics_vjp(t, const, at.x, ws, out_bar, 1.0, bars)
    for i in loop(1, t.nl):
        own, bar, va = const.link[i], wanted(bars).link[i], t.link_v[i]
        joints.add_projection(t, i, ws.link[i].a_bar, ws, bars.u)
        for k in loop(t.link_nv[i]):
            tau_bar = out_bar[va + k]
            bars.u[va + k] = bars.u[va + k] + own.armature * tau_bar
            bar.armature = bar.armature + tau_bar * at.x[va + k]


def _mass_matrix(t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out: Reals) -> None:
    kinematics(t, const, at.q, at.v, ws)
    mass_matrix(t, const, 0.0, ws)
    for k in loop(t.dof_row[t.nv]):
        out[k] = ws.M[k]


def _mass_matrix_vjp(
    t: Topology, const: Constants, method: Method, at: At, ws: Workspace, out_bar: Reals, bars: Bars
) -> None:
    kinematics(t, const, at.q, at.v, ws)
    mass_matrix(t, const, 0.0, ws)
    mass_matrix_vjp(t, const, 0.0, ws, out_bar, bars)


QUERIES = {
    "outputs": Query(lambda m: outputs_size(m.nb, m.ns), lambda m: 0, _outputs, _outputs_vjp),
    "acceleration": Query(lambda m: m.nv, lambda m: m.nu, _acceleration, _acceleration_vjp),
    "inverse_dynamics": Query(lambda m: m.nv, lambda m: m.nv, _inverse, _inverse_vjp),
    "mass_matrix": Query(lambda m: int(dof_rows(m)["dof_row"][m.nv]), lambda m: 0, _mass_matrix, _mass_matrix_vjp),
}


def query_work(model: Model, options: Options, name: str) -> dict[str, int]:
    """Scratch of a query and of its adjoint."""
    query, nl = QUERIES[name], len(model.links.parent)
    work = Workspace.sizes(model, replace(options, factor="sparse", integrator="semi_implicit"), True, False)
    extra = {"x": query.x_size(model), "x_bar": query.x_size(model), "out": query.size(model)}
    extra |= {"tree": (model.links.trees + 1) * ORIGIN.size, "paired": nl * COMPOSITE.size}
    return work | {f"ws_{k}": n for k, n in extra.items()}


@cache
def query_kernel(name: str, variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: out = query(q, v, x)"""

    def body(const: Reals, q: Reals, v: Reals, x: Reals, out: Reals, size: Any, x_size: Any, **rest: Any) -> None:
        topology, ws = Topology.take(rest), Workspace(rest, False)
        constants, method = Constants(topology, const), Method(FACTOR[variant.options.factor], 0.0)
        copy(q, ws.q, topology.nq)
        copy(v, ws.v, topology.nv)
        copy(x, ws.x, x_size)
        QUERIES[name].forward(topology, constants, method, At(ws.q, ws.v, ws.x), ws, ws.out)
        copy(ws.out, out, size)

    signature: dict[str, Kind] = {
        **TOPOLOGY,
        "const": PACKED if variant.own_params else SHARED,
        **dict.fromkeys(("q", "v", "x", "out"), ROBOTS),
        **dict.fromkeys(("size", "x_size"), "int"),
        **dict.fromkeys(work, WORK),
    }
    return Kernel(name, body, signature, variant.target)


@cache
def query_vjp_kernel(name: str, variant: Variant, work: tuple[str, ...]) -> Kernel:
    """Kernel: the cotangents of q (ambient), v, x and constants for that of out."""

    def body(
        const: Reals,
        q: Reals,
        v: Reals,
        x: Reals,
        out_bar: Reals,
        q_bar: Reals,
        v_bar: Reals,
        x_bar: Reals,
        const_bar: Reals,
        size: Any,
        x_size: Any,
        **rest: Any,
    ) -> None:
        topology, ws = Topology.take(rest), Workspace(rest, False)
        constants, method = Constants(topology, const), Method(FACTOR[variant.options.factor], 0.0)
        bars = Bars(ws.tangent_bar, ws.v_bar, ws.x_bar, Constants(topology, const_bar, bars=True))
        copy(q, ws.q, topology.nq)
        copy(v, ws.v, topology.nv)
        copy(x, ws.x, x_size)
        copy(out_bar, ws.out, size)
        for array, n in (
            (ws.q_bar, topology.nq),
            (ws.v_bar, topology.nv),
            (ws.tangent_bar, topology.nv),
            (ws.x_bar, x_size),
        ):
            for k in loop(n):
                array[k] = 0.0
        QUERIES[name].vjp(topology, constants, method, At(ws.q, ws.v, ws.x), ws, ws.out, bars)
        joints.lift(topology, ws.q, ws.tangent_bar, ws.q_bar)
        copy(ws.q_bar, q_bar, topology.nq)
        copy(ws.v_bar, v_bar, topology.nv)
        copy(ws.x_bar, x_bar, x_size)

    signature: dict[str, Kind] = {
        **TOPOLOGY,
        "const": PACKED if variant.own_params else SHARED,
        **dict.fromkeys(("q", "v", "x", "out_bar", "q_bar", "v_bar", "x_bar"), ROBOTS),
        "const_bar": PACKED,
        **dict.fromkeys(("size", "x_size"), "int"),
        **dict.fromkeys(work, WORK),
    }
    return Kernel(f"{name}_vjp", body, signature, variant.target)
