"""A humanoid on two flat feet."""

from __future__ import annotations

from math import cos
from typing import NamedTuple

from ..arguments import checked
from ..build.builder import ModelBuilder
from ..model.model import Model
from .inertias import box

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)
FOOT = (0.11, 0.05, 0.02)  # half edges, m
ANKLE, SHANK, THIGH = 0.06, 0.36, 0.37  # heights of ankle above sole, knee above ankle, hip above knee, m
KNEE = 0.4  # angle of the keyframe, rad


class Limb(NamedTuple):
    """A body with one joint and a servo: mass, edges and center of its box, axis and range of the joint, gain of the servo."""

    name: str
    parent: str
    position: tuple[float, float, float]
    axis: tuple[int, int, int]
    limit: tuple[float, float]
    mass: float
    edges: tuple[float, float, float]
    com: tuple[float, float, float]
    gain: float


def _trunk() -> list[Limb]:
    small, chest = (0.08, 0.1, 0.08), (0.18, 0.3, 0.36)
    none, up = (0.0, 0.0, 0.0), (0.014, 0.0, 0.16)
    return [
        Limb("waist_yaw", "pelvis", (0.0, 0.0, 0.1), Z, (-1.2, 1.2), 0.8, small, none, 400.0),
        Limb("waist_roll", "waist_yaw", (0.0, 0.0, 0.05), X, (-0.5, 0.5), 0.8, small, none, 400.0),
        Limb("chest", "waist_roll", none, Y, (-0.5, 1.2), 12.0, chest, up, 400.0),
        Limb("neck", "chest", (0.0, 0.0, 0.36), Z, (-1.2, 1.2), 0.4, (0.05, 0.05, 0.08), none, 20.0),
        Limb("head", "neck", (0.0, 0.0, 0.05), Y, (-0.6, 0.8), 2.6, (0.16, 0.14, 0.2), (0.0, 0.0, 0.1), 20.0),
    ]


def _leg(side: str, y: int) -> list[Limb]:
    hip, none = (0.07, 0.07, 0.07), (0.0, 0.0, 0.0)
    inwards, outwards = ((-0.4, 0.9), (-0.6, 0.6))
    roll = inwards if y > 0 else (-inwards[1], -inwards[0])
    n = f"{side}_"
    return [
        Limb(n + "hip_yaw", "pelvis", (0.0, 0.09 * y, -0.06), Z, outwards, 1.2, hip, none, 400.0),
        Limb(n + "hip_roll", n + "hip_yaw", none, X, roll, 1.2, hip, none, 400.0),
        Limb(n + "thigh", n + "hip_roll", none, Y, (-1.9, 0.7), 4.5, (0.11, 0.1, THIGH), (0.0, 0.0, -THIGH / 2), 500.0),
        Limb(
            n + "shank",
            n + "thigh",
            (0.0, 0.0, -THIGH),
            Y,
            (0.0, 2.3),
            2.8,
            (0.09, 0.08, SHANK),
            (0, 0, -SHANK / 2),
            500.0,
        ),
        Limb(n + "ankle", n + "shank", (0.0, 0.0, -SHANK), Y, (-0.9, 0.7), 0.3, (0.05, 0.05, 0.05), none, 300.0),
        Limb(n + "foot", n + "ankle", none, X, (-0.4, 0.4), 0.9, (0.22, 0.1, 0.04), (0.03, 0.0, -0.04), 300.0),
    ]


def _arm(side: str, y: int) -> list[Limb]:
    joint, none = (0.06, 0.06, 0.06), (0.0, 0.0, 0.0)
    roll = (-0.3, 2.0) if y > 0 else (-2.0, 0.3)
    n = f"{side}_"
    return [
        Limb(n + "shoulder", "chest", (0.0, 0.19 * y, 0.3), Y, (-2.8, 1.2), 0.8, joint, none, 120.0),
        Limb(n + "shoulder_roll", n + "shoulder", none, X, roll, 0.6, joint, none, 120.0),
        Limb(n + "upper_arm", n + "shoulder_roll", none, Z, (-1.5, 1.5), 1.6, (0.07, 0.07, 0.26), (0, 0, -0.13), 80.0),
        Limb(
            n + "forearm", n + "upper_arm", (0, 0, -0.26), Y, (-2.3, 0.05), 1.0, (0.05, 0.05, 0.22), (0, 0, -0.11), 80.0
        ),
        Limb(n + "wrist", n + "forearm", (0, 0, -0.23), Z, (-1.4, 1.4), 0.2, (0.04, 0.04, 0.04), none, 20.0),
        Limb(n + "hand", n + "wrist", none, Y, (-0.9, 0.9), 0.4, (0.03, 0.08, 0.12), (0, 0, -0.06), 20.0),
    ]


@checked
def humanoid(*, floor: bool = True) -> Model:
    """Build a humanoid of 1.6 m and 54 kg with 35 degrees of freedom: 29 joints with limits, dry friction and PD servos,
    and a box as each foot.

    Controls are target angles. Sites: `left_foot`, `right_foot` (soles), `left_hand`, `right_hand`, `head`. Keyframe
    `home`: standing with bent knees.

    Args:
      floor: Add a plane at z = 0, friction 1.
    """
    parts = [*_trunk(), *_arm("left", 1), *_arm("right", -1), *_leg("left", 1), *_leg("right", -1)]
    b = ModelBuilder("humanoid")
    height = _standing_height()
    b.add_body("pelvis", joint="free", mass=6.0, inertia=box(6.0, 0.16, 0.22, 0.14), position=(0.0, 0.0, height))
    for part in parts:
        b.add_body(
            part.name,
            part.parent,
            joint="revolute",
            axis=part.axis,
            position=part.position,
            mass=part.mass,
            com=part.com,
            inertia=box(part.mass, *part.edges),
            limit=part.limit,
            damping=0.002 * part.gain,
            armature=0.02,
            dry_friction=0.002 * part.gain,
        )
        b.add_position_servo(part.name, part.name, gain=part.gain, damping=0.03 * part.gain, max_force=0.5 * part.gain)
    _shapes(b)
    if floor:
        b.add_plane(name="floor", friction=1.0, group=2, touches=1)
    pose = dict.fromkeys((part.name for part in parts), 0.0)
    for side in ("left", "right"):
        pose |= {f"{side}_thigh": -KNEE / 2, f"{side}_shank": KNEE, f"{side}_ankle": -KNEE / 2, f"{side}_forearm": -0.5}
    b.add_keyframe("home", q=[0, 0, height, 1, 0, 0, 0, *pose.values()], u=list(pose.values()))
    return b.build()


def _standing_height() -> float:
    """Return the height of the pelvis above the soles with bent knees, m."""
    return 0.06 + THIGH * cos(KNEE / 2) + SHANK * cos(KNEE / 2) + ANKLE


def _shapes(b: ModelBuilder) -> None:
    """Add collision shapes: the soles; and, for falls, pelvis, chest, head, hands, elbows and shanks."""
    body = {"friction": 1.0, "group": 1, "touches": 2}
    for side in ("left", "right"):
        b.add_box(f"{side}_foot", FOOT, name=f"{side}_foot", position=(0.03, 0.0, FOOT[2] - ANKLE), **body)
        b.add_site(f"{side}_foot", f"{side}_foot", position=(0.03, 0.0, -ANKLE))
        b.add_capsule(f"{side}_shank", 0.045, 0.13, name=f"{side}_shank", position=(0.0, 0.0, -SHANK / 2), **body)
        b.add_sphere(f"{side}_hand", 0.05, name=f"{side}_hand", position=(0.0, 0.0, -0.06), **body)
        b.add_site(f"{side}_hand", f"{side}_hand", position=(0.0, 0.0, -0.12))
        b.add_sphere(f"{side}_forearm", 0.05, name=f"{side}_elbow", **body)
    b.add_sphere("pelvis", 0.11, name="pelvis", **body)
    b.add_capsule("chest", 0.1, 0.12, name="chest", position=(0.0, 0.0, 0.18), **body)
    b.add_sphere("head", 0.11, name="head", position=(0.0, 0.0, 0.1), **body)
    b.add_site("head", "head", position=(0.0, 0.0, 0.2))
