"""Model: topology of a robot, immutable integers and names; all real parameters are in `model.params`.

Users work with bodies: each has one joint that connects it to its parent. The physics works with links: bodies
connected by fixed joints are one link, and link 0 is the world.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..deprecation import renamed
from ..errors import InputError, near
from ..physics.joints.joint import Joint
from ..physics.joints.table import JOINTS, KIND
from .findings import Finding, Report
from .hulls import Hull
from .options import Options
from .params import EXTRAS, FIELDS, Params, param_slots
from .sealed import Sealed
from .state import State
from .transmissions import Line, Tendon, Transmission, line_features, lines_of
from .visuals import Mount, Visual

# input of a gain: the control, its distance to the length, or to the velocity; meaning of a control: a force, or a
# target position or
# velocity. The last two are servo motors, which track a velocity as constraints do.
ACTUATORS = ("force", "position", "velocity", "servo", "speed")
DIRECT, POSITION, VELOCITY, SERVO, SPEED = range(5)
# dynamics of activations
DYNAMICS = ("integrator", "filter", "filterexact", "muscle")
# collision shapes, in MuJoCo's order: the normal of a contact points from the earlier to the later one
PLANE, HEIGHT_FIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, POINTS = range(8)
SHAPES = ("plane", "height_field", "sphere", "capsule", "ellipsoid", "cylinder", "box", "points")

REPLACED = ("params", "options", "visuals", "name")  # arguments of `Model.replace`
OPTIONS = tuple(f.name for f in fields(Options))
RESERVED = ("zero", "reference")  # keyframes that every model has
DEFAULTS = ("home", "reference", "zero")  # default keyframes, in order of priority


@dataclass(frozen=True)
class Links:
    """Kinematic tree of the physics, as integer tables. Row 0 is the world."""

    parent: np.ndarray
    kind: np.ndarray
    q: np.ndarray  # first entry of the link's joint in q
    v: np.ndarray  # first entry in v
    nv: np.ndarray  # number of velocities
    tree: np.ndarray  # tree of the link; 0 for the world
    body: np.ndarray  # body of the link's joint, counted from 1
    of_body: np.ndarray  # link of each body, counted from 1 (row 0: the world)
    trees: int


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangle mesh for ray casting: vertices (n, 3) in the axes of the shape, m, and faces (n, 3)."""

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
    """Collision shapes and candidate pairs."""

    names: tuple[str, ...] = ()
    kind: tuple[int, ...] = ()
    body: tuple[int, ...] = ()  # -1 is the world
    vertices: tuple[tuple[int, int], ...] = ()  # first vertex and number of vertices
    hulls: tuple[Hull, ...] = ()  # their connectivity
    grids: tuple[tuple[int, int, int], ...] = ()  # height field: first height, rows, columns
    masks: tuple[tuple[int, int], ...] = ()  # collision bit masks: group and touches
    condim: tuple[int, ...] = ()  # contact dimension: 1, 3, 4 or 6
    priority: tuple[int, ...] = ()  # the shape of higher priority alone sets the contact parameters
    gap: tuple[float, ...] = ()  # m, range of adhesion beyond the margin; those of a pair add up
    pairs: tuple[tuple[int, int], ...] = ()  # candidate pairs, filtered and in the order of their types
    excluded: tuple[tuple[int, int], ...] = ()  # pairs of bodies excluded from contact, -1 is the world
    included: tuple[tuple[int, int, int], ...] = ()  # explicit pairs, which have their own parameters, and their condim
    included_gap: tuple[float, ...] = ()  # m, as gap, of explicit pairs
    limited: tuple[int, ...] = ()  # bodies whose joint has a limit or dry friction
    parents_touch: bool = False  # True if bodies collide with their parents, unless excluded
    touching_parents: tuple[int, ...] = ()  # bodies that collide with their parents
    surfaces: tuple[Surface | None, ...] = ()  # of a convex hull, the mesh that rays intersect instead
    unseen: tuple[int, ...] = ()  # shapes ignored by rays
    wet: tuple[int, ...] = ()  # shapes treated as ellipsoids in a fluid

    @cached_property
    def pair_array(self) -> np.ndarray:
        """`pairs` as an array, (n, 2)."""
        return np.array(self.pairs, int).reshape(-1, 2)

    @cached_property
    def included_number(self) -> dict[frozenset[int], int]:
        """Index into `included` of each explicit pair, the first occurrence."""
        return {frozenset((a, b)): k for k, (a, b, _) in reversed(list(enumerate(self.included)))}

    def pair_condim(self, a: int, b: int) -> int:
        """Contact dimension of two shapes: that of an explicit pair, of the shape of higher priority, or the larger one."""
        own = self.included_number.get(frozenset((a, b)))
        if own is not None:
            return self.included[own][2]
        if self.priority[a] != self.priority[b]:
            return self.condim[a if self.priority[a] > self.priority[b] else b]
        return max(self.condim[a], self.condim[b])

    def pair_condims(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Contact dimensions of many pairs, see `pair_condim`."""
        condim, priority = np.array(self.condim, int), np.array(self.priority, int)
        first, second = condim[a], condim[b]
        alone = np.where(priority[a] > priority[b], first, second)
        out = np.where(priority[a] == priority[b], np.maximum(first, second), alone)
        own = self.own_numbers(a, b)
        return np.where(own >= 0, np.array([*(d for *_, d in self.included), 0])[own], out)

    def own_numbers(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Index into `included` of each of many pairs; -1 if absent."""
        size = len(self.names)
        known = {min(pair) * size + max(pair): k for pair, k in self.included_number.items()}
        codes = np.array(sorted(known), int)
        wanted = np.minimum(a, b) * size + np.maximum(a, b)
        at = np.searchsorted(codes, wanted)
        numbers = np.array([*(known[code] for code in codes.tolist()), -1], int)
        return np.where(np.append(codes, -1)[at] == wanted, numbers[at], -1)


class Equality(NamedTuple):
    """Equality constraint.

    Attributes:
        name: Name.
        kind: "connect" or "weld" (two bodies), "joint" (two joints) or "tendon" (two tendons).
        a, b: Indices; a body -1 is the world, a second joint or tendon -1 is a constant.
    """

    name: str
    kind: str
    a: int
    b: int


@renamed(early="actearly")
class Activated(NamedTuple):
    """Activation state of an actuator.

    Attributes:
        actuator: Its index.
        dynamics: One of DYNAMICS.
        actearly: True if its force uses the activation at the end of the step.
    """

    actuator: int
    dynamics: str
    actearly: bool = False


class Keyframe(NamedTuple):
    """State and controls. mocap: position and quaternion of each mocap body, concatenated."""

    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    act: np.ndarray
    mocap: np.ndarray


class Zone(NamedTuple):
    """Volume of a touch sensor, about its site. shape: sphere, capsule, ellipsoid, cylinder or box; size: as MuJoCo's."""

    shape: str
    size: tuple[float, float, float]


class ContactSide(NamedTuple):
    """One side of a contact or distance sensor.

    Attributes:
        what: "shape", "body", "subtree" (a body with its descendants), or "" for any.
        which: Index; -1: the world.
    """

    what: str = ""
    which: int = -1


class Sensor(NamedTuple):
    """Sensor, read by `sim.sensors`.

    Attributes:
        name: Name.
        kind: One of `artigrad.sensors.KINDS`.
        on: Index of its joint, site, body, tendon or actuator.
        ref: Index of the reference site of a frame sensor; -1: the world.
        cutoff: Largest reading; 0: unlimited.
        zone: Volume of touch, contact and insidesite sensors.
        data: Fields returned by a rangefinder or contact sensor.
        between: Both sides of contacts or of a distance.
        reduce, num: Selection of contacts, and their largest number.
    """

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


@renamed(lifting="actuator_gravcomp", extras="features")
class Model(Sealed):
    """A robot, or several: bodies, joints, sites and actuators by name, and their default parameters.

    Body i is moved by joint i; `parent[i]` is a body index or -1 for the world. Built by `ModelBuilder` or `ag.load`.
    Attributes cannot be set: `replace` makes a copy with other parameters, options, visuals or another name.

    Attributes:
        nq, nv, na, nu: Lengths of q, v, act and u.
        nb, ns: Numbers of bodies and sites.
        bodies, joints, sites, actuators: Names, in the order of their rows in `params`.
        joint_type: Type of each joint.
        joint_q, joint_v: First entry of each joint's coordinates in q, and of its velocities in v.
        keyframes: (q, v, u, act, mocap) by name.
        reference: q in which the inverse weights of constraints are computed, MuJoCo's qpos0.
        mocap: Bodies placed by params.
        actuator_gravcomp: Joints whose actuators compensate gravity.
        shapes: Collision shapes.
        sensors: Sensors, read by `sim.sensors`.
        tendons: Tendons.
        transmissions: Target of each actuator.
        activations: Actuators whose states are in `act`.
        muscles: Actuators that are muscles.
        params: Default parameters.
        options: Default options of a Simulator.
        visuals: Visual shapes.
        cameras: Cameras, for `artigrad.camera`.
        unsupported: Features of the loaded file that are not simulated; printable.
        notes: Features that are simulated differently, such as another integrator; printable.
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
        actuator_gravcomp: Sequence[int] = (),
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
        self.site_body, self.mocap = tuple(site_body), tuple(mocap)
        self.actuator_gravcomp = tuple(actuator_gravcomp)
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
        """Return the way to change an attribute: simulators, kernels and caches depend on the model as it is."""
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
                f"params of a Model are one set of this model: take those of '{self.name}', model.params.replace"
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
        """All joints at zero; free bodies at their initial pose."""
        q = np.zeros(self.nq)
        for i, a in enumerate(self.joint_q):
            joint = self.joint_kind(i)
            placed = (*self.params.position[i], *self.params.rotation[i])
            q[a : a + joint.nq] = placed if joint.floating else joint.zero
        return q

    def _reference_q(self, reference: Sequence[float]) -> np.ndarray:
        """Reference pose: axial joints at these positions, others as placed."""
        q = self._zero_q()
        for i, x in enumerate(reference):
            if self.joint_kind(i).axial:
                q[self.joint_q[i]] = x
        q.setflags(write=False)
        return q

    def _mocap_poses(self) -> np.ndarray:
        """Position and quaternion of each mocap body."""
        own, p = list(self.mocap), self.params
        return np.concatenate([p.position[own], p.rotation[own]], axis=1).ravel()

    def shape_fluid(self, k: int) -> tuple[np.ndarray, ...] | None:
        """Return the fluid coefficients of shape k, for the builder; None if it is not treated as an ellipsoid."""
        if k not in self.shapes.wet:
            return None
        n, p = self.shapes.wet.index(k), self.params
        return p.fluid_coefficients[n], p.virtual_mass[n], p.virtual_inertia[n]

    def joint_kind(self, i: int) -> Joint:
        """Return the record of joint i: its sizes and features."""
        return JOINTS[self.joint_type[i]]

    def keyframe(self, name: str | None = None) -> State:
        """Return the named state; by default the first of 'home', 'reference' (the pose in the file) and 'zero' (all
        joints at zero)."""
        found = self._keyframe(name)
        return State(found.q.copy(), found.v.copy(), found.act.copy())

    @property
    def default_keyframe(self) -> str:
        """Name of the default keyframe."""
        return next(k for k in DEFAULTS if k in self.keyframes)

    def keyframe_control(self, name: str | None = None) -> np.ndarray:
        """Return the controls of the named keyframe."""
        return self._keyframe(name).u.copy()

    def keyframe_params(self, name: str | None = None) -> Params:
        """Return the default parameters with mocap bodies as in the named keyframe."""
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
        """Return the index of a body."""
        return self._index(name, self.bodies, "body")

    def joint(self, name: str) -> int:
        """Return the index of a joint: that of the body it moves."""
        return self._index(name, self.joints, "joint")

    def site(self, name: str) -> int:
        """Return the index of a site."""
        return self._index(name, self.sites, "site")

    def actuator(self, name: str) -> int:
        """Return the index of an actuator in u."""
        return self._index(name, self.actuators, "actuator")

    def camera(self, name: str) -> Mount:
        """Return the camera of this name."""
        names = tuple(c.name for c in self.cameras)
        return self.cameras[self._index(name, names, "camera fixed to a body")]

    def tendon(self, name: str) -> int:
        """Return the index of a tendon: its row in params.tendon_stiffness etc."""
        return self._index(name, tuple(t.name for t in self.tendons), "tendon")

    def shape(self, name: str) -> int:
        """Return the index of a shape: its row in params.friction, params.shape_size etc."""
        return self._index(name, tuple(self.shapes.names), "shape")

    def sensor(self, name: str) -> int:
        """Return the index of a sensor in `sensors`."""
        return self._index(name, tuple(s.name for s in self.sensors), "sensor")

    def equality(self, name: str) -> int:
        """Return the index of an equality: its row in params.equality_anchor etc."""
        return self._index(name, tuple(e.name for e in self.equalities), "equality")

    def _index(self, name: str, names: tuple[str, ...], what: str) -> int:
        try:
            return names.index(name)
        except ValueError:
            raise InputError(f"'{self.name}' has no {what} '{name}'; {near(name, names)}") from None

    @property
    def has_contact(self) -> bool:
        """True if a step can have constraint rows: contacts, limits, dry friction, equalities, servo motors."""
        some = self.shapes.pairs or self.shapes.limited or self.equalities or self.stopped_tendons
        return bool(some or self.servos)

    @cached_property
    def servos(self) -> tuple[int, ...]:
        """Indices of actuators that are servo motors."""
        return tuple(j for j, kind in enumerate(self.actuator_kind) if kind in (SERVO, SPEED))

    @cached_property
    def features(self) -> frozenset[str]:
        """Optional forces and transmissions of the model as built; kernels contain code for these alone.

        compensation        gravity compensation
        actuator_gravcomp   gravity compensation by actuators
        fluid, ellipsoid    fluid; shapes treated as ellipsoids in it
        spring, curve       nonlinear or rotational springs; nonlinear springs of tendons
        slope               gains that depend on length and velocity
        effort              effort limits
        servo               servo motors
        activation, muscle  activations of actuators; muscles
        adhesion, sticky    adhesion actuators; adhesive contacts
        surface             surface velocities
        and features of joints (`Joint.feature`).

        Features of transmissions: see `transmissions.line_features`.
        """
        found = {what for what, names in EXTRAS.items() if any(self.params[n].any() for n in names)}
        if any(k and not self.joint_kind(i).axial for i, k in enumerate(self.params.stiffness)):
            found.add("spring")
        if "fluid" in found and self.shapes.wet:
            found.add("ellipsoid")
        if "compensation" in found and self.actuator_gravcomp:
            found.add("actuator_gravcomp")
        if self.nu and ("actuator_gravcomp" in found or np.isfinite(self.params.effort_limit).any()):
            found.add("effort")
        if any(on.kind == "body" for on in self.transmissions):
            found.add("adhesion")
        parts = {"servo": self.servos, "activation": self.activations, "muscle": self.muscles}
        found |= {kind.feature for kind in map(self.joint_kind, range(self.nb)) if kind.feature}
        return frozenset(found | {what for what, own in parts.items() if own} | line_features(self))

    @property
    def actuator_joint(self) -> tuple[int, ...]:
        """Joint that each actuator acts on, or -1."""
        return tuple(t.a if t.kind.startswith("joint") else -1 for t in self.transmissions)

    @cached_property
    def lines(self) -> tuple[tuple[Line, ...], tuple[int, ...]]:
        """Transmissions of tendons and of actuators not on axial joints; and the index of each actuator's, from 1."""
        lines, of_actuator = lines_of(self)
        return tuple(lines), tuple(of_actuator)

    @cached_property
    def links(self) -> Links:
        """Tree of moving links, derived from bodies and joints."""
        moving = [t in KIND for t in self.joint_type]
        above: list[int] = []  # nearest moving ancestor of each body, itself included; -1 is the world
        depth: list[int] = []
        for i, p in enumerate(self.parent):
            inner, inner_depth = (-1, 0) if p < 0 else (above[p], depth[p])
            above.append(i if moving[i] else inner)
            depth.append(inner_depth + moving[i])
        # sorted by depth: consecutive links are in different branches and do not depend on each other
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
        """Return a table of the joints, for notebooks."""
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
