"""Muscle models of arms and legs: one step compared with MuJoCo."""

from itertools import pairwise

import mujoco
import numpy as np

import artigrad as ag
from artigrad.model import tangent

from .outcome import Outcome

SUMMARY = (
    "Random chains of bones with 10 to 60 muscles along paths around spheres, cylinders, pulleys and side sites inside and "
    "outside: lengths, velocities and forces of all muscles, and one step, beside MuJoCo."
)
COUNT, SAMPLE = 1_000, 4
STEP = 1e-9  # of positions, velocities and activations, relative to the largest
SENSED = 1e-9  # of lengths, velocities and forces, where no string is reflected inside a shape
INSIDE = 1e-6  # and where one is: there MuJoCo's iteration stops at 1e-6
STATES = 4  # of one model


def search(count, seed):
    """Draw and check `count` states."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    backend = "numpy" if count <= SAMPLE else "native"
    for first in range(0, count, STATES):
        text, muscles, hollow = model_text(rng)
        kind = f"{10 * (muscles // 10)} to {10 * (muscles // 10) + 9} muscles"
        where = f"seed {seed}, model {first // STATES}"
        _check(outcome, text, kind, hollow, where, rng, min(STATES, count - first), backend)
    return outcome


def _check(outcome, text, kind, hollow, where, rng, size, backend):
    m, model = mujoco.MjModel.from_xml_string(text), ag.load(text)
    m.opt.iterations, m.opt.tolerance, m.opt.ls_iterations = 100, 0, 100
    d, sim = mujoco.MjData(m), ag.Simulator(model, threads=1, backend=backend)
    q = tangent.integrate(model, np.tile(model.keyframe().q, (size, 1)), 0.5 * rng.normal(size=(size, model.nv)))
    state = ag.State(q, 2 * rng.normal(size=(size, model.nv)), rng.random((size, model.na)))
    u = rng.random((size, model.nu))
    read, after = np.concatenate(list(sim.sensors(state, u).values()), 1), sim.rollout(state, u[:, None])
    for k in range(size):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = *(x[k] for x in state), u[k]
        mujoco.mj_step(m, d)
        scale = np.maximum(1.0, np.abs(d.sensordata))
        sensed = np.abs(read[k] - d.sensordata) / scale
        pairs = (after.q[k, 1], d.qpos), (after.v[k, 1], d.qvel), (after.act[k, 1], d.act)
        step = max(np.abs(a - b).max() / max(1.0, np.abs(b).max()) for a, b in pairs)
        if sensed.max() < (INSIDE if hollow else SENSED) and step < (1e3 * STEP if hollow else STEP):
            exact = "to 1e-9" if step < STEP else "to 1e-6, strings reflected inside shapes"
            outcome.counts[f"{kind}: equal to MuJoCo {exact}"] += 1
        else:
            outcome.counts[f"{kind}: not MuJoCo's"] += 1
            worst = model.sensors[int(sensed.argmax())].name
            outcome.findings.append(f"{where}, state {k}: step {step:.1e}, sensor {worst} {sensed.max():.1e}")


# -- models ------------------------------------------------------------------------------------------------------------------
def _vec(x):
    return " ".join(repr(float(y)) for y in np.atleast_1d(x))


def _direction(rng):
    x = rng.normal(size=3)
    return x / np.linalg.norm(x)


def model_text(rng):
    """Return MJCF of a random arm or leg, the number of muscles, and whether any side site is inside its shape."""
    bones, muscles, hollow = rng.integers(2, 8), rng.integers(10, 61), rng.random() < 0.5
    shapes = [[] for _ in range(bones + 1)]
    parents, bodies = [0], [_bone_parts(rng, 0, shapes, hollow)]
    for k in range(1, bones + 1):
        parents.append(k - 1 if rng.random() < 0.8 else int(rng.integers(k)))
        bodies.append(_bone(rng, k, shapes, hollow))
    paths = [_path(rng, parents, shapes) for _ in range(muscles)]

    def written(lengths):
        tree = _tree(0, parents, bodies)
        tendons = "".join(f'<spatial name="t{k}" {_tendon(rng)}>{path}</spatial>' for k, path in enumerate(paths))
        pulls = "".join(f'<muscle tendon="t{k}" {_muscle(x)}/>' for k, x in enumerate(lengths))
        names = [f'tendon="t{k}"' for k in range(muscles)]
        sensors = "".join(f"<tendonpos {n}/><tendonvel {n}/><tendonactuatorfrc {n}/>" for n in names)
        return (
            f'<mujoco><option timestep="0.002"/><default><geom contype="0" conaffinity="0"/></default><worldbody>{tree}'
            f"</worldbody><tendon>{tendons}</tendon><actuator>{pulls}</actuator><sensor>{sensors}</sensor></mujoco>"
        )

    start = rng.bit_generator.state
    lengths = mujoco.MjModel.from_xml_string(written(np.ones(muscles))).tendon_length0
    rng.bit_generator.state = start  # so that both have the same tendons
    return written(lengths), int(muscles), bool(hollow)


def _tree(k, parents, bodies):
    """Return body k, given its opening tag, and its descendants; 0 is the world."""
    inside = "".join(_tree(i, parents, bodies) for i in range(k + 1, len(parents)) if parents[i] == k)
    return bodies[k] + inside + ("</body>" if k else "")


def _bone(rng, k, shapes, hollow):
    joints = rng.choice(["hinge", "hinges", "ball"], p=[0.6, 0.25, 0.15])
    hinge = '<joint axis="{}" pos="{}" damping=".05" armature=".01" range="-120 120" limited="true"/>'
    count = {"hinge": 1, "hinges": 2, "ball": 0}[joints]
    text = "".join(hinge.format(_vec(_direction(rng)), _vec(0.01 * rng.normal(size=3))) for _ in range(count))
    text = text or '<joint type="ball" damping=".05" armature=".01"/>'
    place = f'pos="0 0 {-0.3 if k > 1 else 1.0}" euler="{_vec(20 * rng.normal(size=3))}"'
    return f'<body name="b{k}" {place}>{text}{_bone_parts(rng, k, shapes, hollow)}'


def _bone_parts(rng, k, shapes, hollow):
    """Return geoms and sites of a bone of 0.3 m; its wrapping shapes, with names of side sites."""
    z = 1.15 if k == 0 else 0.0
    parts = f'<geom type="ellipsoid" size=".03 .04 .16" pos="0 0 -.15" mass="{rng.uniform(0.3, 2)}"/>' if k else ""
    for n in range(rng.integers(1, 4)):
        name, radius = f"{k}_{n}", rng.uniform(0.01, 0.04)
        center = np.array([0, 0, z - 0.3 * rng.choice([0.0, 0.5, 1.0])]) + 0.01 * rng.normal(size=3)
        size = f'type="sphere" size="{radius}"' if rng.random() < 0.5 else f'type="cylinder" size="{radius} .03"'
        parts += f'<geom name="w{name}" {size} pos="{_vec(center)}" euler="{_vec(90 * rng.normal(size=3))}" mass="0"/>'
        side = rng.choice(["", "out", "in"] if hollow else ["", "out"])
        reach = {"": 0.0, "out": 1.2 + rng.random(), "in": 0.8 * rng.random()}[str(side)] * radius
        parts += f'<site name="side{name}" pos="{_vec(center + reach * _direction(rng))}"/>' if side else ""
        shapes[k].append((f"w{name}", f'sidesite="side{name}"' if side else ""))
    for n in range(4):
        height = z - 0.3 * rng.random()
        around = 0.06 * _direction(rng) * [1, 1, 0]
        parts += f'<site name="s{k}_{n}" pos="{_vec(around + np.array([0, 0, height]))}"/>'
    return parts


def _path(rng, parents, shapes):
    """Return a path over sites of one to three bones, around some shapes, possibly with a pulley."""
    chain = [int(rng.integers(1, len(parents)))]
    while len(chain) < 4 and chain[-1]:
        chain.append(parents[chain[-1]])
    chain = chain[: int(rng.integers(2, 5))]
    text = f'<site site="s{chain[0]}_{rng.integers(4)}"/>'
    for one, two in pairwise(chain):
        if rng.random() < 0.7:
            name, side = shapes[rng.choice([one, two])][0] if rng.random() < 0.5 else shapes[two][-1]
            text += f'<geom geom="{name}" {side}/>'
        text += f'<site site="s{two}_{rng.integers(4)}"/>'
        if rng.random() < 0.1:
            text += (
                f'<pulley divisor="2"/><site site="s{one}_{rng.integers(4)}"/><site site="s{two}_{rng.integers(4)}"/>'
            )
    return text


def _tendon(rng):
    return rng.choice(["", "", 'stiffness="20"', 'damping="1"', 'limited="true" range="0 .5"', 'frictionloss=".5"'])


def _muscle(length):
    return f'force="100" lengthrange="{0.7 * length} {1.2 * length}"'
