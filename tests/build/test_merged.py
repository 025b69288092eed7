"""Merged and saved models keep collision filters, gravity compensation, references and controller parameters."""

import numpy as np
import pytest

import artigrad as ag

INERTIA, COM = (0.02, 0.02, 0.02), (0.2, 0, 0)


def back(model, folder):
    ag.save(model, folder / "saved.xml")
    return ag.load(folder / "saved.xml")


def speeds(model, steps=20):
    sim = ag.Simulator(model, threads=1)
    return sim.rollout(sim.reset(), steps=steps).final.v


def touching(model):
    names = model.shapes.names
    return {frozenset((names[a], names[b])) for a, b in model.shapes.pairs}


@pytest.mark.parametrize("site", [False, True], ids=["bare", "with a site between"])
def test_a_universal_joint_does_not_let_its_bodies_touch(site, tmp_path):
    b = ag.ModelBuilder("u", gravity=(0, 0, 0))
    b.add_body("base", joint="revolute", mass=1.0, inertia=INERTIA)
    b.add_capsule("base", 0.2, 0.3, name="ball")
    b.add_universal("arm", "base", position=(0.25, 0, 0), mass=1.0, inertia=INERTIA)
    b.add_box("arm", (0.1, 0.1, 0.1), name="box", position=(0.03, 0.02, 0.15))
    b.add_body("far", "arm", joint="revolute", position=(-0.25, 0, 0), mass=1.0, inertia=INERTIA)
    b.add_sphere("far", 0.3, name="end")
    if site:
        b.add_site("between", "arm:1")
    model = b.build()
    again = back(model, tmp_path)
    assert touching(model) == touching(again) == {frozenset(("ball", "end"))}
    np.testing.assert_allclose(speeds(model), speeds(again), rtol=1e-12, atol=1e-12)


PARENTS = """<mujoco><option gravity="0 0 0" timestep=".001"><flag filterparent="{}"/></option><worldbody>
<body name="a" pos="0 0 1"><joint axis="0 1 0"/><geom name="a" size=".2"/>
<body name="b" pos=".3 0 .1"><joint axis="0 1 0" pos="-.1 0 .2"/><geom name="b" size=".2"/></body></body>
</worldbody></mujoco>"""


def test_merged_models_keep_whether_their_bodies_touch_their_parents(tmp_path):
    """In both orders, under the flag of the other model, and saved."""
    touches, filters = (ag.load(PARENTS.format(flag)) for flag in ("disable", "enable"))
    assert touching(ag.scene([touches], floor=False)) == {frozenset(("0/a", "0/b"))}
    np.testing.assert_allclose(speeds(ag.scene([touches], floor=False)), speeds(touches), rtol=1e-12)
    for first, second in ((touches, filters), (filters, touches)):
        b = ag.edit(first)
        b.attach(second, prefix="x/", position=(0, 9, 0))
        both = b.build()
        own = {p for p in touching(both) if len({"x/" in name for name in p}) == 1}
        assert own == {frozenset(("a", "b") if first is touches else ("x/a", "x/b"))}
        assert touching(ag.edit(both).build()) == touching(both) == touching(back(both, tmp_path))


def test_the_floor_of_a_scene_has_all_bits():
    model = ag.load(
        """<mujoco><worldbody><body pos="0 0 .1"><freejoint/><geom size=".1" contype="65536" conaffinity="-2147483648"/></body>
        </worldbody></mujoco>"""
    )
    assert len(ag.scene([model]).shapes.pairs) == 1


def test_sensors_that_are_left_out_are_listed():
    model = ag.load(
        """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="b" pos="0 0 .1"><freejoint/>
        <geom name="g" size=".1"/></body></worldbody><sensor><contact name="foot" geom1="g" geom2="floor" data="found"/>
        <clock name="t"/><subtreecom name="c" body="b"/></sensor></mujoco>"""
    )
    merged = ag.scene([model])
    assert [s.name for s in merged.sensors] == ["0/c"]
    assert [note.where for note in merged.notes if "sensor" in note.what] == [("0/foot", "0/t")]


def test_options_and_gravity_that_are_not_taken_over_are_named():
    calm = ag.robots.ball()
    other = calm.replace(options=calm.options.changed({"dt": 0.004, "cone": "elliptic"}))
    with pytest.warns(RuntimeWarning, match=r"\(1/\) is made for dt 0.004 \(here 0.001\), cone elliptic"):
        ag.scene([calm, other])
    floating = calm.replace(params=calm.params.replace(gravity=[0, 0, -1.6]))
    with pytest.warns(RuntimeWarning, match=r"gravity \[0.0, 0.0, -1.6\]"):
        ag.edit(calm).attach(floating, prefix="x/")
    ag.scene([other, other])  # the same: no warning


def test_nothing_lifts_without_actuators(tmp_path):
    def arm(motor):
        b = ag.ModelBuilder("arm")
        b.add_body(
            "arm",
            joint="spherical",
            mass=1.0,
            com=(0.3, 0, 0),
            inertia=INERTIA,
            gravity_compensation=1.0,
            actuator_gravcomp=True,
        )
        b.add_body("free", joint="free", mass=1.0, inertia=INERTIA, gravity_compensation=1.0)
        if motor:
            b.add_actuator("m", "arm", gear=(1, 0, 0))
        return b.build()

    lifted = arm(True)
    assert np.abs(speeds(lifted)).max() < 1e-12
    with pytest.warns(RuntimeWarning, match="joint 'arm' of 'arm' has actuator_gravcomp: .* no actuator"):
        model = arm(False)
    again = back(model, tmp_path)
    assert np.abs(speeds(model)).max() > 0.1
    np.testing.assert_allclose(speeds(model), speeds(again), rtol=1e-12)
    b = ag.edit(model)
    b.add_actuator("m", "arm", gear=(1, 0, 0))
    np.testing.assert_allclose(speeds(b.build()), speeds(lifted), atol=1e-12)


def test_the_reference_is_no_keyframe(tmp_path):
    """Keyframes of any name do not change the reference; edits, merged models and files keep it."""

    def arm(**reference):
        b = ag.ModelBuilder("m", gravity=(0, 0, 0))
        b.add_body("a", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=INERTIA)
        b.add_body(
            "b",
            "a",
            joint="revolute",
            axis=(0, 1, 0),
            position=(0.4, 0, 0),
            mass=1.0,
            com=COM,
            inertia=INERTIA,
            **reference,
        )
        b.add_keyframe("home", q=(0.5, 1.2))
        return b

    plain, bent = arm().build(), arm(reference=1.2).build()
    assert bent.reference.tolist() == [0.0, 1.2] and plain.keyframes.keys() == {"zero", "reference", "home"}
    assert abs(bent.params.dof_invweight0[0] / plain.params.dof_invweight0[0] - 1) > 0.1
    for model in (ag.edit(bent).build(), ag.scene([bent]), back(bent, tmp_path)):
        np.testing.assert_allclose(model.params.dof_invweight0, bent.params.dof_invweight0, rtol=1e-12)
        assert model.reference.tolist() == [0.0, 1.2]
    for name in ("zero", "reference"):
        with pytest.raises(ag.ModelError, match=f"cannot be named '{name}'"):
            arm().add_keyframe(name)
        with pytest.raises(ag.ModelError, match=f"cannot be named '{name}'"):
            ag.edit(bent).rename("keyframe", "home", name)
    ag.save(plain, tmp_path / "named.xml")
    text = (tmp_path / "named.xml").read_text().replace('key name="home"', 'key name="reference"')
    loaded = ag.load(text)
    assert loaded.keyframe("reference_2").q.tolist() == [0.5, 1.2] and loaded.keyframe().q.tolist() == [0, 0]
    assert [note.what for note in loaded.notes] == ["keyframe 'reference', which every model has by itself"]


def test_velocity_limits_are_kept(tmp_path):
    urdf = """<robot name="r"><link name="base"/><link name="l"><inertial><mass value="1"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="revolute"><parent link="base"/><child link="l"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2.5"/></joint></robot>"""
    model = ag.load(urdf)
    assert model.params.joint("j").velocity_limit == 2.5
    for other in (ag.edit(model).build(), back(model, tmp_path)):
        assert other.params.joint("j").velocity_limit == 2.5
    assert ag.scene([model, model]).params.joint("1/j").velocity_limit == 2.5
    changed = model.params.replace(velocity_limit={"j": 3.0})
    ag.save(model, tmp_path / "changed.xml", params=changed)
    assert ag.load(tmp_path / "changed.xml").params.joint("j").velocity_limit == 3.0
