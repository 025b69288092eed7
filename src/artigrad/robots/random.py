"""A ball, and random trees of all joint types for tests."""

from __future__ import annotations

import numpy as np

from ..arguments import checked, shown
from ..build.builder import ModelBuilder
from ..errors import InputError
from ..model.model import Model
from ..physics.joints.table import BY_MJCF, JOINTS
from .inertias import sphere


@checked
def ball(
    *, radius: float = 0.1, mass: float = 1.0, floor: bool = False, friction: float = 1.0, restitution: float = 0.0
) -> Model:
    """Build a free solid sphere at rest, with its center one radius above the origin.

    Sites: `centre`.

    Args:
      mass: Mass, kg.
      radius: Radius, m.
      friction: Coefficient of friction.
      restitution: Coefficient of restitution.
      floor: Add a plane at z = 0.
    """
    b = ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=mass, inertia=sphere(mass, radius), position=(0.0, 0.0, radius))
    b.add_site("centre", "ball")
    b.add_sphere("ball", radius, friction=friction, restitution=restitution)
    if floor:
        b.add_plane(name="floor", friction=friction, restitution=restitution)
    return b.build()


@checked
def random_tree(
    seed: int, n: int, *, joints: tuple[str, ...] = ("fixed", *(j.name for j in BY_MJCF.values()))
) -> Model:
    """Build a tree with random joints of the given types, several roots, random parameters and one site per body.

    Revolute and prismatic joints get a motor, a position servo or a velocity servo in turn.

    Args:
      seed: Seed.
      n: Number of bodies.
      joints: Joint types.
    """
    if seed < 0 or n < 1:
        raise InputError(f"seed is at least 0 and n, the number of bodies, at least 1; not {seed} and {n}")
    if not joints or not all(isinstance(joint, str) and joint in JOINTS for joint in joints):
        raise InputError(f"joints are some of {', '.join(JOINTS)}, not {shown(joints)}")
    rng = np.random.default_rng(seed)
    b = ModelBuilder(f"random-{seed}-{n}", gravity=rng.normal(size=3) * 5)
    names: list[str] = []
    for i in range(n):
        parent = "world" if i == 0 or rng.random() < 0.15 else names[rng.integers(i)]
        allowed = [j for j in joints if parent == "world" or not JOINTS[j].floating] or ["revolute"]
        if i == 0:
            allowed = [j for j in allowed if JOINTS[j].nv] or ["revolute"]
        joint = str(rng.choice(allowed))
        axial = JOINTS[joint].axial
        points = rng.normal(size=(4, 3)) * 0.2  # point masses, so that the inertia is physically possible
        mass = float(rng.uniform(0.2, 2.0))
        spread = points - points.mean(0)
        names.append(
            b.add_body(
                f"body{i}",
                parent,
                joint=joint,
                axis=rng.normal(size=3),
                anchor=rng.normal(size=3) * 0.1 if not JOINTS[joint].floating else (0.0, 0.0, 0.0),
                position=rng.normal(size=3) * 0.4,
                rotation=rng.normal(size=4),
                mass=mass,
                com=rng.normal(size=3) * 0.1,
                inertia=mass / 4 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in spread),
                damping=float(rng.uniform(0.0, 0.5)),
                armature=float(rng.uniform(0.0, 0.2)),
                stiffness=float(rng.uniform(0.0, 3.0)) if axial else 0.0,
                spring_reference=float(rng.normal()) * 0.3 if axial else 0.0,
            )
        )
        b.add_site(f"site{i}", names[-1], position=rng.normal(size=3) * 0.3, rotation=rng.normal(size=4))
        if axial:
            gear = float(rng.uniform(0.5, 2.0))
            if i % 3 == 0:
                b.add_motor(f"motor{i}", names[-1], gear=gear, max_force=float(rng.uniform(0.5, 2.0)))
            elif i % 3 == 1:
                b.add_position_servo(
                    f"servo{i}", names[-1], gain=3.0, damping=0.3, max_force=4.0, max_velocity=5.0, gear=gear
                )
            else:
                b.add_velocity_servo(f"servo{i}", names[-1], gain=0.7, max_force=3.0, max_velocity=2.0, gear=gear)
    return b.build()
