"""All constants of a robot from its Params, and the adjoint."""

from __future__ import annotations

from ...compiler import loop
from ..spatial import Force, Vec3
from .actuator_constants import activations, activations_vjp, actuators, actuators_vjp, efforts, efforts_vjp
from .constants_context import ConstantsContext
from .fluid_constants import compensated_masses_vjp, fluid_and_gravcomp, fluid_and_gravcomp_vjp
from .link_constants import bodies, bodies_vjp, shapes, shapes_vjp, sites, sites_vjp
from .row_constants import dry_friction, dry_friction_vjp, equalities, equalities_vjp, pair_groups, pairs, pairs_vjp
from .sensor_constants import sensed, sensed_vjp
from .servo_constants import servos, servos_vjp
from .spring_constants import springs, springs_vjp
from .transmission_constants import lines, lines_vjp


def constants(m: ConstantsContext) -> None:
    """Compute out = constants(params)."""
    m.out.gravity = m.fields.struct("gravity", 0, Vec3)
    bodies(m)
    sites(m)
    actuators(m)
    activations(m)
    if m.has("effort"):
        efforts(m)
    if m.has("servo"):
        servos(m)
    shapes(m)
    dry_friction(m)
    pairs(m)
    pair_groups(m)
    if m.has("lines"):
        lines(m)
    equalities(m)
    fluid_and_gravcomp(m)
    springs(m)
    sensed(m)


def constants_vjp(m: ConstantsContext) -> None:
    """Compute the cotangent of params from that of the constants; repeats the forward pass for the frames of bodies."""
    constants(m)
    m.bars.put("gravity", 0, m.out_bar.gravity)
    for i in loop(m.model.nb + 1):
        m.bodies[i].B_bar = Force.zero()
    fluid_and_gravcomp_vjp(m)
    equalities_vjp(m)
    if m.has("lines"):
        lines_vjp(m)
    pairs_vjp(m)
    dry_friction_vjp(m)
    shapes_vjp(m)
    if m.has("effort"):
        efforts_vjp(m)
    activations_vjp(m)
    actuators_vjp(m)
    if m.has("servo"):
        servos_vjp(m)
    sites_vjp(m)
    bodies_vjp(m)  # last: all the others add to the cotangents of the frames of bodies
    compensated_masses_vjp(m)
    springs_vjp(m)
    sensed_vjp(m)
