"""Editing of models by names of parts."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

ARM = """
<mujoco model="arm">
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <geom name="wall" type="box" size="0.1 1 1" pos="2 0 1"/>
    <camera name="eye" pos="0 -3 1" fovy="50"/>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.1" ref="0.3" range="-2 2" limited="true"/>
      <geom name="upper" type="capsule" size="0.04 0.2" pos="0 0 -0.2" mass="1"/>
      <site name="on_upper" pos="0 0 -0.3"/>
      <body name="lower" pos="0 0 -0.4">
        <joint name="elbow" axis="0 1 0" armature="0.01"/>
        <geom name="lower" type="capsule" size="0.03 0.2" pos="0 0 -0.2" mass="0.5"/>
        <site name="tip" pos="0 0 -0.4"/>
        <body name="hand" pos="0 0 -0.4">
          <joint name="wrist" type="slide" axis="0 0 1" stiffness="100"/>
          <geom name="hand" type="box" size="0.05 0.05 0.05" mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="both"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-1"/></fixed></tendon>
  <equality><joint name="follow" joint1="wrist" joint2="elbow" polycoef="0 0.1 0 0 0"/></equality>
  <actuator>
    <motor name="shoulder" joint="shoulder"/>
    <position name="elbow" joint="elbow" kp="20"/>
    <motor name="pull" tendon="both"/>
  </actuator>
  <sensor><jointpos name="angle" joint="elbow"/><framepos name="where" objtype="site" objname="tip"/></sensor>
  <contact><exclude body1="upper" body2="hand"/></contact>
  <keyframe><key name="bent" qpos="0.5 0.7 0.01" qvel="1 2 3" ctrl="1 2 3"/></keyframe>
</mujoco>
"""


def arm():
    return ag.load(ARM)


def same(a, b):
    """Return True if two models are equal up to rounding."""
    assert (a.bodies, a.joints, a.sites, a.actuators, a.sensors) == (
        b.bodies,
        b.joints,
        b.sites,
        b.actuators,
        b.sensors,
    )
    assert (a.shapes, a.tendons, a.equalities, a.cameras) == (b.shapes, b.tendons, b.equalities, b.cameras)
    assert a.keyframes.keys() == b.keyframes.keys() and a.options == b.options
    for key in a.keyframes:
        for x, y in zip(a.keyframes[key], b.keyframes[key], strict=True):
            np.testing.assert_array_equal(x, y)
    for field in a.params:
        np.testing.assert_allclose(a.params[field], b.params[field], rtol=1e-12, atol=1e-12, err_msg=field)


def test_an_edit_without_changes_is_the_model():
    same(ag.edit(arm()).build(), arm())


def test_added_parts_match_mujoco():
    """A payload, a site, a shape and a motor, here and in an MjSpec: the next state is the same."""
    b = ag.edit(arm())
    b.add_body("payload", "hand", position=(0.1, 0, 0), mass=0.7, inertia=(0.01, 0.02, 0.02))
    b.add_sphere("payload", 0.06, name="payload")
    b.add_site("grip", "payload", position=(0, 0, 0.1))
    b.add_motor("push", "wrist", gear=2.0)
    model = b.build()
    spec = mujoco.MjSpec.from_string(ARM)
    payload = spec.body("hand").add_body(name="payload", pos=[0.1, 0, 0], mass=0.7, inertia=[0.01, 0.02, 0.02])
    payload.explicitinertial, payload.ipos = True, [0, 0, 0]
    payload.add_geom(name="payload", size=[0.06, 0, 0], mass=0)
    payload.add_site(name="grip", pos=[0, 0, 0.1])
    push = spec.add_actuator(name="push", target="wrist", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    push.gear[0] = 2.0
    spec.keys[0].ctrl = [1, 2, 3, 0]
    m = spec.compile()
    d, u = mujoco.MjData(m), np.array([1.0, 0.4, -2.0, 0.7])
    mujoco.mj_resetDataKeyframe(m, d, 0)
    d.ctrl[:] = u
    mujoco.mj_step(m, d)
    sim = ag.Simulator(model)
    assert np.array_equal(model.keyframe_control("bent"), [1, 2, 3, 0])
    after = sim.step(sim.reset("bent"), u)
    np.testing.assert_allclose(after.v, d.qvel, rtol=1e-9, atol=1e-9)


def test_a_body_goes_with_all_that_needs_it():
    b = ag.edit(arm())
    b.remove("body", "lower")
    model = b.build()
    assert model.bodies == ("upper",) and model.sites == ("on_upper",) and model.actuators == ("shoulder",)
    assert model.shapes.names == ("floor", "wall", "upper") and model.shapes.excluded == ()
    assert not (model.tendons or model.equalities or model.sensors)
    assert [x.tolist() for x in model.keyframes["bent"][:3]] == [[0.5], [1.0], [1.0]]
    ag.Simulator(model).step(model.keyframe("bent"))


def test_removing_a_joint_keeps_its_body():
    b = ag.edit(arm())
    b.remove("joint", "wrist")
    model = b.build()
    assert model.joint_type == ("revolute", "revolute", "fixed") and model.equalities == ()
    assert model.keyframes["bent"][0].tolist() == [0.5, 0.7] and model.nu == 3


@pytest.mark.parametrize(
    "part, name", [("site", "tip"), ("shape", "wall"), ("actuator", "pull"), ("sensor", "angle"), ("camera", "eye")]
)
def test_small_parts_go_alone(part, name):
    b, before = ag.edit(arm()), arm()
    b.remove(part, name)
    model = b.build()
    assert model.bodies == before.bodies
    assert len(model.sites) + len(model.shapes.names) + model.nu + len(model.cameras) + len(model.sensors) < len(
        before.sites
    ) + len(before.shapes.names) + before.nu + len(before.cameras) + len(before.sensors)
    assert ("where" in [s.name for s in model.sensors]) == (name != "tip")  # that site is what it reads


def test_renaming_updates_all_references():
    b = ag.edit(arm())
    for part, old, new in (
        ("body", "lower", "forearm"),
        ("joint", "elbow", "bend"),
        ("site", "tip", "end"),
        ("shape", "lower", "tube"),
        ("tendon", "both", "string"),
        ("actuator", "pull", "draw"),
        ("equality", "follow", "gear"),
        ("sensor", "angle", "phi"),
        ("camera", "eye", "lens"),
        ("keyframe", "bent", "home"),
    ):
        b.rename(part, old, new)
    text = ARM
    for old, new in (
        *(
            ('name="lower" pos', 'name="forearm" pos'),
            ('"elbow" axis', '"bend" axis'),
            ('joint="elbow"', 'joint="bend"'),
        ),
        *(('joint2="elbow"', 'joint2="bend"'), ('"tip"', '"end"'), ('name="lower" type', 'name="tube" type')),
        *(('"both"', '"string"'), ('"pull"', '"draw"'), ('"follow"', '"gear"'), ('"angle"', '"phi"')),
        *(('"eye"', '"lens"'), ('"bent"', '"home"')),
    ):
        assert old in text
        text = text.replace(old, new)
    same(b.build(), ag.load(text))


def test_wrong_names_are_reported():
    b = ag.edit(arm())
    with pytest.raises(ag.ModelError, match="no body 'hend'; did you mean 'hand'"):
        b.remove("body", "hend")
    with pytest.raises(ag.ModelError, match="a part is one of joint"):
        b.remove("bone", "hand")
    with pytest.raises(ag.ModelError, match="names are 'hand'"):
        b.rename("body", "lower", "hand")
    with pytest.raises(ag.ModelError, match="attached to body 'hend'"):
        b.attach(arm(), "hend", prefix="2/")
    with pytest.raises(ag.ModelError, match="model is a Model, not"):
        ag.edit("arm.xml")
    moved = ag.ModelBuilder("moved")
    moved.add_body("handle", mocap=True)
    with pytest.raises(ag.ModelError, match="mocap body 'handle', which is fixed to the world"):
        b.attach(moved.build(), "hand", prefix="2/")


def test_a_body_goes_with_those_that_are_its_joints():
    b = ag.ModelBuilder("u")
    b.add_body("base", joint="revolute", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_universal("arm", "base", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = ag.edit(b.build())
    b.remove("body", "arm")
    assert b.build().bodies == ("base",)


def test_one_model_on_another_moves_as_in_mujoco():
    gripper = ag.load(
        """<mujoco model="g"><worldbody><body name="base" pos="0 0 5"><freejoint/><geom size="0.03" mass="0.3"/>
        <body name="finger" pos="0.02 0 0"><joint name="open" type="slide" axis="1 0 0" damping="1"/>
        <geom size="0.01" mass="0.05"/></body></body></worldbody>
        <actuator><motor name="close" joint="open"/></actuator></mujoco>"""
    )
    b = ag.edit(arm())
    turn = np.array([0.8, 0.0, 0.6, 0.0])
    b.attach(gripper, "hand", prefix="g/", position=(0, 0, -0.1), rotation=turn)
    model = b.build()
    text = ARM.replace(
        '<geom name="hand"',
        """<body name="base" pos="0 0 -0.1" quat="0.8 0 0.6 0"><geom size="0.03" mass="0.3"/>
        <body name="finger" pos="0.02 0 0"><joint name="open" type="slide" axis="1 0 0" damping="1"/>
        <geom size="0.01" mass="0.05"/></body></body><geom name="hand" """,
    ).replace("</actuator>", '<motor name="close" joint="open"/></actuator>')
    text = text.replace('"0.5 0.7 0.01" qvel="1 2 3" ctrl="1 2 3"', '"0.5 0.7 0.01 0" qvel="1 2 3 0" ctrl="1 2 3 0"')
    want = ag.load(text)
    u = np.array([0.3, 0.1, -0.4, 2.0])
    one, other = (ag.Simulator(m).step(m.keyframe("bent"), u) for m in (model, want))
    np.testing.assert_allclose(one.v, other.v, rtol=1e-9, atol=1e-9)
    assert model.bodies[-2:] == ("g/base", "g/finger") and model.joint_type[-2:] == ("fixed", "prismatic")


def test_an_mjspec_goes_in_and_comes_back():
    spec = mujoco.MjSpec.from_string(ARM)
    spec.body("hand").add_site(name="grip", pos=[0, 0, 0.1])
    model = ag.load(spec)
    assert model.name == "arm" and "grip" in model.sites
    same(ag.load(ag.spec(model)), model)
    same(ag.load(spec.compile()), model)
    spec.body("hand").add_joint(name="bad", range=[1, -1], limited=1)
    with pytest.raises(ag.ModelError, match="'arm': range"):
        ag.load(spec)


def test_a_scene_keeps_keyframes_orientations_and_shapes():
    home = ag.robots.quadruped()
    turned = np.array([np.cos(0.4), 0, 0, np.sin(0.4)])
    model = ag.scene([arm(), home], positions=[(1, 0, 0), (0, 3, 0)], rotations=[turned, turned])
    assert {"home", "bent", "reference"} <= model.keyframes.keys()
    q = model.keyframe("home").q
    assert np.array_equal(q[:3], arm().keyframe().q)  # its default
    assert np.array_equal(model.keyframe("bent").q[:3], [0.5, 0.7, 0.01])
    assert "0/wall" in model.shapes.names and "0/floor" not in model.shapes.names
    sim, alone, arm_alone = (ag.Simulator(m, dt=1e-3) for m in (model, home, arm()))
    out, ref = sim.outputs(sim.reset("home")), alone.outputs(alone.reset("home"))
    R = np.array([[np.cos(0.8), -np.sin(0.8), 0], [np.sin(0.8), np.cos(0.8), 0], [0, 0, 1.0]])
    foot = home.sites[0]
    np.testing.assert_allclose(out.site(f"1/{foot}").position, R @ ref.site(foot).position + (0, 3, 0), atol=1e-12)
    tip = arm_alone.outputs(arm_alone.reset()).site("tip").position
    np.testing.assert_allclose(out.site("0/tip").position, R @ tip + (1, 0, 0), atol=1e-12)
    wall = model.shape("0/wall")
    np.testing.assert_allclose(model.params.shape_position[wall], R @ (2, 0, 1) + (1, 0, 0), atol=1e-12)


def test_urdf_is_not_written(tmp_path):
    with pytest.raises(ag.ModelError, match=r"writes MJCF, not '\.urdf': URDF holds no actuators"):
        ag.save(arm(), tmp_path / "arm.urdf")
    assert not list(tmp_path.iterdir())
