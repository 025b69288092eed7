"""One source on every target: NumPy, one robot, SIMD vectors. A robot has the same bits on all.

The NumPy target fills scratch arrays with NaN, so that these tests also show that no stage reads what it has not written.
"""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import widest
from artigrad.simulate.gradcheck import random_state

MODELS = [ag.robots.quadruped(), ag.robots.random_tree(3, 10), ag.robots.cartpole(2)]


def run(sim, state, u, wrench=None):
    traj = sim.rollout(state, u, wrench=wrench)
    grad = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
    return [traj.q, traj.v, grad.q0, grad.v0, grad.u] + ([grad.wrench] if wrench is not None else []), grad.params.flat


def inputs(model, batch, steps=4, seed=0):
    rng = np.random.default_rng(seed)
    return random_state(model, rng, batch), 0.3 * rng.normal(size=(batch, steps, model.nu))


@pytest.mark.parametrize("integrator", ["euler", "explicit", "rk4"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_numpy_agrees_with_native(model, integrator):
    state, u = inputs(model, 5)
    results = []
    for backend in ("numpy", "native"):
        sim = ag.Simulator(model, dt=1e-2, integrator=integrator, backend=backend)
        arrays, params = run(sim, state, u)
        results.append([*arrays, params])
    for a, b in zip(*results, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("factor", ["articulated", "sparse"])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_same_bits_in_any_batch_lane_and_thread(model, dtype, factor):
    lanes = widest(dtype)
    batch = 2 * lanes + 3
    state, u = inputs(model, batch)
    wrench = np.random.default_rng(1).normal(size=(batch, 4, model.nb, 6))
    sims = [ag.Simulator(model, dtype=dtype, factor=factor, threads=t) for t in (1, 2, 3)]
    whole, _ = run(sims[0], state, u, wrench)
    for sim in sims[1:]:
        for a, b in zip(whole, run(sim, state, u, wrench)[0], strict=True):
            np.testing.assert_array_equal(a, b)
    for pick in ([0], [batch - 1], [lanes + 1, 0, 5], list(range(batch))[::-1]):  # one robot; other lanes; other order
        part, _ = run(sims[0], ag.State(state.q[pick], state.v[pick]), u[pick], wrench[pick])
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[pick], b)
    single, _ = run(sims[0], ag.State(state.q[4], state.v[4]), u[4], wrench[4])
    for a, b in zip(whole, single, strict=True):
        np.testing.assert_array_equal(a[4], b)


def test_narrower_packs_have_the_same_bits():
    model = ag.robots.laikago()
    state, u = ag.Simulator(model).reset(batch=5), np.random.default_rng(0).normal(size=(5, 4, model.nu))
    whole, _ = run(ag.Simulator(model), state, u)
    narrow, _ = run(ag.Simulator(model, lanes=2), state, u)
    for a, b in zip(whole, narrow, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_queries_agree_between_targets_and_shapes(backend):
    model = MODELS[1]
    sim, reference = ag.Simulator(model, backend=backend), ag.Simulator(model)
    state = random_state(model, np.random.default_rng(0), 6)
    shaped = ag.State(state.q.reshape(2, 3, -1), state.v.reshape(2, 3, -1))
    one = [reference.outputs(ag.State(q, v)) for q, v in zip(*state, strict=True)]
    many, grid = sim.outputs(state), sim.outputs(shaped)
    for k in range(len(many)):
        np.testing.assert_allclose(many[k], np.array([o[k] for o in one]), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(grid[k].reshape(many[k].shape), many[k])
    np.testing.assert_allclose(sim.mass_matrix(state), reference.mass_matrix(state), rtol=1e-12, atol=1e-12)


def test_two_factors_agree():
    model = ag.robots.random_tree(9, 25)
    state, u = inputs(model, 4)
    a, b = (run(ag.Simulator(model, factor=f), state, u) for f in ("articulated", "sparse"))
    for x, y in zip([*a[0], a[1]], [*b[0], b[1]], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * max(1.0, np.abs(x).max()))
