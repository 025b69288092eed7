"""ag.edit: a builder with all parts of a model, to add, remove and rename parts, and to attach other models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..arguments import checked_model
from ..errors import ModelError, near, warn
from ..model.findings import Finding
from ..model.model import ACTUATORS, PLANE, RESERVED, ContactSide, Model, Sensor
from ..model.options import HardOptions, Options
from ..model.quaternions import product, rotate
from ..physics.joints.table import JOINTS
from ..physics.sensors.sensor_table import KINDS
from .builder import ACTIVATION_NUMBERS, JOINT_NUMBERS, MUSCLE_NUMBERS, SIDES, SURROUNDED
from .equality_builder import IDENTITY
from .lenient_builder import LenientBuilder
from .shape_builder import WORLD
from .validate import INF, bounds, quaternion, vector

LEFT_OUT = "left out: add one of the merged model"
Rename = Callable[[str, str], str]  # of a part and a name
# fields of a body that belong to its joint, and those of a fixed one
JOINTLESS: dict[str, Any] = {
    "damping": 0.0,
    "armature": 0.0,
    "stiffness": 0.0,
    "spring_reference": 0.0,
    "dry_friction": 0.0,
    "reference": 0.0,
    "velocity_limit": INF,
}
JOINTLESS |= {"stiffness_curve": np.zeros(2), "damping_curve": np.zeros(2)}
# part: attribute of the builder with its records
RECORDS = {part: f"_{part}s" for part in ("site", "shape", "actuator", "tendon", "sensor", "camera", "keyframe")}
RECORDS |= {"body": "_bodies", "equality": "_equalities"}
OWNER = {
    "q": "joint",
    "v": "joint",
    "u": "actuator",
    "act": "actuator",
    "mocap": "body",
}  # of the entries of a keyframe
ACTUATOR_NUMBERS = ("gain", "gain_slope", "bias", "control_range", "force_range", "max_velocity")


@checked_model
def edit(model: Model) -> Editor:
    """Return a builder with all parts of a model; `build()` returns the changed model. The model itself does not change.

            b = ag.edit(ag.load("arm.urdf"))
            b.add_body("payload", "hand", position=(0, 0, 0.1), mass=0.5, inertia=(1e-3, 1e-3, 1e-3))
            b.add_site("tip", "hand", position=(0, 0, 0.2))
            b.remove("joint", "wrist")
            model = b.build()

    It has all methods of `ModelBuilder`, and those of `Editor`. Keyframes are kept; new joints are at zero in them.
    """
    if not isinstance(model, Model):
        raise ModelError(f"ag.edit takes a Model, not {type(model).__name__}")
    p = model.params
    b = Editor(model.name, gravity=p.gravity)
    b.options, b.magnetic, b.parents_touch = model.options, np.array(p.magnetic), model.shapes.parents_touch
    b.set_fluid(density=float(p.density), viscosity=float(p.viscosity), wind=p.wind)
    b.place(model, "", Placement(), whole=True)
    return b


class Placement:
    """Placement of an attached model: body that it is fixed to, and pose of its world there."""

    def __init__(self, body: str = WORLD, position: Any = (0.0, 0.0, 0.0), rotation: Any = IDENTITY):
        self.body = body
        self.position, self.rotation = vector(position, 3, "position"), quaternion(rotation, "rotation")

    def point(self, x: np.ndarray) -> np.ndarray:
        return self.position + rotate(self.rotation, x)

    def turned(self, q: np.ndarray) -> np.ndarray:
        return product(self.rotation, q)


class Editor(LenientBuilder):
    """A `ModelBuilder` that can also attach models, and remove and rename parts.

    Parts are "body", "joint", "shape", "site", "actuator", "tendon", "equality", "sensor", "camera" and "keyframe".
    """

    def __init__(self, name: str, *, gravity: Any = (0.0, 0.0, -9.81)):
        super().__init__(name, gravity=gravity)
        self._defaults: dict[tuple[str, str], np.ndarray] = {}  # default keyframes of attached models
        self._lenient = False

    # -- several models ---------------------------------------------------------------------------------------------------
    @checked_model
    def attach(
        self, model: Model, to: str = WORLD, *, prefix: str, position: Any = (0.0, 0.0, 0.0), rotation: Any = IDENTITY
    ) -> None:
        """Add all parts of another model, with names behind a prefix, such as "gripper/".

        Floors (planes fixed to its world) are omitted, and so are sensors of them and of its whole world (`notes` lists
        them); other parts of its world are kept. Options, gravity and fluid do not change; a warning names those of the
        model that differ. Keyframes are joined by name; a model without one of a name contributes its default one.

        Args:
            model: Model to add.
            prefix: Prefix of its names.
            to: Body or "world" that it is fixed to. A free base is fixed if `to` is a body, its frame at `position`.
            position, rotation: Its world in the frame of that body, m and quaternion w x y z.
        """
        if not isinstance(model, Model):
            raise ModelError(f"attach takes a Model, not {type(model).__name__}")
        if to != WORLD and to not in self._bodies:
            raise ModelError(
                f"'{prefix}' is attached to body '{to}', which does not exist; {near(to, list(self._bodies))}"
            )
        if to != WORLD and model.mocap:
            raise ModelError(
                f"'{model.name}' has mocap body '{model.bodies[model.mocap[0]]}', which is fixed to the world: attach it to "
                "'world', or remove that body first"
            )
        self._compare(model, prefix)
        self.place(model, prefix, Placement(to, position, rotation))

    def _compare(self, model: Model, prefix: str) -> None:
        """Warn of options, gravity and fluid of a model that differ from those here and from the defaults."""
        own, p, standard = self.options.values(), model.params, HardOptions().values() | Options().values()
        theirs = {name: x for name, x in model.options.values().items() if name in own and x != standard[name]}
        pairs: dict[str, Any] = {name: (x, own[name]) for name, x in theirs.items()}
        here = {"gravity": self.gravity, **self._fluid}
        if any(sensor.kind == "magnetometer" for sensor in model.sensors):
            here["magnetic"] = self.magnetic
        pairs |= {name: (p[name], x) for name, x in here.items() if name == "gravity" or p[name].any()}
        others = {name: (x, y) for name, (x, y) in pairs.items() if not np.array_equal(x, y)}
        if others:
            listed = ", ".join(f"{name} {_plain(x)} (here {_plain(y)})" for name, (x, y) in others.items())
            warn(
                f"'{model.name}' ({prefix}) is made for {listed}: what is here counts for all; give both models the same "
                "(model.replace(options=..., params=...)) where that is meant"
            )

    def place(self, robot: Model, prefix: str, at: Placement, *, whole: bool = False) -> None:
        """Add all parts of a model behind a prefix. whole: the builder begins with it, so that its world is the world."""
        self._lenient = True
        self._place(robot, prefix, at, whole)
        self._lenient = False

    def _place(self, robot: Model, prefix: str, at: Placement, whole: bool) -> None:
        p = robot.params

        def body(i: int) -> str:
            return at.body if i < 0 else prefix + robot.bodies[i]

        def pose(i: int, position: Any, rotation: Any) -> dict[str, Any]:
            """Pose of something on body i; parts on the robot's world are moved."""
            position, rotation = np.asarray(position, float), np.asarray(rotation, float)
            moved = {"position": at.point(position), "rotation": at.turned(rotation)}
            return moved if i < 0 else {"position": position, "rotation": rotation}

        self._add_bodies(robot, prefix, at)
        for s, site in enumerate(robot.sites):
            i = robot.site_body[s]
            self.add_site(prefix + site, body(i), **pose(i, p.site_position[s], p.site_rotation[s]))
        self._add_tendons(robot, prefix)
        for j in range(robot.nu):
            self._add_actuator(robot, j, prefix)
        shapes = [k for k, i in enumerate(robot.shapes.body) if i >= 0 or whole or robot.shapes.kind[k] != PLANE]
        self._add_shapes(robot, prefix, shapes, body, pose)
        self._add_equalities(robot, prefix, body, pose)
        self.unsupported += [f._replace(where=tuple(prefix + name for name in f.where)) for f in robot.unsupported]
        self.notes += [f._replace(where=tuple(prefix + name for name in f.where)) for f in robot.notes]
        left_out = list[str]()
        for sensor in robot.sensors:
            own = sensor.on >= 0 or any(side.which >= 0 for side in sensor.between)
            known = all(side.what != "shape" or side.which in shapes for side in sensor.between)
            if (own or whole) and known:  # a sensor of the whole world is no longer that of one robot
                self._add_sensor(robot, sensor, prefix)
            else:
                left_out.append(prefix + sensor.name)
        if left_out:
            self.notes.append(
                Finding("sensor of the whole world of one model, or of its floor", tuple(left_out), LEFT_OUT)
            )
        for visual in robot.visuals:
            if visual.body >= 0 or whole or visual.kind != "plane":
                looks = {f.name: getattr(visual, f.name) for f in fields(visual) if f.name not in ("body", "kind")}
                there = pose(visual.body, visual.position, visual.quaternion)
                looks |= {"position": tuple(there["position"]), "quaternion": tuple(there["rotation"])}
                self.add_visual(body(visual.body), visual.kind, **looks)
        for eye in robot.cameras:
            there = pose(eye.body, eye.position, eye.quaternion)
            self.add_camera(prefix + eye.name, body(eye.body), fov=eye.fov, **there)
        self._add_keyframes(robot, prefix, at)

    def _add_bodies(self, robot: Model, prefix: str, at: Placement) -> None:
        p = robot.params
        for i, body in enumerate(robot.bodies):
            root, joint = robot.parent[i] < 0, robot.joint_type[i]
            options: dict[str, Any] = {key: p[key][i] for key in ("axis", "anchor", *JOINT_NUMBERS, *SURROUNDED)}
            options |= {key: p[key][i] for key in ("position", "rotation", "mass", "com", "inertia")}
            options["mocap"], options["actuator_gravcomp"] = i in robot.mocap, i in robot.actuator_gravcomp
            if JOINTS[joint].axial:
                options["reference"] = robot.reference[robot.joint_q[i]]
            for key in ("limit", "effort_limit"):
                if not np.isfinite(options[key]).any():
                    options[key] = None
            if root and JOINTS[joint].floating and at.body != WORLD:
                joint = "fixed"
                options |= JOINTLESS | {"position": at.position, "rotation": at.rotation}
            elif root:
                options |= {"position": at.point(p.position[i]), "rotation": at.turned(p.rotation[i])}
            parent = at.body if root else prefix + robot.bodies[robot.parent[i]]
            self.add_body(prefix + body, parent, joint=joint, joint_name=prefix + robot.joints[i], **options)
            touches = i in robot.shapes.touching_parents
            if not root and touches != self.parents_touch:
                self._bodies[prefix + body]["touches_parent"] = touches

    def _add_actuator(self, robot: Model, j: int, prefix: str) -> None:
        p, (kind, a, _) = robot.params, robot.transmissions[j]
        name = prefix + robot.actuators[j]
        if kind.startswith("joint") and not self._moves(prefix + robot.joints[a]):
            return  # of a formerly free base
        if not (p.gear[j] or p.gain[j] or p.gain_slope[j].any()):
            self.add_idle_actuator(name)
            return
        own: dict[str, Any] = {key: p[key][j] for key in ACTUATOR_NUMBERS} | _active(robot, j)
        self.add_actuator(name, kind=ACTUATORS[robot.actuator_kind[j]], **own, **acted_on(robot, j, prefix))

    def _moves(self, joint: str) -> bool:
        return JOINTS[list(self._bodies.values())[self._joints[joint]]["joint"]].nv > 0

    def _add_sensor(self, robot: Model, sensor: Sensor, prefix: str) -> None:
        part, ref = KINDS[sensor.kind].on, None if sensor.ref < 0 else prefix + robot.sites[sensor.ref]
        nothing = WORLD if part == "body" else ""
        on = nothing if sensor.on < 0 else prefix + parts_by_name(robot)[part][sensor.on]
        sides = [(side.what, side_name(robot, side, prefix)) for side in sensor.between]
        more = {key: getattr(sensor, key) for key in ("cutoff", "zone", "data", "reduce", "num")}
        self.add_sensor(prefix + sensor.name, sensor.kind, on, ref=ref, between=sides, **more)

    def _add_keyframes(self, robot: Model, prefix: str, at: Placement) -> None:
        """Join keyframes by name; a model without one of a name contributes its default one."""
        default = robot.keyframes[robot.default_keyframe]
        for key in robot.keyframes:
            if key not in RESERVED:
                self._keyframe_parts.setdefault(key, dict(self._defaults))
        for key, parts in self._keyframe_parts.items():
            parts |= self._parts_of(robot, robot.keyframes.get(key, default), prefix, at)
        self._defaults |= self._parts_of(robot, default, prefix, at)

    def _parts_of(
        self, robot: Model, frame: tuple[np.ndarray, ...], prefix: str, at: Placement
    ) -> dict[tuple[str, str], np.ndarray]:
        """Split a keyframe by joints and actuators, with free bodies moved with the robot."""
        q, v, u, act, mocap = frame
        parts: dict[tuple[str, str], np.ndarray] = {}
        for i, name in enumerate(robot.joints):
            joint, a, k = robot.joint_kind(i), robot.joint_q[i], robot.joint_v[i]
            if not self._moves(prefix + name):
                continue
            own_q, own_v = q[a : a + joint.nq].copy(), v[k : k + joint.nv].copy()
            if joint.floating:
                own_q[:3], own_q[3:] = at.point(own_q[:3]), at.turned(own_q[3:])
                own_v[:3] = rotate(at.rotation, own_v[:3])
            parts["q", prefix + name], parts["v", prefix + name] = own_q, own_v
        driven = [(j, prefix + name) for j, name in enumerate(robot.actuators) if prefix + name in self._actuators]
        states = {a.actuator: k for k, a in enumerate(robot.activations)}
        parts |= {("act", name): act[states[j] : states[j] + 1] for j, name in driven if j in states}
        for i, place in zip(robot.mocap, mocap.reshape(-1, 7), strict=True):
            parts["mocap", prefix + robot.bodies[i]] = np.concatenate([at.point(place[:3]), at.turned(place[3:])])
        return parts | {("u", name): u[j : j + 1] for j, name in driven}

    def _without_routine(self, missing: dict[str, list[str]]) -> None:
        """Report pairs without a collision routine, except those of attached models, which are in their reports."""
        told = {pair for finding in self.unsupported for pair in finding.where}
        new = {kinds: [pair for pair in pairs if pair not in told] for kinds, pairs in missing.items()}
        if any(new.values()):
            super()._without_routine({kinds: pairs for kinds, pairs in new.items() if pairs})

    # -- parts ------------------------------------------------------------------------------------------------------------
    @checked_model
    def remove(self, part: str, name: str) -> None:
        """Remove a part, with the parts that depend on it.

        A body takes with it its subtree, bodies that only add joints to it, all parts fixed to these and what acts on
        them. Removing a joint fixes its body at the joint's zero position.
        """
        self._check_part(part, name)
        gone, before = {(part, name)}, 0
        while len(gone) > before:
            before = len(gone)
            gone |= {("joint", b["joint_name"]) for x, b in self._bodies.items() if ("body", x) in gone}
            gone |= {(kind, x) for kind, x, needs in self._needs() if needs & gone}
            gone |= {("body", x) for x in self._joint_only_bodies({x for kind, x in gone if kind == "body"})}
        if part == "joint":
            self._fix(name)
        for kind, attribute in RECORDS.items():
            kept = {x: r for x, r in getattr(self, attribute).items() if (kind, x) not in gone}
            setattr(self, attribute, kept)
        self._keyframe_parts.pop(name if part == "keyframe" else "", None)
        for parts in (*self._keyframe_parts.values(), self._defaults):
            for letter, x in [key for key in parts if (OWNER[key[0]], key[1]) in gone]:
                del parts[letter, x]
        self._visuals = [(body, look) for body, look in self._visuals if ("body", body) not in gone]
        self._included = [pair for pair in self._included if not {("shape", pair[0]), ("shape", pair[1])} & gone]
        self._excluded = {pair for pair in self._excluded if not {("body", x) for x in pair} & gone}
        self._count_joints()

    def _joint_only_bodies(self, gone: set[str]) -> set[str]:
        """Return the bodies that only add a joint to a removed one."""
        names, alone = list(self._bodies), self._groups().alone
        return {
            b["parent"]
            for x, b in self._bodies.items()
            if x in gone and b["parent"] != WORLD and alone[names.index(b["parent"])]
        }

    @checked_model
    def rename(self, part: str, old: str, new: str) -> None:
        """Rename a part, in all references to it."""
        self._check_part(part, old)
        self._new(new, dict.fromkeys(self._names(part)), part)
        if part == "keyframe":
            self._new_keyframe(new)
        if (part, new) == ("body", WORLD):
            raise ModelError("a body cannot be named 'world': that is the fixed frame bodies hang on")

        def renamed(kind: str, name: str) -> str:
            return new if (kind, name) == (part, old) else name

        for kind, attribute in RECORDS.items():
            records = getattr(self, attribute).items()
            setattr(self, attribute, {renamed(kind, x): _mapped(kind, r, renamed) for x, r in records})
        self._keyframe_parts = {
            renamed("keyframe", key): {(c, renamed(OWNER[c], x)): value for (c, x), value in parts.items()}
            for key, parts in self._keyframe_parts.items()
        }
        self._defaults = {(c, renamed(OWNER[c], x)): value for (c, x), value in self._defaults.items()}
        self._visuals = [(renamed("body", body), look) for body, look in self._visuals]
        self._included = [(renamed("shape", a), renamed("shape", b), own) for a, b, own in self._included]
        self._excluded = {frozenset(renamed("body", x) for x in pair) for pair in self._excluded}
        for record in self._bodies.values():
            record["joint_name"] = renamed("joint", record["joint_name"])
        self._cameras = {name: (body, mount._replace(name=name)) for name, (body, mount) in self._cameras.items()}
        self._count_joints()

    def _names(self, part: str) -> list[str]:
        if part == "joint":
            return list(self._joints)
        if part not in RECORDS:
            raise ModelError(f"a part is one of joint, {', '.join(RECORDS)}; not {part!r}")
        return [*getattr(self, RECORDS[part]), *(self._keyframe_parts if part == "keyframe" else ())]

    def _check_part(self, part: str, name: str) -> None:
        names = self._names(part)
        if name not in names:
            raise ModelError(f"'{self.name}' has no {part} '{name}'; {near(name, names)}")

    def _needs(self) -> Iterator[tuple[str, str, set[tuple[str, str]]]]:
        """Return each part with the parts that it depends on."""
        for kind, attribute in RECORDS.items():
            for name, record in getattr(self, attribute).items():
                needed: set[tuple[str, str]] = set()
                _mapped(kind, record, lambda part, x, needed=needed: needed.add((part, x)) or x)  # type: ignore[misc]
                yield kind, name, needed

    def _fix(self, joint: str) -> None:
        """Replace a joint by a fixed one with its body's name."""
        body = next(name for name, b in self._bodies.items() if b["joint_name"] == joint)
        unlimited = dict.fromkeys(("limit", "effort_limit"), bounds(None, ""))
        self._bodies[body] |= (
            JOINTLESS | {"joint": "fixed", "anchor": np.zeros(3), "actuator_gravcomp": False} | unlimited
        )
        if body not in self._joints:
            self._bodies[body]["joint_name"] = body

    def _count_joints(self) -> None:
        self._joints = {b["joint_name"]: k for k, b in enumerate(self._bodies.values())}


def _plain(x: Any) -> Any:
    """Format for a message."""
    return x.tolist() if isinstance(x, np.ndarray) else x


def _active(robot: Model, j: int) -> dict[str, Any]:
    """Return activation and muscle of actuator j, for the builder."""
    own: dict[str, Any] = {}
    for k, a in enumerate(robot.activations):
        if a.actuator == j:
            own = {"dynamics": a.dynamics, "actearly": a.actearly}
            own |= {key: robot.params[key][k] for key in ACTIVATION_NUMBERS}
    if j in robot.muscles:
        own |= {key: robot.params[key][robot.muscles.index(j)] for key in MUSCLE_NUMBERS}
    return own


def _mapped(kind: str, record: Any, f: Rename) -> Any:
    """Return a record of a builder with f(part, name) in place of each name of another part."""

    def name(part: str, x: Any) -> Any:
        return x if x is None else f(part, x)

    match kind:
        case "body":
            return record | {"parent": f("body", record["parent"])}
        case "site" | "shape":
            return record | {"body": f("body", record["body"])}
        case "camera":
            return f("body", record[0]), record[1]
        case "actuator":
            how, *names = record["on"]
            part_of = "joint" if how.startswith("joint") else "site" if how == "crank" else how
            return record | {"on": (how, *(f(part_of, x) for x in names))}
        case "tendon":
            pieces = []
            for piece in record["pieces"]:
                others = {key: name("site", getattr(piece, key)) for key in ("b", "around", "side")}
                pieces.append(piece._replace(a=f("joint" if piece.kind == "joint" else "site", piece.a), **others))
            return record | {"pieces": pieces}
        case "equality":
            part_of = record["kind"] if record["kind"] in ("joint", "tendon") else "body"
            return record | {"parts": tuple(name(part_of, x) for x in record["parts"])}
        case "sensor":
            on = KINDS[record["kind"]].on
            return record | {
                "on": record["on"]
                if on == "model" or not record["on"]
                else f("site" if on == "zone" else on, record["on"]),
                "ref": name("site", record["ref"]),
                "between": tuple((what, f(SIDES[what], x) if what else x) for what, x in record["between"]),
            }
    return record


def parts_by_name(model: Model) -> dict[str, Sequence[str]]:
    """Return the names of sensors' parts; the body after the last is the world."""
    bodies, tendons = (*model.bodies, WORLD), [t.name for t in model.tendons]
    parts: dict[str, Sequence[str]] = {"joint": model.joints, "site": model.sites, "body": bodies, "tendon": tendons}
    return parts | {"actuator": model.actuators, "model": [""], "zone": model.sites}


def side_name(model: Model, side: ContactSide, prefix: str = "") -> str:
    """Return the name of one side of contacts."""
    if not side.what:
        return ""
    return (
        WORLD if side.which < 0 else prefix + (model.shapes.names if side.what == "shape" else model.bodies)[side.which]
    )


def acted_on(robot: Model, j: int, prefix: str) -> dict[str, Any]:
    """Return the target of actuator j and its gear, for the builder."""
    kind, a, b = robot.transmissions[j]
    p, wide = robot.params, any(line.actuator == j for line in robot.lines[0])
    if kind == "tendon":
        return {"tendon": prefix + robot.tendons[a].name, "gear": p.gear[j]}
    if kind == "site":
        refsite = None if b < 0 else prefix + robot.sites[b]
        return {"site": prefix + robot.sites[a], "refsite": refsite, "gear": p.gear_axes[j]}
    if kind == "body":
        return {"body": prefix + robot.bodies[a], "gear": p.gear[j]}
    if kind == "crank":
        sites = {"crank": prefix + robot.sites[a], "slider": prefix + robot.sites[b]}
        return sites | {"gear": p.gear[j], "crank_length": p.crank_length[j]}
    gear = p.gear_axes[j][: robot.joint_kind(a).nv] if wide else p.gear[j]
    return {"joint": prefix + robot.joints[a], "gear": gear, "in_parent": kind == "jointinparent"}
