"""Every two solids in shallow contact, at random and beside edges and rims: gradients of a step against differences."""

import numpy as np

import artigrad as ag

from .aligned import geom
from .outcome import Outcome
from .slopes import count_places, verdicts

SUMMARY = (
    "Every two solids 1e-5 to 1e-3 m deep in each other, in random placements and with edges, rims and ends 1e-6 to 1e-2 m "
    "beside each other at tilts of 1e-6 to 1e-2 rad, moving: the gradient of a step against differences, to 1e-6 "
    "wherever those of both sides agree."
)
COUNT, SAMPLE = 50_000, 80
BLOCK = 80  # placements of one pair
HALVES = 45  # bisections for the depth
KINDS = ("cylinder", "ellipsoid", "capsule", "mesh", "box", "hexagon", "sphere")
LOWER, UPPER = (0.05, 0.06, 0.04), (0.04, 0.05, 0.03)  # sizes
PAIRS = [(one, other) for i, one in enumerate(KINDS) for other in KINDS[i:]]
PAIRS.sort(key=lambda pair: pair != ("cylinder", "ellipsoid"))  # the pair of the sample
SPEED = 0.1  # m/s and rad/s


def search(count, seed):
    """Draw and check `count` placements."""
    outcome, rng = Outcome(), np.random.default_rng(seed)
    blocks = -(-count // BLOCK)
    for k in range(blocks):
        pair = PAIRS[(seed * blocks + k) % len(PAIRS)]  # shares of a search have other pairs
        sim = ag.Simulator(ag.load(_scene(*pair)), threads=1)
        q = _placed(rng, sim, min(BLOCK, count - k * BLOCK))
        found = verdicts(sim, q, SPEED * rng.normal(size=(len(q), 6)))
        count_places(outcome, found, f"seed {seed}, block {k}, {' and '.join(pair)}")
    return outcome


def _scene(lower, upper):
    (one, mesh, _), (other, second, _) = geom(lower, LOWER), geom(upper, UPPER)
    return (
        f'<mujoco><option timestep=".002" gravity="0 0 0"/><asset>{"".join({mesh, second})}</asset><worldbody><geom {one}/>'
        f'<body><freejoint/><geom {other} mass="1"/></body></worldbody></mujoco>'
    )


def _placed(rng, sim, n):
    """Positions (n, 7), half of them aligned but for a tilt and a shift across the direction in which they meet."""
    aligned = rng.random(n) < 0.5
    q = np.concatenate([np.zeros((n, 3)), rng.normal(size=(n, 4))], axis=1)
    turns = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 0]], float)
    q[aligned, 3:] = turns[rng.integers(0, len(turns), aligned.sum())]
    q[:, 3:] /= np.linalg.norm(q[:, 3:], axis=1, keepdims=True)
    tilt = np.zeros((n, 6))
    tilt[aligned, 3:] = rng.normal(size=(aligned.sum(), 3)) * 10.0 ** rng.uniform(-6, -2, (aligned.sum(), 1))
    q = ag.integrate(sim.model, q, tilt)
    way = rng.normal(size=(n, 3))
    axis = np.eye(3)[rng.integers(0, 3, n)] * rng.choice([-1.0, 1.0], (n, 1))
    way = np.where(aligned[:, None], axis, way / np.linalg.norm(way, axis=1, keepdims=True))
    spans = np.array([[0.0, a, a - b, a + b] for a, b in zip(LOWER, UPPER, strict=True)])
    off = rng.choice([-1.0, 1.0], (n, 3)) * 10.0 ** rng.uniform(-6, -2, (n, 3))
    beside = spans[np.arange(3), rng.integers(0, 4, (n, 3))] * rng.choice([-1.0, 1.0], (n, 3)) + off
    q[:, :3] = np.where(aligned[:, None] & (axis == 0.0), beside, 0.0)
    rims = aligned & (rng.random(n) < 0.5)  # about the axis of a cylinder
    angle, radius = rng.uniform(0, 2 * np.pi, n), spans[0, rng.integers(0, 4, n)] + off[:, 2]
    around = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(n)], axis=1)
    q[rims, :3], way[rims] = around[rims], np.sign(rng.normal(size=(rims.sum(), 1))) * [0.0, 0.0, 1.0]
    start, depth = q[:, :3].copy(), 10.0 ** rng.uniform(-5, -3, n)
    near, far = np.zeros(n), np.full(n, 0.3)
    for _ in range(HALVES):
        middle = 0.5 * (near + far)
        q[:, :3] = start + middle[:, None] * way
        gap = sim.contacts(sim.rollout(ag.State(q, np.zeros((n, 6))), steps=1)).gap[:, 0].min(1)
        near, far = np.where(gap < -depth, middle, near), np.where(gap < -depth, far, middle)
    q[:, :3] = start + near[:, None] * way
    return q
