"""Kinks in parameters: values at which gradients are one-sided, such as ends of clamped ranges, and ties in a maximum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.model import POSITION, Model
from ..model.options import Options
from ..model.params import FIELDS, Params
from ..physics.constraints.law import law_of
from ..physics.constraints.soft.impedance import HIGH, LOW
from ..physics.constraints.soft.pair_parameters import LEAST_FRICTION

CLOSE = 1e-9  # relative difference below which two values are equal
RANGES = ("control_range", "force_range", "effort_limit")  # a value is clamped between two numbers
TIED = {"friction": 3, "torsional_friction": 4, "rolling_friction": 6}  # with the smallest condim that uses them


def parameter_kinks(model: Model, options: Options, params: Params) -> dict[str, np.ndarray]:
    """Return masks of the entries that are at a kink, by field.

    Masks have the shape of the field, with its batch axis if it has one. Fields without such an entry are left out.
    """
    least, soft = options.constant_numbers[0], law_of(options).impedances
    values = {name: np.asarray(params[name], float) for name in FIELDS}
    masks = {name: np.zeros(x.shape, bool) for name, x in values.items()}
    for name in RANGES:
        low, high = values[name][..., :1], values[name][..., 1:]
        masks[name] |= np.isfinite(low) & _equal(low, high)
    for name, mask in angular_servo_kinks(model, values).items():
        masks[name] |= mask
    for name, acts in _rows(values).items() if soft else ():
        masks[f"{name}solref"][..., 0] |= acts & _at_least_time(values[f"{name}solref"][..., 0], least)
        masks[f"{name}solimp"] |= acts[..., None] & _at_ends(values[f"{name}solimp"])
    explicit = {frozenset((a, b)) for a, b, _ in model.shapes.included}
    for pair in model.shapes.pairs:
        if frozenset(pair) not in explicit:
            _mark_pair(model, values, pair, masks, least, soft)
    return {name: mask for name, mask in masks.items() if mask.any()}


def angular_servo_kinks(model: Model, values: Any) -> dict[str, np.ndarray]:
    """Return masks of the numbers that make an actuator wrap its error to within half a turn (`physics/dynamics/circle.py`).

    An actuator on a ball joint or between two sites wraps if its bias on the length is exactly -gain and the gear has no
    translational part. Where the error is beyond half a turn the force jumps with the first change of these numbers, and
    the gradient is that of an actuator that wraps.
    """
    names = ("gain", "bias", "gear_axes", "gain_slope")
    gain, bias, gear, slope = (np.asarray(values[name], float) for name in names)
    masks = {name: np.zeros(x.shape, bool) for name, x in zip(names[:3], (gain, bias, gear), strict=True)}
    for j, on in enumerate(model.transmissions):
        ball = on.kind.startswith("joint") and model.joint_kind(on.a).nv == 3
        if not ball and (on.kind != "site" or on.b < 0):
            continue
        servo = model.actuator_kind[j] == POSITION  # its bias on the length is -gain already
        wraps = ((0.0 if servo else gain[..., j]) + bias[..., j, 1] == 0.0) & (slope[..., j, :] == 0.0).all(-1)
        if not ball:
            wraps = wraps & (gear[..., j, :3] == 0.0).all(-1) & (gear[..., j, 3:] != 0.0).any(-1)
            masks["gear_axes"][..., j, :3] = wraps[..., None]
        masks["gain"][..., j], masks["bias"][..., j, 1] = wraps & (not servo), wraps
    return masks


def _rows(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return masks of constraint rows in use, by prefix of their solref and solimp fields."""
    pair, equality = (np.ones(values[f"{name}_solref"].shape[:-1], bool) for name in ("pair", "equality"))
    own: dict[str, np.ndarray] = {"pair_": pair, "equality_": equality}
    for owner in ("", "tendon_"):
        own[f"{owner}limit_"] = np.isfinite(values[f"{owner}limit"]).any(-1)
        own[f"{owner}dry_"] = values[f"{owner}dry_friction"] > 0.0
    return own


def _equal(x: Any, y: Any) -> Any:
    return np.abs(x - y) <= CLOSE * np.maximum(np.abs(x), np.abs(y))


def _at_least_time(t: Any, least: float) -> Any:
    """Return True where a time constant equals its lower bound; values below zero are stiffnesses."""
    return (t > 0.0) & (least > 0.0) & _equal(t, least)


def _at_ends(imp: np.ndarray) -> np.ndarray:
    """Return a mask of the entries of (d0, d1, width, midpoint, power) that are at an end of their range."""
    d = _equal(imp, LOW) | _equal(imp, HIGH)
    return np.stack([d[..., 0], d[..., 1], imp[..., 2] == 0.0, d[..., 3], _equal(imp[..., 4], 1.0)], -1)


def _mark_pair(
    model: Model, values: dict[str, np.ndarray], pair: tuple[int, int], masks: Any, least: float, soft: bool
) -> None:
    """Mark parameters that two shapes combine, or those of the shape with higher priority."""
    rank = [model.shapes.priority[k] for k in pair]
    a, b = [k for k, own in zip(pair, rank, strict=True) if own == max(rank)] * (1 + (rank[0] != rank[1]))
    for name, needed in TIED.items():
        x, y = values[name][..., a], values[name][..., b]
        at_least = soft & _equal(np.maximum(x, y), LEAST_FRICTION)
        _mark(masks[name], (a, b), (model.shapes.pair_condim(*pair) >= needed) & (((a != b) & _equal(x, y)) | at_least))
    if not soft:
        e = values["restitution"]
        _mark(masks["restitution"], pair, _equal(e[..., pair[0]], e[..., pair[1]]))
        return
    share = _share(values["solmix"][..., a], values["solmix"][..., b])
    t, other = values["solref"][..., a, 0], values["solref"][..., b, 0]
    mixed = _at_least_time(share * t + (1.0 - share) * other, least)
    _mark(masks["solref"][..., 0], (a, b), np.where((t > 0.0) & (other > 0.0), mixed, (a != b) & _equal(t, other)))
    imp, share = values["solimp"], share[..., None]
    ends = _at_ends(share * imp[..., a, :] + (1.0 - share) * imp[..., b, :])
    for k in (a, b):
        masks["solimp"][..., k, :] |= ends


def _mark(mask: np.ndarray, shapes: tuple[int, int], kink: Any) -> None:
    for k in shapes:
        mask[..., k] |= kink


def _share(a: Any, b: Any) -> Any:
    """Return the weight of the first of two shapes in a mixture by solmix."""
    total = a + b
    return np.where(total > 0.0, a / np.where(total > 0.0, total, 1.0), 0.5)
