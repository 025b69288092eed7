"""Autograd as an oracle: the library's source run on torch scalars, every operation taped, has the gradient of our adjoints."""

import numpy as np
import torch
from benchmarks import plain_torch

import artigrad as ag


def test_adjoints_match_autograd():
    """Three steps of a Laikago in contact: kinematics, dynamics, actuators, the contact solver and all."""
    model = ag.robots.laikago()
    rng = np.random.default_rng(0)
    sim = ag.Simulator(model)
    start = sim.reset()
    start.q[2] -= 0.003
    start.v[:] = 0.05 * rng.normal(size=model.nv)
    u = torch.tensor(model.keyframe_control() + 0.05 * rng.normal(size=(3, model.nu)), requires_grad=True)
    taped = plain_torch.rollout(ag.Simulator(model, backend="numpy"), start, u)
    traj = sim.rollout(start, u.detach().numpy())
    np.testing.assert_allclose(taped.detach(), traj.q, atol=1e-14)
    q_bar = rng.normal(size=traj.q.shape)
    (taped * torch.tensor(q_bar)).sum().backward()
    grad = sim.vjp(traj, q_bar=q_bar, with_params=False)
    assert grad.health.violation == 0.0 and np.abs(grad.u).max() > 1e-3
    np.testing.assert_allclose(u.grad, grad.u, atol=1e-13)
