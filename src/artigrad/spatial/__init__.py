"""Spatial algebra: vectors, rotations, motions, forces, inertias, transforms. Each function stands above its adjoint."""

from .inertia import (
    Articulated,
    Inertia,
    articulated_outer,
    inertia_at_origin,
    inertia_at_origin_vjp,
    inertia_pairing,
    shift,
    shift_vjp,
)
from .motion import (
    Force,
    Motion,
    at_point,
    at_point_vjp,
    cross_force,
    cross_motion,
    point_velocity,
    point_velocity_vjp,
    power,
)
from .rotations import (
    Quat,
    axis_frame,
    axis_frame_vjp,
    quat_exp,
    quat_exp_vjp,
    quat_lift,
    quat_matrix,
    quat_normalise,
    quat_normalise_vjp,
    quat_product_vjp,
    quat_rate,
    quat_rate_vjp,
    twist_to_matrix,
)
from .transform import (
    Transform,
    compose,
    compose_vjp,
    force_to_child,
    force_to_parent,
    invert,
    invert_vjp,
    pose,
    pose_vjp,
    to_child,
    to_parent,
)
from .vectors import Mat3, Sym3, Vec3, cross, dot, norm, normalise, normalise_vjp

__all__ = [name for name in dir() if not name.startswith("_")]
