"""Estimate masses and lengths of a double pendulum from one second of its trajectory, by L-BFGS through the physics
(PyTorch).

python examples/learn_pendulum.py
"""

import torch
from torch import nn

import artigrad as ag
from artigrad.torch import PhysicsLayer

STEPS, DT = 50, 0.02
TRUE = {"masses": [1.4, 0.6], "lengths": [0.8, 1.3]}


class Rods(nn.Module):
    """Positive masses and lengths of hinged rods, and the parameters that depend on them: centers of mass, inertias,
    positions."""

    def __init__(self, masses, lengths):
        super().__init__()
        self.log_masses = nn.Parameter(torch.tensor(masses, dtype=torch.float64).log())
        self.log_lengths = nn.Parameter(torch.tensor(lengths, dtype=torch.float64).log())

    def forward(self):
        m, l = self.log_masses.exp(), self.log_lengths.exp()
        zero = torch.zeros_like(l)
        side = m * l**2 / 12
        down = torch.stack([zero, zero, -l], -1)
        return {
            "mass": m,
            "com": down / 2,
            "inertia": torch.stack([side, side, zero, zero, zero, zero], -1),
            "position": torch.cat([torch.zeros_like(down[:1]), down[:-1]]),  # each rod hangs from the end of the last
        }


def main():
    sim = ag.Simulator(ag.robots.pendulum(2), dt=DT)
    q, v = torch.tensor([0.9, -0.5], dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    u = torch.linspace(0, 6, STEPS, dtype=torch.float64).sin()[:, None].expand(-1, 2)  # torques make masses visible
    with torch.no_grad():
        seen, _ = PhysicsLayer(sim, STEPS, learn=Rods(**TRUE))((q, v), u)

    rods = Rods(masses=[1.0, 1.0], lengths=[1.0, 1.0])
    layer = PhysicsLayer(sim, STEPS, learn=rods)
    optimizer = torch.optim.LBFGS(
        rods.parameters(), lr=0.5, max_iter=100, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def loss():
        optimizer.zero_grad()
        error = (layer((q, v), u)[0] - seen).square().mean()
        error.backward()
        return error

    print(f"before: error {loss().item():.1e}")
    optimizer.step(loss)
    masses, lengths = rods.log_masses.exp().tolist(), rods.log_lengths.exp().tolist()
    print(f"after:  error {loss().item():.1e}, masses {masses}, lengths {lengths}")
    for found, true in ((masses, TRUE["masses"]), (lengths, TRUE["lengths"])):
        assert all(abs(a / b - 1) < 0.01 for a, b in zip(found, true, strict=True)), "each within a percent"


if __name__ == "__main__":
    main()
