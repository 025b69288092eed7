"""Constants of servo motors' constraint rows, and the adjoint. Servo motors have no force of the affine law."""

from __future__ import annotations

from typing import Any

from ...compiler import loop, maximum, switch
from ...model.model import SERVO, SPEED
from ..constraints.soft.impedance import LEAST
from .constants_context import NO_LIMIT, ConstantsContext, add_invweight_bar

# Fraction of the velocity error that is removed in a step, if the force suffices.
IMPEDANCE = 0.99
STIFFNESS = IMPEDANCE / (1.0 - IMPEDANCE)


def _of_servos(m: ConstantsContext, j: Any, servo: Any) -> None:
    """Call servo(on_length) if actuator j is a servo motor. on_length: 1 for position control, else 0."""
    others = dict.fromkeys(range(SERVO), lambda: None)
    switch(m.structure.act_kind[j], {**others, SERVO: lambda: servo(1.0), SPEED: lambda: servo(0.0)})


def servos(m: ConstantsContext) -> None:
    """Gain, limits, and the stiffness D = d/(1 - d)/w of the row of every servo motor."""
    fields = m.fields
    for j in loop(m.model.nu):

        def servo(on_length: float, j: Any = j) -> None:
            row, force = m.out.servo[j], m.out.actuator[j]
            row.gain, row.on_length = fields.real("gain", j), on_length
            row.top = fields.real("max_velocity", j)
            row.low, row.high = (fields.real("force_range", j, 2, k) for k in range(2))
            row.D = STIFFNESS / maximum(fields.real("dof_invweight0", m.model.act_v[j]), LEAST)
            force.gain, force.b0, force.b1, force.b2 = 0.0, 0.0, 0.0, 0.0
            force.force_low, force.force_high, force.drive = -NO_LIMIT, NO_LIMIT, NO_LIMIT

        _of_servos(m, j, servo)


def servos_vjp(m: ConstantsContext) -> None:
    """Adjoint of `servos`, after that of the affine law, whose parameters servo motors do not use.

    `gear` and `control_range` belong to both.
    """
    bars = m.bars
    for j in loop(m.model.nu):

        def servo(on_length: float, j: Any = j) -> None:
            bar = m.out_bar.servo[j]
            bars.put_real("gain", j, bar.gain)
            bars.put_real("max_velocity", j, bar.top)
            for k, side in enumerate((bar.low, bar.high)):
                bars.put_real("force_range", j, side, 2, k)
            for k in range(3):
                bars.put_real("bias", j, 0.0, 3, k)
            if m.has("slope"):
                for k in range(2):
                    bars.put_real("gain_slope", j, 0.0, 2, k)
            k = m.model.act_v[j]
            g = 1.0 / maximum(m.fields.real("dof_invweight0", k), LEAST)
            add_invweight_bar(m, "dof_invweight0", k, g, bar.D * STIFFNESS)

        _of_servos(m, j, servo)
