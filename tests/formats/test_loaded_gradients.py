"""Gradients of robots from files: arms, hands, legs and humanoids, in the air and on their floors."""

import numpy as np
import pytest

import artigrad as ag

from ..packages import files

FILES = dict(files())
GYM = "gymnasium/envs/mujoco/assets"
IN_THE_AIR = (
    "dm_control/suite/humanoid.xml",
    "dm_control/suite/fish.xml",
    f"{GYM}/humanoid.xml",
    "pybullet_data/pr2_gripper.urdf",
)
# these touch themselves wherever they are: fields that sit on a kink. A vertex of a face with many corners moves it on one side
# only
KINKS = {
    "pybullet_data/pr2_gripper.urdf": ("shape_size",),
}
# how many steps until they lie or stand on the floor
ON_THE_FLOOR = {
    f"{GYM}/ant.xml": 60,
    f"{GYM}/half_cheetah.xml": 30,
    f"{GYM}/humanoid.xml": 90,
    "dm_control/suite/humanoid.xml": 60,
    "dm_control/suite/quadruped.xml": 60,
}


def load(name):
    if name not in FILES:
        pytest.skip(f"{name} is not installed")
    return ag.load(FILES[name], strict=False, motors=True)


@pytest.mark.parametrize("name", IN_THE_AIR)
def test_gradients(name):
    rows = ag.gradcheck(load(name), samples=1, show=False, tolerance=np.inf)
    bad = [r for r in rows if not r.error <= 1e-6 and r.what not in KINKS.get(name, ())]
    assert not bad, bad


@pytest.mark.parametrize("name", ON_THE_FLOOR)
def test_gradients_on_the_floor(name):
    sim = ag.Simulator(load(name))
    state = sim.rollout(sim.reset(), steps=ON_THE_FLOOR[name]).final
    smooth = sim.model.params.replace(friction=1e-2 * sim.model.params.friction)
    u = np.zeros((2, sim.model.nu))
    assert np.abs(sim.rollout(state, u).final.v - sim.rollout(state, u, params=smooth).final.v).max() > 1e-6
    ag.gradcheck(sim, steps=1, samples=1, show=False, state=state)


def test_a_quadruped_of_a_urdf_stands_on_the_floor_of_a_scene():
    name = "pybullet_data/a1/a1.urdf"
    if name not in FILES:
        pytest.skip(f"{name} is not installed")
    robot = ag.load(FILES[name], floating=True, motors=True, strict=False)
    model = ag.scene([robot])
    sim = ag.Simulator(model, dt=2e-3)
    standing = ag.State(np.concatenate([[0, 0, 0.3, 1, 0, 0, 0], 4 * [0.0, 0.9, -1.8]]), np.zeros(model.nv))
    final = sim.rollout(standing, steps=30).final
    assert 0.05 < final.q[2] < 0.3
    ag.gradcheck(sim, steps=1, samples=1, show=False, state=final)
