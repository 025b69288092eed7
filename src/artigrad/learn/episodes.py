"""Episode statistics and TD(lambda) returns."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..envs import DifferentiableEnv, EnvStep


class EpisodeStats:
    """Returns and lengths of the episodes that ended, and the mean reward."""

    def __init__(self, env: DifferentiableEnv):
        self.returns = torch.zeros(env.num_envs, dtype=torch.float64, device=env.batch.device)  # of running episodes
        self.lengths = torch.zeros_like(self.returns)
        # episodes, sum of returns, sum of lengths; steps, sum of rewards
        self.sums = torch.zeros(5, dtype=torch.float64, device=env.batch.device)
        self.latest = {"return": math.nan, "length": math.nan}

    @torch.no_grad()
    def add(self, step: EnvStep) -> None:
        """Add the result of an environment step."""
        self.returns += step.reward
        self.lengths += 1.0
        ended = (step.terminated | step.truncated).double()
        steps = torch.full_like(ended[0], float(len(ended)))
        sums = [ended.sum(), (ended * self.returns).sum(), (ended * self.lengths).sum()]
        self.sums += torch.stack([*sums, steps, step.reward.sum().double()])
        self.returns *= 1.0 - ended
        self.lengths *= 1.0 - ended

    def metrics(self) -> dict[str, float]:
        """Return and reset the means: "return" and "length" over the episodes that ended since the last call (the previous
        values if none did), "reward" over all steps since then."""
        count, total, length, steps, rewards = self.sums.tolist()
        if count:
            self.latest = {"return": total / count, "length": length / count}
        self.sums.zero_()
        return {**self.latest, "reward": rewards / max(steps, 1.0)}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"returns": self.returns, "lengths": self.lengths, "sums": self.sums, "latest": self.latest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        for name in ("returns", "lengths", "sums"):
            getattr(self, name).copy_(state[name])
        self.latest = dict(state["latest"])


@torch.no_grad()
def lambda_returns(
    rewards: Tensor, next_values: Tensor, terminated: Tensor, ended: Tensor, gamma: float, lam: float
) -> Tensor:
    """Return TD(lambda) targets of values:  G_t = r_t + gamma ((1 - lambda) V(s_t+1) + lambda G_t+1).

    The value after a termination is 0. At a truncation and at the end of the data it is V(s_t+1).

    Args:
      rewards: Rewards (T, B).
      next_values: Values (T, B) of the observations after each step, before auto-reset.
      terminated: True where the task failed, (T, B).
      ended: True where an episode ended, (T, B).
      gamma: Discount factor.
      lam: Lambda.

    Returns:
      Targets (T, B).
    """
    targets = torch.empty_like(rewards)
    later = next_values[-1]
    for t in reversed(range(len(rewards))):
        ahead = torch.where(ended[t], next_values[t], (1.0 - lam) * next_values[t] + lam * later)
        targets[t] = later = rewards[t] + gamma * torch.where(terminated[t], 0.0, ahead)
    return targets
