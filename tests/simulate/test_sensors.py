"""Sensors against MuJoCo, and their gradients against differences."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.model import tangent
from artigrad.physics.sensors.sensor_table import KINDS
from artigrad.simulate.gradcheck import random_state

ELSEWHERE = {f"{part}limit{what}" for part in ("joint", "tendon") for what in ("pos", "vel", "frc")}
ELSEWHERE |= {"rangefinder", "contact", "insidesite", "clock", "tendonactfrc"}  # in test_seeing
ELSEWHERE |= {"geomdist", "geomnormal", "geomfromto"}  # in test_distances
FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
SEEN = 'reftype="site" refname="other"'
SENSORS = (
    '<jointpos joint="hinge"/><jointvel joint="hinge"/><ballquat joint="ball"/><ballangvel joint="ball"/>'
    + "".join(f'<{kind} objtype="site" objname="imu"/><{kind} objtype="xbody" objname="arm"/>' for kind in FRAMES)
    + "".join(f'<{kind} objtype="site" objname="imu" {SEEN}/>' for kind in FRAMES)
    + '<framepos objtype="body" objname="arm"/><framepos objtype="geom" objname="lump" reftype="body" refname="hand"/>'
    + '<framelinacc objtype="site" objname="imu"/><frameangacc objtype="xbody" objname="hand"/>'
    + '<velocimeter site="imu"/><gyro site="imu"/><accelerometer site="imu"/><magnetometer site="imu"/>'
    + '<subtreecom body="arm"/><subtreelinvel body="base"/><subtreeangmom body="arm"/>'
    + '<force site="imu"/><torque site="imu"/><force site="palm"/><torque site="palm"/>'
    + '<touch site="palm"/><touch site="skin"/><touch site="away"/>'
    + '<tendonpos tendon="path"/><tendonvel tendon="path"/><tendonpos tendon="sum"/><tendonvel tendon="sum"/>'
    + '<actuatorpos actuator="motor"/><actuatorvel actuator="servo"/><actuatorfrc actuator="servo"/>'
    + '<actuatorfrc actuator="motor"/><jointactuatorfrc joint="turn"/><e_potential/><e_kinetic/>'
    + '<gyro site="imu" cutoff=".2"/><touch site="palm" cutoff="1"/>'
)
ROBOT = f"""<mujoco><option magnetic="0.1 -0.5 0.3"/><worldbody><geom name="floor" type="plane" size="3 3 1"/>
    <site name="hook" pos="0 0 2"/><site name="other" pos="1 0 0" euler="30 20 10"/>
    <body name="base" pos="0 0 .5"><freejoint/><geom size="0.2"/>
    <body name="arm" pos="0.3 0 0"><joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="lump" type="box" size="0.1 0.2 0.3" pos="0.1 0.2 0"/><site name="imu" pos="0.2 0.1 0" euler="10 20 30"/>
      <body name="hand" pos="0.3 0 0.2"><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0 0" condim="{{condim}}"/>
        <site name="palm" pos=".1 0 0" size=".3" euler="5 10 15"/><site name="skin" type="box" size=".2 .2 .2"/>
        <site name="away" type="capsule" size=".01 .02" pos="0 3 0"/></body>
    </body></body>
    <body name="wheel" pos="2 0 1"><joint name="turn" axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body></worldbody>
    <tendon><spatial name="path"><site site="hook"/><site site="imu"/><site site="palm"/></spatial>
      <fixed name="sum"><joint joint="hinge" coef="2"/><joint joint="turn" coef="-1"/></fixed></tendon>
    <contact><exclude body1="world" body2="base"/><exclude body1="world" body2="arm"/></contact>
    <actuator>{{actuators}}</actuator><sensor>{SENSORS}</sensor></mujoco>"""
ON_JOINTS = """<motor name="motor" joint="hinge" gear="2" ctrlrange="-.5 .5"/>
    <general name="servo" joint="turn" gear="1.5" gaintype="affine" gainprm="3 .2 -.3" biastype="affine"
      biasprm=".1 -3 -.4"/>"""
ROBOT, ROLLING = (ROBOT.format(actuators=ON_JOINTS, condim=condim) for condim in (3, 6))


def pressed(model, rng, batch=None):
    """A state in which the hand touches the floor."""
    state = random_state(model, rng, batch)
    state.q[..., 2] = 0.45
    height = np.atleast_2d(ag.Simulator(model).outputs(state).site_position[..., model.site("palm"), 2])
    state.q[..., 2] -= (height - 0.1).reshape(state.q[..., 2].shape) + 4e-4  # less than the width of the impedance
    return ag.State(*map(np.ascontiguousarray, state))


@pytest.mark.parametrize("text", [ROBOT, ROLLING])
def test_readings_are_mujocos(text):
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    m.opt.iterations, m.opt.tolerance = 200, 0
    assert {s.kind for s in model.sensors} == set(KINDS) - ELSEWHERE
    sim, d, rng, felt = (
        ag.Simulator(model, law=ag.SoftOptions(iterations=60)),
        mujoco.MjData(m),
        np.random.default_rng(0),
        0.0,
    )
    for _ in range(5):
        state, u = pressed(model, rng), rng.normal(size=2)
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = *state, u
        m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        mujoco.mj_forward(m, d)
        for k, (sensor, y) in enumerate(zip(model.sensors, sim.sensors(state, u).values(), strict=True)):
            wanted = d.sensordata[m.sensor_adr[k] : m.sensor_adr[k] + m.sensor_dim[k]]
            scale = max(1.0, np.abs(wanted).max())
            np.testing.assert_allclose(y, wanted, atol=1e-9 * scale, rtol=0, err_msg=f"{k} {sensor}")
            felt += wanted[0] if sensor.kind == "touch" else 0.0
    assert felt > 1.0


def test_under_impulses_an_accelerometer_takes_the_mean_over_the_step():
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 3"><freejoint/><geom size="0.1" pos="0 .1 0"/>
        <site name="s" pos=".3 0 .1"/></body></worldbody><sensor><accelerometer name="imu" site="s"/></sensor></mujoco>"""
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    d, state = mujoco.MjData(m), random_state(model, np.random.default_rng(0))
    d.qpos[:], d.qvel[:] = state
    mujoco.mj_forward(m, d)
    sims = (ag.Simulator(model, dt=dt, law="hard") for dt in (1e-4, 1e-5))
    coarse, fine = (np.abs(sim.sensors(state)["imu"] - d.sensordata).max() for sim in sims)
    assert fine < 1e-3 and coarse / fine == pytest.approx(10, rel=0.05)


def test_at_rest_on_the_floor_it_reads_gravity():
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/><geom size="0.1"/>
        <site name="s"/></body></worldbody><sensor><accelerometer name="imu" site="s"/></sensor></mujoco>"""
    sim = ag.Simulator(ag.load(text))
    state = sim.rollout(sim.reset(), steps=500).final
    np.testing.assert_allclose(sim.sensors(state)["imu"], [0, 0, 9.81], atol=1e-4)


@pytest.mark.parametrize(("text", "batch"), [(ROBOT, None), (ROLLING, 3)])
def test_gradients(text, batch):
    model = ag.load(text)
    sim, rng = ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(1)
    state = pressed(model, rng, batch)
    u = rng.normal(size=(2,) if batch is None else (batch, 2))
    bars = {name: rng.normal(size=y.shape) for name, y in sim.sensors(state, u).items()}
    grad = sim.sensors_vjp(state, bars, u)

    def loss(q, v, u, params):
        return sum(np.sum(bars[k] * y) for k, y in sim.sensors(ag.State(q, v), u, params=params).items())

    def slope(f, step=1e-4):
        """Return the derivative of f at 0, extrapolated from two differences."""
        one, two = ((f(h) - f(-h)) / (2 * h) for h in (step, 2 * step))
        return (4 * one - two) / 3

    for what, x, g in (("q", state.q, grad.q), ("v", state.v, grad.v), ("u", u, grad.u)):
        d, here = rng.normal(size=x.shape), {"q": state.q, "v": state.v, "u": u}
        f = lambda h, x=x, d=d, what=what, here=here: loss(**(here | {what: x + h * d}), params=model.params)  # noqa: E731
        found = slope(f, 1e-6 if what == "q" else 1e-4)
        assert found == pytest.approx(np.sum(g * d), rel=1e-6, abs=1e-6), what
    names = ("mass", "com", "gravity", "site_position", "site_rotation", "position", "inertia", "piece_scale", "gear")
    for name in (*names, "gain", "gain_slope", "bias", "magnetic", "solref"):
        x = model.params[name]
        d = 1e-2 * rng.normal(size=x.shape) * (np.abs(x) > 0)
        found = slope(lambda h, x=x, d=d, name=name: loss(*state, u, model.params.replace(**{name: x + h * d})))
        assert found == pytest.approx(np.sum(grad.params[name] * d), rel=1e-6, abs=1e-5), name


HELD = """<mujoco><option noslip_iterations="{sweeps}"/><worldbody><geom type="plane" size="3 3 1"/>
    <body name="upper" pos="0 0 1"><joint axis="0 1 0"/><geom size=".05" pos=".3 0 0"/><site name="s" euler="10 20 30"/>
      <body name="lower" pos=".5 0 0"><joint axis="0 1 1" frictionloss=".1"/><geom type="box" size=".05 .1 .2" pos=".2 .1 0"/>
        <site name="t" pos=".1 0 0"/></body></body>
    <body name="ball" pos=".9 .1 .0997"><freejoint/><geom size=".1"/></body></worldbody>
    <equality><connect body1="lower" body2="ball" anchor=".3 0 -.8"/><weld body1="ball" body2="upper" torquescale="2"/>
      <connect body1="world" body2="lower" anchor=".5 .2 1"/></equality>
    <sensor><force site="s"/><torque site="s"/><force site="t"/><torque site="t"/></sensor>
    </mujoco>"""


@pytest.mark.parametrize("sweeps", [0, 2])
def test_joint_forces_beside_equalities(sweeps):
    """Connect and weld exert forces on bodies, as contacts do."""
    text = HELD.format(sweeps=sweeps)
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    m.opt.iterations, m.opt.tolerance = 200, 0
    sim, d, rng = (
        ag.Simulator(model, law=ag.SoftOptions(iterations=60), backend="numpy"),
        mujoco.MjData(m),
        np.random.default_rng(0),
    )
    q = tangent.integrate(model, model.keyframe().q, 0.01 * rng.normal(size=model.nv))
    q[4] = 0.0997  # not where the impedance has its midpoint
    state = ag.State(q, 0.3 * rng.normal(size=model.nv))
    d.qpos[:], d.qvel[:] = state[:2]
    mujoco.mj_forward(m, d)
    found = sim.sensors(state)
    assert d.ncon == 1 and np.abs(d.sensordata).max() > 10
    np.testing.assert_allclose(
        np.concatenate(list(found.values())), d.sensordata, atol=1e-9 * np.abs(d.sensordata).max()
    )

    bars = {name: rng.normal(size=3) for name in found}
    grad = sim.sensors_vjp(state, bars)

    def slope(change, h=1e-5):
        """Return derivatives along several changes of state and parameters, extrapolated, in one batch."""
        x = h * np.array([2.0, 1.0, -1.0, -2.0])[:, None]
        moved = {name: d * x.reshape(4, *[1] * np.ndim(d)) for name, d in change.items()}
        q = tangent.integrate(model, np.broadcast_to(state.q, (4, model.nq)), moved.pop("q", np.zeros((4, model.nv))))
        v = state.v + moved.pop("v", 0.0) + np.zeros((4, 1))
        params = model.params.replace(unchecked=True, **{name: model.params[name] + y for name, y in moved.items()})
        read = sim.sensors(ag.State(q, v), params=params if moved else None)
        a, b, c, e = sum(np.sum(read[name] * bar, -1) for name, bar in bars.items())
        return (8 * (b - c) - (a - e)) / (12 * h)

    bars_of = {"q": tangent.to_tangent(model, state.q, grad.q), "v": grad.v}
    names = (
        "equality_anchor",
        "equality_rotation",
        "equality_torque_scale",
        "equality_solref",
        "mass",
        "com",
        "position",
    )
    bars_of |= {name: grad.params[name] for name in names}
    for name, bar in bars_of.items():
        along = 0.1 * rng.normal(size=bar.shape)
        assert slope({name: along}) == pytest.approx(np.sum(bar * along), rel=1e-6), name


PULLED = """<mujoco><worldbody><site name="w" pos="0 .1 1.6"/>
    <body pos="0 0 1"><joint axis="0 1 .2"/><geom type="box" size=".1 .2 .3" pos=".3 0 0" {calm}/>
      <site name="s" pos=".1 .05 0" euler="30 10 20"/><site name="t" pos=".6 .1 .1"/>
      <body pos=".5 .1 0"><joint axis="1 .2 0"/><geom type="box" size=".05 .1 .2" pos=".1 .2 .3" {calm}/>
        <geom name="wrap" type="cylinder" size=".08 .1" pos="-.05 .05 .02" euler="80 10 0" {calm}/>
        <site name="s2" pos=".02 .05 0" euler="30 10 20"/><site name="t2" pos=".1 .1 -.2"/></body></body></worldbody>
    <tendon><spatial name="path" stiffness="50 3" springlength=".1" damping="5" range="0 1.2" limited="true" frictionloss="3">
      <site site="w"/><geom geom="wrap"/><site site="t2"/><pulley divisor="2"/><site site="w"/><site site="t"/></spatial>
      <spatial name="other"><site site="w"/><site site="t2"/></spatial><fixed name="sum" stiffness="9">
        <joint joint="j" coef="1"/>
      </fixed></tendon>
    <equality><tendon tendon1="path" tendon2="other" polycoef=".1 .5 .2 0 0"/></equality>
    <actuator><motor tendon="path" gear="2"/><motor site="t" gear="1 2 3 .1 .2 .3"/></actuator>
    <sensor><force site="s"/><torque site="s"/><force site="s2"/><torque site="s2"/></sensor></mujoco>"""
PULLED = PULLED.format(calm='contype="0" conaffinity="0"').replace('axis="1 .2 0"', 'name="j" axis="1 .2 0"')


def test_joint_forces_beside_tendons():
    """All forces along tendons act on bodies; those of site actuators do not."""
    model, m = ag.load(PULLED), mujoco.MjModel.from_xml_string(PULLED)
    m.opt.iterations, m.opt.tolerance = 200, 0
    sim, d, rng = (
        ag.Simulator(model, law=ag.SoftOptions(iterations=60), backend="numpy"),
        mujoco.MjData(m),
        np.random.default_rng(0),
    )
    q, v, u = 0.2 * rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), 3 * rng.normal(size=(4, 2))
    found = sim.sensors(ag.State(q, v), u)
    read, wraps = np.concatenate(list(found.values()), 1), set()
    for k in range(4):
        d.qpos[:], d.qvel[:], d.ctrl[:] = q[k], v[k], u[k]
        mujoco.mj_forward(m, d)
        wraps.add(int(d.ten_wrapnum[0]))
        np.testing.assert_allclose(read[k], d.sensordata, rtol=0, atol=1e-9 * np.abs(d.sensordata).max())
    assert 7 in wraps  # around the cylinder

    bars = {name: rng.normal(size=y.shape) for name, y in found.items()}
    grad = sim.sensors_vjp(ag.State(q, v), bars, u)

    def slope(change, h):
        def loss(x):
            moved = {name: x * d for name, d in change.items()}
            here = ag.State(q + moved.pop("q", 0.0), v + moved.pop("v", 0.0))
            params = model.params.replace(unchecked=True, **{name: model.params[name] + d for name, d in moved.items()})
            return sum(np.sum(bars[name] * y) for name, y in sim.sensors(here, u, params=params).items())

        return (8 * (loss(h) - loss(-h)) - loss(2 * h) + loss(-2 * h)) / (12 * h)

    assert slope({"q": bars["sensor0"][:, :2]}, 1e-6) == pytest.approx(
        np.sum(grad.q * bars["sensor0"][:, :2]), rel=1e-6
    )
    for name in (
        "v",
        "site_position",
        "piece_scale",
        "piece_radius",
        "gear",
        "tendon_dry_friction",
        "equality_polynomial",
    ):
        bar = grad.v if name == "v" else grad.params[name]
        along = 0.1 * rng.normal(size=bar.shape) * (1 if name == "v" else model.params[name] != 0)
        assert slope({name: along}, 1e-3) == pytest.approx(np.sum(bar * along), rel=1e-6, abs=1e-6), name


def test_framequat_has_mujocos_sign_past_half_a_turn():
    text = """<mujoco><worldbody><site name="w" quat="-.5 .5 .5 .5"/><body><joint axis="0 1 2" ref="-100"/>
        <inertial pos="0 0 0" mass="1" quat="-.6 .8 0 0" diaginertia="1 1.1 1.2"/><geom name="g" size=".1" quat="0 -.8 .6 0"/>
        <body quat="-.6 0 .8 0"><joint type="ball"/><geom size=".1"/><site name="s" quat="-.8 0 .6 0"/></body></body>
        </worldbody>
        <sensor><framequat objtype="site" objname="s"/><framequat objtype="body" objname="s"/>
        <framequat objtype="geom" objname="g"/><framequat objtype="site" objname="s" reftype="geom" refname="g"/>
        <framequat objtype="geom" objname="g" reftype="site" refname="w"/></sensor></mujoco>"""
    text = text.replace("<body>", '<body name="s">')
    m, sim, rng = (
        mujoco.MjModel.from_xml_string(text),
        ag.Simulator(ag.load(text), backend="numpy"),
        np.random.default_rng(0),
    )
    d, q = mujoco.MjData(m), tangent.integrate(sim.model, np.tile(sim.reset().q, (40, 1)), 3 * rng.normal(size=(40, 4)))
    read = np.concatenate(list(sim.sensors(ag.State(q, np.zeros((40, 4)))).values()), 1)
    for k in range(40):
        d.qpos[:] = q[k]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(read[k], d.sensordata, rtol=0, atol=1e-12)
    assert np.all(np.sum(read.reshape(40, 5, 4)[..., 0] < 0, 0) > 5)


def test_wrong_names_and_shapes():
    sim = ag.Simulator(ag.load(ROBOT))
    with pytest.raises(ag.InputError, match="no sensor 'nose'"):
        sim.sensors_vjp(sim.reset(), {"nose": [1.0]})
    with pytest.raises(ag.InputError, match=r"is \(1,\), not \(2,\)"):
        sim.sensors_vjp(sim.reset(), {"sensor0": [1.0, 2.0]})
    b = ag.ModelBuilder("x")
    b.add_body("a", joint="revolute", mass=1.0, com=(1, 0, 0))
    with pytest.raises(ag.ModelError, match="kinds are"):
        b.add_sensor("s", "smell", "a")
    with pytest.raises(ag.ModelError, match="there is no site 'a'"):
        b.add_sensor("s", "gyro", "a")


def test_a_subtree_without_mass_is_where_its_body_is():
    text = """<mujoco><worldbody><body pos="1 2 3"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
    <body name="a" pos="1 0 0"><inertial mass="0" pos=".1 .2 .3" diaginertia="0 0 0"/></body></body></worldbody>
    <sensor><subtreecom body="a"/><subtreelinvel body="a"/><subtreeangmom body="a"/></sensor></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    d, model = mujoco.MjData(m), ag.load(text)
    d.qpos[:], d.qvel[:] = 0.3, 1.0
    mujoco.mj_forward(m, d)
    sim, state = ag.Simulator(model, backend="numpy"), ag.State(d.qpos.copy(), d.qvel.copy())
    found = sim.sensors(state)
    np.testing.assert_allclose(np.concatenate([*found.values()]), d.sensordata, atol=1e-12)
    (name, _), *_ = found.items()
    grad = sim.sensors_vjp(state, {name: np.array([0.0, 0.0, 1.0])})
    higher = sim.sensors(ag.State(state.q + 1e-6, state.v))[name][2]
    np.testing.assert_allclose(grad.q, (higher - found[name][2]) / 1e-6, rtol=1e-5)
