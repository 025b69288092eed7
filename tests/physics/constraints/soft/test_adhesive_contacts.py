"""Adhesive contacts: MuJoCo's steps and forces, and gradients."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

ROBOT = """
<mujoco>
  <option timestep="0.002" cone="{cone}" solver="Newton" iterations="200" tolerance="0"/>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 1" adhesion=".4"/>
    <body pos="0 0 .0995" quat="1 .01 .003 0"><freejoint/>
      <geom name="box" type="box" size=".1 .12 .1" mass="1" condim="4" friction=".7 .01 .001" adhesion="1.5"/></body>
    <body pos=".03 .02 .249"><freejoint/><geom name="ball" size=".05" mass=".3" adhesion="1"/></body>
    <body pos=".5 0 .053"><freejoint/><geom name="near" size=".05" mass=".2" gap=".005" adhesion="3"/></body>
    <body pos="1 0 .0595"><joint axis="0 1 0" damping=".1"/><joint type="slide" axis="0 0 1"/>
      <geom name="arm" type="capsule" fromto="0 0 0 .2 0 -.02" size=".04" mass=".5" adhesion="2" priority="1"/></body>
  </worldbody>
  <contact><pair geom1="box" geom2="ball" adhesion="2.5" gap=".004" margin=".0005" solreffriction=".03 1"/></contact>
</mujoco>"""


def both(cone):
    text = ROBOT.format(cone=cone)
    return mujoco.MjModel.from_xml_string(text), ag.load(text)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_steps_and_forces_equal_mujocos(cone):
    m, model = both(cone)
    d, sim, rng = mujoco.MjData(m), ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(0)
    net, apart = [], 0
    for _ in range(16):
        mujoco.mj_resetData(m, d)
        d.qvel[:] = 0.2 * rng.normal(size=m.nv)
        d.qpos[[2, 9, 16, 22]] += 0.002 * rng.normal(size=4)
        mujoco.mj_forward(m, d)
        state = ag.State(d.qpos.copy(), d.qvel.copy())
        traj = sim.rollout(state, np.zeros((1, 0)))
        total = np.zeros(3)
        for k, c in enumerate(d.contact):
            wrench = np.zeros(6)
            mujoco.mj_contactForce(m, d, k, wrench)
            total += c.frame.reshape(3, 3).T @ wrench[:3]
            net.append(wrench[0])
            apart += c.dist > c.includemargin - 1e-9 and c.efc_address >= 0
        np.testing.assert_allclose(sim.contacts(traj).force[0].sum(0), total, atol=1e-6)
        mujoco.mj_step(m, d)
        np.testing.assert_allclose(traj.final.v, d.qvel, atol=1e-8)
    assert min(net) < -1 and max(net) > 1 and apart > 3


def test_gradients():
    _, model = both("elliptic")
    sim, rng = ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(1)
    v = 0.05 * rng.normal(size=model.nv)
    v[8] = 0.8  # the ball breaks off
    start = ag.State(sim.reset().q, v)
    rows = {row.what: row for row in ag.gradcheck(sim, state=start, steps=2, samples=1, show=False)}
    for name in ("q0", "v0", "adhesion", "pair_adhesion", "solimp", "body_invweight0", "shape_position"):
        assert rows[name].largest > 1e-6, name


def test_saved_edited_and_refused(tmp_path):
    _, model = both("elliptic")
    ag.save(model, tmp_path / "again.xml")
    again = ag.edit(ag.load(tmp_path / "again.xml")).build()
    np.testing.assert_array_equal(again.params.adhesion, model.params.adhesion)
    assert again.params.pair_adhesion.tolist() == [2.5]
    for options in ({"law": "hard"}, {"law": ag.SoftOptions(noslip=3)}):
        with pytest.raises(ag.InputError, match="pull by themselves"):
            ag.Simulator(model, **options)
    with pytest.raises(ag.ModelError, match="beside noslip"):
        ag.load(ROBOT.format(cone='elliptic" noslip_iterations="3'))


def test_forces_have_gradients():
    _, model = both("elliptic")
    sim, rng = ag.Simulator(model, law=ag.SoftOptions(iterations=60)), np.random.default_rng(1)
    state = ag.State(sim.reset().q, 0.05 * rng.normal(size=model.nv))
    traj = sim.rollout(state, np.zeros((1, 0)))
    bar = rng.normal(size=sim.contacts(traj).force.shape)
    grad = sim.vjp(traj, force_bar=bar).params.adhesion

    def loss(adhesion):
        params = model.params.replace(adhesion=adhesion)
        return (bar * sim.contacts(sim.rollout(state, np.zeros((1, 0)), params=params)).force).sum()

    x = model.params.adhesion
    slopes = [(loss(x + h) - loss(x - h)) / 2e-6 for h in 1e-6 * np.eye(len(x))]
    np.testing.assert_allclose(grad, slopes, atol=1e-7)
    assert np.abs(grad).max() > 1e-3
