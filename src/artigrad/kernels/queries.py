"""Functions of one state as kernels, with adjoints: outputs, joint accelerations, inverse dynamics, mass matrix, sensors.

A query reads (q, v, act, x) and writes `out`, all flat arrays per robot; x has further inputs: controls, accelerations. Its
Step has x in place of the control, and constraints only if the query requires them; all damping is explicit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..compiler import INT, PACKED, ROBOTS, WORK, ArgumentKind, Kernel, Reals, copy, loop, target
from ..model.model import Model
from ..model.options import Options
from ..physics import joints
from ..physics.actuator_outputs import actuator_outputs, actuator_outputs_size, actuator_outputs_vjp
from ..physics.constraints.law import law_of
from ..physics.context import Step
from ..physics.dynamics.inverse_dynamics import inverse_dynamics, inverse_dynamics_vjp
from ..physics.dynamics.mass_matrix import mass_matrix, mass_matrix_vjp
from ..physics.frame_accelerations import acceleration_data, acceleration_data_size, acceleration_data_vjp
from ..physics.joints import coordinates
from ..physics.kinematics import link_kinematics
from ..physics.outputs import outputs, outputs_size, outputs_vjp
from ..physics.sensors.readings import readings, readings_vjp
from ..physics.sensors.sensor_table import readings_size, sensor_features, sensor_work
from ..physics.step import accelerations, accelerations_vjp
from ..physics.tables import COMPOSITE, ORIGIN, Workspace, dof_rows
from ..physics.transmissions.transmission import kinematics
from .key import KernelKey


@dataclass(frozen=True)
class Query:
    """Function of one state.

    Attributes:
        size: size(model) returns the length of `out`.
        x_size: x_size(model) returns the length of x.
        forward: Staged function.
        vjp: Staged adjoint; bars.u is the cotangent of x.
        constrained: True if constraint rows are active.
        sensors: True if the query reads the sensors of the model.
    """

    size: Callable[[Model], int]
    x_size: Callable[[Model], int]
    forward: Callable[[Step, Reals], None]
    vjp: Callable[[Step, Reals], None]
    constrained: bool = False
    sensors: bool = False

    def constrains(self, model: Model, options: Options) -> bool:
        """Return True if constraint rows are active for this model."""
        return self.constrained and (
            not self.sensors or sensor_features(model, law_of(options).impulses).acceleration_data
        )


def _outputs(s: Step, out: Reals) -> None:
    kinematics(s)
    outputs(s, out)


def _outputs_vjp(s: Step, out_bar: Reals) -> None:
    kinematics(s)
    outputs_vjp(s, out_bar)


def _acceleration(s: Step, out: Reals) -> None:
    accelerations(s)
    for k in loop(s.model.nv):
        out[k] = s.ws.qdd[k]


def _acceleration_vjp(s: Step, out_bar: Reals) -> None:
    accelerations(s)
    accelerations_vjp(s, out_bar)


def _inverse(s: Step, out: Reals) -> None:
    """Compute out = M a + bias. Armature is part of M; damping, springs and actuators are left out."""
    link_kinematics(s)
    inverse_dynamics(s, s.u, out)
    for i in loop(1, s.model.nl):
        own, va = s.const.link[i], s.model.link_v[i]
        for k in loop(s.model.link_nv[i]):
            out[va + k] = out[va + k] + own.armature * s.u[va + k]


def _inverse_vjp(s: Step, out_bar: Reals) -> None:
    assert s.bars.const is not None
    link_kinematics(s)
    inverse_dynamics_vjp(s, s.u, out_bar)
    for i in loop(1, s.model.nl):
        own, bar, va = s.const.link[i], s.bars.const.link[i], s.model.link_v[i]
        joints.add_projection(s, i, s.link[i].a_bar, s.bars.u)
        for k in loop(s.model.link_nv[i]):
            tau_bar = out_bar[va + k]
            s.bars.u[va + k] = s.bars.u[va + k] + own.armature * tau_bar
            bar.armature = bar.armature + tau_bar * s.u[va + k]


def _mass_matrix(s: Step, out: Reals) -> None:
    link_kinematics(s)
    mass_matrix(s)
    for k in loop(s.model.dof_row[s.model.nv]):
        out[k] = s.ws.M[k]


def _mass_matrix_vjp(s: Step, out_bar: Reals) -> None:
    link_kinematics(s)
    mass_matrix(s)
    mass_matrix_vjp(s, out_bar)


def sensors_x_size(model: Model) -> int:
    """Return the size of x: controls, time, and velocities of sites after the coming step."""
    return model.nu + 1 + 3 * model.ns


def _sensors(s: Step, out: Reals) -> None:
    readings(s, out, *_more(s))


def _sensors_vjp(s: Step, out_bar: Reals) -> None:
    readings_vjp(s, out_bar, *_more(s))


def _more(s: Step) -> tuple[Any, Reals | None]:
    """Return time and velocities after the coming step from x."""
    after = s.u.shifted(s.model.nu + 1) if s.sensors.features.after else None
    return s.u[s.model.nu], after


QUERIES = {
    "outputs": Query(lambda m: outputs_size(m.nb, m.ns), lambda m: 0, _outputs, _outputs_vjp),
    "acceleration": Query(lambda m: m.nv, lambda m: m.nu, _acceleration, _acceleration_vjp),
    "inverse_dynamics": Query(lambda m: m.nv, lambda m: m.nv, _inverse, _inverse_vjp),
    "acceleration_data": Query(
        acceleration_data_size, lambda m: m.nu, acceleration_data, acceleration_data_vjp, constrained=True
    ),
    "actuator_outputs": Query(actuator_outputs_size, lambda m: m.nu, actuator_outputs, actuator_outputs_vjp),
    "sensors": Query(readings_size, sensors_x_size, _sensors, _sensors_vjp, constrained=True, sensors=True),
    "mass_matrix": Query(lambda m: int(dof_rows(m)["dof_row"][m.nv]), lambda m: 0, _mass_matrix, _mass_matrix_vjp),
}


def query_work(model: Model, options: Options, name: str) -> dict[str, int]:
    """Return scratch sizes of a query and its adjoint."""
    query, nl = QUERIES[name], len(model.links.parent)
    factor: Any = "articulated" if query.constrains(model, options) else "sparse"
    work = Workspace.sizes(model, replace(options, factor=factor, integrator="euler"), True, False)
    extra = {"x": query.x_size(model), "x_bar": query.x_size(model), "out": query.size(model)}
    extra |= sensor_work(model) if query.sensors else {}
    extra |= {"tree": (model.links.trees + 1) * ORIGIN.size, "paired": nl * COMPOSITE.size}
    return work | {f"ws_{k}": n for k, n in extra.items()}


def _query_step(key: KernelKey, a: dict[str, Any]) -> Step:
    """Return the Step of a query with its inputs."""
    s = key.step(a)
    s = s.at(u=s.ws.x, damping_dt=0.0, implicit_terms=None)
    if s.constraints is not None:
        for k in range(3):
            s.constraints.status[k] = 0.0
    copy(a["x"], s.u, a["x_size"])
    for name, own, n in s.state:
        copy(a[name], own, n)
    if target().tangents:  # which are those of q/|q|
        coordinates.normalize(s, s.q)
    return s


@cache
def query_kernel(key: KernelKey, name: str) -> Kernel:
    """Kernel of out = query(state, x)."""

    def body(**a: Any) -> None:
        s = _query_step(key, a)
        QUERIES[name].forward(s, s.ws.out)
        copy(s.ws.out, a["out"], a["size"])

    own: dict[str, ArgumentKind] = dict.fromkeys((*key.state, "x", "out"), ROBOTS)
    return Kernel(name, body, key.signature() | own | {"size": INT, "x_size": INT}, key.target)


@cache
def query_vjp_kernel(key: KernelKey, name: str) -> Kernel:
    """Kernel of the adjoint: cotangents of the state (q ambient), x and, with `with_params`, constants, given that of out."""

    def body(**a: Any) -> None:
        s = _query_step(key, a)
        bars = key.bars(s, a["const_bar"])._replace(u=s.ws.x_bar)
        s = s.at(bars=bars)
        copy(a["out_bar"], s.ws.out, a["size"])
        parts = [*s.state_bars, ("x", bars.u, a["x_size"])]
        for _, array, n in (*parts, ("tangent", bars.tangent, s.model.nv)):
            for k in loop(n):
                array[k] = 0.0
        QUERIES[name].vjp(s, s.ws.out)
        coordinates.to_ambient(s, s.q, bars.tangent, bars.q)
        if target().tangents:
            coordinates.normalize_vjp(s, a["q"], bars.q)
        for part, array, n in parts:
            copy(array, a[f"{part}_bar"], n)

    own: dict[str, ArgumentKind] = {
        **dict.fromkeys((*key.state, "x", "out_bar", *(f"{part}_bar" for part in (*key.state, "x"))), ROBOTS),
        "const_bar": PACKED if key.with_params else WORK,
    }
    return Kernel(f"{name}_vjp", body, key.signature() | own | {"size": INT, "x_size": INT}, key.target)
