"""Activations on tensors: gradients are the simulator's; closed loops, inside the kernel and outside, agree."""

import numpy as np
import torch

import artigrad as ag
import artigrad.torch as at
from tests.physics.test_activation import ROBOT, given

MODEL = ag.load(ROBOT)
SIM = ag.Simulator(MODEL)


def tensors(seed, batch=2):
    state, u = given(MODEL, seed, batch)
    return state.map(lambda x: torch.tensor(x, requires_grad=True)), torch.tensor(u, requires_grad=True)


def test_gradients_are_the_simulators():
    state, u = tensors(0)
    end = at.rollout(SIM, state, u)
    sum(x[:, -1].sum() for x in end).backward()
    plain = SIM.rollout(state.map(lambda x: x.detach().numpy()), u.detach().numpy())
    ones = plain.final.map(np.ones_like)
    grad = SIM.vjp(plain, q_bar=ones.q, v_bar=ones.v, act_bar=ones.act)
    for x, bar in zip((*state, u), (grad.q0, grad.v0, grad.act0, grad.u), strict=True):
        np.testing.assert_array_equal(x.grad, bar)
    one = at.step(SIM, tuple(state), u[:, 0])
    torch.testing.assert_close(one.act, end.act[:, 1], rtol=0, atol=0)


def test_closed_loops_agree():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4 + MODEL.na, 6), torch.nn.Tanh(), torch.nn.Linear(6, MODEL.nu)).double()

    class Outside(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, q, v, act, t):
            return self.net(torch.cat([q, v, act], -1))

    found = []
    for policy in (net, Outside()):
        net.zero_grad()
        state, _ = tensors(1)
        loop = at.closed_loop(SIM, policy, state, 4, gradient_options=ag.GradientOptions(clip=10.0))
        (loop.act.square().sum() + loop.v.sum() + loop.u.sum()).backward()
        found.append([loop.act, loop.u, *(x.grad for x in state), *(w.grad for w in net.parameters())])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
