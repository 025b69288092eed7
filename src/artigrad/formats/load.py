"""ag.load: a robot from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ..arguments import checked_model
from ..errors import ModelError
from ..model.model import Model


@checked_model
def load(
    source: str | Path | Any,
    *,
    floating: bool = False,
    motors: bool | Literal["torque", "position", "velocity", "servo"] = False,
    gains: tuple[float, float] | float | None = None,
    strict: bool = True,
) -> Model:
    """The robot of an MJCF or URDF file, of its XML given as text, or of an `MjSpec` or `MjModel`. Read by MuJoCo's compiler.

    `q` is MuJoCo's qpos, `v` its qvel and `u` its ctrl, entry for entry; `model.options` has the file's time step and
    integrator. floating: free the base of a robot that is fixed to the world. motors: what drives every hinge and slide joint,
    within its effort limit, if the file has no actuators: a "torque" motor (or True), a servo to a "position" or a
    "velocity", or a "servo" motor, which holds a velocity as a constraint within the joint's limits of effort and velocity;
    gains: (stiffness, damping) of a servo to a position, (0, damping) of one to a velocity, 1/s of a servo motor. strict: raise
    ModelError if the file has anything that is not simulated; with strict=False the list is in `model.unsupported`.
    """
    from .actuators import Motors
    from .compiler import compiled, of_mujoco  # what reads files is loaded with the first one
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
            f"{label} has what is not simulated yet; load it with strict=False to go on without:\n"
            + str(model.unsupported)
        )
    return model
