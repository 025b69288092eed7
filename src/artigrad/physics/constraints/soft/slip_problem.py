"""What sweeps against creep add to a kernel: the rows of friction one by one, their Jacobian, and what the sweeps leave."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....compiler import INT, INT_WORK, INTS, SHARED, WORK, ArgumentKind, Layout, Table
from ....model.model import CAPSULE, PLANE, Model
from ....model.options import Options
from ...collision.candidates import candidates
from ...spatial import Motion
from .soft_problem import soft_features

# One row per direction of friction, behind those that stand for none: its force, its coefficient, how large the force
# may be (of a cone: what presses), 1/(J M^-1 J^T), the acceleration it wants; and backwards the cotangents of force,
# coefficient, bound and y = J a - ref.
SLIP = Layout(**dict.fromkeys(("f", "mu", "bound", "inv", "ref", "f_bar", "mu_bar", "bound_bar", "y_bar"), float))
WIDEST = 5  # directions of friction of one contact
FIRST = WIDEST  # row: those before it are the empty ones of contacts without friction
SCALAR, CONE, WIDE_CONE = range(3)  # kinds of units: a row by itself, or those of a contact under one cone

INTEGERS: dict[str, ArgumentKind] = {
    **dict.fromkeys(("s_rank", "s_backwards", "s_rubs"), INTS),
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
    *("found_row", "found_wide", "rub_row", "rub_wide"),
)


def slip_signature() -> dict[str, ArgumentKind]:
    return INTEGERS | {f"sw_{k}": WORK for k in REALS} | {f"sw_{k}": INT_WORK for k in SCRATCH}


def slip_arguments(model: Model, integers: dict[str, Any], options: Options, dtype: np.dtype) -> dict[str, Any]:
    """The arguments of these; rows are swept in MuJoCo's order."""
    points, wrenches = integers["s_capacity"], integers["s_wide_capacity"]
    slips = FIRST + 2 * points + WIDEST * wrenches + integers["s_drys"] + integers["s_combos"]
    nv, trees = model.nv, model.links.trees + 1
    sizes = {"slip": slips * SLIP.size, "slip_A": slips * WIDEST, "slip_tape": slips * options.noslip}
    sizes |= dict.fromkeys(("slip_J", "slip_W", "slip_J_bar"), slips * nv)
    sizes |= dict.fromkeys(("slip_root", "sliding", "slip_mu", "stuck"), nv)
    sizes |= {"slip_moved": len(model.links.parent) * WIDEST * Motion.size}
    sizes |= dict.fromkeys(("island", "going", "gain", "gained", "ran"), trees)
    sizes |= dict.fromkeys(("unit_kind", "unit_row", "unit_tree"), slips)
    sizes |= {"point_slip": integers["s_points"], "wrench_slip": integers["s_wrenches"], "slip_count": 3}
    sizes |= dict.fromkeys(("found_row", "found_wide", "rub_row", "rub_wide"), points + wrenches)
    return {
        "s_rank": np.array([*np.argsort(_order(model)), 0], np.int32),
        "s_backwards": np.array([*_backwards(model), 0], np.int32),
        "s_rubs": np.array([*_rubs(model), 0], np.int32),
        "s_slips": slips,
        "s_limit_gain": np.array([options.noslip_tolerance], dtype),
        **{f"sw_{k}": max(n, 1) for k, n in sizes.items()},
    }


def _order(model: Model) -> list[int]:
    """The pairs of shapes in the order in which MuJoCo has them: by their bodies, explicit pairs first, by their shapes."""
    c, shapes = candidates(model), model.shapes
    explicit = {frozenset((a, b)) for a, b, _ in shapes.included}

    def key(k: int) -> tuple[Any, ...]:
        a, b = sorted((int(c.a[k]), int(c.b[k])), key=lambda x: (shapes.body[x], x))
        return shapes.body[a], shapes.body[b], frozenset((a, b)) not in explicit, a, b

    return sorted(range(len(c.a) - 1), key=key)


def _backwards(model: Model) -> list[bool]:
    """Whether MuJoCo has the points of a pair the other way round."""
    c, kind = candidates(model), model.shapes.kind
    return [{kind[a], kind[b]} == {PLANE, CAPSULE} for a, b in zip(c.a[:-1], c.b[:-1], strict=True)]


def _rubs(model: Model) -> list[bool]:
    """Whether a pair has directions of friction."""
    c = candidates(model)
    return [model.shapes.pair_condim(int(a), int(b)) > 1 for a, b in zip(c.a[:-1], c.b[:-1], strict=True)]


def take_slips(arguments: dict[str, Any]) -> dict[str, Any]:
    """Pick these out of a kernel's arguments."""
    found = {k[2:]: arguments.pop(k) for k in INTEGERS}
    found |= {k: arguments.pop(f"sw_{k}") for k in (*REALS, *SCRATCH)}
    found["slip"] = Table(found["slip"].memory, SLIP)
    return found


def may_slip(model: Model) -> bool:
    """Whether a model has friction that sweeps could correct."""
    return bool(soft_features(model) & {"contact", "patch", "dry", "free_dry", "tendon_dry"})
