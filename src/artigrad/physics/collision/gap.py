"""What a pair of shapes is asked and what it answers: how far apart, where, and in which direction.

A routine is a function of two placed shapes and of `at`, the point of B that meets a plane (a direction times B's lengths, or
a vertex). Geometry is done about the origin of B's tree, so that numbers stay the size of the robot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...compiler import Linear, maximum, minimum, sqrt
from ..spatial import Force, Transform, Vec3, cross

FAR = 1e3  # m or m/s: a gap that is never closed, a margin that nothing comes near
ZERO = Vec3.zero()
ASIDE = {"f64": 1e-9, "f32": 1e-6}  # m, one motion of a whole solid by which the ties of all its points are decided


class Gap(Linear):
    """Distance `phi` (negative: depth), point `p` halfway between the surfaces, unit normal `n` from shape A to B, and the
    direction `t` that a tangent shall have, if it matters (else zero)."""

    phi: float
    p: Vec3
    n: Vec3
    t: Vec3


class Pose(Transform):
    """Where a shape is. Its cotangent is the force of a rigid motion about the common origin."""


class PairPoses(NamedTuple):
    """Two shapes in their places."""

    A: Pose
    size_a: Vec3
    B: Pose
    size_b: Vec3


class PairBars(NamedTuple):
    """Cotangents of what a routine is asked."""

    A: Force
    size_a: Vec3
    B: Force
    size_b: Vec3
    at: Vec3


def least_of(first: Any, *others: Any) -> Any:
    for x in others:
        first = minimum(first, x)
    return first


def chord(cosine: Any) -> Any:
    """Between two unit vectors."""
    return sqrt(maximum(2.0 - 2.0 * cosine, 1e-30))


def moved(x: Vec3, x_bar: Vec3) -> Force:
    """What the cotangent of a point of a body is for the body's pose."""
    return Force(cross(x, x_bar), x_bar)


def turned(u: Vec3, u_bar: Vec3) -> Force:
    """What the cotangent of an axis of a body is for the body's pose."""
    return Force(cross(u, u_bar), Vec3.zero())
