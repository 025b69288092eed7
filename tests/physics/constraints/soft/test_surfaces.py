"""Surface velocities: MuJoCo's steps, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

ROBOT = """
<mujoco>
  <option timestep="0.002" cone="{cone}" solver="Newton" iterations="200" tolerance="0"/>
  <worldbody>
    <geom type="box" size="1 .3 .1" euler="0 5 0" surfacevel=".6 -.1 .3 0 0 .2" friction=".6"/>
    <geom type="cylinder" size=".4 .1" pos="0 1 0" surfacevel="0 0 0 .2 0 3" condim="4" friction=".8 .05 .01"/>
    <body pos="0 0 .147" euler="0 5 0"><freejoint/><geom type="box" size=".2 .2 .05" mass="2" surfacevel="0 .4 0 0 0 1"/></body>
    <body pos=".02 .03 .2455"><freejoint/><geom size=".05" mass=".3"/></body>
    <body pos=".2 1.1 .1495"><freejoint/><geom size=".05" mass=".3"/></body>
    <body pos="-.1 .9 .159" euler="2 90 0"><freejoint/>
      <geom type="capsule" size=".06 .1" mass=".4" surfacevel="0 0 0 0 0 -2"/></body>
  </worldbody>
</mujoco>"""


def both(cone):
    text = ROBOT.format(cone=cone)
    return mujoco.MjModel.from_xml_string(text), ag.load(text)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_steps_equal_mujocos(cone):
    m, model = both(cone)
    d, sim, rng = mujoco.MjData(m), ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(0)
    for _ in range(12):
        mujoco.mj_resetData(m, d)
        d.qvel[:] = 0.2 * rng.normal(size=m.nv)
        mujoco.mj_forward(m, d)
        assert d.ncon > 5 and np.abs([c.surfacevel for c in d.contact]).max(0).min() > 0.1
        after = sim.step(ag.State(d.qpos.copy(), d.qvel.copy()))
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(after.v, d.qvel, atol=1e-8)


def test_gradients():
    _, model = both("elliptic")
    sim, rng = ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(1)
    start = ag.State(sim.reset().q, 0.05 * rng.normal(size=model.nv))
    rows = {row.what: row for row in ag.gradcheck(sim, state=start, steps=2, samples=1, show=False)}
    for name in ("q0", "v0", "surface_velocity", "shape_position", "shape_rotation"):
        assert rows[name].largest > 1e-6, name


def test_saved_edited_and_refused(tmp_path):
    _, model = both("elliptic")
    ag.save(model, tmp_path / "again.xml")
    again = ag.edit(ag.load(tmp_path / "again.xml")).build()
    np.testing.assert_allclose(again.params.surface_velocity, model.params.surface_velocity, atol=1e-12)
    with pytest.raises(ag.InputError, match="surfaces that move"):
        ag.Simulator(model, law="hard")
