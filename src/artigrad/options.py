"""Options: about the method, not about the robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import InputError

INTEGRATORS = ("semi_implicit", "explicit", "rk4")
FACTORS = ("articulated", "sparse")


@dataclass(frozen=True)
class Options:
    """How a step is made.

    dt: time step, s.
    integrator: "semi_implicit" Euler (velocity first, then position with the new velocity), "explicit" Euler, or "rk4".
        The two Euler methods take joint damping implicitly, rk4 explicitly.
    factor: how the mass matrix is inverted: "articulated" (articulated-body recursion, O(n)) or "sparse" (L^T D L along
        the tree). Same result to rounding; `docs/design/dynamics.md` has the figures behind the default.
    """

    dt: float = 1e-3
    integrator: Literal["semi_implicit", "explicit", "rk4"] = "semi_implicit"
    factor: Literal["articulated", "sparse"] = "articulated"
    solver: Literal["hybrid", "gauss_seidel"] = "hybrid"
    margin: float = 1e-2
    error_reduction: float = 0.2
    slop: float = 1e-4
    softness: float = 1e-6
    bounce_threshold: float = 1e-2
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not isinstance(self.dt, int | float) or not (0.0 < self.dt < float("inf")):
            raise InputError(f"dt must be a positive number of seconds, not {self.dt!r}")
        if self.integrator not in INTEGRATORS:
            raise InputError(f"integrator is one of {', '.join(INTEGRATORS)}; not '{self.integrator}'")
        if self.factor not in FACTORS:
            raise InputError(f"factor is one of {', '.join(FACTORS)}; not '{self.factor}'")
