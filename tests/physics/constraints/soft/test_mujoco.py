"""One step of the soft law compared with MuJoCo's: every type of row, both cones, all integrators."""

from itertools import product

import mujoco
import numpy as np
import pytest
from benchmarks.parity import Beside, tight

import artigrad as ag

from ....packages import files
from .scenes import CONES, INTEGRATORS, both, every_row, hand, loops, obstacles

FILES = dict(files())
GYM, SUITE = "gymnasium/envs/mujoco/assets", "dm_control/suite"
# all that these have is simulated, contact pairs included
ROBOTS = (
    *(f"{GYM}/{name}.xml" for name in ("ant", "humanoid", "hopper", "walker2d", "half_cheetah")),
    *(f"{SUITE}/{name}.xml" for name in ("humanoid", "walker", "cheetah", "hopper")),
)


def worst(beside, count, seed=0, **how):
    rng = np.random.default_rng(seed)
    return np.max([beside.error(*state) for state in beside.states(rng, count, **how)], axis=0)


@pytest.mark.parametrize(("cone", "integrator"), list(product(CONES, INTEGRATORS)))
def test_every_row(cone, integrator):
    dv, dq, force = worst(Beside(*both(every_row(cone, integrator))), 60, speed=3.0)
    assert dv < (1e-10 if cone == "pyramidal" else 5e-9) and dq < 1e-10 and force < 1e-6


def test_joint_damping_is_explicit_if_the_file_requests_it():
    sim, m = both(every_row(flags='eulerdamp="disable"'))
    assert not sim.options.implicit_damping
    assert worst(Beside(sim, m), 30, speed=3.0)[0] < 1e-10


@pytest.mark.parametrize(("scene", "cone"), [(hand, "elliptic"), (hand, "pyramidal"), (loops, "elliptic")])
def test_hand_and_closed_loops(scene, cone):
    for integrator in ("Euler", "implicitfast"):
        dv, dq, force = worst(Beside(*both(scene(cone, integrator))), 60)
        assert dv < 1e-8 and dq < 1e-9 and force < 1e-6


@pytest.mark.parametrize("cone", CONES)
def test_moving_shapes_on_fixed_balls(cone):
    dv, dq, force = worst(Beside(*both(obstacles(cone))), 20, every=3, speed=0.1)
    assert dv < 1e-8 and dq < 1e-9 and force < 1e-6


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_from_files(name):
    """With the integrators and cones of their files."""
    if name not in FILES:
        pytest.skip(f"{name} is not installed")
    sim = ag.Simulator(ag.load(FILES[name], strict=False), threads=1)
    m = tight(mujoco.MjModel.from_xml_path(str(FILES[name])))
    dv, dq, force = worst(Beside(sim, m), 60)
    assert dv < 1e-8 and dq < 1e-8 and force < 1e-6


def test_a_second_of_motion(tmp_path):
    """The humanoid lands on its feet, as in MuJoCo."""
    model = ag.robots.humanoid()
    ag.save(model, tmp_path / "humanoid.xml")
    sim = ag.Simulator(model, dt=2e-3)
    m = tight(mujoco.MjModel.from_xml_path(str(tmp_path / "humanoid.xml")))
    m.opt.timestep = sim.options.dt
    d = mujoco.MjData(m)
    start, u = sim.reset(), model.keyframe_control()
    start.q[2] += 0.02
    d.qpos[:], d.ctrl[:] = start.q, u
    mujoco.mj_step(m, d, nstep=500)
    final = sim.rollout(start, np.tile(u, (500, 1))).final
    assert np.abs(final.q - d.qpos).max() < 1e-6 and np.abs(final.v - d.qvel).max() < 1e-6
