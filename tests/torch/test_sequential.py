"""Networks inside the kernel: the numbers of the same loop with the network outside, for every activation, width and batch."""

from itertools import pairwise

import pytest
import torch
from torch import nn

import artigrad as ag
from artigrad.simulate import policy_loop
from artigrad.torch import closed_loop
from artigrad.torch.sequential import InsideLoop, OfState, layers_of
from tests.family import MODEL, inputs

STEPS = 6
SIMS = {dtype: ag.Simulator(MODEL, dtype=dtype) for dtype in ("f64", "f32")}
REALS = {"f64": torch.float64, "f32": torch.float32}
N, NU = MODEL.nq + MODEL.nv, MODEL.nu


def network(*layers, dtype="f64"):
    torch.manual_seed(0)
    made = nn.Sequential(*(layer() for layer in layers)).to(REALS[dtype])
    assert layers_of(SIMS[dtype], made) is not None, "it is to run inside"
    return made


def of(*widths, activation=nn.Tanh, last=None):
    sizes = (N, *widths, NU)
    layers = []
    for k, (a, b) in enumerate(pairwise(sizes)):
        layers.append(lambda a=a, b=b: nn.Linear(a, b))
        if k < len(widths) or last is not None:
            layers.append(activation if k < len(widths) else last)
    return layers


def results(sim, policy, weights, lead, dtype="f64", hold=1, **options):
    x = {k: torch.tensor(y, dtype=REALS[dtype], requires_grad=True) for k, y in inputs(lead).items()}
    loop = closed_loop(
        sim,
        policy,
        (x["q"], x["v"]),
        STEPS,
        params={"mass": x["mass"]},
        hold=hold,
        gradient_options=ag.GradientOptions(**options),
    )
    loss = sum((y * torch.arange(y.numel()).reshape(y.shape).sin()).sum() for y in loop)
    return tuple(loop), torch.autograd.grad(loss, (x["q"], x["v"], x["mass"], *weights))


NETWORKS = {
    "tanh": of(16, 9),
    "elu": of(5, activation=nn.ELU, last=nn.Tanh),
    "relu": of(13, 7, 3, activation=nn.ReLU),
}


@pytest.mark.parametrize(("name", "lead"), [("tanh", ()), ("tanh", (2, 5)), ("elu", (2, 5)), ("relu", (2, 5))])
def test_equals_the_network_outside(name, lead):
    net = network(*NETWORKS[name])
    weights = list(net.parameters())
    inside, outside = (results(SIMS["f64"], p, weights, lead) for p in (net, OfState(net)))
    torch.testing.assert_close(inside, outside, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{"decay": 0.9}, {"clip": 0.1}, {"truncate": 4, "decay": 0.95, "clip": 0.5}])
def test_options_and_a_short_tape(options, monkeypatch):
    monkeypatch.setattr(policy_loop, "TAPE", 5000)  # a few steps at a time
    net = network(*NETWORKS["tanh"])
    weights = list(net.parameters())
    inside, outside = (results(SIMS["f64"], p, weights, (3,), **options) for p in (net, OfState(net)))
    torch.testing.assert_close(inside, outside, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"truncate": 2, "decay": 0.95, "clip": 0.5}])
@pytest.mark.filterwarnings("ignore:.*control steps, as in Simulator:DeprecationWarning")
def test_held_controls(options, monkeypatch):
    """The policy is evaluated at every second step."""
    monkeypatch.setattr(policy_loop, "TAPE", 5000)
    net = network(*NETWORKS["tanh"])
    weights = list(net.parameters())
    inside, outside = (results(SIMS["f64"], p, weights, (3,), hold=2, **options) for p in (net, OfState(net)))
    torch.testing.assert_close(inside, outside, rtol=1e-10, atol=1e-12)
    assert torch.equal(inside[0][2][:, 0], inside[0][2][:, 1])


def test_gradcheck_of_weights():
    net, sim = network(*NETWORKS["elu"]), SIMS["f64"]
    x = {k: torch.tensor(y) for k, y in inputs((2,)).items()}
    weights = [w.detach().requires_grad_() for w in net.parameters()]
    _, activations = layers_of(sim, net)

    def call(*weights):
        return InsideLoop.apply(sim, activations, (4, 2), None, None, x["q"], x["v"], *weights)

    assert torch.autograd.gradcheck(call, weights, eps=1e-6, atol=1e-6)


def test_single_precision_and_the_numpy_target():
    net = network(*NETWORKS["tanh"])
    weights = list(net.parameters())
    exact = results(SIMS["f64"], net, weights, (3,))
    slow = results(ag.Simulator(MODEL, backend="numpy"), net, weights, (3,))
    torch.testing.assert_close(slow, exact, rtol=1e-9, atol=1e-11)
    net = network(*NETWORKS["tanh"], dtype="f32")
    rough = results(SIMS["f32"], net, list(net.parameters()), (3,), "f32")
    for part, wanted in zip(rough, exact, strict=True):
        for a, b in zip(part, wanted, strict=True):
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-3, atol=1e-3)


def test_a_robot_has_the_same_bits_alone_and_in_a_batch():
    net, sim = network(*NETWORKS["tanh"]), SIMS["f64"]
    q, v = (torch.tensor(inputs((11,))[k]) for k in "qv")
    whole = closed_loop(sim, net, (q, v), STEPS)
    for k in (0, 7, 10):
        alone = closed_loop(sim, net, (q[k], v[k]), STEPS)
        for a, b in zip(alone, whole, strict=True):
            torch.testing.assert_close(a, b[k], rtol=0, atol=0)


def test_other_modules_run_step_by_step():
    """Other modules, other sizes, hooks: the same loop, one step at a time."""
    sim = SIMS["f64"]
    q, v = (torch.tensor(inputs((3,))[k]) for k in "qv")
    for layers in (
        [nn.Linear(N, NU), nn.Sigmoid()],
        [nn.Linear(N, 4, bias=False), nn.Linear(4, NU)],
        [nn.ELU(2.0), nn.Linear(N, NU)],
    ):
        net = nn.Sequential(*layers).double()
        assert layers_of(sim, net) is None
        loop = closed_loop(sim, net, (q, v), 2)
        torch.testing.assert_close(loop.u[:, 0], net(torch.cat([q, v], -1)))
    hooked = network(*NETWORKS["tanh"])
    hooked[0].register_forward_hook(lambda module, given, out: 2 * out)
    assert layers_of(sim, hooked) is None


def test_errors_name_the_problem():
    q, v = (torch.tensor(inputs((3,))[k]) for k in "qv")
    net = network(*NETWORKS["tanh"])
    with torch.no_grad():
        net[0].weight[0, 0] = torch.nan
    with pytest.raises(ag.InputError, match="not finite"):
        closed_loop(SIMS["f64"], net, (q, v), 2)
    with pytest.raises(ag.InputError, match=r"q\[0, 0\] is nan"):
        closed_loop(SIMS["f64"], network(*NETWORKS["tanh"]), (q * torch.nan, v), 2)
