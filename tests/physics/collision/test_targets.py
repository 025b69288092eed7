"""Solids on every target: NumPy, one robot, SIMD vectors; bits independent of other lanes; PTX."""

import re

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import widest
from artigrad.compiler.cuda import array, driver, total
from artigrad.compiler.cuda.ptx import ptx
from artigrad.model import tangent
from tests.compiler.host_device import Recorder

from .test_gradients import HULLS, PLACES, SOLIDS, scene

# box-box, cylinder-box, box-points, plane-hull, hull-hull
MODEL, Q = scene([PLACES[10], SOLIDS[10], SOLIDS[12], HULLS[1], HULLS[3]])


def inputs(batch):
    """Random states in which some pairs touch."""
    rng = np.random.default_rng(0)
    q = tangent.integrate(MODEL, np.repeat(Q[None], batch, 0), 0.02 * rng.normal(size=(batch, MODEL.nv)))
    return ag.State(q, 0.3 * rng.normal(size=(batch, MODEL.nv)))


def run(sim, state, steps=3):
    traj = sim.rollout(state, np.zeros((steps, 0)))
    gradient = sim.vjp(traj, q_bar=np.cos(traj.q), v_bar=np.sin(traj.v))
    return [traj.q, traj.v, gradient.q0, gradient.v0, gradient.health.switch_margin], gradient.params.flat


def test_bits_do_not_depend_on_other_lanes():
    batch = widest("f32") + 3
    state, sim = inputs(batch), ag.Simulator(MODEL, 1e-3, dtype="f32")
    whole, _ = run(sim, state)
    assert all(np.isfinite(x).all() for x in whole)
    for pick in ([0], [batch - 1, 2], list(range(batch))[::-1]):
        part, _ = run(sim, ag.State(state.q[pick], state.v[pick]))
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[pick], b)


def test_numpy_agrees_with_native():
    state = inputs(3)
    results = []
    for backend in ("numpy", "native"):
        with np.errstate(all="ignore"):
            arrays, params = run(ag.Simulator(MODEL, 1e-3, backend=backend), state, 1)
        results.append([*arrays, params])
    for a, b in zip(*results, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7 * max(1.0, np.abs(a).max()))


def test_ptx_has_no_memory_of_its_own():
    device = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "device", lambda number: device)
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
        sim = ag.Simulator(MODEL, 1e-3, dtype="f32", device="cuda")
        state = ag.State(*(x.astype(np.float32) for x in inputs(2)))
        sim.vjp(sim.rollout(state, np.zeros((2, 0), np.float32)), q_bar=state.q)
        for kept in (array._copy_rows, total._loaded):
            kept.cache_clear()
    for name in ("artigrad_rollout", "artigrad_rollout_vjp"):
        text = ptx(device.staged[name].ir, (9, 0), 1, None)
        for wrong in (r"(add|sub|mul|div|sqrt)\.f(32|64)", r"\.approx", r"\.f64", r"\bcall\b", r"\.local\b"):
            assert not re.search(wrong, text), (name, wrong)
