"""Meshes are closed, oriented outwards, and have the nominal size."""

import numpy as np
import pytest

from artigrad import InputError
from artigrad.model.quaternions import matrix
from artigrad.view import meshes
from artigrad.view.meshes import Mesh

SIZES = {
    "sphere": ((0.3,), 4 / 3 * np.pi * 0.3**3),
    "capsule": ((0.2, 0.5), np.pi * 0.04 * 1.0 + 4 / 3 * np.pi * 0.2**3),
    "cylinder": ((0.2, 0.5), np.pi * 0.04 * 1.0),
    "box": ((0.1, 0.2, 0.3), 8 * 0.006),
    "ellipsoid": ((0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.006),
    "plane": ((2.0, 1.0), 4 * 2 * 0.01),
}


def volume(mesh: Mesh) -> float:
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6)


def check(mesh: Mesh) -> None:
    """Check that every edge has a face on either side, and that normals point outwards."""
    _, same = np.unique(mesh.vertices.round(5), axis=0, return_inverse=True)
    faces = same.reshape(-1)[mesh.faces]
    edges = np.concatenate([faces[:, [i, (i + 1) % 3]] for i in range(3)])
    assert {tuple(e) for e in edges} == {tuple(e[::-1]) for e in edges}
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    outwards = np.cross(b - a, c - a)
    assert (np.einsum("fc,fkc->fk", outwards, mesh.normals[mesh.faces]) > 0).all()
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", SIZES)
def test_primitives(kind):
    size, expected = SIZES[kind]
    mesh = meshes.primitive(kind, size)
    check(mesh)
    assert volume(mesh) == pytest.approx(expected, rel=0.03)  # of round ones the facets cut off a little
    if kind in ("sphere", "ellipsoid"):  # within half a pixel of a ball of 400 pixels
        assert volume(mesh) == pytest.approx(expected, rel=0.008)


def test_every_kind_of_visual_can_be_drawn():
    from artigrad.model.visuals import KINDS

    assert set(KINDS) == {*meshes.PRIMITIVES, "mesh"}


def test_a_kind_that_is_not_known():
    with pytest.raises(InputError, match=r"'torus'.*there are plane, sphere"):
        meshes.primitive("torus", (1.0,))


def test_rounded_box_arrow_and_moving():
    box = meshes.rounded_box((0.3, 0.2, 0.1), 0.04)
    check(box)
    assert np.allclose(box.vertices.max(0), (0.3, 0.2, 0.1)) and 0.9 * 0.048 < volume(box) < 0.048
    mesh = meshes.arrow((1.0, 0.0, 0.0), (0.0, 0.0, -2.0), 0.05)
    assert np.allclose(mesh.vertices[:, 2].min(), -2.0) and np.allclose(mesh.vertices[:, 2].max(), 0.0)
    turned = box.moved((1.0, 0.0, 0.0), matrix((1.0, 0.0, 1.0, 0.0)))
    check(turned)
    assert np.allclose(turned.vertices.max(0), (1.1, 0.2, 0.3), atol=1e-6)


def test_hull_of_a_cube_and_of_a_flat_set():
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    inner = np.vstack([corners, [[0.5, 0.5, 0.5]]])
    assert volume(meshes.hull(corners[[0, 1, 2, 4]])) == pytest.approx(1 / 6)
    assert np.allclose(meshes.hull(inner).vertices.max(0), 1)
    assert np.isfinite(meshes.hull(corners[:3]).vertices).all()


def test_normals_of_a_file_are_smooth_but_for_edges():
    cube, ball = meshes.box((1, 1, 1)), meshes.sphere((1.0,))
    again = meshes.from_triangles(cube.vertices, cube.faces)
    check(again)
    assert np.allclose(np.abs(again.normals).max(1), 1)  # those of a cube are its axes
    smooth = meshes.from_triangles(ball.vertices, ball.faces)
    assert np.einsum("ij,ij->i", smooth.normals, smooth.vertices).min() > 0.98
