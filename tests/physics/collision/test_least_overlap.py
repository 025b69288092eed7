"""Termination of the search for the least overlap."""

import numpy as np
import pytest

from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.physics.collision.contact_geometry import Pose
from artigrad.physics.collision.convex.least_overlap import SHARP, _certain, _search, box_axis
from artigrad.physics.spatial import Vec3

from .beside_mujoco import matrices, ours, random_rotations, solid, tilts, vectors

COUNT, DIRECTIONS, TOLERANCE = 400, 200, SHARP["f64"]


def hull(corners, seed):
    return ("mesh", 0.06 * np.random.default_rng(seed).normal(size=(corners, 3)))


def overlaps(A, B, directions):
    """Overlap along each direction (n, 3), of each placement."""
    saved_geometry = []
    for u in directions:
        n = Vec3(*(np.full(COUNT, x) for x in u))
        w = A.support(n) - B.support(-n)
        saved_geometry.append(u[0] * w.x + u[1] * w.y + u[2] * w.z)
    return np.array(saved_geometry)


@pytest.mark.parametrize(("a", "b"), [(hull(12, 1), hull(12, 2)), (("box", (0.1, 0.005, 0.05)), hull(20, 3))])
def test_a_search_stops_at_the_least_overlap_or_at_a_separating_direction(a, b):
    rng = np.random.default_rng(0)
    at = rng.normal(size=(COUNT, 3))
    at *= rng.uniform(0.03, 0.25, size=(COUNT, 1)) / np.linalg.norm(at, axis=1, keepdims=True)
    places = [Pose(matrices(random_rotations(rng, COUNT)), vectors(r)) for r in (0 * at, at)]
    directions = rng.normal(size=(DIRECTIONS, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    with staging_on(NumpyTarget("f64", COUNT)), np.errstate(all="ignore"):
        A, B = (solid(shape, X) for shape, X in zip((a, b), places, strict=True))
        axis = box_axis(A, B)[1]
        to_the_end, soon = (_search(A, B, axis, TOLERANCE, enough) for enough in (1e9, 0.01))
        certain = _certain(A, B, to_the_end, TOLERANCE) & (to_the_end.h > 0)
        least = overlaps(A, B, directions).min(axis=0)
    assert certain.sum() > 10 and (~certain & (to_the_end.h > least)).sum() > 10
    assert (to_the_end.h <= least + 1e-6)[certain].all()
    apart = -to_the_end.h > 0.01 + 2 * TOLERANCE
    assert apart.sum() > 10 and (-soon.h >= 0.01)[apart].all()
    assert np.array_equal(soon.h[~apart], to_the_end.h[~apart])


@pytest.mark.parametrize("sides", [4, 6, 8])
def test_vertical_edges_in_line_overlap_along_a_face_beside_them(sides):
    """In line with the edges, every small turn of the normal gives less overlap, equally much to both sides."""
    rng, n, r = np.random.default_rng(0), 300, 0.05
    angles, depth = 2 * np.pi * np.arange(sides) / sides, rng.choice([2e-5, 1e-3, 2e-3], n)
    prism = "mesh", [(r * np.cos(t), r * np.sin(t), z) for t in angles for z in (-0.03, 0.03)]
    flipped = np.array([np.eye(3), *(2 * np.diag(e) - np.eye(3) for e in np.eye(3))])[rng.integers(0, 4, n)]
    tilted = np.einsum("nij,njk->nik", tilts(rng, n, 1e-15), flipped)
    other = np.where(rng.random((n, 1, 1)) < 0.5, tilted, flipped)
    towards = rng.choice(angles, n)
    way = np.c_[np.cos(towards), np.sin(towards), 0 * towards] * (2 * r - depth)[:, None]
    way[:, 2], at = rng.choice([0.0, 0.01, 0.03], n), rng.normal(size=(n, 3)) * (rng.random((n, 1)) < 0.7)
    contacts = ours(prism, prism, (np.tile(np.eye(3), (n, 1, 1)), at, other, at + way), 0.0)
    gaps = np.array([contact.gaps.min() for contact in contacts])
    assert np.abs(gaps + np.cos(np.pi / sides) * depth).max() < 1e-9
