"""Every kernel for the vector widths of other machines: 128 bits (SSE, NEON), 256 (AVX). A robot has the same bits."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.compile import host
from artigrad.simulate.gradcheck import random_state

MODELS = {"tree": ag.robots.random_tree(3, 8), "contact": ag.robots.laikago()}


def everything(model):
    """Return states, gradients, Jacobians and a query of a small batch."""
    sim = ag.Simulator(model, threads=1)
    rng = np.random.default_rng(0)
    state = random_state(sim.model, rng, 5) if not sim.model.has_contact else sim.reset(batch=5)
    state.v[:] += 0.1 * rng.normal(size=state.v.shape)
    u = rng.normal(size=(5, 3, sim.model.nu))
    traj = sim.rollout(state, u)
    grad = sim.vjp(traj, q_bar=np.ones_like(traj.final.q), v_bar=np.ones_like(traj.final.v))
    return [*traj.final, grad.q0, grad.v0, grad.u, *sim.linearize(state, u[:, 0]), sim.mass_matrix(state)], sim.lanes


@pytest.mark.parametrize(("model", "bits"), [("tree", 128), ("contact", 128), ("contact", 256)])
def test_narrower_registers(model, bits, monkeypatch):
    widest, _ = everything(MODELS[model])
    monkeypatch.setitem(host.__dict__, "vector_bytes", bits // 8)
    found, lanes = everything(MODELS[model])
    assert lanes == bits // 64
    for a, b in zip(widest, found, strict=True):
        np.testing.assert_array_equal(a, b)
