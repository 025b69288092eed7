"""Shapes moving past features of each other: the margin is small wherever a gradient jumps, and mostly large elsewhere."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.numpy_target import NumpyTarget
from artigrad.compiler.values import staging_on
from artigrad.physics.collision.analytic.box import box_capsule_symmetric_margin
from artigrad.physics.collision.analytic.cylinder import cylinder_ball, cylinder_ball_vjp
from artigrad.physics.collision.contact_geometry import FAR, ContactGeometry, Pose
from artigrad.physics.collision.convex.contact_record import saved_geometry
from artigrad.physics.collision.routines import BY_SHAPES, ROUTINES
from artigrad.physics.spatial import Vec3

from .beside_mujoco import KIND, collide_pair, matrices, random_rotations, three, vectors
from .test_adjoints import CUBE, LYING, UPRIGHT, numbers, turn

NEAR = 0.02
SHAPES = {
    "plane": ("plane", ()),
    "sphere": ("sphere", (0.1,)),
    "capsule": ("capsule", (0.05, 0.12)),
    "ellipsoid": ("ellipsoid", (0.1, 0.15, 0.2)),
    "cylinder": ("cylinder", (0.1, 0.15)),
    "box": ("box", (0.1, 0.15, 0.12)),
    "cube": ("mesh", CUBE),
    "slab": ("mesh", CUBE * [2.5, 2.0, 1.0]),
}
STEPS, STRIDE = 2000, 2e-5  # of a way: metres, or radians


class Way:
    """Motion of B past A with constant velocity and spin, starting near contact in a random direction."""

    def __init__(self, rng, a, b, k):
        if k % 2:  # nearly flat
            self.R0 = turn(0.05 * rng.normal(size=(1, 3)))[0] @ (UPRIGHT, LYING)[k // 2 % 2]
            direction = np.array([0.0, 0.0, 1.0]) + 0.4 * rng.normal(size=3) * (a[0] != "plane")
        else:
            self.R0, direction = random_rotations(rng, 1)[0], rng.normal(size=3)
        direction = direction / np.linalg.norm(direction) * (1.0 if a[0] != "plane" else np.sign(direction[2]))
        self.weights = np.append(rng.normal(size=7), np.zeros(3))
        self.r0, self.v, self.w = np.zeros(3), direction, np.zeros(3)
        far = np.arange(0.0, 0.6, 3e-3)
        seen = np.flatnonzero(self.along(a, b, far)[0])
        self.r0 = (far[seen[-1]] - 0.015) * direction
        self.v, self.w = 0.5 * rng.normal(size=3), rng.normal(size=3)

    def along(self, a, b, t):
        """Return at each time: a smooth function of all points nearer than NEAR, its slope by the adjoint, and the
        margin."""
        n, w, v = len(t), self.w, self.v
        R, r = turn(t[:, None] * w) @ self.R0, self.r0 + t[:, None] * v
        A = Pose(matrices(np.tile(np.eye(3), (n, 1, 1))), vectors(np.zeros((n, 3))))
        B = Pose(matrices(R), vectors(r))
        value, slope, margin = np.zeros(n), np.zeros(n), np.full(n, FAR)
        routine = ROUTINES[BY_SHAPES[KIND[a[0]], KIND[b[0]]]]

        def rows(vector):
            return np.array([np.broadcast_to(x, n) for x in vector.leaves()]).T

        with staging_on(NumpyTarget("f64", n)), np.errstate(all="ignore"):
            for gap, asked, own in points(routine, a, b, (A, B), n):
                inside = np.maximum(1.0 - np.broadcast_to(gap.phi, n) / NEAR, 0.0)
                total = np.where(inside > 0, self.weights @ numbers(gap, n), 0.0)
                bars = inside**4 * self.weights[:, None]
                bars[0] -= 4.0 / NEAR * inside**3 * total
                pose = routine.vjp(*asked, ContactGeometry.from_leaves(list(bars))).B
                force = rows(pose.f)
                rate = (rows(pose.n) - np.cross(r, force)) @ w + force @ v
                value, slope = value + inside**4 * total, slope + np.where(inside > 0, rate, 0.0)
                margin = np.where(inside > 0, np.minimum(margin, own), margin)
        return value, slope, margin


def points(routine, a, b, poses, n, near=NEAR):
    """Return (geometry, arguments of its adjoint, margin) of each point of a pair."""
    if routine.collide:
        slots, _, solids = collide_pair(a, b, *poses, near, n)
        margin = routine.margin(*solids, near, slots)
        return [
            (saved_geometry(row), (*solids, row), margin)
            for row in (slots.rows[k] for k in range(len(routine.features)))
        ]
    asked = [(poses[0], three(a[1]), poses[1], three(b[1]), Vec3(*at)) for at in routine.features]
    return [(routine.forward(*of), of, routine.margin(*of) if routine.margin else FAR) for of in asked]


def kinks(value, slope):
    """Return the steps in which a value differs from the prediction by the slopes at both ends, by far more than in its
    neighbors."""
    off = np.abs(np.diff(value) - 0.5 * STRIDE * (slope[1:] + slope[:-1]))
    around = np.pad(off, 2, mode="edge")
    return np.flatnonzero(off > 1e-9 + 4.0 * np.maximum(around[:-4], around[4:]))


CLOSED = [("capsule", "sphere"), ("cylinder", "sphere"), ("box", "sphere"), ("capsule", "capsule"), ("box", "capsule")]
SOLIDS = [
    ("box", "box"),
    ("ellipsoid", "cube"),
    ("capsule", "cube"),
    ("slab", "cylinder"),
    ("box", "cube"),
    ("cube", "cube"),
]


WAYS = [(*pair, 24, 0) for pair in CLOSED] + [(*pair, 5, pair == ("ellipsoid", "cube")) for pair in SOLIDS]


@pytest.mark.parametrize(("a", "b", "ways", "seed"), WAYS)
def test_margins_are_small_at_every_kink(a, b, ways, seed):
    rng, one, other, seen, margins = np.random.default_rng(int(seed)), SHAPES[a], SHAPES[b], 0, []
    for k in range(ways):
        way = Way(rng, one, other, k)
        value, slope, margin = way.along(one, other, (np.arange(STEPS) - STEPS // 2) * STRIDE)
        for i in kinks(value, slope):
            seen += 1
            left, gone = min(margin[i], margin[i + 1]), abs(margin[i] - margin[i + 1])
            assert left < 8 * STRIDE + 2 * gone, (k, i, margin[i])
        margins.append(margin[value != 0])
    margins = np.concatenate(margins)
    assert seen > 0
    assert np.median(margins) > 2e-3 and np.mean(margins > 5e-4) > 0.8, np.quantile(margins, (0.1, 0.2, 0.5))


@pytest.mark.parametrize(
    ("a", "b"), [("plane", "sphere"), ("plane", "box"), ("plane", "capsule"), ("sphere", "ellipsoid")]
)
def test_margins_are_large_without_kinks(a, b):
    rng, one, other = np.random.default_rng(0), SHAPES[a], SHAPES[b]
    for k in range(4):
        value, slope, margin = Way(rng, one, other, k).along(one, other, (np.arange(STEPS) - STEPS // 2) * STRIDE)
        assert len(kinks(value, slope)) == 0 and margin.min() > 0.01


def scene(kind):
    """A ball beside the edge of a block."""
    b = ag.ModelBuilder(kind, gravity=(0, 0, -9.8))
    if kind == "box":
        b.add_box("world", (0.2, 0.2, 0.1))
    else:
        b.add_convex_hull("world", CUBE / np.abs(CUBE).max(0) * [0.2, 0.2, 0.1])
    b.add_body("ball", joint="free", mass=1.0, inertia=(0.004, 0.004, 0.004))
    b.add_sphere("ball", 0.1)
    return b.build()


@pytest.mark.parametrize(("kind", "law"), [("box", "soft"), ("mesh", "soft"), ("box", "hard")])
def test_gradients_are_wrong_only_where_the_margin_is_small(kind, law):
    """Ball on the edge of a block: beyond the edge the normal rotates, over the face it does not."""
    sim, eps = ag.Simulator(scene(kind), 1e-3, law=law), 1e-7
    off = np.array([-1e-2, -1e-4, -5e-8, 5e-8, 1e-4, 1e-2])
    q = np.tile([0.2, 0.01, 0.199, 1.0, 0.0, 0.0, 0.0], (len(off), 1))
    q[:, 0] += off
    v = np.tile([0.0, 0.0, -0.5, 0.0, 0.0, 0.0], (len(off), 1))
    bar = np.array([1.0, 0.3, 0.2, 0.1, 0.1, 0.1])

    def after(move):
        return sim.rollout(ag.State(q + move * eps * np.eye(7)[0], v), np.zeros((1, 0)))

    gradient = sim.vjp(after(0.0), q_bar=np.zeros_like(q), v_bar=np.tile(bar, (len(off), 1)))
    wanted = (after(1.0).v[:, -1] - after(-1.0).v[:, -1]) @ bar / (2 * eps)
    error, margin = np.abs(gradient.q0[:, 0] - wanted) / (1 + np.abs(wanted)), gradient.health.switch_margin
    near = np.abs(off) < eps
    assert (error[near] > 1e-2).all() and (margin[near] < 1e-3).all()
    assert (error[~near] < 1e-5).all() and (margin[~near] > 2e-3).all(), (error, margin)


def margin_of(a, b, R, r, near):
    """Margin of B at this pose on A, for points nearer than `near`."""
    A, B = (
        Pose(matrices(np.asarray(x)[None]), vectors(np.asarray(y)[None])) for x, y in ((np.eye(3), np.zeros(3)), (R, r))
    )
    routine = ROUTINES[BY_SHAPES[KIND[a[0]], KIND[b[0]]]]
    with staging_on(NumpyTarget("f64", 1)), np.errstate(all="ignore"):
        return float(np.ravel(points(routine, a, b, (A, B), 1, near)[0][2])[0])


def test_flush_edges_have_no_margin():
    """A shifted box whose edge is flush with that of the other: a rotation changes the touching vertices."""
    flush, inside = (np.array([x, 0.02, 0.2399]) for x in (0.0, 0.03))
    assert margin_of(SHAPES["box"], SHAPES["box"], np.eye(3), flush, 0.0) < 1e-9
    small = ("box", (0.04, 0.05, 0.12))
    assert margin_of(SHAPES["box"], small, np.eye(3), inside, 0.0) > 1e-6


def test_level_capsule_over_both_rims_of_a_box_has_a_symmetric_margin_only():
    box, capsule = ("box", (0.2, 0.05, 0.05)), ("capsule", (0.05, 0.08))
    at = np.array([0.0, 0.01, 0.0999])
    level = (Pose(matrices(x[None]), vectors(y[None])) for x, y in ((np.eye(3), np.zeros(3)), (LYING, at)))
    assert margin_of(box, capsule, LYING, at, 0.0) > 1e-3
    with staging_on(NumpyTarget("f64", 1)):
        A, B = level
        assert abs(float(np.ravel(box_capsule_symmetric_margin(A, three(box[1]), B, three(capsule[1])))[0])) < 1e-12


def test_ball_on_the_axis_of_a_cylinder_has_the_gradient_of_its_end():
    size, bar = Vec3(0.1, 0.05, 0.0), ContactGeometry(0.3, Vec3(0.5, -0.7, 0.2), Vec3(0.4, 0.6, -0.1), Vec3.zero())

    def loss(x, y):
        collided = cylinder_ball(size, Vec3(np.float64(x), np.float64(y), np.float64(0.09)), 0.05)
        return sum(u * w for u, w in zip(collided.leaves(), bar.leaves(), strict=True))

    with staging_on(NumpyTarget("f64", 1)):
        _, c_bar, _ = cylinder_ball_vjp(size, Vec3(np.float64(0.0), np.float64(0.0), np.float64(0.09)), 0.05, bar)
        differences = [(loss(*(h * d)) - loss(*(-h * d))) / (2 * h) for h in (1e-5,) for d in np.eye(2)]
    assert np.allclose([c_bar.x, c_bar.y], differences, atol=1e-9)
