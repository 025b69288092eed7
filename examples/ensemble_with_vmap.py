"""An ensemble of policies: gradients of all of them in one call, by `torch.func.vmap` over stacked weights."""

import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

import artigrad as ag
from artigrad.torch import closed_loop

torch.manual_seed(0)
sim = ag.Simulator(ag.robots.pendulum(1), dt=0.02)
start = ag.State(*(torch.tensor(x) + 0.5 for x in sim.reset()))


class Cost(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def forward(self):
        return closed_loop(sim, self.policy, start, steps=20).q.square().mean()


members = [Cost() for _ in range(5)]
weights, _ = stack_module_state(members)
slopes = vmap(grad(lambda w: functional_call(members[0], w, ())))(weights)

members[3]().backward()
for name, w in members[3].named_parameters():
    torch.testing.assert_close(slopes[name][3], w.grad, rtol=1e-9, atol=1e-15)
print("gradients of", len(members), "policies in one call")
