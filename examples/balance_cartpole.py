"""Train a small network to balance a pole on a cart, by gradients through policy and physics (PyTorch).

python examples/balance_cartpole.py
"""

import torch
from torch import nn

import artigrad as ag
from artigrad.torch import closed_loop

ROBOTS, STEPS, DT = 64, 75, 0.02
OPTIONS = ag.GradientOptions(decay=0.98)


class Policy(nn.Module):
    """Policy from the state to the force on the cart, at most 20 N."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
        nn.init.zeros_(self.net[2].weight)  # initial force: zero

    def forward(self, q, v, t):
        return 20.0 * torch.tanh(self.net(torch.cat([q, v], -1)))


def random_starts(count):
    """Return random initial states: poles within 20 degrees of the vertical, carts within half a meter."""
    spread = torch.tensor([0.5, 0.35])
    return spread * (2 * torch.rand(count, 2) - 1), 0.2 * torch.randn(count, 2)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # matrices this small are faster on one core
    sim = ag.Simulator(ag.robots.cartpole(), dt=DT, dtype="f32")
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for iteration in range(70):
        loop = closed_loop(sim, policy, random_starts(ROBOTS), STEPS, gradient_options=OPTIONS)
        cost = loop.q.square().mean() + 0.05 * loop.v.square().mean() + 1e-4 * loop.u.square().mean()
        optimizer.zero_grad()
        cost.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if iteration % 10 == 0:
            print(f"iteration {iteration}: cost {cost.item():.4f}")

    with torch.no_grad():  # four times the horizon of the training
        final = closed_loop(sim, policy, random_starts(256), 4 * STEPS).q[:, -50:]
    upright = (final[..., 1].abs().amax(-1) < 0.1).float().mean().item()
    print(f"upright during the last second of {4 * STEPS * DT:g}: {upright:.1%} of 256 new starts")
    assert upright > 0.95


if __name__ == "__main__":
    main()
