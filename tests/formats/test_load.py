"""Loaded models compared with MuJoCo: conventions, flags, actuators, contact, names."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.model.hulls import hull_of
from artigrad.model.model import DIRECT, POSITION, VELOCITY
from artigrad.simulate.gradcheck import random_state

from .texts import joint, link, urdf


def mjcf(worldbody, rest="", compiler='angle="radian"'):
    return f"<mujoco><compiler {compiler}/><worldbody>{worldbody}</worldbody>{rest}</mujoco>"


BALL = '<geom type="sphere" size="0.1" mass="1"/>'
ARM = f"""<body name="arm" pos="0.1 0.2 0.3" quat="0.8 0.6 0 0"><joint name="j" type="hinge" axis="0 1 1" pos="0.1 0 -0.2"
    ref="0.7"/>{BALL}<site name="tip" pos="0.3 0 0"/></body>"""


def agrees(text, seed=0, **options):
    """Return the model of a text, after comparison of its trajectory, poses and forces with MuJoCo's at a random state."""
    model, m = ag.load(text, **options), mujoco.MjModel.from_xml_string(text)
    d, rng = mujoco.MjData(m), np.random.default_rng(seed)
    state = random_state(model, rng)
    u = 2 * rng.normal(size=model.nu)
    m.opt.disableflags |= 1
    d.qpos[:], d.qvel[:], d.ctrl[:] = *state, u
    mujoco.mj_forward(m, d)
    sim = ag.Simulator(model)
    np.testing.assert_allclose(sim.forward_dynamics(state, u), d.qacc, atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(sim.sites(state), d.site_xpos, atol=1e-12)
    np.testing.assert_allclose(sim.reset("reference").q, m.qpos0)
    return model


@pytest.mark.parametrize(
    "joints",
    [
        '<joint type="hinge" axis="1 2 3" pos="0.1 0.2 0.3" ref="0.5" stiffness="3" springref="0.2" damping="0.3"/>',
        '<joint type="slide" axis="1 2 3" ref="0.5" stiffness="3" springref="0.2" armature="0.4"/>',
        '<joint type="ball" pos="0.1 0.2 0.3" damping="0.2" armature="0.1"/>',
        "<freejoint/>",
        '<joint type="free" damping="0.2" armature="0.1"/>',
        '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1" ref="1.25"/><joint axis="0 1 0" pos="0 0 1"/>',
        '<joint axis="1 0 0" pos="0 0 0.1"/><joint axis="0 1 0" pos="0 0.2 0" ref="0.3"/><joint axis="0 0 1"/>',
        '<joint axis="1 0 0"/><joint type="ball" pos="0 0.1 0"/><joint type="slide" axis="0 1 1"/>',
    ],
)
def test_joints(joints):
    child = f'<body pos="0.2 0 0.1" euler="0.3 0.4 0.5"><joint axis="0 1 0"/>{BALL}</body>'
    inertial = '<inertial mass="2" pos="0.1 0.2 0.3" fullinertia="0.3 0.4 0.5 0.01 0.02 0.03"/>'
    body = f'<body name="b" pos="1 2 3" euler="0.1 0.2 0.3">{joints}{inertial}<site pos="0.3 0.1 0"/>{child}</body>'
    model = agrees(mjcf(body))
    assert model.bodies[-2:] == ("b", "body2")


def test_a_body_with_several_joints_keeps_its_names():
    joints = (
        '<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide"/><joint name="turn" axis="0 1 0"/>'
    )
    model = ag.load(mjcf(f'<body name="torso">{joints}{BALL}</body>'))
    assert model.bodies == ("torso:x", "torso:z", "torso")
    assert model.joints == ("x", "z", "turn")


@pytest.mark.parametrize(
    ("actuator", "kind"),
    [
        ('<motor joint="j" gear="30" ctrlrange="-1 1" ctrllimited="true"/>', DIRECT),
        ('<position joint="j" kp="20" kv="3" gear="2" forcerange="-5 5"/>', POSITION),
        ('<velocity joint="j" kv="4"/>', VELOCITY),
        ('<general joint="j" gainprm="3" biastype="affine" biasprm="1 -2 -0.5" gear="-2"/>', DIRECT),
        ('<general joint="j" dyntype="user"/>', None),
    ],
)
def test_actuators(actuator, kind):
    text = mjcf(ARM, f"<actuator>{actuator}</actuator>")
    if kind is None:
        with pytest.raises(ag.ModelError, match="activation dynamics"):
            ag.load(text)
        assert ag.load(text, strict=False).nu == 1
        return
    assert agrees(text).actuator_kind == (kind,)


def test_the_force_limit_of_a_joint_is_its_own():
    joint = ARM.replace('ref="0.7"', 'actuatorfrcrange="-3 2"')
    model = agrees(mjcf(joint, '<actuator><motor joint="j" gear="-100"/><motor joint="j"/></actuator>'))
    assert (model.params.effort_limit[0] == [-3, 2]).all()


def test_without_springs_and_dampers_there_is_no_fluid_and_no_compensation():
    arm = '<joint name="j" damping=".3" stiffness="2"/><geom size=".05 .2" type="capsule" pos=".2 0 0"/>'
    option = '<option density="1000" viscosity=".3" wind="1 2 .5"><flag spring="disable" damper="disable"/></option>'
    xml = f'<mujoco>{option}<worldbody><body gravcomp=".7">{arm}</body></worldbody></mujoco>'
    m = mujoco.MjModel.from_xml_string(xml)
    d = mujoco.MjData(m)
    d.qpos[0], d.qvel[0] = 0.3, 1.0
    after = ag.Simulator(ag.load(xml)).step(ag.State(d.qpos.copy(), d.qvel.copy()))
    mujoco.mj_step(m, d)
    assert after.v == pytest.approx(d.qvel, rel=1e-12)


@pytest.mark.parametrize("flag", ["gravity", "spring", "damper", "actuation", "clampctrl"])
def test_flags(flag):
    arm = ARM.replace('ref="0.7"', 'stiffness="3" damping="2"')
    motor = '<actuator><motor joint="j" ctrlrange="-0.1 0.1"/></actuator>'
    agrees(mjcf(arm, motor + f'<option><flag {flag}="disable"/></option>'))


def test_the_order_of_u_is_that_of_the_file():
    motors = '<actuator><general name="a" joint="j" dyntype="user"/><motor name="b" joint="j"/></actuator>'
    with pytest.raises(ag.ModelError, match=r"activation dynamics 'user' \('a'\): keeps its place in u"):
        ag.load(mjcf(ARM, motors))
    model = ag.load(mjcf(ARM, motors), strict=False)
    assert model.actuators == ("a", "b")
    sim = ag.Simulator(model)
    still, pushed, other = (sim.forward_dynamics(sim.reset(), u) for u in ([0.0, 0.0], [0.0, 1.0], [1.0, 0.0]))
    assert (other == still).all() and (pushed != still).all()


def test_actuators_with_several_controls_keep_their_places():
    ball = '<body pos="1 0 0"><joint name="b" type="ball"/><geom size=".1" pos=".2 0 0"/></body>'
    motors = '<orientation name="o" joint="b" input="quat"/><pid name="p" joint="j" ki="1"/><motor joint="j" gear="7"/>'
    text = mjcf(
        ARM + ball, f"<actuator>{motors}</actuator>" + '<keyframe><key name="home" ctrl="1 0 0 0 .1 .2 .3"/></keyframe>'
    )
    model = ag.load(text, strict=False)
    assert model.actuators[:6] == ("o", "o:1", "o:2", "o:3", "p", "p:1") and model.params.gear.tolist() == [0] * 6 + [7]
    assert model.keyframe_control("home").tolist() == [1, 0, 0, 0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    "motor",
    [
        '<pid joint="j" kp="5" kv="2" gear="2"/><pid joint="j" kp="3" kv="1" input="vel" forcerange="-.5 .5"/>',
        '<dcmotor joint="j" nominal="12 3 20" saturation="1 0 0" gear="3"/><motor joint="j"/>'
        '<dcmotor joint="j" motorconst=".5 .4" resistance="2" input="pos vel ff" controller="7 0 .3 0 0 0"/>',
    ],
)
def test_controllers_and_motors_without_states(motor):
    text = mjcf(ARM, f'<actuator>{motor}</actuator><option integrator="implicitfast"/>')
    m, sim = mujoco.MjModel.from_xml_string(text), ag.Simulator(agrees(text))
    d, rng = mujoco.MjData(m), np.random.default_rng(1)
    d.qvel[:], d.ctrl[:] = 0.3, rng.normal(size=m.nu)
    after = sim.step(ag.State(d.qpos.copy(), d.qvel.copy()), d.ctrl)
    mujoco.mj_step(m, d)
    np.testing.assert_allclose(after.v, d.qvel, atol=1e-10)


def test_options_and_keyframes():
    key = '<keyframe><key name="home" qpos="0.3" qvel="0.1"/><key qpos="0.4"/></keyframe>'
    model = ag.load(mjcf(ARM, '<option timestep="0.004" gravity="1 2 3" integrator="RK4" cone="elliptic"/>' + key))
    sim = ag.Simulator(model)
    assert (sim.options.dt, sim.options.integrator, sim.options.cone) == (0.004, "rk4", "elliptic")
    assert (model.params.gravity == [1, 2, 3]).all()
    assert sim.reset().q == [0.3] and sim.reset("key1").q == [0.4] and sim.reset("reference").q == [0.7]
    assert ag.Simulator(model, dt=1e-3, integrator="euler").options.dt == 1e-3
    for name in ("Euler", "implicit", "implicitfast", "RK4"):
        limited = ag.load(mjcf(ARM.replace('ref="0.7"', 'range="-1 1"'), f'<option integrator="{name}"/>'))
        assert limited.options.integrator == name.lower() and not limited.notes


UNSUPPORTED = {
    "override of friction with different": '<option o_friction="1 2 0 0 0"><flag override="enable"/></option>',
    "integrator discrete": '<option integrator="discrete"/>',
    "one point for each pair of shapes (flag multiccd)": '<option><flag multiccd="disable"/></option>',
    "another method of constraints": '<option><flag diagexact="enable"/></option>',
    "sensor 'rangefinder' of normals": '<sensor><rangefinder site="tip" data="normal"/></sensor>',
    "sensor 'rangefinder' with a delay or an interval": '<sensor><rangefinder site="tip" delay=".01" nsample="5"/></sensor>',
    "armature of a tendon along": '<tendon><spatial armature="3"><site site="tip"/><site site="base"/></spatial></tendon>',
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_unsimulated_features_are_reported(what):
    text = mjcf(ARM + '<site name="base"/>', UNSUPPORTED[what])
    with pytest.raises(ag.ModelError, match="strict=False") as raised:
        ag.load(text)
    assert what in str(raised.value)
    (finding,) = ag.load(text, strict=False).unsupported
    assert finding.what.startswith(what)


def test_armature_of_a_tendon_between_branches():
    finger = '<body pos="{0} 0 0"><joint name="{1}" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>'
    hand = f'<body><joint/><geom size=".1"/>{finger.format(0.3, "a")}{finger.format(-0.3, "b")}</body>'
    split = '<tendon><fixed armature="3"><joint joint="a" coef=".5"/><joint joint="b" coef="-.7"/></fixed></tendon>'
    agrees(mjcf(hand, split))


def test_override_of_contact_parameters():
    numbers = {
        "o_margin": ".03",
        "o_solref": ".03 1.2",
        "o_solimp": ".8 .9 .01 .4 3",
        "o_friction": ".3 .3 .02 .004 .004",
    }
    option = " ".join(f'{key}="{value}"' for key, value in numbers.items())
    ball = '<body pos="{} 0 .12"><freejoint/><geom name="{}" size=".1" condim="6" margin=".002" solref=".1 1"/></body>'
    text = mjcf(
        '<geom name="floor" type="plane" size="5 5 1" priority="1" condim="4"/>'
        + ball.format(0, "a")
        + ball.format(1, "b"),
        f'<option {option}><flag override="enable"/></option>'
        '<contact><pair geom1="floor" geom2="b" margin=".1" solreffriction=".2 1" condim="6"/></contact>',
    )
    m, sim = mujoco.MjModel.from_xml_string(text), ag.Simulator(ag.load(text))
    d = mujoco.MjData(m)
    d.qvel[:] = np.random.default_rng(0).normal(size=12)
    after = sim.step(ag.State(d.qpos.copy(), d.qvel.copy()))
    mujoco.mj_step(m, d)
    assert d.ncon == 2
    np.testing.assert_allclose(after.v, d.qvel, atol=1e-9)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ('<body><joint stiffness="2" springyield="1"/><geom size="1"/></body>', "spring that yields"),
    ],
)
def test_unsimulated_parts_are_reported(body, what):
    assert [finding.what for finding in ag.load(mjcf(body), strict=False).unsupported] == [what]


# -- contact ---------------------------------------------------------------------------------------------------------------
def pairs(model):
    names = model.shapes.names
    return {frozenset((names[a], names[b])) for a, b in model.shapes.pairs}


@pytest.mark.parametrize("option", ["", '<option><flag filterparent="disable"/></option>'])
def test_pairs_are_mujocos(option):
    """Masks, parents (over several joints, over welds), exclusions and explicit pairs: all candidate pairs touch in MuJoCo."""

    def body(name, inner="", joints="<joint/>", geom=""):
        return f'<body name="{name}" pos="0 0 0.01">{joints}<geom name="{name}" size="1" {geom}/>{inner}</body>'

    two = '<joint axis="1 0 0"/><joint axis="0 1 0"/>'
    tree = body(
        "a", body("b", body("c", body("d", body("e", geom='contype="2" conaffinity="4"')), joints=""), joints=two)
    )
    other = body("f", body("g", joints=two), joints=two) + body("h", geom='contype="0" conaffinity="0"')
    floor = '<geom name="floor" type="plane" size="1 1 1" contype="4" conaffinity="3"/>'
    contact = '<contact><exclude body1="a" body2="f"/><pair geom1="a" geom2="h"/></contact>'
    text = mjcf(floor + tree + other, contact + option)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    touching = {frozenset((m.geom(c.geom1).name, m.geom(c.geom2).name)) for c in d.contact}
    model = ag.load(text)
    assert pairs(model) == pairs(ag.edit(model).build()) == pairs(ag.load(ag.spec(model))) == touching


def test_friction_and_dimension():
    floor = '<geom name="floor" type="plane" size="1 1 1" friction="0.8"/>'
    smooth = '<body><freejoint/><geom name="{}" size="0.1" condim="1" friction="0.8"/></body>'
    model = ag.load(mjcf(floor + smooth.format("a") + smooth.format("b")))
    assert model.shapes.names == ("floor", "a", "b") and list(model.shapes.condim) == [3, 1, 1]
    assert {model.shapes.pair_condim(*pair) for pair in model.shapes.pairs} == {1, 3}


def test_a_mesh_touches_with_its_corners():
    corners = np.array([[x, y, z] for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.3, 0.3)])
    mesh = f'<asset><mesh name="block" vertex="{" ".join(map(str, corners.ravel()))}"/></asset>'
    floor = '<geom type="plane" size="1 1 1"/>'
    model = ag.load(mjcf(f'{floor}<body pos="0 0 1"><freejoint/><geom type="mesh" mesh="block"/></body>', mesh))
    assert len(model.params.vertex) == 8 and model.visuals[1].kind == "mesh"
    sim = ag.Simulator(model, dt=1e-3)
    assert sim.rollout(sim.reset(), steps=1500).final.q[2] == pytest.approx(0.3, abs=1e-3)


def test_a_mesh_keeps_all_corners_of_its_hull():
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(300, 3))
    ball *= 0.1 / np.linalg.norm(ball, axis=1, keepdims=True)
    mesh = f'<asset><mesh name="ball" vertex="{" ".join(map(str, ball.ravel()))}"/></asset>'
    text = mjcf('<geom type="plane" size="1 1 1"/><body><freejoint/><geom type="mesh" mesh="ball"/></body>', mesh)
    model = ag.load(text)
    own = hull_of(model.params.vertex)
    assert len(model.params.vertex) == 300 and not model.notes
    assert [set(x) for x in model.shapes.hulls[1].neighbors] == [set(x) for x in own.neighbors]


# -- what only URDF has --------------------------------------------------------------------------------------------------------


def test_urdf():
    text = urdf(link("base"), link("arm"), joints=joint("j", "base", "arm", '<dynamics damping="0.3" friction="0.2"/>'))
    model = ag.load(text)
    assert (model.name, model.nq, model.nu) == ("r", 1, 0)
    assert (model.params.damping[1], model.params.dry_friction[1]) == (0.3, 0.2)
    assert (model.params.limit[1] == [-1, 1]).all()
    free = ag.load(text, floating=True, motors=True)
    assert (free.nq, free.nv, free.nu) == (8, 7, 1)
    assert (free.params.force_range == [-5, 5]).all() and (free.params.control_range == [-5, 5]).all()
    servo = ag.load(text, motors="position", gains=(30.0, 2.0))
    assert (servo.params.control_range == [-1, 1]).all() and (servo.params.force_range == [-5, 5]).all()
    assert ag.Simulator(servo).forward_dynamics(servo.keyframe(), [0.1]) > 0
    assert ag.load(text, motors="velocity", gains=(0.0, 2.0)).params.gain == [2.0]
    motor = ag.load(text, motors="servo", gains=30.0)
    assert (motor.servos, motor.params.gain, motor.params.max_velocity) == ((0,), [30.0], [3.0]) and not motor.notes
    assert (motor.params.control_range == [-1, 1]).all() and (motor.params.force_range == [-5, 5]).all()
    assert "limit of velocity" in str(ag.load(text, motors=True).notes)
    for wrong in (
        {"motors": "hope"},
        {"motors": "servo"},
        {"motors": "position"},
        {"motors": True, "gains": (1.0, 1.0)},
    ):
        with pytest.raises(ag.InputError, match=r"motors"):
            ag.load(text, **wrong)


def test_mimic_joints_follow():
    joints = joint("i", "a", "b") + joint("j", "b", "c", '<mimic joint="i" multiplier="-2" offset="0.1"/>')
    model = ag.load(urdf(link("a"), link("b"), link("c"), joints=joints))
    assert [e.kind for e in model.equalities] == ["joint"]
    final = ag.Simulator(model).rollout(model.keyframe(), steps=2000).final
    assert final.q[1] == pytest.approx(0.1 - 2 * final.q[0], abs=2e-2)


def test_mimic_joints_without_a_source_are_reported():
    text = urdf(link("a"), link("b"), joints=joint("j", "a", "b", '<mimic joint="i"/>'))
    with pytest.raises(ag.ModelError, match=r"joint 'j' mimics 'i', which is no other joint"):
        ag.load(text)
    assert ag.load(text, strict=False).nv == 1


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.mark.parametrize("file", ["meshes/part.obj", "package://robot/meshes/part.obj", "file://{}/meshes/part.obj"])
def test_meshes_are_found(tmp_path, file):
    folder = tmp_path / "robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "meshes" / "part.obj").write_text(TETRAHEDRON)
    geometry = f'<geometry><mesh filename="{file.format(folder)}"/></geometry>'
    path = folder / ("r.urdf" if file.startswith("meshes") else "urdf/r.urdf")
    path.write_text(urdf(link("a", f"<visual>{geometry}</visual><collision>{geometry}</collision>")))
    model = ag.load(path, floating=True)
    assert [v.kind for v in model.visuals] == ["mesh"] and len(model.params.vertex) == 4


def test_an_obj_file_of_several_objects_is_read_whole(tmp_path):
    second = TETRAHEDRON.replace("v ", "v 2").replace(
        "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4", "f 5 7 6\nf 5 6 8\nf 5 8 7\nf 6 7 8"
    )
    (tmp_path / "two.obj").write_text(f"o one\n{TETRAHEDRON}o two\n{second}")
    geometry = '<geometry><mesh filename="two.obj"/></geometry>'
    (tmp_path / "r.urdf").write_text(urdf(link("a", f"<visual>{geometry}</visual>")))
    (look,) = ag.load(tmp_path / "r.urdf", floating=True).visuals
    assert look.mesh is not None and len(look.mesh[0]) == 8 and len(look.mesh[1]) == 8


def test_missing_meshes():
    geometry = '<geometry><mesh filename="package://x/gone.stl"/></geometry>'
    model = ag.load(urdf(link("a", f"<visual>{geometry}</visual>")), floating=True)
    assert any("not drawn" in str(note) for note in model.notes)
    text = urdf(link("a", f"<collision>{geometry}</collision>"))
    with pytest.raises(ag.ModelError, match=r"gone.stl' \(not found\) of 'a'"):
        ag.load(text, floating=True)
    assert len(ag.load(text, floating=True, strict=False).unsupported) == 1


def test_error_of_a_template_has_the_remedy():
    text = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="m"/><link name="a"/></robot>'
    with pytest.raises(ag.ModelError, match="run `xacro"):
        ag.load(text)


def test_error_of_a_link_without_mass_names_the_source_of_its_mass():
    ball = '<link name="ball"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>'
    model = ag.load(urdf(link("base"), ball, joints=joint("j", "base", "ball")))
    assert model.params.mass[1] == pytest.approx(1000 * 4 / 3 * np.pi * 0.1**3, rel=1e-6)
    (note,) = (n for n in model.notes if "<inertial>" in n.what)
    assert note.where == ("ball",) and "1000 kg/m3" in note.effect


def test_floating_needs_a_base():
    with pytest.raises(ag.ModelError, match="has joints to the world already"):
        ag.load(mjcf(ARM), floating=True)
    with pytest.raises(ag.ModelError, match="2 bodies on the world"):
        ag.load(mjcf(ARM + f"<body>{BALL}</body>"), floating=True)


# -- scenes --------------------------------------------------------------------------------------------------------------------
def test_loaded_robots_keep_everything_in_a_scene():
    two = '<joint name="i" axis="1 0 0"/><joint name="j" axis="0 1 0"/>'
    child = f'<body name="b">{two}<geom size="0.1"/></body>'
    body = f'<body name="a" pos="0 0 1"><freejoint/><geom size="0.1"/><site name="s"/>{child}</body>'
    rest = '<sensor><gyro name="gyro" site="s"/></sensor>'
    rest += '<actuator><motor joint="i"/><general joint="j" dyntype="user"/></actuator>'
    robot = ag.load(mjcf(body, rest), strict=False)
    assert not robot.shapes.pairs  # parent and child, over two joints
    model = ag.scene([robot, robot], floor=False)
    assert {frozenset(n.split("/")[0] for n in pair) for pair in pairs(model)} == {frozenset("01")}
    assert [s.name for s in model.sensors] == ["0/gyro", "1/gyro"] and len(model.visuals) == 4 and model.nu == 4
    assert [f.where for f in model.unsupported] == [("0/j",), ("1/j",)]


def test_damping_and_armature_of_actuators():
    """They are added to those of the target of the actuator."""
    more = """<tendon><fixed name="t" damping=".3"><joint joint="j" coef="2"/></fixed></tendon>
      <actuator><motor joint="j" gear="2" armature=".5" damping=".7 .3 .2"/><motor joint="j" damping=".1"/>
      <motor tendon="t" gear="3" damping=".2"/></actuator>"""
    model = agrees(mjcf(ARM, more))
    assert model.params.joint("j").damping == pytest.approx(0.7 * 4 + 0.1)
    assert model.params.tendon_damping[0] == pytest.approx(0.3 + 0.2 * 9)


def test_negative_damping_and_stiffness():
    text = """<mujoco><worldbody><body><joint axis="0 1 0" damping="-0.1" stiffness="-2"/><geom size="0.1" pos="0 0 0.3"/>
    <body pos="0 0 0.5"><joint axis="1 0 0" damping="0.2"/><geom size="0.1" pos="0 0 0.3"/></body></body>
    </worldbody></mujoco>"""
    model, m = ag.load(text), mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = (0.3, 0.1), (0.7, 0.4)
    traj = ag.Simulator(model).rollout(ag.State(d.qpos.copy(), d.qvel.copy()), steps=50)
    mujoco.mj_step(m, d, nstep=50)
    np.testing.assert_allclose([*traj.final.q, *traj.final.v], [*d.qpos, *d.qvel], rtol=1e-11)
