"""Gravity compensation and fluids: as in MuJoCo, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.gradcheck import random_state

ROBOT = """
<mujoco>
  <option timestep="0.002" {fluid} integrator="{integrator}"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="a" pos="0 0 .5" {lifted}>
      <joint name="turn" axis="0 1 0" damping=".1"/>
      <geom size=".05 .1" type="capsule" pos=".1 0 .05"/>
      <body name="tip" pos=".2 .1 0" euler="10 20 30"><geom size=".05 .03 .06" type="box"/></body>
      <body name="b" pos=".2 0 0"><joint type="ball"/><geom size=".05 .03 .08" type="ellipsoid" pos=".1 0 0"/></body>
    </body>
    <body name="fish" pos="0 .5 1" gravcomp="{share}"><freejoint/><geom size=".05 .03 .06" type="box" pos=".02 0 0"/></body>
  </worldbody>
  <actuator><motor joint="turn"/></actuator>
</mujoco>
"""
WATER = 'density="1000" viscosity=".3" wind=".3 -.2 .5"'


def text(fluid=WATER, lifted='gravcomp=".7"', share="1", integrator="Euler"):
    return ROBOT.format(fluid=fluid, lifted=lifted, share=share, integrator=integrator)


INTEGRATORS = ("RK4", "implicit", "implicitfast")
FILES = [text(), text(fluid=""), text(lifted="", share="0"), *(text(integrator=x) for x in INTEGRATORS)]


@pytest.mark.parametrize("xml", FILES)
def test_steps_as_mujoco_does(xml):
    m, model, rng = mujoco.MjModel.from_xml_string(xml), ag.load(xml), np.random.default_rng(0)
    d, sim, n = mujoco.MjData(m), ag.Simulator(model), 5
    state, u = random_state(model, rng, n), rng.normal(size=(n, 1))
    a, traj = sim.forward_dynamics(state, u), sim.rollout(state, u[:, None])
    for k in range(n):
        d.qpos[:], d.qvel[:], d.ctrl[:] = state.q[k], state.v[k], u[k]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(a[k], d.qacc_smooth, atol=1e-9 * max(1.0, np.abs(d.qacc_smooth).max()))
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(traj.v[k, 1], d.qvel, atol=1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_gradients(integrator):
    model = ag.load(text(integrator=integrator))
    checks = {c.what: c for c in ag.gradcheck(model, show=False, steps=2, samples=1, tolerance=1e-7)}
    names = ("gravity_compensation", "fluid_box", "fluid_rotation", "density", "viscosity", "wind", "gravity", "com")
    assert all(checks[name].largest > 1e-6 for name in names)


ELLIPSOIDS = """<mujoco><option density="50" viscosity=".3" wind=".3 -.2 .5" integrator="{integrator}"/>
    <default><geom contype="0" conaffinity="0"/></default><worldbody>
    <body name="a" pos="0 0 .5"><joint axis="0 1 0"/><geom size=".04" pos=".2 0 0"/>
      <geom type="capsule" size=".05 .1" pos=".1 0 .05" euler="10 20 30" fluidshape="ellipsoid"/>
      <body pos=".2 0 0"><joint type="ball"/><geom type="box" size=".04 .06 .05" fluidshape="ellipsoid"/>
        <geom type="ellipsoid" size=".05 .03 .08" pos=".1 0 0" fluidshape="ellipsoid" fluidcoef=".4 .3 1.2 .9 .8"/></body>
    </body>
    <body pos="1 0 1"><freejoint/><geom type="cylinder" size=".05 .1" fluidshape="ellipsoid" pos=".02 0 .01"/></body>
    <body pos="2 0 1"><freejoint/><geom size=".05" fluidshape="ellipsoid"/></body>
    <body pos="3 0 1"><freejoint/><geom type="box" size=".05 .03 .06"/></body>
    <body pos="4 0 1"><joint type="ball"/><geom type="mesh" mesh="wedge" pos=".1 0 0" fluidshape="ellipsoid"/></body>
    </worldbody><asset><mesh name="wedge" vertex="0 0 0 .1 0 0 0 .2 0 0 0 .15 .1 .1 .05"/></asset></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_ellipsoids_move_as_in_mujoco(integrator):
    xml = ELLIPSOIDS.format(integrator=integrator)
    m, model, rng = mujoco.MjModel.from_xml_string(xml), ag.load(xml), np.random.default_rng(0)
    d, sim, state = mujoco.MjData(m), ag.Simulator(model), random_state(model, rng, 5)
    a, traj = sim.forward_dynamics(state), sim.rollout(state, steps=1)
    for k in range(5):
        d.qpos[:], d.qvel[:] = state.q[k], state.v[k]
        mujoco.mj_forward(m, d)
        np.testing.assert_allclose(a[k], d.qacc, atol=1e-10 * np.abs(d.qacc).max())
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(traj.v[k, 1], d.qvel, atol=1e-6 if integrator == "RK4" else 1e-9)


@pytest.mark.parametrize("integrator", ["Euler", "implicit", "implicitfast"])
def test_gradients_of_ellipsoids(integrator):
    model = ag.load(ELLIPSOIDS.format(integrator=integrator))
    checks = {c.what: c for c in ag.gradcheck(model, show=False, steps=2, samples=1, tolerance=1e-7)}
    names = (
        "fluid_coefficients",
        "virtual_mass",
        "virtual_inertia",
        "shape_size",
        "shape_position",
        "viscosity",
        "wind",
    )
    assert all(checks[name].largest > 1e-6 for name in names)


@pytest.mark.parametrize("xml", [text(), ELLIPSOIDS.format(integrator="Euler")])
def test_saved_and_in_a_scene(tmp_path, xml):
    model = ag.load(xml)
    ag.save(model, tmp_path / "robot.xml")
    state = random_state(model, np.random.default_rng(1))
    wanted = ag.Simulator(model).forward_dynamics(state)
    np.testing.assert_allclose(ag.Simulator(ag.load(tmp_path / "robot.xml")).forward_dynamics(state), wanted, atol=1e-8)
    scene = ag.scene([model], positions=[(0, 0, 0)], floor=False)
    np.testing.assert_allclose(ag.Simulator(scene).forward_dynamics(state), wanted, atol=1e-9)


def test_params_cannot_add_features_to_a_model():
    model = ag.load(text(fluid="", lifted="", share="0"))
    for name in ("density", "gravity_compensation"):
        with pytest.raises(ag.InputError, match=f"params.{name}"):
            params = model.params.replace(**{name: model.params[name] + 1.0})
            ag.Simulator(model).rollout(model.keyframe(), steps=1, params=params)


@pytest.mark.parametrize("speed", [1.0, 1e-3])
def test_small_and_thin_ellipsoids(speed):
    """Squared areas of millimeters times velocities are far below MuJoCo's smallest number, 1e-15."""
    xml = """<mujoco><option density="100" viscosity=".01"/><worldbody><body><freejoint/>
    <geom type="ellipsoid" size=".003 .006 .035" fluidshape="ellipsoid"/></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    d.qvel[:] = speed * rng.normal(size=6)
    mujoco.mj_forward(m, d)
    sim = ag.Simulator(ag.load(xml), backend="numpy")
    q, v, bar = d.qpos.copy(), d.qvel.copy(), rng.normal(size=6)
    assert np.abs(sim.forward_dynamics(ag.State(q, v)) - d.qacc).max() < 1e-9 * np.abs(d.qacc).max()
    h = 1e-4 * speed
    moved = np.concatenate([v + h * np.eye(6), v - h * np.eye(6)])
    a = sim.forward_dynamics(ag.State(np.tile(q, (12, 1)), moved)) @ bar
    found, wanted = sim.forward_dynamics_vjp(ag.State(q, v), None, bar).v, (a[:6] - a[6:]) / (2 * h)
    assert np.abs(found - wanted).max() < 1e-6 * np.abs(wanted).max()


def test_the_ellipsoid_of_a_mesh_with_a_dent_is_refused_in_a_saved_file(tmp_path):
    dent = ELLIPSOIDS.format(integrator="Euler").replace(
        'vertex="0 0 0 .1 0 0 0 .2 0 0 0 .15 .1 .1 .05"',
        'vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3 .05 .05 .05" face="0 2 1 0 1 3 0 3 2 1 2 4 2 3 4 3 1 4"',
    )
    with pytest.raises(ag.ModelError, match="fluid ellipsoid of a mesh"):
        ag.save(ag.load(dent), tmp_path / "robot.xml")
