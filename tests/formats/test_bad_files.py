"""Invalid files raise one clear message, here and on the command line."""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import artigrad as ag
from artigrad.cli import app
from artigrad.model.model import PLANE
from artigrad.model.quaternions import matrix

from .texts import INERTIAL, joint, link, urdf

INCLUDE = '<mujoco><include file="gone.xml"/></mujoco>'
ZERO = INERTIAL.replace('"1" iyy="1" izz="1"', '"0" iyy="0" izz="0"')
BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "binary": (bytes(range(256)) * 10, "is binary"),
    "text": (b"robot: yes", "is no XML"),
    "cut off": (b'<mujoco><worldbody><body name="a">', "not well-formed XML: .*line 1"),
    "mismatched": (b"<mujoco><worldbody></mujoco>", "not well-formed XML: mismatched tag"),
    "of another kind": (b"<sdf version='1.6'/>", "is a <sdf>; ag.load reads MJCF"),
    "unknown element": (b"<mujoco><wheels/></mujoco>", "unrecognized"),
    "missing include": (INCLUDE.encode(), "gone.xml"),
    "nothing in it": (b"<mujoco/>", "has no bodies"),
    "massless": (b"<mujoco><worldbody><body name='a'><joint/></body></worldbody></mujoco>", "give it a mass"),
    "no links": (b"<robot name='r'/>", "has no links"),
    "cycle": (
        urdf(link("a"), link("b"), joints=joint("i", "a", "b") + joint("j", "b", "a")).encode(),
        "cycle: a -> b -> a|cycle: b -> a -> b",
    ),
    "two parents": (
        urdf(link("a"), link("b"), link("c"), joints=joint("i", "a", "c") + joint("j", "b", "c")).encode(),
        "link 'c' .* hangs on two joints",
    ),
    "too far": (
        b"<mujoco><worldbody><body><freejoint/><geom size='1'/><body pos='0 1e308 0'><joint/><geom size='1'/></body></body>"
        b"</worldbody></mujoco>",
        "is not finite: check positions, masses",
    ),
    "an empty anchor": (
        b"<mujoco><worldbody><body name='a'><freejoint/><geom size='1'/></body></worldbody>"
        b"<equality><connect body1='a' anchor=''/></equality></mujoco>",
        "the anchor of a <connect> is empty",
    ),
    "two roots": (urdf(link("a"), link("b")).encode(), "2 roots"),
    "unknown link": (urdf(link("a"), joints=joint("i", "a", "ghost")).encode(), "link 'ghost', which does not exist"),
    "twice": (urdf(link("a"), link("a")).encode(), "two links named 'a'"),
}


@pytest.fixture
def bad(request, tmp_path):
    path = tmp_path / "robot.xml"
    path.write_bytes(BAD[request.param][0])
    return path, BAD[request.param][1]


@pytest.mark.parametrize("bad", BAD, indirect=True)
def test_one_sentence(bad):
    path, message = bad
    with pytest.raises(ag.ModelError, match=message) as raised:
        ag.load(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", BAD, indirect=True)
@pytest.mark.parametrize("command", ["info", "check"])
def test_one_sentence_on_the_command_line(bad, command):
    result = CliRunner().invoke(app, [command, str(bad[0])])
    assert result.exit_code == 1
    assert result.output.startswith("error: ") and len(result.output.strip().splitlines()) == 1
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("start", [b"", b"<mujoco>", b"<robot name='r'>"])
def test_a_hundred_megabytes_of_noise(tmp_path, start):
    path = tmp_path / "noise.xml"
    path.write_bytes(start + os.urandom(1 << 20) * 100)
    with pytest.raises(ag.ModelError, match=r"is binary|not well-formed"):
        ag.load(path)


@pytest.mark.parametrize("given", ["", 3, None, "no/such/file.xml", "x" * 5000])
def test_paths_that_are_no_files_are_refused(given):
    with pytest.raises(ag.ModelError):
        ag.load(given)


def test_a_folder(tmp_path):
    with pytest.raises(ag.ModelError, match="is a folder"):
        ag.load(tmp_path)


def test_an_entity_bomb_is_refused():
    layers = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE mujoco [<!ENTITY e0 "x">{layers}]><mujoco>&e11;</mujoco>'
    with pytest.raises(ag.ModelError, match="not well-formed"):
        ag.load(bomb)


def test_an_inertia_of_zero_is_taken_from_the_shapes():
    box = '<collision><geometry><box size="0.2 0.4 0.6"/></geometry></collision>'
    heavy = ZERO.replace('<mass value="1"', '<origin xyz=".1 0 0"/><mass value="3"')
    link_b = f'<link name="b">{heavy}{box}</link>'
    text = urdf(link("a"), link_b, joints=joint("i", "a", "b"))
    model = ag.load(text)
    assert any(note.what == "inertia of zero" for note in model.notes)
    params = model.params
    assert params.mass[1] == 3
    assert params.com[1] == pytest.approx([0.1, 0, 0])
    moments = [3 / 12 * (y * y + z * z) for y, z in ((0.4, 0.6), (0.2, 0.6), (0.2, 0.4))]
    assert params.inertia[1, :3] == pytest.approx(moments)


def test_extensions_of_bullet():
    """A limit with the lower above the upper is none; a plane is unbounded."""
    plane = '<collision><origin xyz="0 0 -1"/><geometry><plane normal="0 1 0"/></geometry></collision>'
    limited = joint("i", "a", "b").replace('lower="-1" upper="1"', 'lower="1" upper="-1"')
    model = ag.load(urdf(link("a", plane), link("b"), joints=limited))
    assert not np.isfinite(model.params.limit).any()
    assert any(note.what == "limit with lower above upper" for note in model.notes)
    k = model.shapes.kind.index(PLANE)
    assert model.params.shape_position[k] == pytest.approx([0, 0, -1])
    assert matrix(model.params.shape_rotation[k])[:, 2] == pytest.approx([0, 1, 0])


NAMED = '<mujoco model="é"><worldbody><body name="größe"><joint/><geom size="1"/></body></worldbody></mujoco>'


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("latin-1", '<?xml version="1.0" encoding="ISO-8859-1"?>'),
        ("latin-1", ""),
        ("utf-16", '<?xml version="1.0" encoding="UTF-16"?>'),
        ("utf-16", ""),
        ("utf-8-sig", ""),
        ("utf-8", '<?xml version="1.0"?>'),
    ],
)
def test_encodings(tmp_path, encoding, head):
    (tmp_path / "robot.xml").write_bytes((head + NAMED).encode(encoding))
    model = ag.load(tmp_path / "robot.xml")
    assert (model.name, model.bodies) == ("é", ("größe",))


def test_encodings_that_are_not(tmp_path):
    file = tmp_path / "robot.xml"
    file.write_bytes(b'<?xml version="1.0" encoding="klingon"?>' + NAMED.encode())
    with pytest.raises(ag.ModelError, match=r"robot.xml.*unknown encoding, 'klingon'"):
        ag.load(file)
    file.write_bytes(b'<?xml version="1.0" encoding="ascii"?>' + NAMED.encode())
    with pytest.raises(ag.ModelError, match=r"robot.xml.*not in its declared encoding, 'ascii'"):
        ag.load(file)


def test_a_time_step_of_zero():
    with pytest.raises(ag.ModelError, match="timestep of 'r' is 0"):
        ag.load(
            '<mujoco model="r"><option timestep="0"/><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'
        )


def test_pipes_and_devices(tmp_path):
    os.mkfifo(tmp_path / "robot.xml")
    for path in (tmp_path / "robot.xml", "/dev/zero"):
        with pytest.raises(ag.ModelError, match="is a pipe or a device, not a file"):
            ag.load(path)


def test_chains_that_are_too_deep(tmp_path):
    n = 5000
    joints = (joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(n - 1))
    texts = {"robot.urdf": urdf(*(link(f"l{i}") for i in range(n)), joints="".join(joints))}
    texts["robot.xml"] = f"<mujoco><worldbody>{'<body><joint/>' * n}{'</body>' * n}</worldbody></mujoco>"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ag.ModelError, match=f"{name}' has bodies more than 1023 deep"):
            ag.load(tmp_path / name)


def test_a_urdf_that_is_spelled_badly():
    inner = '<origin xyz="1,2 3 4" rpy="$(optenv TILT 0 0.5 0)"/><axis xyz="1 0 0"/>'
    text = urdf(link("a"), link("b"), joints=joint("j", "a", "b", inner).replace('"1" effort', '"1.5." effort'))
    model = ag.load(text)
    assert model.params.limit[1].tolist() == [-1, 1.5] and model.params.position[1].tolist() == [1, 2, 3]
    assert model.params.axis[1].tolist() == [0, 1, 0]
    found = {note.what for note in model.notes if note.effect == "the first counts"}
    assert found == {"more than three numbers of 'xyz'", "number with two points", "element <axis> twice"}
    assert model.sites == ("a", "b")  # a site for every link


def test_inertias_and_extensions_of_a_urdf_that_are_spelled_badly():
    inertial = '<inertial><mass value="{}"/><inertia ixx=".1" iyy=".2" izz=".2"/></inertial>'
    twice = f'<link name="b">{inertial.format(2)}{inertial.format(3)}</link>'
    model = ag.load(urdf(link("a"), twice, "<sim:other sim:of='x'/>", joints=joint("j", "a", "b")))
    assert model.params.mass[1] == 2 and sorted(model.params.inertia[1]) == [0, 0, 0, 0.1, 0.2, 0.2]
    assert {"element <inertial> twice", "element <{sim}other>"} <= {note.what for note in model.notes}
    point = '<link name="b"><inertial><mass value="2"/><origin xyz="1 0 0"/></inertial></link>'
    model = ag.load(urdf(link("a"), point, joints=joint("j", "a", "b")))
    assert model.params.mass[1] == 2 and not model.params.inertia[1].any() and model.params.com[1].tolist() == [1, 0, 0]


def test_extensions_of_other_programs_in_a_urdf():
    left = '<xacro:arg name="x" default="1"/>'
    text = urdf(link("a"), left, joints=joint("j", "world", "a"))
    text = text.replace("<robot", '<robot xmlns="http://drake.mit.edu" xmlns:xacro="http://ros.org/wiki/xacro"', 1)
    model = ag.load(text)
    assert model.joints[-1] == "j" and model.nv == 1
    with pytest.raises(ag.ModelError, match="is a template"):
        ag.load(text.replace('default="1"', 'default="${y}"'))


def test_collision_shapes_that_are_flat(tmp_path):
    (tmp_path / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 3 4\n")
    shape = '<collision><geometry><mesh filename="flat.obj"/></geometry></collision>'
    flat = link("b").replace("</link>", f"{shape}</link>")
    (tmp_path / "robot.urdf").write_text(urdf(link("a"), flat, joints=joint("j", "a", "b")))
    with pytest.raises(ag.ModelError, match="mesh 'flat' \\(flat\\) of 'b'"):
        ag.load(tmp_path / "robot.urdf")
    model = ag.load(tmp_path / "robot.urdf", strict=False)
    assert "b: mesh 'flat' (flat)" in str(model.unsupported) and not model.shapes.names


def test_elements_within_elements():
    n = 3000
    with pytest.raises(ag.ModelError, match=r"deep|DEPTH"):
        ag.load("<mujoco><worldbody>" + "<body>" * n + "</body>" * n + "</worldbody></mujoco>")
