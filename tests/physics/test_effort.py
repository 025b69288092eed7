"""Effort limits of joints, gravity compensation by actuators within these, and force limits of tendons."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

ROBOT = """
<mujoco>
  <option integrator="{integrator}"/>
  <worldbody>
    <body{lifted}><joint name="a" axis="0 1 0" actuatorfrcrange="-2 1" damping=".1"/><geom size=".1" pos=".2 0 0"/>
      <body pos=".4 0 0"{lifted}>
        <joint name="b" axis="0 1 .2" actuatorfrcrange="-.5 1.5"{lifts}/><geom size=".1" mass=".2" pos=".2 0 0"/>
        <body pos=".4 0 0"{lifted}>
          <joint name="c" type="slide" axis="1 0 .3"{lifts}/><geom size=".08" pos=".1 .1 0" mass=".1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef=".5"/></fixed>
    <fixed name="limited" actuatorfrcrange="-.4 .3"><joint joint="b" coef="1"/><joint joint="c" coef=".5"/></fixed>
  </tendon>
  <actuator>
    <position name="p" joint="a" kp="3" kv=".4" gear="2"/><velocity joint="a" kv=".7"/><motor joint="b"/>
    <position tendon="t" kp="1" kv=".1" gear="2"/><position tendon="limited" kp="2" kv=".2" gear="1.5"/>
  </actuator>
  <sensor><actuatorfrc actuator="p"/><jointactuatorfrc joint="a"/><jointactuatorfrc joint="b"/></sensor>
</mujoco>"""


def robot(integrator, lifting):
    lifted, lifts = (' gravcomp=".7"', ' actuatorgravcomp="true"') if lifting else ("", "")
    return ROBOT.format(integrator=integrator, lifted=lifted, lifts=lifts)


@pytest.mark.parametrize("integrator, lifting", [("Euler", 0), ("implicitfast", 1), ("implicit", 0), ("RK4", 1)])
def test_steps_and_forces_equal_mujocos(integrator, lifting):
    text = robot(integrator, lifting)
    m, model = mujoco.MjModel.from_xml_string(text), ag.load(text)
    d, sim, rng, free = mujoco.MjData(m), ag.Simulator(model), np.random.default_rng(0), 0
    for _ in range(20):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = rng.normal(size=3), rng.normal(size=3), 0.5 * rng.normal(size=5)
        state = ag.State(d.qpos.copy(), d.qvel.copy())
        mujoco.mj_forward(m, d)
        free += np.sum(d.qfrc_actuator[:2] == [1, 1.5])
        readings = np.concatenate(list(sim.sensors(state, d.ctrl).values()))
        np.testing.assert_allclose(readings, d.sensordata, atol=1e-10)
        after = sim.step(state, d.ctrl)
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(after.v, d.qvel, atol=1e-10)
    assert 3 < free < 37  # at a limit in some, and not in others


def test_gradients():
    for lifting, integrator in enumerate(("Euler", "implicitfast")):
        model = ag.load(robot(integrator, lifting))
        rows = {row.what: row for row in ag.gradcheck(model, show=False, samples=3, steps=2)}
        assert rows["effort_limit"].largest > 1e-6 and rows["gain"].largest > 1e-6
        assert not lifting or rows["gravity_compensation"].largest > 1e-6


def test_sensors_have_gradients():
    model = ag.load(robot("implicitfast", True))
    sim, rng = ag.Simulator(model), np.random.default_rng(3)
    state, u = ag.State(0.3 * rng.normal(size=3), 0.3 * rng.normal(size=3)), 0.1 * rng.normal(size=5)
    bars = {name: rng.normal(size=1) for name in sim.sensors(state, u)}
    grad = sim.sensors_vjp(state, bars, u)

    def loss(q, u):
        return sum((bars[name] * x).sum() for name, x in sim.sensors(ag.State(q, state.v), u).items())

    slopes = [(loss(state.q, u + h) - loss(state.q, u - h)) / 2e-6 for h in 1e-6 * np.eye(5)]
    np.testing.assert_allclose(grad.u, slopes, atol=1e-8)
    slopes = [(loss(state.q + h, u) - loss(state.q - h, u)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(grad.q, slopes, atol=1e-8)


def test_effort_limits_survive_saving_and_editing(tmp_path):
    model = ag.load(robot("Euler", True))
    ag.save(model, tmp_path / "again.xml")
    again = ag.edit(ag.load(tmp_path / "again.xml")).build()
    assert again.actuator_gravcomp == model.actuator_gravcomp == (1, 2)
    np.testing.assert_array_equal(again.params.effort_limit, model.params.effort_limit)
    with pytest.raises(ag.InputError, match="effort_limit"):
        arm = ag.robots.hopper()
        limits = np.broadcast_to([-1.0, 1.0], arm.params.effort_limit.shape)
        ag.Simulator(arm).step(arm.keyframe(), params=arm.params.replace(effort_limit=limits))


def test_without_actuators_gravity_is_not_compensated():
    text = robot("Euler", True)
    for bare in (
        text[: text.index("<actuator>")] + "</mujoco>",
        text.replace("/>", '><flag actuation="disable"/></option>', 1),
    ):
        m, sim = mujoco.MjModel.from_xml_string(bare), ag.Simulator(ag.load(bare))
        d = mujoco.MjData(m)
        d.qpos[:] = 0.3, -0.2, 0.1
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(sim.forward_dynamics(ag.State(d.qpos, d.qvel), d.ctrl), d.qacc, atol=1e-10)
    assert not np.isfinite(
        ag.load(text[: text.index("<actuator>")] + "</mujoco>", motors=True).params.effort_limit
    ).any()
