"""Bad models get an error that names the part and the rule."""

import numpy as np
import pytest

import artigrad as ag


def builder():
    b = ag.ModelBuilder("bad")
    b.add_body("base", joint="revolute", mass=1.0, inertia=(1, 1, 1))
    return b


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mass": -1.0}, "mass of body 'arm' is -1; it cannot be negative"),
        ({"mass": float("nan")}, "mass of body 'arm' is nan"),
        ({"mass": "heavy"}, "mass of body 'arm' must be a number"),
        ({"mass": 1.0, "inertia": (1.0, 1.0, 3.0)}, "inertia of body 'arm' .* larger than the sum"),
        ({"mass": 1.0, "inertia": (-1.0, 1.0, 1.0)}, "negative principal moment"),
        ({"mass": 1.0, "inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, "not symmetric"),
        ({"mass": 1.0, "inertia": (1, 2)}, "six numbers"),
        ({"inertia": (1.0, 1.0, 1.0)}, "an inertia but no mass"),
        ({"mass": 1.0, "joint": "revolute", "axis": (0, 0, 0)}, "axis of joint 'arm' is zero"),
        ({"mass": 1.0, "joint": "revolute", "axis": (0, 0)}, "3 numbers"),
        ({"mass": 1.0, "rotation": (0, 0, 0, 0)}, "zero quaternion"),
        ({"mass": 1.0, "position": (0, np.inf, 0)}, "position of body 'arm'"),
        ({"mass": 1.0, "com": (0, np.nan, 0)}, "com of body 'arm'"),
        ({"mass": 1.0, "joint": "hinge"}, "one of fixed, revolute"),
        ({"mass": 1.0, "joint": "free"}, "a free joint connects to the world"),
        ({"mass": 1.0, "damping": -0.1}, "damping of body 'arm'"),
        ({"mass": 1.0, "joint_name": "base"}, "two joints are named 'base'"),
        ({"mass": 1.0, "parent": "ghost"}, "hangs on 'ghost', which is not there yet"),
        ({"mass": 1.0, "parent": "arm"}, "hangs on 'arm', which is not there yet"),  # a cycle
    ],
)
def test_bad_bodies(arguments, message):
    arguments = {"parent": "base"} | arguments
    with pytest.raises(ag.ModelError, match=message):
        builder().add_body("arm", arguments.pop("parent"), **arguments)


def test_duplicate_and_reserved_names():
    b = builder()
    with pytest.raises(ag.ModelError, match="'base'"):
        b.add_body("base")
    with pytest.raises(ag.ModelError, match="'world'"):
        b.add_body("world")
    with pytest.raises(ag.ModelError, match="is a text"):
        b.add_body("")
    b.add_site("s", "base")
    with pytest.raises(ag.ModelError, match="'s'"):
        b.add_site("s", "base")


def test_bad_actuators_and_sites():
    b = builder()
    b.add_body("ball", "base", joint="spherical", mass=1.0)
    with pytest.raises(ag.ModelError, match="joint 'knee', which does not exist; there are: base, ball"):
        b.add_motor("m", "knee")
    with pytest.raises(ag.ModelError, match="must be 3 numbers"):
        b.add_motor("m", "ball")
    with pytest.raises(ag.ModelError, match="lowest, highest"):
        b.add_motor("m", "base", control_range=(1, -1))
    with pytest.raises(ag.ModelError, match="max_velocity needs damping"):
        b.add_position_servo("m", "base", gain=1.0, max_velocity=1.0)
    with pytest.raises(ag.ModelError, match="max_velocity needs damping"):
        b.add_actuator("m", "base", max_velocity=5.0)
    with pytest.raises(ag.ModelError, match="force, position, velocity, servo, speed; not 'push'"):
        b.add_actuator("m", "base", kind="push")
    with pytest.raises(ag.ModelError, match="kind is a str, not 7"):
        b.add_actuator("m", "base", kind=7)
    with pytest.raises(ag.ModelError, match="must be a number"):
        b.add_motor("m", "base", max_force="much")
    with pytest.raises(ag.ModelError, match="must be positive"):
        b.add_velocity_servo("m", "base", gain=1.0, max_velocity=0.0)
    with pytest.raises(ag.ModelError, match="body 'ghost'"):
        b.add_site("s", "ghost")


def test_parts_that_no_file_can_hold():
    b = ag.ModelBuilder("m")
    b.add_body("a", joint="revolute", mass=1.0, inertia=(1, 1, 1))
    b.add_site("s", "a")
    b.add_site("t", "world")
    for path in (["s", "s"], ["t", "s", ("sphere", "t", 0.1), "s"]):
        with pytest.raises(ag.ModelError, match="site 's' follows itself"):
            b.add_spatial_tendon("line", path)
    b.add_spatial_tendon("line", ["s", "t", "s", 2.0, "s", "t"])
    for kind in ("framequat", "framexaxis", "contact"):
        with pytest.raises(ag.ModelError, match=f"a cutoff does not bound readings of a {kind}"):
            b.add_sensor("turn", kind, "" if kind == "contact" else "s", cutoff=1.0)
    b.add_sphere("a", 0.1, name="ball")
    b.add_plane(name="floor")
    b.add_pair("ball", "floor")
    with pytest.raises(ag.ModelError, match="pair of 'floor' and 'ball' is included already"):
        b.add_pair("floor", "ball", condim=1)


def test_massless_tips_and_empty_models():
    with pytest.raises(ag.ModelError, match="no bodies"):
        ag.ModelBuilder("empty").build()
    for joint in ("revolute", "spherical"):  # a point mass on the axis
        b = builder()
        b.add_body("point", "base", joint=joint, mass=1.0)
        with pytest.raises(ag.ModelError, match="joint 'point' can move without moving mass"):
            b.build()
    b = builder()
    b.add_body("tip", "base", joint="revolute")
    with pytest.raises(ag.ModelError, match="joint 'tip' can move without moving mass"):
        b.build()
    b = ag.ModelBuilder("rail")  # it slides back below its cart
    b.add_body("rail", joint="prismatic", axis=(1, 0, 0))
    b.add_body("cart", "rail", joint="prismatic", axis=(1, 0, 0), mass=1.0, inertia=(1, 1, 1))
    with pytest.raises(ag.ModelError, match="joint 'rail' and those it carries can move together without moving mass"):
        b.build()


def test_keyframes():
    b = builder()
    b.add_keyframe("home", q=[0.5])
    b.add_keyframe("wrong", q=[0.5, 1.0])
    with pytest.raises(ag.ModelError, match="q of keyframe 'wrong' must be 1 numbers"):
        b.build()


def test_universal_and_planar_joints_by_chaining():
    """Massless bodies between: a universal joint is two axes, a planar one two slides and a turn."""
    b = ag.ModelBuilder("chained")
    b.add_body("yoke", joint="revolute", axis=(1, 0, 0))
    b.add_body("rod", "yoke", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
    b.add_body("x", joint="prismatic", axis=(1, 0, 0))
    b.add_body("y", "x", joint="prismatic", axis=(0, 1, 0))
    b.add_body("disc", "y", joint="revolute", axis=(0, 0, 1), mass=2.0, inertia=(0.1, 0.1, 0.2))
    model = b.build()
    assert model.nv == 5
    ag.gradcheck(model, tolerance=1e-6, show=False)
    M = ag.Simulator(model).mass_matrix(ag.State(np.zeros(5), np.zeros(5)))
    np.testing.assert_allclose(M[2:, 2:], np.diag([2.0, 2.0, 0.2]), atol=1e-14)


def test_fixed_bodies_are_part_of_their_link():
    """A body welded on, and the same mass merged by hand, move alike."""
    welded, merged = ag.ModelBuilder("welded"), ag.ModelBuilder("merged")
    for b in (welded, merged):
        b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    welded.add_body("bob", "rod", mass=2.0, position=(0, 0, -1.0), rotation=(1, 1, 0, 0), com=(0.1, 0, 0))
    merged.add_body("bob", "rod", joint="fixed", mass=2.0, position=(0.1, 0, -1.0))
    states = [ag.Simulator(m.build()).rollout(ag.State([0.3], [0.1]), steps=100).final for m in (welded, merged)]
    np.testing.assert_allclose(states[0].q, states[1].q, rtol=1e-12)


# -- shapes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda b: b.add_sphere("base", -1.0), "lengths of a sphere are positive"),
        (lambda b: b.add_box("base", (1, 1, 0)), "lengths of a box are positive"),
        (lambda b: b.add_box("base", (1, 1)), "3 numbers"),
        (lambda b: b.add_sphere("ghost", 1.0), "body 'ghost', which does not exist"),
        (lambda b: b.add_sphere("base", 1.0, friction=-1), "friction of shape .* cannot be negative"),
        (lambda b: b.add_sphere("base", 1.0, restitution=1.5), "between 0 and 1"),
        (lambda b: b.add_convex_hull("base", []), "n at least 1"),
        (lambda b: (b.add_sphere("base", 1.0, name="s"), b.add_sphere("base", 1.0, name="s")), "'s'"),
        (lambda b: b.add_exclude("base", "ghost"), "'ghost' does not exist"),
        (lambda b: b.add_pair("a", "b"), "shape 'a' does not exist"),
        (lambda b: b.add_body("ball", joint="spherical", mass=1.0, limit=(-1, 1)), r"\(0, largest angle\)"),
    ],
)
def test_bad_shapes(add, message):
    with pytest.raises(ag.ModelError, match=message):
        add(builder())


def chain_of_spheres():
    b = ag.ModelBuilder("filters")
    for k, parent in (("a", "world"), ("b", "a"), ("c", "b"), ("d", "c")):
        b.add_body(k, parent, joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    return b


def touching(b):
    model = b.build()
    names = model.shapes.names
    return {frozenset((names[i], names[j])) for i, j in model.shapes.pairs}


def test_filters():
    b = chain_of_spheres()
    for k in "abcd":
        b.add_sphere(k, 0.1, name=k)
    assert touching(b) == {frozenset(p) for p in ("ac", "ad", "bd")}  # not with a parent
    b.add_exclude("a", "d")
    b.add_pair("a", "b")
    assert touching(b) == {frozenset(p) for p in ("ac", "bd", "ab")}
    b = chain_of_spheres()
    for k, group, touches in (("a", 1, 2), ("c", 2, 4), ("d", 4, 1)):
        b.add_sphere(k, 0.1, name=k, group=group, touches=touches)
    assert touching(b) == {frozenset(p) for p in ("ac", "ad")}  # c and d are parent and child


def test_pairs_without_a_routine_are_named_once():
    b = chain_of_spheres()
    b.add_plane("a")
    b.add_plane("c")
    b.add_plane("d")
    with pytest.warns(UserWarning, match="no contact between plane and plane: these pairs have no routine") as caught:
        b.build()
    assert len(caught) == 1
