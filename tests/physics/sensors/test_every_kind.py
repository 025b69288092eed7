"""Sensors of every kind in one model: beside MuJoCo, forward mode beside the adjoint, and on a GPU without the host."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.kernels.queries import sensors_x_size
from artigrad.physics.sensors.sensor_table import KINDS, readings_size
from artigrad.simulate.engine import Direction
from tests.physics.sensors.every_kind import TEXT, states
from tests.simulate.test_cuda_on_host import gpu  # noqa: F401

MODEL = ag.load(TEXT)


def test_the_model_has_every_kind_and_reads_as_mujoco_does():
    assert {s.kind for s in MODEL.sensors} == set(KINDS)
    m, sim, (state, u) = mujoco.MjModel.from_xml_string(TEXT), ag.Simulator(MODEL, backend="numpy"), states(MODEL, 3)
    m.opt.iterations, m.opt.tolerance = 200, 0
    m.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    d, found = mujoco.MjData(m), sim.sensors(state, u)
    idle = {s.kind for s in MODEL.sensors if not found[s.name].any()}
    assert idle == {"clock", "jointlimitfrc"}  # of one joint of two
    for k in range(3):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:], d.ctrl[:] = state.q[k], state.v[k], u[k]
        mujoco.mj_forward(m, d)
        read = np.concatenate([y[k] for y in found.values()])
        np.testing.assert_allclose(read, d.sensordata, rtol=1e-9, atol=1e-8)


def _along(sim, state, u, direction):
    """Changes of all readings along changes of state, controls and parameters."""
    x = np.zeros((len(u), sensors_x_size(MODEL)))
    x[:, : MODEL.nu] = u
    return sim.engine.query("sensors", state, x, sim.checks.params(None, len(u)), direction)


def test_forward_mode_is_the_adjoint_of_the_adjoint():
    """J d . w = d . J^T w for random d and w, every kind at once."""
    sim, (state, u), rng = ag.Simulator(MODEL, backend="numpy"), states(MODEL, 2), np.random.default_rng(1)
    found = sim.sensors(state, u)
    bars = {name: rng.normal(size=y.shape) / (1.0 + np.abs(y)) for name, y in found.items()}
    grad = sim.sensors_vjp(state, bars, u)
    d = [rng.normal(size=x.shape) for x in (state.q, state.v, u)]
    d_x = np.zeros((2, sensors_x_size(MODEL)))
    d_x[:, : MODEL.nu] = d[2]
    flat = np.where(np.isfinite(MODEL.params.flat), rng.normal(size=MODEL.params.flat.shape), 0.0)
    flat *= np.abs(MODEL.params.flat) > 0
    along = _along(sim, state, u, Direction(q=d[0], v=d[1], x=d_x, params=flat))
    assert along.shape == (2, readings_size(MODEL))
    wanted = np.sum(along * np.concatenate(list(bars.values()), 1))
    given = [np.sum(bar * x) for bar, x in zip((grad.q, grad.v, grad.u), d, strict=True)]
    assert sum(given) + np.sum(grad.params.flat * flat) == pytest.approx(wanted, rel=1e-10)


def test_on_a_gpu_no_reading_passes_the_host(gpu, monkeypatch):  # noqa: F811
    """Every kind has the numbers of the CPU; nothing is copied to the host to read them, and of the adjoint one array, the
    cotangents of the constants, which are made there."""
    cpu, there, (state, u) = ag.Simulator(MODEL), ag.Simulator(MODEL, device="cuda"), states(MODEL, 2)
    here = ag.State(*(there.engine.device.array(x) for x in state[:2]))
    u_here = there.engine.device.array(u)
    there.sensors(here, u_here)  # constants are made once
    sizes, download = [], gpu.download
    monkeypatch.setattr(gpu, "download", lambda host, *rest: (sizes.append(host.size), download(host, *rest)))
    found = there.sensors(here, u_here)
    assert sizes == []
    bars = {name: np.random.default_rng(2).normal(size=y.shape) for name, y in cpu.sensors(state, u).items()}
    bars_here = {name: there.engine.device.array(y) for name, y in bars.items()}
    grad = there.sensors_vjp(here, bars_here, u_here)
    assert len(sizes) == 1
    for name, y in cpu.sensors(state, u).items():
        np.testing.assert_allclose(found[name].numpy(), y, rtol=1e-12, atol=1e-12, err_msg=name)
    wanted = cpu.sensors_vjp(state, bars, u)
    for name in ("q", "v", "u"):
        np.testing.assert_allclose(
            getattr(grad, name).numpy(), getattr(wanted, name), rtol=1e-11, atol=1e-11, err_msg=name
        )
    np.testing.assert_allclose(grad.params.flat, wanted.params.flat, rtol=1e-10, atol=1e-10)


def test_sensors_of_a_rollout_and_their_gradients():
    """Readings of every step are those of its state; a loss on them, on the last state and on the controls has the gradient of
    differences."""
    sim, state, rng = ag.Simulator(MODEL, backend="numpy"), states(MODEL, 2)[0], np.random.default_rng(3)
    us = rng.normal(size=(2, 3, MODEL.nu))
    traj = sim.rollout(state, us, sensors=True)
    for t in range(3):
        now = sim.sensors(ag.State(traj.q[:, t], traj.v[:, t]), us[:, t], time=t * sim.dt)
        for name, y in now.items():
            np.testing.assert_allclose(traj.sensors[name][:, t], y, rtol=1e-12, atol=1e-12, err_msg=name)
    names = [s.name for s in MODEL.sensors if s.kind in ("framepos", "accelerometer", "actuatorfrc", "subtreeangmom")]
    bars = {name: rng.normal(size=traj.sensors[name].shape) for name in names}
    q_bar = rng.normal(size=traj.q[:, -1].shape)
    grad = sim.vjp(traj, q_bar, sensor_bars=bars)
    d_v, d_u = rng.normal(size=state.v.shape), rng.normal(size=us.shape)

    def loss(h):
        moved = sim.rollout(ag.State(state.q, state.v + h * d_v), us + h * d_u, sensors=True)
        return np.sum(q_bar * moved.q[:, -1]) + sum(np.sum(bar * moved.sensors[name]) for name, bar in bars.items())

    h = 1e-5
    slope = (8 * (loss(h) - loss(-h)) - loss(2 * h) + loss(-2 * h)) / (12 * h)
    assert np.sum(grad.v0 * d_v) + np.sum(grad.u * d_u) == pytest.approx(slope, rel=1e-6)
    names_only = sim.vjp(traj, sensor_bars=bars)
    other = sim.vjp(traj, q_bar)
    np.testing.assert_allclose(names_only.q0 + other.q0, grad.q0, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(names_only.params.flat + other.params.flat, grad.params.flat, rtol=1e-9, atol=1e-9)
    with pytest.raises(ag.InputError, match="no sensor 'nose'"):
        sim.vjp(traj, sensor_bars={"nose": [1.0]})
