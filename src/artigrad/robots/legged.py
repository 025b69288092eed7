"""Legged robots."""

from __future__ import annotations

from ..arguments import checked
from ..build.builder import ModelBuilder
from ..model.model import Model
from ..model.quaternions import along
from .inertias import box, sphere


def quadruped() -> Model:
    """Build a floating trunk with four legs of three joints (hip about x, thigh and shank about y) and twelve torque
    motors.

    18 degrees of freedom. Sites: `fl_foot`, `fr_foot`, `rl_foot`, `rr_foot`. Keyframe `home`: legs bent, trunk at 0.32 m.
    """
    b = ModelBuilder("quadruped")
    b.add_body(
        "trunk",
        joint="free",
        mass=6.9,
        com=(0.01, 0.002, 0.0),
        inertia=box(6.9, 0.38, 0.19, 0.11),
        position=(0, 0, 0.32),
    )
    for name, x, y in (("fl", 1, 1), ("fr", 1, -1), ("rl", -1, 1), ("rr", -1, -1)):
        hip, thigh, shank = f"{name}_hip", f"{name}_thigh", f"{name}_shank"
        b.add_body(
            hip,
            "trunk",
            joint="revolute",
            axis=(1, 0, 0),
            position=(0.19 * x, 0.047 * y, 0.0),
            mass=0.68,
            com=(-0.005 * x, 0.01 * y, 0.0),
            inertia=box(0.68, 0.1, 0.08, 0.08),
        )
        b.add_body(
            thigh,
            hip,
            joint="revolute",
            axis=(0, 1, 0),
            position=(0.0, 0.095 * y, 0.0),
            mass=1.15,
            com=(-0.003, -0.02 * y, -0.04),
            inertia=box(1.15, 0.04, 0.04, 0.213),
        )
        b.add_body(
            shank,
            thigh,
            joint="revolute",
            axis=(0, 1, 0),
            position=(0.0, 0.0, -0.213),
            mass=0.24,
            com=(0.005, 0.0, -0.12),
            inertia=box(0.24, 0.03, 0.03, 0.213),
        )
        b.add_site(f"{name}_foot", shank, position=(0.0, 0.0, -0.213))
        for joint in (hip, thigh, shank):
            b.add_motor(joint, joint)
    b.add_keyframe("home", q=[0, 0, 0.32, 1, 0, 0, 0, *([0.0, 0.8, -1.6] * 4)])
    return b.build()


@checked
def laikago(*, floor: bool = True, links: bool = False) -> Model:
    """Build Unitree's Laikago, 25.6 kg: twelve joints with PD servos (100 N m/rad, 2 N m s/rad, at most 50 N m) and a
    sphere of radius 0.03 m as each foot.

    Controls are target angles. Sites: `fr_foot`, `fl_foot`, `rr_foot`, `rl_foot`. Keyframe `home`: standing.

    Args:
      floor: Add a plane at z = 0, friction 1.
      links: Let trunk, thighs and shanks collide with the floor too, for falls. A step of a standing Laikago then takes
        about a tenth longer.
    """
    b = ModelBuilder("laikago")
    b.add_body("trunk", joint="free", mass=13.715, inertia=(0.22, 0.431, 0.565), position=(0.0, 0.0, 0.483))
    for name, front, left in (("fr", 1, -1), ("fl", 1, 1), ("rr", -1, -1), ("rl", -1, 1)):
        hip, upper, lower, toe = (f"{name}_{part}" for part in ("hip", "upper", "lower", "toe"))
        b.add_body(
            hip,
            "trunk",
            joint="revolute",
            axis=(0, 0, left),
            position=(0.199095 if front > 0 else -0.238195, 0.0817145 * left, -0.03),
            rotation=(0.5, 0.5, 0.5, 0.5),
            mass=1.095,
            com=(-0.02 * left, 0.0, 0.0),
            inertia=(0.002, 0.002, 0.001),
        )
        b.add_body(
            upper,
            hip,
            joint="revolute",
            axis=(1, 0, 0),
            position=(0.055855 if left > 0 else -0.053565, 0.0, 0.0),
            mass=1.527,
            com=(0.0, -0.04, -0.04),
            inertia=(0.016, 0.007, 0.011),
        )
        b.add_body(
            lower,
            upper,
            joint="revolute",
            axis=(1, 0, 0),
            position=(-0.02069 * left, -0.20833, -0.1422),
            mass=0.241,
            com=(0.0, -0.16, -0.02),
            inertia=(0.002, 0.002, 0.002),
        )
        b.add_body(toe, lower, position=(0.0, -0.25, -0.022), mass=0.1, inertia=sphere(0.1, 0.025))
        b.add_site(f"{name}_foot", toe)
        b.add_sphere(toe, 0.03, name=f"{name}_foot", friction=1.0, group=1, touches=2)
        if links:
            ends = {upper: (-0.02069 * left, -0.20833, -0.1422), lower: (0.0, -0.25, -0.022)}
            for part, end in ends.items():
                middle, turn, half = along((0.0, 0.0, 0.0), end)
                radius = 0.03 if part == upper else 0.015
                b.add_capsule(part, radius, half, name=part, position=middle, rotation=turn, group=1, touches=2)
        for part in (hip, upper, lower):
            b.add_position_servo(part, part, gain=100.0, damping=2.0, max_force=50.0)
    if links:
        b.add_box("trunk", (0.25, 0.09, 0.055), name="trunk", group=1, touches=2)
    if floor:
        b.add_plane(name="floor", friction=1.0, group=2, touches=1)
    pose = [0.2, 0.0, -0.5] * 4
    b.add_keyframe("home", q=[0, 0, 0.483, 1, 0, 0, 0, *pose], u=pose)
    return b.build()
