"""Contacts and tendons that no joint can move have no effect, and such contacts are named."""

import warnings

import mujoco
import numpy as np
import pytest
from typer.testing import CliRunner

import artigrad as ag
from artigrad.cli import app

from ..searches import dead_rows

ARM = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="post"><joint name="turn" axis="0 0 1" armature=".1"/>
 <geom name="base" type="capsule" fromto="0 0 0 0 0 .1" size=".027" mass="3" {idle}/>
 <body pos="0 0 .2"><joint name="lift" axis="0 1 0" armature=".1"/>
 <geom name="arm" type="capsule" fromto="0 0 0 .6 0 -.21" size=".02" mass="4"/></body></body>
</worldbody><actuator><motor joint="turn"/><motor joint="lift"/></actuator></mujoco>"""
STATE = np.array([0.3, 0.02]), np.array([0.2, 0.5])
OFF = 'contype="0" conaffinity="0"'


def mujoco_step(xml):
    m = mujoco.MjModel.from_xml_string(xml)
    m.opt.tolerance, m.opt.iterations = 0, 200
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = STATE
    mujoco.mj_step(m, d)
    return d.qvel


def test_a_contact_that_no_joint_can_relieve_changes_nothing_and_is_named():
    sim = ag.Simulator(ag.load(ARM.format(idle="")))
    exclude = 'shapes .floor. and .base. .*<exclude body1="world" body2="post"/>'
    with pytest.warns(RuntimeWarning, match=exclude) as caught:
        traj = sim.rollout(ag.State(*STATE), np.zeros((1, 2)))
    assert len(caught) == 1 and caught[0].filename == __file__
    np.testing.assert_allclose(traj.final.v, mujoco_step(ARM.format(idle=OFF)), rtol=1e-9)
    free = ag.Simulator(ag.load(ARM.format(idle=OFF)))
    grad, wanted = (s.vjp(t, v_bar=np.ones(2)) for s, t in ((sim, traj), (free, free.rollout(*_call()))))
    for name in ("q0", "v0", "u"):
        np.testing.assert_allclose(getattr(grad, name), getattr(wanted, name), rtol=1e-9, atol=1e-12)
    pressed = {names for names, f in zip(sim.contact_names, sim.contacts(traj).force[0], strict=True) if f.any()}
    assert pressed == {("floor", "arm")}


def _call():
    return ag.State(*STATE), np.zeros((1, 2))


@pytest.mark.parametrize("command", ["info", "check"])
def test_the_command_line_names_it(command, tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM.format(idle=""))
    out = CliRunner().invoke(app, [command, str(path), *(["--samples", "1"] if command == "check" else [])])
    assert "no joint can move them apart" in out.output


TENDON = """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis=".3 .7 -.5"/>
<geom size=".05 .1" type="capsule" pos=".1 0 0.05"/><site name="a" pos="-.19 -.1 -.2"/><site name="b" pos="-.08 -.16 .007"/>
<body pos="-.1 -.2 .12"><joint name="k"/><geom size=".03"  pos=".05 0 .02"/><site name="c" pos=".1 0 0"/></body></body>
</worldbody><tendon><spatial name="dead" frictionloss=".8"><site site="a"/><site site="b"/></spatial>
<spatial name="alive"><site site="b"/><site site="c"/></spatial></tendon></mujoco>"""


def test_a_tendon_has_entries_for_the_joints_that_change_its_length():
    model = ag.load(TENDON)
    assert [line.dofs for line in model.lines[0]] == [(), (1,)]
    m = mujoco.MjModel.from_xml_string(TENDON)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = STATE
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after = ag.Simulator(model).step(ag.State(*STATE))
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(after.v, d.qvel, rtol=1e-9)


def test_the_lever_of_rounding_is_that_of_the_shapes_not_of_the_point():
    """A ball with a contact near the origin of its tree, on a floor and an axis that are parallel up to rounding."""
    _, _, texts, state = dead_rows.draw(np.random.default_rng((77, 4)), 4)
    assert dead_rows.check(texts, state) is None
