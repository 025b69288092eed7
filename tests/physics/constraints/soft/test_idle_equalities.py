"""Equalities between parts of one link or of the world, which no motion changes: as in MuJoCo, they have no rows."""

import mujoco
import numpy as np

import artigrad as ag

XML = """<mujoco><option timestep="0.002" cone="elliptic"/><worldbody>
  <site name="here" pos="1 0 0"/>
  <body name="still"><site name="there"/><geom size=".1" contype="0" conaffinity="0"/></body>
  <body name="arm" pos="0 0 1"><joint frictionloss=".3"/><geom size=".1" pos=".2 0 0"/>
    <body name="tip" pos=".3 0 0"><geom size=".05"/></body>
    <body name="ball" pos=".3 0 0"><joint type="ball" frictionloss=".1"/><geom size=".05" pos="0 .2 0"/></body></body>
</worldbody>
<tendon><spatial name="string" limited="true" range="0 0.5" frictionloss="1">
  <site site="here"/><site site="there"/></spatial></tendon>
<equality><tendon tendon1="string"/>
  <weld body1="arm" body2="tip"/><connect body1="still" anchor="0 0 .1"/><weld body1="still"/></equality>
</mujoco>"""


def test_idle_equalities_change_nothing():
    there = mujoco.MjModel.from_xml_string(XML)
    sim, data, rng = ag.Simulator(ag.load(XML)), mujoco.MjData(there), np.random.default_rng(0)
    for _ in range(5):
        v = rng.normal(size=there.nv)
        mujoco.mj_resetData(there, data)
        data.qvel[:] = v
        mujoco.mj_step(there, data)
        assert data.nefc == 4  # dry friction alone
        found = sim.rollout((there.qpos0, v), steps=1)
        np.testing.assert_allclose(found.final.v, data.qvel, atol=1e-12)
        assert found.violation == 0


def test_gradients():
    ag.gradcheck(ag.load(XML), show=False, samples=1)
