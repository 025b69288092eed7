"""A hypernetwork: a network that turns a command into the weights of a quadruped's policy, trained through the simulation."""

import torch
from torch import nn

import artigrad as ag
from artigrad.torch import closed_loop

torch.manual_seed(0)
model = ag.robots.quadruped()
sim = ag.Simulator(model)
command = torch.tensor([[-0.5], [0.0], [0.5]]).double()  # wanted velocity along x, m/s
start = ag.State(*map(torch.tensor, sim.reset(batch=len(command))))
n = model.nq + model.nv
posture = torch.tensor(model.keyframe_control())


class Commanded(nn.Module):
    """A linear policy for each robot, whose weights are results of another network."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, q, v, t):
        return posture + 0.1 * torch.tanh(torch.einsum("bun,bn->bu", self.weights, torch.cat([q, v], -1)))


hypernetwork = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, model.nu * n)).double()


def loss():
    weights = 0.1 * hypernetwork(command).reshape(-1, model.nu, n)
    loop = closed_loop(sim, Commanded(weights), start, steps=12)
    return (loop.v[:, -1, :1] - command).square().mean()


adam, losses = torch.optim.Adam(hypernetwork.parameters(), 0.01), []
for _ in range(4):
    adam.zero_grad()
    value = loss()
    value.backward()
    adam.step()
    losses.append(value.item())
print(f"error of the velocity: {losses[0]:.5f}, after training {losses[-1]:.5f} (m/s)^2")
assert losses[-1] < losses[0]
