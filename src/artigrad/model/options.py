"""Options: about the method, not about the robot."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from ..errors import InputError

CHOICES = {
    "integrator": ("semi_implicit", "explicit", "rk4"),
    "factor": ("articulated", "sparse"),
    "solver": ("hybrid", "gauss_seidel"),
    "gradient": ("implicit", "reverse"),
    "cone": ("pyramid", "circular"),
}


@dataclass(frozen=True)
class Options:
    """How a step is made.

    dt: time step, s.
    integrator: "semi_implicit" Euler (velocity first, then position with the new velocity), "explicit" Euler, or "rk4".
        The two Euler methods take joint damping implicitly, rk4 explicitly. Models with contact or limits step by
        semi_implicit.
    factor: how the mass matrix is inverted: "articulated" (articulated-body recursion, O(n)) or "sparse" (L^T D L along
        the tree). Same result to rounding; `docs/design/dynamics.md` has the figures behind the default. Contact works
        on the articulated one.

    Contact (`docs/design/contact.md`):
    cone: of friction: "pyramid" (each of two tangents by itself, as the ICML 2021 paper) or "circular" (the same in all
        directions).
    solver: "hybrid" (sweeps name the active set, an exact solve, a check of every row) or "gauss_seidel" (projected
        Gauss-Seidel sweeps until nothing moves by more than `tolerance`, at most `sweeps` of them).
    sweeps: of Gauss-Seidel, at most; exactly so many with tolerance=0.
    gradient: of contact: "implicit", at the solution, by its active set; or "reverse", the exact derivative of the sweeps that
        were run, converged or not (needs solver="gauss_seidel").
    search_distance: m (rad for limits of revolute joints), how near shapes must be to be looked at; at least what is closed
        in one step, or contact is found a step late.
    error_reduction: share of the error in depth that is taken back per step, 0 to switch position correction off.
    slop: m, the depth at which contacts rest, so that they do not sit on a kink of the law.
    softness: 1/kg, added to the diagonal of the contact problem; what makes redundant contacts share their load.
    bounce_threshold: m/s, slower contacts do not bounce.
    tolerance: m/s, what a solver accepts as solved.
    max_contacts: how many points between shapes that may push each other may be near at a time; more is an error.
    """

    dt: float = 1e-3
    integrator: Literal["semi_implicit", "explicit", "rk4"] = "semi_implicit"
    factor: Literal["articulated", "sparse"] = "articulated"
    cone: Literal["pyramid", "circular"] = "pyramid"
    solver: Literal["hybrid", "gauss_seidel"] = "hybrid"
    sweeps: int = 50
    gradient: Literal["implicit", "reverse"] = "implicit"
    search_distance: float = 1e-2
    error_reduction: float = 0.2
    slop: float = 1e-4
    softness: float = 1e-6
    bounce_threshold: float = 1e-2
    tolerance: float = 1e-8
    max_contacts: int = 64

    def __post_init__(self) -> None:
        if not isinstance(self.dt, int | float) or not (0.0 < self.dt < float("inf")):
            raise InputError(f"dt must be a positive number of seconds, not {self.dt!r}")
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is one of {', '.join(allowed)}; not {getattr(self, name)!r}")
        if self.gradient == "reverse" and self.solver != "gauss_seidel":
            raise InputError(
                "gradient='reverse' differentiates the sweeps of solver='gauss_seidel'; choose that solver"
            )
        for name in ("sweeps", "max_contacts"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is a whole number, at least 1, not {value!r}")
        for name in NUMBERS:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not (0.0 <= value < float("inf")):
                raise InputError(f"{name} is a number, zero or more, not {value!r}")

    def changed(self, given: dict[str, Any]) -> Options:
        """These options with some replaced; an unknown one is named."""
        known = [f.name for f in fields(self)]
        for name in given:
            if name not in known:
                raise InputError(f"there is no option '{name}'; options are {', '.join(known)}")
        return replace(self, **given)

    @property
    def contact_numbers(self) -> list[float]:
        """The numbers of contact that kernels read at run time."""
        return [float(getattr(self, name)) for name in NUMBERS]

    @property
    def structure(self) -> Options:
        """The options that shape a kernel, the others at their defaults: what kernels are compiled for."""
        shaping = {name: getattr(self, name) for name in (*CHOICES, "sweeps")}
        return replace(Options(), **shaping)


NUMBERS = ("search_distance", "error_reduction", "slop", "softness", "bounce_threshold", "tolerance")
