"""Validation of Params before a simulation: invalid numbers, unphysical values, and features a model was built without."""

from __future__ import annotations

from math import prod

import numpy as np

from ..errors import InputError
from .model import DIRECT, SHAPES
from .params import DIRECTIONS, EXTRAS, FIELDS, MAY_BE_INFINITE, POSITIVE, RANGES, SOLREFS, Params

SIDES = {
    "sphere": 1,
    "capsule": 2,
    "cylinder": 2,
    "box": 3,
    "ellipsoid": 3,
    "height_field": 3,
}  # number of sizes used
THROUGH = " (replace(..., unchecked=True) lets an optimizer or a difference through)"


def check_params(params: Params) -> None:
    """Refuse invalid values: NaN, infinity, axes without direction; and unphysical values, unless `unchecked`."""
    _check_numbers(params)
    for name in DIRECTIONS:
        x = params[name]
        _refuse(name, x, ~(np.abs(x).max(-1, initial=0.0) > 1e-12), "it needs a direction")
    if params.checked:
        check_signs(params)


def _check_numbers(params: Params) -> None:
    """Check all values at once; if one is invalid, name it."""
    bad = ~np.isfinite(params.flat)
    for name in MAY_BE_INFINITE:
        start, shape = params.model.param_slots[name]
        own = slice(start, start + prod(shape))
        bad[..., own] = np.isnan(params.flat[..., own])
    if bad.any():
        for name in FIELDS:
            x = params[name]
            wrong = np.isnan(x) if name in MAY_BE_INFINITE else ~np.isfinite(x)
            _refuse(name, x, wrong, "it must be a number" if name in MAY_BE_INFINITE else "it must be finite")


def check_signs(params: Params, slack: float = 0.0) -> None:
    """Refuse unphysical values, except those that the model came with: a file may drive a joint by negative damping.

    slack: Tolerance, for steps of finite differences.
    """
    for name in (*POSITIVE, *RANGES, "restitution"):
        x = params[name]
        _check_sign(name, x, x != params.model.params[name], slack)
    if not slack:
        _check_inertias(params)
        _check_sizes(params)
        _check_solrefs(params)
        _check_gains(params)


def _check_sign(name: str, x: np.ndarray, new: np.ndarray, slack: float) -> None:
    if name in POSITIVE:
        _refuse(name, x, new & (x < -slack), "it cannot be negative" + THROUGH)
    elif name in RANGES:
        low, high, changed = x[..., 0], x[..., 1], new.any(-1)
        _refuse(name, x, changed & (low > high + slack), "the lowest comes before the highest" + THROUGH)
        _refuse(name, x, changed & ((low == np.inf) | (high == -np.inf)), "the interval is empty" + THROUGH)
    else:
        _refuse(name, x, (x < -slack) | (x > 1 + slack), "it is between 0 and 1" + THROUGH)


def _check_inertias(params: Params) -> None:
    """Refuse negative principal moments, and those larger than the sum of the others, unless the model came with one."""
    x, known = params.inertia, params.model.params.inertia
    new = (x != known).any(-1)
    _refuse("inertia", x, new & ~_resists_all_turns(x), "its principal moments cannot be negative" + THROUGH)
    rule = "no body has a principal moment larger than the sum of the others"
    _refuse("inertia", x, new & ~_of_a_body(x) & _of_a_body(known), rule + THROUGH)


def _of_a_body(x: np.ndarray) -> np.ndarray:
    """Return True where tr(I)/2 - I has no negative principal moment."""
    half = x[..., :3].sum(-1, keepdims=True) / 2
    return _resists_all_turns(np.concatenate([half - x[..., :3], -x[..., 3:]], -1))


def _check_sizes(params: Params) -> None:
    """Refuse shapes and wrapping shapes without size."""
    model = params.model
    x, sides = params.shape_size, [SIDES.get(SHAPES[kind], 0) for kind in model.shapes.kind]
    new = (x != model.params.shape_size) & (np.arange(3) < np.array(sides, int).reshape(-1, 1))
    _refuse("shape_size", x, new & (x <= 0), "lengths of a shape are above zero" + THROUGH)
    wraps = np.array([piece.around >= 0 for tendon in model.tendons for piece in tendon.pieces], bool)
    x = params.piece_radius
    _refuse("piece_radius", x, wraps & (x != model.params.piece_radius) & (x <= 0), "it is above zero" + THROUGH)


def _check_solrefs(params: Params) -> None:
    """Refuse a solref unless both numbers are positive, or none is and they are not both zero."""
    for name in SOLREFS:
        x = params[name]
        new = (x != params.model.params[name]).any(-1)
        bad = (x[..., 0] > 0) != (x[..., 1] > 0)
        if name != "pair_solref_friction":
            bad |= ~x.any(-1)
        rule = "both numbers are above zero (time constant, damping ratio) or none is, and not both zero"
        _refuse(name, x, new & bad, rule + THROUGH)


def _check_gains(params: Params) -> None:
    """Refuse negative gains of servos."""
    x, servo = params.gain, np.array(params.model.actuator_kind, int) != DIRECT
    _refuse("gain", x, servo & (x != params.model.params.gain) & (x < 0), "a servo has no negative gain" + THROUGH)


def _resists_all_turns(x: np.ndarray) -> np.ndarray:
    """Return True where inertias xx, yy, zz, xy, xz, yz have no negative principal moment, by the principal minors."""
    xx, yy, zz, xy, xz, yz = np.moveaxis(x, -1, 0)
    size = np.abs(x).max(-1, initial=0.0)
    slack = 1e-9 * size
    diagonal = np.minimum(np.minimum(xx, yy), zz)
    pairs = np.minimum(np.minimum(xx * yy - xy * xy, xx * zz - xz * xz), yy * zz - yz * yz)
    whole = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
    return (diagonal >= -slack) & (pairs >= -slack * size) & (whole >= -slack * size * size)


def check_structure(params: Params, *, restitution: bool, shared_stops: bool) -> None:
    """Refuse parameters for which the law has no rows, which would be ignored."""
    model = params.model
    if not restitution and (params.restitution > 0).any():
        shape = model.shapes.names[int(np.argwhere(params.restitution > 0)[0][-1])]
        raise InputError(
            f"shape '{shape}' has restitution, which law='soft' does not know: use law='hard', or let it bounce by "
            "solref=(-stiffness, -damping) with restitution=0"
        )
    _check_tendons(params)
    _check_extras(params)
    if params.checked:
        _check_servos(params)
        _check_subtree_masses(params)
    had = {"limit": np.isfinite(model.params.limit).any(-1), "dry_friction": model.params.dry_friction > 0}
    has = {"limit": np.isfinite(params.limit).any(-1), "dry_friction": params.dry_friction > 0}
    if shared_stops:  # one row for both
        had = dict.fromkeys(had, had["limit"] | had["dry_friction"])
    for name in had:
        new = has[name] & ~had[name]
        if new.any():
            joint = model.joints[int(np.argwhere(new)[0][-1])]
            raise InputError(
                f"params give joint '{joint}' a {name.replace('_', ' ')}, and '{model.name}' was built without: build it with "
                "one, large or small, that params then change"
            )


def _check_tendons(params: Params) -> None:
    """Refuse tendon limits and friction that the model was built without."""
    model = params.model
    for name in ("tendon_limit", "tendon_dry_friction"):
        had, has = (
            np.isfinite(p[name]).any(-1) if name == "tendon_limit" else p[name] > 0 for p in (model.params, params)
        )
        if (has & ~had).any():
            tendon = model.tendons[int(np.argwhere(has & ~had)[0][-1])].name
            raise InputError(
                f"params give tendon '{tendon}' a {name[7:].replace('_', ' ')}, and '{model.name}' was built without: build "
                "it with one, large or small, that params then change"
            )


def _check_servos(params: Params) -> None:
    """Refuse a bias or a gain slope of servo motors."""
    for j in params.model.servos:
        name = params.model.actuators[j]
        for key in ("bias", "gain_slope"):
            if params[key][..., j, :].any():
                raise InputError(
                    f"actuator '{name}' is a servo motor, which has no {key}; params.{key} must be zero there"
                )


def _check_subtree_masses(params: Params) -> None:
    """Refuse a joint that moves no mass, and an inertia without mass, unless the model came with it."""
    m, carried = params.model, np.array(params.mass)
    new = (params.mass != m.params.mass) | (params.inertia != m.params.inertia).any(-1)
    _refuse("mass", params.mass, new & (params.mass == 0) & params.inertia.any(-1), "a body with an inertia has a mass")
    for i in reversed(range(m.nb)):
        bare = (carried[..., i] == 0) & (params.armature[..., i] == 0)
        if m.joint_kind(i).nv and bare.any():
            raise InputError(
                f"params leave joint '{m.joints[i]}' without any mass to move: give body '{m.bodies[i]}' or one that it "
                "carries some, or the joint an armature"
            )
        if m.parent[i] >= 0:
            carried[..., m.parent[i]] += carried[..., i]


def _check_extras(params: Params) -> None:
    """Refuse optional forces and force limits that the model was built without."""
    model = params.model
    if model.nu and np.isfinite(params.effort_limit).any() and "effort" not in model.features:
        raise InputError(
            f"params.effort_limit is finite, and '{model.name}' was built without any: build it with one, that params change"
        )
    for what, names in EXTRAS.items():
        given = [name for name in names if params[name].any()]
        if given and what not in model.features:
            raise InputError(
                f"params.{given[0]} is not zero, and '{model.name}' was built without: build it with some, that params change"
            )

    round_ones = [i for i in range(model.nb) if not model.joint_kind(i).axial]
    if params.checked and "spring" not in model.features and params.stiffness[..., round_ones].any():
        i = round_ones[int(np.argwhere(params.stiffness[..., round_ones])[0][-1])]
        raise InputError(
            f"params give joint '{model.joints[i]}' a spring, and '{model.name}' was built without: build it with one, "
            "that params change"
        )


def _refuse(name: str, x: np.ndarray, bad: np.ndarray, rule: str) -> None:
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        raise InputError(f"params.{name}[{', '.join(map(str, where))}] is {x[where]}; {rule}")
