"""Parts of models that files hold in another way than models: each is written so that it moves and reads as before."""

import mujoco
import numpy as np
import pytest

import artigrad as ag

BODY = {"mass": 1.0, "inertia": (0.02, 0.03, 0.02), "com": (0.01, 0.02, 0.0)}
CORNERS = 0.1 * np.random.default_rng(0).normal(size=(10, 3))
BELT = (0.3, -0.2, 0.1, 0.5, 1.0, -0.7)


def back(model, folder):
    ag.save(model, folder / "saved.xml")
    return ag.load(folder / "saved.xml"), mujoco.MjModel.from_xml_path(str(folder / "saved.xml"))


def builder():
    b = ag.ModelBuilder("m")
    b.add_body("a", joint="free", **BODY)
    return b


def check_steps(model, again, m, steps=3, rtol=1e-12):
    """The saved model, the loaded one, and MuJoCo's, after some steps."""
    sims = [ag.Simulator(x, backend="numpy") for x in (model, again)]
    v = np.linspace(0.3, -0.4, model.nv)
    one, other = (sim.rollout(ag.State(sim.reset().q, v), steps=steps).final for sim in sims)
    assert np.abs(one.v - v).max() > 1e-3
    np.testing.assert_allclose(other.v, one.v, rtol=rtol, atol=rtol)
    d = mujoco.MjData(m)
    d.qvel[:] = v
    m.opt.tolerance = 0
    for _ in range(steps):
        mujoco.mj_step(m, d)
    np.testing.assert_allclose(d.qvel, one.v, rtol=1e-5, atol=1e-5)  # it keeps meshes and heights in single precision


def test_a_mesh_keeps_its_surface_velocity(tmp_path):
    """MuJoCo moves a mesh into its principal axes, and the velocity of its surface with it."""
    b = builder()
    b.add_convex_hull(
        "a", CORNERS, name="tool", position=(0.1, 0, 0), rotation=(1, 0.2, 0.3, 0.1), surface_velocity=BELT
    )
    b.add_plane(position=(0, 0, -0.15))
    model = b.build()
    again, m = back(model, tmp_path)
    np.testing.assert_allclose(again.params.surface_velocity, model.params.surface_velocity[[1, 0]], atol=1e-13)
    check_steps(model, again, m)


def test_a_height_field_keeps_heights_and_surface_velocity(tmp_path):
    """A file has it begin at zero, in single precision."""
    b = builder()
    b.add_sphere("a", 0.2, position=(0.05, 0.02, 0))
    heights = 0.03 * np.random.default_rng(1).normal(size=(5, 6)) - 0.15
    b.add_height_field("world", heights, (0.5, 0.4), 0.5, rotation=(1, 0.05, 0.1, 0.2), surface_velocity=BELT)
    model = b.build()
    again, m = back(model, tmp_path)
    check_steps(model, again, m)
    twice, _ = back(again, tmp_path)
    assert np.array_equal(twice.params.height, again.params.height)


def test_rays_pass_through_what_tendons_wrap_around(tmp_path):
    b = builder()
    for name, z in (("eye", 1.0), ("center", 0.5), ("low", -0.5)):
        b.add_site(name, "world", position=(0, 0, z))
    b.add_site("tip", "a", position=(0.3, 0, 0))
    b.add_spatial_tendon("line", ["low", ("sphere", "center", 0.2), "tip"], stiffness=5.0)
    b.add_sphere("a", 0.1)
    b.add_body("eyes", position=(0, 0, 1.0), rotation=(0, 1, 0, 0))
    b.add_site("down", "eyes")
    b.add_sensor("far", "rangefinder", "down")
    model = b.build()
    again, m = back(model, tmp_path)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    for x in (model, again):
        sim = ag.Simulator(x, backend="numpy")
        np.testing.assert_allclose(sim.sensors(sim.reset())["far"], 0.9, rtol=1e-12)
    np.testing.assert_allclose(d.sensordata, 0.9, rtol=1e-12)


def test_ends_of_an_equality_are_saved_twice(tmp_path):
    """They become sites, which the loaded model has, and so do shapes that tendons wrap around."""
    b = builder()
    b.add_body("b", "world", joint="spherical", position=(0.3, 0, 0), **BODY)
    b.add_connect("a", "b", anchor=(0.1, 0, 0), other_anchor=(0, 0.2, 0), name="held")
    for name, body in (("one", "a"), ("held:1", "b"), ("around", "b")):
        b.add_site(name, body, position=(0.1, 0.1, 0.3))
    b.add_sphere("b", 0.05, name="around:sphere:0.02")
    b.add_spatial_tendon("line", ["one", ("sphere", "around", 0.02), "held:1"], stiffness=1.0)
    model = b.build()
    once, m = back(model, tmp_path)
    check_steps(model, once, m)
    twice, _ = back(once, tmp_path)
    assert once.sites == twice.sites and once.shapes.names == twice.shapes.names
    check_steps(once, twice, m)


def test_a_massless_body_keeps_its_inverse_weight(tmp_path):
    """Without an inertial element MuJoCo takes it elsewhere than at the body's frame."""
    b = ag.ModelBuilder("m")
    b.add_body("arm", joint="revolute", axis=(0, 1, 0), **BODY)
    b.add_body("tip", "arm", position=(0.4, 0, 0.1))
    b.add_sphere("tip", 0.1, position=(0.05, 0, 0))
    b.add_plane(position=(0, 0, 0.02))
    model = b.build()
    again, m = back(model, tmp_path)
    np.testing.assert_allclose(again.params.body_invweight0, model.params.body_invweight0, rtol=1e-12)
    check_steps(model, again, m)


def test_cameras_have_unit_quaternions(tmp_path):
    b = builder()
    b.add_camera("eye", "a", rotation=(1, 2, 3, 4))
    model = b.build()
    np.testing.assert_allclose(model.cameras[0].quaternion, np.array([1, 2, 3, 4]) / 30**0.5)
    again = back(model, tmp_path)[0].cameras[0]
    np.testing.assert_allclose(again.quaternion, model.cameras[0].quaternion, rtol=1e-14)


def ellipsoid(*virtual, box=(0.0, 0.0, 0.0)):
    b = ag.ModelBuilder("m")
    b.set_fluid(density=100.0)
    b.add_body("a", joint="free", fluid_box=box, **BODY)
    b.add_ellipsoid("a", (0.1, 0.2, 0.3), fluid=((0.5, 0.25, 1.5, 1.0, 1.0), *virtual))
    return b.build()


def moving_plane(shape):
    b = builder()
    if shape:
        b.add_plane("a", name="tray")
    else:
        b.add_visual("a", "plane", size=(0.1, 0.1))
    return b.build()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ellipsoid((1, 1, 1), (1, 1, 1)), "virtual mass other than that of the ellipsoid"),
        (lambda: ellipsoid((1, 1, 1), (1, 1, 1), box=(1, 1, 1)), "fluid box of a body whose shapes are ellipsoids"),
        (lambda: moving_plane(True), "plane on a body that moves .'tray'"),
        (lambda: moving_plane(False), "visual plane on a body that moves .'a'"),
    ],
)
def test_features_without_mujoco_counterpart_are_listed(make, message, tmp_path):
    model = make()
    with pytest.raises(ag.ModelError, match=message):
        ag.save(model, tmp_path / "m.xml")


def test_bodies_at_rest_in_a_fluid_are_saved(tmp_path):
    """Box and ellipsoids of a body that is fixed to the world have no effect."""
    text = """<mujoco><option density="10"/><worldbody><body name="rock"><geom size=".1" fluidshape="ellipsoid"/></body>
    <body pos="0 0 1"><freejoint/><geom name="fish" type="ellipsoid" size=".1 .2 .3" fluidshape="ellipsoid"/></body>
    </worldbody></mujoco>"""
    again, m = back(ag.load(text), tmp_path)
    check_steps(ag.load(text), again, m)


def test_a_second_pair_of_two_geoms_is_reported():
    """MuJoCo has the contacts of both."""
    pair = '<pair geom1="f" geom2="g"/><pair geom1="g" geom2="f" solref=".1 1"/>'
    text = f"""<mujoco><worldbody><geom name="f" type="plane" size="1 1 1"/><body><freejoint/><geom name="g" size=".1"/>
    </body></worldbody><contact>{pair}</contact></mujoco>"""
    with pytest.raises(ag.ModelError, match="second explicit pair of two geoms"):
        ag.load(text)
    assert len(ag.load(text, strict=False).shapes.included) == 1


def test_an_equality_within_one_body_is_noted():
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/><body name="b" pos=".1 0 0"/></body>
    </worldbody><equality><connect name="held" body1="a" body2="b" anchor=".3 0 0"/></equality></mujoco>"""
    model = ag.edit(ag.load(text)).build()
    assert [(note.what, note.where) for note in model.notes] == [("equality within one rigid body", ("held",))]


def test_tendons_inside_shapes_are_saved_again(tmp_path):
    """MuJoCo finds their inverse weights by iteration."""
    b = builder()
    for name, place in (("low", (0.1, 0.02, -0.3)), ("around", (0, 0.01, 0)), ("side", (0.01, 0.02, 0.01))):
        b.add_site(name, "world", position=place, rotation=(1, 0.2, 0.1, 0.3))
    b.add_site("tip", "a", position=(0.12, 0.03, 0.25))
    b.add_spatial_tendon("line", ["low", ("cylinder", "around", 0.07, "side"), "tip"], limit=(0, 0.1))
    model = b.build()
    once, _ = back(model, tmp_path)
    twice, _ = back(once, tmp_path)
    np.testing.assert_allclose(twice.params.tendon_invweight0, model.params.tendon_invweight0, rtol=1e-6)


def test_a_body_that_only_adds_a_joint_is_kept_where_it_is_named(tmp_path):
    b = ag.ModelBuilder("m")
    b.add_body("a", joint="revolute", axis=(0, 1, 0), **BODY)
    for name in ("welded", "felt", "pulled", "plain"):
        b.add_universal(name, "a", **BODY)
        b.add_sphere(name, 0.1, name=name, position=(0, 0, 0.2))
    b.add_weld("welded:1", "world", anchor=(0.1, 0, 0))
    b.add_sensor("touch", "contact", between=(("subtree", "felt:1"), ("", "")))
    b.add_actuator("glue", body="pulled:1")
    b.add_exclude("plain:1", "a")
    model = b.build()
    again, _ = back(model, tmp_path)
    assert {"welded:1", "felt:1", "pulled:1"} <= set(again.bodies) and again.nv == model.nv
    assert again.sensors[0].between[0].which == again.body("felt:1")


def test_names_that_no_file_can_hold_are_refused():
    b = builder()
    for name in ("a\0b", "\x07", "\ud800"):
        with pytest.raises(ag.ModelError, match="has a character that no file can hold"):
            b.add_site(name, "a")


def test_names_of_new_shapes_are_free_after_a_removal():
    b = ag.edit(moving_plane(True))
    first, second = b.add_sphere("a", 0.1), b.add_sphere("a", 0.1)
    b.remove("shape", first)
    assert b.add_sphere("a", 0.1) not in ("tray", second)


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("gravity", [0, 0, -np.inf], "params.gravity.2. is -inf; it must be finite"),
        ("mass", [np.nan], "params.mass.0. is nan; it must be finite"),
        ("shape_size", [[0.0, 0.0, 0.0]], "params.shape_size"),
    ],
)
def test_parameters_that_cannot_be_simulated_are_not_saved(name, value, message, tmp_path):
    b = builder()
    b.add_sphere("a", 0.1)
    model = b.build()
    with pytest.raises(ag.InputError, match=message):
        ag.save(model, tmp_path / "m.xml", params=model.params.replace(**{name: value}))
    assert not (tmp_path / "m.xml").exists()
