"""MuJoCo's enumerations, by number and by name."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.formats import mujoco_api


@pytest.mark.parametrize("name", sorted(mujoco_api.SHARED))
def test_numbers_are_those_of_the_installed_mujoco(name):
    prefix, ours = mujoco_api.SHARED[name]
    theirs = getattr(mujoco, name)
    assert {member.name: int(getattr(theirs, prefix + member.name)) for member in ours} == {m.name: m for m in ours}


def test_biases_have_the_numbers_of_gains():
    assert int(mujoco.mjtBias.mjBIAS_AFFINE) == mujoco_api.GainType.AFFINE
    assert int(mujoco.mjtBias.mjBIAS_MUSCLE) == mujoco_api.GainType.MUSCLE


def test_members_are_named_and_unknown_numbers_kept():
    assert mujoco_api.member("mjtDyn", int(mujoco.mjtDyn.mjDYN_USER)) == "user"
    assert mujoco_api.member("mjtGain", int(mujoco.mjtGain.mjGAIN_USER)) == "user"
    assert mujoco_api.member("mjtDyn", 99) == "mjtDyn 99"


def test_fields_and_bits_that_a_version_lacks_are_zero():
    m = mujoco.MjModel.from_xml_string("<mujoco/>")
    assert np.array_equal(mujoco_api.field(m, "joint_of_another_version", 3), np.zeros(3))
    assert mujoco_api.bit("mjtEnableBit", "mjENBL_OF_ANOTHER_VERSION") == 0


def test_user_actuators_are_named_as_such():
    xml = """<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>
    <actuator><general name="a" joint="j" dyntype="user" actdim="1"/></actuator></mujoco>"""
    model = ag.load(xml, strict=False)
    assert "activation dynamics 'user'" in str(model.unsupported)


def test_an_old_mujoco_is_refused(monkeypatch):
    monkeypatch.setattr(mujoco, "__version__", "3.2.7")
    with pytest.raises(ag.ModelError, match=r"mujoco 3\.2\.7 is too old; pip install 'mujoco>=3\.11'"):
        ag.load("<mujoco/>")
