"""Constraint rows with a Jacobian near zero beside regular ones: steps compared with MuJoCo, gradients with differences.

MuJoCo also multiplies the rounding error of such a Jacobian with a stiffness of up to 1e15. In exact arithmetic a row that
nothing moves has no effect, so that the reference is MuJoCo without it. Partly immovable rows remain in the reference.
"""

import warnings

import mujoco
import numpy as np

import artigrad as ag

from .outcome import Outcome

SUMMARY = (
    "Robots on a post whose center of mass lies on its axis: contacts, tendons (limits, dry friction, couplings), connects "
    "and welds that no joint can move, or only in some directions, beside an arm on the floor, limits and dry friction; both "
    "cones, aligned and tilted axes. One step beside MuJoCo without the immovable rows, first derivatives against differences."
)
COUNT, SAMPLE = 5_000, 16
STEP, GRADIENT = 1e-8, 1e-5  # relative errors

WORLD = """<mujoco><option timestep="0.002" cone="{cone}" tolerance="0" iterations="300" ls_iterations="200"/>
<worldbody><geom name="floor" type="plane" size="5 5 .1" pos="0 0 {floor}" zaxis="{normal}"/>
<site name="w0" pos="{on_axis}"/><site name="w1" pos="{above}"/>
<body name="post" pos="{at}" quat="{quat}"><joint name="turn" axis="0 0 1" armature=".1" {rub}/>
 <geom type="capsule" fromto="0 0 0 0 0 .1" size=".027" mass="3" contype="0" conaffinity="0"/>
 <site name="p0" pos="0 0 .07"/><site name="p1" pos=".1 .05 .02"/><site name="p2" pos="-.05 .1 .03"/>
 {post}
 <body name="upper" pos="0 0 .2"><joint name="lift" axis="0 1 0" armature=".02" range="{range}" limited="true" {rub}/>
  <geom name="arm" type="capsule" fromto="0 0 0 .5 0 -.3" size=".02" mass="2"/><site name="u0" pos=".2 0 -.1"/>
  <body name="hand" pos=".5 0 -.3"><joint name="wrist" axis="0 1 .2" armature=".02" {rub}/>
   <geom name="hand" type="capsule" fromto="0 0 0 .2 .05 .01" size=".02" mass=".5"/>
  </body></body></body></worldbody>
<actuator><motor joint="turn"/><motor joint="lift"/><motor joint="wrist"/></actuator>
<tendon><spatial name="alive" limited="true" range="0 {long}" frictionloss="{loss}"><site site="w1"/><site site="u0"/></spatial>
<fixed name="sum" frictionloss="{loss}"><joint joint="lift" coef="1"/><joint joint="wrist" coef="-.5"/></fixed>{tendon}</tendon>
<equality><tendon tendon1="sum" tendon2="alive" polycoef="{poly}" active="{coupled}"/>{equality}</equality></mujoco>"""
OFF = ' contype="0" conaffinity="0"'
PLATE = (
    '<geom name="own" type="sphere" size=".03" pos="0 0 .15" mass="1"/><body name="plate" pos="0 0 .15">'
    f'<geom name="plate" type="box" size=".05 .05 .02" mass="1" {OFF}/></body>'
)
DEAD = {  # the part of the post, tendons, equalities
    "sphere on the axis": ('<geom name="idle" type="sphere" size=".06" pos="0 0 .02" mass="1"/>', "", ""),
    "ball within a ball": (
        '<geom name="ball" size=".06" pos="0 0 .05" mass="1" condim="1" priority="1"/>',
        "",
        "",
    ),
    "tendon on one body": (
        "",
        '<spatial name="dead" frictionloss=".8" limited="true" range="0 .05"><site site="p1"/><site site="p2"/></spatial>',
        "",
    ),
    "tendon along the axis": (
        "",
        '<spatial name="axial" frictionloss=".8" limited="true" range="0 .01"><site site="w0"/><site site="p0"/></spatial>',
        "",
    ),
    "fixed tendon of coefficient zero": (
        "",
        '<fixed name="nothing" frictionloss=".8" limited="true" range=".1 .2"><joint joint="lift" coef="0"/></fixed>',
        "",
    ),
    "coupled tendon along the axis": (
        "",
        '<spatial name="coupled"><site site="w0"/><site site="p0"/></spatial>',
        '<tendon tendon1="coupled" polycoef=".3 0 0 0 0"/>',
    ),
    "connect on the axis": ("", "", '<connect body1="post" anchor="0 0 .05"/>'),
    "connect within one link": (PLATE, "", '<connect body1="post" body2="plate" anchor="0.1 0 .05"/>'),
    "weld within one link": (PLATE, "", '<weld body1="plate" body2="post"/>'),
    "pair within one link": (PLATE, "", '</equality><contact><pair geom1="own" geom2="plate"/></contact><equality>'),
}
EVERY = "every immovable row"
ALONG = (EVERY, "sphere on the axis", "turntable in the floor")  # with the floor across the axis
PARTLY = {
    "turntable in the floor": ('<geom name="idle" type="cylinder" size=".3 .06" mass="1"/>', "", ""),
    "weld on the axis": ("", "", '<weld body1="post" relpose="0 0 0 .98 0 0 .2"/>'),
}


def search(count, seed):
    """Draw and check `count` cases."""
    outcome = Outcome()
    for n in range(count):
        kind, case, texts, state = draw(np.random.default_rng((seed, n)), n)
        found = check(texts, state)
        outcome.counts[f"{kind}: {'equal' if found is None else found.split(':')[0]}"] += 1
        if found is not None:
            outcome.findings.append(f"seed {seed}, case {n}, {kind} ({case}): {found}")
    return outcome


def draw(rng, n):
    """Return one robot, as XML with and without immovable rows, and its state."""
    kinds = [EVERY, *DEAD, *PARTLY]
    kind = EVERY if n < SAMPLE else kinds[n % len(kinds)]  # a sample compiles two kernels
    cone, tilted = ["pyramidal", "elliptic"][(n // len(kinds)) % 2], bool(rng.integers(2))
    text = lambda x: " ".join(repr(float(y)) for y in np.atleast_1d(x))  # noqa: E731
    quat = rng.normal(size=4) * 0.3 + (1, 0, 0, 0) if tilted else np.array([1.0, 0, 0, 0])
    quat /= np.linalg.norm(quat)
    axis = np.zeros(3)
    mujoco.mju_rotVecQuat(axis, np.array([0.0, 0, 1]), quat)
    at = rng.normal(size=3) * 0.1 if tilted else np.zeros(3)
    given = {
        "cone": cone,
        "quat": text(quat),
        "at": text(at),
        "floor": text(at[2] + rng.uniform(-0.02, 0.02)),
        "normal": text(axis if kind in ALONG or rng.random() < 0.5 else (0, 0, 1)),
        "on_axis": text(at - 0.3 * axis),
        "above": text(at + rng.normal(size=3) * 0.2 + (0, 0, 0.5)),
        "range": text((-rng.uniform(0, 0.3), rng.uniform(0, 0.3))),
        "rub": rng.choice(["", 'frictionloss=".2"']),
        "long": text(rng.uniform(0.3, 1.2)),
        "loss": text(rng.choice([0.0, 0.3])),
        "poly": text((rng.normal() * 0.1, rng.normal() * 0.5, 0, 0, 0)),
        "coupled": rng.choice(["true", "false"]),
    }
    parts = list(DEAD.values()) if kind == EVERY else [(DEAD | PARTLY)[kind]]
    post, tendon, equality = ("".join(dict.fromkeys(x)) for x in zip(*parts, strict=True))
    full = WORLD.format(**given, post=post, tendon=tendon, equality=equality)
    without = full
    if kind not in PARTLY:
        post = post.replace(OFF, "").replace("<geom ", f"<geom {OFF} ")
        without = WORLD.format(**given, post=post, tendon="", equality="")
    case = f"{cone}, {'tilted' if tilted else 'aligned'}"
    return kind, case, (full, without), (rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.5, rng.normal(size=3) * 20)


def check(texts, state):
    """Return None, or a description of the failure."""
    full, without = texts
    q, v, u = state
    oracle = mujoco.MjModel.from_xml_string(without)
    data = mujoco.MjData(oracle)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
    mujoco.mj_step(oracle, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a pair presses where no joint moves
        sim = ag.Simulator(ag.load(full), threads=1, lanes=1)
        traj = sim.rollout(ag.State(q, v), u[None])
        off = np.abs(traj.final.v - data.qvel).max() / (np.abs(data.qvel - v).max() + 0.02)
        if not off < STEP:
            return f"step: off by {off:.1e}, violation {np.max(traj.violation):.1e}"
        if np.max(traj.violation) > 0:
            return f"unsolved: by {np.max(traj.violation):.1e}"
        bar = np.array([1.0, 0.7, -0.4])
        grad = sim.vjp(traj, v_bar=bar)
        found = np.concatenate([grad.q0, grad.v0, grad.u[0]])
        best = np.full(9, np.inf)
        for h in (1e-6, 1e-7):
            best = np.minimum(best, np.abs(differences(sim, (q, v, u), bar, h) - found))
    off = best.max() / (np.abs(found).max() + 1e-3)
    if off > GRADIENT and np.min(grad.health.switch_margin) > 1e-4:
        return f"gradient: off by {off:.1e}, margin {np.min(grad.health.switch_margin):.1e}"
    return None


def differences(sim, inputs, bar, h):
    """Return central differences of bar . v after a step."""
    x = np.concatenate(inputs)
    moved = np.concatenate([x + h * np.eye(9), x - h * np.eye(9)])
    after = sim.rollout(ag.State(moved[:, :3], moved[:, 3:6]), moved[:, None, 6:]).final.v @ bar
    return (after[:9] - after[9:]) / (2 * h)
