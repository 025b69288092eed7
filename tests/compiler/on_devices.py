"""Inputs for kernels on several devices, and comparison of the results."""

import numpy as np

import artigrad as ag


def inputs(model, batch, T, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    q, v = model.keyframe()
    q = np.repeat(q[None], batch, 0)
    v = np.repeat(v[None], batch, 0) + 0.1 * rng.normal(size=(batch, model.nv))
    u = 0.1 * rng.normal(size=(batch, T, model.nu))
    control = model.keyframe_control() if hasattr(model, "keyframe_control") else 0.0
    return ag.State(q.astype(dtype), v.astype(dtype)), (u + control).astype(dtype)


def same(a, b):
    """Return True for equal bits."""
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def check(cpu, gpu, state, u, **more):
    """Compare rollout and gradient of both devices bit by bit."""
    results = []
    for sim in (cpu, gpu):
        traj = sim.rollout(state, u, **more)
        q_bar = np.cos(np.arange(cpu.model.nq)) * np.ones_like(state.q)
        v_bar = np.sin(np.arange(cpu.model.nv)) * np.ones_like(state.v)
        grad = sim.vjp(traj, q_bar=q_bar.astype(state.q.dtype), v_bar=v_bar.astype(state.v.dtype))
        results.append((traj, grad))
    (a, x), (b, y) = results
    for left, right in zip((*a.final, a.violation, *x[:3]), (*b.final, b.violation, *y[:3]), strict=True):
        same(left, right)
    same(x.health.violation, y.health.violation)
    same(x.health.switch_margin, y.health.switch_margin)
    assert np.asarray(y.health.finite).all() and x.health.finite.all()
    scale = np.abs(x.params.flat).max()
    np.testing.assert_allclose(
        x.params.flat, y.params.flat, rtol=1e-6 if cpu.dtype == "f32" else 1e-12, atol=1e-9 * scale
    )
    return results
