"""ag.load: a robot from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ..arguments import checked
from ..errors import ModelError
from ..model.model import Model


@checked
def load(
    source: str | Path | Any,
    *,
    floating: bool = False,
    motors: bool | Literal["torque", "position", "velocity", "servo"] = False,
    gains: tuple[float, float] | float | None = None,
    strict: bool = True,
) -> Model:
    """Load a robot from an MJCF or URDF file, from its XML given as text, or from an `MjSpec` or `MjModel`.

    Files are read by MuJoCo's compiler. `q` is MuJoCo's qpos, `v` its qvel and `u` its ctrl, entry for entry;
    `model.options` has the file's time step and integrator.

    Args:
        source: Path, XML text that begins with "<", MjSpec or MjModel.
        floating: Free the base of a robot that is fixed to the world.
        motors: Actuators of every hinge and slide joint, within its effort limit, if the file has none: a "torque"
            motor (or True), a "position" or "velocity" servo, or a "servo" motor, which tracks a velocity as a
            constraint within the joint's effort and velocity limits.
        gains: (stiffness, damping) of a position servo, (0, damping) of a velocity servo, 1/s of a servo motor.
        strict: Raise ModelError if the file has features that are not simulated; with strict=False they are listed in
            `model.unsupported`.
    """
    from .actuators import Motors
    from .compiler import compiled, of_mujoco  # imported on first use
    from .from_mjmodel import convert
    from .source import open_source

    chosen = Motors.of(motors, gains)
    if type(source).__name__ in ("MjSpec", "MjModel"):
        read, name, label = of_mujoco(source, floating=floating)
    else:
        description = open_source(source)
        read, name, label = compiled(description, floating=floating, strict=strict), description.name, description.label
    try:
        model = convert(read, name, motors=chosen)
    except ModelError as problem:
        raise ModelError(f"{label}: {problem}") from None
    if model.unsupported and strict:
        raise ModelError(
            f"{label} has features that are not simulated; load it with strict=False to omit them:\n"
            + str(model.unsupported)
        )
    return model
