"""MuJoCo's versions and enumerations: the one module that depends on them.

Numbers that all supported versions share are listed here and compared with the installed MuJoCo by a test. Members whose
number differs between versions are read by name, and fields of a model that a version lacks have their default.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any

import numpy as np

from ..errors import ModelError

OLDEST = (3, 11)
NEWEST = (4, 0)  # the last version with which this release was tested


class GeomType(IntEnum):
    """mjtGeom."""

    PLANE = 0
    HFIELD = 1
    SPHERE = 2
    CAPSULE = 3
    ELLIPSOID = 4
    CYLINDER = 5
    BOX = 6
    MESH = 7
    SDF = 8


class JointType(IntEnum):
    """mjtJoint."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3


class ObjType(IntEnum):
    """mjtObj, of those that sensors and equalities refer to."""

    UNKNOWN = 0
    BODY = 1
    XBODY = 2
    GEOM = 5
    SITE = 6
    CAMERA = 7


class EqType(IntEnum):
    """mjtEq."""

    CONNECT = 0
    WELD = 1
    JOINT = 2
    TENDON = 3


class WrapType(IntEnum):
    """mjtWrap."""

    JOINT = 1
    PULLEY = 2
    SITE = 3
    SPHERE = 4
    CYLINDER = 5


class TrnType(IntEnum):
    """mjtTrn, transmissions of actuators."""

    JOINT = 0
    JOINTINPARENT = 1
    SLIDERCRANK = 2
    TENDON = 3
    SITE = 4
    BODY = 5


class DynType(IntEnum):
    """mjtDyn, activation dynamics."""

    NONE = 0
    INTEGRATOR = 1
    FILTER = 2
    FILTEREXACT = 3
    MUSCLE = 4


class GainType(IntEnum):
    """mjtGain, and mjtBias, in which 0 is NONE."""

    FIXED = 0
    AFFINE = 1
    MUSCLE = 2


class SensorType(IntEnum):
    """mjtSensor, of those that decide which geoms are read."""

    RANGEFINDER = 7
    GEOMDIST = 39
    GEOMNORMAL = 40
    GEOMFROMTO = 41


HINGE_OR_SLIDE = (JointType.SLIDE, JointType.HINGE)
BALL_OR_FREE = (JointType.FREE, JointType.BALL)
# the enumerations of MuJoCo and the prefix of their members
SHARED: dict[str, tuple[str, type[IntEnum]]] = {
    "mjtGeom": ("mjGEOM_", GeomType),
    "mjtJoint": ("mjJNT_", JointType),
    "mjtObj": ("mjOBJ_", ObjType),
    "mjtEq": ("mjEQ_", EqType),
    "mjtWrap": ("mjWRAP_", WrapType),
    "mjtTrn": ("mjTRN_", TrnType),
    "mjtDyn": ("mjDYN_", DynType),
    "mjtGain": ("mjGAIN_", GainType),
    "mjtSensor": ("mjSENS_", SensorType),
}


def mujoco() -> Any:
    """Return the package mujoco, imported when first needed."""
    try:
        import mujoco
    except ImportError:
        raise ModelError("reading MJCF and URDF needs MuJoCo's compiler: pip install mujoco") from None
    if version_of(mujoco.__version__) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ModelError(f"mujoco {mujoco.__version__} is too old; pip install 'mujoco>={oldest}'")
    return mujoco


def version_of(text: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


def member(enumeration: str, number: int) -> str:
    """Return the name of a member without its prefix, in lower case: `member("mjtDyn", 4)` is "muscle"."""
    try:
        name: str = getattr(mujoco(), enumeration)(int(number)).name
    except ValueError:
        return f"{enumeration} {int(number)}"
    return name.split("_", 1)[1].lower()


def bit(enumeration: str, name: str) -> int:
    """Return the number of a member, or 0 where this version of MuJoCo has no such member."""
    found = getattr(getattr(mujoco(), enumeration), name, 0)
    return int(found)


def field(m: Any, name: str, rows: int) -> Any:
    """Return an array of an mjModel with `rows` rows, zeros where this version of MuJoCo has no such field."""
    return getattr(m, name) if hasattr(m, name) else np.zeros(rows)
