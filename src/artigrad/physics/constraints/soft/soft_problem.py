"""Kernel arguments of the soft law: integers of the candidates, real options, and scratch for the active rows.

Rows belong to one of four families:

    point      three rows at a point of one link or between two: contacts of condim 1 and 3, equalities `connect`
    wrench     six rows, translation and rotation: contacts of condim 4 and 6, equalities `weld`
    single     one row on one degree of freedom: limits, dry friction, servo motors
    multi_dof  one row on several degrees of freedom: coupled joints, limits of ball joints, dry friction of free ones;
    limits,
               dry friction and couplings of tendons
"""

from __future__ import annotations

from itertools import combinations, pairwise
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ....compiler import INT, INT_WORK, INTS, SHARED, WORK, ArgumentKind, Layout, Reals, Table
from ....model.model import HEIGHT_FIELD, PLANE, Equality, Model
from ...collision.candidates import Candidates, candidates, contact_layout, contact_sizes, slots_in
from ...collision.convex.hull_tables import HULLS, hull_arguments
from ...features import Features
from ...spatial import Articulated, Force, Mat3, Sym3, Transform, Vec3
from ...tables import EQUALITIES
from .cones import CONES, ConeLaw
from .stiffness import Cross, Six, Stiff

# Fields of every row: reference, y = J x - ref, trial step d, force f at y, z with M (a - a0) = J^T z, z of the whole
# step, and K, the
# negative slope of f. In backward passes d is kappa = K J nu and z is J nu.
STEPS = ("ref", "y", "d", "f", "z", "ahead")
_RUB = dict.fromkeys(("D", "r", "slide", "slide2", "reg"), float)
_TURN = dict.fromkeys(("torsion", "roll", "roll2", "D_turn"), float)
_SCALAR = dict.fromkeys((*STEPS, "K", "D", "low", "high", "r"), float)

TABLES = {
    "point": Layout(p=Vec3, p_a=Vec3, R=Mat3, K=Sym3, **dict.fromkeys(STEPS, Vec3), **_RUB),
    "wrench": Layout(p=Vec3, p_a=Vec3, R=Mat3, E=Mat3, K=Stiff, **dict.fromkeys(STEPS, Six), **_RUB, **_TURN),
    "single": Layout(sign=float, **_SCALAR),
    "multi_dof": Layout(**_SCALAR),
    "placed": Layout(
        X=Transform, at=Vec3
    ),  # one row per shape: its pose about the origin of its tree, and its position in the world
    "base": Layout(F=Force),  # one row per link: its force without constraint forces
    "composite": Layout(I=Articulated, F=Force),  # one row per link: inertia with stiffness, and force, of its subtree
    "cross": Layout(C=Cross),  # one row per coupling of two moving links
    "sphere": Layout(at=Vec3, radius=float, end=float),  # of `broadphase`, sorted by their ends along an axis
}
COUNTS = (
    "points",
    "wrenches",
    "limits",
    "drys",
    "motors",
    "multi_dofs",
    "pairs",
    "pair_ranges",
    "capacity",
    "wide_capacity",
)
BROAD_PHASE = ("spheres", "endless", "digits", "near_room")
# Ranges of pairs, each a pair group or between pair groups: first pair of each; its pair group (from 1) and whether it
# is one; its shapes.
PAIR_RANGES = ("pair_range", "range_pair_group", "range_boxed", "range_shape", "range_shapes")
INTEGERS: dict[str, ArgumentKind] = {
    **dict.fromkeys((f"s_{k}" for k in (*COUNTS, *BROAD_PHASE, "tree_pairs")), INT),
    **dict.fromkeys(("s_sphere_shape", "s_endless_pair", "s_pair_of", "s_pair_low", "s_pair_high"), INTS),
    **dict.fromkeys(("s_routine", "s_a", "s_b", "s_swapped", "s_first_point", "s_wide", "s_two"), INTS),
    **dict.fromkeys((f"s_{k}" for k in PAIR_RANGES), INTS),
    **dict.fromkeys(("s_limit", "s_dry", "s_motor", "s_held", "s_eq_a", "s_eq_b", "s_eq_two"), INTS),
    **dict.fromkeys(("s_couple_qa", "s_couple_qb", "s_couple_two", "s_tendon_a", "s_tendon_b"), INTS),
    **dict.fromkeys(("s_tree_dof", "s_tree_at", "s_dof_tree", "s_tree_pair_a", "s_tree_pair_b"), INTS),
    **dict.fromkeys(("s_multi_dof_kind", "s_multi_dof_of", "s_entry", "s_entry_dof", "s_multi_dof_q"), INTS),
    **dict.fromkeys(("s_feature", "s_gap", "s_range_reach", "s_widest_gap"), SHARED),
    **{f"s_{k}": kind for k, kind in HULLS.items()},
}
# slots of a jointly computed pair, and the records of contacts: points, then wrenches
SCRATCH_TABLES = ("slots", "contact_records")
REALS = (
    *TABLES,
    *SCRATCH_TABLES,
    "accel",
    "trial",
    "joint_force",
    "diagonal",
    "status",
    "H",
    "coef",
    "coupled",
    "stiff",
    "load",
)
# Per block: links; pair or equality; candidate point; kind; whether two links move; coupling, counted from 1.
BLOCK = ("link_a", "link_b", "of", "at", "kind", "two", "coupling")
SCRATCH = (
    *(f"point_{k}" for k in BLOCK),
    *(f"wrench_{k}" for k in BLOCK),
    *("single_dof", "single_link", "single_kind"),
    *("coupling_a", "coupling_b", "count", "row_start", "row_end", "column"),
    *("flag", "dof_at", "first_coupling", "next_coupling", "first_child", "next_child"),
    *("place", "queue", "unvisited", "edge_from", "edge_to", "edge_order", "edge_sorted", "edge_first"),
    *("bucket", "sphere_bucket", "sphere_order", "near_pair", "near_sorted", "digit_count"),
)
MANY = 16  # number of trees from which on their elimination order matters
MANY_PAIRS = 400  # number of pairs of shapes from which on there is a broad phase
NEAR_EACH = 64  # number of pairs per shape that can be near at a time; if there are more, all are visited
HEAVY = 1e6  # kg: effective mass (1 over inverse weight) above which a row is nearly rigid
POINTS, WRENCHES, SINGLES, COUPLINGS = range(4)  # indices into `count`
CONTACT, HELD = range(2)  # kinds of blocks: contact or equality
LIMIT, DRY, MOTOR = range(3)  # kinds of single rows
# kinds of rows on several degrees of freedom, and the names of their features
COUPLE, BALL, FREE_DRY, TENDON_LOW, TENDON_HIGH, TENDON_DRY, TENDON_COUPLE = range(7)
MULTI_DOF_KINDS = ("couple", "ball", "free_dry", "tendon_low", "tendon_high", "tendon_dry", "tendon_couple")


_features: WeakKeyDictionary[Model, frozenset[str]] = WeakKeyDictionary()


def soft_features(model: Model) -> frozenset[str]:
    """Return the kinds of rows that a model can have; cached."""
    if model not in _features:
        _features[model] = _find_features(model)
    return _features[model]


def _find_features(model: Model) -> frozenset[str]:
    """Return the kinds of rows that a model can have. Kernels are compiled for these.

    contact, patch                              contacts of condim up to 3, and above
    connect, weld, couple, tendon_couple        equalities
    limit, dry, ball, free_dry, motor           of joints
    tendon_low, tendon_high, tendon_dry         of tendons
    pair_group                                  there are many pairs between two links
    sweep                                       there are many pairs of shapes
    couplings                                   rows can couple two moving links or several joints
    uncoupled                                   there can be states without such rows
    many_trees                                  more than MANY trees can be coupled: their elimination order matters
    stiff                                       some rows are nearly rigid (`stiff_rows`)
    """
    shapes, links = model.shapes, model.links
    a, b = shapes.pair_array.T
    link = links.of_body[np.array(shapes.body, int) + 1]
    found = {("patch" if wide else "contact") for wide in np.unique(shapes.pair_condims(a, b) > 3).tolist()}
    found |= {{"joint": "couple", "tendon": "tendon_couple"}.get(e.kind, e.kind) for e in model.equalities}
    found |= {"motor"} if model.servos else set()
    found |= {"pair_group"} if candidates(model).pair_group.any() else set()
    found |= {"sweep"} if len(shapes.pairs) >= MANY_PAIRS else set()
    found |= {MULTI_DOF_KINDS[kind] for kind, *_ in _tendon_stops(model)}
    for i in shapes.limited:
        joint = model.joint_kind(i)
        if np.isfinite(model.params.limit[i]).any():
            found.add("limit" if joint.axial else "ball")
        if model.params.dry_friction[i] > 0:
            found.add("free_dry" if joint.floating else "dry")
    if _least_weight(model) * HEAVY < 1.0:
        found.add("stiff")
    always = any(e.kind in ("joint", "tendon") or all(_ends(model, e)) for e in model.equalities if not _idle(model, e))
    always = bool(always or found & {"free_dry", "tendon_dry"})
    if always or found & {"ball", "tendon_low", "tendon_high"} or (link[a] * link[b]).any():
        found.add("couplings")
        if model.links.trees > MANY:
            found.add("many_trees")
    return frozenset(found if always else found | {"uncoupled"})


def _least_weight(model: Model) -> float:
    """Return the smallest inverse weight of all contacts, equalities of bodies, and tendons with rows."""
    of_body = np.concatenate([model.params.body_invweight0, np.zeros((1, 2))])  # the world is -1
    held = [(e.a, e.b) for e in model.equalities if e.kind in ("connect", "weld") and not _idle(model, e)]
    turned = [(e.a, e.b) for e in model.equalities if e.kind == "weld" and not _idle(model, e)]
    pairs = np.array(model.shapes.body, int)[model.shapes.pair_array]
    touching = of_body[pairs, 0].sum(1)
    found = [of_body[a, 0] + of_body[b, 0] for a, b in held] + ([touching.min()] if len(touching) else [])
    found += [of_body[a, 1] + of_body[b, 1] for a, b in turned]
    found += [model.params.tendon_invweight0[t] for t, *_ in (stop[1:] for stop in _tendon_stops(model))]
    coupled = [
        [t for t in (e.a, e.b) if t >= 0] for e in model.equalities if e.kind == "tendon" and not _idle(model, e)
    ]
    found += [model.params.tendon_invweight0[both].sum() for both in coupled]
    return float(min(found, default=1.0))


def _link(model: Model, body: int) -> int:
    return int(model.links.of_body[body + 1])


def _dofs(model: Model) -> np.ndarray:
    """Degrees of freedom of all links, link by link."""
    links = model.links
    return np.concatenate([np.arange(v, v + n) for v, n in zip(links.v, links.nv, strict=True)])


def _ends(model: Model, e: Equality) -> tuple[int, int]:
    """Return the links of an equality; the second one moves."""
    if e.kind in ("joint", "tendon"):
        return 0, 0
    first, second = _link(model, e.a), _link(model, e.b)
    return (second, first) if first else (first, second)


def _idle(model: Model, e: Equality) -> bool:
    """Return True if an equality is between parts of one link or of the world. It has no rows."""
    if e.kind == "tendon":
        return not any(model.lines[0][t].dofs for t in (e.a, e.b) if t >= 0)
    return e.kind != "joint" and _link(model, e.a) == _link(model, e.b)


def _tendon_stops(model: Model) -> list[tuple[int, int, int, list[int]]]:
    """Return the rows of limits and dry friction of tendons, as in `_multi_dof_rows`."""
    out: list[tuple[int, int, int, list[int]]] = []
    for t in model.stopped_tendons:
        dofs, limit = list(model.lines[0][t].dofs), model.params.tendon_limit[t]
        if not dofs:
            continue
        out += [(kind, t, 0, dofs) for kind, x in zip((TENDON_LOW, TENDON_HIGH), limit, strict=True) if np.isfinite(x)]
        out += [(TENDON_DRY, t, 0, dofs)] if model.params.tendon_dry_friction[t] > 0 else []
    return out


def _multi_dof_rows(model: Model) -> list[tuple[int, int, int, list[int]]]:
    """Return (kind, index of its equality, link, dof or tendon; first coordinate; degrees of freedom) of each row.

    The entries of two coupled tendons are concatenated.
    """
    out = _tendon_stops(model)
    for n, e in enumerate(model.equalities):
        if e.kind == "joint":
            out.append((COUPLE, n, 0, [model.joint_v[i] for i in (e.a, e.b) if i >= 0]))
        if e.kind == "tendon" and not _idle(model, e):
            out.append((TENDON_COUPLE, n, 0, [k for t in (e.a, e.b) if t >= 0 for k in model.lines[0][t].dofs]))
    for i in model.shapes.limited:
        joint, va = model.joint_kind(i), model.joint_v[i]
        if joint.quaternion and not joint.floating and np.isfinite(model.params.limit[i]).any():
            out.append((BALL, _link(model, i), model.joint_q[i], [va, va + 1, va + 2]))
        if joint.floating and model.params.dry_friction[i] > 0:
            out += [(FREE_DRY, k, 0, [k]) for k in range(va, va + joint.nv)]
    return out


def soft_arguments(model: Model, max_contacts: int, dtype: np.dtype) -> dict[str, Any]:
    """Return the integer and real arguments of a kernel with the soft law, for at most max_contacts contact points."""
    c, shapes = candidates(model), model.shapes
    a, b = c.a[:-1], c.b[:-1]
    gaps = _gaps(model, a, b)
    wide = shapes.pair_condims(a, b) > 3
    count = np.diff(c.first)
    kinds = [
        EQUALITIES.index("joint" if _idle(model, e) else e.kind) for e in model.equalities
    ]  # joints have no blocks
    ends = [_ends(model, e) for e in model.equalities]
    limited = [i for i in shapes.limited if np.isfinite(model.params.limit[i]).any() and model.joint_kind(i).axial]
    rubbing = [i for i in shapes.limited if model.params.dry_friction[i] > 0 and not model.joint_kind(i).floating]
    dry = [model.joint_v[i] + k for i in rubbing for k in range(model.joint_kind(i).nv)]
    multi_dofs = _multi_dof_rows(model)
    capacity = [min(int(count[wide == w].sum()), max_contacts) for w in (False, True)]
    links = model.links.of_body[np.array(shapes.body, int) + 1]
    of_dof = np.repeat(model.links.tree, model.links.nv)[np.argsort(_dofs(model), kind="stable")]

    def ints(values: Any) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    return {
        "s_points": capacity[0] + kinds.count(0),
        "s_wrenches": capacity[1] + kinds.count(1),
        "s_capacity": capacity[0],
        "s_wide_capacity": capacity[1],
        "s_limits": len(limited),
        "s_drys": len(dry),
        "s_motors": len(model.servos),
        "s_multi_dofs": len(multi_dofs),
        "s_pairs": len(a),
        **_pair_ranges(c),
        **_broad_phase(model, c),
        "s_widest_gap": np.array([0.5 * max(gaps, default=0.0)], dtype),
        "s_range_reach": np.array([*_widest_gaps(c, gaps), 0.0], dtype),
        "s_routine": c.routine,
        "s_a": c.a,
        "s_b": c.b,
        "s_swapped": c.swapped,
        "s_first_point": c.first,
        "s_wide": ints(wide),
        "s_two": ints((links[a] > 0) & (links[b] > 0)),
        "s_limit": ints(_link(model, i) for i in limited),
        "s_dry": ints(dry),
        "s_motor": ints(model.servos),
        "s_held": ints(kinds),
        "s_eq_a": ints(a for a, _ in ends),
        "s_eq_b": ints(b for _, b in ends),
        "s_eq_two": ints(bool(a and b) for a, b in ends),
        "s_couple_qa": ints(model.joint_q[e.a] if e.kind == "joint" else 0 for e in model.equalities),
        "s_couple_qb": ints(model.joint_q[e.b] if e.kind == "joint" and e.b >= 0 else 0 for e in model.equalities),
        "s_couple_two": ints(e.kind in ("joint", "tendon") and e.b >= 0 for e in model.equalities),
        "s_tendon_a": ints(e.a if e.kind == "tendon" else 0 for e in model.equalities),
        "s_tendon_b": ints(e.b if e.kind == "tendon" and e.b >= 0 else 0 for e in model.equalities),
        "s_tree_dof": ints(np.argsort(of_dof, kind="stable")),
        "s_tree_at": ints(np.searchsorted(np.sort(of_dof), np.arange(model.links.trees + 2))),
        "s_dof_tree": ints(of_dof),
        **_tree_pairs([of_dof[dofs] for *_, dofs in multi_dofs]),
        "s_multi_dof_kind": ints(kind for kind, *_ in multi_dofs),
        "s_multi_dof_of": ints(of for _, of, _, _ in multi_dofs),
        "s_multi_dof_q": ints(q for _, _, q, _ in multi_dofs),
        "s_entry": ints(np.cumsum([0, *(len(dofs) for *_, dofs in multi_dofs)])),
        "s_entry_dof": ints(k for *_, dofs in multi_dofs for k in dofs),
        "s_gap": np.array([*gaps, 0.0], dtype),
        "s_feature": np.ascontiguousarray(c.feature.reshape(-1), dtype),
        **{f"s_{k}": x for k, x in hull_arguments(model, dtype).items()},
    }


def _pair_ranges(c: Candidates) -> dict[str, Any]:
    """Return the arrays of the ranges of pairs."""
    count = len(c.pair_group) - 1
    first = [0, *(np.flatnonzero(np.diff(c.pair_group[:count])) + 1).tolist()] if count else []
    ends = [*first[1:], count] if first else []
    shapes = [np.union1d(c.a[i:j], c.b[i:j]).tolist() for i, j in zip(first, ends, strict=True)]

    def ints(values: Any) -> np.ndarray:
        return np.array([*values, 0], np.int32)

    return {
        "s_pair_ranges": len(first),
        "s_pair_range": ints([*first, count]),
        "s_range_pair_group": ints(c.pair_group[k] for k in first),
        "s_range_boxed": ints(c.pair_group[k] > 0 for k in first),
        "s_range_shape": ints(np.cumsum([0, *map(len, shapes)])),
        "s_range_shapes": ints(k for own in shapes for k in own),
    }


def _tree_pairs(rows: list[np.ndarray]) -> dict[str, Any]:
    """Pairs of different trees that rows on several dofs couple, given the trees of each row's dofs."""
    found = sorted({pair for trees in rows for pair in combinations(np.unique(trees).tolist(), 2)})
    a, b = np.array([*found, (0, 0)], np.int32).T
    return {"s_tree_pairs": len(found), "s_tree_pair_a": a.copy(), "s_tree_pair_b": b.copy()}


def _broad_phase(model: Model, c: Candidates) -> dict[str, Any]:
    """Return the tables of `broadphase`.

    These are the shapes with a bounding sphere, the pairs with unbounded shapes, the pair of any two shapes (from 1),
    and both digits of the index of a pair.
    """
    shapes = model.shapes
    sweep, count = "sweep" in soft_features(model), len(c.a) - 1
    a, b = (x[:-1] * sweep for x in (c.a, c.b))
    endless = np.isin(np.array(shapes.kind, int), (PLANE, HEIGHT_FIELD))
    without = np.flatnonzero(endless[a] | endless[b]) if sweep else np.zeros(0, int)
    spheres = np.setdiff1d(np.union1d(a, b), np.flatnonzero(endless)) if sweep else np.zeros(0, int)
    pair_of = np.zeros((len(shapes.names),) * 2 if sweep else (1, 1), np.int32)
    if sweep:
        pair_of[a, b] = pair_of[b, a] = np.arange(1, count + 1)
    digits = int(np.ceil(count**0.5)) + 1
    low, high = (x.astype(np.int32) for x in np.divmod(np.arange(count * sweep + 1), digits)[::-1])
    return {
        "s_spheres": len(spheres),
        "s_endless": len(without),
        "s_digits": digits * sweep,
        "s_near_room": min(count, NEAR_EACH * len(shapes.names)) * sweep,
        "s_sphere_shape": np.append(spheres, 0).astype(np.int32),
        "s_endless_pair": np.append(without, 0).astype(np.int32),
        "s_pair_of": pair_of.reshape(-1),
        "s_pair_low": low,
        "s_pair_high": high,
    }


def _gaps(model: Model, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Range of adhesion beyond the margin of each pair of shapes, m; an explicit pair has its own."""
    shapes = model.shapes
    gap, own = np.array(shapes.gap, float), shapes.own_numbers(a, b)
    return np.where(own >= 0, np.array([*shapes.included_gap, 0.0])[own], gap[a] + gap[b])


def _widest_gaps(c: Candidates, gaps: np.ndarray) -> list[float]:
    """Return the largest range of adhesion in each range of pairs, m."""
    made = _pair_ranges(c)
    return [max(gaps[i:j]) for i, j in pairwise(made["s_pair_range"][: made["s_pair_ranges"] + 1])]


def soft_work(model: Model, integers: dict[str, Any]) -> dict[str, int]:
    """Return the sizes of the scratch arrays."""
    nl, nv, features = len(model.links.parent), model.nv, soft_features(model)
    tied, piled = "couplings" in features, "many_trees" in features
    points, wrenches, multi_dofs = (integers[f"s_{k}"] for k in ("points", "wrenches", "multi_dofs"))
    singles = 2 * integers["s_limits"] + integers["s_drys"] + integers["s_motors"]
    couplings = (points + wrenches) * tied
    rows = {"point": points, "wrench": wrenches, "single": singles, "multi_dof": multi_dofs, "base": nl}
    rows |= {"placed": len(model.shapes.names), "composite": nl * tied, "cross": couplings + 1}
    sizes = {name: n * TABLES[name].size for name, n in rows.items()}
    rows_of_spheres, room = integers["s_spheres"], integers["s_near_room"]
    sizes |= {"sphere": rows_of_spheres * TABLES["sphere"].size}
    sizes |= dict.fromkeys(("sphere_bucket", "sphere_order"), rows_of_spheres) | {"bucket": rows_of_spheres + 2}
    sizes |= dict.fromkeys(("near_pair", "near_sorted"), room) | {"digit_count": integers["s_digits"] + 2}
    sizes |= contact_sizes(model, points + wrenches)
    sizes |= dict.fromkeys(("accel", "trial", "joint_force", "diagonal"), nv)
    sizes |= {
        "status": 3,
        "coupled": 1,
        "stiff": 1,
        "coef": int(integers["s_entry"][multi_dofs]),
        "H": nv * nv * tied,
        "load": nv * tied,
    }
    for family, n in (("point", points), ("wrench", wrenches)):
        sizes |= {f"{family}_{k}": n for k in BLOCK}
    sizes |= {f"single_{k}": singles for k in ("dof", "link", "kind")} | {f"coupling_{k}": couplings + 1 for k in "ab"}
    trees = (model.links.trees + 1) * piled
    sizes |= {"place": nv * piled, "queue": trees, "unvisited": trees, "edge_first": trees + 2}
    edges = 2 * (couplings + integers["s_tree_pairs"]) * piled
    sizes |= dict.fromkeys(("edge_from", "edge_to", "edge_order", "edge_sorted"), edges)
    sizes |= dict.fromkeys(("flag", "dof_at", "first_coupling", "first_child"), nv * tied)
    sizes |= {"next_child": (nv + 1) * tied, "next_coupling": (couplings + multi_dofs + 1) * tied}
    sizes |= {"count": 4, "row_start": nv, "row_end": nv, "column": nv * (nv + 1) // 2 * tied}
    return {f"sw_{k}": max(n, 1) for k, n in sizes.items()}


def soft_signature() -> dict[str, ArgumentKind]:
    """Return the arguments that the soft law adds to a kernel."""
    return {
        **INTEGERS,
        **{f"sw_{k}": WORK for k in REALS},
        **{f"sw_{k}": INT_WORK for k in SCRATCH},
    }


class SoftProblem(SimpleNamespace):
    """Constraint rows of one step inside a kernel, under the soft law."""

    routines: frozenset[int]  # of the model's pairs
    solids: frozenset[int]  # types of shapes in pairs of general solids
    features: Features
    cone: ConeLaw
    square: bool  # True if all powers of solimp are 2
    iterations: int

    # integers of the model: capacities, pairs of shapes, limited joints, equalities, rows on several dofs
    points: Any
    wrenches: Any
    capacity: Any
    wide_capacity: Any
    limits: Any
    drys: Any
    motors: Any
    multi_dofs: Any
    pairs: Any
    pair_ranges: Any
    pair_range: Any
    range_pair_group: Any
    range_boxed: Any
    range_shape: Any
    range_shapes: Any
    range_reach: Reals  # range of adhesion beyond margins, m
    spheres: Any  # number of shapes with a bounding sphere, and which (`broadphase`)
    sphere_shape: Any
    endless: Any  # pairs of which one shape has none
    endless_pair: Any
    pair_of: Any  # pair of two shapes, from 1; 0: none
    digits: Any  # base in which the number of a pair has two digits
    pair_low: Any
    pair_high: Any
    near_room: Any  # capacity of the list of near pairs
    widest_gap: Reals  # half of the largest range of adhesion beyond margins, m
    routine: Any
    a: Any
    b: Any
    swapped: Any  # 1 if MuJoCo orders a and b the other way round
    first: Any  # point of each pair
    wide: Any  # 1 for a pair whose contacts are wrenches
    two: Any  # 1 for a pair of two moving links
    limit: Any  # links
    dry: Any  # degrees of freedom
    motor: Any  # actuators
    held: Any  # kind of each equality
    eq_a: Any
    eq_b: Any
    eq_two: Any
    couple_qa: Any  # coordinates of coupled joints
    couple_qb: Any
    couple_two: Any
    tendon_a: Any  # coupled tendons
    tendon_b: Any
    multi_dof_kind: Any
    multi_dof_of: Any
    multi_dof_q: Any
    tree_dof: Any  # degrees of freedom, tree by tree
    tree_at: Any  # first entry of each tree in tree_dof
    dof_tree: Any
    entry: Any  # first entry of each row on several dofs
    entry_dof: Any
    feature: Reals
    gap: Reals  # of each pair, range of adhesion beyond its margin, m

    # scratch
    point: Table
    wrench: Table
    single: Table
    multi_dof: Table
    placed: Table
    base: Table
    composite: Table
    cross: Table
    accel: Reals  # current accelerations
    trial: Reals  # accelerations after the whole step
    joint_force: Reals  # joint forces, with those of rows
    diagonal: Reals  # stiffness of single rows
    status: Reals  # worst residual, least margin, LOST or the index of a pair (`stiff_rows.name_pair`)
    H: Reals
    coef: Reals  # coefficients of rows on several dofs
    coupled: Reals  # 1 if rows couple links or joints
    stiff: Reals  # 1 if some row is nearly rigid
    load: Reals
    single_dof: Any
    single_link: Any  # of a motor, its actuator
    single_kind: Any
    coupling_a: Any  # links of each coupling, counted from 1
    coupling_b: Any
    count: Any
    flag: Any  # of each column, whether the row that is listed has it
    dof_at: Any  # degree of freedom at each place
    first_coupling: Any  # of each row, from 1; 0: none
    next_coupling: Any
    first_child: Any  # of each row, those whose last column it is, from 1; 0: none
    next_child: Any
    row_start: Any
    row_end: Any
    column: Any
    place: Any  # position of each degree of freedom in the elimination order
    queue: Any  # of each tree, the one after it in elimination order; 0: none
    edge_from: Any  # pairs of coupled trees
    edge_to: Any
    edge_order: Any
    edge_sorted: Any
    edge_first: Any  # of each tree, where its edges begin
    tree_pairs: Any  # trees that rows on several dofs couple
    tree_pair_a: Any
    tree_pair_b: Any
    unvisited: Any  # 1 if a tree is not yet in the queue
    sphere: Table
    bucket: Any  # first sphere of each bucket
    sphere_bucket: Any  # bucket of each sphere; once sorted, the end of those that can overlap it
    sphere_order: Any  # shapes in the order of their spheres
    near_pair: Any  # near pairs
    near_sorted: Any
    digit_count: Any
    force_bar: Any  # Reals if requested: cotangents of contact forces
    report_bar: Any = None  # Table if requested: cotangents of the contact output
    limit_bar: Any = None  # Reals if requested: cotangents of limit forces
    held_bar: Any = None  # Table if requested: cotangents of equality forces
    edges: bool = False  # True if the pressure of single pyramid edges has cotangents (`noslip_adjoint`)

    # of noslip sweeps (`slip_problem`)
    rank: Any  # of each pair in MuJoCo's order
    backwards: Any  # 1 if MuJoCo orders the points of a pair the other way round
    has_friction: Any  # 1 for a pair with friction
    slips: Any  # capacity of friction rows
    limit_gain: Any  # least improvement of a sweep to run another one
    slip: Table  # friction rows
    slip_J: Reals
    slip_W: Reals  # M^-1 J^T
    slip_J_bar: Reals
    slip_A: Reals  # block of J M^-1 J^T of the contact of each row
    slip_tape: Reals  # forces before each update
    slip_root: Reals  # sqrt(1/d) of each degree of freedom
    slip_moved: Reals  # motions of links under the rows of one contact
    sliding: Reals  # accelerations so far
    slip_mu: Reals  # in backward passes M^-1 times their cotangent
    stuck: Reals  # accelerations of Newton's method
    island: Reals  # of each tree
    going: Reals  # 1 while the island is swept
    gain: Reals
    gained: Reals
    ran: Reals  # number of sweeps done
    unit_kind: Any
    unit_row: Any
    unit_tree: Any
    point_slip: Any  # first friction row of each contact
    wrench_slip: Any
    found_row: Any  # contacts with friction in the order found: index, and 1 for wrenches
    found_wide: Any
    friction_row: Any  # the same in MuJoCo's order
    friction_wide: Any
    slip_count: Any  # number of units, rows, contacts with friction

    @classmethod
    def take(
        cls,
        arguments: dict[str, Any],
        features: Features,
        cone: str,
        iterations: int,
        more: dict[str, Any],
    ) -> Any:
        """Select the soft law's part of a kernel's arguments.

        Args:
            arguments: Arguments of the kernel; the soft law's are removed.
            features: Features of the kernel.
            cone: Friction cone.
            iterations: Maximum number of Newton iterations.
            more: Further fields.
        """
        found = {k[2:]: arguments.pop(k) for k in INTEGERS}
        own = {k: arguments.pop(f"sw_{k}") for k in (*REALS, *SCRATCH)}
        own |= {k: Table(own[k].memory, layout) for k, layout in TABLES.items()}
        own["slots"] = slots_in(own["slots"].memory, features.routines, found["hull_ring"])
        own["contact_records"] = Table(own["contact_records"].memory, contact_layout(features.routines))
        return cls(
            **found,
            **own,
            routines=features.routines,
            solids=features.solids,
            features=features,
            cone=CONES[cone],
            square=not features.has("powers"),
            iterations=iterations,
            force_bar=None,
            **more,
        )

    @property
    def all_points(self) -> Any:
        """Number of candidate points of all pairs."""
        return self.first_point[self.pairs]

    @property
    def has_output_bars(self) -> bool:
        """True if the loss has cotangents of the contact output."""
        return self.force_bar is not None or self.report_bar is not None

    def has(self, *features: str) -> bool:
        """Return True if the model can have any of these kinds of rows."""
        return self.features.has(*features)
