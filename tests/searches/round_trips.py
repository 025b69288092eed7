"""Random models with every kind of part, edited and merged, beside MuJoCo and beside themselves after saving and loading."""

import tempfile
import warnings
from pathlib import Path

import mujoco
import numpy as np

import artigrad as ag
from artigrad.formats.names import Names

from ..beside import _agree, _contacts, _their_contacts, tight
from .outcome import Outcome

SUMMARY = (
    "Random models made by the builder (joints, shapes, tendons, actuators, equalities, sensors, fluid, keyframes, ...), "
    "edited, merged, saved and loaded: one step beside MuJoCo's of the saved file to 1e-9, and beside the model that was saved "
    "to 1e-12 of the largest velocity. Hulls of meshes beside MuJoCo's to 1e-5: its compiler rounds them."
)
COUNT, SAMPLE = 2_000, 6
MUJOCO, ITSELF = 1e-9, 1e-12
KITS = (("sphere", "capsule", "box"), ("cylinder", "ellipsoid", "convex_hull"))
ROUNDED = 1e-5  # with hulls of meshes, which MuJoCo's compiler rounds to single precision
AXIAL = ("revolute", "prismatic")
HOLLOW = 1e-9  # beside itself, with tendons that may pass inside a shape: MuJoCo finds their weights by iteration
OTHER, REFUSED = "equal to itself, other contacts than MuJoCo", "refused by ag.save: a body without mass in a fluid"
ORDER = "other contacts where the file has two shapes of one kind in the other order"
NEARLY, ROUNDING = 1e-10, "within 1e-10 of itself"  # rounding, in stiff models
EXPECTED = (OTHER, REFUSED, ORDER, ROUNDING)


def search(count, seed):
    """Draw and check `count` cases."""
    outcome = Outcome()
    for k in range(count):
        rng = np.random.default_rng((seed, k))
        try:
            found = _check(rng, KITS[k // SAMPLE % 2])  # the sample compiles the kernels of one kit
        except Exception as problem:
            found = f"{type(problem).__name__}: {problem}"
        if found in ("", *EXPECTED):
            outcome.counts[found or "equal to MuJoCo and to itself"] += 1
        else:
            outcome.counts["wrong"] += 1
            outcome.findings.append(f"seed {seed}, case {k}: {found}")
    return outcome


def _check(rng, kit):
    """What is wrong with one random model; nothing if all is right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = changed(rng, kit)
        try:
            text = saved(model)
        except ag.ModelError as problem:
            return REFUSED if "box in a fluid" in str(problem) else str(problem)  # a body without mass that stays
        again = ag.load(text)
        if problem := structure(model, again):
            return problem
        return motion(rng, model, again, text)


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        ag.save(model, Path(folder) / "m.xml")
        return (Path(folder) / "m.xml").read_text()


def touching(model):
    names = model.shapes.names
    return {frozenset((names[a], names[b])) for a, b in model.shapes.pairs}


def structure(one, other):
    """What of names and topology a saved model lost."""
    for what in ("actuators", "transmissions", "activations", "muscles", "actuator_kind", "options", "stopped_tendons"):
        if what != "transmissions" and getattr(one, what) != getattr(other, what):
            return f"{what}: {getattr(one, what)} and {getattr(other, what)}"
    heavy = [{b for b, mass in zip(m.bodies, m.params.mass, strict=True) if mass} for m in (one, other)]
    moving = [{name for i, name in enumerate(m.joints) if m.joint_kind(i).nv} for m in (one, other)]
    if moving[0] != moving[1] or heavy[0] != heavy[1]:
        return "bodies or joints"
    for name in ("keyframes", "cameras", "sensors", "equalities", "tendons", "sites"):
        sets = [{getattr(x, "name", x) for x in getattr(m, name)} for m in (one, other)]
        if not sets[0] <= sets[1]:
            return f"{name}: {sets[0] - sets[1]}"
    if touching(one) != touching(other):
        return f"pairs: {[sorted(p) for p in touching(one) ^ touching(other)][:3]}"
    return ""


def entries(model, i, k):
    """Where joint i is in q (k = 0) or v (k = 1)."""
    return (model.joint_q, model.joint_v)[k][i] + np.arange((model.joint_kind(i).nq, model.joint_kind(i).nv)[k])


def motion(rng, model, again, text):
    """One step of the model, of the loaded one, and MuJoCo's."""
    state, u = near_home(rng, model), rng.normal(size=model.nu)
    order = [model.joint(name) for i, name in enumerate(again.joints) if again.joint_kind(i).nv]
    q, v = (np.concatenate([entries(model, i, k) for i in order]) for k in (0, 1))
    sims = [ag.Simulator(m, threads=1, law=ag.SoftOptions(iterations=100), max_contacts=512) for m in (model, again)]
    there = state._replace(q=state.q[q], v=state.v[v])
    one, other = sims[0].step(state, u), sims[1].step(there, u)
    size = max(1.0, np.abs(one.v).max())
    off = max(np.abs(one.v[v] - other.v).max() / size, np.abs(one.q[q] - other.q).max(), _apart(one.act, other.act))
    hollow = any(piece.side >= 0 for tendon in model.tendons for piece in tendon.pieces)
    if not off < (HOLLOW if hollow else ITSELF):
        if off < NEARLY:
            return ROUNDING
        contacts = [touching_points(sim, s, u) for sim, s in zip(sims, (state, there), strict=True)]
        return (
            ORDER
            if model.shapes.names != again.shapes.names and not _agree(*contacts)
            else f"{off:.1e} apart from itself"
        )
    m = mujoco.MjModel.from_xml_string(text)
    tight(m)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = there.q, there.v, u
    if m.na:
        d.act[:] = state.act
    mujoco.mj_step(m, d)
    off = max(np.abs(d.qvel - other.v).max() / max(1.0, np.abs(d.qvel).max()), _apart(other.act, d.act))
    if off < (ROUNDED if any(hull.faces for hull in again.shapes.hulls) else MUJOCO):
        return ""
    if again.shapes.pairs and not same_contacts(sims[1], there, u, m):
        return OTHER
    return f"{off:.1e} apart from MuJoCo"


def _apart(a, b):
    return 0.0 if a is None or not len(a) else float(np.abs(np.asarray(a) - np.asarray(b)).max())


def same_contacts(sim, state, u, m):
    """Whether both have the same contacts, none of which rounding decides; hulls of meshes are MuJoCo's in single precision."""
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.v, u
    mujoco.mj_forward(m, d)
    return _agree(touching_points(sim, state, u), _their_contacts(m, d, Names(m)))


def touching_points(sim, state, u):
    """Contacts at the beginning of a step, by names of shapes."""
    batch = ag.State(*(None if x is None else np.asarray(x)[None] for x in state))
    return _contacts(sim, sim.rollout(batch, u[None, None]))[0]


def near_home(rng, model):
    """A random state about the keyframe."""
    q, v = model.keyframe().q, rng.normal(size=model.nv)
    q = ag.integrate(model, q, 0.2 * rng.normal(size=model.nv))
    return ag.State(q, v, rng.uniform(0.1, 0.9, model.na)) if model.na else ag.State(q, v)


# -- models ------------------------------------------------------------------------------------------------------------------
def changed(rng, kit):
    """A random model that went through edits, or several in one."""
    model = drawn(rng, kit)
    how = rng.choice(["as built", "edited", "renamed", "removed", "attached", "scene"])
    if how == "as built":
        return model
    if how == "scene":
        return ag.scene([model, drawn(rng, kit, small=True)], positions=[(0, 0, 0), (0.5, 0, 0)])
    b = ag.edit(model)
    if how == "renamed":
        for part in (
            "body",
            "joint",
            "shape",
            "site",
            "actuator",
            "tendon",
            "equality",
            "sensor",
            "camera",
            "keyframe",
        ):
            names = b._names(part)
            if names:
                b.rename(part, str(rng.choice(names)), f"new {part}")
    if how == "removed":
        for part in ("joint", "shape", "site", "actuator", "sensor", "body"):
            names = [x for x in b._names(part) if not x.startswith("k")]
            if names:
                b.remove(part, str(rng.choice(names)))
    if how == "attached":
        to = str(rng.choice(["world", *b._names("body")]))
        place = {"position": 0.3 * rng.normal(size=3), "rotation": rng.normal(size=4)}
        tool = ag.edit(drawn(rng, kit, small=True))
        for body in [x for x, record in tool._bodies.items() if record["mocap"] and to != "world"]:
            tool.remove("body", body)
        for equality in tool._names("equality") if to != "world" else ():
            tool.remove(
                "equality", equality
            )  # free bodies get fixed, and what holds them where they were cannot give way
        b.attach(tool.build(), to, prefix="x/", **place)
    return b.build()


def drawn(rng, kit, small=False):
    return _Drawing(rng, kit, small).model()


class _Drawing:
    def __init__(self, rng, kit, small):
        self.rng, self.kit, self.small = rng, kit, small
        self.b = ag.ModelBuilder("random", gravity=(0, 0, -9.81))
        self.b.options = self.b.options.changed({"dt": 0.002, "integrator": "implicitfast"})
        self.b.parents_touch = bool(rng.random() < 0.2)
        self.b.set_fluid(density=1.2, viscosity=0.01, wind=(0.5, 0.1, 0.0))
        self.bodies, self.axial, self.sites = [], [], []

    def chance(self, p):
        return self.rng.random() < p

    def number(self, low, high):
        return float(self.rng.uniform(low, high))

    def place(self, size=0.3):
        return {"position": size * self.rng.normal(size=3), "rotation": self.rng.normal(size=4)}

    def soft(self, prefix=""):
        if self.chance(0.5):
            return {}
        out = {f"{prefix}solref": [self.number(0.01, 0.1), self.number(0.5, 1.5)]}
        if self.chance(0.3):
            out = {f"{prefix}solref": [-self.number(100, 1000), -self.number(5, 50)]}
        return out | {f"{prefix}solimp": [self.number(0.3, 0.9), 0.95, self.number(1e-3, 0.05), 0.5, 2.0]}

    def some(self, **ways):
        return {k: x() for k, x in ways.items() if self.chance(0.5)}

    def model(self):
        self.kit_bodies()
        for k in range(self.rng.integers(1, 4 if self.small else 7)):
            self.body(f"b{k}")
        self.body_sites()
        for body in self.bodies:
            if self.chance(0.4):
                self.shape(str(self.rng.choice(self.kit)), body, {})
        self.tendons()
        self.actuators()
        self.equalities()
        self.rest()
        return self.b.build()

    def mass(self):
        points = 0.15 * self.rng.normal(size=(4, 3))
        points -= points.mean(0)
        C = points.T @ points + 2e-3 * np.eye(3)
        J = np.trace(C) * np.eye(3) - C
        if self.chance(0.3):
            J = np.diag([0.02, 0.02, 0.01])
        m = self.number(0.2, 3)
        moments, axes = np.linalg.eigh(J)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        box = np.sqrt((moments.sum() - 2 * moments) / m * 6)
        own = {"mass": m, "com": 0.05 * self.rng.normal(size=3), "inertia": J}
        return own | {"fluid_box": box, "fluid_rotation": ag.model.quaternions.of_matrix(axes)}

    # -- bodies ----------------------------------------------------------------------------------------------------------
    def kit_bodies(self):
        """One free body with a shape of each kind, so that the kinds of contacts are the same in all cases; what else kernels
        are made for."""
        self.b.add_plane(name="kfloor", position=(0, 0, -0.3), condim=6)
        for n, kind in enumerate(self.kit):
            self.b.add_body(
                f"k{n}", joint="free", position=(0.3 * n, 0.1, 0.0), damping=0.1, dry_friction=0.01, **self.mass()
            )
            self.shape(kind, f"k{n}", {"name": f"kshape{n}", "condim": 6})
            self.bodies.append(f"k{n}")
        limits = {"limit": (-0.1, 0.1), "dry_friction": 0.1, "effort_limit": (-2.0, 2.0), "stiffness_curve": (1.0, 2.0)}
        self.b.add_body(
            "kh",
            joint="revolute",
            damping=0.1,
            gravity_compensation=0.5,
            actuator_gravcomp=True,
            **limits,
            **self.mass(),
        )
        self.b.add_body(
            "kb", "kh", joint="spherical", limit=(0, 0.3), stiffness=0.5, position=(0, 0, 0.3), **self.mass()
        )
        self.b.add_body("ks", "kh", joint="prismatic", position=(0.2, 0, 0.3), **self.mass())
        self.bodies += ["kh", "kb", "ks"]
        self.axial += ["kh", "ks"]

    def body(self, name):
        rng = self.rng
        parent = str(rng.choice(["world", *self.bodies]))
        kind = str(rng.choice(["revolute", "prismatic", "spherical", "fixed", "universal", "mocap", "free"]))
        own = self.mass() | self.place()
        if kind == "mocap":
            self.b.add_body(name, joint="fixed", mocap=True, **self.place())
            self.bodies.append(name)
            return
        moving = self.some(
            damping=lambda: self.number(0, 1),
            armature=lambda: self.number(0, 0.2),
            gravity_compensation=lambda: self.number(0, 1),
            velocity_limit=lambda: self.number(1, 9),
            dry_friction=lambda: self.number(0, 0.5),
        )
        axis = {"axis": rng.normal(size=3)}
        if kind in AXIAL:
            moving |= axis | self.some(
                stiffness=lambda: self.number(0, 50),
                spring_reference=lambda: self.number(-1, 1),
                stiffness_curve=lambda: rng.normal(size=2),
                damping_curve=lambda: rng.uniform(0, 0.1, 2),
                limit=lambda: (-self.number(0, 0.5), self.number(0, 0.5)),
                limit_margin=lambda: self.number(0, 0.02),
                effort_limit=lambda: (-self.number(0, 5), self.number(0, 5)),
                reference=lambda: self.number(-0.5, 0.5),
            )
            moving |= self.soft("limit_") | self.soft("dry_")
            self.axial.append(name)
        if kind not in ("fixed", "free"):
            own["anchor"] = 0.1 * rng.normal(size=3)
        if kind == "fixed":
            moving = {}
        if kind == "free":
            parent = "world"
        if kind == "universal":
            moving = self.some(damping=lambda: self.number(0, 1))
            self.b.add_universal(name, parent, axes=(rng.normal(size=3), rng.normal(size=3)), **own, **moving)
            self.axial += [f"{name}:1", name]
            if self.chance(0.3):
                self.b.add_site(f"{name} between", f"{name}:1", **self.place(0.1))
        else:
            self.b.add_body(name, parent, joint=kind, **own, **moving)
        self.bodies.append(name)

    def shape(self, kind, body, more):
        rng, size = self.rng, self.rng.uniform(0.05, 0.15, 3)
        more = self.place(0.03) | self.soft() | more
        more |= self.some(
            friction=lambda: self.number(0, 1.5),
            torsional_friction=lambda: self.number(0, 0.05),
            rolling_friction=lambda: self.number(0, 0.01),
            margin=lambda: self.number(0, 0.01),
            solmix=lambda: self.number(0, 2),
            priority=lambda: int(rng.integers(2)),
            group=lambda: int(rng.choice([1, 3, 2**30, -1])),
            touches=lambda: int(rng.choice([1, 2, 2**30 + 1, -1])),
        )
        if more.get("name", "").startswith("k"):
            more |= {"group": -1, "touches": -1}
        given = {
            "sphere": (size[0],),
            "capsule": (size[0], size[1]),
            "cylinder": (size[0], size[1]),
            "box": (size,),
            "ellipsoid": (size,),
            "convex_hull": (rng.normal(size=(12, 3)) * size,),
        }[kind]
        getattr(self.b, f"add_{kind}")(body, *given, **({"condim": int(rng.choice([1, 3, 4, 6]))} | more))

    def body_sites(self):
        for body in ["world", *self.bodies]:
            self.sites.append(self.b.add_site(f"at {body}", body, **self.place(0.2)))

    # -- on them ---------------------------------------------------------------------------------------------------------
    def tendon_numbers(self):
        own = self.some(
            stiffness=lambda: self.number(0, 50),
            damping=lambda: self.number(0, 1),
            rest=lambda: sorted(self.rng.uniform(0, 1, 2)),
            limit=lambda: (self.number(-2, -0.1), self.number(0.1, 0.5)),
            dry_friction=lambda: self.number(0, 0.5),
            damping_curve=lambda: self.rng.uniform(0, 0.1, 2),
        )
        return own | self.soft("limit_") | self.soft("dry_")

    def tendons(self):
        fixed = {"limit": (-0.1, 0.1), "dry_friction": 0.01, "stiffness_curve": (1.0, 0.5)}
        self.b.add_fixed_tendon("ksum", {"kh": 1.0, "ks": -0.5}, **fixed)
        wrap = ("cylinder", "at kb", 0.05)
        self.b.add_spatial_tendon(
            "kline", ["at world", wrap, "at kh", 2.0, "at ks", "at k0"], stiffness=5.0, rest=(0.1, 0.2)
        )
        pick = lambda: str(self.rng.choice(self.sites))  # noqa: E731
        if self.chance(0.5):
            path = [str(x) for x in self.rng.choice(self.sites, 3, replace=False)]
            around = (str(self.rng.choice(["sphere", "cylinder"])), pick(), self.number(0.02, 0.1))
            path.insert(1, around if self.chance(0.5) else (*around, pick()))
            self.b.add_spatial_tendon("line", path, **self.tendon_numbers())
        if self.chance(0.5):
            chosen = self.rng.choice(self.axial, min(3, len(self.axial)), replace=False)
            self.b.add_fixed_tendon("sum", {str(x): self.rng.normal() for x in chosen}, **self.tendon_numbers())

    def actuators(self):
        b = self.b
        b.add_motor("kmotor", "kh", gear=2.0)
        b.add_actuator("kpull", tendon="kline", dynamics="filter", activation_time=(0.1, 0, 0), gain_slope=(0.1, -0.2))
        b.add_muscle("kmuscle", tendon="ksum", force=20.0, length_range=(-0.5, 0.5))
        b.add_actuator("kthrust", site="at k0", gear=self.rng.normal(size=6))
        for name in self.axial:
            if self.chance(0.3):
                own = self.some(
                    gear=lambda: self.number(0.5, 3),
                    control_range=lambda: (-self.number(0, 1), self.number(0, 1)),
                    max_force=lambda: self.number(1, 5),
                )
                kind = str(self.rng.choice(["motor", "position_servo", "velocity_servo"]))
                own |= {"gain": self.number(1, 50)} if kind.endswith("servo") else {}
                getattr(b, f"add_{kind}")(f"on {name}", name, **own)
        if self.chance(0.3):
            crank, slider = (str(x) for x in self.rng.choice(self.sites, 2, replace=False))
            b.add_actuator("slide", crank=crank, slider=slider, crank_length=self.number(1.0, 2.0))

    def equalities(self):
        b, pick = self.b, lambda: str(self.rng.choice(self.bodies))
        still = {name for name, r in b._bodies.items() if r["mocap"]}
        b.add_connect("k0", "kb", anchor=0.1 * self.rng.normal(size=3), name="kheld", **self.soft())
        b.add_weld("k1", "world", torque_scale=self.number(0.2, 2), name="kweld", **self.soft())
        b.add_joint_coupling("kh", "ks", polynomial=0.2 * self.rng.normal(size=5), name="kgear", **self.soft())
        b.add_tendon_coupling("ksum", "kline", polynomial=0.2 * self.rng.normal(size=5), name="kstrings")
        one, other = pick(), pick()
        if one != other and not {one, other} <= still:
            getattr(b, str(self.rng.choice(["add_connect", "add_weld"])))(one, other, name="held", **self.soft())
        if self.chance(0.3):
            b.add_joint_coupling(str(self.rng.choice(self.axial)), name="stopped")

    def rest(self):
        b, rng = self.b, self.rng
        names = list(b._shapes)
        for _ in range(rng.integers(3)):
            one, other = (str(x) for x in rng.choice(names, 2, replace=False))
            friction = np.repeat(rng.uniform(0, 1, 3), (2, 1, 2))
            b.add_pair(one, other, condim=int(rng.choice([1, 3, 4, 6])), friction=friction, margin=0.001)
        if self.chance(0.5):
            b.add_exclude(*(str(x) for x in rng.choice(["world", *self.bodies], 2, replace=False)))
        b.add_sensor("angle", "jointpos", "kh")
        b.add_sensor("where", "framepos", str(rng.choice(self.sites)), ref=str(rng.choice(self.sites)))
        b.add_sensor("felt", "accelerometer", str(rng.choice(self.sites)))
        b.add_sensor("pulled", "tendonpos", "kline")
        b.add_sensor("force", "actuatorfrc", "kmotor")
        b.add_sensor("middle", "subtreecom", str(rng.choice(self.bodies)))
        b.add_camera("eye", str(rng.choice(["world", *self.bodies])), **self.place())
        b.add_visual(str(rng.choice(self.bodies)), "box", size=(0.1, 0.1, 0.1))
        if self.chance(0.5):
            b.add_keyframe("home")
