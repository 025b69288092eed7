"""Options of the method: the time step and its integration, and those of the contact law."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from ..deprecation import deprecated
from ..errors import InputError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
Integrator = Literal["euler", "implicitfast", "implicit", "rk4", "explicit"]
CHOICES = {
    "integrator": ("euler", "implicitfast", "implicit", "rk4", "explicit"),
    "factor": ("articulated", "sparse"),
    "cone": ("pyramidal", "elliptic"),
}


def _is_real(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool)


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name} is one of {', '.join(allowed)}; not {value!r}")


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is a whole number, {'at least 1' if least else 'zero or more'}, not {value!r}")


def _check_number(name: str, value: Any) -> None:
    if not _is_real(value) or not (0.0 <= value < float("inf")):
        raise InputError(f"{name} is a number, zero or more, not {value!r}")


def _check_truth(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} is True or False, not {value!r}")


class LawOptions:
    """Base class of the options of a contact law.

    Attributes:
        name: Name of the law, as in `Simulator(model, law="hard")`.
        default_max_contacts: Largest `Options.max_contacts` that is chosen by default.
        structure_fields: Options that a kernel is compiled for; the others are numbers that it reads.
    """

    name: ClassVar[str]
    default_max_contacts: ClassVar[int]
    structure_fields: ClassVar[tuple[str, ...]]
    _given: frozenset[str]  # options that the constructor was called with

    def __new__(cls, **given: Any) -> Self:
        made = super().__new__(cls)
        object.__setattr__(made, "_given", frozenset(given))
        return made

    def values(self) -> dict[str, Any]:
        """Return all options by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def over(self, base: LawOptions) -> Self:
        """Return these options, and for those that the constructor was not called with the values of `base`, if it is of the
        same law. All options of the result count as given."""
        standing = base.values() if isinstance(base, type(self)) else {}
        return type(self)(
            **standing | {name: x for name, x in self.values().items() if name in self._given or not standing}
        )

    @property
    def structure(self) -> Self:
        """Options that a kernel is compiled for, the others at their defaults."""
        return type(self)(**{name: getattr(self, name) for name in self.structure_fields})

    @property
    def taped(self) -> bool:
        """True if a backward pass needs a tape of the solver's iterations."""
        return False

    def _normalize(self) -> None:
        """Replace NumPy's numbers by Python's."""
        for name, x in self.values().items():
            if isinstance(x, np.generic):
                object.__setattr__(self, name, x.item())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            deprecated(f"options.law == {other!r}", f"options.law.name == {other!r}")
            return self.name == other
        return isinstance(other, type(self)) and astuple(self) == astuple(other)  # type: ignore[call-overload]

    def __hash__(self) -> int:
        return hash((self.name, astuple(self)))  # type: ignore[call-overload]

    def __repr__(self) -> str:
        own = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={x!r}' for name, x in own.items())})"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SoftOptions(LawOptions):
    """Options of the soft law, `Simulator(model, law=ag.SoftOptions(...))`: MuJoCo's convex law for contacts, limits, dry
    friction and equalities. It is the default, and always solvable (`docs/contact-models.md`).

    A Simulator takes options that are not given from the model's, which are those of its file.

    Attributes:
        impratio: Ratio of the stiffness of friction to that in normal direction.
        refsafe: True if time constants of `solref` are at least two steps.
        iterations: Maximum number of iterations of Newton's method. The remaining residual is in `violation`.
        noslip: Number of sweeps against the creep of friction after Newton's method, MuJoCo's `noslip_iterations`; 0: none.
        noslip_tolerance: Improvement below which sweeps end, kg m^2/s^4: MuJoCo's `noslip_tolerance`, which is relative,
            times its mean inertia and the number of degrees of freedom.
    """

    name: ClassVar[str] = "soft"
    default_max_contacts: ClassVar[int] = 512
    structure_fields: ClassVar[tuple[str, ...]] = ("iterations", "noslip")

    impratio: float = 1.0
    refsafe: bool = True
    iterations: int = 100
    noslip: int = 0
    noslip_tolerance: float = 0.0

    def __post_init__(self) -> None:
        _check_count("iterations", self.iterations, 1)
        _check_count("noslip", self.noslip, 0)
        for name in ("impratio", "noslip_tolerance"):
            _check_number(name, getattr(self, name))
        if self.impratio == 0:
            raise InputError("impratio is above zero: how much stiffer friction is than the normal direction")
        _check_truth("refsafe", self.refsafe)
        self._normalize()


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HardOptions(LawOptions):
    """Options of the hard law, `Simulator(model, law=ag.HardOptions(...))`: contacts that do not give way, with restitution;
    limits and dry friction of joints with one axis (`docs/design/contact.md`).

    A Simulator takes options that are not given from the model's, if its own law is the hard one.

    Attributes:
        solver: "hybrid" (sweeps find the active set, followed by an exact solve and a check of every row) or "gauss_seidel"
            (projected Gauss-Seidel sweeps until no residual is above `tolerance`, at most `sweeps` of them).
        sweeps: Maximum number of sweeps of solver="gauss_seidel"; the exact number with tolerance=0. The hybrid solver makes
            as many as it needs.
        gradient: "implicit" (at the solution, by its active set) or "reverse" (exact derivative of the sweeps that were run,
            converged or not; needs solver="gauss_seidel").
        search_distance: Distance of shapes, m (of limits of revolute joints: rad), beside their approach in one step at their
            present velocity, within which a contact is part of the problem.
        error_reduction: Fraction of the penetration that is corrected per step; 0: no correction of positions.
        correction_speed: Maximum velocity of that correction, m/s (of limits of revolute joints: rad/s), for any dt.
        slop: Depth at which contacts rest, m, so that they are not at a kink of the law.
        softness: Compliance of contacts, as a fraction of the inverse weights of the two bodies (`body_invweight0`,
            `dof_invweight0`); it distributes the load of redundant contacts.
        absolute_softness: Compliance of all contacts, 1/kg (1/(kg m^2) for revolute joints), as in the paper.
        bounce_threshold: Velocity, m/s, below which contacts do not bounce.
        tolerance: Residual that a solver accepts, m/s.
    """

    name: ClassVar[str] = "hard"
    default_max_contacts: ClassVar[int] = 64
    structure_fields: ClassVar[tuple[str, ...]] = ("solver", "sweeps", "gradient")

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

    def __post_init__(self) -> None:
        _check_choice("solver", self.solver, ("hybrid", "gauss_seidel"))
        _check_choice("gradient", self.gradient, ("implicit", "reverse"))
        if self.gradient == "reverse" and self.solver != "gauss_seidel":
            raise InputError(
                "gradient='reverse' differentiates the sweeps of solver='gauss_seidel'; choose that solver"
            )
        _check_count("sweeps", self.sweeps, 1)
        if self.solver != "gauss_seidel" and self.sweeps != HardOptions.sweeps:
            raise InputError("sweeps is an option of solver='gauss_seidel'; solver='hybrid' makes as many as it needs")
        for name in NUMBERS:
            _check_number(name, getattr(self, name))
        self._normalize()

    @property
    def taped(self) -> bool:
        """True if a backward pass needs a tape of the sweeps."""
        return self.gradient == "reverse"

    @property
    def numbers(self) -> list[float]:
        """Numbers that kernels read at run time, in the order of `NUMBERS`."""
        return [float(getattr(self, name)) for name in NUMBERS]


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
LAWS: dict[str, type[SoftOptions] | type[HardOptions]] = {"soft": SoftOptions, "hard": HardOptions}
# law of each option, which was an option of Simulator and Options before
LAW_OF = {f.name: law for law in LAWS.values() for f in fields(law)}


def _with_law_arguments(cls: C) -> C:
    """Decorate `Options`, whose constructor had the options of laws as flat arguments."""
    made = cls.__init__  # type: ignore[misc]

    @functools.wraps(made)
    def init(self: Any, *args: Any, **given: Any) -> None:
        made(self, *args, **law_arguments(given, "Options", SoftOptions()))

    setattr(cls, "__init__", init)  # noqa: B010 - mypy forbids an assignment
    return cls


@_with_law_arguments
@dataclass(frozen=True)
class Options:
    """Options of the method.

    Attributes:
        dt: Time step, s.
        law: Contact law with its options: `SoftOptions` (MuJoCo's law, convex, always solvable, for contacts, limits, dry
            friction and equalities) or `HardOptions` (contacts that do not give way, with restitution; limits and dry
            friction of joints with one axis). Given as "soft" or "hard", its options are the defaults.
        integrator: "euler" (velocity first, then position with the new velocity; joint damping acts at the end of the step),
            "implicitfast" (so do the velocity gains of actuators: for stiff servos), "implicit" (so do gyroscopic and
            Coriolis forces: for fast rotations), "rk4" (fourth order without contact; damping explicit), or "explicit"
            (position with the old velocity). The first four are MuJoCo's of these names. The hard law steps by euler.
        implicit_damping: False takes joint damping at the present velocity also under euler and explicit.
        factor: Inverse of the mass matrix: "articulated" (articulated-body recursion, O(n)) or "sparse" (L^T D L along the
            tree). Same result to rounding; `docs/design/dynamics.md` has the figures behind the default. Contact works on
            the articulated one.
        cone: Friction cone of both laws: "pyramidal" (each of two tangents by itself) or "elliptic" (the same in all
            directions).
        max_contacts: Capacity of the contact buffer, in points; ContactError if exceeded. Soft law: for the whole model,
            separately for condim 1/3 and 4/6. Hard law: per group of trees that can collide. On the CPU it is shared by
            the robots of a SIMD vector. None: the number of candidate points, at most 512 (soft) or 64 (hard), and rollouts
            on the CPU that need more are made again with more, with the same bits.
    """

    dt: float = 1e-3
    law: SoftOptions | HardOptions = SoftOptions()
    integrator: Integrator = "euler"
    implicit_damping: bool = True
    factor: Literal["articulated", "sparse"] = "articulated"
    cone: Literal["pyramidal", "elliptic"] = "pyramidal"
    max_contacts: int | None = None

    def __post_init__(self) -> None:
        if not _is_real(self.dt) or not (0.0 < self.dt < float("inf")):
            raise InputError(f"dt must be a positive number of seconds, not {self.dt!r}")
        law = _law(self.law)
        object.__setattr__(self, "law", law.over(law))
        for name, allowed in CHOICES.items():
            _check_choice(name, getattr(self, name), allowed)
        if self.max_contacts is not None:
            _check_count("max_contacts", self.max_contacts, 1)
        _check_truth("implicit_damping", self.implicit_damping)
        for f in fields(self):  # NumPy's numbers become Python's
            if isinstance(getattr(self, f.name), np.generic):
                object.__setattr__(self, f.name, getattr(self, f.name).item())

    def __getattr__(self, name: str) -> Any:
        if name not in LAW_OF:
            raise AttributeError(f"'Options' object has no attribute {name!r}")
        deprecated(f"options.{name}", f"options.law.{name}")
        return getattr(self.law, name) if isinstance(self.law, LAW_OF[name]) else getattr(LAW_OF[name], name)

    def changed(self, given: dict[str, Any]) -> Options:
        """Return these options with some replaced, given by name. Of a law of the same kind, options that were not given to its
        constructor stay."""
        if not isinstance(given, dict):
            raise InputError(f"options are given by name, as {{'dt': 0.01}}, not {type(given).__name__}")
        given = law_arguments(given, "Options.changed", self.law)
        known = [f.name for f in fields(self)]
        for name in given:
            if name not in known:
                raise InputError(f"there is no option '{name}'; options are {', '.join(known)}")
        if "law" in given:
            law = given["law"]
            kept = isinstance(law, str) and law == self.law.name
            given = given | {"law": self.law if kept else _law(law).over(self.law)}
        return replace(self, **given)

    def values(self) -> dict[str, Any]:
        """Return all options by name, those of the law beside the others; law: its name."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return own | {"law": self.law.name} | self.law.values()

    @staticmethod
    def of_values(values: Mapping[str, Any]) -> Options:
        """Return the options of `values()`; options of other laws, which files of earlier versions have, are left out."""
        law = LAWS[values.get("law", "soft")]
        own = {f.name: values[f.name] for f in fields(law) if f.name in values}
        known = {f.name for f in fields(Options)}
        unknown = values.keys() - known - LAW_OF.keys()
        if unknown:
            raise InputError(f"there is no option '{min(unknown)}'")
        return Options(**{name: x for name, x in values.items() if name in known} | {"law": law(**own)})

    @property
    def soft(self) -> SoftOptions:
        """Options of the soft law; under another law the defaults."""
        return self.law if isinstance(self.law, SoftOptions) else SoftOptions()

    @property
    def hard(self) -> HardOptions:
        """Options of the hard law; under another law the defaults."""
        return self.law if isinstance(self.law, HardOptions) else HardOptions()

    @property
    def contact_limit(self) -> int:
        """Maximum number of points that may touch at a time."""
        return self.law.default_max_contacts if self.max_contacts is None else self.max_contacts

    @property
    def constant_numbers(self) -> list[float]:
        """Numbers that the constants of constraint rows are computed with: least time constant, s; 1/sqrt(impratio); 1 for
        pyramidal cones."""
        soft = self.soft
        return [2.0 * self.dt if soft.refsafe else 0.0, soft.impratio**-0.5, float(self.cone == "pyramidal")]

    @property
    def structure(self) -> Options:
        """Options that a kernel is compiled for, the others at their defaults."""
        own = {name: getattr(self, name) for name in (*CHOICES, "implicit_damping")}
        return Options(law=self.law.structure, **own)


def law_arguments(given: dict[str, Any], owner: str, standing: LawOptions) -> dict[str, Any]:
    """Return keyword arguments with flat options of a law gathered in `law`, with a warning."""
    flat = {name: x for name, x in given.items() if name in LAW_OF}
    if not flat:
        return given
    law = _law(given.get("law") or standing)
    for name in flat:
        if not isinstance(law, LAW_OF[name]):
            other = LAW_OF[name]
            raise InputError(
                f"{name} is an option of law='{other.name}', and this is law='{law.name}': pass "
                f"law=ag.{other.__name__}({name}=...)"
            )
    spelled = ", ".join(f"{name}={x!r}" for name, x in flat.items())
    deprecated(f"{owner}({', '.join(f'{name}=...' for name in flat)})", f"law=ag.{type(law).__name__}({spelled})")
    own = {name: x for name, x in law.values().items() if name in law._given}
    rest = {name: x for name, x in given.items() if name not in LAW_OF}
    return rest | {"law": type(law)(**own | flat)}


def law_keywords(f: F) -> F:
    """Decorate `Simulator.__init__`, which had the options of laws as flat keywords; refuse unknown options by name."""
    known = inspect.signature(f).parameters

    @functools.wraps(f)
    def init(self: Any, model: Any, *args: Any, **given: Any) -> None:
        options = getattr(model, "options", None)
        if isinstance(options, Options) and not given.keys() <= known.keys():
            given = {name: x for name, x in given.items() if x is not None or name not in LAW_OF}
            given = law_arguments(given, "Simulator", options.law)
            for name in given.keys() - known.keys():
                listed = ", ".join(f.name for f in fields(Options))
                raise InputError(f"there is no option '{name}'; options are {listed}")
        f(self, model, *args, **given)

    return init  # type: ignore[return-value]


def _law(given: Any) -> SoftOptions | HardOptions:
    """Return the options of a law that is given by its name or its options."""
    if isinstance(given, SoftOptions | HardOptions):
        return given
    if not isinstance(given, str) or given not in LAWS:
        raise InputError(
            f"law is one of {', '.join(LAWS)}, or ag.SoftOptions(...) or ag.HardOptions(...); not {given!r}"
        )
    return LAWS[given]()
