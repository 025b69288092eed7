"""Random cases.

A theme fixes what kernels are compiled for: options, and kinds of rows. Cases of a theme share their kernels. A state is
random, or settled, or has a stack of solids in exact alignment.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np

import artigrad as ag
from artigrad.model.quaternions import matrix
from artigrad.physics.joints.table import JOINTS

from .case import Call, Case

STEPS = 4
SELDOM = ("tendon", "servo", "idle", "solid")
KINDS = ("floor", "each other", "patch", "limit", "dry", "ball", "connect", "weld", "couple", *SELDOM)
HARD_KINDS = ("floor", "each other", "limit", "dry")
AXIAL = ("revolute", "prismatic")
SETTLE = 300  # steps
FASTEST = 1e2  # m/s or rad/s of what has settled
ALIGNED, IDLE = "stack", "idle"  # first words of the names of bodies of a stack, and of what turns on the floor


class Theme(NamedTuple):
    """Theme. options: of the Simulator; kinds: of rows in every model; square: True if all powers of impedances are 2."""

    options: dict[str, Any]
    kinds: frozenset[str]
    square: bool

    @property
    def hard(self):
        return str(self.options["law"]) == "hard"


def theme(rng):
    law = "soft" if rng.random() < 0.75 else "hard"
    kinds = HARD_KINDS if law == "hard" else KINDS
    options = {
        "law": law,
        "dt": float(rng.choice([5e-4, 2e-3, 5e-3])),
        "cone": str(rng.choice(["pyramidal", "elliptic"])),
    }
    if law == "soft":
        options["integrator"] = str(rng.choice(["euler", "implicitfast", "implicit", "rk4", "explicit"]))
        options["law"] = ag.SoftOptions(impratio=float(rng.choice([1.0, 4.0])))
    chosen = frozenset(k for k in kinds if rng.random() < (0.3 if k in SELDOM else 0.5))
    return Theme(options, chosen, rng.random() < 0.7)


def case(rng, theme):
    """Return one case of a theme."""
    return _Drawing(rng, theme).case()


class _Drawing:
    def __init__(self, rng, theme):
        self.rng, self.kinds, self.theme = rng, theme.kinds, theme
        self.calls: list[Call] = []
        self.q, self.v, self.u, self.act, self.joints = {}, {}, {}, {}, {}
        self.state = str(rng.choice(["moving", "moving", "settled", "aligned"]))
        if self.state == "aligned" and not {"floor", "each other"} <= self.kinds:
            self.state = "settled"

    def case(self):
        """Return a random model in a random state."""
        self.parts()
        case = self.finished()
        return (
            case if self.state == "moving" or not self.q else _settled(case, 0 if self.state == "aligned" else SETTLE)
        )

    def parts(self):
        rng = self.rng
        for k in range(rng.integers(1, 7)):
            self.body(f"b{k}")
        if self.kinds & {"limit", "couple"}:
            self.body("hinge", joint=str(rng.choice(AXIAL)))
        if "couple" in self.kinds:
            self.body("slider", joint=str(rng.choice(AXIAL)))
        if "ball" in self.kinds:
            self.body("socket", joint="spherical")
        if "servo" in self.kinds:
            self.body("gimbal", joint="spherical")
        self.actuators()
        if "servo" in self.kinds:
            self.rotational_servos()
        if "tendon" in self.kinds:
            self.tendons()
        self.equalities()
        self.shapes()

    def finished(self):
        fields = (tuple(self.calls), self.theme.options, self.q, self.v, self.u, STEPS)
        return Case(*fields, seed=int(self.rng.integers(1 << 31)), act=self.act)

    def chance(self, p):
        return self.rng.random() < p

    def vector(self, scale):
        return (scale * self.rng.normal(size=3)).round(3).tolist()

    def number(self, low, high):
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))).round(4))

    def turn(self):
        if self.chance(0.4):
            return [1.0, 0.0, 0.0, 0.0]
        x = self.rng.normal(size=4)
        return (x / np.linalg.norm(x)).tolist()

    def soft(self, prefix=""):
        """Draw the compliance of a row; mostly the default."""
        out = {}
        if self.chance(0.3):
            ref = (
                [self.number(5e-3, 0.1), self.number(0.3, 2)]
                if self.chance(0.6)
                else [-self.number(50, 3e3), -self.number(3, 100)]
            )
            out[f"{prefix}solref"] = ref
        if self.chance(0.3):
            power = 2.0 if self.theme.square else self.number(1.0, 4.0)
            width, middle = self.number(1e-3, 0.05), round(self.rng.uniform(0.2, 0.8), 3)
            out[f"{prefix}solimp"] = [round(self.rng.uniform(0.3, 0.9), 3), 0.95, width, middle, power]
        return out

    # -- bodies ----------------------------------------------------------------------------------------------------------
    def body(self, name, joint=None):
        rng, options = self.rng, {}
        parents = [c.args[0] for c in self.calls]
        parent = str(rng.choice(parents)) if parents and self.chance(0.7) else "world"
        if joint is None:
            kinds = ["revolute", "prismatic", "spherical", "fixed"] + ["free"] * 4 * (parent == "world")
            joint = str(rng.choice(kinds))
        options |= {"joint": joint, "mass": self.number(0.1, 5), "com": self.vector(0.05), "inertia": self.inertia()}
        if joint != "free":
            options |= {"position": self.vector(0.2), "rotation": self.turn()}
            options |= {"anchor": self.vector(0.1)} if self.chance(0.5) else {}
        if joint in AXIAL:
            options["axis"] = [0.0, 0.0, 1.0] if self.chance(0.4) else self.vector(1.0)
            if self.chance(0.4):
                options |= {"stiffness": self.number(0.1, 100), "spring_reference": round(rng.normal(), 2)}
        if joint != "fixed":
            options |= {"damping": self.number(0.01, 3)} if self.chance(0.5) else {}
            options |= {"armature": self.number(1e-3, 0.3)} if self.chance(0.4) else {}
        options |= self.joint_rows(name, joint)
        args = (name,) if parent == "world" else (name, parent)
        self.calls.append(Call("body", args, options))
        self.joints[name] = joint
        self.place(name, joint, options)

    def inertia(self):
        """Draw the inertia of random points, not too thin."""
        points = 0.1 * self.rng.normal(size=(4, 3))
        points -= points.mean(0)
        C = points.T @ points + 1e-3 * np.eye(3)
        J = np.trace(C) * np.eye(3) - C
        return [float(x) for x in (J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])]

    def joint_rows(self, name, joint):
        out, hard = {}, self.theme.hard
        if joint in AXIAL and "limit" in self.kinds and (name == "hinge" or self.chance(0.5)):
            out["limit"] = [-self.number(0.02, 1), self.number(0.02, 1)]
            out |= {"limit_margin": self.number(1e-3, 0.1)} if self.chance(0.3) and not hard else {}
            out |= {} if hard else self.soft("limit_")
        if joint == "spherical" and "ball" in self.kinds and (name == "socket" or self.chance(0.5)):
            out["limit"] = [0.0, self.number(0.05, 1.5)]
            out |= self.soft("limit_")
        one_axis_alone = hard and joint not in AXIAL
        if (
            joint != "fixed"
            and not one_axis_alone
            and "dry" in self.kinds
            and (len(self.calls) == 0 or self.chance(0.5))
        ):
            out["dry_friction"] = self.number(0.01, 3)
            out |= {} if hard else self.soft("dry_")
        return out

    def place(self, name, joint, options):
        """Draw a joint position, near zero or near its limit."""
        rng, kind = self.rng, JOINTS[joint]
        move = float(rng.choice([0.02, 0.2, 0.8])) * rng.normal(size=kind.nv)
        if joint in AXIAL and "limit" in options and self.chance(0.6):
            move = np.array([rng.choice(options["limit"])]) * (1 + 0.02 * rng.normal())
        q = move
        if kind.nq > kind.nv:
            w = move[-3:]
            if "limit" in options and self.chance(0.6):
                w = w / np.linalg.norm(w) * options["limit"][1] * (1 + 0.02 * rng.normal())
            angle = np.linalg.norm(w)
            q = np.concatenate([move[:-3], [np.cos(angle / 2)], np.sin(angle / 2) * w / angle])
        self.q[name], self.v[name] = (
            q.tolist(),
            (float(rng.choice([0.01, 0.5, 3.0])) * rng.normal(size=kind.nv)).tolist(),
        )

    # -- on them ---------------------------------------------------------------------------------------------------------
    def actuators(self):
        for name, joint in self.joints.items():
            if joint not in AXIAL or self.chance(0.4):
                continue
            options = {"gear": self.number(0.3, 5)} if self.chance(0.5) else {}
            options |= {"control_range": [-self.number(0.1, 1), self.number(0.1, 1)]} if self.chance(0.3) else {}
            kind = str(self.rng.choice(["motor", "position_servo", "velocity_servo", "actuator"]))
            if kind == "actuator":
                options |= {"gain": self.number(0.3, 5), "bias": [*self.vector(1.0)[:2], -self.number(0.1, 2)]}
                options |= {"force_range": [-self.number(0.1, 5), self.number(0.1, 5)]} if self.chance(0.3) else {}
            elif self.chance(0.3):
                options["max_force"] = self.number(0.1, 5)
            if kind.endswith("servo"):
                options["gain"] = self.number(1, 100)
            if kind == "position_servo":
                options["damping"] = self.number(0.1, 10)
            self.calls.append(Call(kind, (f"on {name}", name), options))
            self.u[f"on {name}"] = self.rng.normal(size=STEPS).tolist()

    def equalities(self):
        rng, names = self.rng, list(self.joints)
        for kind in ("connect", "weld"):
            if kind in self.kinds:
                one = str(rng.choice(names))
                other = str(rng.choice([n for n in ["world", *names] if n != one]))
                options = {"anchor": self.vector(0.1)} | self.soft()
                options |= {"rotation": self.turn(), "torque_scale": self.number(0.2, 3)} if kind == "weld" else {}
                self.calls.append(Call(kind, (one, other), options))
        if "couple" in self.kinds:
            other = ("slider",) if self.chance(0.7) else ()
            polynomial = (np.array([0.1, 1.0, 0.3, 0.1, 0.05]) * rng.normal(size=5)).round(3).tolist()
            self.calls.append(Call("joint_coupling", ("hinge", *other), {"polynomial": polynomial} | self.soft()))

    def rotational_servos(self):
        """Add servos of a ball joint and between two sites with targets up to two turns away; one is an activation."""
        rng, servo = self.rng, {"kind": "position"}
        for name, dynamics in (("gimbal servo", None), ("gimbal rate", "integrator")):
            own = servo | {
                "gain": self.number(0.3, 5),
                "bias": [0.0, 0.0, -self.number(0.01, 1)],
                "gear": self.vector(1.0),
            }
            if dynamics is not None:
                own |= {"dynamics": dynamics, "activation_range": [-12.0, 12.0]}
                self.act[name] = float(rng.uniform(-9, 9))
            self.driven(name, ("gimbal",), own, 4.0)
        for name, body in (("turned", str(rng.choice(list(self.joints)))), ("seen from", "world")):
            self.site(name, body, 0.1)
        gear = [0.0, 0.0, 0.0, *self.vector(1.0)] if self.chance(0.5) else [*self.vector(1.0), *self.vector(1.0)]
        own = {"site": "turned", "refsite": "seen from", "gain": self.number(0.3, 5), "gear": gear}
        self.driven("site servo", (), servo | own, 4.0)

    def driven(self, name, args, options, size):
        """Add an actuator with random controls."""
        self.calls.append(Call("actuator", (name, *args), options))
        self.u[name] = (size * self.rng.normal(size=STEPS)).tolist()

    def site(self, name, body, scale, position=None):
        position = self.vector(scale) if position is None else position
        self.calls.append(Call("site", (name, body), {"position": position, "rotation": self.turn()}))
        return name

    def tendons(self):
        """Add tendons with muscles, around shapes with a side site outside, inside and without one."""
        rng, bodies = self.rng, ["world", *self.joints]
        for k in range(rng.integers(1, 3)):
            ends = [self.site(f"t{k} at {j}", str(rng.choice(bodies)), 0.3) for j in range(4)]
            path = [ends[0]]
            for j, side in enumerate(("outside", "inside", "")):
                body, radius, at = str(rng.choice(bodies)), self.number(0.01, 0.15), np.array(self.vector(0.1))
                wrap = (
                    str(rng.choice(["sphere", "cylinder"])),
                    self.site(f"t{k} around {j}", body, 0.0, at.tolist()),
                    radius,
                )
                if side:
                    d = rng.normal(size=3)
                    d *= (
                        radius
                        * (rng.uniform(1.2, 4.0) if side == "outside" else rng.uniform(0.0, 0.6))
                        / np.linalg.norm(d)
                    )
                    wrap += (self.site(f"t{k} {side}", body, 0.0, (at + d).tolist()),)
                path += [wrap, ends[j + 1]] if side or self.chance(0.5) else [ends[j + 1]]
            own = {"limit": [0.0, self.number(0.1, 3)], "dry_friction": self.number(0.01, 1)} | self.soft("limit_")
            own |= {"stiffness": self.number(0.1, 100)} if self.chance(0.5) else {}
            own |= {"damping": self.number(0.01, 3)} if self.chance(0.5) else {}
            self.calls.append(Call("spatial_tendon", (f"t{k}", path), own))
            options = {"tendon": f"t{k}", "force": self.number(1, 50), "length_range": [0.05, self.number(0.5, 3)]}
            self.calls.append(Call("muscle", (f"on t{k}",), options))
            self.u[f"on t{k}"], self.act[f"on t{k}"] = rng.uniform(0, 1, STEPS).tolist(), float(rng.uniform(0, 1))

    # -- shapes ----------------------------------------------------------------------------------------------------------
    def shapes(self):
        """Add shapes to bodies, then a floor under them that they just touch."""
        if not self.kinds & {"floor", "each other"}:
            return
        hard = self.theme.hard
        for name in self.joints:
            if self.chance(0.8) or name == "b0":
                self.shape(name, {} if hard else self.soft())
        if "floor" in self.kinds:
            self.floor()

    def stack(self, normal, turn, height):
        """Add a stack of solids of equal or other size on the floor, aligned or shifted by up to a millimeter."""
        size, at = [self.number(0.03, 0.1) for _ in range(3)], height
        kinds = ("box", "box", "cylinder", "convex_hull") if "solid" in self.kinds else ("box",)
        across = matrix(np.array(turn)) @ [3.0, 0.0, 0.0]
        for k in range(self.rng.integers(1, 4)):
            kind = str(self.rng.choice(kinds))
            size = size if self.chance(0.7) else [self.number(0.03, 0.1) for _ in range(3)]
            shift = matrix(np.array(turn)) @ [float(self.rng.choice([0.0, 0.0, 1e-12, 1e-6, 1e-3])), 0.0, 0.0]
            at += size[2] - 2e-5
            name, mass = f"{ALIGNED}{k}", self.number(0.1, 2)
            x, y, z = np.square(size)
            inertia = [float(mass / 3 * i) for i in (y + z, x + z, x + y)]
            own = {"joint": "free", "mass": mass, "inertia": [*inertia, 0.0, 0.0, 0.0]}
            self.calls.append(Call("body", (name,), own))
            self.joints[name], self.v[name] = "free", [0.0] * 6
            self.q[name] = [*(at * normal + across + shift).tolist(), *turn]
            at += size[2]
            given = {"box": (size,), "cylinder": (size[0], size[2]), "convex_hull": (_corners(size),)}[kind]
            self.calls.append(Call(kind, (name, *given), {} if self.theme.hard else {"condim": self.condim()}))

    def idle(self, normal, turn, height):
        """Add a ball in the floor on the axis of its joint, which is normal to the floor: no joint moves this contact."""
        radius, place = self.number(0.05, 0.2), matrix(np.array(turn)) @ [-3.0, 0.0, 0.0]
        deep = radius * float(self.rng.uniform(0.3, 0.9))
        own = {"joint": "revolute", "axis": normal.tolist(), "mass": 1.0, "inertia": [0.01, 0.01, 0.01, 0.0, 0.0, 0.0]}
        self.calls.append(Call("body", (IDLE,), own | {"position": ((height + deep) * normal + place).tolist()}))
        self.joints[IDLE], self.q[IDLE], self.v[IDLE] = "revolute", [self.rng.normal()], [self.rng.normal()]
        self.calls.append(
            Call("sphere", (IDLE, radius), {} if "each other" in self.kinds else {"group": 2, "touches": 1})
        )

    def shape(self, body, options):
        kinds = ["sphere", "sphere", "capsule", "capsule", "box"]
        kind = str(
            self.rng.choice(kinds + ["cylinder", "cylinder", "ellipsoid", "convex_hull"] * ("solid" in self.kinds))
        )
        radius, three = self.number(0.02, 0.2), [self.number(0.03, 0.2) for _ in range(3)]
        size = {"sphere": (radius,), "convex_hull": (_corners(three),)}.get(kind, (three,))
        if kind in ("capsule", "cylinder"):
            size = (radius, self.number(0.02, 0.3))
        options |= {"position": self.vector(0.05), "rotation": self.turn()} if self.chance(0.6) else {}
        options |= {"friction": self.number(0.05, 2)} if self.chance(0.6) else {}
        if not self.theme.hard:
            options |= {"condim": self.condim()}
            options |= {"torsional_friction": self.number(1e-3, 0.1), "rolling_friction": self.number(1e-4, 0.03)}
            options |= {"margin": self.number(1e-4, 0.02)} if self.chance(0.2) else {}
            options |= (
                {"priority": int(self.rng.integers(2)), "solmix": self.number(0.2, 3)} if self.chance(0.2) else {}
            )
        elif self.chance(0.3):
            options |= {"restitution": round(self.rng.uniform(0, 1), 2)}
        if "each other" not in self.kinds:
            options |= {"group": 2, "touches": 1}
        self.calls.append(Call(kind, (body, *size), options))

    def condim(self):
        narrow = [1, 3, 3]
        return int(self.rng.choice([3, 4, 6] if "patch" in self.kinds else narrow))

    def floor(self):
        """Add a floor slightly above the lowest point of the lowest or second lowest shape."""
        turn = self.turn() if self.chance(0.3) else [1.0, 0.0, 0.0, 0.0]
        normal = matrix(np.array(turn))[:, 2]
        heights = sorted(_lowest(self.finished(), normal))
        height = (
            heights[min(len(heights) - 1, int(self.rng.integers(2)))]
            + float(self.rng.choice([2e-3, 1e-4, -1e-4])) * self.rng.random()
        )
        height = heights[0] if self.state == "aligned" else height
        options = {"position": (height * normal).tolist(), "rotation": turn}
        options |= {"condim": 4} if "patch" in self.kinds else {}
        if "each other" not in self.kinds:
            options |= {"group": 1, "touches": 2}
        self.calls.append(Call("plane", (), options))
        if self.state == "aligned":
            self.stack(normal, turn, height)
        if "idle" in self.kinds and "patch" not in self.kinds:  # a joint does move torsional friction
            self.idle(normal, turn, height)


def _settled(case, steps):
    """Return the case after some steps with its first controls, which stay."""
    u = {name: [x[0]] * case.steps for name, x in case.u.items()}
    if not steps:
        return case.changed(u=u)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is not solved, or diverges, on the way
        final = case.sim.rollout(case.state, np.repeat(case.controls[:1], steps, 0)).final
    if not (np.isfinite(final.q).all() and np.abs(final.v).max(initial=0.0) < FASTEST):
        return case
    q, v, model = dict(case.q), dict(case.v), case.model
    for i, name in enumerate(model.joints):
        kind = model.joint_kind(i)
        if kind.nv:
            q[name] = final.q[model.joint_q[i] : model.joint_q[i] + kind.nq].tolist()
            v[name] = final.v[model.joint_v[i] : model.joint_v[i] + kind.nv].tolist()
    act = {model.actuators[a.actuator]: float(x) for a, x in zip(model.activations, final.act, strict=True)}
    return case.changed(q=q, v=v, u=u, act=act)


def _vertices(model, s):
    first, count = model.shapes.vertices[s]
    return np.asarray(model.params.vertex)[first : first + count]


def _corners(size):
    """Return the corners of a box, as vertices of a hull."""
    return [[a * size[0], b * size[1], c * size[2]] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]


def _lowest(case, normal):
    """Return the height of the lowest point of each shape along a normal."""
    model = case.model
    poses = ag.Simulator(model).outputs(case.state)
    for s, body in enumerate(model.shapes.body):
        R, r, p = poses.body_rotation[body], poses.body_position[body], model.params
        center = (r + R @ p.shape_position[s]) @ normal
        along = (R @ matrix(p.shape_rotation[s])).T @ normal
        size = p.shape_size[s]
        kind = ag.model.model.SHAPES[model.shapes.kind[s]]
        yield float(center - _reach(kind, size, along, _vertices(model, s)))


def _reach(kind, size, along, vertices):
    """Return the largest coordinate of a shape against a direction in its frame."""
    if kind == "sphere":
        return size[0]
    if kind == "capsule":
        return size[0] + size[1] * abs(along[2])
    if kind == "box":
        return np.abs(along) @ size
    if kind == "cylinder":
        return size[0] * np.hypot(along[0], along[1]) + size[1] * abs(along[2])
    return np.linalg.norm(along * size) if kind == "ellipsoid" else np.max(-vertices @ along)
