"""On a GPU: agreement with the CPU, bits, PyTorch, streams, leaks. Skipped without a GPU.

`python -m benchmarks.cuda` checks more robots and sizes.
"""

import numpy as np
import pytest

import artigrad as ag
from artigrad.compiler import Cuda
from artigrad.compiler.cuda import driver
from artigrad.errors import DeviceError
from tests.compiler.on_devices import inputs

try:
    DEVICE, REASON = driver.device(0), ""
except DeviceError as error:
    DEVICE, REASON = None, str(error)
pytestmark = pytest.mark.skipif(DEVICE is None, reason=f"no GPU: {REASON}")

DTYPES = {"f64": (np.float64, 1e-10), "f32": (np.float32, 1e-4)}
MODELS = {
    "laikago": ag.robots.laikago,
    "hopper": ag.robots.hopper,
    "ball": lambda: ag.robots.ball(floor=True),
    "quadruped": ag.robots.quadruped,
    "random_tree": lambda: ag.robots.random_tree(3, 9),
}


def run(sim, state, u, **more):
    traj = sim.rollout(state, u, **more)
    grad = sim.vjp(traj, q_bar=np.cos(state.q), v_bar=np.sin(state.v))
    return [np.asarray(x) for x in (*traj.final, grad.q0, grad.v0, grad.u, grad.params.flat)]


def close(a, b, tolerance):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, np.abs(x).max(initial=0.0)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_the_cpu(name, dtype):
    model, (kind, tolerance) = MODELS[name](), DTYPES[dtype]
    state, u = inputs(model, 70, 6, kind)
    results = [run(ag.Simulator(model, dtype=dtype, device=device), state, u) for device in ("cpu", "cuda")]
    close(*results, tolerance)


def test_reverse_gradient_own_params_and_checkpoints():
    model, options = ag.robots.hopper(), {"law": ag.HardOptions(solver="gauss_seidel", sweeps=10, gradient="reverse")}
    state, u = inputs(model, 40, 7)
    own = model.params.replace(mass=model.params.mass * np.linspace(0.9, 1.1, 40)[:, None])
    sims = [ag.Simulator(model, device=device, **options) for device in ("cpu", "cuda")]
    close(*(run(sim, state, u, params=own, checkpoints=ag.EveryKth(3)) for sim in sims), 1e-10)


def test_functions_of_a_state():
    model = ag.robots.quadruped()
    cpu, gpu = ag.Simulator(model), ag.Simulator(model, device="cuda")
    state, u = inputs(model, 5, 1)
    close(cpu.outputs(state), [np.asarray(x) for x in gpu.outputs(state)], 1e-10)
    close([cpu.mass_matrix(state)], [gpu.mass_matrix(state).numpy()], 1e-10)
    close([cpu.forward_dynamics(state, u[:, 0])], [gpu.forward_dynamics(state, u[:, 0]).numpy()], 1e-10)


def test_same_bits_in_every_run_batch_and_launch_shape():
    model = ag.robots.laikago()
    state, u = inputs(model, 300, 5, np.float32)
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    whole = run(sim, state, u)
    for n in (300, 1, 33):
        some = run(sim, ag.State(state.q[:n], state.v[:n]), u[:n])
        for a, b in zip(whole[:5], some[:5], strict=True):
            np.testing.assert_array_equal(a[:n], b)
    sim.launch = Cuda(block=128, threads=128)
    for a, b in zip(whole, run(sim, state, u), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_leaks():
    model, rng = ag.robots.cartpole(), np.random.default_rng(0)
    sim = ag.Simulator(model, device="cuda")
    state, u = inputs(model, 500, 2)

    def work(n):
        sim.vjp(sim.rollout(ag.State(state.q[:n], state.v[:n]), u[:n]), q_bar=state.q[:n], with_params=False)

    work(500)
    before = DEVICE.used()
    for _ in range(100):
        work(int(rng.integers(1, 500)))
    sim.synchronize()
    assert DEVICE.used() == before


def test_torch_tensors_go_in_and_out_where_they_lie():
    torch = pytest.importorskip("torch")
    model = ag.robots.laikago()
    state, u = inputs(model, 64, 4, np.float32)
    sim = ag.Simulator(model, dtype="f32", device="cuda")
    there = ag.State(*(torch.tensor(x, device="cuda") for x in state))
    u_there = torch.tensor(u, device="cuda")
    traj = sim.rollout(there, u_there)
    assert traj.u.pointer == u_there.data_ptr() and isinstance(traj.final.q, torch.Tensor)
    grad = sim.vjp(traj, q_bar=torch.cos(there.q), v_bar=torch.sin(there.v))
    expected = run(sim, state, u)
    for a, b in zip(expected[:5], (*traj.final, grad.q0, grad.v0, grad.u), strict=True):
        close([a], [b.cpu().numpy()], 1e-5)
    assert bool(grad.health.finite.all())
    u_there += 1
    with pytest.raises(ag.InputError, match="changed after the rollout"):
        sim.vjp(traj, q_bar=there.q)
    with pytest.raises(ag.InputError, match="float64"):
        sim.step(ag.State(there.q.double(), there.v))


def test_two_simulators_on_two_streams():
    torch = pytest.importorskip("torch")
    jobs = []
    for model in (ag.robots.laikago(), ag.robots.hopper()):
        state, u = inputs(model, 2000, 32, np.float32)
        start = ag.State(*(torch.tensor(x, device="cuda") for x in state))
        jobs.append((ag.Simulator(model, dtype="f32", device="cuda"), start, torch.tensor(u, device="cuda")))

    def work(sim, start, u):
        traj = sim.rollout(start, u)
        return [traj.final.q, sim.vjp(traj, q_bar=traj.final.q, with_params=False).u]

    alone = [[x.clone() for x in work(*job)] for job in jobs]
    torch.cuda.synchronize()
    streams, together = [torch.cuda.Stream() for _ in jobs], []
    for _ in range(3):
        for k, job in enumerate(jobs):
            with torch.cuda.stream(streams[k]):
                together.append((k, work(*job)))
    torch.cuda.synchronize()
    for k, got in together:
        assert all(torch.equal(a, b) for a, b in zip(alone[k], got, strict=True))
