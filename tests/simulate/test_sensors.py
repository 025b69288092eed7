"""Sensors against MuJoCo, and their gradients against differences."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state
from artigrad.simulate.sensors import KINDS

FRAMES = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
SENSORS = (
    '<jointpos joint="hinge"/><jointvel joint="hinge"/><ballquat joint="ball"/><ballangvel joint="ball"/>'
    + "".join(f'<{kind} objtype="site" objname="imu"/><{kind} objtype="xbody" objname="arm"/>' for kind in FRAMES)
    + '<framepos objtype="body" objname="arm"/><framepos objtype="geom" objname="lump"/>'
    + '<velocimeter site="imu"/><gyro site="imu"/><accelerometer site="imu"/><subtreecom body="arm"/>'
    + '<subtreelinvel body="base"/>'
)
ROBOT = f"""<mujoco><worldbody><body name="base" pos="0 0 1"><freejoint/><geom size="0.2"/>
    <body name="arm" pos="0.3 0 0"><joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="lump" type="box" size="0.1 0.2 0.3" pos="0.1 0.2 0"/><site name="imu" pos="0.2 0.1 0" euler="10 20 30"/>
      <body name="hand" pos="0.3 0 0.2"><joint name="ball" type="ball"/><geom size="0.1" pos="0.1 0 0"/></body>
    </body></body></worldbody>
    <contact><exclude body1="base" body2="hand"/></contact>
    <actuator><motor joint="hinge"/></actuator><sensor>{SENSORS}</sensor></mujoco>"""


def test_readings_are_mujocos():
    model, m = ag.load(ROBOT), mujoco.MjModel.from_xml_string(ROBOT)
    assert {s.kind for s in model.sensors} == set(KINDS)
    sim, d = ag.Simulator(model), mujoco.MjData(m)
    state, u = random_state(model, np.random.default_rng(0)), np.array([0.7])
    d.qpos[:], d.qvel[:], d.ctrl[:] = *state, u
    mujoco.mj_forward(m, d)
    for k, (sensor, y) in enumerate(zip(model.sensors, sim.sensors(state, u).values(), strict=True)):
        wanted = d.sensordata[m.sensor_adr[k] : m.sensor_adr[k] + m.sensor_dim[k]]
        if sensor.kind == "framequat" and wanted[0] < 0:
            wanted = -wanted
        # an accelerometer's mean over the step is off by the step
        np.testing.assert_allclose(y, wanted, atol=0.1 if sensor.kind == "accelerometer" else 1e-12)


def test_an_accelerometer_takes_the_mean_over_the_step():
    model, m = ag.load(ROBOT), mujoco.MjModel.from_xml_string(ROBOT)
    d, state = mujoco.MjData(m), random_state(model, np.random.default_rng(0))
    d.qpos[:], d.qvel[:] = state
    mujoco.mj_forward(m, d)
    name, k = next((s.name, k) for k, s in enumerate(model.sensors) if s.kind == "accelerometer")
    wanted = d.sensordata[m.sensor_adr[k] : m.sensor_adr[k] + 3]
    coarse, fine = (np.abs(ag.Simulator(model, dt=dt).sensors(state)[name] - wanted).max() for dt in (1e-4, 1e-5))
    assert fine < 1e-3 and coarse / fine == pytest.approx(10, rel=0.05)


def test_at_rest_on_the_floor_it_reads_gravity():
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/><geom size="0.1"/>
        <site name="s"/></body></worldbody><sensor><accelerometer name="imu" site="s"/></sensor></mujoco>"""
    sim = ag.Simulator(ag.load(text))
    state = sim.rollout(sim.reset(), steps=500).final
    np.testing.assert_allclose(sim.sensors(state)["imu"], [0, 0, 9.81], atol=1e-4)


@pytest.mark.parametrize("batch", [None, 3])
def test_gradients(batch):
    model = ag.load(ROBOT)
    sim, rng = ag.Simulator(model), np.random.default_rng(1)
    state = random_state(model, rng, batch)
    u = rng.normal(size=(1,) if batch is None else (batch, 1))
    bars = {name: rng.normal(size=y.shape) for name, y in sim.sensors(state, u).items()}
    grad = sim.sensors_vjp(state, bars, u)

    def loss(q, v, u, params):
        return sum(np.sum(bars[k] * y) for k, y in sim.sensors(ag.State(q, v), u, params=params).items())

    for what, x, g in (("q", state.q, grad.q), ("v", state.v, grad.v), ("u", u, grad.u)):
        d, h = rng.normal(size=x.shape), 1e-5
        there, back = ({"q": state.q, "v": state.v, "u": u} | {what: x + s * h * d} for s in (1, -1))
        change = (loss(**there, params=model.params) - loss(**back, params=model.params)) / (2 * h)
        assert change == pytest.approx(np.sum(g * d), rel=1e-7, abs=1e-7), what
    for name in ("mass", "com", "gravity", "site_position", "site_rotation", "position", "inertia"):
        d, h = rng.normal(size=model.params[name].shape), 1e-6
        there, back = (
            loss(state.q, state.v, u, model.params.replace(**{name: model.params[name] + s * h * d})) for s in (1, -1)
        )
        assert (there - back) / (2 * h) == pytest.approx(np.sum(grad.params[name] * d), rel=1e-5, abs=1e-6), name


def test_wrong_names_and_shapes():
    sim = ag.Simulator(ag.load(ROBOT))
    with pytest.raises(ag.InputError, match="no sensor 'nose'"):
        sim.sensors_vjp(sim.reset(), {"nose": [1.0]})
    with pytest.raises(ag.InputError, match=r"is \(1,\), not \(2,\)"):
        sim.sensors_vjp(sim.reset(), {"sensor0": [1.0, 2.0]})
    b = ag.ModelBuilder("x")
    b.body("a", joint="revolute", mass=1.0, com=(1, 0, 0))
    with pytest.raises(ag.ModelError, match="kinds are"):
        b.sensor("s", "smell", "a")
    with pytest.raises(ag.ModelError, match="there is no site 'a'"):
        b.sensor("s", "gyro", "a")
