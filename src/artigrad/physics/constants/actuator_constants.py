"""Constants of actuators: servos as one affine law."""

from __future__ import annotations

from typing import Any

from ...compiler import loop, select, switch
from ...model.model import DIRECT, POSITION, SERVO, SPEED, VELOCITY
from ..tables import Muscle
from .constants_context import NO_LIMIT, ConstantsContext, Fields

_SERVO = {POSITION: lambda: (1.0, 0.0), VELOCITY: lambda: (0.0, 1.0)}
_SERVO |= dict.fromkeys(
    (DIRECT, SERVO, SPEED), lambda: (0.0, 0.0)
)  # servo motors are constraint rows: `servo_constants`


# fields of a row of constants, for each field of Params
_ACTIVATION = {"activation_time": ("rise", "fall", "width"), "activation_range": ("low", "high")}


def activations(m: ConstantsContext) -> None:
    """Parameters of activations, and those of muscles."""
    for k in loop(m.model.na) if m.has("activation") else ():
        for field, parts in _ACTIVATION.items():
            for n, part in enumerate(parts):
                setattr(m.out.activation[k], part, m.fields.real(field, k, len(parts), n))
    for k in loop(m.model.nmuscle) if m.has("muscle") else ():
        row = m.out.muscle[k]
        row.gain, row.bias = (m.fields.struct(field, k, Muscle) for field in ("muscle_gain", "muscle_bias"))
        row.low, row.high = (m.fields.real("muscle_length_range", k, 2, n) for n in range(2))


def activations_vjp(m: ConstantsContext) -> None:
    """Adjoint of `activations`."""
    for k in loop(m.model.na) if m.has("activation") else ():
        for field, parts in _ACTIVATION.items():
            for n, part in enumerate(parts):
                m.bars.put_real(field, k, getattr(m.out_bar.activation[k], part), len(parts), n)
    for k in loop(m.model.nmuscle) if m.has("muscle") else ():
        row = m.out_bar.muscle[k]
        m.bars.put("muscle_gain", k, row.gain)
        m.bars.put("muscle_bias", k, row.bias)
        for n, bar in enumerate((row.low, row.high)):
            m.bars.put_real("muscle_length_range", k, bar, 2, n)


def actuators(m: ConstantsContext) -> None:
    """force = clamp(clamp(gain u + b0 + b1 length, +-drive) + b2 velocity, force range); drive = -b2 max_velocity"""
    fields = m.fields
    for j in loop(m.model.nu):
        row = m.out.actuator[j]
        gain = fields.real("gain", j)
        b0, b1, b2 = (fields.real("bias", j, 3, k) for k in range(3))
        on_length, on_velocity = switch(m.structure.act_kind[j], _SERVO)
        b1, b2 = b1 - gain * on_length, b2 - gain * on_velocity
        limited, top = _speed_limit(fields, j)
        row.gear, row.gain, row.b0, row.b1, row.b2 = fields.real("gear", j), gain, b0, b1, b2
        row.low, row.high = (fields.real("control_range", j, 2, k) for k in range(2))
        row.force_low, row.force_high = (fields.real("force_range", j, 2, k) for k in range(2))
        row.drive = select(limited, -(b2 * top), NO_LIMIT)
        if m.has("slope"):
            slope = m.out.slope[j]
            slope.on_length, slope.on_velocity = (fields.real("gain_slope", j, 2, k) for k in range(2))


def actuators_vjp(m: ConstantsContext) -> None:
    """Adjoint of `actuators`."""
    fields, bars = m.fields, m.bars
    for j in loop(m.model.nu):
        bar = m.out_bar.actuator[j]
        gain = fields.real("gain", j)
        on_length, on_velocity = switch(m.structure.act_kind[j], _SERVO)
        b2 = fields.real("bias", j, 3, 2) - gain * on_velocity
        limited, top = _speed_limit(fields, j)
        b1_bar = bar.b1
        b2_bar = bar.b2 - bar.drive * top
        bars.put_real("gear", j, bar.gear)
        bars.put_real("gain", j, bar.gain - b1_bar * on_length - b2_bar * on_velocity)
        for k, b_bar in enumerate((bar.b0, b1_bar, b2_bar)):
            bars.put_real("bias", j, b_bar, 3, k)
        bars.put_real("control_range", j, bar.low, 2, 0)
        bars.put_real("control_range", j, bar.high, 2, 1)
        bars.put_real("force_range", j, bar.force_low, 2, 0)
        bars.put_real("force_range", j, bar.force_high, 2, 1)
        if m.has("slope"):
            bars.put_real("gain_slope", j, m.out_bar.slope[j].on_length, 2, 0)
            bars.put_real("gain_slope", j, m.out_bar.slope[j].on_velocity, 2, 1)
        bars.put_real("max_velocity", j, select(limited, -(bar.drive * b2), 0.0))


def efforts(m: ConstantsContext) -> None:
    """Limits of the total actuator force, for every degree of freedom."""
    for i in loop(1, m.model.nb + 1):
        for k in loop(m.structure.body_v[i], m.structure.body_v[i] + m.structure.body_nv[i]):
            row = m.out.effort[k]
            row.low, row.high = (m.fields.real("effort_limit", i - 1, 2, n) for n in range(2))


def efforts_vjp(m: ConstantsContext) -> None:
    """Adjoint of `efforts`."""
    for i in loop(1, m.model.nb + 1):
        for k in loop(m.structure.body_v[i], m.structure.body_v[i] + m.structure.body_nv[i]):
            bar = m.out_bar.effort[k]
            for n, own in enumerate((bar.low, bar.high)):
                before = m.bars.real("effort_limit", i - 1, 2, n)
                m.bars.put_real("effort_limit", i - 1, before + own, 2, n)


def _speed_limit(fields: Fields, j: Any) -> tuple[Any, Any]:
    """Return whether actuator j has a speed limit, and that limit (0 if none, which avoids products with infinity)."""
    top = fields.real("max_velocity", j)
    limited = top < NO_LIMIT
    return limited, select(limited, top, 0.0)
