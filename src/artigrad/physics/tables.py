"""Kernel view of a model: integer tables, constants computed from Params, and the workspace of one step.

Sizes are run-time integers, so one compiled kernel serves every robot.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ..compiler import INT, INTS, ArgumentKind, Layout, Linear, Reals, Table
from ..model.model import DYNAMICS, Equality, Model
from ..model.options import Options
from ..model.params import FIELDS
from ..model.transmissions import LINES, PIECES, Line
from .collision.candidates import candidates
from .collision.convex.hull_tables import spanning_corners
from .constraints.soft.impedance import Soft
from .constraints.soft.pair_parameters import PairSoft
from .joints.table import JOINTS, MOVING
from .spatial import Articulated, Force, Inertia, Motion, Quat, Sym3, Transform, Vec3

# -- integers ------------------------------------------------------------------------------------------------------------
TOPOLOGY: dict[str, ArgumentKind] = {
    **dict.fromkeys(("nl", "nt", "nb", "ns", "nu", "nq", "nv", "nshape", "nvertex", "npair", "nequality"), INT),
    **dict.fromkeys(("nheight", "nface", "npair_group"), INT),
    **dict.fromkeys(("ntendon", "nline", "npiece"), INT),
    **dict.fromkeys(
        (
            "parent",
            "kind",
            "link_q",
            "link_v",
            "link_nv",
            "carried",
            "carried_at",
            "tree",
            "first_inwards",
            "is_tip",
            "is_root",
            "is_lone",
        ),
        INTS,
    ),
    **dict.fromkeys(("dof_row", "dof_depth", "dof_parent"), INTS),
    **dict.fromkeys(
        (
            "link_of_body",
            "shape_link",
            "shape_kind",
            "shape_vertex",
            "shape_height",
            "shape_rows",
            "shape_cols",
            "frame_link",
            "site_body",
            "tree_free",
            "tree_q",
            "act_q",
            "act_v",
        ),
        INTS,
    ),
    # transmissions: of actuators (from 1) and whether there is one; kind, site, entries and segments; of segments
    **dict.fromkeys(
        (
            "act_line",
            "act_on_line",
            "line_kind",
            "line_at",
            "line_other",
            "line_entry",
            "entry_dof",
            "line_piece",
            "line_link",
            "path_link",
        ),
        INTS,
    ),
    **dict.fromkeys(("piece_a", "piece_b", "piece_kind", "piece_around", "piece_side", "piece_sided"), INTS),
    # sizes for gravity compensation and fluids: links, bodies, the fluid itself
    **dict.fromkeys(("nlifted", "nfluid", "nmedium"), INT),
    "nslope": INT,  # actuators, if the gain of any has a slope
    "nservo": INT,  # actuators, if any is a servo motor
    "nspring": INT,  # links, if any has a rotational or nonlinear spring
    "neffort": INT,  # degrees of freedom, if any has an effort limit
    "dof_actuator_gravcomp": INTS,  # 1 for those whose actuators compensate gravity
    "fluid_body": INTS,
    # bodies with adhesion: number; index of each actuator and shape, from 1
    "nadhesion": INT,
    **dict.fromkeys(("act_adhesion", "shape_adhesion"), INTS),
    "nsurface": INT,  # shapes, if the surface of any has a velocity
    "nwet": INT,  # shapes treated as ellipsoids in a fluid
    **dict.fromkeys(("nsensed", "nturned", "nmagnetic"), INT),  # rows for sensors: bodies, sites, the magnetic field
    "wet_shape": INTS,
    # activations and muscles: numbers; of actuators, input of the gain, activation, whether and which muscle
    **dict.fromkeys(("na", "nmuscle"), INT),
    **dict.fromkeys(
        ("act_input", "act_state", "act_is_muscle", "act_muscle", "state_actuator", "state_dynamics"), INTS
    ),
}

# integers used only by the computation of constants
STRUCTURE: dict[str, ArgumentKind] = {
    **dict.fromkeys(("body_parent", "body_joint", "shape_body", "face_corner", "act_kind", "slots"), INTS),
    **dict.fromkeys(("body_v", "body_nv", "body_moves", "dof_counts"), INTS),
    **dict.fromkeys(("pair_a", "pair_b", "pair_own", "pair_explicit", "pair_rank", "pair_dim"), INTS),
    **dict.fromkeys(("pair_group_first", "pair_group_end"), INTS),
    **dict.fromkeys(("eq_kind", "eq_a", "eq_b", "eq_side_a", "eq_side_b", "eq_dof_a", "eq_dof_b"), INTS),
    **dict.fromkeys(("eq_tendon_a", "eq_tendon_b", "tendon_counts", "line_actuator"), INTS),
}
EQUALITIES = ("connect", "weld", "joint", "tendon")
JOINT_INDEX = {name: k for k, name in enumerate(JOINTS)}
FIELD_INDEX = {name: k for k, name in enumerate(FIELDS)}


_kept: WeakKeyDictionary[Model, dict[str, Any]] = WeakKeyDictionary()


def topology_arguments(model: Model) -> dict[str, Any]:
    """Return the integer arguments of every kernel, for one model; cached."""
    found = _kept.get(model)
    if found is None:
        found = _kept[model] = _topology(model)
    return found


def _topology(model: Model) -> dict[str, Any]:
    links = model.links
    joint = [max(i, 0) for i in model.actuator_joint]
    roots = [i for i, p in enumerate(links.parent) if p == 0 and i > 0]
    return {
        "nl": len(links.parent),
        "nt": links.trees,
        "nb": model.nb,
        "ns": model.ns,
        "nu": model.nu,
        "nq": model.nq,
        "nv": model.nv,
        "parent": links.parent,
        "kind": links.kind,
        "link_q": links.q,
        "link_v": links.v,
        "link_nv": links.nv,
        "tree": links.tree,
        **_subtrees(links.parent),
        "is_lone": _ints(lone_links(model)),
        "first_inwards": _ints(_last_of_each(links.parent)),
        "is_tip": _ints(i not in links.parent for i in range(len(links.parent))),
        "is_root": _ints([0, *(links.parent[1:] == 0)]),
        **dof_rows(model),
        "link_of_body": links.of_body,
        "nshape": len(model.shapes.names),
        "nvertex": sum(n for _, n in model.shapes.vertices),
        "nheight": sum(rows * cols for _, rows, cols in model.shapes.grids),
        "nface": sum(len(hull.faces) for hull in model.shapes.hulls),
        "shape_height": _ints(first for first, _, _ in model.shapes.grids),
        "shape_rows": _ints(rows for _, rows, _ in model.shapes.grids),
        "shape_cols": _ints(cols for _, _, cols in model.shapes.grids),
        "npair": len(model.shapes.pairs),
        "npair_group": int(candidates(model).pair_group.max()),
        "nequality": len(model.equalities),
        "shape_link": _ints(links.of_body[b + 1] for b in model.shapes.body),
        "shape_kind": _ints(model.shapes.kind),
        "shape_vertex": _ints(
            [*(first for first, _ in model.shapes.vertices), sum(n for _, n in model.shapes.vertices)]
        ),
        "frame_link": _ints([*links.of_body[1:], *(links.of_body[b + 1] for b in model.site_body)]),
        "site_body": _ints(b + 1 for b in model.site_body),
        "tree_free": _ints([0, *(MOVING[k].floating for k in links.kind[roots])]),
        "tree_q": _ints([0, *links.q[roots]]),
        "act_q": _ints(model.joint_q[i] for i in joint),
        "act_v": _ints(model.joint_v[i] for i in joint),
        **_lines(model),
        **_surroundings(model),
        **_activations(model),
        **_adhesion(model),
        **_sensed(model),
    }


# kinds of sensors that read parameters of bodies, quaternions of sites, and the magnetic field
OF_BODIES, OF_TURNS, OF_FIELD = (
    {"subtreecom", "subtreelinvel", "subtreeangmom", "force", "torque"},
    "framequat",
    "magnetometer",
)


def _sensed(model: Model) -> dict[str, Any]:
    """Rows of parameters that only sensors read."""
    kinds = {s.kind for s in model.sensors}
    turned = OF_TURNS in kinds
    return {
        "nsensed": model.nb if turned or kinds & OF_BODIES else 0,
        "nturned": model.ns if turned else 0,
        "nmagnetic": int(OF_FIELD in kinds),
    }


CONTROL, ACTIVATION, EARLY = range(
    3
)  # input of a gain: the control, the activation, or the activation at the end of the step


def _adhesion(model: Model) -> dict[str, Any]:
    """Bodies with adhesion actuators, counted from 1."""
    bodies = [on.a if on.kind == "body" else None for on in model.transmissions]
    adhesive = {body: k + 1 for k, body in enumerate(dict.fromkeys(b for b in bodies if b is not None))}
    return {
        "nadhesion": len(adhesive),
        "act_adhesion": _ints(0 if body is None else adhesive[body] for body in bodies),
        "shape_adhesion": _ints(adhesive.get(body, 0) for body in model.shapes.body),
    }


def _activations(model: Model) -> dict[str, Any]:
    """Activations and muscles, and their actuators."""
    gain_input, state, muscle = [CONTROL] * model.nu, [0] * model.nu, [0] * model.nu
    for k, (j, _, early) in enumerate(model.activations):
        gain_input[j], state[j] = EARLY if early else ACTIVATION, k
    for n, j in enumerate(model.muscles):
        muscle[j] = n
    return {
        "na": model.na,
        "nmuscle": len(model.muscles),
        "act_input": _ints(gain_input),
        "act_state": _ints(state),
        "act_is_muscle": _ints(j in model.muscles for j in range(model.nu)),
        "act_muscle": _ints(muscle),
        "state_actuator": _ints(a.actuator for a in model.activations),
        "state_dynamics": _ints(DYNAMICS.index(a.dynamics) for a in model.activations),
    }


def _surroundings(model: Model) -> dict[str, Any]:
    """Links with gravity compensation (all or none); bodies with a box in the fluid, counted from 1."""
    fluid = "fluid" in model.features
    wet = [b + 1 for b in range(model.nb) if fluid and model.params.fluid_box[b].any() and model.links.of_body[b + 1]]
    lifted = len(model.links.parent) if "compensation" in model.features else 0
    slopes = model.nu if "slope" in model.features else 0
    servos = model.nu if model.servos else 0
    sizes = {"nlifted": lifted, "nfluid": len(wet), "nmedium": int(fluid), "nslope": slopes, "nservo": servos}
    sizes["nspring"] = len(model.links.parent) if "spring" in model.features else 0
    sizes["nsurface"] = len(model.shapes.names) if "surface" in model.features else 0
    sizes["neffort"] = model.nv if "effort" in model.features else 0
    gravcomp = [i in model.actuator_gravcomp for i in range(model.nb) for _ in range(model.joint_kind(i).nv)]
    shapes = [k for k in model.shapes.wet if "ellipsoid" in model.features]
    found = {"fluid_body": _ints(wet), "nwet": len(shapes), "wet_shape": _ints(shapes)}
    return sizes | found | {"dof_actuator_gravcomp": _ints(gravcomp)}


def _lines(model: Model) -> dict[str, Any]:
    """Transmissions: entries are the degrees of freedom that they move; a segment is a coordinate, or two frames."""
    lines, of_actuator = model.lines
    pieces = [piece for line in lines for piece in line.pieces]
    paths = [_path_links(model, line) for line in lines]
    frames = [[model.joint_q[p.a], 0] if p.kind == "joint" else [model.nb + p.a, model.nb + p.b] for p in pieces]
    return {
        "ntendon": len(model.tendons),
        "nline": len(lines),
        "npiece": len(pieces),
        "act_line": _ints(of_actuator),
        "act_on_line": _ints(k > 0 for k in of_actuator),
        "line_kind": _ints(LINES.index(line.kind) for line in lines),
        "line_at": _ints(line.at for line in lines),
        "line_other": _ints(line.other for line in lines),
        "line_entry": _ints(np.cumsum([0, *(len(line.dofs) for line in lines)])),
        "entry_dof": _ints(k for line in lines for k in line.dofs),
        "line_piece": _ints(np.cumsum([0, *(len(line.pieces) for line in lines)])),
        "line_link": _ints(np.cumsum([0, *map(len, paths)])),
        "path_link": _ints(i for path in paths for i in path),
        "piece_a": _ints(a for a, _ in frames),
        "piece_b": _ints(b for _, b in frames),
        "piece_kind": _ints(PIECES.index(p.kind) if p.kind in PIECES else 0 for p in pieces),
        "piece_around": _ints(model.nb + p.around if p.around >= 0 else 0 for p in pieces),
        "piece_side": _ints(model.nb + p.side if p.side >= 0 else 0 for p in pieces),
        "piece_sided": _ints(p.side >= 0 for p in pieces),
    }


def _path_links(model: Model, line: Line) -> list[int]:
    """Links that carry attachments of a path between sites, inwards."""
    sites = {k for p in line.pieces if p.kind != "joint" for k in (p.a, p.b, p.around) if k >= 0}
    found, waiting = set[int](), [int(model.links.of_body[model.site_body[k] + 1]) for k in sites]
    while waiting:
        i = waiting.pop()
        if i and i not in found:
            found.add(i)
            waiting.append(int(model.links.parent[i]))
    return sorted(found, reverse=True)


def lone_links(model: Model) -> np.ndarray:
    """Return True for free links without children."""
    links = model.links
    return np.array([i > 0 and MOVING[k].floating and i not in links.parent for i, k in enumerate(links.kind)])


def _subtrees(parent: np.ndarray) -> dict[str, np.ndarray]:
    """Return the subtrees of all links, each beginning with the link itself, root to tip, and their first positions."""
    carried: list[list[int]] = [[i] for i in range(len(parent))]
    for i in range(1, len(parent)):
        above = int(parent[i])
        while above:
            carried[above].append(i)
            above = int(parent[above])
    starts = np.concatenate([[0], np.cumsum([len(c) for c in carried])])
    return {"carried": _ints(i for c in carried for i in c), "carried_at": _ints(starts)}


def _last_of_each(parent: np.ndarray) -> list[bool]:
    """Return True for links without a later sibling: an inward pass reaches these first."""
    return [p not in parent[i + 1 :] for i, p in enumerate(parent)]


def dof_rows(model: Model) -> dict[str, np.ndarray]:
    """Return the storage of a matrix over degrees of freedom along the tree.

    Keys: first entry and depth of each row, and parent of each degree of freedom (counted from 1, 0 for none).
    """
    links = model.links
    parent, depth = np.zeros(model.nv + 1, int), np.zeros(model.nv, int)
    last = {0: 0}  # last degree of freedom of each link, counted from 1
    for i in range(1, len(links.parent)):
        above = last[int(links.parent[i])]
        for k in range(int(links.v[i]), int(links.v[i] + links.nv[i])):
            parent[k + 1] = above
            depth[k] = depth[above - 1] + 1 if above else 0
            above = k + 1
        last[i] = above
    row = np.concatenate([[0], np.cumsum(depth + 1)])
    return {"dof_row": _ints(row), "dof_depth": _ints(depth), "dof_parent": _ints(parent)}


def structure_arguments(model: Model) -> dict[str, Any]:
    """Return the integers for `constants`: bodies (row 0 the world), actuators, and the first entry of each field of
    Params."""
    return {
        "body_parent": _ints([0, *(p + 1 for p in model.parent)]),
        "body_joint": _ints([0, *(JOINT_INDEX[t] for t in model.joint_type)]),
        "shape_body": _ints(b + 1 for b in model.shapes.body),
        "face_corner": _ints(spanning_corners(model)),
        "act_kind": _ints(model.actuator_kind),
        **_pair_structure(model),
        **_equality_structure(model),
        "body_moves": _ints([0] + [1] * model.nb),
        "dof_counts": _ints([0] + [1] * model.nv),
        "tendon_counts": _ints([0] + [1] * len(model.tendons)),
        "line_actuator": _ints(line.actuator for line in model.lines[0]),
        "body_v": _ints([0, *model.joint_v]),
        "body_nv": _ints([0, *(model.joint_kind(i).nv for i in range(model.nb))]),
        "slots": _ints(start for start, _ in model.param_slots.values()),
    }


def _pair_structure(model: Model) -> dict[str, Any]:
    """Integers of each pair of shapes, in the order of the candidates, and of pair groups.

    Of a pair: its shapes; its index among explicit pairs (from 1; 0: none); the shape that decides alone (1 or 2; 0:
    both); condim. Of a pair group: first pair and end.
    """
    c, shapes = candidates(model), model.shapes
    a, b = c.a[:-1], c.b[:-1]
    own = {frozenset((a, b)): k + 1 for k, (a, b, _) in enumerate(shapes.included)}
    number, priority = shapes.own_numbers(a, b), np.array(shapes.priority, int)
    rank = (priority[a] > priority[b]) + 2 * (priority[a] < priority[b])
    return {
        "pair_a": c.a,
        "pair_b": c.b,
        "pair_group_first": _ints(np.flatnonzero(c.pair_group == n)[0] for n in range(1, c.pair_group.max() + 1)),
        "pair_group_end": _ints(np.flatnonzero(c.pair_group == n)[-1] + 1 for n in range(1, c.pair_group.max() + 1)),
        "pair_own": _ints(np.array([*(own[frozenset((i, j))] for i, j, _ in shapes.included), 0], int)[number]),
        "pair_explicit": _ints(number >= 0),
        "pair_rank": _ints(rank),
        "pair_dim": _ints(shapes.pair_condims(a, b)),
    }


def held_bodies(model: Model, e: Equality) -> tuple[int, int]:
    """Return bodies A and B of a connect or weld (-1: the world): rows are those of B relative to A.

    B is the equality's first body, or its second if only that moves.
    """
    return (e.b, e.a) if model.links.of_body[e.a + 1] else (e.a, e.b)


def _equality_structure(model: Model) -> dict[str, Any]:
    """Integers of each equality.

    These are its kind; its bodies (from 1, 0 the world), of which the second moves, and the side of the equality of
    each; the degrees of freedom of its joints (from 1), and its tendons (from 1).
    """
    rows = []
    for e in model.equalities:
        if e.kind == "joint":
            dofs = [model.joint_v[i] + 1 if i >= 0 else 0 for i in (e.a, e.b)]
            rows.append((EQUALITIES.index(e.kind), 0, 0, 0, 1, *dofs, 0, 0))
        elif e.kind == "tendon":
            rows.append((EQUALITIES.index(e.kind), 0, 0, 0, 1, 0, 0, e.a + 1, e.b + 1))
        else:
            a, b = held_bodies(model, e)
            sides = [int(x != e.a) for x in (a, b)]
            rows.append((EQUALITIES.index(e.kind), a + 1, b + 1, *sides, *[0] * 4))
    names: tuple[str, ...] = ("eq_kind", "eq_a", "eq_b", "eq_side_a", "eq_side_b", "eq_dof_a", "eq_dof_b")
    names += ("eq_tendon_a", "eq_tendon_b")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {name: _ints(column) for name, column in zip(names, columns, strict=True)}


def _ints(values: Any) -> np.ndarray:
    return np.array([*values, 0], np.int32)  # one spare entry: an empty table still has an address


class Topology(SimpleNamespace):
    """Integers of a model inside a kernel: sizes, and tables indexed by link, body, site or actuator."""

    nl: Any  # links, the world included
    nt: Any  # trees
    nb: Any
    ns: Any
    nu: Any
    nq: Any
    nv: Any
    nshape: Any
    nvertex: Any
    nheight: Any
    nface: Any
    npair: Any  # candidate pairs
    npair_group: Any
    nequality: Any
    parent: Any
    kind: Any
    link_q: Any
    link_v: Any
    link_nv: Any
    tree: Any
    first_inwards: Any  # 1 for the first child of its parent in an inward pass
    is_tip: Any  # 1 for a link without children
    is_root: Any  # 1 for a child of the world
    dof_row: Any
    dof_depth: Any
    dof_parent: Any
    link_of_body: Any
    shape_link: Any
    shape_kind: Any
    shape_vertex: Any  # first of each shape, and the total number
    shape_height: Any  # first of each height field, its rows and columns
    shape_rows: Any
    shape_cols: Any
    frame_link: Any  # link of each body, then of each site
    site_body: Any
    tree_free: Any  # 1 if the tree's root is free
    tree_q: Any  # first entry of its position in q
    act_q: Any
    act_v: Any
    ntendon: Any  # tendons are the first transmissions
    nline: Any
    npiece: Any
    act_line: Any  # transmission of each actuator, from 1, and whether it has one
    act_on_line: Any
    line_kind: Any
    line_at: Any
    line_other: Any
    line_entry: Any  # first entry of each transmission, and the degree of freedom of each entry
    entry_dof: Any
    line_piece: Any  # first segment of each transmission
    line_link: Any  # first entry of each transmission in path_link
    path_link: Any  # links that carry attachments of a path, inwards
    piece_a: Any  # coordinate, or frame
    piece_b: Any
    piece_kind: Any  # of PIECES
    piece_around: Any  # frame of the shape, and of the side, if there is one
    piece_side: Any
    piece_sided: Any
    nlifted: Any
    nfluid: Any
    nmedium: Any
    nslope: Any
    nservo: Any
    nspring: Any
    neffort: Any
    dof_actuator_gravcomp: Any
    nadhesion: Any
    act_adhesion: Any
    shape_adhesion: Any
    fluid_body: Any
    nsurface: Any
    nwet: Any
    wet_shape: Any
    na: Any
    nmuscle: Any
    act_input: Any  # of each actuator: CONTROL, ACTIVATION or EARLY
    act_state: Any
    act_is_muscle: Any
    act_muscle: Any
    state_actuator: Any  # of each activation
    state_dynamics: Any

    @classmethod
    def take(cls, arguments: dict[str, Any]) -> Topology:
        """Select the topology from a kernel's arguments."""
        return cls(**{name: arguments.pop(name) for name in TOPOLOGY})


class Polynomial(Linear):
    """Polynomial c0 + c1 x + .. + c4 x^4."""

    c0: float
    c1: float
    c2: float
    c3: float
    c4: float


class Muscle(Linear):
    """Parameters of a muscle.

    Attributes:
        low, high: Normalized lengths at the ends of its range.
        force: Peak force, N.
        shortest, longest: Bounds of the normalized length.
        speed: Fastest shortening, normalized lengths per second.
        passive: Passive force, relative to the peak force.
        lengthening: Force at fast lengthening, relative to the peak force.
    """

    low: float
    high: float
    force: float
    shortest: float
    longest: float
    speed: float
    passive: float
    lengthening: float


# -- constants -------------------------------------------------------------------------------------------------------------
_LINK: dict[str, type] = {
    "I": Inertia,
    "placement": Transform,
    "damping": float,
    "armature": float,
    "stiffness": float,
    "reference": float,
    "pitch": float,
    "low": float,
    "high": float,
    "limit_margin": float,
    "limit": Soft,
    "limit_g": float,  # 1/inverse weight
}
_DOF: dict[str, type] = {"dry": float, "b": float, "D": float}
_PAIR: dict[str, type] = dict(PairSoft.parts)
_EQUALITY: dict[str, type] = {
    "A": Transform,  # aligned frames, in their links; that of B moves
    "B": Transform,
    "torque_scale": float,
    "polynomial": Polynomial,
    "soft": Soft,
    "g": float,  # 1/inverse weight of translations, or of joints
    "g_turn": float,
}
_TREE: dict[str, type] = {"origin": Vec3}
_FRAME: dict[str, type] = {"X": Transform}
_BODY: dict[str, type] = {"com": Vec3}
# radius: of the bounding sphere; reach: half of the largest margin of its pairs, m; center, extent: of the core's bounding
# box, in its own frame; inner: a point of the core; not
# differentiated
_SHAPE: dict[str, type] = {
    "X": Transform,
    "size": Vec3,
    **dict.fromkeys(("radius", "reach"), float),
    **dict.fromkeys(("center", "extent", "inner"), Vec3),
}
# bounding boxes of all shapes of a pair group on either side, margins included, in the frames of the two links; not
# differentiated
_PAIR_GROUP: dict[str, type] = dict.fromkeys(("a_center", "a_extent", "b_center", "b_extent"), Vec3)
_VERTEX: dict[str, type] = {"p": Vec3}
_HEIGHT: dict[str, type] = {"z": float}
_FACE: dict[str, type] = {"n": Vec3}  # outward normal of a hull's face, in the frame of its shape; not differentiated
_ACTUATOR: dict[str, type] = dict.fromkeys(
    ("gear", "gain", "b0", "b1", "b2", "low", "high", "force_low", "force_high", "drive"), float
)
_LINE: dict[str, type] = {
    **dict.fromkeys(("stiffness", "damping", "rest_low", "rest_high", "low", "high", "margin", "g"), float),
    "limit": Soft,
    **dict.fromkeys(("dry", "b", "D"), float),
    "force": Vec3,  # of an actuator's transmission, per unit of its force
    "torque": Vec3,
    "rod": float,  # of a slider-crank
    **dict.fromkeys(("c1", "c2", "d1", "d2"), float),  # nonlinear coefficients of a tendon's spring and damper
}
_PIECE: dict[str, type] = {"scale": float, "radius": float}
_LIFTED: dict[str, type] = {"m": float, "h": Vec3}  # compensated mass of a link, and its first moment
_FLUID: dict[str, type] = {"X": Transform, "box": Vec3}
_SLOPE: dict[str, type] = {"on_length": float, "on_velocity": float}
# servo motor: target velocity per unit of control, whether it controls position, speed and force limits, stiffness
_SERVO: dict[str, type] = dict.fromkeys(("gain", "on_length", "top", "low", "high", "D"), float)
# joint: spring of a ball or free one, nonlinear coefficients of springs and dampers, and the rest pose of a free one
_SPRING: dict[str, type] = {**dict.fromkeys(("k", "c1", "c2", "d1", "d2"), float), "rest": Vec3, "turn": Quat}
_EFFORT: dict[str, type] = {"low": float, "high": float}
# shape treated as an ellipsoid in a fluid
_WET: dict[str, type] = dict.fromkeys(("blunt", "slender", "angular", "kutta", "magnus"), float)
_WET |= {"mass": Vec3, "inertia": Vec3}
_SURFACE: dict[str, type] = {"v": Vec3, "w": Vec3}  # surface velocity and spin of a shape, in its axes
# body and site, for sensors; rotation and axis are not differentiated
_SENSED: dict[str, type] = {"mass": float, "com": Vec3, "I": Sym3, "rotation": Quat, "axis": Vec3}
_TURN: dict[str, type] = {"rotation": Quat}
_MAGNETIC: dict[str, type] = {"field": Vec3}
_MEDIUM: dict[str, type] = {"density": float, "viscosity": float, "wind": Vec3}
_ACTIVATION: dict[str, type] = dict.fromkeys(("rise", "fall", "width", "low", "high"), float)
_MUSCLE: dict[str, type] = {"gain": Muscle, "bias": Muscle, "low": float, "high": float}


def _bars(fields: dict[str, type]) -> dict[str, type]:
    """Types of the cotangents of a row: a transform's is a Force, others keep their type."""
    return {name: Force if kind is Transform else kind for name, kind in fields.items()}


_ROWS = (
    *(_LINK, _TREE, _FRAME, _BODY, _ACTUATOR, _SHAPE, _VERTEX, _DOF, _PAIR, _EQUALITY),
    *(_LINE, _PIECE, _LIFTED, _FLUID, _MEDIUM, _SLOPE, _SERVO, _HEIGHT, _ACTIVATION, _MUSCLE, _SPRING, _EFFORT),
    *(_WET, _FACE, _PAIR_GROUP, _SURFACE, _SENSED, _TURN, _MAGNETIC),
)
_LAYOUTS = [Layout(**fields) for fields in _ROWS]
_BAR_LAYOUTS = [Layout(**_bars(fields)) for fields in _ROWS]


class Constants:
    """Constants of a step, computed from Params: inertias and placements of links, frames on links, actuators."""

    def __init__(self, topology: Any, reals: Reals, bars: bool = False):
        layouts = _BAR_LAYOUTS if bars else _LAYOUTS
        t = topology
        rows = [t.nl, t.nt + 1, t.nb + t.ns, t.nb, t.nu, t.nshape, t.nvertex, t.nv, t.npair, t.nequality]
        rows += [
            t.nline,
            t.npiece,
            t.nlifted,
            t.nfluid,
            t.nmedium,
            t.nslope,
            t.nservo,
            t.nheight,
            t.na,
            t.nmuscle,
            t.nspring,
            t.neffort,
            t.nwet,
            t.nface,
            t.npair_group,
            t.nsurface,
            t.nsensed,
            t.nturned,
            t.nmagnetic,
        ]
        tables, start = [], reals.start + 3
        for layout, n in zip(layouts, rows, strict=True):
            tables.append(Table(reals.memory, layout, start))
            start = start + n * layout.size
        self.link, self.tree, self.frame, self.body, self.actuator, self.shape, self.vertex = tables[:7]
        self.dof, self.pair, self.equality, self.line, self.piece = tables[7:12]
        self.lifted, self.fluid, self.medium, self.slope, self.servo, self.height = tables[12:18]
        self.activation, self.muscle, self.spring, self.effort, self.wet, self.face, self.pair_group = tables[18:25]
        self.surface, self.sensed, self.site_turn, self.magnetic = tables[25:]
        self.reals, self.size = reals, start

    @property
    def gravity(self) -> Vec3:
        return self.reals.struct(0, Vec3)

    @gravity.setter
    def gravity(self, value: Vec3) -> None:
        self.reals.put(0, value)


class Bars(NamedTuple):
    """Buffers to which the adjoint of a step adds cotangents.

    Those of q are accumulated on the tangent space (`tangent`); q holds the final, ambient ones.

    Attributes:
        q, tangent, v, u: Of the state and the control.
        const: Of the constants; None if not required.
        wrench: Of external wrenches; None if there are none.
        act: Of activations; None if there are none.
    """

    q: Reals
    tangent: Reals
    v: Reals
    u: Reals
    const: Constants | None = None
    wrench: Reals | None = None
    act: Reals = None  # type: ignore[assignment]


_sizes: WeakKeyDictionary[Model, dict[bool, int]] = WeakKeyDictionary()


def constants_size(model: Model, bars: bool = False) -> int:
    """Number of entries of the constants of one robot, or of their cotangents; cached."""
    known = _sizes.setdefault(model, {})
    if bars not in known:
        known[bars] = _constants_size(model, bars)
    return known[bars]


def _constants_size(model: Model, bars: bool) -> int:
    sizes = SimpleNamespace(**{k: n for k, n in topology_arguments(model).items() if TOPOLOGY[k] == INT})
    return Constants(sizes, Reals(None, 0), bars).size  # type: ignore[arg-type]


# -- workspace -------------------------------------------------------------------------------------------------------------
# World axes; positions and moments about the origin of the link's tree.
LINK = Layout(
    X=Transform,  # pose
    v=Motion,  # velocity
    a=Motion,  # acceleration, including gravity
    I=Inertia,  # inertia of the link
    F=Force,  # force on the link; after an inward pass that of its subtree
    IA=Articulated,  # articulated inertia
).overlay(  # after the factor: cotangents of the backward pass
    "IA",
    y=Motion,  # of F; while solving, the acceleration
    a_bar=Force,
    v_bar=Force,
)
# One row per degree of freedom.
DOF = Layout(
    S=Motion,  # motion of the link per unit of this velocity
    U=Force,  # IA S
    dinv=float,  # 1 / (S . U + armature + dt damping)
    u=float,
).overlay("U", sin=float, cos=float)  # before the factor: of a revolute joint's angle
DOF.overlay("U", y=Motion)  # without a factor: weighted sum over a row of a cotangent of M


FIELD = Layout(  # one row per link, on the backward pass
    zeta=Force,  # cotangent of the pose
    w=Motion,  # second velocity field: the velocities after the step
    w_bar=Force,
)
PULL = Layout(W=Motion, F=Force, zeta=Force, o_bar=Vec3)  # per link, in the adjoint of a path: `attachment.start_pulls`
COMPOSITE = Layout(I=Inertia)  # of a subtree; in backward passes, accumulated pairings
ORIGIN = Layout(o_bar=Vec3)  # one row per tree: cotangent of positions in the world


class Workspace:
    """Scratch of one step, not read after it. `sizes` lists the arrays of a kernel, `Workspace(...)` wraps them."""

    link: Table
    dof: Table
    field: Table
    tree: Table
    composite: Table
    paired: Table
    pull: Table
    M: Reals  # mass matrix, then its sparse factor: rows of degrees of freedom, one entry per ancestor
    load: Reals  # joint forces of the forces on links
    q: Reals  # state and control of the step
    v: Reals
    act: Reals
    u: Reals
    x: Reals  # a query's further input, and its result
    out: Reals
    frames: Reals  # outputs of which readings of sensors are functions, their cotangents, and the readings
    acceleration_data: Reals
    actuator_outputs: Reals
    frames_bar: Reals
    acceleration_data_bar: Reals
    actuator_outputs_bar: Reals
    readings: Reals
    tau: Reals  # joint forces
    qdd: Reals  # joint accelerations
    wrench: Reals  # on bodies, if the kernel was staged with any

    v_after: Reals  # in backward passes: velocities after the step, where they must be copied
    mu: Reals  # cotangents
    q_bar: Reals
    v_bar: Reals
    act_bar: Reals
    u_bar: Reals
    x_bar: Reals
    qdd_bar: Reals
    tangent_bar: Reals
    wrench_bar: Reals

    rate: Reals  # implicit forces: diagonal of B, accelerations, their multipliers
    implicit_accel: Reals
    implicit_mu: Reals
    upper: Reals  # `velocity_matrix`: entries above the diagonal, columns of C, other velocities
    columns: Reals
    v_aside: Reals

    effort: Reals  # actuator forces before effort limits, and the cotangent behind these
    effort_bar: Reals
    lift: Reals  # gravity compensation by actuators, or its cotangent

    adhesion_force: Reals  # adhesion: forces, numbers of points and cotangents, of bodies counted from 1
    adhesion_count: Reals
    adhesion_bar: Reals

    # transmissions: lengths, moments of their entries, a row over all degrees of freedom, rates; cotangents
    length: Reals
    moment: Reals
    dense: Reals
    line_rate: Reals
    length_bar: Reals
    moment_bar: Reals
    dense_bar: Reals

    q_stage: Reals  # rk4: states of the stages, their rates, weighted means of these, and cotangents
    v_stage: Reals
    rate_stage: Reals
    a_stage: Reals
    rate_mean: Reals
    a_mean: Reals
    rate_mean_bar: Reals
    a_mean_bar: Reals
    v_stage_bar: Reals
    rate_bar: Reals
    a_bar: Reals
    q_start_bar: Reals
    v_start_bar: Reals
    act_stage: Reals  # of activations
    act_rate: Reals
    act_mean: Reals
    act_mean_bar: Reals
    act_rate_bar: Reals
    act_start_bar: Reals

    _TABLES = {
        "link": LINK,
        "dof": DOF,
        "field": FIELD,
        "composite": COMPOSITE,
        "tree": ORIGIN,
        "paired": COMPOSITE,
        "pull": PULL,
    }

    def __init__(self, arguments: dict[str, Any]):
        for name in list(arguments):
            if name.startswith("ws_"):
                reals, field = arguments.pop(name), name[3:]
                layout = self._TABLES.get(field)
                setattr(self, field, Table(reals.memory, layout) if layout else reals)

    @staticmethod
    def sizes(model: Model, options: Options, backward: bool, wrench: bool) -> dict[str, int]:
        """Return the scratch arrays of a step and the number of entries of each for one robot."""
        nl, nq, nv, nu, nb, na = len(model.links.parent), model.nq, model.nv, model.nu, model.nb, model.na
        sizes = {"link": nl * LINK.size, "dof": nv * DOF.size}
        sizes |= {"q": nq, "v": nv, "u": nu} | dict.fromkeys(("tau", "qdd"), nv)
        if options.factor == "sparse":
            sizes |= {"composite": nl * COMPOSITE.size, "M": int(dof_rows(model)["dof_row"][nv]), "load": nv}
        if wrench:
            sizes |= {"wrench": nb * 6}
        if model.lines[0]:
            sizes |= _line_sizes(model, backward)
        if na:
            sizes |= {"act": na} | ({"act_bar": na} if backward else {})
        if "adhesion" in model.features:
            names = (
                ("adhesion_force", "adhesion_count", "adhesion_bar")
                if backward
                else ("adhesion_force", "adhesion_count")
            )
            sizes |= dict.fromkeys(names, topology_arguments(model)["nadhesion"] + 1)
        if "effort" in model.features:
            sizes |= {"effort": nv} | ({"effort_bar": nv} if backward else {})
        if "actuator_gravcomp" in model.features:
            sizes |= {"lift": nv}
        if wrench or model.has_contact or model.features & {"compensation", "fluid"}:
            sizes |= {"tree": (model.links.trees + 1) * ORIGIN.size}
        if backward and model.has_contact and options.law.taped:
            sizes |= {"composite": nl * COMPOSITE.size, "paired": nl * COMPOSITE.size}
        if backward:
            sizes |= {"field": nl * FIELD.size, "q_bar": nq, "u_bar": nu} | dict.fromkeys(
                ("v_bar", "mu", "qdd_bar", "tangent_bar", "v_after"), nv
            )
            sizes |= {"wrench_bar": nb * 6} if wrench else {}
        if options.integrator == "rk4":
            sizes |= {"q_stage": 4 * nq, "v_stage": 4 * nv, "rate_stage": 5 * nv, "a_stage": 5 * nv}
            sizes |= dict.fromkeys(("rate_mean", "a_mean"), nv)
            if backward:
                bars = ("rate_mean_bar", "a_mean_bar", "v_stage_bar", "rate_bar", "a_bar", "v_start_bar")
                sizes |= {"q_start_bar": nq} | dict.fromkeys(bars, nv)
            if na:
                sizes |= {"act_stage": 4 * na, "act_rate": 5 * na, "act_mean": na}
                sizes |= dict.fromkeys(("act_mean_bar", "act_rate_bar", "act_start_bar"), na) if backward else {}
        else:
            sizes |= dict.fromkeys(("rate", "implicit_accel", "implicit_mu"), nv)
        if options.integrator in ("implicit", "implicitfast"):
            sizes |= dict.fromkeys(("M", "upper"), int(dof_rows(model)["dof_row"][nv]))
            sizes |= {"composite": nl * COMPOSITE.size, "columns": nv * nv, "v_aside": nv}
        return {f"ws_{name}": size for name, size in sizes.items()}


def _line_sizes(model: Model, backward: bool) -> dict[str, int]:
    lines = model.lines[0]
    n, entries = len(lines), max(1, sum(len(line.dofs) for line in lines))
    sizes = {"length": n, "moment": entries, "dense": model.nv, "line_rate": n}
    if not backward:
        return sizes
    pulls = len(model.links.parent) * PULL.size
    return sizes | {"length_bar": n, "moment_bar": entries, "dense_bar": model.nv, "pull": pulls}
