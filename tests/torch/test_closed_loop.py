"""A policy in the loop, against the same loop written with `step`."""

import pytest
import torch
from torch import nn

import artigrad as ag
from artigrad.torch import closed_loop, rollout, step

MODEL = ag.robots.laikago()
SIM = ag.Simulator(MODEL)
STEPS = 12


class Policy(nn.Module):
    """Moves the servos' targets by what a small network makes of the state and the time."""

    def __init__(self, noise=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(38, 16), nn.Tanh(), nn.Linear(16, 12)).double()
        self.home = torch.tensor(MODEL.keyframe_control())

    def forward(self, q, v, t):
        time = torch.full_like(q[..., :1], t / STEPS)
        return self.home + 0.1 * self.net(torch.cat([q, v, time], -1)) + self.noise * torch.randn(())


POLICY = Policy()


def start():
    q, v = (torch.tensor(x) for x in SIM.reset(batch=3))
    v = v + 0.05 * torch.arange(3.0, dtype=torch.float64)[:, None]
    return q.requires_grad_(), v.requires_grad_(), torch.tensor(MODEL.params.mass, requires_grad=True)


def by_hand(q, v, mass, decay=1.0, truncate=None):
    """Run the loop step by step; a hook changes the gradient of a state in the backward pass."""
    states, controls = [(q, v)], []
    for t in range(STEPS):
        if truncate and t and t % truncate == 0:
            q, v = q.detach(), v.detach()
        controls.append(POLICY(q, v, t))
        q, v = step(SIM, (q, v), controls[-1], params={"mass": mass})
        states.append((q, v))
        for x in (q, v):
            x.register_hook(lambda bar: decay * bar)
    q_all, v_all = (torch.stack(x, -2) for x in zip(*states, strict=True))
    return q_all, v_all, torch.stack(controls, -2)


def gradients(loop, inputs):
    loss = sum((x * torch.arange(x.numel()).reshape(x.shape).sin()).sum() for x in loop)
    return torch.autograd.grad(loss, inputs)


@pytest.mark.parametrize("keep", [False, True], ids=["recomputed", "kept"])
@pytest.mark.parametrize("options", [{}, {"decay": 0.9}, {"truncate": 5}], ids=["plain", "decay", "truncate"])
def test_equals_the_loop_by_hand(options, keep):
    q, v, mass = start()
    inputs = (q, v, mass, *POLICY.parameters())
    loop = closed_loop(
        SIM, POLICY, (q, v), STEPS, params={"mass": mass}, keep=keep, gradient_options=ag.GradientOptions(**options)
    )
    hand = by_hand(q, v, mass, **options)
    for a, b in zip(loop[:3], hand, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    for a, b in zip(gradients(loop, inputs), gradients(hand, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_cotangents_of_any_layout():
    """A sum's gradient is one number that stands for all entries; a controller may give the same controls to all robots."""
    q, v, _ = start()
    loop, weights = closed_loop(SIM, POLICY, (q, v), 4), list(POLICY.parameters())
    once = torch.autograd.grad(loop.q.sum() + loop.v.sum(), weights, retain_graph=True)
    spread = torch.autograd.grad((loop.q, loop.v), weights, [torch.ones_like(x) for x in (loop.q, loop.v)])
    torch.testing.assert_close(once, spread, rtol=0, atol=0)
    shared = _Gives(nn.Parameter(POLICY.home.clone()))
    closed_loop(SIM, shared, (q, v), 4).v.sum().backward()
    assert shared.u.grad.shape == (12,) and shared.u.grad.any()


def test_clipping_bounds_cotangents():
    """With a policy without input, the cotangent of each backward step has at most the given norm."""
    q, v, _ = start()

    class Fixed(nn.Module):
        def forward(self, q, v, t):
            return POLICY.home.expand(*q.shape[:-1], 12)

    def slope(**options):
        loop = closed_loop(SIM, Fixed(), (q, v), 1, gradient_options=ag.GradientOptions(**options))
        return torch.cat(torch.autograd.grad(1e3 * loop.q[:, -1].sum(), (q, v)), -1)

    free, bound = slope(), slope(clip=1.0)
    ratio = (free.norm(dim=-1) / bound.norm(dim=-1)).detach()
    torch.testing.assert_close(free / ratio[:, None], bound)  # the same direction
    expected = torch.full((3,), 1e3 * 19**0.5, dtype=torch.float64)
    torch.testing.assert_close(ratio, expected)
    torch.testing.assert_close(slope(clip=1e9), free)


def test_memory_does_not_grow_with_the_network():
    q, v, _ = start()

    def kept(width, **options):
        net, numbers = nn.Sequential(nn.Linear(37, width), nn.Sigmoid(), nn.Linear(width, 12)).double(), []
        with torch.autograd.graph.saved_tensors_hooks(lambda x: numbers.append(x.numel()) or x, lambda x: x):
            closed_loop(SIM, net, (q, v), 4, **options)
        return sum(numbers)

    assert kept(8) == kept(64) and kept(8, keep=True) < kept(64, keep=True)


def test_errors_have_the_remedy():
    q, v, _ = start()

    def bad(match, call):
        with pytest.raises(ag.InputError, match=match):
            call()

    bad("torch.nn.Module", lambda: closed_loop(SIM, lambda q, v, t: v, (q, v), 3))
    bad("steps is a whole number", lambda: closed_loop(SIM, POLICY, (q, v), 0))
    bad(
        "truncate is a whole number",
        lambda: closed_loop(SIM, POLICY, (q, v), 3, gradient_options=ag.GradientOptions(truncate=0.5)),
    )
    bad(r"policy\(q, v, t\) is torch.float32", lambda: closed_loop(SIM, _Gives(torch.zeros(3, 12)), (q, v), 3))
    bad(r"controls of a policy of 'laikago' are \(..., 12\)", lambda: closed_loop(SIM, _Gives(v), (q, v), 3))
    nan = torch.full((3, 12), torch.nan, dtype=torch.float64)
    bad("not finite at step 0", lambda: closed_loop(SIM, _Gives(nan), (q, v), 3))
    bad("other controls at step 2", lambda: closed_loop(SIM, _Counts(), (q, v), 3).q.sum().backward())


@pytest.mark.parametrize("lead", [(), (3,), (2, 2)])
def test_a_model_without_actuators(lead):
    b = ag.ModelBuilder("swing")
    b.add_body("rod", joint="revolute", axis=(0, 1, 0), mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    sim = ag.Simulator(b.build())
    q, v = (torch.full((*lead, 1), 0.3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    nothing = _Gives(torch.zeros(*lead, 0, dtype=torch.float64))
    found = torch.autograd.grad(closed_loop(sim, nothing, (q, v), 4).q.sum(), (q, v))
    wanted = torch.autograd.grad(rollout(sim, (q, v), steps=4).q.sum(), (q, v))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


class _Counts(nn.Module):
    """Remembers in an attribute how often it was called."""

    def __init__(self):
        super().__init__()
        self.calls, self.gain = 0, nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, q, v, t):
        self.calls += 1
        return self.gain.sin() * POLICY.home.expand(*q.shape[:-1], 12) * self.calls


class _Gives(nn.Module):
    def __init__(self, u):
        super().__init__()
        self.u = u

    def forward(self, q, v, t):
        return self.u


@pytest.mark.parametrize(
    ("policy", "steps", "sentence"),
    [
        (
            nn.Linear(37, 12),
            3,
            r"called as policy\(q, v, t\), which Linear does not take: put it into an nn.Sequential",
        ),
        (nn.Sequential(nn.Linear(37, 12)), 3, r"weights of torch.float32 .* computes in torch.float64: pass policy.to"),
        (
            nn.Sequential(nn.Linear(36, 12)).double(),
            3,
            "reads the 37 numbers of a state of 'laikago', and this takes 36",
        ),
        (POLICY, 2.5, "steps is a whole number"),
        (POLICY, True, "steps is a whole number"),
        (POLICY, None, "steps is a whole number"),
    ],
)
def test_policies_that_cannot_be_asked(policy, steps, sentence):
    with pytest.raises(ag.InputError, match=sentence):
        closed_loop(SIM, policy, start()[:2], steps)
