"""Model: the topology of a robot. Integers and names, not to be changed; every float is in `model.params`.

Users see bodies: each has one joint that connects it to its parent. The physics sees links: bodies joined by fixed
joints are one link, and link 0 is the world.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, near
from ..physics.joints.joint import Joint
from ..physics.joints.table import JOINTS, KIND
from .findings import Finding, Report
from .hulls import Hull
from .options import Options
from .params import EXTRAS, FIELDS, Params, param_slots
from .sealed import Sealed
from .state import State
from .transmissions import Line, Tendon, Transmission, lines_of
from .visuals import Mount, Visual

# what an actuator's gain multiplies: the control, its distance to the length, or to the velocity
# what a control is: a force, or where or how fast a joint shall be; the last two are servo motors, which hold a velocity as
# constraints do
ACTUATORS = ("force", "position", "velocity", "servo", "speed")
DIRECT, POSITION, VELOCITY, SERVO, SPEED = range(5)
# how an activation follows the control
DYNAMICS = ("integrator", "filter", "filterexact", "muscle")
# shapes for contact, in MuJoCo's order: the normal of a contact points from the earlier to the later one
PLANE, HEIGHT_FIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, POINTS = range(8)
SHAPES = ("plane", "height_field", "sphere", "capsule", "ellipsoid", "cylinder", "box", "points")

REPLACED = ("params", "options", "visuals", "name")  # what `Model.replace` takes
OPTIONS = tuple(f.name for f in fields(Options))
RESERVED = ("zero", "reference")  # keyframes that every model has by itself
DEFAULTS = ("home", "reference", "zero")  # keyframes, the first of which a reset takes


@dataclass(frozen=True)
class Links:
    """The tree the physics runs on, as integer tables. Row 0 is the world."""

    parent: np.ndarray
    kind: np.ndarray
    q: np.ndarray  # first entry of the link's joint in q
    v: np.ndarray  # first entry in v
    nv: np.ndarray  # how many
    tree: np.ndarray  # which tree the link belongs to; 0 for the world
    body: np.ndarray  # the body whose joint this is, counted from 1
    of_body: np.ndarray  # link of each body, counted from 1 (row 0: the world)
    trees: int


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles that rays meet: vertices (n, 3) in the axes of the shape, m, and faces (n, 3), their corners."""

    vertices: np.ndarray
    faces: np.ndarray

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Surface)
            and np.array_equal(self.vertices, other.vertices)
            and np.array_equal(self.faces, other.faces)
        )

    def __hash__(self) -> int:
        return hash((self.vertices.tobytes(), self.faces.tobytes()))


@dataclass(frozen=True)
class Shapes:
    """Shapes for contact and which of them may touch."""

    names: tuple[str, ...] = ()
    kind: tuple[int, ...] = ()
    body: tuple[int, ...] = ()  # -1 is the world
    vertices: tuple[tuple[int, int], ...] = ()  # first vertex and how many
    hulls: tuple[Hull, ...] = ()  # how these hang together
    grids: tuple[tuple[int, int, int], ...] = ()  # of a height field: first height, rows, columns
    masks: tuple[tuple[int, int], ...] = ()  # group and touches
    condim: tuple[int, ...] = ()  # directions in which contact acts: 1, 3, 4 or 6
    priority: tuple[int, ...] = ()  # the higher of a pair decides alone
    gap: tuple[float, ...] = ()  # m, how far beyond their margins adhesion acts; those of a pair add up
    pairs: tuple[tuple[int, int], ...] = ()  # candidates, filtered and in the order of their kinds
    excluded: tuple[tuple[int, int], ...] = ()  # bodies that never touch, -1 is the world
    included: tuple[tuple[int, int, int], ...] = ()  # shapes that touch with numbers of their own, and their condim
    included_gap: tuple[float, ...] = ()  # m, as gap, of these
    limited: tuple[int, ...] = ()  # bodies whose joint has a limit or dry friction
    parents_touch: bool = False  # whether bodies touch those that carry them, unless they have a rule of their own
    touching_parents: tuple[int, ...] = ()  # bodies that do
    surfaces: tuple[Surface | None, ...] = ()  # of a convex hull, the mesh that rays meet in its place
    unseen: tuple[int, ...] = ()  # shapes that rays pass through
    wet: tuple[int, ...] = ()  # shapes that a fluid feels as ellipsoids
    measured: bool = False  # whether pairs are asked how far apart they are, and nothing else

    @cached_property
    def pair_array(self) -> np.ndarray:
        """`pairs` as an array, (n, 2)."""
        return np.array(self.pairs, int).reshape(-1, 2)

    @cached_property
    def included_number(self) -> dict[frozenset[int], int]:
        """Where in `included` a pair is, the first time."""
        return {frozenset((a, b)): k for k, (a, b, _) in reversed(list(enumerate(self.included)))}

    def pair_condim(self, a: int, b: int) -> int:
        """In how many directions contact of two shapes acts: an explicit pair says, or the shape of higher priority, or the
        larger number of the two."""
        own = self.included_number.get(frozenset((a, b)))
        if own is not None:
            return self.included[own][2]
        if self.priority[a] != self.priority[b]:
            return self.condim[a if self.priority[a] > self.priority[b] else b]
        return max(self.condim[a], self.condim[b])

    def pair_condims(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The same of many pairs."""
        condim, priority = np.array(self.condim, int), np.array(self.priority, int)
        first, second = condim[a], condim[b]
        alone = np.where(priority[a] > priority[b], first, second)
        out = np.where(priority[a] == priority[b], np.maximum(first, second), alone)
        own = self.own_numbers(a, b)
        return np.where(own >= 0, np.array([*(d for *_, d in self.included), 0])[own], out)

    def own_numbers(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Where in `included` each of many pairs is; -1: nowhere."""
        size = len(self.names)
        known = {min(pair) * size + max(pair): k for pair, k in self.included_number.items()}
        codes = np.array(sorted(known), int)
        wanted = np.minimum(a, b) * size + np.maximum(a, b)
        at = np.searchsorted(codes, wanted)
        numbers = np.array([*(known[code] for code in codes.tolist()), -1], int)
        return np.where(np.append(codes, -1)[at] == wanted, numbers[at], -1)


class Equality(NamedTuple):
    """What is held. kind: "connect" and "weld" hold two bodies (-1: the world), "joint" two joints and "tendon" two tendons
    (second -1: one alone)."""

    name: str
    kind: str
    a: int
    b: int


class Activated(NamedTuple):
    """A state of an actuator. actuator: its index. dynamics: one of DYNAMICS. early: whether its force has the activation at
    the end of the step."""

    actuator: int
    dynamics: str
    early: bool = False


class Keyframe(NamedTuple):
    """A state and controls. mocap: position and quaternion of each mocap body, one after the other."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    act: np.ndarray
    mocap: np.ndarray


class Zone(NamedTuple):
    """Where a sensor feels, about its site. shape: sphere, capsule, ellipsoid, cylinder or box; size: as MuJoCo's."""

    shape: str
    size: tuple[float, float, float]


class ContactSide(NamedTuple):
    """One side of what a sensor reads between two. what: "shape", "body", "subtree", a body with all it carries, or "" for
    anything; which: its index (-1: the world)."""

    what: str = ""
    which: int = -1


class Stage(NamedTuple):
    """Where a distance is measured. model: of the shapes of both sides alone; shapes: which of the robot's these are."""

    model: Model
    shapes: tuple[int, ...]


class Sensor(NamedTuple):
    """What `sim.sensors` reads. kind: one of `artigrad.sensors.KINDS`; on: index of the joint, site, body, tendon or actuator
    it reads; ref: of the site that a frame is seen from (-1: the world); cutoff: the largest reading (0: any); zone: of
    touch, contact and insidesite. data: which numbers a rangefinder or contact sensor gives; between: the two sides of
    contacts or of a distance; reduce, num: which contacts are given, and how many at most; stage: of a distance."""

    name: str
    kind: str
    on: int
    ref: int = -1
    cutoff: float = 0.0
    zone: Zone | None = None
    data: tuple[str, ...] = ()
    between: tuple[ContactSide, ContactSide] = (ContactSide(), ContactSide())
    reduce: str = "none"
    num: int = 1
    stage: Stage | None = None


class Model(Sealed):
    """A robot, or several: bodies, joints, sites and actuators by name, and their default parameters.

    Body i is moved by joint i; `parent[i]` is a body index or -1 for the world. Built by `ModelBuilder` or `ag.load`.

    nq, nv, na, nu: lengths of q, v, act and u; nb, ns: how many bodies and sites there are. bodies, joints, sites, actuators:
    names, in the order of their rows in `params`. joint_type: of each joint. joint_q, joint_v: where its coordinates start in
    q and its velocities in v. keyframes: (q, v, u, act, mocap) by name. reference: q in which the weights of constraints are
    derived, MuJoCo's qpos0. mocap: bodies that are where params put them.
    lifting: joints whose actuators compensate weight. shapes: what may touch, with its names. sensors: what `sim.sensors`
    reads. tendons: what pulls along a path or couples joints; transmissions: what each actuator acts on; activations: whose
    state `act` is; muscles: actuators that are one. params: the default parameters.

    options: what a Simulator starts from. visuals: what bodies look like. cameras: where cameras are, for `artigrad.camera`. Of
    a loaded file, unsupported: what is not simulated; notes: what is simulated differently, such as another integrator; print
    them to read them.

    Attributes cannot be set: `replace` makes a copy with other parameters, options, visuals or another name.
    """

    CALLED = "a Model"

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        joints: Sequence[str],
        parent: Sequence[int],
        joint_type: Sequence[str],
        sites: Sequence[str],
        site_body: Sequence[int],
        actuators: Sequence[str],
        transmissions: Sequence[Transmission],
        actuator_kind: Sequence[int],
        values: dict[str, Any],
        shapes: Shapes,
        keyframes: dict[str, Keyframe],
        *,
        mocap: Sequence[int] = (),
        lifting: Sequence[int] = (),
        reference: Sequence[float] = (),
        activations: Sequence[Activated] = (),
        muscles: Sequence[int] = (),
        equalities: Sequence[Equality] = (),
        tendons: Sequence[Tendon] = (),
        stopped_tendons: Sequence[int] = (),
        sensors: Sequence[Sensor] = (),
        visuals: Sequence[Visual] = (),
        cameras: Sequence[Mount] = (),
        options: Options | None = None,
        unsupported: Sequence[Finding] = (),
        notes: Sequence[Finding] = (),
    ):
        self.name = name
        self.bodies, self.joints, self.sites, self.actuators = map(tuple, (bodies, joints, sites, actuators))
        self.parent, self.joint_type = tuple(parent), tuple(joint_type)
        self.site_body, self.mocap, self.lifting = tuple(site_body), tuple(mocap), tuple(lifting)
        self.transmissions, self.actuator_kind = tuple(transmissions), tuple(actuator_kind)
        self.activations, self.muscles = tuple(activations), tuple(muscles)
        self.na = len(self.activations)
        sizes = np.array([(JOINTS[t].nq, JOINTS[t].nv) for t in joint_type]).reshape(-1, 2)
        ends = np.cumsum(sizes, axis=0)
        self.nb, self.ns, self.nu = len(self.bodies), len(self.sites), len(self.actuators)
        self.nq, self.nv = (int(x) for x in ends[-1]) if self.nb else (0, 0)
        self.joint_q = tuple(int(x) for x in ends[:, 0] - sizes[:, 0])
        self.joint_v = tuple(int(x) for x in ends[:, 1] - sizes[:, 1])
        self.shapes, self.sensors, self.visuals = shapes, tuple(sensors), tuple(visuals)
        self.cameras = tuple(cameras)
        self.options = Options() if options is None else options
        self.unsupported, self.notes = Report(unsupported), Report(notes)
        self.equalities = tuple(equalities)
        self.tendons, self.stopped_tendons = (
            tuple(tendons),
            tuple(stopped_tendons),
        )  # those with a limit or dry friction
        counts = {"body": self.nb, "site": self.ns, "actuator": self.nu, "shape": len(shapes.names), "dof": self.nv}
        counts |= {"vertex": sum(n for _, n in shapes.vertices), "pair": len(shapes.included)}
        counts |= {"wet": len(shapes.wet)}
        counts |= {"height": sum(rows * cols for _, rows, cols in shapes.grids)}
        counts |= {"equality": len(self.equalities), "tendon": len(self.tendons)}
        counts |= {"piece": sum(len(t.pieces) for t in self.tendons)}
        counts |= {"activation": self.na, "muscle": len(self.muscles)}
        self.param_slots, self.param_size = param_slots(counts)
        self.params = Params(self, np.zeros(self.param_size)).replace(**values)
        zero = Keyframe(self._zero_q(), np.zeros(self.nv), np.zeros(self.nu), np.zeros(self.na), self._mocap_poses())
        self.reference = self._reference_q(reference)
        at_reference = zero._replace(q=self.reference.copy())
        self.keyframes = {"zero": zero, "reference": at_reference, **keyframes}
        self._seal()

    def _remedy(self, name: str) -> str:
        """Simulators, kernels and caches are made of a model as it is."""
        if name in REPLACED:
            return f"model.replace({name}=...) makes another one"
        if name in FIELDS:
            return f"it is a parameter; model.params.replace({name}=...) makes others, to pass as params= or to model.replace"
        if name in OPTIONS:
            return f"it is an option; Simulator(model, {name}=...), or model.replace(options=...)"
        known = hasattr(type(self), name) or name in self.__dict__
        return "ag.edit(model) and ModelBuilder make other models" if known else ""

    def replace(
        self,
        *,
        params: Params | None = None,
        options: Options | None = None,
        visuals: Sequence[Visual] | None = None,
        name: str | None = None,
    ) -> Model:
        """Return a copy with other default parameters (one set, of this model), options, visuals or another name."""
        kinds = (("params", params, Params), ("options", options, Options), ("name", name, str))
        for what, given, kind in kinds:
            if given is not None and not isinstance(given, kind):
                raise InputError(f"{what} of a Model is {kind.__name__}, not {type(given).__name__}")
        if params is not None and (params.model is not self or params.batch is not None):
            raise InputError(
                f"params of a Model are one set of its own: take those of '{self.name}', model.params.replace"
            )
        if visuals is not None and not (
            isinstance(visuals, list | tuple) and all(isinstance(v, Visual) for v in visuals)
        ):
            raise InputError("visuals are a sequence of ag.Visual")
        kept = params or self.params
        out = Model.__new__(type(self))
        derived = {
            key for kind in type(self).__mro__ for key, x in vars(kind).items() if isinstance(x, cached_property)
        }
        out.__dict__ |= {key: x for key, x in self.__dict__.items() if key not in derived}
        out.__dict__["params"] = Params(out, kept.flat, checked=kept.checked)
        out.__dict__["keyframes"] = dict(self.keyframes)
        changed = {"options": options, "visuals": None if visuals is None else tuple(visuals), "name": name}
        out.__dict__ |= {key: x for key, x in changed.items() if x is not None}
        return out

    def _zero_q(self) -> np.ndarray:
        """All joints at zero; free bodies where they were placed."""
        q = np.zeros(self.nq)
        for i, a in enumerate(self.joint_q):
            joint = self.joint_kind(i)
            placed = (*self.params.position[i], *self.params.rotation[i])
            q[a : a + joint.nq] = placed if joint.floating else joint.zero
        return q

    def _reference_q(self, reference: Sequence[float]) -> np.ndarray:
        """The reference pose: joints with one axis at these positions, others as placed."""
        q = self._zero_q()
        for i, x in enumerate(reference):
            if self.joint_kind(i).axial:
                q[self.joint_q[i]] = x
        q.setflags(write=False)
        return q

    def _mocap_poses(self) -> np.ndarray:
        """Where mocap bodies are: position and quaternion of each."""
        own, p = list(self.mocap), self.params
        return np.concatenate([p.position[own], p.rotation[own]], axis=1).ravel()

    def shape_fluid(self, k: int) -> tuple[np.ndarray, ...] | None:
        """How a fluid feels shape k, for the builder; None if not as an ellipsoid."""
        if k not in self.shapes.wet:
            return None
        n, p = self.shapes.wet.index(k), self.params
        return p.fluid_coefficients[n], p.virtual_mass[n], p.virtual_inertia[n]

    def joint_kind(self, i: int) -> Joint:
        """The record of joint i: its sizes and what it can have."""
        return JOINTS[self.joint_type[i]]

    def keyframe(self, name: str | None = None) -> State:
        """The named state; without a name the first there is of 'home', 'reference' (how a file places the robot) and
        'zero' (all joints at zero)."""
        found = self._keyframe(name)
        return State(found.q.copy(), found.v.copy(), found.act.copy())

    @property
    def default_keyframe(self) -> str:
        """The name of the one that a reset takes."""
        return next(k for k in DEFAULTS if k in self.keyframes)

    def keyframe_control(self, name: str | None = None) -> np.ndarray:
        """The controls of the named keyframe."""
        return self._keyframe(name).u.copy()

    def keyframe_params(self, name: str | None = None) -> Params:
        """The default parameters with mocap bodies where the named keyframe has them."""
        places = self._keyframe(name).mocap.reshape(-1, 7)
        position, rotation = np.array(self.params.position), np.array(self.params.rotation)
        position[list(self.mocap)], rotation[list(self.mocap)] = places[:, :3], places[:, 3:]
        return self.params.replace(position=position, rotation=rotation)

    def _keyframe(self, name: str | None) -> Keyframe:
        name = self.default_keyframe if name is None else name
        if not isinstance(name, str) or name not in self.keyframes:
            raise InputError(f"'{self.name}' has no keyframe '{name}'; {near(name, tuple(self.keyframes))}")
        return self.keyframes[name]

    def body(self, name: str) -> int:
        """The index of a body."""
        return self._index(name, self.bodies, "body")

    def joint(self, name: str) -> int:
        """The index of a joint: that of the body it moves."""
        return self._index(name, self.joints, "joint")

    def site(self, name: str) -> int:
        """The index of a site."""
        return self._index(name, self.sites, "site")

    def actuator(self, name: str) -> int:
        """The index of an actuator: its place in u."""
        return self._index(name, self.actuators, "actuator")

    def camera(self, name: str) -> Mount:
        """The camera of this name."""
        names = tuple(c.name for c in self.cameras)
        return self.cameras[self._index(name, names, "camera fixed to a body")]

    def tendon(self, name: str) -> int:
        """The index of a tendon: its row in params.tendon_stiffness and the like."""
        return self._index(name, tuple(t.name for t in self.tendons), "tendon")

    def shape(self, name: str) -> int:
        """The index of a shape: its row in params.friction, params.shape_size and the like."""
        return self._index(name, tuple(self.shapes.names), "shape")

    def sensor(self, name: str) -> int:
        """The index of a sensor: its place in `sensors`."""
        return self._index(name, tuple(s.name for s in self.sensors), "sensor")

    def equality(self, name: str) -> int:
        """The index of an equality: its row in params.equality_anchor and the like."""
        return self._index(name, tuple(e.name for e in self.equalities), "equality")

    def _index(self, name: str, names: tuple[str, ...], what: str) -> int:
        try:
            return names.index(name)
        except ValueError:
            raise InputError(f"'{self.name}' has no {what} '{name}'; {near(name, names)}") from None

    @property
    def has_contact(self) -> bool:
        """Whether a step may have rows: contacts, limits, dry friction, equalities, servo motors."""
        some = self.shapes.pairs or self.shapes.limited or self.equalities or self.stopped_tendons
        return bool(some or self.servos)

    @cached_property
    def servos(self) -> tuple[int, ...]:
        """The actuators that are servo motors."""
        return tuple(j for j, kind in enumerate(self.actuator_kind) if kind in (SERVO, SPEED))

    @cached_property
    def extras(self) -> frozenset[str]:
        """Forces that not every model has, as built: "compensation" of weight, a "fluid", gains of actuators with a "slope",
        a "spring" that is not linear or of a ball or free joint, a tendon with a "curve", motors that are a "servo",
        "activation" of actuators, "muscle"s, "adhesion"; limits of "effort", and "lifting" of weight within these; a
        "surface" that moves by itself."""
        found = {what for what, names in EXTRAS.items() if any(self.params[n].any() for n in names)}
        if any(k and not self.joint_kind(i).axial for i, k in enumerate(self.params.stiffness)):
            found.add("spring")
        if "fluid" in found and self.shapes.wet:
            found.add("ellipsoid")
        if "compensation" in found and self.lifting:
            found.add("lifting")
        if self.nu and ("lifting" in found or np.isfinite(self.params.effort_limit).any()):
            found.add("effort")
        if any(on.kind == "body" for on in self.transmissions):
            found.add("adhesion")
        parts = {"servo": self.servos, "activation": self.activations, "muscle": self.muscles}
        return frozenset(found | {what for what, own in parts.items() if own})

    @property
    def actuator_joint(self) -> tuple[int, ...]:
        """The joint that each actuator acts on, or -1."""
        return tuple(t.a if t.kind.startswith("joint") else -1 for t in self.transmissions)

    @cached_property
    def lines(self) -> tuple[tuple[Line, ...], tuple[int, ...]]:
        """Tendons and what actuators act along where it is not one joint axis; and the line of each actuator, from 1."""
        lines, of_actuator = lines_of(self)
        return tuple(lines), tuple(of_actuator)

    @cached_property
    def links(self) -> Links:
        """The tree of moving links, derived from bodies and joints."""
        moving = [t in KIND for t in self.joint_type]
        above: list[int] = []  # the nearest body outwards of the world that moves, itself included; -1 is the world
        depth: list[int] = []
        for i, p in enumerate(self.parent):
            inner, inner_depth = (-1, 0) if p < 0 else (above[p], depth[p])
            above.append(i if moving[i] else inner)
            depth.append(inner_depth + moving[i])
        # by depth, so that neighbours in a loop belong to different branches and need not wait for each other
        order = sorted((i for i in range(self.nb) if moving[i]), key=lambda i: depth[i])
        link = {-1: 0} | {i: k for k, i in enumerate(order, start=1)}
        rows: list[tuple[int, ...]] = [(0,) * 7]
        trees = 0
        for i in order:
            p = self.parent[i]
            parent = link[above[p]] if p >= 0 else 0
            trees += parent == 0
            tree = trees if parent == 0 else rows[parent][5]
            kind, nv = KIND[self.joint_type[i]], self.joint_kind(i).nv
            rows.append((parent, kind, self.joint_q[i], self.joint_v[i], nv, tree, i + 1))
        parent_, kind, q, v, nv, tree_, body = np.array(rows, np.int32).T.copy()
        of_body = np.array([0, *(link[a] for a in above)], np.int32)
        return Links(parent_, kind, q, v, nv, tree_, body, of_body, trees)

    def _repr_html_(self) -> str:
        """A table of the joints, for notebooks."""
        heads = ("body", "on", "joint", "type", "limit", "mass (kg)")
        rows = []
        for i, body in enumerate(self.bodies):
            on = "world" if self.parent[i] < 0 else self.bodies[self.parent[i]]
            low, high = self.params.limit[i]
            limit = f"{low:.4g} to {high:.4g}" if np.isfinite((low, high)).any() else ""
            mass = f"{self.params.mass[i]:.4g}" if self.params.mass[i] else ""
            rows.append((body, on, self.joints[i], self.joint_type[i], limit, mass))
        head = "".join(f"<th>{name}</th>" for name in heads)
        lines = ("".join(f"<td>{html.escape(str(x))}</td>" for x in row) for row in rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<p>{html.escape(repr(self))}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.nb} bodies, nq={self.nq}, nv={self.nv}, nu={self.nu})"
