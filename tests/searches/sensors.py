"""Sensors of random models with every kind of force: readings compared with MuJoCo, gradients with differences."""

import mujoco
import numpy as np

import artigrad as ag
from artigrad.model import tangent

from .outcome import Outcome

SUMMARY = (
    "Random models with springs, dampers, dry friction, limits, tendons around shapes, equalities, mocap welds, contact, "
    "adhesion, fluids, compensated weight and actuators of every transmission: all sensors beside MuJoCo, gradients of random "
    "combinations of them by state and control beside differences."
)
COUNT, SAMPLE = 400, 4
READING, GRADIENT = 1e-8, 1e-5  # relative to the largest entry of a sensor; of the gradient
STATES = 4  # of one model


def search(count, seed):
    """Draw and check `count` states."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    for first in range(0, count, STATES):
        text, parts = model_text(rng)
        where = f"seed {seed}, model {first // STATES}"
        _check(outcome, text, parts, where, rng, min(STATES, count - first))
    return outcome


def _check(outcome, text, parts, where, rng, size):
    m, model = mujoco.MjModel.from_xml_string(text), ag.load(text)
    m.opt.iterations, m.opt.tolerance, m.opt.ls_iterations = 200, 0, 100
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    d, sim = mujoco.MjData(m), ag.Simulator(model, backend="numpy", law=ag.SoftOptions(iterations=100))
    q = tangent.integrate(model, np.tile(model.keyframe().q, (size, 1)), 0.2 * rng.normal(size=(size, model.nv)))
    state = ag.State(q, rng.normal(size=(size, model.nv)), rng.random((size, model.na)))
    u = 2 * rng.normal(size=(size, model.nu))
    found = sim.sensors(state, u)
    touching = 0
    for k in range(size):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = state.q[k], state.v[k], state.act[k], u[k]
        mujoco.mj_forward(m, d)
        touching += d.ncon
        wrong = {}
        for s, (name, y) in enumerate(found.items()):
            wanted = d.sensordata[m.sensor_adr[s] : m.sensor_adr[s] + m.sensor_dim[s]]
            error = np.abs(y[k] - wanted).max() / max(1.0, np.abs(wanted).max())
            if not error < READING:
                wrong[f"{model.sensors[s].kind} {name}"] = error
        outcome.counts["not MuJoCo's" if wrong else "equal to MuJoCo"] += 1
        if wrong:
            worst = max(wrong, key=wrong.get)
            outcome.findings.append(
                f"{where}, state {k}: {len(wrong)} sensors, {worst} off by {wrong[worst]:.1e}; {parts}"
            )
    _gradients(outcome, sim, state, u, found, where, rng, parts)


def _gradients(outcome, sim, state, u, found, where, rng, parts):
    """Compare gradients along one direction, at each state."""
    model, size = sim.model, len(u)
    bars = {name: rng.normal(size=y.shape) / (1.0 + np.abs(y)) for name, y in found.items()}
    step = [rng.normal(size=x.shape) for x in (state.v, state.v, state.act, u)]

    def loss(h):
        moved = ag.State(tangent.integrate(model, state.q, h * step[0]), state.v + h * step[1], state.act + h * step[2])
        read = sim.sensors(moved, u + h * step[3])
        return sum(np.sum(bar * read[name], 1) for name, bar in bars.items())

    fine, coarse = ((8 * (loss(h) - loss(-h)) - loss(2 * h) + loss(-2 * h)) / (12 * h) for h in (5e-6, 1e-5))
    grad = sim.sensors_vjp(state, bars, u)
    by = tangent.to_tangent(model, state.q, grad.q), grad.v, grad.act, grad.u
    given = sum(np.sum(bar * x, 1) for bar, x in zip(by, step, strict=True) if bar is not None and x.size)
    for k in range(size):
        scale = 1.0 + abs(fine[k])
        if abs(fine[k] - coarse[k]) > 0.1 * GRADIENT * scale:
            outcome.counts["gradients: beside a kink"] += 1
        elif abs(given[k] - fine[k]) < GRADIENT * scale:
            outcome.counts["gradients: equal to differences"] += 1
        else:
            outcome.counts["gradients: wrong"] += 1
            outcome.findings.append(f"{where}, state {k}: gradient {given[k]:.8g} for {fine[k]:.8g}; {parts}")


# -- models ------------------------------------------------------------------------------------------------------------------
CALM = 'contype="0" conaffinity="0"'
SITES = ("s", "t", "s2", "t2", "sf", "tf")
PATH = (
    '<spatial name="T" {}><site site="w"/><geom geom="wrap" {}/><site site="t2"/><pulley divisor="2"/><site site="t"/>'
)
PATH += '<site site="sf"/></spatial><spatial name="U" {}><site site="w"/><site site="t2"/></spatial>'
TENDONS = ('stiffness="50 3" springlength=".1 .2"', 'damping="5 1"', 'frictionloss="3"')
FIXED = '<fixed name="F" {}><joint joint="ja" coef="1"/><joint joint="jb" coef="-.5"/></fixed>'
ACTUATORS = (
    '<motor name="A{}" joint="ja" gear="2"/>',
    '<position name="A{}" joint="jb" kp="5" kv=".2" forcerange="-3 3"/>',
    '<intvelocity name="A{}" joint="jc" kp="2" gear=".2 .3 .5" actrange="-1 1"/>',
    '<motor name="A{}" tendon="T" gear="2"/>',
    '<position name="A{}" tendon="F" kp="3"/>',
    '<muscle name="A{}" tendon="U" lengthrange=".3 2" force="50"/>',
    '<motor name="A{}" site="t" gear="1 2 3 .1 .2 .3"/>',
    '<position name="A{}" site="tf" refsite="t2" gear="0 0 0 .1 .2 .3"/>',
    '<general name="A{}" site="t2" refsite="w" gear="1 .5 0 .1 .2 .3" gainprm="2" biastype="affine" biasprm=".1 -1 -.2"/>',
    '<motor name="A{}" cranksite="t" slidersite="tf" cranklength="1.7" gear="3"/>',
)
EQUALITIES = (
    '<connect body1="b" body2="free" anchor=".1 .1 .1"/>',
    '<weld body1="moc" body2="c" torquescale="2"/>',
    '<weld site1="t2" site2="tf"/>',
    '<joint joint1="ja" joint2="jb" polycoef=".1 .5 .2 0 0"/>',
    '<tendon tendon1="T" tendon2="U" polycoef=".1 .5 .2 0 0"/>',
    '<tendon tendon1="F" polycoef=".1 0 0 0 0"/>',
)
OPTIONS = ("", 'density="30" viscosity=".1" wind="1 2 3"', 'cone="elliptic"', 'gravity="1 2 -3"')


def _joint(rng, name):
    some = rng.choice(['damping=".3"', 'stiffness="4" springref=".2"', 'frictionloss=".5"', ""])
    reach = rng.choice([5, 100])
    return (
        f'<joint name="{name}" axis="{rng.normal()} 1 {rng.normal()}" {some} range="-{reach} {reach}" limited="true"/>'
    )


def _some(rng, texts, share=0.35):
    return [text for text in texts if rng.random() < share]


def model_text(rng):
    """Return MJCF of a random model, and the choices drawn."""
    contact, adhesion, fluid = rng.random() < 0.4, rng.random() < 0.3, rng.random() < 0.3
    calm = "" if contact else CALM
    shape = f'{calm} fluidshape="ellipsoid"' if fluid else calm
    lifted = 'gravcomp=".7"' if rng.random() < 0.3 else ""
    wrapped = rng.choice(["", 'sidesite="side"'])
    reach = ('range="-.05 .5"', 'range="-9 9"')
    tendons = [" ".join([*_some(rng, TENDONS), 'limited="true"', str(rng.choice(reach))]) for _ in range(3)]
    actuators = [a.format(k) for k, a in enumerate(_some(rng, ACTUATORS))]
    equalities, option = _some(rng, EQUALITIES, 0.15), str(rng.choice(OPTIONS))
    adhesion = '<adhesion name="glue" body="a" ctrlrange="0 50" gain="1"/>' if contact and adhesion else ""
    floor = '<geom type="plane" size="3 3 1" pos="0 0 .75"/>' if contact else ""
    bodies = f"""<body name="moc" mocap="true" pos=".5 .2 .9"><site name="m"/></body>
    <body name="a" pos="0 0 1" {lifted}>{_joint(rng, "ja")}<geom name="ga" type="box" size=".1 .2 .3" pos=".3 0 0" {shape}/>
      <site name="s" pos=".1 .05 0" euler="30 10 20" size=".5"/><site name="t" pos=".6 .1 .1" euler="5 50 3"/>
      <body name="b" pos=".5 .1 0">{_joint(rng, "jb")}<geom name="gb" type="capsule" size=".05 .1" pos=".1 .2 .3" {shape}/>
        <geom name="wrap" type="{rng.choice(["sphere", "cylinder"])}" size=".08 .1" pos="-.05 .05 .02" euler="80 10 0" {CALM}/>
        <site name="side" pos="-.05 .2 .02"/><site name="s2" pos=".02 .05 0" euler="30 10 20"/>
        <site name="t2" pos=".1 .1 -.2"/>
        <body name="c" pos=".2 .1 .4"><joint name="jc" type="ball" damping=".1"/><geom size=".05" pos=".1 0 0" {shape}/></body>
      </body></body>
    <body name="free" pos=".6 .2 1.5"><freejoint/><geom name="gf" type="box" size=".1 .15 .1" {shape}/>
      <site name="sf" pos=".1 0 .1"/><site name="tf" pos="-.1 0.02 .1"/></body>"""
    path = PATH.format(tendons[0], wrapped, tendons[1]) + FIXED.format(tendons[2])
    sensors = _sensors(rng, len(actuators), bool(adhesion))
    text = (
        f'<mujoco><option timestep=".002" {option}/><worldbody>{floor}<site name="w" pos="0 .1 1.6" euler="10 20 30"/>{bodies}'
        f'</worldbody><contact><exclude body1="a" body2="b"/><exclude body1="b" body2="c"/><exclude body1="a" body2="c"/>'
        f'<exclude body1="free" body2="a"/><exclude body1="free" body2="b"/><exclude body1="free" body2="c"/></contact>'
        f"<tendon>{path}</tendon><equality>{''.join(equalities)}</equality>"
        f"<actuator>{''.join(actuators)}{adhesion}</actuator><sensor>{sensors}</sensor></mujoco>"
    )
    drawn = (
        (["contact"] if contact else [])
        + ["adhesion"] * bool(adhesion)
        + ["fluid"] * fluid
        + [lifted, option, *tendons]
    )
    return text, "; ".join(x for x in (*drawn, *equalities, *actuators) if x)


def _sensors(rng, actuators, adhesion):
    frames = [("site", s) for s in SITES] + [
        ("body", "a"),
        ("xbody", "b"),
        ("geom", "ga"),
        ("geom", "gf"),
        ("xbody", "moc"),
    ]
    names = ["framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel"]
    out = []
    for kind in names:
        for relative in (False, True):
            (of, name), (ref, other) = (frames[k] for k in rng.integers(len(frames), size=2))
            seen = f'reftype="{ref}" refname="{other}"' if relative else ""
            out.append(f'<{kind} objtype="{of}" objname="{name}" {seen}/>')
    out += [f'<{kind} objtype="site" objname="{rng.choice(SITES)}"/>' for kind in ("framelinacc", "frameangacc")]
    for s in SITES:
        kinds = ("force", "torque", "accelerometer", "gyro", "velocimeter", "magnetometer")
        out += [f'<{kind} site="{s}"/>' for kind in kinds]
    out += ['<touch site="s"/>']
    out += [f'<subtree{what} body="{b}"/>' for what in ("com", "linvel", "angmom") for b in ("a", "b", "free")]
    whats = ("pos", "vel") if adhesion else ("pos", "vel", "actuatorfrc")  # what adhesion does to joints is not read
    out += [f'<joint{what} joint="{j}"/>' for what in whats for j in ("ja", "jb")]
    out += [f'<joint{what} joint="{j}"/>' for what in ("limitpos", "limitvel", "limitfrc") for j in ("ja", "jb")]
    out += [f'<tendon{what} tendon="{t}"/>' for what in ("pos", "vel", "actuatorfrc") for t in "TUF"]
    out += [f'<tendon{what} tendon="{t}"/>' for what in ("limitpos", "limitvel", "limitfrc") for t in "TUF"]
    out += [f'<actuator{what} actuator="A{k}"/>' for what in ("pos", "vel", "frc") for k in range(actuators)]
    return "".join([*out, '<ballquat joint="jc"/><ballangvel joint="jc"/><e_potential/><e_kinetic/>'])
