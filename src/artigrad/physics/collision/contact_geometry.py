"""Inputs and results of the routines for pairs of shapes: poses and sizes; distance, contact point and normal.

A routine is a function of two placed shapes and of `feature`, the point of B that may touch A (a direction, scaled by the
sizes of B, or a vertex). All positions are relative to the origin of B's tree, so that their magnitude stays that of the
robot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiler import Linear, maximum, minimum, sqrt
from ..spatial import Force, Transform, Vec3, cross

FAR = 1e3  # m or m/s: distance of shapes that cannot touch, margin without any change nearby
ZERO = Vec3.zero()
ASIDE = {"f64": 1e-9, "f32": 1e-6}  # m, virtual displacement of a whole solid that decides the ties of all its points


class ContactGeometry(Linear):
    """Geometry of a contact point. phi: signed distance, m, negative in penetration. p: midpoint between the surfaces. n: unit
    normal from A to B. t: preferred direction of the first tangent, or zero.
    """

    phi: float
    p: Vec3
    n: Vec3
    t: Vec3


class Pose(Transform):
    """Pose of a shape. Its cotangent is a Force: that of a rigid motion about the common origin."""


class PairPoses(NamedTuple):
    """Poses and sizes of two shapes."""

    A: Pose
    size_a: Vec3
    B: Pose
    size_b: Vec3


class PairBars(NamedTuple):
    """Cotangents of the arguments of a routine: poses, sizes and feature."""

    A: Force
    size_a: Vec3
    B: Force
    size_b: Vec3
    feature: Vec3


def least_of(first: Any, *others: Any) -> Any:
    """Return the least of its arguments."""
    for x in others:
        first = minimum(first, x)
    return first


def chord(cosine: Any) -> Any:
    """Length of the chord between two unit vectors with this cosine."""
    return sqrt(maximum(2.0 - 2.0 * cosine, 1e-30))


def point_to_pose_bar(x: Vec3, x_bar: Vec3) -> Force:
    """Cotangent of a body's pose from that of a point x fixed to the body."""
    return Force(cross(x, x_bar), x_bar)


def axis_to_pose_bar(u: Vec3, u_bar: Vec3) -> Force:
    """Cotangent of a body's pose from that of an axis u fixed to the body."""
    return Force(cross(u, u_bar), Vec3.zero())
