"""Table of joints: consistency of every record; and the universal joint, which the builder makes of two joints."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.physics.joints.table import BY_MJCF, JOINTS, KIND, MOVING


@pytest.mark.parametrize("joint", JOINTS.values(), ids=list(JOINTS))
def test_joint_records_are_consistent(joint):
    assert joint.nq == joint.straight + 4 * joint.quaternion == len(joint.zero)
    assert joint.nv == joint.straight + 3 * joint.quaternion
    assert joint.motions(np.array([0.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.3]), 0.5).shape == (6, joint.nv)
    assert not joint.axial or joint.nv == 1
    if joint.nv:
        assert MOVING[KIND[joint.name]] is joint and (joint.mjcf is None or BY_MJCF[joint.mjcf] is joint)


def test_universal_joint_moves_as_in_mujoco():
    b = ag.ModelBuilder("gimbal")
    inertia = {"mass": 2.0, "com": (0.1, 0.2, -0.4), "inertia": (0.05, 0.06, 0.07)}
    place = {"position": (0.1, 0.2, 1.0), "rotation": (0.9, 0.1, 0.3, 0.2), "anchor": (0.05, 0.0, 0.1)}
    b.add_universal("rod", axes=((1, 0, 0), (0, 1, 0)), damping=0.1, **place, **inertia)
    model = b.build()
    assert model.joints == ("rod:1", "rod") and model.nv == 2
    quat = np.array(place["rotation"]) / np.linalg.norm(place["rotation"])
    text = f"""<mujoco><worldbody><body pos="0.1 0.2 1" quat="{" ".join(map(str, quat))}">
    <joint axis="1 0 0" pos="0.05 0 0.1"/><joint axis="0 1 0" pos="0.05 0 0.1" damping="0.1"/>
    <inertial mass="2" pos="0.1 0.2 -0.4" diaginertia="0.05 0.06 0.07"/></body></worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(text)
    d, rng = mujoco.MjData(m), np.random.default_rng(0)
    d.qpos[:], d.qvel[:] = rng.normal(size=2), rng.normal(size=2)
    mujoco.mj_forward(m, d)
    state = ag.State(d.qpos.copy(), d.qvel.copy())
    np.testing.assert_allclose(ag.Simulator(model).forward_dynamics(state), d.qacc, rtol=1e-10)
    ag.gradcheck(model, show=False)
