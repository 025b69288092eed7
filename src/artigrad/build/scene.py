"""Scenes of several robots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arguments import checked_model, shown
from ..errors import ModelError
from ..model.model import Model
from .edit import Editor

ALL = -1  # all 32 bits: a mask that matches every other except zero


@checked_model
def scene(
    robots: Sequence[Model],
    *,
    positions: Any = None,
    rotations: Any = None,
    floor: bool = True,
    friction: float = 1.0,
    name: str = "scene",
) -> Model:
    """Return one model of several robots: robot k keeps its names behind "k/"; q, v and u are concatenated in order.

    Keyframes are joined by name; a robot without one of a name contributes its default one. Options, gravity and fluid
    are the first robot's; a warning names those of the others that differ.

    Args:
        robots: Models.
        positions: (n, 3), positions of the robots' origins, m; by default one meter apart along y.
        rotations: (n, 4), quaternions w x y z; by default none.
        floor: Add a plane at z = 0 that collides with every shape. Planes fixed to a robot's world (its floor) are
            omitted, other parts of its world are kept.
        name: Name of the scene.
    """
    if not isinstance(robots, list | tuple) or not robots or not all(isinstance(r, Model) for r in robots):
        raise ModelError("a scene is made of a list of one or more Models")
    positions = [(0.0, float(k), 0.0) for k in range(len(robots))] if positions is None else positions
    rotations = [(1.0, 0.0, 0.0, 0.0)] * len(robots) if rotations is None else rotations
    for what, given in (("positions", positions), ("rotations", rotations)):
        if not isinstance(given, list | tuple) and np.ndim(given) == 0:
            raise ModelError(f"{what} are one for each robot, not {shown(given)}")
        if len(given) != len(robots):
            raise ModelError(f"{len(given)} {what} for {len(robots)} robots")
    p = robots[0].params
    b = Editor(name, gravity=p.gravity)
    b.options, b.magnetic = robots[0].options, p.magnetic
    b.set_fluid(density=float(p.density), viscosity=float(p.viscosity), wind=p.wind)
    for k, (robot, place, turn) in enumerate(zip(robots, positions, rotations, strict=True)):
        b.attach(robot, prefix=f"{k}/", position=place, rotation=turn)
    if floor:
        b.add_plane(name="floor", friction=friction, group=ALL, touches=ALL)
    return b.build()
