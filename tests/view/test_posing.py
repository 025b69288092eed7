"""Joint sliders, without a browser."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.view.browser import Viewer
from artigrad.view.posing import Posing, quaternion_of_turn, turn_of


def test_turns_and_quaternions():
    rng = np.random.default_rng(0)
    for turn in [np.zeros(3), [0.0, 0.0, 3.0], *rng.normal(size=(20, 3))]:
        assert np.allclose(turn_of(quaternion_of_turn(turn)), turn)
        assert np.linalg.norm(quaternion_of_turn(turn)) == pytest.approx(1)


@pytest.fixture
def viewer():
    viewer = Viewer("test", None)
    yield viewer
    viewer.stop()


@pytest.mark.filterwarnings("ignore:.*is made for gravity")
def test_every_joint_has_its_control(viewer):
    model = ag.scene([ag.robots.random_tree(k, 8) for k in (1, 3)], floor=False)
    assert {"revolute", "prismatic", "spherical", "free"} <= set(model.joint_type)
    posing = Posing(viewer, ag.Simulator(model))
    q = posing.q.copy()
    covered = np.zeros(model.nq, bool)
    for control in posing.controls:
        numbers = np.atleast_1d(control.read(control.write(q[control.at :])))
        covered[control.at : control.at + len(numbers)] = True
        assert np.allclose(numbers, q[control.at : control.at + len(numbers)])
    assert covered.all()


def test_sliders_stop_at_limits(viewer):
    posing = Posing(viewer, ag.Simulator(ag.robots.hopper()))
    bounds = {c.handle.label: (c.handle.about["min"], c.handle.about["max"]) for c in posing.controls}
    assert bounds["foot"] == pytest.approx(np.radians((-45, 45)))
    assert bounds["torso"] == pytest.approx((-np.pi, np.pi))


def test_the_keyframe_that_is_shown_is_named(viewer):
    text = """<mujoco><worldbody><body><joint name="hinge" ref="30"/><geom size="0.1"/></body></worldbody></mujoco>"""
    posing = Posing(viewer, ag.Simulator(ag.load(text)))
    assert posing.keyframe.value == "reference"
    np.testing.assert_array_equal(posing.q, posing.model.keyframe("reference").q)


def test_keyframes_set_all_controls(viewer):
    model = ag.robots.cartpole()
    posing = Posing(viewer, ag.Simulator(model))
    posing.keyframe.value = "hanging"
    posing._reset()
    assert np.allclose(posing.q, model.keyframe("hanging").q)
    assert [c.handle.value for c in posing.controls] == pytest.approx(list(posing.q))
