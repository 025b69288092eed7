"""Tensors on a GPU, without one: tensors of the host play those of CUDA, kernels of CUDA run thread by thread on this CPU."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import artigrad as ag
import artigrad.torch as at
from artigrad.compiler.cuda import array, driver
from artigrad.torch import recorded_loop, tensor_checks, tensor_functions
from tests.compiler.host_device import HostDevice
from tests.family import CALLS, MODEL, inputs, of_all

STREAM = 7


@pytest.fixture
def gpu(monkeypatch):
    from artigrad.compiler.cuda import total

    device, made = HostDevice(), torch.empty
    monkeypatch.setattr(driver, "device", lambda number: device)
    monkeypatch.setattr(torch, "empty", lambda *a, device=None, **k: made(*a, **k))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda number: SimpleNamespace(cuda_stream=STREAM))
    monkeypatch.setattr(
        array, "is_torch", lambda x: isinstance(x.owner if isinstance(x, array.DeviceArray) else x, torch.Tensor)
    )
    for module in (tensor_checks, tensor_functions):
        monkeypatch.setattr(module, "device_of", lambda sim: torch.device("cpu"))
    for kept in (array._copy_rows, total._loaded):
        kept.cache_clear()
    yield device
    for kept in (array._copy_rows, total._loaded):
        kept.cache_clear()


def results(call, given):
    out = call(*given)
    return out, torch.autograd.grad(sum(x.sin().sum() for x in out), given, allow_unused=True)


@pytest.mark.parametrize("name", CALLS)
def test_numbers_are_those_of_the_cpu(gpu, name):
    cpu, there = (of_all(name, at, ag.Simulator(MODEL, device=device)) for device in ("cpu", "cuda"))
    x = inputs((3,))
    given = [torch.tensor(x[k], requires_grad=True) for k in cpu[1]]
    (a, a_bars), (b, b_bars) = results(cpu[0], given), results(there[0], given)
    torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(a_bars, b_bars, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["step", "outputs", "sensors", "mass_matrix"])
def test_forward_mode_is_that_of_the_cpu(gpu, name):
    cpu, there = (of_all(name, at, ag.Simulator(MODEL, device=device)) for device in ("cpu", "cuda"))
    x = inputs((3,))
    given = tuple(torch.tensor(x[k]) for k in cpu[1])
    along = tuple(x.cos() for x in given)
    a, b = (torch.func.jvp(call[0], given, along)[1] for call in (cpu, there))
    torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_all_work_goes_to_the_stream_of_pytorch_and_no_state_to_the_host(gpu, monkeypatch):
    sim = ag.Simulator(MODEL, device="cuda")
    x = {k: torch.tensor(y) for k, y in inputs((3,)).items()}

    def work():
        u = x["us"].clone().requires_grad_()
        states = at.rollout(sim, (x["q"], x["v"]), u)
        forces = at.contacts(sim, (states.q[:, :-1], states.v[:, :-1]), u).force
        sites = at.sites(sim, states)
        (states.q.sum() + forces.sum() + sites.sum()).backward()
        return u.grad

    first = work()
    gpu.launches.clear()
    monkeypatch.setattr(HostDevice, "download", lambda *_: pytest.fail("numbers went to the host"))
    torch.testing.assert_close(work(), first, rtol=0, atol=0)
    assert {stream for *_, stream in gpu.launches} == {STREAM}


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(MODEL.nq + MODEL.nv, 8), nn.Tanh(), nn.Linear(8, MODEL.nu)).double()

    def forward(self, q, v, t):
        return self.net(torch.cat([q, v], -1))


@pytest.mark.parametrize("options", [{}, {"decay": 0.9, "clip": 0.5, "truncate": 3}])
def test_a_policy_in_the_loop(gpu, options):
    x, policy = {k: torch.tensor(y, requires_grad=True) for k, y in inputs((3,)).items()}, Policy()
    found = []
    for device in ("cpu", "cuda"):
        sim = ag.Simulator(MODEL, device=device)
        loop = at.closed_loop(
            sim, policy, (x["q"], x["v"]), 5, params={"mass": x["mass"]}, gradient_options=ag.GradientOptions(**options)
        )
        loss = sum(y.sin().sum() for y in loop)
        found.append((tuple(loop), torch.autograd.grad(loss, (x["q"], x["v"], x["mass"], *policy.parameters()))))
    torch.testing.assert_close(found[0], found[1], rtol=1e-10, atol=1e-12)


def test_a_recorded_loop(gpu, monkeypatch):
    """The substitute replays the recorded loop: two calls, weights changed in place between them."""
    monkeypatch.setattr(recorded_loop, "record", lambda work: work)
    monkeypatch.setattr(recorded_loop, "device_of", lambda sim: torch.device("cpu"))
    sim, policy, options = (
        ag.Simulator(MODEL, device="cuda"),
        Policy(),
        {"gradient_options": ag.GradientOptions(decay=0.9, clip=0.5)},
    )
    recorded = at.RecordedLoop(sim, policy, 3, 5, **options)
    for seed in range(2):
        x = {k: torch.tensor(y, requires_grad=True) for k, y in inputs((3,), seed).items()}
        found = []
        for loop in (recorded((x["q"], x["v"])), at.closed_loop(sim, policy, (x["q"], x["v"]), 5, **options)):
            loss = sum(y.sin().sum() for y in loop)
            found.append((tuple(loop), torch.autograd.grad(loss, (x["q"], x["v"], *policy.parameters()))))
        torch.testing.assert_close(*found, rtol=0, atol=0)
        with torch.no_grad():
            for w in policy.parameters():
                w += 0.01
    loop = recorded((x["q"], x["v"]))
    recorded((x["q"], x["v"]))
    with pytest.raises(ag.InputError, match="called again before its backward pass"):
        loop.q.sum().backward()
    with pytest.raises(ag.InputError, match=r"recorded for states \(3, 8\) and \(3, 7\)"):
        recorded((x["q"][:2], x["v"][:2]))
    sequential = at.RecordedLoop(sim, policy.net, 3, 5)((x["q"], x["v"]))
    torch.testing.assert_close(sequential, at.closed_loop(sim, policy, (x["q"], x["v"]), 5), rtol=0, atol=0)
    policy.net[0].weight.data = policy.net[0].weight.data.clone()
    with pytest.raises(ag.InputError, match="lie elsewhere"):
        recorded((x["q"], x["v"]))
    with pytest.raises(ag.InputError, match="recorded on a GPU"):
        at.RecordedLoop(ag.Simulator(MODEL), policy, 3, 5)


def test_errors_have_the_remedy(gpu, monkeypatch):
    sim = ag.Simulator(MODEL, device="cuda")
    x = {k: torch.tensor(y) for k, y in inputs((3,)).items()}
    monkeypatch.undo()
    with pytest.raises(
        ag.InputError, match=r"q is on 'cpu' and this simulator runs on 'cuda:0': pass q.to\('cuda:0'\)"
    ):
        at.step(sim, (x["q"], x["v"]), x["u"])


def test_gradients_of_poses_stay_on_the_device(gpu, monkeypatch):
    """Gradients of images or sites are not copied to the host, so that a loop with them can be recorded."""
    sim = ag.Simulator(ag.robots.pendulum(3), dtype="f32", device="cuda")
    q = torch.tensor([[0.3, -0.2, 0.1], [0.0, 0.4, 0.2]], requires_grad=True)
    out = at.outputs(sim, (q, torch.zeros(2, 3)))
    loss = out.body_position.square().sum() + out.body_rotation[..., 0].sum() + out.site_position.sum()
    monkeypatch.setattr(gpu, "download", lambda *a: pytest.fail("numbers went to the host"))
    (bar,) = torch.autograd.grad(loss, q)
    monkeypatch.undo()
    host = ag.Simulator(ag.robots.pendulum(3), dtype="f32")
    p = q.detach().requires_grad_()
    out = at.outputs(host, (p, torch.zeros(2, 3)))
    loss = out.body_position.square().sum() + out.body_rotation[..., 0].sum() + out.site_position.sum()
    assert torch.allclose(bar, torch.autograd.grad(loss, p)[0], atol=1e-5)
