"""Tendons and actuators on tendons, ball and free joints and sites: forces, rows and steps as in MuJoCo, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state

ROBOT = """
<mujoco>
  <option timestep="0.002" integrator="{integrator}"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="hook" pos=".3 .1 .6"/>
    <body name="a" pos="0 0 .5">
      <joint name="turn" axis="0 1 0" damping=".1" actuatorfrcrange="-6 6"/>
      <geom size=".05 .1" type="capsule"/>
      <site name="on_a" pos=".1 0 .05"/>
      <body name="b" pos=".2 0 0">
        <joint name="slide" type="slide" axis="1 0 .2"/>
        <geom size=".05"/>
        <body name="c" pos=".2 0 0">
          <joint name="ball" type="ball" damping=".05"/>
          <geom size=".05 .03 .06" type="box"/>
          <site name="on_c" pos=".1 .03 .05" euler="20 30 40"/>
        </body>
      </body>
      <body name="d" pos="-.2 0 0">
        <joint name="branch" axis="1 0 .2"/>
        <geom size=".05 .03 .06" type="box"/>
        <site name="on_d" pos=".1 .03 .05"/>
      </body>
    </body>
    <body name="drone" pos="0 .5 1">
      <freejoint name="free"/>
      <geom size=".05 .03 .06" type="box"/>
      <site name="rotor" pos=".1 .03 .05" euler="10 50 20"/>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum" stiffness="20 3 9" damping=".7 .3 .2" springlength=".05 .1" limited="true" range="-.02 .01" margin=".01">
      <joint joint="turn" coef=".7"/> <joint joint="slide" coef="-1.2"/> <joint joint="branch" coef=".4"/>
    </fixed>
    <spatial name="path" stiffness="30 4 5" damping=".9 .2 .1" springlength=".3" limited="true" range=".3 .6" frictionloss=".4">
      <site site="hook"/> <site site="on_a"/> <site site="on_c"/>
      <pulley divisor="2"/> <site site="on_d"/> <site site="rotor"/>
    </spatial>
    <fixed name="one" frictionloss=".05"> <joint joint="branch" coef=".7"/> </fixed>
  </tendon>
  <equality>
    <tendon tendon1="sum" tendon2="one" polycoef="0.01 .5 .3 .1 .2"/>
    <tendon tendon1="one" polycoef=".1 0 0 0 0"/>
  </equality>
  <actuator>
    <position tendon="sum" kp="5" kv=".3" gear="1.3"/>
    <motor tendon="path" gear="2" ctrlrange="-.5 .5"/>
    <velocity tendon="path" kv="1.5"/>
    <motor joint="turn" gear="3"/>
    <damper joint="slide" kv="2" ctrlrange="0 1"/>
    <general tendon="sum" gaintype="affine" gainprm="1 .3 -.4" biastype="affine" biasprm=".1 -.2 -.3" gear="1.2"/>
    <position joint="ball" kp="2" kv=".2" gear="1 .5 -.3"/>
    <general jointinparent="ball" gainprm="2" biastype="affine" biasprm="0 -1 -.2" gear="1 .5 -.3"/>
    <general joint="free" gainprm="2" biastype="affine" biasprm="0.1 -1 -.2" gear="1 .5 -.3 .1 .2 .3"/>
    <general jointinparent="free" gainprm="2" biastype="affine" biasprm="0.1 -1 -.2" gear="1 .5 -.3 .1 .2 .3"/>
    <general site="on_c" gainprm="2" biastype="affine" biasprm="0.1 -1 -.2" gear="1 .5 -.3 .1 .2 .3"/>
    <motor site="rotor" gear="0 0 1 0 0 .1"/>
    <general site="on_c" refsite="on_d" gainprm="2" biastype="affine" biasprm="0.1 -1 -.2" gear="1 .5 -.3 .1 .2 .3"/>
    <general site="rotor" refsite="on_a" gainprm="2" biastype="affine" biasprm="0.1 -1 -.2" gear="1 .5 -.3 .1 .2 .3"/>
    <position cranksite="on_c" slidersite="on_d" cranklength=".7" kp="3" kv=".2" gear="1.3"/>
    <motor cranksite="rotor" slidersite="on_c" cranklength=".1" gear=".3"/>
  </actuator>
</mujoco>
"""


def both(integrator="Euler"):
    text = ROBOT.format(integrator=integrator)
    m = mujoco.MjModel.from_xml_string(text)
    m.opt.iterations, m.opt.tolerance, m.opt.ls_iterations = 200, 0, 100
    return m, ag.load(text)


def agree(m, model, samples=10):
    """Compare accelerations without rows, and one step, of random states."""
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    sim = ag.Simulator(model, law=ag.SoftOptions(iterations=60))
    state, u = random_state(model, rng, samples), rng.normal(size=(samples, model.nu))
    free, traj = sim.forward_dynamics(state, u), sim.rollout(state, u[:, None])
    for k in range(samples):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = state.q[k], state.v[k], u[k]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(free[k], d.qacc_smooth, atol=1e-9 * max(1.0, np.abs(d.qacc_smooth).max()), rtol=0)
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(traj.q[k, 1], d.qpos, atol=1e-10)
        np.testing.assert_allclose(traj.v[k, 1], d.qvel, atol=1e-8)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "RK4"])
def test_steps_as_mujoco_does(integrator):
    agree(*both(integrator))


def test_gradients():
    _, model = both("implicitfast")
    checks = {c.what: c for c in ag.gradcheck(model, show=False, steps=2, samples=1)}
    for name in (
        "gain_slope",
        "gear_axes",
        "crank_length",
        "piece_scale",
        "tendon_stiffness",
        "tendon_stiffness_curve",
        "tendon_damping_curve",
        "tendon_rest",
        "tendon_limit",
        "site_position",
    ):
        assert checks[name].largest > 1e-6, name


def test_a_spring_is_differentiable_at_its_rest_length():
    b = ag.ModelBuilder("resting")
    for name in "ab":
        b.add_body(name, joint="revolute", mass=1.0, inertia=(1, 1, 1), com=(0.3, 0, 0))
    b.add_fixed_tendon("sum", {"a": 1.0, "b": -1.0}, stiffness=3.0)
    sim = ag.Simulator(b.build(), 0.1)
    grad = sim.vjp(sim.rollout(sim.reset(), steps=1), v_bar=[1.0, 0.0])
    ends = [sim.step(ag.State([h, 0.0], [0.0, 0.0])).v[0] for h in (1e-6, -1e-6)]
    assert grad.q0[0] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def test_energy_of_tendons():
    m, model = both()
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    d, sim, rng = mujoco.MjData(m), ag.Simulator(model), np.random.default_rng(1)
    state = random_state(model, rng)
    d.qpos[:], d.qvel[:] = state
    mujoco.mj_forward(m, d)
    assert sim.outputs(state).potential_energy == pytest.approx(d.energy[0], abs=1e-9)
    out = sim.outputs(state)
    bars = type(out)(**{k: np.zeros_like(x) for k, x in out._asdict().items()})._replace(potential_energy=np.ones(()))
    grad = sim.outputs_vjp(state, bars)
    for k in range(2):  # turn, slide
        h = 1e-6 * np.eye(model.nq)[k]
        up, down = (sim.outputs(state._replace(q=state.q + s * h)).potential_energy for s in (1, -1))
        assert grad.q[k] == pytest.approx((up - down) / 2e-6, rel=1e-6)


def test_tendons_survive_saving_and_scenes(tmp_path):
    _, model = both()
    ag.save(model, tmp_path / "robot.xml")
    saved = ag.load(tmp_path / "robot.xml")
    for name in model.params:
        np.testing.assert_allclose(saved.params[name], model.params[name], atol=1e-9, err_msg=name)
    assert (saved.tendons, saved.transmissions) == (model.tendons, model.transmissions)
    scene = ag.scene([model, model], floor=False)
    assert len(scene.tendons) == 2 * len(model.tendons)
    state = random_state(model, np.random.default_rng(2))
    u = np.linspace(-1, 1, model.nu)
    beside = state.q.copy()
    beside[model.joint_q[model.joint("free")] + 1] += 1  # a metre along y, where the second robot stands
    twice = ag.State(np.concatenate([state.q, beside]), np.concatenate([state.v, state.v]))
    one = ag.Simulator(model).forward_dynamics(state, u)
    two = ag.Simulator(scene).forward_dynamics(twice, np.concatenate([u, u]))
    np.testing.assert_allclose(two, np.concatenate([one, one]), atol=1e-9)


def test_a_builder_computes_rest_lengths_and_inverse_weights(tmp_path):
    b = ag.ModelBuilder("pair")
    b.add_body("a", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    b.add_body("b", "a", joint="prismatic", position=(0, 0, -1), mass=0.5, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_body("f", joint="free", position=(1, 2, 3), mass=0.5, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.25))
    for name, body in (("s", "world"), ("p", "b"), ("e", "f")):
        b.add_site(name, body, position=(0.2, 0.1, 0.3))
    b.add_spatial_tendon("path", ["s", "p", "e"], stiffness=3.0)
    b.add_fixed_tendon("sum", {"a": 2.0, "b": -1.0}, limit=(-1, 1))
    model = b.build()
    ag.save(model, tmp_path / "robot.xml")
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    np.testing.assert_allclose(model.params.tendon_invweight0, m.tendon_invweight0, rtol=1e-9)
    np.testing.assert_allclose(model.params.tendon_rest[:, 0], m.tendon_length0, rtol=1e-9)


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda b: b.add_fixed_tendon("t", {"nothing": 1.0}), "nothing"),
        (lambda b: b.add_spatial_tendon("t", ["s"]), "two sites"),
        (lambda b: b.add_spatial_tendon("t", ["s", 0, "s"]), "divisor"),
        (lambda b: b.add_fixed_tendon("t", {"a": 1.0}, colour=3), "colour"),
        (lambda b: b.add_actuator("m", tendon="t"), "tendon 't'"),
        (lambda b: b.add_actuator("m", "a", site="s"), "one joint"),
        (lambda b: b.add_actuator("m", site="s", gear=1.0), "gear"),
        (lambda b: b.add_tendon_coupling("t"), "tendon 't'"),
    ],
)
def test_invalid_tendons_are_refused(make, word):
    b = ag.ModelBuilder("robot")
    b.add_body("a", joint="revolute", mass=1.0, inertia=(1, 1, 1))
    b.add_site("s", "a")
    with pytest.raises(ag.ModelError, match=word):
        make(b)
