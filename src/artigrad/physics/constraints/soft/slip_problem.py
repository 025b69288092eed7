"""Kernel arguments of noslip sweeps: friction rows one by one, their Jacobian, and the tape of the sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiler import INT, INT_WORK, INTS, SHARED, WORK, ArgumentKind, Layout, Table
from ....model.model import CAPSULE, PLANE, Model
from ....model.options import Options
from ...collision.candidates import candidates
from ...spatial import Motion
from .soft_problem import soft_features

# One row per direction of friction, after the empty ones: force, coefficient, bound of the force (of a cone: the normal
# force),
# 1/(J M^-1 J^T), reference acceleration; in backward passes the cotangents of force, coefficient, bound and y = J a -
# ref.
SLIP = Layout(**dict.fromkeys(("f", "mu", "bound", "inv", "ref", "f_bar", "mu_bar", "bound_bar", "y_bar"), float))
WIDEST = 5  # largest number of friction directions of a contact
FIRST = WIDEST  # first row in use; rows before it are the empty ones of contacts without friction
SCALAR, CONE, WIDE_CONE = range(3)  # kinds of units: a single row, or the rows of a contact in one cone

INTEGERS: dict[str, ArgumentKind] = {
    **dict.fromkeys(("s_rank", "s_backwards", "s_has_friction"), INTS),
    "s_slips": INT,
    "s_limit_gain": SHARED,
}
REALS = (
    *("slip", "slip_J", "slip_W", "slip_J_bar", "slip_A", "slip_tape"),
    *("slip_root", "slip_moved", "sliding", "slip_mu", "stuck", "island", "going", "gain", "gained", "ran"),
)
SCRATCH = (
    "unit_kind",
    "unit_row",
    "unit_tree",
    "point_slip",
    "wrench_slip",
    "slip_count",
    *("found_row", "found_wide", "friction_row", "friction_wide"),
)


def slip_signature() -> dict[str, ArgumentKind]:
    """Return the arguments that noslip sweeps add to a kernel."""
    return INTEGERS | {f"sw_{k}": WORK for k in REALS} | {f"sw_{k}": INT_WORK for k in SCRATCH}


def slip_arguments(model: Model, integers: dict[str, Any], options: Options, dtype: np.dtype) -> dict[str, Any]:
    """Return the arguments and scratch sizes of the sweeps. Rows are swept in MuJoCo's order."""
    points, wrenches = integers["s_capacity"], integers["s_wide_capacity"]
    slips = FIRST + 2 * points + WIDEST * wrenches + integers["s_drys"] + integers["s_multi_dofs"]
    nv, trees = model.nv, model.links.trees + 1
    sizes = {"slip": slips * SLIP.size, "slip_A": slips * WIDEST, "slip_tape": slips * options.soft.noslip}
    sizes |= dict.fromkeys(("slip_J", "slip_W", "slip_J_bar"), slips * nv)
    sizes |= dict.fromkeys(("slip_root", "sliding", "slip_mu", "stuck"), nv)
    sizes |= {"slip_moved": len(model.links.parent) * WIDEST * Motion.size}
    sizes |= dict.fromkeys(("island", "going", "gain", "gained", "ran"), trees)
    sizes |= dict.fromkeys(("unit_kind", "unit_row", "unit_tree"), slips)
    sizes |= {"point_slip": integers["s_points"], "wrench_slip": integers["s_wrenches"], "slip_count": 3}
    sizes |= dict.fromkeys(("found_row", "found_wide", "friction_row", "friction_wide"), points + wrenches)
    return {
        "s_rank": np.array([*np.argsort(_order(model)), 0], np.int32),
        "s_backwards": np.array([*_backwards(model), 0], np.int32),
        "s_has_friction": np.array([*_has_friction(model), 0], np.int32),
        "s_slips": slips,
        "s_limit_gain": np.array([options.soft.noslip_tolerance], dtype),
        **{f"sw_{k}": max(n, 1) for k, n in sizes.items()},
    }


def _order(model: Model) -> list[int]:
    """Return the pairs of shapes in MuJoCo's order: by bodies, explicit pairs first, by shapes."""
    c, shapes = candidates(model), model.shapes
    explicit = {frozenset((a, b)) for a, b, _ in shapes.included}

    def key(k: int) -> tuple[Any, ...]:
        a, b = sorted((int(c.a[k]), int(c.b[k])), key=lambda x: (shapes.body[x], x))
        return shapes.body[a], shapes.body[b], frozenset((a, b)) not in explicit, a, b

    return sorted(range(len(c.a) - 1), key=key)


def _backwards(model: Model) -> list[bool]:
    """Return True for pairs whose points MuJoCo orders the other way round."""
    c, kind = candidates(model), model.shapes.kind
    return [{kind[a], kind[b]} == {PLANE, CAPSULE} for a, b in zip(c.a[:-1], c.b[:-1], strict=True)]


def _has_friction(model: Model) -> list[bool]:
    """Return True for pairs with directions of friction."""
    c = candidates(model)
    return [model.shapes.pair_condim(int(a), int(b)) > 1 for a, b in zip(c.a[:-1], c.b[:-1], strict=True)]


def take_noslip(arguments: dict[str, Any]) -> dict[str, Any]:
    """Select the arguments of the sweeps from a kernel's arguments."""
    found = {k[2:]: arguments.pop(k) for k in INTEGERS}
    found |= {k: arguments.pop(f"sw_{k}") for k in (*REALS, *SCRATCH)}
    found["slip"] = Table(found["slip"].memory, SLIP)
    return found


def has_noslip_friction(model: Model) -> bool:
    """Return True if a model has friction that the sweeps can correct."""
    return bool(soft_features(model) & {"contact", "patch", "dry", "free_dry", "tendon_dry"})
