"""Sensors of every kind in one model: compared with MuJoCo, forward mode with the adjoint, and on a GPU without copies."""

import mujoco
import numpy as np
import pytest

import artigrad as ag
from artigrad.kernels.queries import sensors_x_size
from artigrad.physics.sensors.sensor_table import KINDS, readings_size
from artigrad.simulate.engine import Direction
from artigrad.simulate.function import call_of, push_forward
from artigrad.simulate.state_functions import SENSORS
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
    """Return tangents of all readings along tangents of state, controls and parameters."""
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


@pytest.fixture
def downloads(gpu, monkeypatch):  # noqa: F811
    """Return the sizes of arrays copied to the host."""
    sizes, download = [], gpu.download
    monkeypatch.setattr(gpu, "download", lambda host, *rest: (sizes.append(host.size), download(host, *rest)))
    return sizes


def _on(sim, *arrays):
    return [sim.engine.device.array(x) for x in arrays]


def test_on_a_gpu_no_reading_passes_the_host(downloads):
    """Every kind has the values of the CPU."""
    cpu, there, (state, u) = ag.Simulator(MODEL), ag.Simulator(MODEL, device="cuda"), states(MODEL, 2)
    q, v, u_here = _on(there, *state[:2], u)
    there.sensors(ag.State(q, v), u_here)  # constants are made once
    downloads.clear()
    found = there.sensors(ag.State(q, v), u_here)
    assert downloads == []
    for name, y in cpu.sensors(state, u).items():
        np.testing.assert_allclose(found[name].numpy(), y, rtol=1e-12, atol=1e-12, err_msg=name)


FEW = """<mujoco><worldbody><body><joint axis="0 1 0"/><joint type="slide" axis="1 0 0"/><geom size=".1" pos=".1 0 0"/>
    <site name="s" pos=".1 .2 .3" euler="10 20 30"/></body></worldbody>
    <sensor><gyro site="s"/><framequat objtype="site" objname="s"/><framepos objtype="site" objname="s"/></sensor></mujoco>"""


def test_on_a_gpu_gradients_of_readings_pass_the_host_for_parameters_alone(downloads):
    """One array is copied, the cotangents of the constants, from which the gradient of Params is computed."""
    model, rng = ag.load(FEW), np.random.default_rng(2)
    plain, there = ag.Simulator(model, backend="numpy"), ag.Simulator(model, device="cuda")
    state = ag.State(rng.normal(size=(2, model.nq)), rng.normal(size=(2, model.nv)))
    bars = {name: rng.normal(size=y.shape) for name, y in plain.sensors(state).items()}
    here, bars_here = ag.State(*_on(there, *state[:2])), {name: _on(there, y)[0] for name, y in bars.items()}
    there.sensors_vjp(here, bars_here)
    downloads.clear()
    grad, wanted = there.sensors_vjp(here, bars_here), plain.sensors_vjp(state, bars)
    assert len(downloads) == 1
    for name in ("q", "v"):
        np.testing.assert_allclose(getattr(grad, name).numpy(), getattr(wanted, name), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(grad.params.flat, wanted.params.flat, rtol=1e-10, atol=1e-10)


def test_on_a_gpu_a_step_and_a_rollout_with_sensors_pass_the_host_nowhere(downloads, gpu, monkeypatch):  # noqa: F811
    """No array is copied in either direction, and readings are those of the CPU."""
    model, rng, upload = ag.load(FEW), np.random.default_rng(4), gpu.upload
    monkeypatch.setattr(gpu, "upload", lambda to, host, *rest: (downloads.append(host.size), upload(to, host, *rest)))
    cpu, there = ag.Simulator(model), ag.Simulator(model, device="cuda")
    state, u = ag.State(rng.normal(size=(2, model.nq)), rng.normal(size=(2, model.nv))), np.zeros((2, 4, model.nu))
    here, u_here = ag.State(*_on(there, *state[:2])), _on(there, u)[0]
    for _ in range(2):  # constants and integers of kernels are copied once
        downloads.clear()
        there.sensors(there.step(here))
        traj = there.rollout(here, u_here, sensors=True)
        found = traj.sensors
    assert downloads == []
    for name, y in cpu.rollout(state, u, sensors=True).sensors.items():
        np.testing.assert_allclose(found[name].numpy(), y, rtol=1e-12, atol=1e-12, err_msg=name)


def test_sensors_of_a_rollout_and_their_gradients():
    """Readings of every step are those of its state.

    A loss on them, on the last state and on the controls has the gradient of differences.
    """
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
    grad = sim.vjp(traj, q_bar=q_bar, sensor_bars=bars)
    d_v, d_u = rng.normal(size=state.v.shape), rng.normal(size=us.shape)

    def loss(h):
        moved = sim.rollout(ag.State(state.q, state.v + h * d_v), us + h * d_u, sensors=True)
        return np.sum(q_bar * moved.q[:, -1]) + sum(np.sum(bar * moved.sensors[name]) for name, bar in bars.items())

    h = 1e-5
    slope = (8 * (loss(h) - loss(-h)) - loss(2 * h) + loss(-2 * h)) / (12 * h)
    assert np.sum(grad.v0 * d_v) + np.sum(grad.u * d_u) == pytest.approx(slope, rel=1e-6)
    names_only = sim.vjp(traj, sensor_bars=bars)
    other = sim.vjp(traj, q_bar=q_bar)
    np.testing.assert_allclose(names_only.q0 + other.q0, grad.q0, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(names_only.params.flat + other.params.flat, grad.params.flat, rtol=1e-9, atol=1e-9)
    with pytest.raises(ag.InputError, match="no sensor 'nose'"):
        sim.vjp(traj, sensor_bars={"nose": [1.0]})


IMPULSES = """<mujoco><worldbody><geom type="plane" size="3 3 1"/><body pos="0 0 .0999"><freejoint/><geom size=".1"/>
    <site name="s" pos=".05 0 0" euler="10 20 30"/></body></worldbody>
    <sensor><accelerometer site="s"/><gyro site="s"/></sensor></mujoco>"""


def test_means_of_accelerometers_under_impulses_have_gradients_and_tangents():
    """The mean over the coming step is differentiated through it, in both modes."""
    model, rng = ag.load(IMPULSES), np.random.default_rng(0)
    sim = ag.Simulator(model, law="hard", backend="numpy")
    q, v, d = model.keyframe().q, 0.1 * rng.normal(size=model.nv), rng.normal(size=model.nv)
    bars = {name: rng.normal(size=y.shape) for name, y in sim.sensors(ag.State(q, v)).items()}

    def loss(h):
        return sum(np.sum(bars[name] * y) for name, y in sim.sensors(ag.State(q, v + h * d)).items())

    h = 1e-5
    slope = (8 * (loss(h) - loss(-h)) - loss(2 * h) + loss(-2 * h)) / (12 * h)
    assert np.sum(sim.sensors_vjp(ag.State(q, v), bars).v * d) == pytest.approx(slope, rel=1e-7)
    given = {"q": q, "v": v, "u": np.zeros(0), "params": model.params.flat}
    call = call_of(SENSORS, sim)
    along = push_forward(call, [given[k] for k in call.inputs], [d if k == "v" else None for k in call.inputs])
    assert sum(np.sum(bar * x) for bar, x in zip(bars.values(), along, strict=True)) == pytest.approx(slope, rel=1e-7)


def test_a_model_without_sensors_reads_nothing():
    model = ag.load(IMPULSES.partition("<sensor>")[0] + "</mujoco>")
    sim = ag.Simulator(model, backend="numpy")
    traj = sim.rollout(sim.reset(), steps=2, sensors=True)
    assert sim.sensors(sim.reset()) == traj.sensors == {}
