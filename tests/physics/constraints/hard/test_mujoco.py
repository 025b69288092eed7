"""Robots and bodies on the floor compared with MuJoCo: rest, sliding, bounce.

MuJoCo has stiff contacts and friction with little creep (impratio); with defaults bodies sink and drift.
"""

import mujoco
import numpy as np

import artigrad as ag

from .scenes import hard


def in_mujoco(model, tmp_path, solref=(0.002, 1.0), solimp=(0.9, 0.95, 0.001, 0.5, 2.0)):
    """Return the model in MuJoCo, in the same state."""
    ag.save(model, tmp_path / "robot.xml", strict=False)
    spec = mujoco.MjSpec.from_file(str(tmp_path / "robot.xml"))
    spec.option.timestep, spec.option.cone, spec.option.impratio = 1e-3, mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    for geom in spec.geoms:
        geom.solref[:], geom.solimp = solref, solimp
    for joint in spec.joints:
        joint.solref_limit = [0.002, 1.0]
    m = spec.compile()
    d = mujoco.MjData(m)
    d.qpos[:] = model.keyframe().q
    return m, d


def mujoco_path(m, d, u):
    """Return q after every step."""
    out = []
    for control in u:
        d.ctrl[:] = control
        mujoco.mj_step(m, d)
        out.append(d.qpos.copy())
    return np.array(out)


def test_standing_laikago(tmp_path):
    model = ag.robots.laikago()
    u = np.repeat(model.keyframe_control()[None], 2000, 0)
    theirs = mujoco_path(*in_mujoco(model, tmp_path), u)
    sim = hard(model)
    assert abs(sim.rollout(sim.reset(), u).final.q[2] - theirs[-1, 2]) < 0.005


def test_stumbling_laikago(tmp_path):
    """Noise on the servos that changes every 50 ms: the trunk moves some centimeters, in both engines."""
    model = ag.robots.laikago()
    noise = np.random.default_rng(0).normal(size=(20, 12))
    u = model.keyframe_control() + 0.1 * np.repeat(noise, 50, axis=0)
    theirs = mujoco_path(*in_mujoco(model, tmp_path), u)
    sim = hard(model, cone="elliptic")
    q = sim.rollout(sim.reset(), u).q[1:]
    assert np.abs(q[:, 2] - theirs[:, 2]).max() < 0.005
    ours, other = (np.linalg.norm(path[-1, :2]) for path in (q, theirs))
    assert other > 0.05 and abs(ours - other) < 0.1 * other


def test_ant_lands_on_its_legs(tmp_path):
    model = ag.robots.ant()
    theirs = mujoco_path(*in_mujoco(model, tmp_path), np.zeros((4000, model.nu)))
    sim = hard(model)
    final = sim.rollout(sim.reset(), steps=4000).final
    assert abs(final.q[2] - theirs[-1, 2]) < 0.005
    assert np.abs(final.v).max() < 1e-3 and final.q[2] < 0.7  # it fell, and rests


def test_bouncing_ball(tmp_path):
    """A fall of half a meter. MuJoCo's contact is a spring with damping for the same restitution."""
    e = 0.7
    b = ag.ModelBuilder("ball")
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.6))
    b.add_sphere("ball", 0.1, restitution=e)
    b.add_plane()
    model = b.build()
    damping = -np.log(e) / np.hypot(np.pi, np.log(e))
    m, d = in_mujoco(model, tmp_path, (0.02, damping), (0.999, 0.999, 0.001, 0.5, 2.0))
    theirs = mujoco_path(m, d, np.zeros((3000, 0)))[:, 2] - 0.1
    sim = hard(model)
    ours = sim.rollout(sim.reset(), steps=3000).q[1:, 2] - 0.1
    assert abs(ours[400:900].max() - theirs[400:900].max()) < 0.1 * theirs[400:900].max()
    assert abs(ours[-1] - theirs[-1]) < 0.005  # both at rest


def test_sliding_box(tmp_path):
    friction, speed = 0.4, 2.0
    b = ag.ModelBuilder("box")
    b.add_body("b", joint="free", mass=2.0, inertia=(0.0133,) * 3, position=(0, 0, 0.0999))
    b.add_box("b", (0.1, 0.1, 0.1), friction=friction)
    b.add_plane(friction=0.0)
    model = b.build()
    m, d = in_mujoco(model, tmp_path)
    d.qvel[0] = speed
    theirs = mujoco_path(m, d, np.zeros((1000, 0)))[-1, 0]
    sim = hard(model)
    ours = sim.rollout(ag.State(sim.reset().q, np.array([speed, 0, 0, 0, 0, 0])), steps=1000).final.q[0]
    assert abs(ours - speed**2 / (2 * friction * 9.81)) < 0.002  # v^2 / (2 mu g)
    assert abs(ours - theirs) < 0.1 * theirs
