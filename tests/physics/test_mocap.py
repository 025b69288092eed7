"""Mocap bodies: welds to them and contacts with them, at any pose."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

XML = """
<mujoco>
  <option timestep="0.002" cone="elliptic" solver="Newton" iterations="200" tolerance="0"/>
  <worldbody>
    <geom type="plane" size="3 3 1"/>
    <body name="paddle" mocap="true" pos="0.02 0.01 0.12" quat="0.99 0.1 0.05 0">
      <geom name="paddle" type="box" size="0.2 0.2 0.02"/>
      <body name="handle" pos="0 0 0.3">
        <geom size="0.05"/>
        <body name="string"><joint name="swing" axis="0 1 0"/><geom name="bob" size="0.1" pos="0.12 0 0" mass="0.2"/></body>
      </body>
    </body>
    <body name="hand" mocap="true" pos="1 0 1"><geom type="sphere" size="0.05" contype="0" conaffinity="0"/></body>
    <body name="ball" pos="0.05 0 0.2"><freejoint/><geom name="ball" size="0.07" mass="0.5"/></body>
    <body name="arm" pos="1 0 1"><freejoint/><geom type="box" size="0.1 0.05 0.03" mass="1"/></body>
    <body name="gripper" pos="1 0.5 1"><joint type="ball"/><geom type="capsule" size="0.03 0.1" pos="0 0 -0.2" mass="1"/></body>
  </worldbody>
  <equality>
    <weld name="grip" body1="hand" body2="arm" solref="0.02 1"/>
    <connect name="pull" body1="gripper" body2="hand" anchor="0 0 -0.3"/>
  </equality>
  <keyframe>
    <key name="up" qpos="0 0.05 0 0.2 1 0 0 0 1 0 1.1 1 0 0 0 1 0 0 0" mpos="0 0 0.2  1 0 1.1" mquat="1 0 0 0  0 0 0 2"/>
  </keyframe>
</mujoco>"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("mocap") / "mocap.xml"
    path.write_text(XML)
    return path


@pytest.fixture(scope="module")
def model(file):
    return ag.load(file)


def test_steps_equal_mujocos(model):
    m = mujoco.MjModel.from_xml_string(XML)
    d, sim, rng = mujoco.MjData(m), ag.Simulator(model, threads=1), np.random.default_rng(0)
    touched = 0
    for _ in range(10):
        mujoco.mj_resetData(m, d)
        d.mocap_pos += 0.03 * rng.normal(size=(2, 3))
        d.mocap_quat += 0.05 * rng.normal(size=(2, 4))
        d.mocap_quat /= np.linalg.norm(d.mocap_quat, axis=1, keepdims=True)
        d.qvel[:] = rng.normal(size=m.nv)
        state = ag.State(d.qpos.copy(), d.qvel.copy())
        params = model.params.replace(
            position={"paddle": d.mocap_pos[0], "hand": d.mocap_pos[1]},
            rotation={"paddle": d.mocap_quat[0], "hand": d.mocap_quat[1]},
        )
        after = sim.step(state, params=params)
        mujoco.mj_step(m, d)
        touched += d.ncon
        np.testing.assert_allclose(after.v, d.qvel, atol=1e-8)
        np.testing.assert_allclose(after.q, d.qpos, atol=1e-10)
    assert touched > 3


def test_gradients_of_poses(model):
    sim = ag.Simulator(model, threads=1)
    state, rng = sim.reset(), np.random.default_rng(1)
    bar = rng.normal(size=model.nv)
    rows = list(model.mocap)

    def loss(position, rotation):
        params = model.params.replace(position=position, rotation=rotation)
        return sim.rollout(state, steps=3, params=params).final.v @ bar

    p = model.params
    traj = sim.rollout(state, steps=3)
    grad = sim.vjp(traj, v_bar=bar).params
    for name in ("position", "rotation"):
        direction = np.zeros_like(p[name])
        direction[rows] = rng.normal(size=(2, p[name].shape[1]))
        if name == "rotation":  # a quaternion keeps its length
            direction[rows] -= (direction[rows] * p.rotation[rows]).sum(1, keepdims=True) * p.rotation[rows]
        fields = {"position": np.array(p.position), "rotation": np.array(p.rotation)}
        ends = [loss(**(fields | {name: fields[name] + h * direction})) for h in (1e-6, -1e-6)]
        slope = (ends[0] - ends[1]) / 2e-6
        assert abs(slope) > 1e-3
        np.testing.assert_allclose((grad[name] * direction).sum(), slope, rtol=1e-6)


def test_mocap_bodies_collide_as_in_mujoco(model):
    """They collide neither with each other, nor with the world, nor with their children."""
    names = {frozenset(model.shapes.names[k] for k in pair) for pair in model.shapes.pairs}
    assert frozenset(("paddle", "ball")) in names
    assert not any("paddle" in pair and pair & {"bob", "geom0"} for pair in names)
    assert frozenset(("ball", "bob")) in names


def test_keyframes(model):
    assert [model.bodies[i] for i in model.mocap] == ["paddle", "hand"]
    up = model.keyframe_params("up")
    np.testing.assert_allclose(up.body("hand").position, (1, 0, 1.1))
    np.testing.assert_allclose(up.body("hand").rotation, (0, 0, 0, 1))
    np.testing.assert_allclose(up.body("arm").position, model.params.body("arm").position)
    rest = model.keyframe_params()
    np.testing.assert_allclose(rest.flat, model.params.flat)


def test_saved_edited_and_in_scenes(model, tmp_path):
    ag.save(model, tmp_path / "again.xml")
    again = ag.load(tmp_path / "again.xml")
    assert again.mocap == model.mocap and again.shapes.pairs == model.shapes.pairs
    np.testing.assert_allclose(again.keyframes["up"].mocap, model.keyframes["up"].mocap)
    changed = ag.edit(model)
    changed.rename("body", "hand", "grip")
    changed.remove("body", "paddle")
    changed = changed.build()
    assert [changed.bodies[i] for i in changed.mocap] == ["grip"]
    np.testing.assert_allclose(changed.keyframes["up"].mocap, (1, 0, 1.1, 0, 0, 0, 1))
    both = ag.scene([model, model], positions=[(0, 0, 0), (0, 5, 0)])
    np.testing.assert_allclose(both.keyframe_params("up").body("1/hand").position, (1, 5, 1.1))
    with pytest.raises(ag.ModelError, match="fixed to the world"):
        ag.ModelBuilder("wrong").add_body("a", joint="revolute", mass=1.0, mocap=True)
