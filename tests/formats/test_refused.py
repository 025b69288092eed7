"""Invalid values are refused by the builder and by Params."""

import mujoco
import numpy as np
import pytest

import artigrad as ag


def builder():
    b = ag.ModelBuilder("b")
    b.add_body("a", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    b.add_body("c", "a", joint="prismatic", position=(0.5, 0, 0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.add_body("f", joint="free", position=(0, 0, 2), mass=1.0, inertia=(0.1, 0.1, 0.1))
    for body in ("a", "c", "f"):
        b.add_site(f"s{body}", body)
    b.add_sphere("f", 0.1, name="ball")
    b.add_box("c", (0.1, 0.1, 0.1), name="box")
    b.add_fixed_tendon("t", {"a": 1.0})
    return b


def wrapped(b, radius):
    b.add_spatial_tendon("w", ["sa", ("sphere", "sf", radius), "sc"])


CALLS = {
    "to itself": lambda b: b.add_joint_coupling("a", "a"),
    "tendon 't' to itself": lambda b: b.add_tendon_coupling("t", "t"),
    "does not touch itself": lambda b: b.add_pair("ball", "ball"),
    "friction of pair .* cannot be negative": lambda b: b.add_pair("ball", "box", friction=(-1, 1, 0, 0, 0)),
    "radius of -0.1": lambda b: wrapped(b, -0.1),
    "rest of tendon 'r' is": lambda b: b.add_fixed_tendon("r", {"a": 1.0}, rest=(2.0, 1.0)),
    "invweight0 of tendon 'r' is -1": lambda b: b.add_fixed_tendon("r", {"a": 1.0}, invweight0=-1.0),
    "solref of shape 'x' is 0.1 -1": lambda b: b.add_sphere("a", 0.1, name="x", solref=(0.1, -1)),
    "solref of shape 'x' is 0 0": lambda b: b.add_sphere("a", 0.1, name="x", solref=(0, 0)),
    "solref of pair .* is 0 0": lambda b: b.add_pair("ball", "box", solref=(0, 0)),
    "condim of shape 'x' is 1, 3, 4 or 6, not True": lambda b: b.add_sphere("a", 0.1, name="x", condim=True),
    "gain of actuator 'm', a servo, is -5": lambda b: b.add_position_servo("m", "a", gain=-5.0),
    "damping of actuator 'm' is -1": lambda b: b.add_position_servo("m", "a", gain=5.0, damping=-1.0),
    "gain of actuator 'v', a servo, is -5": lambda b: b.add_velocity_servo("v", "a", gain=-5.0),
    "group of shape 'x' is 1099511627776": lambda b: b.add_sphere("a", 0.1, name="x", group=2**40),
    "velocity_limit of body 'x' is 0": lambda b: b.add_body("x", velocity_limit=0.0),
    "body_invweight0 has -1": lambda b: b.weights.update(body_invweight0=-np.ones((3, 2))),
    r"q\[5:9\] of keyframe 'k' is a zero": lambda b: b.add_keyframe("k", q=np.zeros(9)),
}


@pytest.mark.parametrize("message", CALLS)
def test_the_builder_refuses(message):
    b = builder()
    with pytest.raises(ag.ModelError, match=message):
        CALLS[message](b)
        b.build()
    b = ag.edit(builder().build())  # and an editor, once the model is in it
    with pytest.raises(ag.ModelError, match=message):
        CALLS[message](b)
        b.build()


def test_keyframes_have_unit_quaternions():
    b = builder()
    b.add_keyframe("k", q=[0.1, 0.2, 1, 2, 3, 0, 0, 3, 0])
    assert b.build().keyframe("k").q.tolist() == [0.1, 0.2, 1, 2, 3, 0, 0, 1, 0]


def test_limits_that_look_like_degrees_are_named():
    with pytest.warns(RuntimeWarning, match=r"a limit of body 'x' is 90 rad, 14.3 turns: are these degrees\?"):
        builder().add_body("x", joint="revolute", mass=1.0, inertia=(1, 1, 1), limit=(-90, 90))
    builder().add_body("x", joint="prismatic", mass=1.0, inertia=(1, 1, 1), limit=(-90, 90))


def test_adhesion_beside_limits_of_effort_is_refused():
    b = builder()
    b.add_actuator("pull", body="f")
    b.add_body("x", joint="revolute", mass=1.0, inertia=(1, 1, 1), effort_limit=(-1, 1))
    with pytest.raises(ag.ModelError, match=r"'pull' pulls a body .* joint 'x' has an effort_limit"):
        b.build()


PARAMS = {
    "lengths of a shape are above zero": {"shape_size": {"box": (0.1, 0, 0.1)}},
    "larger than the sum of the others": {"inertia": {"a": (1, 1, 3, 0, 0, 0)}},
    "both numbers are above zero": {"solref": {"ball": (0.1, -1)}},
    "not both zero": {"limit_solref": {"a": (0, 0)}},
    "a servo has no negative gain": {"gain": {"m": -1.0}},
    "the lowest comes before the highest": {"tendon_rest": {"t": (1, 0)}},
    "it cannot be negative": {"velocity_limit": {"a": -1}},
}


@pytest.mark.parametrize("message", PARAMS)
def test_params_refuse(message):
    b = builder()
    b.add_position_servo("m", "a", gain=5.0)
    model = b.build()
    params = model.params.replace(**PARAMS[message])
    with pytest.raises(ag.InputError, match=message):
        ag.Simulator(model, threads=1).step(model.keyframe(), params=params)


def test_input_accepted_by_mujoco_is_read_alike():
    """Friction and solmix below zero, a solref that means nothing, a pair of a shape with itself, keyframes that are no unit
    quaternions."""
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" friction="-1 0 0"/>
    <body name="b" pos="0 0 .099"><freejoint/><geom name="g" size=".1" {}/></body></worldbody>{}
    <keyframe><key qpos="0 0 .099 0 0 0 0" qvel="1 .2 0 0 0 0"/></keyframe></mujoco>"""
    pairs = '<contact><pair geom1="g" geom2="g"/><pair geom1="g" geom2="floor" friction="-1 -1 0 0 0" solref="{}"/></contact>'
    for own, pair in (
        ('friction="-1 0 0" solmix="-1"', ""),
        ('solref="0.1 -1"', ""),
        ('solref="-100 0"', ""),
        ('solref="0 0"', ""),
        ("", pairs.format("0.1 -1")),
        ("", pairs.format("0 0")),
    ):
        xml = text.format(own, pair)
        m = mujoco.MjModel.from_xml_string(xml)
        m.opt.tolerance, d = 0.0, mujoco.MjData(m)
        model = ag.load(xml)
        sim = ag.Simulator(model, threads=1)
        mujoco.mj_resetDataKeyframe(m, d, 0)
        found = sim.rollout(model.keyframe("key0"), steps=5).final
        mujoco.mj_step(m, d, 5)
        np.testing.assert_allclose(found.v, d.qvel, rtol=1e-9, atol=1e-9, err_msg=own + pair)
