"""Adjoints of jointly computed points, in many placements at once, compared with finite differences."""

import numpy as np
import pytest

from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.model.hulls import hull_of
from artigrad.model.model import POINTS
from artigrad.physics.collision.contact_geometry import ContactGeometry, Pose
from artigrad.physics.collision.convex.contact_record import saved_geometry
from artigrad.physics.spatial import Vec3

from .beside_mujoco import collided, matrices, placements, random_rotations, solid, three, tilts, vectors

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.1, 0.12, 0.08]
WEDGE = np.array([[-1, -1, -1], [1, -1, -1], [0.1, 1.2, -1], [0.2, 0.1, 1.4]]) * 0.1


def bowl():
    """A mesh with many nearly coplanar faces, which a search must distinguish."""
    t = np.linspace(-0.1, 0.1, 7)
    shallow = [(x, y, 2e-3 * (x * x + y * y)) for x in t for y in t]
    rim = [(x, y, 0.1) for x in (-0.12, 0.12) for y in (-0.12, 0.12)]
    return np.array(shallow + rim) @ random_rotations(np.random.default_rng(0), 1)[0]


SHAPES = {
    "sphere": ("sphere", (0.1,)),
    "capsule": ("capsule", (0.05, 0.12)),
    "ellipsoid": ("ellipsoid", (0.1, 0.15, 0.2)),
    "cylinder": ("cylinder", (0.1, 0.15)),
    "box": ("box", (0.1, 0.15, 0.12)),
    "mesh": ("mesh", WEDGE),
}
MORE = SHAPES | {
    "table": ("box", (0.3, 0.3, 0.12)),
    "short": ("capsule", (0.05, 0.03)),
    "cube": ("mesh", CUBE),
    "roof": ("mesh", -WEDGE),
    "bowl": ("mesh", bowl()),
}
UPRIGHT, LYING = np.eye(3), np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
LANES, STEP = 150, 1e-6


def turn(w):
    """Rotation matrices of small vectors (n, 3), to second order and renormalized."""
    angle = np.linalg.norm(w, axis=1)[:, None, None] + 1e-30
    K = np.zeros((len(w), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -w[:, 2], w[:, 1], -w[:, 0]
    K[:, 1, 0], K[:, 2, 0], K[:, 2, 1] = w[:, 2], -w[:, 1], w[:, 0]
    return np.eye(3) + np.sin(angle) / angle * K + (1 - np.cos(angle)) / angle**2 * (K @ K)


class Move:
    """Random rigid motion about the origin, and changes of sizes and vertices, of both shapes."""

    def __init__(self, rng, shapes, n, every=False):
        self.w, self.v = rng.normal(size=(2, n, 3)), rng.normal(size=(2, n, 3))
        self.size = [0.1 * rng.normal(size=3) * (np.arange(3) < len(s[1])) for s in shapes]
        # moving one of four corners of a face breaks it: the derivative of nearest points is one-sided, and left out
        moves = [s[0] == "mesh" and (every or len(s[1]) == len(WEDGE)) for s in shapes]
        self.vertices = [0.1 * m * rng.normal(size=np.shape(s[1])) for s, m in zip(shapes, moves, strict=True)]
        self.shapes = shapes

    def solids(self, poses, h):
        out = []
        for k, (kind, given, *hull) in enumerate(self.shapes):
            R, r = poses[2 * k], poses[2 * k + 1]
            T = turn(h * self.w[k])
            X = Pose(matrices(T @ R), vectors(np.einsum("nij,nj->ni", T, r) + h * self.v[k]))
            if kind == "mesh":
                moved = np.asarray(given) + h * self.vertices[k]
                out.append(solid((kind, given, *hull), X, vertices=moved))
            else:
                size = list(given) + [0.0] * (3 - len(given))
                out.append(solid((kind, given), X, three(np.array(size) + h * self.size[k])))
        return out


def numbers(gap, n):
    return np.array([np.broadcast_to(x, n) for x in gap.leaves()])


def errors(a, b, poses, seed, every=False):
    """Error of the adjoint of each real point along a random displacement, without points whose features change.

    every: include vertices of faces with more than three vertices.
    """
    rng, n = np.random.default_rng(seed), len(poses[1])
    move = Move(rng, (a, b), n, every)
    y_bar = ContactGeometry(
        rng.normal(size=n), vectors(rng.normal(size=(n, 3))), vectors(rng.normal(size=(n, 3))), Vec3.zero()
    )
    weights = numbers(y_bar, n)
    out = []
    with staging_on(NumpyTarget("f64", n)), np.errstate(all="ignore"):

        def at(h):
            rows, routine, solids = collided(a, b, *move.solids(poses, h), 0.05, n)
            return [numbers(saved_geometry(row), n) for row in rows], rows, routine, solids

        ends = {h: at(h)[0] for h in (-2 * STEP, -STEP, STEP, 2 * STEP)}
        middle, rows, routine, solids = at(0.0)
        for k, row in enumerate(rows):
            wide = (ends[2 * STEP][k] - ends[-2 * STEP][k]) / (4 * STEP)
            narrow = (ends[STEP][k] - ends[-STEP][k]) / (2 * STEP)
            real = middle[k][0] < 0.04
            smooth = np.all([np.abs(e[k] - middle[k]).max(0) < 1e3 * STEP for e in ends.values()], axis=0)
            smooth &= np.abs(wide - narrow).max(0) < 1e-3 * (1 + np.abs(wide).max(0))
            bars = routine.vjp(*solids, row, y_bar)
            slope = np.zeros(n)
            for pose, size, s in ((bars.A, bars.size_a, 0), (bars.B, bars.size_b, 1)):
                slope = (
                    slope
                    + np.sum(np.array(pose.n.leaves()).T * move.w[s], 1)
                    + np.sum(np.array(pose.f.leaves()).T * move.v[s], 1)
                )
                slope = slope + sum(np.asarray(x) * d for x, d in zip(size.leaves(), move.size[s], strict=True))
            if routine.corners:
                for s, corners in enumerate(routine.corners(*solids, row, y_bar)):
                    if solids[s].kind == POINTS:
                        slope = slope + _vertices(solids[s], corners, move.vertices[s])
            use = real & smooth
            out.append(
                (
                    np.abs((4 * narrow - wide) / 3 * weights).sum(0)[use],
                    (np.sum((4 * narrow - wide) / 3 * weights, 0) - slope)[use],
                )
            )
    size, error = (np.concatenate(x) for x in zip(*out, strict=True))
    return np.abs(error) / (1 + size)


def _vertices(solid, corners, moves):
    """Effect of changes of vertices; those of contact vertices by their indices."""
    total = []

    def add(number, bar):
        d = moves[np.asarray(number, int)].T
        total.append(bar.x * d[0] + bar.y * d[1] + bar.z * d[2])

    for number, bar in zip(corners.number, corners.bar, strict=True):
        add(number, bar)
    if corners.face is not None:
        solid.hull.normal_vjp(corners.face, corners.normal_bar, add)
    return sum(total)


def resting(rng, n, height, R, tilt, spread=0.04):
    """B over A with a face or an edge down, rotated about the vertical and slightly tilted."""
    Ra, ra = random_rotations(rng, n), 0.3 * rng.normal(size=(n, 3))
    angle, zero, one = rng.uniform(0, 6.28, n), np.zeros(n), np.ones(n)
    about = np.array([[np.cos(angle), -np.sin(angle), zero], [np.sin(angle), np.cos(angle), zero], [zero, zero, one]])
    offset = np.concatenate([rng.uniform(-spread, spread, (n, 2)), np.full((n, 1), height)], 1)
    return Ra, ra, Ra @ tilts(rng, n, tilt) @ np.moveaxis(about, 2, 0) @ R, ra + np.einsum("nij,nj->ni", Ra, offset)


KINDS = list(SHAPES)
ANY = [
    (a, b)
    for k, a in enumerate(KINDS)
    for b in KINDS[k:]
    if (a, b) not in {("sphere", "sphere"), ("capsule", "capsule")}
]
ANY = [
    p for p in ANY if p not in {("sphere", "capsule"), ("sphere", "cylinder"), ("sphere", "box"), ("capsule", "box")}
]
RESTING = {
    "box on box": ("box", "box", 0.235, UPRIGHT),
    "cylinder standing on box": ("table", "cylinder", 0.268, UPRIGHT),
    "cylinder lying on box": ("box", "cylinder", 0.218, LYING),
    "capsule lying on cylinder": ("cylinder", "short", 0.198, LYING),
    "mesh on box": ("box", "mesh", 0.218, UPRIGHT),
    "mesh across mesh": ("cube", "cube", 0.155, UPRIGHT),
}


@pytest.mark.parametrize(("a", "b"), ANY)
def test_pairs_of_solids_at_random_placements(a, b):
    poses = placements(np.random.default_rng(1), LANES, 0.35)
    found_ = errors(SHAPES[a], SHAPES[b], poses, 2)
    assert len(found_) > 20
    assert np.quantile(found_, 0.9) < 1e-6 and np.quantile(found_, 0.98) < 1e-4, np.quantile(
        found_, [0.5, 0.9, 0.95, 0.98, 1]
    )


@pytest.mark.parametrize("other", ["ellipsoid", "cylinder", "box", "bowl"])
def test_adjoints_beside_nearly_flat_faces(other):
    poses = placements(np.random.default_rng(1), LANES, 0.35)
    found_ = errors(MORE[other], MORE["bowl"], poses, 2)
    assert len(found_) > 20
    assert np.quantile(found_, 0.98) < 1e-6, np.quantile(found_, [0.5, 0.9, 0.95, 0.98, 1])


@pytest.mark.parametrize("other", ["capsule", "cylinder", "box", "bowl"])
def test_distance_is_that_of_the_support_planes(other):
    """The distance along the normal is that of both support planes, to full precision."""
    poses = placements(np.random.default_rng(1), LANES, 0.35)
    a, b, n = MORE[other], MORE["bowl"], len(poses[1])
    with staging_on(NumpyTarget("f64", n)), np.errstate(all="ignore"):
        X_a, X_b = (Pose(matrices(R), vectors(r)) for R, r in (poses[:2], poses[2:]))
        rows, _, (A, B) = collided(a, b, X_a, X_b, 0.05, n)
        row = rows[0]
        apart = B.support(-row.n) - A.support(row.n)
        wanted = sum(x * y for x, y in zip(row.n.leaves(), apart.leaves(), strict=True)) - A.radius - B.radius
        off = np.where((row.phi < 0.04) & (row.patch < 0.5), np.abs(row.phi - wanted), 0.0)
    assert np.count_nonzero(off) > 5
    assert off.max() < 1e-10


@pytest.mark.parametrize("case", RESTING)
def test_adjoints_of_contact_patches(case):
    a, b, height, R = RESTING[case]
    poses = resting(np.random.default_rng(1), LANES, height, R, 0.01)
    found_ = errors(MORE[a], MORE[b], poses, 2)
    share = (
        0.75 if case == "cylinder standing on box" else 0.9
    )  # its lowest point is bounded where it runs round the rim
    assert len(found_) > 20
    assert np.quantile(found_, share) < 1e-6, np.quantile(found_, [0.5, 0.75, 0.9, 0.95, 0.98, 1])


@pytest.mark.parametrize(("a", "b", "height"), [("roof", "mesh", 0.19), ("cylinder", "cube", 0.22)])
def test_adjoints_of_patches_of_tilted_faces(a, b, height):
    """One face clips along its normal, and the distance is measured along the other's."""
    poses = resting(np.random.default_rng(1), LANES, height, UPRIGHT, 0.07)
    found_ = errors(MORE[a], MORE[b], poses, 2)
    assert len(found_) > 500
    assert np.quantile(found_, 0.98) < 1e-8


@pytest.mark.parametrize(("a", "b"), [("cube", "cube"), ("table", "cube"), ("cylinder", "cube"), ("bowl", "cube")])
def test_adjoints_of_patches_with_respect_to_all_vertices(a, b):
    """The normal of a face with many vertices is that of its vector area, to which each contributes."""
    height = {"cube": 0.155, "table": 0.195, "cylinder": 0.225, "bowl": 0.07}[a]
    poses = resting(np.random.default_rng(1), LANES, height, UPRIGHT, 0.01)
    given, rng = MORE[b], np.random.default_rng(5)
    bent = ("mesh", given[1] + 1e-4 * rng.normal(size=np.shape(given[1])), hull_of(given[1]))
    found_ = errors(MORE[a], bent, poses, 2, every=True)
    assert len(found_) > 100
    assert np.quantile(found_, 0.9) < 1e-7, np.quantile(found_, [0.5, 0.75, 0.9, 0.95, 0.98, 1])
