"""Random models with every kind of part that a builder can add and a file can hold."""

import numpy as np

import artigrad as ag
from artigrad.formats.save import INTEGRATORS
from artigrad.model.model import DYNAMICS
from artigrad.model.quaternions import of_matrix
from artigrad.physics.sensors.contact_sensors import CONTACT_DATA
from artigrad.physics.sensors.rangefinders import RANGE_DATA
from artigrad.physics.sensors.sensor_table import KINDS

JOINTS = ("revolute", "prismatic", "spherical", "fixed", "universal", "planar", "mocap", "free")
AXIAL = ("revolute", "prismatic")
SOLIDS = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "points", "mesh")
STILL = ("plane", "height_field")  # shapes of the world only
ZONES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
RELATIVE = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
SIDES = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4]]
SIDES += [[1, 5, 7], [1, 7, 3]]


def random_model(rng, *, small=False):
    """Return a random model as built."""
    return _Drawing(rng, small).model()


class Chance:
    """Random choices."""

    def __init__(self, rng):
        self.rng = rng

    def chance(self, p):
        return self.rng.random() < p

    def number(self, low, high):
        return float(self.rng.uniform(low, high))

    def one(self, of):
        return of[int(self.rng.integers(len(of)))]

    def few(self, of, most):
        """Return between one and `most` different ones."""
        count = min(len(of), int(self.rng.integers(1, most + 1)))
        return [of[k] for k in self.rng.permutation(len(of))[:count]]

    def place(self, size=0.3):
        return {"position": size * self.rng.normal(size=3), "rotation": self.rng.normal(size=4)}

    def some(self, p=0.5, **ways):
        """Return some of the arguments, each drawn by its function."""
        return {name: draw() for name, draw in ways.items() if self.chance(p)}

    def soft(self, prefix=""):
        """Return a compliance, perhaps with a power that is not 2."""
        solref = [self.number(0.01, 0.1), self.number(0.5, 1.5)]
        if self.chance(0.3):
            solref = [-self.number(100, 1000), -self.number(5, 50)]
        power = self.one((1.0, 2.0, 2.0, 3.0))
        solimp = [self.number(0.3, 0.9), 0.95, self.number(1e-3, 0.05), self.number(0.2, 0.8), power]
        return self.some(0.4, **{f"{prefix}solref": lambda: solref, f"{prefix}solimp": lambda: solimp})


class _Drawing(Chance):
    """One model while it is drawn."""

    def __init__(self, rng, small):
        super().__init__(rng)
        self.small = small
        self.b = ag.ModelBuilder(self.one(("random", 'a "b" <c> & d')), gravity=rng.normal(size=3) - (0, 0, 9))
        self.b.parents_touch = self.chance(0.2)
        self.b.magnetic = rng.normal(size=3)
        self.fluid = self.chance(0.4)
        self.sticky, self.adhesive = self.chance(0.1), self.chance(0.15)  # contacts, actuators
        if self.fluid:
            self.b.set_fluid(
                **self.some(
                    0.8,
                    density=lambda: self.number(0, 300),
                    viscosity=lambda: self.number(0, 1),
                    wind=lambda: rng.normal(size=3),
                )
            )
        self.kinds, self.wet = self.few(SOLIDS, 3), set()
        self.bodies, self.axial, self.round, self.floating, self.sites = [], [], [], [], []

    def model(self):
        self.options()
        for k in range(self.rng.integers(1, 4 if self.small else 7)):
            self.body(f"b{k}")
        self.shapes()
        for body in ["world", *self.bodies]:
            self.sites.append(self.b.add_site(f"at {body}", body, **self.place(0.2)))
        self.tendons()
        self.actuators()
        self.equalities()
        self.pairs()
        self.sensors()
        self.looks()
        self.keyframes()
        return self.b.build()

    def options(self):
        law = self.some(
            0.3, impratio=lambda: self.number(1, 5), refsafe=lambda: False, noslip=lambda: int(self.rng.integers(1, 4))
        )
        if self.sticky:
            law.pop("noslip", None)
        own = {"integrator": self.one([*INTEGRATORS]), "cone": self.one(("pyramidal", "elliptic"))}
        own |= self.some(0.3, implicit_damping=lambda: False, dt=lambda: self.number(5e-4, 4e-3))
        self.b.options = self.b.options.changed({"dt": 0.002, **own, "law": ag.SoftOptions(**law)})

    # -- bodies ----------------------------------------------------------------------------------------------------------
    def mass(self):
        """Return an inertia that a body can have, perhaps with equal moments, and its box in a fluid."""
        points = 0.15 * self.rng.normal(size=(4, 3))
        points -= points.mean(0)
        C = points.T @ points + 2e-3 * np.eye(3)
        J = np.trace(C) * np.eye(3) - C
        if self.chance(0.3):
            J = np.diag(self.one([(0.02, 0.02, 0.01), (0.01, 0.01, 0.01)]))
        m = self.number(0.2, 3)
        own = {"mass": m, "com": 0.05 * self.rng.normal(size=3), "inertia": J}
        if self.fluid and self.chance(0.5):  # in a fluid a body is a box, or its shapes are ellipsoids
            self.wet.add(self.bodies[-1])
            return own
        moments, axes = np.linalg.eigh(J)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        box = np.sqrt((moments.sum() - 2 * moments) / m * 6)
        return own | {"fluid_box": box, "fluid_rotation": of_matrix(axes)}

    def body(self, name):
        rng, kind = self.rng, self.one(JOINTS)
        parent = "world" if kind in ("free", "mocap") else self.one(["world", *self.bodies])
        self.bodies.append(name)
        if kind == "mocap":
            self.b.add_body(name, mocap=True, **self.place())
        elif kind == "fixed":
            self.b.add_body(name, parent, **self.place(), **(self.mass() if self.chance(0.7) else {}))
        elif kind == "universal":
            own = self.mass() | self.place() | {"anchor": 0.1 * rng.normal(size=3)}
            self.b.add_universal(name, parent, axes=(rng.normal(size=3), rng.normal(size=3)), **own, **self.moving())
            self.axial += [f"{name}:1", name]
            if self.chance(0.3) and not self.fluid:  # in which MuJoCo has bodies with mass only
                self.b.add_site(f"{name} between", f"{name}:1", **self.place(0.1))
        elif kind == "planar":
            for axis, more in (((1, 0, 0), self.place()), ((0, 1, 0), {})):
                parent = self.b.add_body(f"{name}:{axis[0]}", parent, joint="prismatic", axis=axis, **more)
                self.axial.append(parent)
            self.b.add_body(name, parent, joint="revolute", **self.mass(), **self.moving())
            self.axial.append(name)
        else:
            self.moved_body(name, parent, kind)

    def moving(self):
        own = self.some(
            damping=lambda: self.number(0, 1),
            armature=lambda: self.number(0, 0.2),
            gravity_compensation=lambda: self.number(0, 1),
            velocity_limit=lambda: self.number(1, 9),
            dry_friction=lambda: self.number(0, 0.5),
            actuator_gravcomp=lambda: not self.adhesive,
        )
        return own | self.soft("dry_")

    def moved_body(self, name, parent, kind):
        rng, joint = self.rng, f"joint of {name}" if self.chance(0.3) else name
        own = self.moving() | self.some(
            0.4,
            stiffness=lambda: self.number(0, 50),
            damping_curve=lambda: rng.uniform(0, 0.1, 2),
            stiffness_curve=lambda: rng.normal(size=2),
        )
        if kind != "free":
            own |= {"anchor": 0.1 * rng.normal(size=3)} | self.soft("limit_")
            own |= self.some(limit_margin=lambda: self.number(0, 0.02))
        if kind == "spherical":
            own |= self.some(limit=lambda: (0, self.number(0.05, 2)))
        if kind in AXIAL:
            own |= {"axis": rng.normal(size=3)} | self.some(
                spring_reference=lambda: self.number(-1, 1),
                limit=lambda: self.one([(-self.number(0, 0.5), self.number(0, 0.5)), (-np.inf, 0.1), (-0.1, np.inf)]),
                reference=lambda: self.number(-0.5, 0.5),
            )
            if not self.adhesive:
                own |= self.some(effort_limit=lambda: (-self.number(0, 5), self.number(0, 5)))
        self.b.add_body(name, parent, joint=kind, joint_name=joint, **own, **self.mass(), **self.place())
        {"spherical": self.round, "free": self.floating}.get(kind, self.axial).append(joint)

    # -- shapes ----------------------------------------------------------------------------------------------------------
    def shapes(self):
        if self.chance(0.6):
            place = {"position": (0, 0, -0.4), "rotation": (1, *0.1 * self.rng.normal(size=3))}
            self.shape(self.one(STILL), "world", {"name": "floor"} | place)
        for body in self.bodies:
            wet = body in self.wet
            for _ in range(self.one((0, 1, 1, 2)) or wet):
                self.shape("ellipsoid" if wet else self.one(self.kinds), body, self.place(0.03))

    def shape(self, kind, body, more):
        rng, size = self.rng, self.rng.uniform(0.05, 0.15, 3)
        more = (
            self.soft()
            | more
            | self.some(
                0.3,
                friction=lambda: self.number(0, 1.5),
                torsional_friction=lambda: self.number(0, 0.05),
                rolling_friction=lambda: self.number(0, 0.01),
                margin=lambda: self.number(0, 0.01),
                gap=lambda: self.number(0, 0.01) if self.sticky else 0.0,
                solmix=lambda: self.number(0, 2),
                priority=lambda: int(rng.integers(-1, 2)),
                group=lambda: int(self.one([1, 3, 2**30, -1])),
                touches=lambda: int(self.one([1, 2, 2**30 + 1, -1])),
                condim=lambda: int(self.one([1, 3, 4, 6])),
                surface_velocity=lambda: rng.normal(size=6),
                seen=lambda: False,
            )
        )
        if self.sticky:
            more["adhesion"] = self.number(0, 2)
        if body in self.wet:
            more["fluid"] = (rng.uniform(0, 1, 5), *_virtual(size))
        given = {
            "plane": (self.one([(0.0, 0.0), (1.0, 2.0)]),),
            "height_field": (0.1 * rng.random((4, 5)), (1.0, 1.5)),
            "sphere": (size[0],),
            "capsule": (size[0], size[1]),
            "cylinder": (size[0], size[1]),
            "box": (size,),
            "ellipsoid": (size,),
            "points": (rng.normal(size=(12, 3)) * size,),
            "mesh": (CUBE * size,),
        }[kind]
        if kind == "mesh":
            more["surface"] = (CUBE * size, np.array(SIDES))
        if kind == "points":
            more["seen"] = False
        getattr(self.b, "add_convex_hull" if kind in ("points", "mesh") else f"add_{kind}")(body, *given, **more)

    # -- on them ---------------------------------------------------------------------------------------------------------
    def tendons(self):
        if self.axial and self.chance(0.5):
            joints = {joint: float(self.rng.normal()) for joint in self.few(self.axial, 3)}
            self.b.add_fixed_tendon("sum", joints, **self.tendon_numbers())
        for name in ("line", "string") if self.chance(0.5) else ():
            path = self.few(self.sites, 4)
            if len(path) < 2:
                continue
            if self.chance(0.5):
                around = (self.one(("sphere", "cylinder")), self.one(self.sites), self.number(0.02, 0.1))
                path.insert(1, (*around, self.one(self.sites)) if self.chance(0.5) else around)
            if self.chance(0.3):
                path += [self.one((1.0, 2.0, 0.7)), *(self.sites[k] for k in self.rng.permutation(len(self.sites))[:2])]
            if self.chance(0.1):
                path.insert(0, 3.0)
            self.b.add_spatial_tendon(name, path, **self.tendon_numbers())

    def tendon_numbers(self):
        own = self.some(
            stiffness=lambda: self.number(0, 50),
            damping=lambda: self.number(0, 1),
            rest=lambda: self.one([self.number(0, 1), sorted(self.rng.uniform(0, 1, 2))]),
            limit=lambda: (self.number(-2, -0.1), self.number(0.1, 0.5)),
            limit_margin=lambda: self.number(0, 0.02),
            dry_friction=lambda: self.number(0, 0.5),
            damping_curve=lambda: self.rng.uniform(0, 0.1, 2),
            stiffness_curve=lambda: self.rng.normal(size=2),
        )
        return own | self.soft("limit_") | self.soft("dry_")

    def actuators(self):
        for k in range(self.rng.integers(5)):
            target, gear = self.target()
            if target is not None:
                self.actuator(f"a{k}", target, gear)
        for name in self.few(self.axial, 2) if self.axial and self.chance(0.5) else ():
            kind = self.one(("motor", "position_servo", "velocity_servo"))
            own = self.some(
                gear=lambda: self.number(0.5, 3),
                control_range=lambda: (-self.number(0, 1), self.number(0, 1)),
                max_force=lambda: self.number(1, 5),
            )
            own |= {"gain": self.number(1, 50)} if kind.endswith("servo") else {}
            own |= {"damping": self.number(0, 2)} if kind == "position_servo" else {}
            getattr(self.b, f"add_{kind}")(f"on {name}", name, **own)
        if self.adhesive:
            own = self.some(gain=lambda: self.number(0, 3), control_range=lambda: (0.0, 1.0))
            self.b.add_actuator("glue", body=self.one(self.bodies), **own)
        tendons = list(self.b._tendons)
        if tendons and self.chance(0.3):
            self.b.add_muscle("muscle", tendon=self.one(tendons), force=20.0, length_range=(-0.5, 1.5))

    def target(self):
        """Return the target of an actuator, and its gear."""
        rng, tendons = self.rng, list(self.b._tendons)
        match self.one(("joint", "ball", "free", "tendon", "site", "relative", "crank")):
            case "joint" if self.axial:
                return {"joint": self.one(self.axial)}, float(rng.normal())
            case "ball" if self.round:
                return {"joint": self.one(self.round), "in_parent": self.chance(0.5)}, rng.normal(size=3)
            case "free" if self.floating:
                return {"joint": self.one(self.floating), "in_parent": self.chance(0.5)}, rng.normal(size=6)
            case "tendon" if tendons:
                return {"tendon": self.one(tendons)}, float(rng.normal())
            case "site":
                return {"site": self.one(self.sites)}, rng.normal(size=6)
            case "relative":
                gear = rng.normal(size=6) * self.one([(1, 1, 1, 1, 1, 1), (1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1)])
                return {"site": self.one(self.sites), "refsite": self.one(self.sites)}, gear
            case "crank" if len(self.sites) > 1:
                crank, slider = self.few(self.sites, 1)[0], self.one(self.sites)
                return {"crank": crank, "slider": slider, "crank_length": self.number(1.0, 2.0)}, float(rng.normal())
        return None, None

    def actuator(self, name, target, gear):
        rng, kind = self.rng, self.one(("force", "force", "position", "velocity"))
        own = self.some(
            gain=lambda: self.number(0, 5),
            bias=lambda: rng.normal(size=3) * (1, 1, 0.1),
            control_range=lambda: (-self.number(0, 1), self.number(0, 1)),
            force_range=lambda: (-self.number(0, 5), self.number(0, 5)),
        )
        if kind == "force":
            own |= self.some(gain_slope=lambda: 0.2 * rng.normal(size=2))
        if self.chance(0.5):
            own |= {"dynamics": self.one(DYNAMICS), "activation_time": (*rng.uniform(0.02, 0.2, 2), 0.0)}
            own |= self.some(activation_range=lambda: (0.0, self.number(0.2, 1)), actearly=lambda: True)
            if own["dynamics"] == "muscle":
                own["control_range"] = (0.0, 1.0)
        self.b.add_actuator(name, **target, gear=gear, kind=kind, **own)

    def equalities(self):
        b, rng = self.b, self.rng
        still = {"world", *(name for name, r in b._bodies.items() if r["mocap"])}
        for k in range(self.rng.integers(3)):
            one, other = self.one(self.bodies), self.one(["world", *self.bodies])
            if one == other or {one, other} <= still:
                continue
            own = self.some(anchor=lambda: 0.1 * rng.normal(size=3), other_anchor=lambda: 0.1 * rng.normal(size=3))
            if self.chance(0.5):
                b.add_connect(one, other, name=f"held {k}", **own, **self.soft())
                continue
            own |= self.some(
                rotation=lambda: rng.normal(size=4),
                other_rotation=lambda: rng.normal(size=4),
                torque_scale=lambda: self.number(0.2, 2),
            )
            b.add_weld(one, other, name=f"held {k}", **own, **self.soft())
        tendons = list(b._tendons)
        for add, parts, name in (
            (b.add_joint_coupling, self.axial, "gear"),
            (b.add_tendon_coupling, tendons, "strings"),
        ):
            if parts and self.chance(0.3):
                own = self.some(polynomial=lambda: 0.2 * rng.normal(size=5))
                chosen = self.few(parts, 2)
                add(*chosen, name=name, **own, **self.soft())

    def pairs(self):
        b, rng, names = self.b, self.rng, list(self.b._shapes)
        for _ in range(self.rng.integers(3) if len(names) > 1 else 0):
            own = self.some(
                condim=lambda: int(self.one([1, 3, 4, 6])),
                friction=lambda: np.repeat(rng.uniform(0, 1, 3), (2, 1, 2)) if self.chance(0.5) else rng.random(5),
                margin=lambda: 0.002,
                gap=lambda: 0.003,
                solref=lambda: (0.03, 0.9),
                solref_friction=lambda: (0.04, 1.1),
                solimp=lambda: (0.8, 0.9, 0.002, 0.4, 3.0),
            )
            if self.sticky:
                own |= self.some(adhesion=lambda: self.number(0, 2))
            one, other = (names[k] for k in rng.permutation(len(names))[:2])
            if not any({one, other} == {*pair[:2]} for pair in b._included):
                b.add_pair(one, other, **own)
        for _ in range(self.rng.integers(3) if len(self.bodies) > 1 else 0):
            b.add_exclude(*self.few(["world", *self.bodies], 1), self.one(self.bodies))

    def sensors(self):
        b, tendons, shapes = self.b, list(self.b._tendons), list(self.b._shapes)
        parts = {"site": self.sites, "zone": self.sites, "tendon": tendons, "actuator": list(b._actuators)}
        parts |= {"body": ["world", *self.bodies], "model": [""]}
        axial = ("jointpos", "jointvel", "jointactfrc")
        zones = {}  # one each site
        for k, kind in enumerate(self.few([*KINDS], 12)):
            own = self.some(0.3, cutoff=lambda: self.number(0.1, 3)) if KINDS[kind].cut else {}
            known = parts.get(KINDS[kind].on, [])
            if KINDS[kind].on == "joint":
                known = self.axial if kind in axial else self.round if kind in ("ballquat", "ballangvel") else []
            if "limit" in kind:
                records = b._bodies.values() if kind.startswith("joint") else b._tendons.values()
                name = "joint_name" if kind.startswith("joint") else "name"
                records = [{"name": x, **r} for x, r in b._tendons.items()] if name == "name" else records
                known = [r[name] for r in records if np.isfinite(r["limit"]).any()]
            if not known:
                continue
            on = self.one(known)
            if kind in RELATIVE:
                own |= self.some(ref=lambda: self.one(self.sites))
            if kind in ("touch", "insidesite"):
                zones.setdefault(on, (self.one(ZONES), self.rng.uniform(0.1, 0.5, 3)))
                own["zone"] = zones[on]
            if kind == "insidesite":
                own["ref"] = self.one(self.sites)
            if kind == "rangefinder":
                own |= self.some(data=lambda: self.few([*RANGE_DATA], 3))
            if kind == "contact":
                on = ""
                own |= {"data": self.few([*CONTACT_DATA], 4), "reduce": self.one(("none", "mindist", "maxforce"))}
                own |= {"num": int(self.rng.integers(1, 4))}
                side = self.one([("body", self.bodies), ("subtree", self.bodies), ("shape", shapes or [""])])
                own["between"] = ((side[0], self.one(side[1])) if side[1] != [""] else ("", ""), ("", ""))
            if kind.startswith("geom"):
                shaped = [name for name in shapes if b._shapes[name]["body"] != "world"]
                if len(shaped) < 2:
                    continue
                one, other = (shaped[k] for k in self.rng.permutation(len(shaped))[:2])
                own |= {"cutoff": self.number(0.1, 3), "between": (("shape", one), ("shape", other))}
            if (kind == "jointactfrc" and self.adhesive) or (kind, on) == ("actuatorvel", "glue"):
                continue  # refused
            b.add_sensor(f"{kind} {k}", kind, on, **own)

    def looks(self):
        b, rng = self.b, self.rng
        if self.chance(0.5):
            own = self.some(fov=lambda: self.number(20, 90))
            b.add_camera("eye", self.one(["world", *self.bodies]), **self.place(), **own)
        for kind in self.few(["plane", "sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh"], 2):
            count = {"plane": 2, "sphere": 1, "capsule": 2, "cylinder": 2, "mesh": 0}.get(kind, 3)
            own = {"position": tuple(rng.normal(size=3)), "rgba": tuple(rng.random(4))}
            quaternion = rng.normal(size=4)
            own |= {"quaternion": tuple(quaternion / np.linalg.norm(quaternion))}
            own |= {"mesh": (CUBE * 0.1, np.array(SIDES))} if kind == "mesh" else {}
            b.add_visual(
                "world" if kind == "plane" else self.one(["world", *self.bodies]),
                kind,
                size=tuple(rng.uniform(0.1, 0.2, count)),
                **own,
            )

    def keyframes(self):
        b, rng = self.b, self.rng
        for name in self.few(["home", "bent", "a b"], 2) if self.chance(0.5) else ():
            model = b.build()
            q = ag.integrate(model, model.keyframe().q, 0.3 * rng.normal(size=model.nv))
            own = self.some(
                0.7,
                q=lambda q=q: q,
                v=lambda model=model: rng.normal(size=model.nv),
                u=lambda model=model: rng.normal(size=model.nu),
                act=lambda model=model: rng.random(model.na),
                mocap=lambda model=model: np.ravel([[*rng.normal(size=3), 1, 0, 0, 0] for _ in model.mocap]),
            )
            b.add_keyframe(name, **own)


def _virtual(axes):
    """Return the virtual mass and inertia of an ellipsoid, as MuJoCo computes them."""
    text = '<mujoco><option density="1"/><worldbody><body><freejoint/><geom type="ellipsoid" size="'
    text += " ".join(map(repr, axes.tolist())) + '"'
    model = ag.load(text + ' fluidshape="ellipsoid"/></body></worldbody></mujoco>')
    return model.params.virtual_mass[0], model.params.virtual_inertia[0]
