"""Adhesion actuators: MuJoCo's steps, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

ROBOT = """
<mujoco>
  <option timestep="0.002" cone="{cone}" integrator="{integrator}" solver="Newton" iterations="200" tolerance="0"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1"/>
    <body name="box" pos="0 0 0.0995" quat="1 0.01 0.003 0"><freejoint/>
      <geom type="box" size="0.1 0.12 0.1" mass="1" condim="4" friction="0.7 0.01 0.001"/></body>
    <body name="ball" pos="0.05 0.02 0.2485"><freejoint/><geom size="0.05" mass="0.3" gap="0.003" margin="0.0005"/></body>
    <body name="arm" pos="0.4 0 0.2"><joint axis="0 1 0" damping=".1"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0.2 0 -0.162" size="0.04" mass="0.5"/></body>
  </worldbody>
  <contact><pair geom1="floor" geom2="arm" gap="0.003" margin="0.0005"/></contact>
  <actuator>
    <adhesion name="feet" body="box" ctrlrange="0 1" gain="8"/>
    <adhesion name="hand" body="ball" ctrlrange="0 1" gain="3"/>
    <general name="slow" body="ball" gainprm="2" dyntype="filter" dynprm="0.05"/>
    <general name="tip" body="arm" ctrlrange="0 2" gainprm="5" gear="2"/>
  </actuator>
</mujoco>"""


def both(cone="elliptic", integrator="Euler"):
    text = ROBOT.format(cone=cone, integrator=integrator)
    return mujoco.MjModel.from_xml_string(text), ag.load(text)


@pytest.mark.parametrize(
    ("cone", "integrator"), [("elliptic", "Euler"), ("pyramidal", "implicitfast"), ("elliptic", "RK4")]
)
def test_steps_equal_mujocos(cone, integrator):
    m, model = both(cone, integrator)
    d, sim, rng, touched = (
        mujoco.MjData(m),
        ag.Simulator(model, law=ag.SoftOptions(iterations=60)),
        np.random.default_rng(0),
        set(),
    )
    for _ in range(12):
        mujoco.mj_resetData(m, d)
        d.qvel[:], d.act[:], d.ctrl[:] = 0.1 * rng.normal(size=m.nv), rng.uniform(size=1), rng.uniform(size=4)
        d.qpos[2] += 0.004 * rng.normal()
        d.qpos[9] += 0.004 * rng.normal()
        d.qpos[14] += 0.02 * rng.normal()
        after = sim.step(ag.State(d.qpos.copy(), d.qvel.copy(), d.act.copy()), d.ctrl)
        mujoco.mj_step(m, d)
        touched.add(d.ncon)
        np.testing.assert_allclose(after.v, d.qvel, atol=1e-8)
        np.testing.assert_allclose(after.act, d.act, atol=1e-12)
    assert len(touched) > 2


def test_gradients():
    _, model = both()
    sim = ag.Simulator(model, law=ag.SoftOptions(iterations=60))
    rng = np.random.default_rng(1)
    start = sim.reset()
    start = ag.State(start.q, 0.05 * rng.normal(size=model.nv), [0.4])
    rows = {row.what: row for row in ag.gradcheck(sim, state=start, steps=2, samples=1, show=False)}
    for name in ("u", "act0", "gain", "gear", "shape_position", "shape_size"):
        assert rows[name].largest > 1e-6, name


def test_saved_edited_and_refused(tmp_path):
    _, model = both()
    ag.save(model, tmp_path / "again.xml")
    again = ag.edit(ag.load(tmp_path / "again.xml")).build()
    assert again.transmissions == model.transmissions and again.shapes.included_gap == (0.003,)
    with pytest.raises(ag.InputError, match="adhesion"):
        ag.Simulator(model, law="hard")
    with pytest.raises(ag.ModelError, match="no length and no velocity"):
        ag.edit(model).add_actuator("wrong", body="ball", kind="velocity")


def test_numpy_agrees_with_native():
    _, model = both()
    found = []
    for backend in ("native", "numpy"):
        sim = ag.Simulator(model, backend=backend)
        traj = sim.rollout(sim.reset(), np.full((2, 4), 0.5))
        grad = sim.vjp(traj, v_bar=np.ones_like(traj.v))
        found.append((traj.v, grad.u, grad.q0, grad.params.flat))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9 * np.abs(a).max())


def test_simd_lanes_have_the_bits_of_one_robot():
    _, model = both()
    sim, rng = ag.Simulator(model), np.random.default_rng(2)
    state = sim.reset(batch=5)
    q = state.q.copy()
    q[:, 2] += [0.0, 0.01, 0.0, -0.001, 0.0]
    q[:, 9] += [0.0, 0.02, 0.05, -0.001, 0.0]
    state, u = ag.State(q, 0.1 * rng.normal(size=state.v.shape), state.act), rng.uniform(size=(5, 2, 4))
    whole = sim.rollout(state, u)
    grad = sim.vjp(whole, v_bar=np.ones_like(whole.v), with_params=False)
    for k in range(5):
        one = sim.rollout(state.map(lambda x, k=k: x[k]), u[k])
        np.testing.assert_array_equal(one.v, whole.v[k])
        np.testing.assert_array_equal(sim.vjp(one, v_bar=np.ones_like(one.v), with_params=False).u, grad.u[k])
