"""Derivative of the end of a swing with respect to the masses, for many pendulums: `torch.func.vmap` of a gradient is one
native call.

python examples/many_masses_with_vmap.py
"""

import torch
from torch.func import grad, vmap

import artigrad as ag
from artigrad.torch import rollout, sites

STEPS, PENDULUMS = 60, 32


def main():
    sim = ag.Simulator(ag.robots.pendulum(2), dt=0.01)
    start = ag.State(*map(torch.tensor, sim.reset()))
    u = torch.linspace(0, 3, STEPS, dtype=torch.float64).sin()[:, None].expand(-1, 2)
    masses = torch.tensor(sim.params.mass) * torch.linspace(0.5, 2.0, PENDULUMS, dtype=torch.float64)[:, None]

    def height(mass):
        states = rollout(sim, start, u, params={"mass": mass})
        last = ag.State(states.q[-1], states.v[-1])
        return sites(sim, last, params={"mass": mass})[-1, 2]

    slopes = vmap(grad(height))(masses)  # (32, 2)
    h = 1e-5
    step = torch.tensor([0.0, h], dtype=torch.float64)
    differences = (vmap(height)(masses + step) - vmap(height)(masses - step)) / (2 * h)
    print(f"dz/dm of the second mass: from {slopes[0, 1]:.5f} to {slopes[-1, 1]:.5f} m/kg")
    print(f"largest difference from finite differences: {(slopes[:, 1] - differences).abs().max():.1e}")
    torch.testing.assert_close(slopes[:, 1], differences, rtol=1e-6, atol=1e-8)


if __name__ == "__main__":
    main()
