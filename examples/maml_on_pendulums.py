"""Model-agnostic meta-learning (MAML) on a family of pendulums: weights from which one gradient step adapts to any mass."""

import torch
from torch import nn
from torch.func import functional_call

import artigrad as ag
from artigrad.torch import closed_loop

torch.manual_seed(0)
sim = ag.Simulator(ag.robots.pendulum(1), dt=0.02)
start = ag.State(*(torch.tensor(x) for x in sim.reset(batch=4)))
start = ag.State(start.q + torch.linspace(0.2, 0.8, 4)[:, None], start.v)
own_mass = torch.tensor(sim.params.mass)


class Task(nn.Module):
    """Cost of holding a pendulum of some mass at the angle 0.5."""

    def __init__(self):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).double()

    def forward(self, scale):
        loop = closed_loop(sim, self.policy, start, steps=12, params={"mass": scale * own_mass})
        return (loop.q - 0.5).square().mean() + 1e-3 * loop.v.square().mean()


task = Task()
masses = (0.5, 1.0, 2.0)


def after_adaptation(rate=0.05):
    total = 0.0
    for scale in masses:
        weights = dict(task.named_parameters())
        slopes = torch.autograd.grad(functional_call(task, weights, (scale,)), weights.values(), create_graph=True)
        adapted = {name: w - rate * g for (name, w), g in zip(weights.items(), slopes, strict=True)}
        total = total + functional_call(task, adapted, (scale,))
    return total / len(masses)


adam = torch.optim.Adam(task.parameters(), 0.02)
costs = []
for _ in range(6):
    adam.zero_grad()
    cost = after_adaptation()
    cost.backward()  # through the inner step: a gradient of a gradient
    adam.step()
    costs.append(cost.item())
print(f"cost after adaptation: {costs[0]:.4f}, after meta-training {costs[-1]:.4f}")
assert costs[-1] < 0.95 * costs[0]
