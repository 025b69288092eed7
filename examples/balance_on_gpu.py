"""Train a network to balance poles on carts, thousands in parallel on a GPU if there is one (PyTorch).

On a GPU the loop of network and physics is recorded once and replayed; on the CPU the network runs inside the compiled
loop.

python examples/balance_on_gpu.py
"""

import torch
from torch import nn

import artigrad as ag
from artigrad.torch import RecordedLoop, closed_loop

GPU = torch.cuda.is_available()
DEVICE, ROBOTS = ("cuda", 4096) if GPU else ("cpu", 128)
STEPS, DT = 75, 0.02
OPTIONS = ag.GradientOptions(decay=0.98)


def random_starts(count):
    """Return random initial states: poles within 20 degrees of the vertical, carts within half a meter."""
    spread = torch.tensor([0.5, 0.35], device=DEVICE)
    q, v = spread * (2 * torch.rand(count, 2, device=DEVICE) - 1), 0.2 * torch.randn(count, 2, device=DEVICE)
    return ag.State(q, v)


def main():
    torch.manual_seed(0)
    sim = ag.Simulator(ag.robots.cartpole(), dt=DT, dtype="f32", device=DEVICE)
    strength = nn.Linear(1, 1).requires_grad_(False)  # forces up to 20 N
    strength.weight.fill_(20.0)
    strength.bias.zero_()
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1), nn.Tanh(), strength).to(DEVICE)
    nn.init.zeros_(policy[2].weight)  # initial force: zero
    recorded = RecordedLoop(sim, policy, ROBOTS, STEPS, gradient_options=OPTIONS) if GPU else None

    optimizer = torch.optim.Adam([w for w in policy.parameters() if w.requires_grad], lr=1e-2)
    for iteration in range(70):
        start = random_starts(ROBOTS)
        loop = recorded(start) if recorded else closed_loop(sim, policy, start, STEPS, gradient_options=OPTIONS)
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
    print(f"upright during the last second of {4 * STEPS * DT:g}: {upright:.1%} of 256 new starts, on '{sim.device}'")
    assert upright > 0.95


if __name__ == "__main__":
    main()
