"""Checkpoint policies: the same gradient to the bit, the documented memory, the optimal schedule."""

from functools import cache

import numpy as np
import pytest

import artigrad as ag
from artigrad.simulate.checkpoints import forward_snapshots, parse_bytes, reverse, split
from artigrad.simulate.gradcheck import random_state

MODEL = ag.robots.random_tree(3, 6)
STATE_BYTES = (MODEL.nq + MODEL.nv) * 8


def gradient(policy, batch, every, steps=37, integrator="euler"):
    sim, rng = ag.Simulator(MODEL, dt=5e-3, integrator=integrator), np.random.default_rng(0)
    state = random_state(MODEL, rng, batch)
    u = 0.1 * rng.normal(size=(batch, steps, MODEL.nu))
    shape = (batch, steps + 1) if every else (batch,)
    q_bar, v_bar = rng.normal(size=(*shape, MODEL.nq)), rng.normal(size=(*shape, MODEL.nv))
    traj = sim.rollout(state, u, checkpoints=policy)
    grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)
    return [traj.final.q, traj.final.v, grad.q0, grad.v0, grad.u, grad.params.flat]


@pytest.mark.parametrize("integrator", ["euler", "explicit", "rk4"])
@pytest.mark.parametrize("every", [False, True], ids=["last", "every state"])
@pytest.mark.parametrize("batch", [1, 3])
def test_every_policy_gives_the_same_bits(batch, every, integrator):
    wanted = gradient(ag.EveryStep(), batch, every, integrator=integrator)
    states = lambda n: ag.Binomial(memory=n * batch * STATE_BYTES)  # noqa: E731
    for policy in (
        ag.EveryKth(1),
        ag.EveryKth(5),
        ag.EveryKth(100),
        states(3),
        states(4),
        states(8),
        states(30),
        states(99),
    ):
        for a, b in zip(wanted, gradient(policy, batch, every, integrator=integrator), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(policy))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "options", [{}, {"law": ag.HardOptions(solver="gauss_seidel", sweeps=5, gradient="reverse")}], ids=str
)
def test_every_policy_gives_the_same_bits_in_contact(options, batch):
    """With wrenches, parameters per batch element, and cotangents of forces."""
    model, rng, steps = ag.robots.laikago(), np.random.default_rng(1), 11
    sim = ag.Simulator(model, **options)
    mass = model.params.mass * (1.0 + 0.1 * rng.random((batch, 1)))
    state = sim.reset(batch=batch)
    state.v[:] = 0.1 * rng.normal(size=state.v.shape)
    u = model.keyframe_control() + 0.1 * rng.normal(size=(batch, steps, model.nu))
    wrench = rng.normal(size=(batch, steps, model.nb, 6))
    bars = rng.normal(size=(batch, steps + 1, model.nq)), rng.normal(size=(batch, model.nv))
    force_bar = 1e-3 * rng.normal(size=(batch, steps, len(sim.contact_names), 3))
    found = []
    for policy in (ag.EveryStep(), ag.EveryKth(4), ag.EveryKth(50), ag.Binomial(batch * 8 * 5 * (model.nq + model.nv))):
        params = model.params.replace(mass=mass)
        traj = sim.rollout(state, u, wrench=wrench, params=params, checkpoints=policy)
        grad = sim.vjp(traj, q_bar=bars[0], v_bar=bars[1], force_bar=force_bar)
        found.append([*traj.final, grad.q0, grad.v0, grad.u, grad.params.flat, grad.wrench, *grad.health])
    assert np.abs(sim.contacts(sim.rollout(state, u, wrench=wrench, params=params)).force).max() > 1.0
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@cache
def optimal(length, snapshots):
    """Return the least number of forward steps to reverse `length` steps with a number of snapshots, by dynamic programming."""
    if length <= 1:
        return 0
    if snapshots == 1:
        return length * (length - 1) // 2
    return min(m + optimal(length - m, snapshots - 1) + optimal(m, snapshots) for m in range(1, length))


@pytest.mark.parametrize("snapshots", [1, 2, 3, 5])
@pytest.mark.parametrize("blocks", [1, 2, 7, 20, 40])
def test_schedule_is_optimal_and_stays_in_memory(blocks, snapshots):
    kept = {b: b for b in forward_snapshots(blocks, snapshots)}
    work = max(kept)  # steps of the forward pass that fill the first snapshots
    most, visited = len(kept), []

    def advance(state, a, b):
        nonlocal work, most
        assert state == a
        work += b - a
        most = max(most, len(live))
        return b

    def block(state, b):
        assert state == b
        visited.append(b)

    live = kept
    reverse(blocks, snapshots, kept, advance, block)
    assert visited == list(range(blocks))[::-1]
    assert most <= snapshots
    assert work == optimal(blocks, snapshots)


def test_split_stays_inside():
    for length in range(2, 60):
        for snapshots in range(1, 8):
            assert 1 <= split(length, snapshots) <= length - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("64MB", 64_000_000), ("1.5 GB", 1_500_000_000), ("10kB", 10_000), ("64MiB", 64 * 2**20), (4096, 4096), ("7", 7)],
)
def test_memory_is_read(text, value):
    assert parse_bytes(text) == value


def test_memory_that_makes_no_sense():
    for bad in ("lots", "12 parsecs", "-4MB"):
        with pytest.raises(ag.InputError, match="64MB"):
            parse_bytes(bad)
    sim = ag.Simulator(MODEL)
    with pytest.raises(ag.InputError, match="at least 3"):
        sim.rollout(sim.reset(), steps=100, checkpoints=ag.Binomial(memory=STATE_BYTES))
    with pytest.raises(ag.InputError, match="k >= 1"):
        ag.EveryKth(0)


def test_reading_states_that_were_not_kept_raises():
    sim = ag.Simulator(MODEL)
    traj = sim.rollout(sim.reset(), steps=10, checkpoints=ag.EveryKth(3))
    with pytest.raises(ag.InputError, match="EveryStep"):
        _ = traj.q
    assert traj.final.q.shape == (MODEL.nq,)


def test_stored_states_are_all_that_is_stored():
    model = ag.robots.quadruped()
    sim = ag.Simulator(model)
    traj = sim.rollout(sim.reset(), steps=50)
    assert (traj.q.nbytes + traj.v.nbytes) / 51 == (19 + 18) * 8
    kept = sim.rollout(sim.reset(), steps=50, checkpoints=ag.EveryKth(10)).kept
    assert [(b, state.q.shape) for b, state in kept.items()] == [(0, (1, 6, 19))]  # steps 0, 10, ... 50
