"""Random models with every kind of part, edited and merged: compared with MuJoCo, and after saving and loading."""

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np

import artigrad as ag
from artigrad.formats.names import Names
from artigrad.model.model import CYLINDER, ELLIPSOID, HEIGHT_FIELD, RESERVED
from artigrad.model.params import FIELDS
from artigrad.physics.sensors.distance_sensors import DISTANCE_SENSORS

from ..beside import _agree, _contacts, _their_contacts, tight
from .outcome import Outcome
from .random_models import Chance, random_model

SUMMARY = (
    "Random models made by the builder with parts of every kind (joints, shapes, meshes, height fields, tendons, actuators, "
    "equalities, sensors, fluids, keyframes, options, ...), edited, merged, saved and loaded: one step beside MuJoCo's "
    "of the saved file to 1e-9, and beside the model that was saved to 1e-12 of the largest velocity; readings of all sensors "
    "likewise. An edit without changes is the same model, a second round trip the same as the first. Hulls of meshes "
    "and height fields beside MuJoCo's to 1e-5: it rounds them."
)
COUNT, SAMPLE = 2_000, 8
AXES = ("fluid_box", "fluid_rotation")  # axes of an inertia may be permuted
MUJOCO, ITSELF = 1e-9, 1e-12
ROUNDED = 1e-5  # with hulls of meshes, which MuJoCo's compiler rounds to single precision
HOLLOW = 1e-8  # beside itself, with tendons that may pass inside a shape: MuJoCo finds their weights by iteration
OTHER = "equal to itself, other contacts than MuJoCo"
REFUSED = "refused by ag.save: a body without mass in a fluid"
ORDER = "other contacts where the file has two shapes of one kind in the other order"
NEARLY, ROUNDING = 1e-10, "within 1e-10 of itself"  # rounding, in stiff models
CURVED = 1e-7  # beside MuJoCo, with contacts of ellipsoids and cylinders, which it finds by iteration
EARLY = "equal to itself, noslip under elliptic cones, whose updates MuJoCo ends after 20 iterations"
UNLIKE = "refused by ag.load: pairs of fields or planes after merging, adhesion beside noslip"
IDLE = "equal to itself, rows that no joint can move: MuJoCo damps them, or amplifies rounding"
BOTH = "refused: adhesion beside limits of effort or sensors of joint forces, or two parts of one name"
EXPECTED = (OTHER, REFUSED, ORDER, ROUNDING, EARLY, UNLIKE, IDLE, BOTH)
CUBE = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1), "fluid_box": (0.6**0.5,) * 3}
PARTS = ("body", "joint", "shape", "site", "actuator", "tendon", "equality", "sensor", "camera", "keyframe")


def search(count, seed):
    """Draw and check `count` cases."""
    outcome = Outcome()
    for k in range(count):
        rng = np.random.default_rng((seed, k))
        try:
            found = _check(rng)
        except Exception as problem:
            found = f"{type(problem).__name__}: {problem}"
        if found in ("", *EXPECTED):
            outcome.counts[found or "equal to MuJoCo and to itself"] += 1
        else:
            outcome.counts["wrong"] += 1
            outcome.findings.append(f"seed {seed}, case {k}: {found}")
    return outcome


def _check(rng):
    """Return the failure of one random model; None if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = changed(rng)
        except ag.ModelError as problem:
            if any(text in str(problem) for text in ("pulls a body to what it touches", "adhesion does", "are unique")):
                return BOTH
            raise
        if problem := same(model, ag.edit(model).build()):
            return f"edited without changes: {problem}"
        try:
            text = saved(model)
        except ag.ModelError as problem:
            return REFUSED if "fluid box" in str(problem) else str(problem)  # a body without mass that stays
        try:
            again = ag.load(text)
        except ag.ModelError as problem:
            if any(text in str(problem) for text in ("these pairs do not touch", "beside noslip")):
                return UNLIKE
            raise
        if problem := structure(model, again) or same(again, ag.load(saved(again))):
            return problem
        return motion(rng, model, again, text)


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        ag.save(model, Path(folder) / "m.xml")
        return (Path(folder) / "m.xml").read_text()


def touching(model):
    names = model.shapes.names
    return {frozenset((names[a], names[b])) for a, b in model.shapes.pairs}


def same(one, other):
    """Return a description of the first difference of two models that should be equal, or None."""
    parts = ("bodies", "joints", "parent", "joint_type", "sites", "actuators", "transmissions", "tendons", "equalities")
    parts += ("activations", "muscles", "actuator_kind", "options", "stopped_tendons", "sensors", "mocap")
    for what in (*parts, "actuator_gravcomp"):
        if getattr(one, what) != getattr(other, what):
            return f"{what}: {getattr(one, what)} and {getattr(other, what)}"
    for what in ("names", "kind", "body", "masks", "condim", "priority", "gap", "pairs", "included", "unseen", "wet"):
        if getattr(one.shapes, what) != getattr(other.shapes, what):
            return f"shapes.{what}: {getattr(one.shapes, what)} and {getattr(other.shapes, what)}"
    for name in (x for x in FIELDS if x not in AXES):
        if not np.allclose(one.params[name], other.params[name], rtol=1e-12, atol=1e-13):
            return f"params.{name}: {one.params[name]} and {other.params[name]}"
    if one.keyframes.keys() != other.keyframes.keys() or len(one.visuals) != len(other.visuals):
        return f"keyframes or visuals: {[*one.keyframes]}, {[*other.keyframes]}"
    for name, frame in one.keyframes.items():
        if not all(np.allclose(x, y, rtol=1e-14) for x, y in zip(frame, other.keyframes[name], strict=True)):
            return f"keyframe '{name}': {frame} and {other.keyframes[name]}"
    return ""


def structure(one, other):
    """Return names and topology that a saved model lost."""
    for what in ("actuators", "activations", "muscles", "options", "stopped_tendons"):
        if getattr(one, what) != getattr(other, what):
            return f"{what}: {getattr(one, what)} and {getattr(other, what)}"
    heavy = [{b for b, mass in zip(m.bodies, m.params.mass, strict=True) if mass > 1e-13} for m in (one, other)]
    moving = [{name for i, name in enumerate(m.joints) if m.joint_kind(i).nv} for m in (one, other)]
    if moving[0] != moving[1] or heavy[0] != heavy[1]:
        return "bodies or joints"
    for name in ("keyframes", "sensors", "equalities", "tendons", "sites"):
        sets = [{getattr(x, "name", x) for x in getattr(m, name)} for m in (one, other)]
        if not sets[0] <= sets[1]:
            return f"{name}: {sets[0] - sets[1]}"
    if touching(one) != touching(other):
        return f"pairs: {[sorted(p) for p in touching(one) ^ touching(other)][:3]}"
    return _numbers_for_others(one, other) or _keyframes(one, other)


def _numbers_for_others(one, other):
    """Return cameras, visuals, magnets or velocity limits that a saved model lost; no step depends on them."""
    here, there = (
        [(m.bodies[c.body] if c.body >= 0 else "", *c[2:]) for m in (x,) for c in sorted(m.cameras)]
        for x in (one, other)
    )
    if not all(
        a[0] == b[0] and np.allclose(np.r_[a[1], _same_sign(a[2], b[2]), a[3]], np.r_[b[1:]])
        for a, b in zip(here, there, strict=True)
    ):
        return f"cameras: {here} and {there}"
    if len(one.visuals) != len(other.visuals):
        return f"visuals: {len(one.visuals)} and {len(other.visuals)}"
    limits = [
        {name: m.params.velocity_limit[i] for i, name in enumerate(m.joints) if m.joint_kind(i).nv}
        for m in (one, other)
    ]
    if limits[0] != limits[1]:
        return f"velocity_limit: {limits}"
    return "" if np.allclose(one.params.magnetic, other.params.magnetic, rtol=1e-14) else "magnetic"


def _same_sign(q, other):
    return np.array(q) * (1.0 if np.dot(q, other) > 0 else -1.0)


def _keyframes(one, other):
    """Return keyframes that a saved model changed."""
    q, v = order(one, other)
    for name, frame in one.keyframes.items():
        if name not in RESERVED:
            ours = frame.q[q], frame.v[v], frame.u, frame.act
            if not all(np.allclose(x, y, rtol=1e-14) for x, y in zip(ours, other.keyframes[name], strict=False)):
                return f"keyframe '{name}': {ours} and {other.keyframes[name]}"
    return ""


def entries(model, i, k):
    """Return the first entry of joint i in q (k = 0) or v (k = 1)."""
    return (model.joint_q, model.joint_v)[k][i] + np.arange((model.joint_kind(i).nq, model.joint_kind(i).nv)[k])


def order(model, again):
    """Return the indices of the entries of q and v of a loaded model in those of the saved model."""
    joints = [model.joint(name) for i, name in enumerate(again.joints) if again.joint_kind(i).nv]
    return tuple(np.concatenate([np.zeros(0, int), *(entries(model, i, k) for i in joints)]) for k in (0, 1))


def motion(rng, model, again, text):
    """Return one step of the model, of the loaded one, and of MuJoCo, and readings of sensors."""
    state, u = near_home(rng, model), rng.normal(size=model.nu)
    q, v = order(model, again)
    own = {"law": replace(model.options.soft, iterations=100)} if model.has_contact else {}
    sims = [ag.Simulator(m, threads=1, backend="numpy", max_contacts=512, **own) for m in (model, again)]
    there = state._replace(q=state.q[q], v=state.v[v])
    one, other = sims[0].step(state, u), sims[1].step(there, u)
    size = max(1.0, np.abs(one.v).max(initial=0.0))
    off = max(_apart(one.v[v], other.v) / size, _apart(one.q[q], other.q), _apart(one.act, other.act))
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
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:], d.ctrl[:] = there.q, there.v, u
    if m.na:
        d.act[:] = state.act
    mujoco.mj_forward(m, d)
    readings = d.sensordata.copy()
    mujoco.mj_step(m, d)
    off = max(_apart(d.qvel, other.v) / max(1.0, np.abs(d.qvel).max(initial=0.0)), _apart(other.act, d.act))
    rounded = any(hull.faces for hull in again.shapes.hulls) or HEIGHT_FIELD in again.shapes.kind
    curved = {again.shapes.kind[k] for pair in again.shapes.pairs for k in pair} & {ELLIPSOID, CYLINDER}
    if not off < (ROUNDED if rounded else CURVED if curved else MUJOCO):
        if again.shapes.pairs and not same_contacts(sims[1], there, u, m):
            return OTHER
        if again.options.soft.noslip and again.options.cone == "elliptic":
            return EARLY
        dead = any(not again.lines[0][t].dofs for t in again.stopped_tendons)
        idle = dead or any("one rigid body" in note.what for note in again.notes)
        return IDLE if idle else f"{off:.1e} apart from MuJoCo"
    return "" if rounded else _readings(sims, (state, there), u, m, readings)


def _readings(sims, states, u, m, wanted):
    """Return readings that differ."""
    if not sims[0].model.sensors:
        return ""
    one, other = (sim.sensors(state, u) for sim, state in zip(sims, states, strict=True))
    for s, (name, y) in enumerate(other.items()):
        if m.sensor_type[s] == mujoco.mjtSensor.mjSENS_TORQUE and m.site_bodyid[m.sensor_objid[s]] == 0:
            continue  # MuJoCo's of the world adds torques about different points
        theirs = wanted[m.sensor_adr[s] : m.sensor_adr[s] + m.sensor_dim[s]]
        size = max(1.0, np.abs(y).max(initial=0.0))
        if not _apart(y, one[name]) / size < 1e-9:
            return f"sensor {name}: {y} and {one[name]} before it was saved"
        iterated = sims[1].model.sensors[s].kind in (*DISTANCE_SENSORS, "contact")  # of curved shapes
        if not _apart(y, theirs) / size < (1e-4 if iterated else 1e-8):
            return f"sensor {name}: {y} and {theirs} of MuJoCo"
    return ""


def _apart(a, b):
    return 0.0 if a is None or not len(a) else float(np.abs(np.asarray(a) - np.asarray(b)).max())


def same_contacts(sim, state, u, m):
    """Return True if both have the same contacts at all stages of a step, none decided by rounding."""
    d, start = mujoco.MjData(m), state
    for ahead in (0.5, 0.5, 1.0, None) if sim.options.integrator == "rk4" else (None,):
        d.qpos[:], d.qvel[:], d.ctrl[:] = state.q, state.v, u
        if m.na:
            d.act[:] = start.act
        mujoco.mj_forward(m, d)
        if not _agree(touching_points(sim, state, u), _their_contacts(m, d, Names(m))):
            return False
        h = m.opt.timestep * (ahead or 0.0)
        q = start.q.copy()
        mujoco.mj_integratePos(m, q, d.qvel, h)
        state = start._replace(q=q, v=start.v + h * d.qacc)
    return True


def touching_points(sim, state, u):
    """Return contacts at the beginning of a step, by names of shapes."""
    batch = ag.State(*(None if x is None else np.asarray(x)[None] for x in state))
    return _contacts(sim, sim.rollout(batch, u[None, None]))[0]


def near_home(rng, model):
    """Return a random state near the keyframe."""
    q, v = model.keyframe().q, rng.normal(size=model.nv)
    q = ag.integrate(model, q, 0.2 * rng.normal(size=model.nv))
    return ag.State(q, v, rng.uniform(0.1, 0.9, model.na)) if model.na else ag.State(q, v)


# -- edits -------------------------------------------------------------------------------------------------------------------
def changed(rng):
    """Return a random model after edits, or several merged."""
    draw, model = Chance(rng), random_model(rng)
    for _ in range(rng.integers(3)):
        edit = draw.one((_renamed, _removed, _attached, _added, _scene))
        model = edit(draw, model)
    if not model.nv:  # an edit took the last joint
        b = ag.edit(model)
        b.add_body("last", joint="revolute", **CUBE)
        model = b.build()
    return model


def _scene(draw, model):
    robots = [model, *(random_model(draw.rng, small=True) for _ in range(draw.rng.integers(1, 3)))]
    return ag.scene(robots, positions=0.5 * draw.rng.normal(size=(len(robots), 3)), floor=draw.chance(0.5))


def _renamed(draw, model):
    b = ag.edit(model)
    for part in PARTS:
        if names := b._names(part):
            b.rename(part, draw.one(names), f"new {part} {len(names)}")
    return b.build()


def _removed(draw, model):
    b = ag.edit(model)
    for part in draw.few(PARTS, 3):
        names = b._names(part)
        if len(names) > (part == "body"):
            b.remove(part, draw.one(names))
    return b.build() if b._bodies else model


def _added(draw, model):
    b = ag.edit(model)
    to = draw.one(["world", *b._names("body")])
    name = f"added {len(b._names('body'))}"
    b.add_body(name, to, joint="revolute", anchor=(0.1, 0, 0), **CUBE, **draw.place())
    b.add_sphere(name, 0.05)
    b.add_motor(name, name)
    b.add_site(name, name, **draw.place(0.1))
    b.add_sensor(name, "framepos", name)
    return b.build()


def _attached(draw, model):
    b = ag.edit(model)
    to = draw.one(["world", *b._names("body")])
    tool = ag.edit(random_model(draw.rng, small=True))
    if to != "world":  # free bodies get fixed, and what holds them where they were cannot give way
        for equality in tool._names("equality"):
            tool.remove("equality", equality)
        for body in [x for x, record in tool._bodies.items() if record["mocap"]]:
            tool.remove("body", body)
    if tool._bodies:
        b.attach(tool.build(), to, prefix=f"{len(b._names('body'))}/", **draw.place())
    return b.build()
