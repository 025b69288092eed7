"""A recurrent policy (GRU) that observes noisy angles only: it estimates the velocity from what it remembers."""

import torch
from torch import nn

import artigrad as ag
from artigrad.torch import closed_loop

torch.manual_seed(0)
sim = ag.Simulator(ag.robots.pendulum(1), dt=0.02)
STEPS, BATCH = 15, 4
start = ag.State(*map(torch.tensor, sim.reset(batch=BATCH)))
start = ag.State(start.q + 0.5, start.v + torch.linspace(-1.0, 1.0, BATCH)[:, None])
noise = 0.01 * torch.randn(BATCH, STEPS, 1).double()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory, self.out = nn.GRUCell(1, 8).double(), nn.Linear(8, 1).double()

    def forward(self, q, v, t, context, carry):
        carry = self.memory(q + context, carry)
        return self.out(carry), carry


policy = Recurrent()
adam, losses = torch.optim.Adam(policy.parameters(), 0.03), []
for _ in range(6):
    adam.zero_grad()
    memory = torch.zeros(BATCH, 8).double()
    loop, memory = closed_loop(sim, policy, start, STEPS, context=noise, carry=memory)
    loss = loop.v.square().mean() + 1e-3 * loop.u.square().mean()
    loss.backward()  # through time, memory and physics
    adam.step()
    losses.append(loss.item())
print(f"mean square velocity: {losses[0]:.4f}, after training {losses[-1]:.4f}")
assert losses[-1] < 0.95 * losses[0]
