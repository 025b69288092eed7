"""Inputs of tendon and actuator sensors, and the adjoint: lengths, velocities and forces.

The output has lengths and velocities of tendons, then of actuators; actuator forces; joint forces of actuators; and spring
and damper forces of tendons.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..compiler import Reals, loop
from ..model.model import Model
from .context import Step
from .dynamics.actuation import (
    actuation,
    add_actuator_bars,
    along_actuator,
    by_transmission,
    drive_of,
    effort_limit_vjp,
    force_vjp,
)
from .dynamics.passive import tendon_force, tendon_force_vjp
from .tables import Topology
from .transmissions.transmission import (
    add_moment_bars,
    add_velocity_bars,
    along,
    clear_line_bars,
    kinematics,
    lines_vjp,
)


class ActuatorOutputs(NamedTuple):
    """Parts of the output: arrays over tendons, actuators and degrees of freedom."""

    tendon_length: Any
    tendon_velocity: Any
    length: Any
    velocity: Any
    force: Any
    joint_force: Any
    tendon_force: Any

    @classmethod
    def sizes(cls, model: Model) -> ActuatorOutputs:
        """Return the size of each part."""
        nt = len(model.tendons)
        return cls(nt, nt, model.nu, model.nu, model.nu, model.nv, nt)


def actuator_outputs_size(model: Model) -> int:
    """Return the size of the output."""
    return sum(ActuatorOutputs.sizes(model))


def actuator_outputs_size_of(m: Topology) -> Any:
    """Return the size of the output from the topology of a kernel."""
    return 3 * m.ntendon + 3 * m.nu + m.nv


def actuator_output_offsets(m: Topology) -> ActuatorOutputs:
    """Return the first entry of each part."""
    starts, start = list[Any](), 0
    for n in (m.ntendon, m.ntendon, m.nu, m.nu, m.nu, m.nv, m.ntendon):
        starts.append(start)
        start = start + n
    return ActuatorOutputs(*starts)


def _parts(s: Step, out: Reals) -> ActuatorOutputs:
    return ActuatorOutputs(*map(out.shifted, actuator_output_offsets(s.model)))


def actuator_outputs(s: Step, out: Reals) -> None:
    """Compute the output at the current state."""
    kinematics(s)
    parts = _parts(s, out)
    for t in loop(s.model.ntendon) if s.has("tendon") else ():
        parts.tendon_length[t], parts.tendon_velocity[t] = s.ws.length[t], along(s, t, s.v)
        parts.tendon_force[t] = tendon_force(s, t)
    for k in loop(s.model.nv):
        s.ws.tau[k] = 0.0
    for j in loop(s.model.nu):
        d = drive_of(s, j)
        parts.length[j], parts.velocity[j], parts.force[j] = d.length, d.velocity, d.force
    actuation(s, s.ws.tau)
    for k in loop(s.model.nv):
        parts.joint_force[k] = s.ws.tau[k]


def actuator_outputs_vjp(s: Step, out_bar: Reals) -> None:
    """Add to the cotangents of q (tangent), v, act, u and constants."""
    kinematics(s)
    clear_line_bars(s)
    bars, const = _parts(s, out_bar), s.bars.const
    joint_bar = effort_limit_vjp(s, bars.joint_force)
    for t in loop(s.model.ntendon) if s.has("tendon") else ():
        s.ws.length_bar[t] = s.ws.length_bar[t] + bars.tendon_length[t]
        add_velocity_bars(s, t, bars.tendon_velocity[t])
        tendon_force_vjp(s, t, bars.tendon_force[t])
    for j in loop(s.model.nu):
        d, gear, t = drive_of(s, j), s.const.actuator[j].gear, along_actuator(s, j, joint_bar)
        x_bar, rate_bar = force_vjp(s, j, d, bars.force[j] + gear * t)
        add_actuator_bars(s, j, x_bar + gear * bars.length[j], rate_bar + gear * bars.velocity[j])
        pull = gear * d.force
        by_transmission(s, j, lambda: None, lambda n, pull=pull: add_moment_bars(s, n, joint_bar, pull))  # type: ignore[misc]
        if const is not None:
            const.actuator[j].gear += d.force * t + d.x * bars.length[j] + d.rate * bars.velocity[j]
    lines_vjp(s)
