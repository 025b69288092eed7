"""The soft law on every target: NumPy, one robot, SIMD vectors, both types; bits independent of other lanes."""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import widest

from .scenes import every_row, hand

LAIKAGO = ag.robots.laikago()


def inputs(model, batch, steps, seed=0):
    """Random states: some in the air, some sliding, some standing."""
    rng = np.random.default_rng(seed)
    q = np.repeat(model.keyframe().q[None], batch, 0)
    q = ag.integrate(model, q, 0.05 * rng.normal(size=(batch, model.nv)))
    u = model.keyframe_control() + 0.2 * rng.normal(size=(batch, steps, model.nu))
    return ag.State(q, 0.5 * rng.normal(size=(batch, model.nv))), u


def run(sim, state, u):
    traj = sim.rollout(state, u)
    grad = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
    return [traj.q, traj.v, traj.violation, grad.q0, grad.v0, grad.u], grad.params.flat


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize(("model", "steps"), [(LAIKAGO, 40), (ag.load(hand("elliptic")), 20)], ids=["laikago", "hand"])
def test_same_bits_in_any_batch_lane_and_thread(model, steps, dtype):
    """Lanes with and without couplings take different solvers, also in one SIMD vector."""
    batch = widest(dtype) + 3
    state, u = inputs(model, batch, steps)
    whole, _ = run(ag.Simulator(model, dtype=dtype, threads=1), state, u)
    sim = ag.Simulator(model, dtype=dtype, threads=2)
    for pick in ([0], [batch - 1, 2], list(range(batch))[::-1]):
        part, _ = run(sim, ag.State(state.q[pick], state.v[pick]), u[pick])
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[pick], b)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_numpy_agrees_with_native(cone):
    """NumPy also detects indices out of bounds."""
    model = ag.load(every_row(cone))
    state, u = inputs(model, 3, 2)
    results = [run(ag.Simulator(model, backend=backend), state, u) for backend in ("numpy", "native")]
    for a, b in zip(*(arrays for arrays, _ in results), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * (1 + np.abs(b).max()))


def test_single_precision_is_near_double():
    state, u = inputs(LAIKAGO, 8, 20)
    double, single = (run(ag.Simulator(LAIKAGO, dtype=dtype), state, u)[0] for dtype in ("f64", "f32"))
    np.testing.assert_allclose(single[0], double[0], atol=2e-3)
    np.testing.assert_allclose(single[1], double[1], atol=2e-1)
    assert (single[2] == 0).all()


def test_nan_is_reported_as_unsolved():
    sim = ag.Simulator(LAIKAGO)
    state = sim.reset()
    state.v[:] = 1e200
    with pytest.warns(RuntimeWarning, match="not finite"):
        assert sim.rollout(state, steps=2).violation[0] != 0.0
