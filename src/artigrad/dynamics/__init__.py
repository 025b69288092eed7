"""Stage 2: from positions, velocities and controls to joint accelerations, and the way back."""

from . import articulated
from .forward_dynamics import (
    FACTOR,
    Method,
    accelerate,
    accelerate_again,
    accelerate_vjp,
    balance_vjp,
    clear_forces,
    forces,
)

__all__ = [
    "FACTOR",
    "Method",
    "accelerate",
    "accelerate_again",
    "accelerate_vjp",
    "articulated",
    "balance_vjp",
    "clear_forces",
    "forces",
]
