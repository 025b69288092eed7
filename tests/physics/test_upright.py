"""An upright capsule on a plane: its axis, which determines the contact frame, coincides with the normal."""

import mujoco
import numpy as np

import artigrad as ag

TEXT = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .2"><joint type="slide" axis="1 0 0"/>
    <joint type="slide" axis="0 0 1"/><geom type="capsule" size=".05 .16"/></body></worldbody></mujoco>"""


def test_it_slides_as_in_mujoco():
    model, m = ag.load(TEXT), mujoco.MjModel.from_xml_string(TEXT)
    d, state = mujoco.MjData(m), ag.State(np.array([0.0, -0.001]), np.array([1.0, -0.1]))
    d.qpos[:], d.qvel[:] = state
    traj = ag.Simulator(model).rollout(state, steps=5)
    for _ in range(5):
        mujoco.mj_step(m, d)
    assert d.ncon == 1
    np.testing.assert_allclose(traj.final.v, d.qvel, atol=1e-9)
    ag.gradcheck(model, state=state, show=False, samples=1, tolerance=1e-5)
