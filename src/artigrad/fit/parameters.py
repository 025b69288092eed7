"""Parametrization of a fit: named entries of `Params`, or scalars with a function that writes them into Params.

The method optimizes coordinates theta, zero at the initial guess, which keep every value within its domain:

    positive    a value that starts above zero and whose lower bound is not below zero
    added       any other scalar, in units of |x0| (of one if it starts at zero)
    inertia     inertias

as named in `model.physical`. Bounds on x are bounds on theta. Values are written into Params in the order of the list.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arguments import is_number, shown
from ..errors import InputError
from ..model import physical
from ..model.params import FIELDS, POSITIVE, Params, current_name

Bounds = tuple[float, float]

_XYZ = ("x", "y", "z")
_REFERENCE, _IMPEDANCE = ("time", "ratio"), ("near", "far", "width", "midpoint", "power")
_ROWS = ("", "limit_", "dry_", "pair_", "equality_", "tendon_limit_", "tendon_dry_")
_LOW_HIGH = ("low", "high")
COMPONENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gravity", "com", "position", "anchor", "shape_position", "shape_size", "site_position"), _XYZ),
    **dict.fromkeys(("magnetic", "wind", "fluid_box"), _XYZ),
    **{f"{of}solref": _REFERENCE for of in _ROWS},
    **{f"{of}solimp": _IMPEDANCE for of in _ROWS},
    **dict.fromkeys(
        ("limit", "effort_limit", "control_range", "force_range", "tendon_limit", "tendon_rest"), _LOW_HIGH
    ),
    "bias": ("constant", "length", "velocity"),
    "inertia": ("xx", "yy", "zz", "xy", "xz", "yz"),
    "body_invweight0": ("shift", "turn"),
    "equality_polynomial": ("constant", "linear", "square", "cube", "fourth"),
    "gain_slope": ("length", "velocity"),
    "gear_axes": ("x", "y", "z", "about_x", "about_y", "about_z"),
    "pair_friction": ("slide", "slide2", "torsion", "roll", "roll2"),
    "pair_solref_friction": _REFERENCE,
}
_DIRECTIONS = (
    *("rotation", "axis", "shape_rotation", "site_rotation", "fluid_rotation", "vertex"),
    *("equality_anchor", "equality_rotation"),
)
_DERIVATIVE = 1e-5  # step in theta of the differences in `derivative`: exact to about 1e-10


@dataclass(frozen=True)
class Parameter:
    """A user-defined scalar to estimate, such as a length on which several entries of `Params` depend.

    Attributes:
      name: Name in results.
      set: Function (params, x) -> Params with x written into it, smooth in x. Parameters before it in the list are set
        already.
      start: Initial guess.
      bounds: Lower and upper bound.

    Example:

        Parameter("length", lambda p, x: p.replace(com=[[0, 0, -x / 2]]), start=1.0, bounds=(0.1, 5.0))
    """

    name: str
    set: Callable[[Params, float], Params]
    start: float
    bounds: Bounds = (-math.inf, math.inf)


class _Block(Protocol):
    """Values with as many coordinates, low <= theta <= high. `size` is the scale of each value."""

    labels: tuple[str, ...]
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return x(theta)."""

    def put(self, params: Params, x: np.ndarray) -> Params:
        """Return Params with the values x."""


class _Scalar:
    """Scalar x = x0 exp(theta) or x = x0 + |x0| theta."""

    labels: tuple[str, ...]

    def __init__(self, parameter: Parameter):
        name, bounds = parameter.name, parameter.bounds
        if not isinstance(name, str) or not is_number(parameter.start) or not math.isfinite(parameter.start):
            raise InputError(
                f"start of parameter {name!r} is a finite number, its name a str; not {shown(parameter.start)}"
            )
        x0 = float(parameter.start)
        low, high = _checked_bounds(name, x0, bounds)
        self.labels, self._start, self._set = (name,), x0, parameter.set
        self._positive, self._unit = low >= 0.0 and x0 > 0.0, abs(x0) or 1.0
        if self._positive:
            ends = [math.log(b / x0) if b > 0.0 else -math.inf for b in (low, high)]
        else:
            ends = [(b - x0) / self._unit for b in (low, high)]
        self.low, self.high, self.size = np.array(ends[:1]), np.array(ends[1:]), np.array([self._unit])

    def values(self, theta: np.ndarray) -> np.ndarray:
        start, unit = self._start, self._unit
        return physical.positive(start, theta) if self._positive else physical.added(start, theta, unit)

    def put(self, params: Params, x: np.ndarray) -> Params:
        if not callable(self._set):
            raise InputError(f"`set` of parameter '{self.labels[0]}' is a function of (params, x), not {self._set!r}")
        out = self._set(params, float(x[0]))
        if not isinstance(out, Params):
            raise InputError(f"`set` of parameter '{self.labels[0]}' must return Params, not {type(out).__name__}")
        return out


class _Inertia:
    """Inertia of one body (xx, yy, zz, xy, xz, yz) that stays the inertia of a mass distribution."""

    def __init__(self, label: str, body: int, start: np.ndarray):
        self.labels = tuple(f"{label}.{axes}" for axes in COMPONENTS["inertia"])
        self.size, self._body = np.full(6, np.abs(start).max()), body
        self.low, self.high = np.full(6, -np.inf), np.full(6, np.inf)
        self._start = np.array(start)

    def values(self, theta: np.ndarray) -> np.ndarray:
        return physical.inertia(self._start, theta)

    def put(self, params: Params, x: np.ndarray) -> Params:
        inertia = np.array(params.inertia)
        inertia[self._body] = x
        return params.replace(unchecked=True, inertia=inertia)


class Parametrization:
    """All estimated values as a function of one vector theta."""

    def __init__(
        self,
        base: Params,
        parameters: Sequence[str | Parameter],
        bounds: Mapping[str, Bounds],
        reweighted: bool = False,
    ):
        if isinstance(parameters, str | Parameter):
            raise InputError('parameters is a list of what to estimate, such as ["mass", "damping[rod1]"]')
        self._base, self._reweighted, unused = base, reweighted, set(bounds)
        self._blocks: list[_Block] = []
        for p in parameters:
            if isinstance(p, Parameter):
                self._blocks.append(_Scalar(p))
            elif isinstance(p, str):
                self._blocks += _named(base, p, bounds, unused)
            else:
                raise InputError(f"a parameter is a name such as 'mass[rod1]' or an ag.Parameter, not {p!r}")
        self.labels = tuple(label for b in self._blocks for label in b.labels)
        if own := unused & {p.name for p in parameters if isinstance(p, Parameter)}:
            raise InputError(f"bounds of the ag.Parameter '{min(own)}' are given where it is made")
        if unused:
            raise InputError(
                f"bounds for '{min(unused)}', which is not estimated; estimated are {', '.join(self.labels)}"
            )
        twice = [label for label in self.labels if self.labels.count(label) > 1]
        if twice:
            raise InputError(f"'{twice[0]}' is listed twice; name each parameter once")
        self.size, self.low, self.high = (
            np.concatenate([np.zeros(0), *(getattr(b, what) for b in self._blocks)]) for what in ("size", "low", "high")
        )

    def __len__(self) -> int:
        return len(self.labels)

    def values(self, theta: np.ndarray) -> np.ndarray:
        """Return x(theta)."""
        return np.concatenate([np.zeros(0), *(b.values(t) for b, t in self._split(theta))])

    def params(self, theta: np.ndarray) -> Params:
        """Return the Params at theta."""
        params = self._base
        for block, t in self._split(theta):
            params = block.put(params, block.values(t))
        return params.reweighted() if self._reweighted else params

    def derivative(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dx/dtheta (p, p) and d(Params.flat)/dtheta (n, p)."""
        if not len(theta):
            return np.zeros((0, 0)), np.zeros((self._base.flat.size, 0))
        h = _DERIVATIVE * np.eye(len(theta))
        x = [(self.values(theta + d) - self.values(theta - d)) / (2 * _DERIVATIVE) for d in h]
        flat = [(self._flat(theta + d) - self._flat(theta - d)) / (2 * _DERIVATIVE) for d in h]
        return np.stack(x, 1), np.stack(flat, 1)

    def _flat(self, theta: np.ndarray) -> np.ndarray:
        """Return Params.flat with infinite limits, which are constant, as zero."""
        flat = self.params(theta).flat
        return np.where(np.isinf(flat), 0.0, flat)

    def _split(self, theta: np.ndarray) -> list[tuple[_Block, np.ndarray]]:
        ends = np.cumsum([0] + [len(b.labels) for b in self._blocks])
        return [(b, theta[start:end]) for b, start, end in zip(self._blocks, ends[:-1], ends[1:], strict=True)]


class Chosen(NamedTuple):
    """Entries of Params selected by 'field', 'field[part]' or 'field[part].component'.

    Attributes:
      field: Name of the field.
      parts: Labels by row.
      axes: Names of the field's components.
      components: Selected components.
    """

    field: str
    parts: dict[int, str]
    axes: tuple[str, ...]
    components: list[int]

    @property
    def place(self) -> tuple[Any, ...]:
        """Index of the selected entries in the field."""
        if FIELDS[self.field][0] == "world":
            return (np.array(self.components),) if self.axes[0] else ()
        rows = np.array(list(self.parts))
        return np.ix_(rows, np.array(self.components)) if self.axes[0] else (rows,)


def chosen(base: Params, name: str) -> Chosen:
    """Return the entries of Params that a name selects. Raises InputError with the valid names."""
    model = base.model
    match = re.fullmatch(r"(\w+)(?:\[([^\]]+)\])?(?:\.(\w+))?", name)
    field = current_name(match[1] if match else name)
    if not match or field not in FIELDS:
        raise InputError(
            f"unknown parameter '{name}': expected field, field[part] or field[part].x, of {', '.join(FIELDS)}"
        )
    if field in _DIRECTIONS or len(FIELDS[field][1]) > 1:
        raise InputError(f"'{field}' has no independent entries: pass an ag.Parameter that sets it")
    per = FIELDS[field][0]
    names = _parts(base, per)
    if match[2] is not None and match[2] not in names:
        known = ", ".join(dict.fromkeys(names)) or "none: write the name without brackets"
        raise InputError(f"'{model.name}' has no {per} '{match[2]}' for '{name}'; it has: {known}")
    rows = sorted(set(names.values())) if match[2] is None else [names[match[2]]]
    whose = {i: n for n, i in reversed(names.items())} | ({} if match[2] is None else {rows[0]: match[2]})
    axes = _axes(field)
    if match[3] is not None and match[3] not in axes:
        raise InputError(f"'{name}': {field} has {'components ' + ', '.join(axes) if axes[0] else 'no components'}")
    parts = {i: field if per == "world" else f"{field}[{whose[i]}]" for i in rows}
    return Chosen(field, parts, axes, [k for k in range(len(axes)) if match[3] is None or axes[k] == match[3]])


def _axes(field: str) -> tuple[str, ...]:
    """Return names (or numbers) of the components of a field; one empty name for a field without components."""
    shape = FIELDS[field][1]
    return COMPONENTS.get(field, tuple(map(str, range(shape[0]))) if shape else ("",))


def _named(base: Params, name: str, bounds: Mapping[str, Bounds], unused: set[str]) -> list[_Block]:
    """Return a block for each selected entry, or one for a whole inertia. Single components of an inertia are not
    constrained to be physically possible together."""
    field, parts, axes, components = chosen(base, name)
    whole = field == "inertia" and len(components) == len(axes)
    per = FIELDS[field][0]
    blocks: list[_Block] = []
    for i, label in parts.items():
        if whole:
            if _bounds_of([label, name], bounds, unused) is not None:
                raise InputError(f"'{label}' takes no bounds: it stays physically possible without")
            if base.inertia[i].any():
                blocks.append(_Inertia(label, i, base.inertia[i]))
            continue
        for k in components:
            entry = (*(() if per == "world" else (i,)), *((k,) if axes[k] else ()))
            full = f"{label}.{axes[k]}" if axes[k] else label
            given = _bounds_of([full, label, name], bounds, unused)
            x0 = float(base[field][entry])
            if (field in POSITIVE and x0 == 0.0) or not math.isfinite(x0):
                continue  # would not change
            moment = field == "inertia" and k < 3
            natural = (0.0, math.inf) if moment else _natural(field)
            blocks.append(_Scalar(Parameter(full, _setter(field, entry), x0, given or natural)))
    if not blocks:
        raise InputError(f"every '{name}' is zero or infinite and would stay so: give the model a small initial value")
    return blocks


def _parts(params: Params, per: str) -> dict[str, int]:
    """Return row indices of a field by the names of its parts; a body may be named by its joint. Parts without names are
    numbered."""
    model = params.model
    if per == "body":
        return {n: i for names in (model.bodies, model.joints) for i, n in enumerate(names)}
    if per == "world":
        return {"": 0}
    named: dict[str, Iterable[str]] = {
        "shape": model.shapes.names,
        "site": model.sites,
        "actuator": model.actuators,
        "equality": [e.name for e in model.equalities],
        "tendon": [t.name for t in model.tendons],
    }
    count = len(params[next(name for name, about in FIELDS.items() if about[0] == per)])
    return {n: i for i, n in enumerate(named.get(per, map(str, range(count))))}


def _natural(field: str) -> Bounds:
    return (0.0, 1.0) if field == "restitution" else (0.0 if field in POSITIVE else -math.inf, math.inf)


def _setter(field: str, entry: tuple[int, ...]) -> Callable[[Params, float], Params]:
    def put(params: Params, x: float) -> Params:
        array = np.array(params[field])
        array[entry] = x
        return params.replace(unchecked=True, **{field: array})

    return put


def _bounds_of(names: list[str], bounds: Mapping[str, Bounds], unused: set[str]) -> Bounds | None:
    """Return the bounds given for the first of these names that has some."""
    unused -= set(names)
    given = next((bounds[n] for n in names if n in bounds), None)
    return tuple(given) if isinstance(given, list | tuple | np.ndarray) and np.ndim(given) else given  # type: ignore[return-value]


def _checked_bounds(name: str, x0: float, bounds: Any) -> Bounds:
    try:
        low, high = (float(x) for x in bounds if is_number(x))
    except (TypeError, ValueError):
        raise InputError(f"bounds of '{name}' are two numbers (lowest, highest), not {bounds!r}") from None
    if not low < high:
        raise InputError(f"bounds of '{name}' are ({low:g}, {high:g}): the lowest must be below the highest")
    if not low <= x0 <= high:
        raise InputError(f"'{name}' starts at {x0:g}, outside its bounds ({low:g}, {high:g}): move one of them")
    return low, high
