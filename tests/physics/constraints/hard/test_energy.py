"""Restitution with friction: bounces do not increase the kinetic energy, and where that bounds them gradients are exact."""

import numpy as np
import pytest

import artigrad as ag

from .scenes import hard

DT = 1e-4
FREE = 2e-4  # relative change of the energy in a step of free flight, by the gyroscopic moment
HALF = np.array([0.1, 0.06, 0.15])


def brick(e, mu=0.5, flap=False):
    """flap: with a leaf on a hinge at its limit, that dry friction brakes."""
    b = ag.ModelBuilder("brick", gravity=(0, 0, 0))
    b.add_plane(restitution=e, friction=mu)
    b.add_body("a", joint="free", mass=1.0, inertia=tuple((HALF @ HALF - HALF * HALF) / 3))
    b.add_box("a", HALF, friction=mu, restitution=e)
    if flap:
        place = {"position": (0.1, 0, 0), "com": (0.1, 0, 0.02), "inertia": (1e-3, 2e-3, 2e-3)}
        b.add_body("f", "a", joint="revolute", axis=(0, 1, 0), mass=0.3, limit=(0, 1), dry_friction=0.5, **place)
    return b.build()


def falls(seed):
    """A brick that is about to hit the floor with a corner."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=4)
    a, x, y, z = w / np.linalg.norm(w)
    down = np.array([2 * (x * z - a * y), 2 * (y * z + a * x), 1 - 2 * (x * x + y * y)])
    v = rng.normal(size=6) * [1, 1, 1, 6, 6, 6]
    v[2] -= 1.0
    return np.array([0, 0, abs(down) @ HALF + 5e-5, a, x, y, z]), v


def energies(sim, traj):
    return np.array([sim.outputs(ag.State(traj.q[:, k], traj.v[:, k])).kinetic_energy for k in (0, -1)])


def hits(traj, before, after):
    """The bricks that bounce without a change of energy: those to which Newton's hypothesis would give some."""
    return (np.abs(after / before - 1) < FREE) & (np.abs(traj.v[:, 1, :3] - traj.v[:, 0, :3]).max(1) > 0.05)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("e", [0.7, 0.9, 1.0])
def test_kinetic_energy_does_not_increase(e, cone):
    sim = hard(brick(e), dt=DT, cone=cone)
    q, v = (np.array(x) for x in zip(*map(falls, range(200)), strict=True))
    traj = sim.rollout(ag.State(q, v), steps=1)
    before, after = energies(sim, traj)
    assert (traj.violation == 0.0).all()
    assert (after <= before * (1 + FREE)).all()
    if e > 0.8:
        assert (hits(traj, before, after)).sum() > 5


@pytest.mark.parametrize("flap", [False, True])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_gradients_where_the_energy_bounds_a_bounce(cone, flap):
    sim, h = hard(brick(0.9, flap=flap), dt=DT, cone=cone), 1e-6
    nv = sim.model.nv
    q, v = (np.array(x) for x in zip(*map(falls, range(300)), strict=True))
    if flap:
        q, v = np.c_[q, np.full(300, 1e-5)], np.c_[v, np.tile([-0.5, 0.5], 150)]
    all_of_them = sim.rollout(ag.State(q, v), steps=1)
    margin = sim.vjp(all_of_them, v_bar=np.ones((300, nv))).health.switch_margin
    found = np.flatnonzero(hits(all_of_them, *energies(sim, all_of_them)) & (margin > 1e-2))
    assert len(found) > 3
    for k in found[:6]:
        traj, bar = sim.rollout(ag.State(q[k], v[k]), steps=1), np.random.default_rng(k).normal(size=nv)
        grad = sim.vjp(traj, v_bar=bar)
        slope = np.concatenate([ag.to_tangent(sim.model, q[k], grad.q0), grad.v0])

        def loss(d, k=k, bar=bar):
            return sim.step(ag.State(ag.integrate(sim.model, q[k], d[:nv]), v[k] + d[nv:])).v @ bar

        fine, coarse = (np.array([loss(s * d) - loss(-s * d) for d in np.eye(2 * nv)]) / (2 * s) for s in (h, 2 * h))
        assert np.abs((4 * fine - coarse) / 3 - slope).max() < 1e-6 * np.abs(slope).max()
    state = ag.State(q[found[0]], v[found[0]])
    rows = ag.gradcheck(sim, steps=1, samples=1, tolerance=np.inf, show=False, state=state)
    bad = [
        r
        for r in rows
        if r.what not in ("dry_friction",) and r.error * max(r.largest, 1e-3) > 1e-5 * max(r.largest, 1.0)
    ]
    assert not bad and {"friction", "restitution"} <= {r.what for r in rows}, bad
