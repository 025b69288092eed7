"""Options: about the method, not about the robot."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from ..errors import InputError

Integrator = Literal["euler", "implicitfast", "implicit", "rk4", "explicit"]
CHOICES = {
    "law": ("soft", "hard"),
    "integrator": ("euler", "implicitfast", "implicit", "rk4", "explicit"),
    "factor": ("articulated", "sparse"),
    "solver": ("hybrid", "gauss_seidel"),
    "gradient": ("implicit", "reverse"),
    "cone": ("pyramidal", "elliptic"),
}


@dataclass(frozen=True)
class Options:
    """How a step is made.

    dt: time step, s.
    integrator: "euler" (velocity first, then position with the new velocity; joint damping acts at the end of the step),
        "implicitfast" (so do the velocity gains of actuators: for stiff servos), "implicit" (so do gyroscopic and Coriolis
        forces: for what spins fast), "rk4" (fourth order where nothing touches; damping explicit), or "explicit" (position
        with the old velocity). The first four are MuJoCo's of these names. law="hard" steps by euler.
    implicit_damping: False takes joint damping at the present velocity also under euler and explicit.
    factor: how the mass matrix is inverted: "articulated" (articulated-body recursion, O(n)) or "sparse" (L^T D L along
        the tree). Same result to rounding; `docs/design/dynamics.md` has the figures behind the default. Contact works
        on the articulated one.

    Constraints (`docs/laws.md`):
    law: "soft" (MuJoCo's: convex, always solvable, for contacts, limits, dry friction and equalities) or "hard" (the ICML
        2021 paper's: contacts that do not give way, with restitution; limits and dry friction of joints with one axis).
    cone: of friction: "pyramidal" (each of two tangents by itself) or "elliptic" (the same in all directions).
    max_contacts: how many points between shapes that may push each other may be near at a time; more is an error. None: as
        many as there can be, but at most 512, or 64 under the hard law.

    Of the soft law alone:
    impratio: how much stiffer friction is than the normal direction.
    refsafe: whether time constants are at least two steps, as in MuJoCo.
    iterations: of Newton's method, at most; what is left over is in `violation`.
    noslip: sweeps after it against the creep of friction, MuJoCo's noslip_iterations; 0: none.
    noslip_tolerance: kg m^2/s^4, what a sweep must gain to be followed by another: MuJoCo's, which is relative, times its mean
        inertia and the number of degrees of freedom.

    Of the hard law alone (`docs/design/contact.md`):
    solver: "hybrid" (sweeps name the active set, an exact solve, a check of every row) or "gauss_seidel" (projected
        Gauss-Seidel sweeps until nothing moves by more than `tolerance`, at most `sweeps` of them).
    sweeps: of Gauss-Seidel, at most; exactly so many with tolerance=0.
    gradient: of contact: "implicit", at the solution, by its active set; or "reverse", the exact derivative of the sweeps that
        were run, converged or not (needs solver="gauss_seidel").
    search_distance: m (rad for limits of revolute joints), how near shapes must be to be looked at, beside what they approach
        by in one step at their present speed.
    error_reduction: share of the error in depth that is taken back per step, 0 to switch position correction off.
    correction_speed: m/s (rad/s for limits of revolute joints), at most so fast is depth taken back, so that what starts deep
        comes out slowly whatever dt is.
    slop: m, the depth at which contacts rest, so that they do not sit on a kink of the law.
    softness: how much contacts give way, as a share of the inverse masses that the model gives the two bodies (`body_weight`,
        `dof_weight`); what makes redundant contacts share their load.
    absolute_softness: 1/kg (1/(kg m^2) for revolute joints), the same as a number for all contacts; the paper's.
    bounce_threshold: m/s, slower contacts do not bounce.
    tolerance: m/s, what a solver accepts as solved.
    """

    dt: float = 1e-3
    law: Literal["soft", "hard"] = "soft"
    integrator: Integrator = "euler"
    implicit_damping: bool = True
    factor: Literal["articulated", "sparse"] = "articulated"
    cone: Literal["pyramidal", "elliptic"] = "pyramidal"
    solver: Literal["hybrid", "gauss_seidel"] = "hybrid"
    sweeps: int = 50
    gradient: Literal["implicit", "reverse"] = "implicit"
    search_distance: float = 1e-2
    error_reduction: float = 0.2
    correction_speed: float = 1.0
    slop: float = 1e-4
    softness: float = 1e-6
    absolute_softness: float = 0.0
    bounce_threshold: float = 1e-2
    tolerance: float = 1e-8
    max_contacts: int | None = None
    impratio: float = 1.0
    refsafe: bool = True
    iterations: int = 100
    noslip: int = 0
    noslip_tolerance: float = 0.0

    def __post_init__(self) -> None:
        if not _is_real(self.dt) or not (0.0 < self.dt < float("inf")):
            raise InputError(f"dt must be a positive number of seconds, not {self.dt!r}")
        for name, allowed in CHOICES.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in allowed:
                raise InputError(f"{name} is one of {', '.join(allowed)}; not {getattr(self, name)!r}")
        if self.gradient == "reverse" and self.solver != "gauss_seidel":
            raise InputError(
                "gradient='reverse' differentiates the sweeps of solver='gauss_seidel'; choose that solver"
            )
        for name in ("sweeps", "max_contacts", "iterations"):
            value = getattr(self, name)
            if value is None and name == "max_contacts":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is a whole number, at least 1, not {value!r}")
        if not isinstance(self.noslip, Integral) or isinstance(self.noslip, bool) or self.noslip < 0:
            raise InputError(f"noslip is a whole number, zero or more, not {self.noslip!r}")
        for name in (*NUMBERS, "impratio", "noslip_tolerance"):
            value = getattr(self, name)
            if not _is_real(value) or not (0.0 <= value < float("inf")):
                raise InputError(f"{name} is a number, zero or more, not {value!r}")
        if self.impratio == 0:
            raise InputError("impratio is above zero: how much stiffer friction is than the normal direction")
        for name in ("implicit_damping", "refsafe"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InputError(f"{name} is True or False, not {getattr(self, name)!r}")
        for f in fields(self):  # NumPy's numbers become Python's
            if isinstance(getattr(self, f.name), np.generic):
                object.__setattr__(self, f.name, getattr(self, f.name).item())

    def changed(self, given: dict[str, Any]) -> Options:
        """These options with some replaced; an unknown one is named."""
        if not isinstance(given, dict):
            raise InputError(f"options are given by name, as {{'dt': 0.01}}, not {type(given).__name__}")
        known = [f.name for f in fields(self)]
        for name in given:
            if name not in known:
                raise InputError(f"there is no option '{name}'; options are {', '.join(known)}")
        changed = replace(self, **given)
        for law, names in ONLY.items():
            mistaken = [name for name in given if name in names and law != changed.law]
            if mistaken:
                raise InputError(f"{mistaken[0]} is an option of law='{law}', and this is law='{changed.law}'")
        if "sweeps" in given and changed.solver != "gauss_seidel":
            raise InputError("sweeps is an option of solver='gauss_seidel'; solver='hybrid' makes as many as it needs")
        return changed

    @property
    def contact_limit(self) -> int:
        """How many points may be near at a time."""
        return MOST_CONTACTS[self.law] if self.max_contacts is None else self.max_contacts

    @property
    def contact_numbers(self) -> list[float]:
        """The numbers of contact that kernels read at run time."""
        return [float(getattr(self, name)) for name in NUMBERS]

    @property
    def soft_numbers(self) -> list[float]:
        """What of the soft law goes into the constants: least time constant, 1/sqrt(impratio), and 1 for pyramidal cones."""
        return [2.0 * self.dt if self.refsafe else 0.0, self.impratio**-0.5, float(self.cone == "pyramidal")]

    @property
    def structure(self) -> Options:
        """The options that shape a kernel, the others at their defaults: what kernels are compiled for."""
        shaping = {
            name: getattr(self, name) for name in (*CHOICES, "sweeps", "iterations", "implicit_damping", "noslip")
        }
        return replace(Options(), **shaping)


def _is_real(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


MOST_CONTACTS = {"soft": 512, "hard": 64}
NUMBERS = (
    "search_distance",
    "error_reduction",
    "correction_speed",
    "slop",
    "softness",
    "bounce_threshold",
    "tolerance",
    "absolute_softness",
)
ONLY = {
    "hard": ("solver", "sweeps", "gradient", *NUMBERS),
    "soft": ("impratio", "refsafe", "iterations", "noslip", "noslip_tolerance"),
}
