"""Params: all real parameters of the physics, in one flat array with named views.

One set for the whole batch has shape (n,), one set per batch element (batch, n); a gradient is of the same type. Params
are read-only: `params.replace(mass=...)` makes a changed copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..deprecation import deprecated, translate
from ..errors import InputError, near

if TYPE_CHECKING:
    from .model import Model

# name: (type of part, shape of one entry, unit and meaning)
FIELDS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "gravity": ("world", (3,), "m/s^2, acceleration of free fall, world axes"),
    "mass": ("body", (), "kg"),
    "com": ("body", (3,), "m, center of mass in the body frame"),
    "inertia": ("body", (6,), "kg m^2, xx yy zz xy xz yz about the center of mass, body axes"),
    "position": (
        "body",
        (3,),
        "m, body frame in the parent body's frame at q = 0; of a free joint: rest position of its spring",
    ),
    "rotation": (
        "body",
        (4,),
        "unit quaternion w x y z, body axes in the parent body's axes at q = 0; of a free joint: rest rotation of its spring",
    ),
    "anchor": ("body", (3,), "m, a point on the joint's axis, in the body frame"),
    "axis": ("body", (3,), "unit vector, axis of a revolute or prismatic joint, in the body frame"),
    "pitch": ("body", (), "m/rad, shift along the axis per angle of a screw joint"),
    "damping": ("body", (), "N m s/rad or N s/m, on each velocity of the joint that moves the body"),
    "armature": ("body", (), "kg m^2 or kg, added to the diagonal of the mass matrix for that joint"),
    "stiffness": ("body", (), "N m/rad or N/m, spring stiffness of a joint; both for a free one"),
    "spring_reference": ("body", (), "rad or m, rest position of the spring of a revolute or prismatic joint"),
    "stiffness_curve": (
        "body",
        (2,),
        "N m/rad^2 and N m/rad^3, or N/m^2 and N/m^3: coefficients of x^2 and x^3 in the spring force",
    ),
    "damping_curve": (
        "body",
        (2,),
        "N m s^2/rad^2 and N m s^3/rad^3, or with m: coefficients of v abs(v) and v^3 in the damping force",
    ),
    "limit": (
        "body",
        (2,),
        "rad or m, lowest and highest position of a joint; of a ball joint: 0 and its largest angle",
    ),
    "limit_margin": ("body", (), "rad or m, distance before a limit at which its row becomes active"),
    "limit_solref": ("body", (2,), "s and 1, time constant and damping ratio of a limit (below zero: 1/s^2, 1/s)"),
    "limit_solimp": (
        "body",
        (5,),
        "impedance of a limit: at the limit, beyond the width, width (rad or m), midpoint, power",
    ),
    "effort_limit": ("body", (2,), "N m or N, lowest and highest total actuator force on a joint"),
    "velocity_limit": ("body", (), "rad/s or m/s, for controllers to read; nothing enforces it"),
    "dry_friction": ("body", (), "N m or N, largest force of dry friction on each velocity of a joint"),
    "dry_solref": ("body", (2,), "s and 1, time constant and damping ratio of dry friction"),
    "dry_solimp": ("body", (5,), "impedance of dry friction, of which the first number is used"),
    "gravity_compensation": ("body", (), "fraction of the weight of a body that is compensated"),
    "fluid_box": ("body", (3,), "m, edges of the equivalent box in the fluid, about the center of mass"),
    "fluid_rotation": ("body", (4,), "unit quaternion w x y z, axes of that box in the body's"),
    "body_invweight0": (
        "body",
        (2,),
        "1/kg and 1/(kg m^2), translational and rotational inverse weight of a body in the reference pose",
    ),
    "dof_invweight0": ("dof", (), "1/kg or 1/(kg m^2), inverse weight of a degree of freedom in the reference pose"),
    "shape_position": ("shape", (3,), "m, in the body frame"),
    "shape_rotation": ("shape", (4,), "unit quaternion w x y z, in the body frame"),
    "shape_size": (
        "shape",
        (3,),
        "m, sphere: radius; capsule, cylinder: radius, half length; box, ellipsoid: half edges, half axes; height field: half "
        "extents along x and y, depth of its base; plane: half extents for rangefinders",
    ),
    "friction": ("shape", (), "coefficient of sliding friction; a pair uses the larger of its two"),
    "torsional_friction": ("shape", (), "m, coefficient of friction against rotation about the normal"),
    "rolling_friction": ("shape", (), "m, coefficient of friction against rolling"),
    "restitution": ("shape", (), "coefficient of restitution, 0 to 1; a pair uses the larger of its two"),
    "solref": ("shape", (2,), "s and 1, time constant and damping ratio of contact (below zero: 1/s^2, 1/s)"),
    "solimp": ("shape", (5,), "impedance of contact: at the surface, beyond the width, width (m), midpoint, power"),
    "solmix": ("shape", (), "mixing weight of this shape for solref and solimp of a pair"),
    "margin": ("shape", (), "m, distance from its surface at which a contact becomes active; those of a pair add up"),
    "adhesion": (
        "shape",
        (),
        "N, pull at which a contact of the shape breaks; those of a pair add up, or that of higher priority is used",
    ),
    "surface_velocity": (
        "shape",
        (6,),
        "m/s and rad/s, surface velocity at contacts, and its angular velocity about the shape's origin",
    ),
    "pair_friction": ("pair", (5,), "two of sliding, torsional (m), two of rolling (m), of an explicit pair"),
    "pair_solref": ("pair", (2,), "as solref, of an explicit pair"),
    "pair_solref_friction": ("pair", (2,), "the same in directions of friction (elliptic cone); zero: as pair_solref"),
    "pair_solimp": ("pair", (5,), "as solimp, of an explicit pair"),
    "pair_margin": ("pair", (), "m, as margin, of an explicit pair"),
    "pair_adhesion": ("pair", (), "N, as adhesion, of an explicit pair"),
    "equality_anchor": ("equality", (2, 3), "m, anchor on each of two bodies, in its frame"),
    "equality_rotation": (
        "equality",
        (2, 4),
        "unit quaternions w x y z, the axes on each of two bodies that are aligned (weld)",
    ),
    "equality_torque_scale": ("equality", (), "m, weight of rotation relative to translation (weld)"),
    "equality_polynomial": ("equality", (5,), "q of the first joint (rad or m) as a polynomial of that of the second"),
    "equality_solref": ("equality", (2,), "s and 1, time constant and damping ratio (below zero: 1/s^2, 1/s)"),
    "equality_solimp": (
        "equality",
        (5,),
        "impedance: at no error, beyond the width, width (rad or m), midpoint, power",
    ),
    "tendon_stiffness": ("tendon", (), "N/m or N m/rad, spring stiffness of a tendon"),
    "tendon_damping": ("tendon", (), "N s/m or N m s/rad, damping of a tendon"),
    "tendon_stiffness_curve": (
        "tendon",
        (2,),
        "N/m^2 and N/m^3, or with rad: coefficients of x^2 and x^3 in the spring force",
    ),
    "tendon_damping_curve": (
        "tendon",
        (2,),
        "N s^2/m^2 and N s^3/m^3, or with rad: coefficients of v abs(v) and v^3 in the damping force",
    ),
    "tendon_rest": ("tendon", (2,), "m or rad, interval of lengths without spring force"),
    "tendon_limit": ("tendon", (2,), "m or rad, shortest and longest length"),
    "tendon_limit_margin": ("tendon", (), "m or rad, how far before a limit its row begins to act"),
    "tendon_limit_solref": ("tendon", (2,), "as limit_solref, of a tendon"),
    "tendon_limit_solimp": ("tendon", (5,), "as limit_solimp, of a tendon"),
    "tendon_dry_friction": ("tendon", (), "N or N m, largest force of dry friction along a tendon"),
    "tendon_dry_solref": ("tendon", (2,), "as dry_solref, of a tendon"),
    "tendon_dry_solimp": ("tendon", (5,), "as dry_solimp, of a tendon"),
    "tendon_invweight0": ("tendon", (), "inverse weight of a tendon in the reference pose"),
    "piece_scale": ("piece", (), "factor of a joint position, or of the length of a straight segment, in a tendon"),
    "piece_radius": ("piece", (), "m, radius of the sphere or cylinder that a segment of a tendon wraps around"),
    "vertex": ("vertex", (3,), "m, point of a convex point set, in the shape's frame"),
    "height": ("height", (), "m, heights of a height field, row by row along y, in the shape's frame"),
    "site_position": ("site", (3,), "m, in the body frame"),
    "site_rotation": ("site", (4,), "unit quaternion w x y z, in the body frame"),
    "gear": ("actuator", (), "joint torque per unit of actuator force; actuator length = gear * joint position"),
    "gear_axes": (
        "actuator",
        (6,),
        "force and torque per unit of actuator force, of one on a ball or free joint or a site; a ball has the first three",
    ),
    "crank_length": ("actuator", (), "m, rod of one on a slider-crank"),
    "gain": ("actuator", (), "actuator force per unit of control (servos: per unit of error; servo motors: 1/s)"),
    "gain_slope": ("actuator", (2,), "derivatives of the gain with respect to length and velocity"),
    "bias": ("actuator", (3,), "actuator force = ... + bias . (1, length, velocity)"),
    "control_range": ("actuator", (2,), "lowest and highest control"),
    "force_range": ("actuator", (2,), "lowest and highest actuator force"),
    "max_velocity": ("actuator", (), "rad/s or m/s, speed limit of a servo or servo motor"),
    "activation_time": (
        "activation",
        (3,),
        "s, time constant of a filter; of a muscle those of rise and fall, and the width of control over which they change",
    ),
    "activation_range": ("activation", (2,), "lowest and highest activation"),
    "muscle_gain": (
        "muscle",
        (8,),
        "of active force: normalized lengths at the ends of its range, N, shortest and longest normalized length, 1/s fastest "
        "shortening, passive force, force at fastest lengthening",
    ),
    "muscle_bias": ("muscle", (8,), "of passive force, likewise, without shortest length and speeds"),
    "muscle_length_range": ("muscle", (2,), "m or rad, ends of the range of its length"),
    "magnetic": ("world", (3,), "magnetic flux for magnetometers, world axes"),
    "fluid_coefficients": (
        "wet",
        (5,),
        "of a shape treated as an ellipsoid: blunt, slender and angular drag, lift by circulation and by spin",
    ),
    "virtual_mass": ("wet", (3,), "m^3, volume of fluid that moves with it, in its axes"),
    "virtual_inertia": ("wet", (3,), "m^5, moments of that volume"),
    "density": ("world", (), "kg/m^3, of the fluid around bodies"),
    "viscosity": ("world", (), "Pa s, of that fluid"),
    "wind": ("world", (3,), "m/s, velocity of that fluid, world axes"),
}

# deprecated names, for one version
RENAMED = {
    "body_weight": "body_invweight0",
    "dof_weight": "dof_invweight0",
    "tendon_weight": "tendon_invweight0",
}


def current_name(name: str) -> str:
    """Return the name of a field, with a warning for a deprecated one."""
    if name in RENAMED:
        deprecated(f"params.{name}", f"params.{RENAMED[name]}")
    return RENAMED.get(name, name)


class PartParams:
    """Parameters of one part of a model, by attribute; each with the batch axis of its Params, if there is one."""

    def __init__(self, params: Params, per: str, row: int):
        self.__dict__.update(_params=params, _per=per, _row=row)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"parameters of a {self._per} cannot be set: params.replace({name}={{name: value}}) makes others"
        )

    def __dir__(self) -> list[str]:
        return [name for name, (per, _, _) in FIELDS.items() if per == self._per]

    def __getattr__(self, name: str) -> Any:
        name = current_name(name)
        if name.startswith("_") or name not in dir(self):
            raise AttributeError(f"a {self._per} has no parameter '{name}'; {near(name, dir(self), 99)}")
        row: Any = (..., self._row, *(slice(None) for _ in FIELDS[name][1]))
        return self._params[name][row]

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {getattr(self, name)}" for name in dir(self))


class Params(Mapping[str, np.ndarray]):
    """All physical parameters of a model. `params.mass` is an array (bodies,), or (batch, bodies) for one set per batch
    element."""

    __slots__ = ("__weakref__", "_features", "checked", "flat", "model")
    _features: frozenset[str] | None
    checked: bool
    flat: Any
    model: Model

    def __init__(self, model: Model, flat: np.ndarray, *, checked: bool = False):
        """Wrap a flat array of all parameters.

        Args:
            model: Model.
            flat: All values, (n,) or (batch, n).
            checked: True if a simulation refuses unphysical values such as negative masses and reversed limits.
        """
        if not hasattr(model, "param_size"):
            raise InputError(f"model is a Model, not {type(model).__name__}")
        flat = np.array(_numbers(f"params of '{model.name}'", flat))
        if flat.ndim not in (1, 2) or flat.shape[-1] != model.param_size:
            raise InputError(
                f"params of '{model.name}' are ({model.param_size},) or (batch, {model.param_size}), not {flat.shape}"
            )
        flat.setflags(write=False)
        self._set(model, flat, checked)

    @classmethod
    def of(cls, model: Model, flat: Any) -> Params:
        """Wrap an array of any library, unchecked; used by JAX to flatten and restore."""
        params = object.__new__(cls)
        params._set(model, flat, False)
        return params

    def _set(self, model: Model, flat: Any, checked: bool, features: frozenset[str] | None = None) -> None:
        """Set all slots."""
        for name, value in (("model", model), ("flat", flat), ("checked", checked), ("_features", features)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise an error: parameters are replaced, never changed in place."""
        if name in FIELDS:
            raise AttributeError(
                f"params cannot be changed in place: use replace, params.replace({name}=...), which is a copy"
            )
        known = tuple(FIELDS)
        raise AttributeError(
            f"params have no '{name}' to set, and are replaced: params.replace(mass=...); {near(name, known, 99)}"
        )

    def __setitem__(self, name: str, value: Any) -> None:
        self.__setattr__(name, value)

    @property
    def batch(self) -> int | None:
        """Number of sets, or None for one set shared by the batch."""
        return None if self.flat.ndim == 1 else self.flat.shape[0]

    def __getitem__(self, name: str) -> np.ndarray:
        start, shape = self._slot(current_name(name))
        size = prod(shape)
        return self.flat[..., start : start + size].reshape(self.flat.shape[:-1] + shape)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in FIELDS or name in RENAMED:
            return self[name]
        raise AttributeError(f"params have no '{name}'; {near(name, tuple(FIELDS), len(FIELDS))}")

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getstate__(self) -> tuple[Model, np.ndarray, bool]:
        return self.model, np.array(self.flat), self.checked

    def __setstate__(self, state: tuple[Model, np.ndarray, bool]) -> None:
        model, flat, checked = state
        flat.setflags(write=False)
        self._set(model, flat, checked)

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)

    @property
    def features(self) -> frozenset[str]:
        """Properties that kernels are compiled for; cached: "damping" of a joint, "powers" of impedances that are not 2."""
        if self._features is None:
            powers = [self[f"{name}solimp"][..., 4] for name in ("", "pair_", "limit_", "equality_", "tendon_limit_")]
            found = {"powers"} if any((x != 2.0).any() for x in powers) else set()
            found |= {"damping"} if self.damping.any() or self.damping_curve.any() else set()
            object.__setattr__(self, "_features", frozenset(found))
        assert self._features is not None
        return self._features

    # -- by name ---------------------------------------------------------------------------------------------------------
    def body(self, name: str) -> PartParams:
        """Return the parameters of one body: `params.body("hand").mass`."""
        return PartParams(self, "body", self.model.body(name))

    def joint(self, name: str) -> PartParams:
        """Return the parameters of the body that a joint moves, including the joint's: `params.joint("knee").damping`."""
        return PartParams(self, "body", self.model.joint(name))

    def shape(self, name: str) -> PartParams:
        """Return the parameters of one shape: `params.shape("foot").friction`."""
        return PartParams(self, "shape", self.model.shape(name))

    def site(self, name: str) -> PartParams:
        """Return the parameters of one site."""
        return PartParams(self, "site", self.model.site(name))

    def actuator(self, name: str) -> PartParams:
        """Return the parameters of one actuator."""
        return PartParams(self, "actuator", self.model.actuator(name))

    def tendon(self, name: str) -> PartParams:
        """Return the parameters of one tendon."""
        return PartParams(self, "tendon", self.model.tendon(name))

    def equality(self, name: str) -> PartParams:
        """Return the parameters of one equality."""
        return PartParams(self, "equality", self.model.equality(name))

    def _row(self, field: str, name: str) -> int:
        """Return the row of a field for a name; for fields of joints, joint names have priority over body names."""
        per, m = FIELDS[field][0], self.model
        if per == "body":
            of_joint = name in m.joints and (field in OF_JOINTS or name not in m.bodies)
            return m.joint(name) if of_joint else m.body(name)
        if per not in NAMED:
            raise InputError(f"params.{field} has no names: pass the whole array")
        return int(getattr(m, per)(name))

    def replace(self, *, unchecked: bool = False, **fields: Any) -> Params:
        """Return a copy with some fields changed; a field with a leading batch axis makes one set per batch element.

        A dictionary by name changes some rows of a field: `mass={"hand": 0.8}`. Unphysical values (a negative mass,
        reversed limits, a restitution above 1) are refused when simulated; unchecked=True allows them, for an optimizer
        or a finite difference that exceeds a bound slightly.
        """
        if unchecked is not True and unchecked is not False:
            raise InputError(f"unchecked is True or False, not {type(unchecked).__name__}")
        fields = translate(fields, RENAMED, "params.replace")
        fields = {
            k: self._with_rows(k, v) if isinstance(v, Mapping) else _numbers(f"params.{k}", v)
            for k, v in fields.items()
        }
        batches = {v.shape[0] for k, v in fields.items() if v.ndim > len(self._slot(k)[1])}
        if self.batch is not None:
            batches.add(self.batch)
        if len(batches) > 1:
            raise InputError(f"fields with different batch sizes: {sorted(batches)}")
        flat = np.array(self.flat)
        if batches and self.batch is None:
            flat = np.repeat(flat[None], batches.pop(), axis=0)
        for name, value in fields.items():
            start, shape = self._slot(name)
            if value.shape not in (shape, flat.shape[:-1] + shape):
                raise InputError(f"params.{name} has shape {shape} (one set), not {value.shape}")
            lead = flat.shape[:-1]
            size = int(np.prod(shape))
            flat[..., start : start + size] = np.broadcast_to(value, lead + shape).reshape((*lead, size))
        return Params(self.model, flat, checked=not unchecked)

    def reweighted(self) -> Params:
        """Return a copy with the inverse weights of constraints (`body_invweight0`, `dof_invweight0`, `tendon_invweight0`)
        recomputed.

        They follow from masses, inertias, placements, axes and armatures, as in building or loading. `replace` leaves
        them unchanged, as MuJoCo does with changed masses until `mj_setConst`.
        """
        from ..simulate.constraint_weights import reweighted

        return reweighted(self)

    def reweighted_vjp(self, bar: Params) -> Params:
        """Return the gradient with respect to these parameters, given that with respect to `reweighted()`.

        The gradient of inverse weights is propagated to the parameters that they are computed from.
        """
        from ..simulate.constraint_weights import reweighted_vjp

        return reweighted_vjp(self, bar)

    def _with_rows(self, field: str, rows: Mapping[str, Any]) -> np.ndarray:
        """Return a field with the rows of some names changed, each (entry) or (batch, entry)."""
        self._slot(field)
        shape, new = FIELDS[field][1], np.array(self[field])
        for name, value in rows.items():
            try:
                k = self._row(field, name)
            except InputError as error:
                raise InputError(f"params.{field}: {error}") from None
            x = _numbers(f"params.{field} of '{name}'", value)
            if x.shape[x.ndim - len(shape) :] != shape or x.ndim > len(shape) + 1:
                raise InputError(f"params.{field} of '{name}' has shape {shape}, with a batch (B, ...), not {x.shape}")
            if x.ndim > len(shape) and new.ndim == len(shape) + 1:
                new = np.repeat(new[None], len(x), 0)
            if x.ndim > len(shape) and len(x) != len(new):
                raise InputError(f"params.{field} of '{name}' is of {len(x)} robots, and others are of {len(new)}")
            new[(..., k) + (slice(None),) * len(shape)] = x
        return new

    def _slot(self, name: str) -> tuple[int, tuple[int, ...]]:
        try:
            return self.model.param_slots[name]
        except KeyError:
            raise InputError(f"unknown parameter '{name}'; {near(name, tuple(FIELDS), len(FIELDS))}") from None

    def __repr__(self) -> str:
        sets = "shared" if self.batch is None else f"{self.batch} sets"
        return f"Params({self.model.name!r}, {self.model.param_size} numbers, {sets})"


def _numbers(name: str, value: Any) -> np.ndarray:
    """Return an array of f64, or raise an error that names the argument."""
    if np.ma.isMaskedArray(value):
        raise InputError(f"{name} is a masked array: fill its gaps first, as by .filled(0.0)")
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be an array of real numbers, not {type(value).__name__}") from None


NAMED = ("shape", "site", "actuator", "tendon", "equality")  # types of parts with names
# fields of a body that belong to its joint
OF_JOINTS = (
    *(
        "axis",
        "anchor",
        "pitch",
        "damping",
        "armature",
        "stiffness",
        "spring_reference",
        "stiffness_curve",
        "damping_curve",
        "dry_friction",
        "dry_solref",
        "dry_solimp",
    ),
    *("limit", "limit_margin", "limit_solref", "limit_solimp", "effort_limit", "velocity_limit"),
)
# fields that cannot be negative
POSITIVE = (
    *("mass", "damping", "armature", "stiffness", "dry_friction", "friction", "torsional_friction", "rolling_friction"),
    *(
        "shape_size",
        "max_velocity",
        "velocity_limit",
        "body_invweight0",
        "dof_invweight0",
        "pair_friction",
        "equality_torque_scale",
        "fluid_box",
    ),
    *("tendon_stiffness", "tendon_damping", "tendon_dry_friction", "tendon_invweight0", "adhesion", "pair_adhesion"),
    "piece_radius",
)
# features that a model is built with or without, and the params that indicate them
EXTRAS = {
    "compensation": ("gravity_compensation",),
    "fluid": ("density", "viscosity"),
    "slope": ("gain_slope",),
    "spring": ("stiffness_curve", "damping_curve"),
    "curve": ("tendon_stiffness_curve", "tendon_damping_curve"),
    "surface": ("surface_velocity",),
    "sticky": ("adhesion", "pair_adhesion"),
}
DIRECTIONS = ("axis", "rotation", "site_rotation", "shape_rotation", "equality_rotation", "fluid_rotation")
RANGES = (
    "limit",
    "effort_limit",
    "control_range",
    "force_range",
    "tendon_limit",
    "activation_range",
    "tendon_rest",
)  # lowest, highest
SOLREFS = tuple(name for name in FIELDS if "solref" in name)
MAY_BE_INFINITE = (
    *("control_range", "force_range", "max_velocity", "velocity_limit", "limit", "effort_limit", "tendon_limit"),
    "activation_range",
)


def param_slots(counts: dict[str, int]) -> tuple[dict[str, tuple[int, tuple[int, ...]]], int]:
    """Return the first entry of each field in the flat array, and the length of that array."""
    slots, start = {}, 0
    for name, (per, shape, _) in FIELDS.items():
        full = shape if per == "world" else (counts[per], *shape)
        slots[name] = (start, full)
        start += int(np.prod(full))
    return slots, start
