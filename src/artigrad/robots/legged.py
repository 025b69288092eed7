"""Robots on legs."""

from __future__ import annotations

from ..io.builder import ModelBuilder
from ..model import Model
from .shapes import box


def quadruped() -> Model:
    """A floating trunk with four legs of three joints (hip about x, thigh and shank about y) and twelve torque motors.

    18 degrees of freedom. Sites: `fl_foot`, `fr_foot`, `rl_foot`, `rr_foot`. Keyframe `home`: legs bent, trunk at 0.32 m.
    """
    b = ModelBuilder("quadruped")
    b.body(
        "trunk",
        joint="free",
        mass=6.9,
        com=(0.01, 0.002, 0.0),
        inertia=box(6.9, 0.38, 0.19, 0.11),
        position=(0, 0, 0.32),
    )
    for name, x, y in (("fl", 1, 1), ("fr", 1, -1), ("rl", -1, 1), ("rr", -1, -1)):
        hip, thigh, shank = f"{name}_hip", f"{name}_thigh", f"{name}_shank"
        b.body(
            hip,
            "trunk",
            joint="revolute",
            axis=(1, 0, 0),
            position=(0.19 * x, 0.047 * y, 0.0),
            mass=0.68,
            com=(-0.005 * x, 0.01 * y, 0.0),
            inertia=box(0.68, 0.1, 0.08, 0.08),
        )
        b.body(
            thigh,
            hip,
            joint="revolute",
            axis=(0, 1, 0),
            position=(0.0, 0.095 * y, 0.0),
            mass=1.15,
            com=(-0.003, -0.02 * y, -0.04),
            inertia=box(1.15, 0.04, 0.04, 0.213),
        )
        b.body(
            shank,
            thigh,
            joint="revolute",
            axis=(0, 1, 0),
            position=(0.0, 0.0, -0.213),
            mass=0.24,
            com=(0.005, 0.0, -0.12),
            inertia=box(0.24, 0.03, 0.03, 0.213),
        )
        b.site(f"{name}_foot", shank, position=(0.0, 0.0, -0.213))
        for joint in (hip, thigh, shank):
            b.motor(joint, joint)
    b.keyframe("home", q=[0, 0, 0.32, 1, 0, 0, 0, *([0.0, 0.8, -1.6] * 4)])
    return b.build()
