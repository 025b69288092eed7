"""Concentric, aligned, parallel, deep and just touching placements: every gradient is finite and bounded."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.physics.collision.contact_geometry import ContactGeometry, Pose
from artigrad.physics.collision.routines import BY_SHAPES, ROUTINES
from artigrad.physics.spatial import Vec3

from .beside_mujoco import KIND, collided, matrices, three, vectors
from .test_adjoints import CUBE, bowl

SHAPES = {
    "plane": ("plane", ()),
    "sphere": ("sphere", (0.1,)),
    "capsule": ("capsule", (0.05, 0.1)),
    "ellipsoid": ("ellipsoid", (0.1, 0.1, 0.1)),  # round: all its normals are as good as each other
    "cylinder": ("cylinder", (0.1, 0.1)),
    "box": ("box", (0.1, 0.1, 0.1)),
    "cube": ("mesh", CUBE),
    "bowl": ("mesh", bowl()),
}
QUARTERS = [np.eye(3), np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])]
PLACES = [0.0, 1e-16, 1e-9, 1e-4, 0.05, 0.1, 0.15, 0.2]  # from one center to the other, along axes and diagonals
ALONG = [np.array(d) / np.linalg.norm(d) for d in ((0.0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 1, 1), (1, 1, 1))]
BOUND = (
    1e7  # that a cotangent of order one may become: radii of curvature count as 1e-4 m at least, tilts of rims as 0.02
)


def every_place():
    """Return (Ra, ra, Rb, rb) of all placements."""
    rows = [(R, t * d) for R in QUARTERS for t in PLACES for d in ALONG]
    n, eye = len(rows), np.eye(3)
    Rb, rb = np.array([R for R, _ in rows]), np.array([r for _, r in rows])
    return np.tile(eye, (n, 1, 1)), np.zeros((n, 3)), Rb, rb


@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(SHAPES, 2))[1:])
def test_cotangents_are_finite_and_bounded(a, b):
    Ra, ra, Rb, rb = every_place()
    n, one, other = len(ra), SHAPES[a], SHAPES[b]
    A, B = Pose(matrices(Ra), vectors(ra)), Pose(matrices(Rb), vectors(rb))
    y_bar = ContactGeometry(
        np.ones(n), vectors(np.full((n, 3), 0.7)), vectors(np.full((n, 3), -0.4)), Vec3(0.1, 0.2, 0.3)
    )
    routine = ROUTINES[BY_SHAPES[KIND[one[0]], KIND[other[0]]]]
    touched = 0
    with staging_on(NumpyTarget("f64", n)), np.errstate(all="ignore"):
        if routine.collide is None:
            sizes = three(one[1]), three(other[1])
            for at in (Vec3(*feature) for feature in routine.features):
                gap = routine.forward(A, sizes[0], B, sizes[1], at)
                bars = routine.vjp(A, sizes[0], B, sizes[1], at, y_bar)
                touched += finite(gap, numbers(bars), n)
        else:
            rows, _, solids = collided(one, other, A, B, 0.01, n)
            for row in rows:
                bars = routine.vjp(*solids, row, y_bar)
                leaves = numbers(bars)
                for corners in routine.corners(*solids, row, y_bar) if routine.corners else ():
                    leaves += [x for bar in getattr(corners, "bar", ()) for x in bar.leaves()]
                touched += finite(ContactGeometry(row.phi, row.p, row.n, Vec3.zero()), leaves, n)
    assert touched > 20


def largest():
    """Bound of the cotangent at each placement: beside a common center the normal rotates with 1 / distance."""
    apart = np.linalg.norm(every_place()[3], axis=1)
    return np.where((apart > 1e-12) & (apart < 1e-6), 1.0 / np.maximum(apart, 1e-12), BOUND)


def numbers(bars):
    return [x for bar in bars for x in bar.leaves()]


def finite(gap, bars, n):
    """Check that all values are finite, and return the number of points nearby."""
    phi = np.broadcast_to(gap.phi, n)
    near = phi < 0.01
    assert np.isfinite(phi).all()
    for x in (*gap.p.leaves(), *gap.n.leaves(), *bars):
        assert (np.abs(np.broadcast_to(x, n)[near]) < largest()[near]).all()  # NaN is not
    length = sum(np.broadcast_to(x, n) ** 2 for x in gap.n.leaves())
    assert np.abs(length[near] - 1.0).max(initial=0.0) < 1e-9
    return int(near.sum())
