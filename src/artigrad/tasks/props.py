"""Visuals of the scenes of tasks. They have no effect on the physics."""

from __future__ import annotations

from typing import Any

from ..build.builder import ModelBuilder
from ..model.quaternions import along

WHITE, DARK = (0.93, 0.94, 0.96, 1.0), (0.20, 0.22, 0.26, 1.0)
ORANGE, BLUE, GOAL = (0.96, 0.55, 0.16, 1.0), (0.27, 0.52, 0.84, 1.0), (0.85, 0.15, 0.15, 0.6)


def stick(b: ModelBuilder, body: str, start: Any, end: Any, radius: float, rgba: Any = WHITE) -> None:
    """Add a capsule between two points of a body."""
    middle, turn, half = along(start, end)
    b.add_visual(body, "capsule", size=(radius, half), position=tuple(middle), quaternion=tuple(turn), rgba=rgba)


def ball(b: ModelBuilder, body: str, radius: float, position: Any = (0.0, 0.0, 0.0), rgba: Any = ORANGE) -> None:
    """Add a sphere to a body or the world."""
    b.add_visual(body, "sphere", size=(radius,), position=tuple(position), rgba=rgba)


def box(b: ModelBuilder, body: str, half: Any, position: Any = (0.0, 0.0, 0.0), rgba: Any = DARK) -> None:
    """Add a box to a body or the world."""
    b.add_visual(body, "box", size=tuple(half), position=tuple(position), rgba=rgba)


def floor(b: ModelBuilder, height: float) -> None:
    """Add a horizontal floor without collisions."""
    b.add_visual("world", "plane", size=(0.0, 0.0), position=(0.0, 0.0, height))
