"""Masses in URDF files as they occur, compared with Pinocchio; meshes of other formats."""

import struct

import numpy as np
import pinocchio as pin
import pytest

import artigrad as ag

from .texts import joint, link, urdf


def inertial(mass, moments, rpy="0 0 0", xyz="0.1 0 0.05"):
    xx, yy, zz = moments
    return (
        f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def chain(*inner, kinds=None):
    """Return a base and links in series, half a meter apart, on hinges about different axes."""
    names = "abcdefg"[: len(inner)]
    links = [link("base")] + [f'<link name="{n}">{x}</link>' for n, x in zip(names, inner, strict=True)]
    joints = "".join(
        f'<joint name="j{n}" type="{kind}"><origin xyz="0 0.2 0.5" rpy="0.3 0 0.1"/><parent link="{p}"/><child link="{n}"/>'
        f'<axis xyz="{axis}"/><limit lower="-9" upper="9" effort="5" velocity="3"/></joint>'
        for p, n, axis, kind in zip(
            ("base", *names), names, ("0 1 0", "1 0 0", "0 0 1") * 2, kinds or ["revolute"] * 9, strict=False
        )
    )
    return urdf(*links, joints=joints)


ROBOTS = {
    "massless between hinges": chain("", "", inertial(2, (1, 2, 2.5))),
    "massless frame": chain(inertial(2, (1, 2, 2.5)), inertial(0, (1, 1, 1)), kinds=["revolute", "fixed"]),
    "flat": chain(inertial(2, (0.1, 0.2, 0.7), rpy="0.3 0.2 0.1"), inertial(1, (1, 1, 1.5))),
    "rounded": chain(inertial(2, (-2e-22, 0, 3e-6)), inertial(1, (1, 1, 1.5))),
    "negative": chain(inertial(2, (-0.1, 1, 1)), inertial(5, (1, 1, 1.5)), kinds=["revolute", "fixed"]),
    "points": chain(inertial(2, (0, 0, 0)), inertial(1, (0, 0, 0)), inertial(1, (0.3, 0.3, 0.3))),
}


@pytest.mark.parametrize("name", ROBOTS)
def test_masses_are_taken_at_their_word(name):
    theirs = pin.buildModelFromXML(ROBOTS[name])
    data = theirs.createData()
    model = ag.load(ROBOTS[name])
    sim, rng = ag.Simulator(model), np.random.default_rng(0)
    q, v = rng.normal(size=(2, model.nv))
    M = pin.crba(theirs, data, q)
    np.testing.assert_allclose(sim.mass_matrix(ag.State(q, v)), np.triu(M) + np.triu(M, 1).T, atol=1e-12)
    a = pin.aba(theirs, data, q, v, np.zeros(model.nv))
    np.testing.assert_allclose(sim.forward_dynamics(ag.State(q, v)), a, rtol=1e-9, atol=1e-9)


def test_impossible_inertias_are_reported():
    model = ag.load(ROBOTS["flat"])
    assert ("inertia that no body can have", ("a",)) in [(note.what, note.where) for note in model.notes]


def test_a_joint_that_moves_no_mass():
    text = chain(inertial(2, (1, 2, 2.5)), "")
    with pytest.raises(ag.ModelError, match="joint 'jb' of this text moves no mass"):
        ag.load(text)
    model = ag.load(text, strict=False)
    assert model.params.armature.tolist() == [0, 0, 0.01] and "joint that moves no mass" in str(model.unsupported)


def test_a_mimic_of_a_fixed_joint_stays():
    joints = joint("i", "a", "b", kind="fixed") + joint("j", "b", "c", '<mimic joint="i" offset="0.3"/>')
    model = ag.load(urdf(link("a"), link("b"), link("c"), joints=joints))
    final = ag.Simulator(model).rollout(model.keyframe(), steps=2000).final
    assert final.q[0] == pytest.approx(0.3, abs=2e-2)


CORNERS = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.4, 0], [0, 0, 0.5]])
FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]


def text_stl(path):
    body = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*CORNERS[k]) for k in face)
        + "endloop\nendfacet\n"
        for face in FACES
    )
    path.write_text(f"solid made by hand\n{body}endsolid\n")


def large_stl(path):
    """Return more faces than the compiler reads, most of them coincident."""
    faces = (FACES * 50_001)[:200_004]
    head = b" " * 80 + struct.pack("<I", len(faces))
    path.write_bytes(head + b"".join(struct.pack("<12fH", 0, 0, 1, *CORNERS[face].ravel(), 0) for face in faces))


def by_trimesh(path):
    import trimesh

    trimesh.Trimesh(CORNERS, FACES).export(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("text.stl", text_stl),
        ("large.STL", large_stl),
        ("m.dae", by_trimesh),
        ("m.glb", by_trimesh),
        ("m.ply", by_trimesh),
    ],
)
def test_meshes_of_many_formats_touch(name, write, tmp_path):
    write(tmp_path / name)
    shape = f'<collision><geometry><mesh filename="{name}"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(urdf(link("a"), link("b", shape), joints=joint("i", "a", "b")))
    model = ag.load(tmp_path / "r.urdf")
    (start, count), *_ = model.shapes.vertices
    apart = [
        np.sort(np.linalg.norm(x[:, None] - x, axis=2), axis=None)
        for x in (CORNERS, model.params.vertex[start : start + count])
    ]
    assert apart[0] == pytest.approx(apart[1], abs=1e-6)


def test_a_mesh_that_no_one_reads(tmp_path):
    (tmp_path / "m.blend").write_text("")
    shape = '<collision><geometry><mesh filename="m.blend"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(urdf(link("a", shape)))
    with pytest.raises(ag.ModelError, match=r"mesh 'm.blend' \(not one of \.stl"):
        ag.load(tmp_path / "r.urdf")
