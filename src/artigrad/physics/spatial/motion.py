"""Spatial vectors, angular part first. The pairing of a motion and a force is power; each is the other's cotangent."""

from __future__ import annotations

from ...compiler import Linear, vjp_of
from .vectors import Vec3, cross, dot


class Motion(Linear):
    """Spatial velocity, acceleration or joint axis: angular part `w`, and linear part `v` of the point at the origin."""

    w: Vec3
    v: Vec3


class Force(Linear):
    """Wrench or momentum: moment `n` about the origin of the frame, and force `f`."""

    n: Vec3
    f: Vec3


def power(m: Motion, f: Force) -> float:
    """y = m . f"""
    return dot(m.w, f.n) + dot(m.v, f.f)


@vjp_of(power)
def power_vjp(m: Motion, f: Force, y_bar: float) -> tuple[Force, Motion]:
    return f * y_bar, m * y_bar


def cross_motion(a: Motion, b: Motion) -> Motion:
    """y = a x b = [aw x bw ; aw x bv + av x bw]"""
    return Motion(cross(a.w, b.w), cross(a.w, b.v) + cross(a.v, b.w))


@vjp_of(cross_motion)
def cross_motion_vjp(a: Motion, b: Motion, y_bar: Force) -> tuple[Force, Force]:
    """a_bar = b x* y_bar,  b_bar = -(a x* y_bar)  (1.10)"""
    return cross_force(b, y_bar), -cross_force(a, y_bar)


def cross_force(a: Motion, f: Force) -> Force:
    """y = a x* f = [aw x n + av x f ; aw x f]"""
    return Force(cross(a.w, f.n) + cross(a.v, f.f), cross(a.w, f.f))


@vjp_of(cross_force)
def cross_force_vjp(a: Motion, f: Force, y_bar: Motion) -> tuple[Force, Motion]:
    """a_bar = -(y_bar x* f),  f_bar = -(a x y_bar)  (1.11)"""
    return -cross_force(y_bar, f), -cross_motion(a, y_bar)


def at_point(p: Vec3, force: Vec3, torque: Vec3) -> Force:
    """Return the wrench about the origin of a force at p, and a torque."""
    return Force(torque + cross(p, force), force)


@vjp_of(at_point)
def at_point_vjp(p: Vec3, force: Vec3, torque: Vec3, y_bar: Motion) -> tuple[Vec3, Vec3, Vec3]:
    return cross(force, y_bar.w), point_velocity(p, y_bar), y_bar.w


def point_velocity(p: Vec3, m: Motion) -> Vec3:
    """Return the velocity v + w x p of point p of a body with motion m."""
    return m.v + cross(m.w, p)


@vjp_of(point_velocity)
def point_velocity_vjp(p: Vec3, m: Motion, y_bar: Vec3) -> tuple[Vec3, Force]:
    return cross(y_bar, m.w), Force(cross(p, y_bar), y_bar)
