"""Robots on the command line: bundled or from a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from .. import robots
from ..errors import ModelError
from ..formats.load import load
from ..model.model import Model

Robot = Annotated[
    str,
    typer.Argument(metavar="FILE", help="An MJCF or URDF file, or the name of a bundled robot.", show_default=False),
]
Floating = Annotated[bool, typer.Option("--floating", help="Free the base of a robot that is fixed to the world.")]
Motors = Annotated[
    bool, typer.Option("--motors", help="A torque motor on every joint of a file that has no actuators.")
]


def open_robot(robot: str, floating: bool, motors: bool = False) -> Model:
    """Return the robot, without unsupported features. A bad file ends the command with status 1 and an error message."""
    bundled = _bundled()
    try:
        if robot in bundled and not Path(robot).exists():
            if floating or motors:
                raise ModelError(f"--floating and --motors are for files; '{robot}' is bundled")
            return bundled[robot]()
        if not Path(robot).suffix and not Path(robot).exists():
            raise ModelError(f"there is no file '{robot}', and no bundled robot of that name: {', '.join(bundled)}")
        return load(Path(robot), floating=floating, motors=motors, strict=False)
    except ModelError as problem:
        typer.echo(f"error: {problem}", err=True)
        raise typer.Exit(1) from None


def _bundled() -> dict[str, Callable[[], Model]]:
    """Return the bundled robots that need no arguments."""

    def alone(make: Callable[..., Model]) -> bool:
        return all(p.default is not p.empty for p in inspect.signature(make).parameters.values())

    made = {name: getattr(robots, name) for name in robots.__all__}
    return {name: make for name, make in made.items() if callable(make) and alone(make)}
