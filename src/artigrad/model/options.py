"""Options of the simulation method, independent of the robot."""

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
    """Options of a simulation step.

    Attributes:
        dt: Time step, s.
        integrator: "euler" (velocity first, then position with the new velocity; joint damping at the end of the step),
            "implicitfast" (also velocity gains of actuators: for stiff servos), "implicit" (also gyroscopic and
            Coriolis forces: for fast spins), "rk4" (fourth order without contact; explicit damping), or "explicit"
            (position with the old velocity). The first four are MuJoCo's of these names. law="hard" steps by euler.
        implicit_damping: False evaluates joint damping at the present velocity also under euler and explicit.
        factor: Solver of the mass matrix: "articulated" (articulated-body recursion, O(n)) or "sparse" (L^T D L along
            the tree). Same result to rounding; `docs/design/dynamics.md` has the measurements behind the default.
            Constraints require the articulated one.
        law: Constraint law (`docs/laws.md`): "soft" (MuJoCo's: convex, always solvable, for contacts, limits, dry
            friction and equalities) or "hard" (that of the ICML 2021 paper: rigid contacts with restitution; limits and
            dry friction of axial joints).
        cone: Friction cone: "pyramidal" (two independent tangents) or "elliptic" (isotropic).
        max_contacts: Capacity of the contact buffer, in points; ContactError if exceeded. Soft law: for the whole
            model, separately for condim 1/3 and 4/6. Hard law: per group of trees that can collide. On the CPU it is
            shared by the robots of a SIMD vector. None: the number of candidate points, at most 512 (soft) or 64
            (hard).
        impratio: Soft law: ratio of frictional to normal impedance.
        refsafe: Soft law: keep time constants at two steps or more, as MuJoCo does.
        iterations: Soft law: largest number of Newton iterations; the residual is in `violation`.
        noslip: Soft law: number of noslip sweeps against the creep of friction, MuJoCo's noslip_iterations; 0: none.
        noslip_tolerance: Soft law: improvement of a sweep, kg m^2/s^4, below which the sweeps end: MuJoCo's, which is
            relative, times its mean inertia and the number of degrees of freedom.
        solver: Hard law (`docs/design/contact.md`): "hybrid" (sweeps identify the active set, then an exact solve and a
            check of every row) or "gauss_seidel" (projected Gauss-Seidel sweeps until no update exceeds `tolerance`, at
            most `sweeps` of them).
        sweeps: Hard law: largest number of Gauss-Seidel sweeps; exactly that number with tolerance=0.
        gradient: Hard law: "implicit", at the solution, by its active set; or "reverse", the exact derivative of the
            sweeps that were run, converged or not (requires solver="gauss_seidel").
        search_distance: Hard law: distance, m (rad for limits of revolute joints), within which shapes are candidates,
            besides the distance that they approach in one step at their present speed.
        error_reduction: Hard law: fraction of the penetration error corrected per step; 0 switches position correction
            off.
        correction_speed: Hard law: largest speed of position correction, m/s (rad/s for limits of revolute joints), so
            that deep initial penetration is resolved slowly for any dt.
        slop: Hard law: penetration depth of resting contacts, m, so that they are not at a kink of the law.
        softness: Hard law: compliance of contacts, as a fraction of the inverse weights of the two bodies
            (`body_weight`, `dof_weight`); it distributes the load of redundant contacts.
        absolute_softness: Hard law: compliance of all contacts, 1/kg (1/(kg m^2) for revolute joints), as in the paper.
        bounce_threshold: Hard law: speed below which contacts do not bounce, m/s.
        tolerance: Hard law: tolerance of the solvers, m/s.
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
        for f in fields(self):  # convert NumPy scalars to Python's
            if isinstance(getattr(self, f.name), np.generic):
                object.__setattr__(self, f.name, getattr(self, f.name).item())

    def changed(self, given: dict[str, Any]) -> Options:
        """Return a copy with some options replaced; an unknown option raises an error that names it."""
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
        """Capacity of the contact buffer, in points."""
        return MOST_CONTACTS[self.law] if self.max_contacts is None else self.max_contacts

    @property
    def contact_numbers(self) -> list[float]:
        """Options of the hard law that kernels read at run time."""
        return [float(getattr(self, name)) for name in NUMBERS]

    @property
    def soft_numbers(self) -> list[float]:
        """Options of the soft law that enter the constants: least time constant, 1/sqrt(impratio), and 1 for pyramidal
        cones."""
        return [2.0 * self.dt if self.refsafe else 0.0, self.impratio**-0.5, float(self.cone == "pyramidal")]

    @property
    def structure(self) -> Options:
        """The options for which kernels are compiled; all others at their defaults."""
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
