"""Every way in which a tensor reaches a policy, and in which a policy is wrapped: the gradients of the loop written by hand."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

import artigrad as ag
from artigrad.torch import closed_loop, step

SIM = ag.Simulator(ag.robots.cartpole())
STEPS = 4


def start():
    return tuple(torch.tensor(x) + 0.1 * torch.arange(1.0, 3.0).double()[:, None] for x in SIM.reset(batch=2))


def by_hand(policy, steps=STEPS, context=None, carry=None):
    """Loss of the loop as PyTorch runs it, step by step."""
    (q, v), total = start(), 0.0
    for t in range(steps):
        more = {} if context is None else {"context": context[..., t, :]}
        if carry is None:
            u = policy(q, v, t, **more)
        else:
            u, carry = policy(q, v, t, carry=carry, **more)
        q, v = step(SIM, (q, v), u)
        total = total + q.sin().sum() + u.square().sum()
    return total


def loss(policy, steps=STEPS, carry=None, **more):
    found = closed_loop(SIM, policy, start(), steps, carry=carry, **more)
    loop = found if carry is None else found[0]
    return loop.q[:, 1:].sin().sum() + loop.u.square().sum()


def check(policy, inputs, *, reset=lambda: None, hand=None, **more):
    for keep in (False, True):
        reset()
        ours = torch.autograd.grad(loss(policy, keep=keep, **more), inputs)
        reset()
        theirs = torch.autograd.grad(by_hand(hand or policy, **more), inputs)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-13)
            assert b.any()


def weight(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (0.3 * torch.randn(*shape, generator=generator, dtype=torch.float64)).requires_grad_()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1).double()
        with torch.no_grad():
            self.net.weight.copy_(weight(1, 4))
        self.register_buffer("scale", torch.tensor(2.0, dtype=torch.float64))

    def forward(self, q, v, t):
        return self.scale * self.net(torch.cat([q, v], -1)).tanh()


class Function(nn.Module):
    """A policy from a function; tensors that it closes over are not its own."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, q, v, t, **more):
        return self.function(torch.cat([q, v], -1), t, **more)


# -- tensors ------------------------------------------------------------------------------------------------------------
def test_weights_and_buffers():
    policy = Policy()
    policy.scale = policy.scale.clone().requires_grad_()
    check(policy, [*policy.parameters(), policy.scale])


def test_a_leaf_of_a_closure():
    command = weight(1)
    check(Function(lambda x, t: x[:, :1] + command), [command])


def test_tensors_that_differ_at_each_step():
    commands = [weight(1, seed=k) for k in range(STEPS)]
    check(Function(lambda x, t: x[:, :1] * commands[t]), commands)


def test_the_output_of_another_network():
    maker = nn.Linear(2, 5).double()
    made = maker(weight(2).detach()).tanh()
    check(Function(lambda x, t: x @ made[:4, None] + made[4]), [made, *maker.parameters()][:1])
    policy = Function(lambda x, t: x @ maker(weight(2).detach()).tanh()[:4, None])
    check(policy, list(maker.parameters()))


@pytest.mark.parametrize("change", [1.0, 1.5], ids=["equal", "changed"])
def test_weights_swapped_in_by_functional_call(change):
    policy = Policy()
    fast = {k: change * w.detach().clone().requires_grad_() for k, w in policy.named_parameters()}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.policy = policy

        def forward(self, f, **more):
            return f(self.policy, **more)

    task = Whole()
    swapped = {f"policy.{k}": w for k, w in fast.items()}
    for keep in (False, True):
        ours = torch.autograd.grad(functional_call(task, swapped, (loss,), {"keep": keep}), list(fast.values()))
        theirs = torch.autograd.grad(functional_call(task, swapped, (by_hand,)), list(fast.values()))
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-13)


def test_fast_weights_within_the_policy():
    net = nn.Linear(4, 1).double()
    fast = {k: 1.1 * w for k, w in net.named_parameters()}
    check(Function(lambda x, t: functional_call(net, fast, (x,))), list(net.parameters()) and list(fast.values()))


def test_a_sequential_of_swapped_weights():
    """The policy that runs inside the compiled loop is included."""
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    fast = {k: (1.2 * w.detach()).requires_grad_() for k, w in net.named_parameters()}

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.policy = net

        def forward(self):
            return loss(self.policy)

    ours = functional_call(Whole(), {f"policy.{k}": w for k, w in fast.items()}, ())
    theirs = by_hand(Function(lambda x, t: functional_call(net, fast, (x,))))
    torch.testing.assert_close(ours, theirs)
    found, wanted = (torch.autograd.grad(x, list(fast.values())) for x in (ours, theirs))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-13)


# -- wrappers -----------------------------------------------------------------------------------------------------------
class Actor(nn.Sequential):
    def forward(self, x):
        return 0.1 * super().forward(x)


class Split(nn.Sequential):
    def forward(self, q, v, t):
        return super().forward(torch.cat([q, v], -1)) + t


def halved(net):
    net.register_forward_hook(lambda module, given, found: 0.5 * found)
    return net


def replaced(net):
    net.forward = lambda x: x[..., :1] * net[0].weight.sum()
    return net


WRAPPED = {
    "subclass": lambda *layers: Actor(*layers),
    "subclass of the parts": lambda *layers: Split(*layers),
    "hook": lambda *layers: halved(nn.Sequential(*layers)),
    "hook of a layer": lambda *layers: nn.Sequential(halved(layers[0]), *layers[1:]),
    "forward of an instance": lambda *layers: replaced(nn.Sequential(*layers)),
    "compiled": lambda *layers: torch.compile(nn.Sequential(*layers), backend="eager"),
    "scripted": lambda *layers: torch.jit.script(nn.Sequential(*layers)),
    "parametrized": lambda *layers: nn.Sequential(nn.utils.parametrizations.weight_norm(layers[0]), *layers[1:]),
    "data parallel": lambda *layers: nn.DataParallel(nn.Sequential(*layers)),
    "nested": lambda *layers: nn.Sequential(nn.Sequential(*layers)),
}


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", WRAPPED)
def test_wrapped_networks(name):
    torch.manual_seed(0)
    policy = WRAPPED[name](nn.Linear(4, 3).double(), nn.Tanh(), nn.Linear(3, 1).double())
    hand = policy if name == "subclass of the parts" else Function(lambda x, t: policy(x))
    weights = [w for w in policy.parameters() if w.requires_grad]
    if name == "forward of an instance":
        weights = weights[:1]
    check(policy, weights, hand=hand)


def test_norms_over_the_batch_advance_once_a_step():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).double()
    loss(policy).backward()
    assert policy[1].num_batches_tracked == STEPS
    kept = policy[1].running_mean.clone()
    policy[1].reset_running_stats()
    by_hand(Function(lambda x, t: policy(x)))
    torch.testing.assert_close(policy[1].running_mean, kept, rtol=0, atol=0)


# -- noise and memory ---------------------------------------------------------------------------------------------------
def test_noise_drawn_inside_is_drawn_again():
    w = weight(4, 1)
    policy = Function(lambda x, t: x @ w + 0.1 * torch.randn(2, 1, dtype=torch.float64))
    check(policy, [w], reset=lambda: torch.manual_seed(3))
    dropped = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).double()
    check(
        dropped, list(dropped.parameters()), reset=lambda: torch.manual_seed(3), hand=Function(lambda x, t: dropped(x))
    )


def test_noise_and_commands_as_context():
    w, commands = weight(4, 1), weight(2, STEPS, 1, seed=1)
    check(Function(lambda x, t, context: x @ w + context), [w, commands], context=commands)
    net = nn.Sequential(nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    hand = Function(lambda x, t, context: net(torch.cat([x, context], -1)))
    check(net, [*net.parameters(), commands], context=commands, hand=hand)


class Recurrent(nn.Module):
    def __init__(self, cell, size=3):
        super().__init__()
        self.cell, self.out = cell(4, size).double(), nn.Linear(size, 1).double()

    def forward(self, q, v, t, *, carry):
        carry = self.cell(torch.cat([q, v], -1), carry)
        return self.out(carry[0] if isinstance(carry, tuple) else carry), carry


@pytest.mark.parametrize("cell", [nn.GRUCell, nn.LSTMCell])
def test_recurrent_policies(cell):
    torch.manual_seed(1)
    policy, h = Recurrent(cell), weight(2, 3)
    carry = (h, weight(2, 3, seed=1)) if cell is nn.LSTMCell else h
    check(policy, [h, *policy.parameters()], carry=carry)


def test_the_last_carry_has_a_gradient():
    policy, h = Recurrent(nn.GRUCell), weight(2, 3)
    _, last = closed_loop(SIM, policy, start(), STEPS, carry=h)
    (slope,) = torch.autograd.grad(last.sum(), h)
    e = torch.zeros_like(h)
    e[0, 1] = 1e-6
    a, b = (closed_loop(SIM, policy, start(), STEPS, carry=h + s * e)[1].sum() for s in (1, -1))
    assert abs(slope[0, 1] - (a - b) / 2e-6) < 1e-8 * abs(slope[0, 1]) + 1e-9


def test_truncation_cuts_the_carry():
    policy, h = Recurrent(nn.GRUCell), weight(2, 3)
    _, last = closed_loop(SIM, policy, start(), STEPS, carry=h, gradient_options=ag.GradientOptions(truncate=2))
    assert torch.autograd.grad(last.sum(), h, allow_unused=True) == (None,)


class Stack(nn.Module):
    """Remembers the last observation in an attribute."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1).double()

    def forward(self, q, v, t):
        x = torch.cat([q, v], -1)
        self.last, last = x, x if t == 0 else self.last
        return self.net(torch.cat([x, last], -1))


def test_memory_in_attributes_is_differentiated_if_kept_and_refused_if_not():
    policy = Stack()
    kept = torch.autograd.grad(loss(policy, keep=True), policy.net.weight)
    torch.testing.assert_close(kept, torch.autograd.grad(by_hand(policy), policy.net.weight), rtol=1e-10, atol=1e-13)
    with pytest.raises(ag.InputError, match=r"other controls at step \d: .*carry=, or pass keep=True"):
        loss(policy).backward()


# -- what surrounds the loop --------------------------------------------------------------------------------------------
def test_autocast_around_the_forward_pass():
    sim = ag.Simulator(ag.robots.cartpole(), dtype="f32")
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, q, v, t):
            return self.net(torch.cat([q, v], -1)).float()

    slopes = []
    for keep in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states = closed_loop(sim, Cast(), tuple(x.float() for x in start()), STEPS, keep=keep)
        slopes.append(torch.autograd.grad(states.q.square().sum(), list(net.parameters())))
    torch.testing.assert_close(*slopes, rtol=0, atol=0)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_of_either_kind(reentrant):
    q, v = start()

    def total(net, q):
        return closed_loop(SIM, net, (q, v), STEPS).q.square().sum()

    for last in (nn.Sigmoid(), nn.Tanh()):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 1), last).double()
        slopes = []
        for run in (partial.__call__, partial(torch.utils.checkpoint.checkpoint, use_reentrant=reentrant)):
            x = q.clone().requires_grad_()
            run(partial(total, net), x).backward()
            slopes.append((x.grad, net[0].weight.grad.clone()))
            net.zero_grad()
        torch.testing.assert_close(*slopes, rtol=0, atol=0)


def test_weights_changed_before_the_backward_pass_are_refused():
    policy = Policy()
    total = loss(policy)
    with torch.no_grad():
        policy.net.weight += 1.0
    with pytest.raises(ag.InputError, match="changed in place between the loop and its backward pass"):
        total.backward()


def test_states_changed_in_place_are_refused():
    def push(q, v, t):
        q += 1.0
        return q[..., :1]

    policy = Policy()
    policy.forward = push
    with pytest.raises(ag.InputError, match="changes the state that it is given in place at step 0"):
        closed_loop(SIM, policy, start(), STEPS)


@pytest.mark.parametrize("net", [nn.Sigmoid(), nn.Tanh()], ids=["outside", "inside"])
@pytest.mark.parametrize("hold", [1, 2])
@pytest.mark.filterwarnings("ignore:.*control steps, as in Simulator:DeprecationWarning")
def test_a_penalty_of_the_gradient(net, hold):
    """Derivatives of gradients, by two backward passes, against differences."""
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 1), net).double()
    w = policy[0].weight

    def slope(**more):
        loop = closed_loop(SIM, policy, start(), STEPS, hold=hold)
        return torch.autograd.grad(loop.q.sin().sum() + loop.u.square().sum(), w, **more)[0]

    direction = weight(1, 4, seed=5).detach()
    (found,) = torch.autograd.grad((slope(create_graph=True) * direction).sum(), w)
    with torch.no_grad():
        w += 1e-5 * direction
    a = slope()
    with torch.no_grad():
        w -= 2e-5 * direction
    np.testing.assert_allclose(found, (a - slope()) / 2e-5, rtol=1e-6, atol=1e-8)
