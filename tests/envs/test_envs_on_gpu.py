"""Environments on a simulated GPU (as tests/torch/test_on_gpu.py): results of the CPU, resets without synchronization."""

import pytest
import torch

from artigrad.envs import DifferentiableEnv, batch, mujoco_fields
from tests.torch.test_on_gpu import gpu  # noqa: F401


@pytest.mark.parametrize(("name", "clip"), [("Hopper", None), ("Ant", 5.0)])
def test_results_equal_those_of_the_cpu(gpu, monkeypatch, name, clip):  # noqa: F811
    for module in (batch, mujoco_fields):
        monkeypatch.setattr(module, "device_of", lambda sim: torch.device("cpu"))

    def play(device):
        env = DifferentiableEnv(name, 2, dtype="f64", device=device, threads=1, clip=clip)
        env.reset()
        action = torch.full((2, env.action_size), 0.3, dtype=torch.float64, requires_grad=True)
        steps = [env.step(action) for _ in range(2)]
        loss = sum(found.reward.sum() + found.next_observation.sum() for found in steps)
        return *steps[-1], torch.autograd.grad(loss, action)[0]

    torch.testing.assert_close(play("cuda"), play("cpu"), rtol=1e-9, atol=1e-9)
