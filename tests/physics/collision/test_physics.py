"""Rolling, resting and falling bodies, compared with MuJoCo."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

FLOOR = '<geom name="floor" type="plane" size="5 5 1"/>'


def both(bodies, seconds, start=None, dt=0.002, assets="", options="", **simulator):
    """Return (ours, MuJoCo's) states of a scene on a floor over time, without controls; start(m, d) changes the initial
    one."""
    xml = f"""<mujoco><option timestep="{dt}" {options}/><asset>{assets}</asset>
      <worldbody>{FLOOR}{bodies}</worldbody></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    if start:
        start(m, d)
    steps = round(seconds / dt)
    model = ag.load(xml)
    sim = ag.Simulator(model, **simulator)
    traj = sim.rollout(ag.State(d.qpos.copy(), d.qvel.copy()), np.zeros((steps, model.nu)))
    theirs = [np.concatenate([d.qpos, d.qvel])]
    for _ in range(steps):
        mujoco.mj_step(m, d)
        theirs.append(np.concatenate([d.qpos, d.qvel]))
    return traj, np.array(theirs)


def body(name, geom, pos, quat="1 0 0 0"):
    return f'<body name="{name}" pos="{pos}" quat="{quat}"><freejoint/><geom {geom}/></body>'


def test_a_wheel_rolls():
    wheel = body("wheel", 'type="cylinder" size="0.1 0.03"', "0 0 0.0999", "0.7071067811865476 0.7071067811865476 0 0")

    def push(m, d):
        d.qvel[0] = 1.0
        R = np.zeros(9)  # rolling along x; angular velocities of free bodies are in their own axes
        mujoco.mju_quat2Mat(R, d.qpos[3:7])
        d.qvel[3:6] = R.reshape(3, 3).T @ np.array([0.0, 10.0, 0.0])

    traj, theirs = both(wheel, 10.0, push, dt=0.005)
    speed, wanted = traj.v[-1, 0], theirs[-1, 7]
    assert wanted > 0.98
    assert abs(speed - wanted) < 1e-3
    assert abs(traj.q[200, 0] - theirs[200, 0]) < 1e-3  # after 1 s


def test_five_boxes_rest_on_each_other():
    boxes = "".join(
        body(f"b{k}", 'type="box" size="0.1 0.1 0.1"', f"{0.01 * (-1) ** k} 0 {0.1 + 0.2 * k}") for k in range(5)
    )
    traj, theirs = both(boxes, 1.0)
    assert np.abs(traj.v[-1]).max() < 0.01
    heights = traj.q[-1].reshape(5, 7)[:, 2]
    np.testing.assert_allclose(heights, theirs[-1, :35].reshape(5, 7)[:, 2], atol=1e-4)
    np.testing.assert_allclose(traj.q[-1], theirs[-1, :35], atol=1e-3)


def test_dominoes_fall_one_after_the_other():
    dominoes = "".join(body(f"d{k}", 'type="box" size="0.01 0.05 0.1"', f"{0.1 * k} 0 0.1") for k in range(4))

    def tip(m, d):
        d.qvel[4] = 3.0

    traj, theirs = both(dominoes, 1.0, tip)
    lying = traj.q[-1].reshape(4, 7)[:, 2]
    assert (lying < 0.09).all()  # from 0.1: each leans on the next
    np.testing.assert_allclose(lying, theirs[-1, :28].reshape(4, 7)[:, 2], atol=0.01)
    early = 100  # before things become chaotic
    np.testing.assert_allclose(traj.q[early], theirs[early, :28], atol=1e-3)


CUBE = " ".join(f"{0.05 * x} {0.05 * y} {0.05 * z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1))


def test_a_gripper_holds_a_mesh_cube():
    def finger(name, side):
        return f"""<body name="{name}" pos="{0.072 * side} 0 0.5"><joint type="slide" axis="{-side} 0 0" damping="10"
          stiffness="400" springref="0.05"/><geom type="box" size="0.02 0.03 0.03" mass="0.1" friction="1.5"/></body>"""

    cube = (
        '<body name="cube" pos="0 0 0.5"><freejoint/><geom type="mesh" mesh="cube" mass="0.2" friction="1.5"/></body>'
    )
    assets = f'<mesh name="cube" vertex="{CUBE}"/>'
    traj, theirs = both(finger("left", -1) + finger("right", 1) + cube, 1.0, assets=assets)
    assert abs(traj.q[-1, 4] - 0.5) < 0.01  # held, not dropped
    np.testing.assert_allclose(traj.q[-1, :5], theirs[-1, :5], atol=1e-3)


@pytest.mark.parametrize("lying", [False, True])
def test_a_cylinder_rests_on_a_box(lying):
    quat, height = ("0.7071067811865476 0.7071067811865476 0 0", 0.26) if lying else ("1 0 0 0", 0.28)
    table = '<geom name="table" type="box" size="0.2 0.2 0.1" pos="0 0 0.1"/>'
    traj, theirs = both(table + body("can", 'type="cylinder" size="0.06 0.08"', f"0.01 0.02 {height}", quat), 1.0)
    assert np.abs(traj.v[-1]).max() < 1e-2
    np.testing.assert_allclose(traj.q[-1, :3], theirs[-1, :3], atol=1e-3)


def test_a_foot_climbs_stairs():
    """A leg with three driven slides puts its flat foot on each of three steps in turn, and loads them."""
    stairs = "".join(
        f'<geom name="s{k}" type="box" size="0.15 0.3 {0.05 * (k + 1)}" pos="{0.3 * k} 0 {0.05 * (k + 1)}"/>'
        for k in range(3)
    )
    leg = """<body name="leg" pos="0 0 0.4"><joint name="x" type="slide" axis="1 0 0" damping="20"/>
      <joint name="z" type="slide" axis="0 0 1" damping="20"/><geom type="box" size="0.02 0.02 0.1" pos="0 0 0.1" mass="1"/>
      <body name="foot"><joint name="pitch" type="hinge" axis="0 1 0" damping="0.05"/>
        <geom name="foot" type="box" size="0.1 0.05 0.02" mass="0.3" friction="1"/></body></body>"""
    servos = '<position joint="x" kp="400"/><position joint="z" kp="400"/>'
    xml = f"""<mujoco><option timestep="0.002"/><worldbody>{FLOOR}{stairs}{leg}</worldbody>
      <actuator>{servos}</actuator></mujoco>"""
    m = mujoco.MjModel.from_xml_string(xml)
    d, model = mujoco.MjData(m), ag.load(xml)
    t = np.arange(900) * 0.002
    up = np.where((t % 0.6) < 0.3, 0.05, -0.4)  # lifted while it moves on, then pressed down
    u = np.stack(
        [0.3 * np.minimum(np.floor((t + 0.45) / 0.6), 2), up + 0.1 * np.minimum(np.floor((t + 0.45) / 0.6), 2)], 1
    )
    traj = ag.Simulator(model).rollout(ag.State(d.qpos.copy(), d.qvel.copy()), u)
    for k in range(len(u)):
        d.ctrl[:] = u[k]
        mujoco.mj_step(m, d)
        assert np.abs(traj.q[k + 1, :2] - d.qpos[:2]).max() < 1e-3, t[k]
    assert abs(0.4 + traj.q[-1, 1] - 0.02 - 0.3) < 0.02 and abs(traj.q[-1, 0] - 0.6) < 0.05  # on the third step


def test_a_humanoid_stumbles_up_stairs(tmp_path):
    """It is thrown at them with random motor commands."""
    ag.save(ag.robots.humanoid(), tmp_path / "humanoid.xml")
    heights = [(0.2 * k - 0.1, 0.03 * (k + 1)) for k in range(4)]
    stairs = "".join(
        f'<geom type="box" contype="2" conaffinity="1" size="0.1 1 {h}" pos="{x} 0 {h}"/>' for x, h in heights
    )
    xml = (tmp_path / "humanoid.xml").read_text().replace("</worldbody>", stairs + "</worldbody>")
    m, model = mujoco.MjModel.from_xml_string(xml), ag.load(xml)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[0] = model.keyframe().q, 0.8
    d.qpos[2] += 0.08
    phase = np.random.default_rng(0).uniform(0, 6, m.nu)
    u = 3 * np.sin(4 * np.pi * m.opt.timestep * np.arange(700)[:, None] + phase)
    traj, touching = ag.Simulator(model).rollout(ag.State(d.qpos.copy(), d.qvel.copy()), u), 0
    for k in range(len(u)):
        d.ctrl[:] = u[k]
        mujoco.mj_step(m, d)
        touching += d.ncon > 0
    assert touching > 200
    np.testing.assert_allclose(traj.final.q, d.qpos, atol=1e-3)
