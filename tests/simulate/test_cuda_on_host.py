"""CUDA target without a GPU: its kernels, run thread by thread on this CPU, have the bits of the CPU target.

Covers layout, indexing, launch shapes, arrays and the public API. The driver is tested in tests/compiler/test_driver.py,
the GPU in tests/simulate/test_cuda.py.
"""

import copy
import gc
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import Cuda
from artigrad.compiler.cuda import array, dlpack, driver
from artigrad.compiler.cuda.total import total
from tests.compiler.host_device import HostDevice
from tests.compiler.on_devices import check, inputs, same
from tests.physics.constraints.soft.scenes import every_row


def on_ground():
    """A capsule that touches a height field."""
    b = ag.ModelBuilder("ground")
    b.add_height_field("world", 0.15 * np.random.default_rng(1).uniform(size=(5, 6)), (0.7, 0.6), 0.2)
    b.add_body("b", joint="free", mass=0.5, inertia=(0.01, 0.02, 0.015), position=(0.08, -0.05, 0.36))
    b.add_capsule("b", 0.1, 0.2)
    return b.build()


ROBOTS = {
    "laikago": ag.robots.laikago,
    "ant": ag.robots.ant,
    "hopper": ag.robots.hopper,
    "cartpole": ag.robots.cartpole,
    "ball": lambda: ag.robots.ball(floor=True),
    "every row": lambda: ag.load(every_row("elliptic", "implicitfast")),
    "ground": on_ground,
}


@pytest.fixture
def gpu(monkeypatch):
    """Return a host device in place of GPU 0."""
    device = HostDevice()
    monkeypatch.setattr(driver, "device", lambda number: device)
    for kept in (array._copy_rows, _totals()):
        kept.cache_clear()
    yield device
    for kept in (array._copy_rows, _totals()):
        kept.cache_clear()


def _totals():
    from artigrad.compiler.cuda import total as module

    return module._loaded


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "f64") for name in ROBOTS), ("laikago", "f32"), ("ground", "f32")]
)
def test_rollouts_and_gradients_have_the_bits_of_the_cpu(gpu, name, dtype):
    model = ROBOTS[name]()
    state, u = inputs(model, 5, 4, np.float64 if dtype == "f64" else np.float32)
    check(ag.Simulator(model, dtype=dtype), ag.Simulator(model, dtype=dtype, device="cuda"), state, u)


@pytest.mark.parametrize("batch", [1, 31, 33, 70, 300])
def test_any_batch_in_any_launch_shape(gpu, batch):
    model = ag.robots.cartpole()
    state, u = inputs(model, batch, 3)
    cpu, sim = ag.Simulator(model), ag.Simulator(model, device="cuda")
    for launch in (Cuda(), Cuda(block=32, threads=32), Cuda(block=128, threads=128)):
        sim.launch = launch
        check(cpu, sim, state, u)


@pytest.mark.parametrize("policy", [ag.EveryKth(3), ag.Binomial(memory=6000)])
def test_checkpoint_policies(gpu, policy):
    model = ag.robots.hopper()
    state, u = inputs(model, 3, 11)
    check(ag.Simulator(model), ag.Simulator(model, device="cuda"), state, u, checkpoints=policy)


def test_reverse_gradient(gpu):
    model, options = ag.robots.hopper(), {"law": ag.HardOptions(solver="gauss_seidel", sweeps=10, gradient="reverse")}
    state, u = inputs(model, 4, 3)
    check(ag.Simulator(model, **options), ag.Simulator(model, device="cuda", **options), state, u)


def test_params_per_robot_wrenches_and_cotangents_of_all_states(gpu):
    model, batch, T = ag.robots.hopper(), 37, 3
    state, u = inputs(model, batch, T)
    rng = np.random.default_rng(1)
    params = model.params.replace(mass=model.params.mass * rng.uniform(0.9, 1.1, (batch, model.nb)))
    wrench = rng.normal(size=(batch, T, model.nb, 6))
    q_bar, v_bar = rng.normal(size=(batch, T + 1, model.nq)), rng.normal(size=(batch, model.nv))
    found = []
    for sim in (ag.Simulator(model), ag.Simulator(model, device="cuda")):
        traj = sim.rollout(state, u, params=params, wrench=wrench)
        found.append((traj, sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)))
    (a, x), (b, y) = found
    for left, right in zip((a.q, a.v, *x[:3], x.wrench), (b.q, b.v, *y[:3], y.wrench), strict=True):
        same(left, right)
    np.testing.assert_allclose(x.params.flat, y.params.flat, rtol=1e-12, atol=1e-12)


def test_shared_controls_are_summed(gpu):
    model, batch, T = ag.robots.cartpole(), 600, 4
    state, u = inputs(model, batch, T)
    found = []
    for sim in (ag.Simulator(model), ag.Simulator(model, device="cuda")):
        found.append(sim.vjp(sim.rollout(state, u[0]), q_bar=state.q, v_bar=state.v))
    assert np.shape(found[1].u) == (T, model.nu)
    np.testing.assert_allclose(found[0].u, np.asarray(found[1].u), rtol=1e-12)
    np.testing.assert_allclose(found[0].params.flat, found[1].params.flat, rtol=1e-10, atol=1e-12)


def test_one_robot_step_and_zero_control(gpu):
    model = ag.robots.ball()
    cpu, sim = ag.Simulator(model), ag.Simulator(model, device="cuda")
    same(sim.step(sim.reset()).q, cpu.step(cpu.reset()).q)
    same(sim.rollout(sim.reset(batch=3), steps=5).v, cpu.rollout(cpu.reset(batch=3), steps=5).v)
    assert sim.rollout(sim.reset(), steps=0).final.q.shape == (model.nq,)


def test_functions_of_a_state(gpu):
    model = ag.robots.quadruped()
    cpu, sim = ag.Simulator(model), ag.Simulator(model, device="cuda")
    rng = np.random.default_rng(0)
    q = np.repeat(model.keyframe()[0][None], 6, 0).reshape(2, 3, model.nq)
    state = ag.State(q, rng.normal(size=(2, 3, model.nv)))
    u, a = rng.normal(size=(2, 3, model.nu)), rng.normal(size=(2, 3, model.nv))
    for name, left in cpu.outputs(state)._asdict().items():
        same(left, getattr(sim.outputs(state), name))
    same(cpu.forward_dynamics(state, u), sim.forward_dynamics(state, u))
    same(cpu.inverse_dynamics(state, a), sim.inverse_dynamics(state, a))
    same(cpu.mass_matrix(state), sim.mass_matrix(state))
    M_bar = rng.normal(size=(2, 3, model.nv, model.nv))
    bars = ag.Outputs(body_position=rng.normal(size=(2, 3, model.nb, 3)), kinetic_energy=rng.normal(size=(2, 3)))
    for call in (
        lambda s: s.outputs_vjp(state, bars),
        lambda s: s.forward_dynamics_vjp(state, u, a),
        lambda s: s.inverse_dynamics_vjp(state, a, a),
        lambda s: s.mass_matrix_vjp(state, M_bar),
    ):
        x, y = call(cpu), call(sim)
        same(x.q, y.q)
        same(x.v, y.v)
        if x.u is not None:
            same(x.u, y.u)
        np.testing.assert_allclose(x.params.flat, y.params.flat, rtol=1e-11, atol=1e-11)


def test_linearize(gpu):
    model = ag.robots.hopper()
    cpu, sim = ag.Simulator(model), ag.Simulator(model, device="cuda")
    state, u = inputs(model, 3, 1)
    for a, b in zip(cpu.linearize(state, u[:, 0]), sim.linearize(state, u[:, 0]), strict=True):
        same(a, b)
    for a, b in zip(cpu.linearize(cpu.reset()), sim.linearize(sim.reset()), strict=True):
        same(a, b)


def test_forces_of_contact_and_a_table_that_is_full(gpu):
    model = ag.robots.hopper()
    cpu, sim = ag.Simulator(model), ag.Simulator(model, device="cuda")
    state, u = inputs(model, 3, 4)
    found = []
    for one in (cpu, sim):
        traj = one.rollout(state, u)
        contacts = one.contacts(traj)
        found.append((contacts, one.vjp(traj, force_bar=np.ones(np.shape(contacts.force)), with_params=False)))
    for a, b in zip((*found[0][0], *found[0][1][:3]), (*found[1][0], *found[1][1][:3]), strict=True):
        same(a, b)
    small = ag.Simulator(ag.robots.laikago(), device="cuda", max_contacts=2)
    with pytest.raises(ag.ContactError, match="max_contacts"):
        small.rollout(small.reset(batch=2), steps=5)


def test_nothing_is_left_on_the_device(gpu):
    model = ag.robots.cartpole()
    state, u = inputs(model, 40, 3)

    def work():
        sim = ag.Simulator(model, device="cuda")
        return sim.vjp(sim.rollout(state, u), q_bar=state.q).q0.numpy()

    work()
    before = len(gpu.blocks)
    for _ in range(3):
        work()
    assert len(gpu.blocks) == before


def test_gradient_that_is_not_finite_is_reported(gpu):
    model = ag.robots.cartpole()
    state, u = inputs(model, 4, 3)
    sim = ag.Simulator(model, device="cuda")
    traj = sim.rollout(state, u)
    q_bar = np.zeros((4, model.nq))
    bad = array.array(gpu, np.where(np.arange(4)[:, None] == 2, np.nan, q_bar))
    assert np.asarray(sim.vjp(traj, q_bar=bad).health.finite).tolist() == [1, 1, 0, 1]


def test_wrong_input(gpu):
    model = ag.robots.laikago()
    sim = ag.Simulator(model, device="cuda")
    state = sim.reset(batch=2)
    with pytest.raises(ag.InputError, match="quaternion"):
        sim.step(ag.State(np.zeros((2, model.nq)), np.zeros((2, model.nv))))
    with pytest.raises(ag.InputError, match="finite"):
        sim.step(state, np.full((2, model.nu), np.nan))
    with pytest.raises(ag.InputError, match=r"works in float64"):
        sim.step(ag.State(array.array(gpu, np.zeros((2, model.nq), np.float32)), state.v))
    with pytest.raises(ag.InputError, match=r"has q"):
        sim.step(ag.State(state.q[:, 1:].copy(), state.v))
    with pytest.raises(ag.InputError, match="at least one"):
        sim.reset(batch=0)
    with pytest.raises(ag.InputError, match="device is"):
        ag.Simulator(model, device="cuda-1")
    with pytest.raises(ag.InputError, match="device is"):
        ag.Simulator(model, device="gpu")
    with pytest.raises(ag.InputError, match="backend"):
        ag.Simulator(model, device="cuda", backend="numpy")
    with pytest.raises(ag.InputError, match="other device"):
        ag.Simulator(model).vjp(sim.rollout(state, steps=1))


def test_a_simulator_can_be_copied_and_pickled(gpu):
    model = ag.robots.cartpole()
    sim = ag.Simulator(model, device="cuda")
    expected = sim.step(sim.reset()).q.numpy()
    for other in (copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))):
        same(other.step(other.reset()).q, expected)


# -- arrays ------------------------------------------------------------------------------------------------------------
def test_views_and_copies(gpu):
    host = np.arange(60.0).reshape(4, 5, 3)
    x = array.array(gpu, host)
    for key in (
        0,
        -1,
        slice(1, 3),
        (slice(None), 2),
        (slice(None), slice(1, 4)),
        (..., 0),
        None,
        (1, 2),
        (..., slice(3, 3)),
    ):
        same(x[key], host[key])
        same(x[key].copy(), host[key])
    same(x.reshape(20, 3), host.reshape(20, 3))
    same(x[:, :, :2].reshape(4, 10), host[:, :, :2].reshape(4, 10))
    y, other = x.copy(), host.copy()
    y[:, 1], other[:, 1] = x[:, 4], host[:, 4]
    y[..., 0], other[..., 0] = x[..., 2], host[..., 2]
    same(y, other)
    same(x, host)
    about = x[:, 1].__cuda_array_interface__
    assert about["shape"] == (4, 3) and about["strides"] == (120, 24 // 3) and about["typestr"] == "<f8"
    assert "DeviceArray" in repr(x) and len(x) == 4 and x.nbytes == host.nbytes
    with pytest.raises(ag.InputError, match="integers and slices"):
        x[np.array([1, 2])]


def test_arrays_of_others_are_used_where_they_lie(gpu):
    class Other:
        def __init__(self, x):
            self.__cuda_array_interface__ = x.__cuda_array_interface__
            self.keep = x

    host = np.arange(12.0).reshape(4, 3)
    x = array.array(gpu, host)
    found = array.foreign(gpu, "x", Other(x), np.dtype(np.float64))
    assert found.pointer == x.pointer
    same(found, host)
    turned = array.foreign(gpu, "x", Other(x[:, :2]), np.dtype(np.float64))
    assert turned.contiguous
    same(turned, host[:, :2])


def test_tensors_of_torch_are_used_where_they_lie(gpu, monkeypatch):
    torch = pytest.importorskip("torch")
    made = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *a, device=None, **k: made(*a, **k)
    )  # tensors of the host play those of CUDA
    monkeypatch.setattr(torch.cuda, "current_stream", lambda number: SimpleNamespace(cuda_stream=7))
    monkeypatch.setattr(
        array, "is_torch", lambda x: isinstance(x.owner if isinstance(x, array.DeviceArray) else x, torch.Tensor)
    )
    model = ag.robots.hopper()
    state, u = inputs(model, 6, 4)
    sim = ag.Simulator(model, device="cuda")
    there, u_there = ag.State(*map(torch.tensor, state)), torch.tensor(u, requires_grad=True)
    expected = sim.rollout(state, u)
    gpu.launches.clear()
    traj = sim.rollout(there, u_there)
    assert {stream for *_, stream in gpu.launches} == {7}
    assert traj.u.pointer == u_there.data_ptr()
    for x, y in zip(
        (expected.q, *expected.final, expected.violation), (traj.q, *traj.final, traj.violation), strict=True
    ):
        assert isinstance(y, torch.Tensor) and not y.requires_grad
        same(x, y)
    back, forth = sim.vjp(expected, q_bar=state.q, v_bar=state.v), sim.vjp(traj, q_bar=there.q, v_bar=there.v)
    for x, y in zip((*back[:3], *back.health[1:]), (*forth[:3], *forth.health[1:]), strict=True):
        assert isinstance(y, torch.Tensor)
        same(x, y)
    assert forth.health.finite.dtype == torch.bool and forth.health.finite.all()
    same(sim.step(there, u_there[:, 0]).q, traj.q[:, 1])
    same(sim.step(ag.State(there.q.T.contiguous().T, there.v), u[:, 0]).q, traj.q[:, 1])
    for name, x in sim.outputs(state)._asdict().items():
        same(x, getattr(sim.outputs(there), name))
    bars = ag.Outputs(body_position=torch.ones(6, model.nb, 3, dtype=torch.float64), com=np.ones((6, 3)))
    same(sim.outputs_vjp(there, bars).q, ag.Simulator(model).outputs_vjp(state, ag.Outputs(*map(_host, bars))).q)
    same(sim.mass_matrix(there), sim.mass_matrix(state))
    with torch.no_grad():
        u_there += 1
    with pytest.raises(ag.InputError, match="changed after the rollout"):
        sim.vjp(traj, q_bar=there.q)
    with pytest.raises(ag.InputError, match="works in float64"):
        sim.step(ag.State(there.q.float(), there.v))


def _host(x):
    return None if x is None else np.asarray(x)


def test_dlpack_both_ways(gpu, monkeypatch):
    monkeypatch.setattr(array.DeviceArray, "__dlpack_device__", lambda x: (1, 0))  # which NumPy can read
    host = np.arange(60.0).reshape(4, 5, 3)
    x = array.array(gpu, host)
    for view, expected in ((x, host), (x[:, 1:3], host[:, 1:3]), (x[1, 2], host[1, 2])):
        same(np.from_dlpack(view), expected)
    seen = np.from_dlpack(x[:, 1])
    del x, view
    gc.collect()
    same(seen, host[:, 1])  # the memory is kept while a view of it exists
    del seen
    gc.collect()
    assert not dlpack._lent

    class Other:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, stream=None):
            return made.__dlpack__(stream=stream)

    made = array.array(gpu, host)
    found = array.foreign(gpu, "x", Other(), np.dtype(np.float64))
    assert found.pointer == made.pointer
    same(found, host)
    del found
    gc.collect()
    assert not dlpack._lent


@pytest.mark.parametrize("rows", [1, 2, 256, 257, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_robots(gpu, rows, dtype):
    host = np.random.default_rng(0).normal(size=(rows, 2, 3)).astype(dtype)
    for out in (np.float32, np.float64):
        found = total(array.array(gpu, host), np.dtype(out))
        assert found.dtype == out
        np.testing.assert_allclose(found, host.sum(0, dtype=np.float64), rtol=1e-6 if out == np.float32 else 1e-12)
