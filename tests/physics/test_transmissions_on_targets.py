"""Tendons, actuators on several axes, fluids, gravity compensation and nonlinear springs: equal on every target and in
any
batch."""

import re

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler.cuda import driver
from artigrad.compiler.cuda.ptx import ptx
from artigrad.simulate.gradcheck import random_state
from tests.compiler.host_device import Recorder

from .test_springs import ROBOT as SPRINGS
from .test_transmissions import ROBOT

WET = ROBOT.format(integrator="implicitfast").replace("<option ", '<option density="500" viscosity=".1" wind="0 1 0" ')
WET = WET.replace('<body name="a" ', '<body name="a" gravcomp=".5" ').replace("implicitfast", "Euler")


@pytest.fixture(scope="module", params=[WET, SPRINGS.format(integrator="Euler")], ids=["lines", "springs"])
def model(request):
    return ag.load(request.param)


def gradients(sim, state, u):
    traj = sim.rollout(state, u)
    grad = sim.vjp(traj, q_bar=np.ones_like(traj.q), v_bar=np.ones_like(traj.v))
    return {"q": traj.q, "v": traj.v, "q0": grad.q0, "v0": grad.v0, "u": grad.u, "params": grad.params.flat}


def test_numpy_agrees_with_native(model):
    state, u = random_state(model, np.random.default_rng(0)), np.full((2, model.nu), 0.3)
    native, plain = (gradients(ag.Simulator(model, backend=b), state, u) for b in ("native", "numpy"))
    for name, x in native.items():
        np.testing.assert_allclose(plain[name], x, rtol=1e-9, atol=1e-9 * np.abs(x).max(initial=0.0), err_msg=name)


def test_simd_lanes_have_the_bits_of_one_robot(model):
    state, u = random_state(model, np.random.default_rng(1), 5), np.random.default_rng(2).normal(size=(5, 2, model.nu))
    sim = ag.Simulator(model)
    whole = gradients(sim, state, u)
    for k in range(5):
        one = gradients(sim, ag.State(state.q[k], state.v[k]), u[k])
        for name in ("q", "v", "q0", "v0", "u"):
            np.testing.assert_array_equal(whole[name][k], one[name], err_msg=name)


def test_single_precision(model):
    state, u = random_state(model, np.random.default_rng(3)), np.full((2, model.nu), 0.1)
    fine, coarse = (gradients(ag.Simulator(model, dtype=d), state, u) for d in ("f64", "f32"))
    for name in ("q", "v", "q0", "v0", "u"):
        np.testing.assert_allclose(
            coarse[name], fine[name], atol=2e-2 * np.abs(fine[name]).max(initial=0.0), err_msg=name
        )


def test_staged_for_a_gpu(model):
    device = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "device", lambda number: device)
        sim = ag.Simulator(model, dtype="f32", device="cuda")
        state = ag.State(*(np.zeros((2, n), np.float32) for n in (model.nq, model.nv)))
        state.q[:] = model.keyframe().q
        sim.vjp(sim.rollout(state, np.zeros((2, model.nu), np.float32)), v_bar=state.v)
    for name in ("artigrad_rollout", "artigrad_rollout_vjp"):
        text = ptx(device.staged[name].ir, (9, 0), 0, None)
        assert not re.search(r"\.f64|\.approx|\.ftz|\bcall\b|\.local\b", text), name
