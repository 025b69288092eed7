"""Robots of the reinforcement-learning benchmarks, with the dimensions of MuJoCo's models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import checked
from ..build.builder import ModelBuilder
from ..model.model import Model
from ..model.quaternions import along, inertia_in
from .inertias import capsule, sphere


class _Limbs(ModelBuilder):
    """Builder of bodies made of capsules, given by their two ends."""

    def limb(self, density: float, radius: float, *segments: tuple[Any, Any]) -> dict[str, Any]:
        """Return mass, com and inertia of a body made of capsules."""
        parts = []
        for start, end in segments:
            middle, turn, half = along(start, end)
            mass, moments = capsule(density, radius, half)
            parts.append((mass, middle, inertia_in(turn, np.asarray(moments))))
        mass = sum(m for m, _, _ in parts)
        com = sum(m * c for m, c, _ in parts) / mass
        inertia = sum(I + m * ((c - com) @ (c - com) * np.eye(3) - np.outer(c - com, c - com)) for m, c, I in parts)
        return {"mass": mass, "com": com, "inertia": inertia}

    def limb_shape(self, body: str, radius: float, start: Any, end: Any, **options: Any) -> None:
        middle, turn, half = along(start, end)
        self.add_capsule(body, radius, half, position=middle, rotation=turn, **options)


@checked
def ant(*, floor: bool = True) -> Model:
    """Build the Ant: a sphere of radius 0.25 m on four legs of two joints, eight motors of 150 N m at u = 1, u within +-1.

    Keyframe `home`: legs bent. Sphere and legs collide with the floor only.
    """
    b = _Limbs("ant")
    density, thick = 5.0, 0.08
    arms = [np.array(d) * 0.2 for d in ((1, 1, 0), (-1, 1, 0), (-1, -1, 0), (1, -1, 0))]
    mass = density * 4 / 3 * math.pi * 0.25**3
    touch: dict[str, Any] = {"friction": 1.0, "group": 1, "touches": 2}
    hinge: dict[str, Any] = {"joint": "revolute", "armature": 1.0, "damping": 1.0}
    b.add_body("torso", joint="free", mass=mass, inertia=sphere(mass, 0.25), position=(0, 0, 0.75))
    b.add_sphere("torso", 0.25, name="torso", **touch)
    zero, bent = (0.0, 0.0, 0.0), (1, -1, -1, 1)  # sign of each ankle
    for k, (arm, sign) in enumerate(zip(arms, bent, strict=True), start=1):
        upper, lower = b.limb(density, thick, (zero, arm)), b.limb(density, thick, (zero, 2 * arm))
        axis, bounds = (-1, 1, 0) if k % 2 else (1, 1, 0), sorted(math.radians(sign * x) for x in (30, 70))
        b.add_body(f"aux{k}", "torso", **upper)
        b.add_body(f"leg{k}", f"aux{k}", position=arm, axis=(0, 0, 1), limit=np.radians((-30, 30)), **hinge, **upper)
        b.add_body(f"ankle{k}", f"leg{k}", position=arm, axis=axis, limit=bounds, **hinge, **lower)
        for part, end in (("aux", arm), ("leg", arm), ("ankle", 2 * arm)):
            b.limb_shape(f"{part}{k}", thick, zero, end, **touch)
    for k in (4, 1, 2, 3):
        for part in ("leg", "ankle"):
            b.add_motor(f"{part}{k}", f"{part}{k}", gear=150.0, control_range=(-1.0, 1.0))
    if floor:
        b.add_plane(name="floor", friction=1.0, group=2, touches=1)
    b.add_keyframe("home", q=[0, 0, 0.75, 1, 0, 0, 0, *(x for sign in bent for x in (0.0, float(sign)))])
    return b.build()


@checked
def hopper(*, floor: bool = True) -> Model:
    """Build the Hopper: a planar leg of four capsules; thigh, leg and foot have motors of 200 N m at u = 1, u within +-1.

    q: x, z (relative to 1.25 m), pitch, thigh, leg, foot. Sites: `foot`.
    """
    b = _Limbs("hopper")
    touch: dict[str, Any] = {"group": 1, "touches": 2}
    b.add_body("rail_x", joint="prismatic", axis=(1, 0, 0))
    b.add_body("rail_z", "rail_x", joint="prismatic", axis=(0, 0, 1), position=(0, 0, 1.25))
    b.add_body("torso", "rail_z", joint="revolute", axis=(0, 1, 0), **b.limb(1000.0, 0.05, ((0, 0, 0.2), (0, 0, -0.2))))
    b.limb_shape("torso", 0.05, (0, 0, 0.2), (0, 0, -0.2), friction=0.9, **touch)
    parts = (
        ("thigh", "torso", (0, 0, -0.2), (0, 0, 0), (0, 0, -0.45), 0.05, (-150, 0), 0.9),
        ("leg", "thigh", (0, 0, -0.45), (0, 0, 0), (0, 0, -0.5), 0.04, (-150, 0), 0.9),
        ("foot", "leg", (0, 0, -0.5), (-0.13, 0, 0), (0.26, 0, 0), 0.06, (-45, 45), 2.0),
    )
    for name, parent, place, start, end, radius, bounds, friction in parts:
        b.add_body(
            name,
            parent,
            joint="revolute",
            axis=(0, -1, 0),
            position=place,
            limit=np.radians(bounds),
            armature=1.0,
            damping=1.0,
            **b.limb(1000.0, radius, (start, end)),
        )
        b.limb_shape(name, radius, start, end, friction=friction, **touch)
        b.add_motor(name, name, gear=200.0, control_range=(-1.0, 1.0))
    b.add_site("foot", "foot", position=(0.065, 0, 0))
    if floor:
        b.add_plane(name="floor", friction=0.9, group=2, touches=1)
    return b.build()
