"""Episode statistics and TD(lambda) returns."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ..envs import DifferentiableEnv, EnvStep


class EpisodeStats:
    """Returns and lengths of the whole episodes that ended, and the mean reward.

    Episodes that were under way when the counting began, such as those of a staggered reset, are not counted.
    """

    def __init__(self, env: DifferentiableEnv):
        self.env = env
        self.whole = torch.zeros(env.num_envs, dtype=torch.bool, device=env.batch.device)
        self.returns = torch.zeros(env.num_envs, dtype=torch.float64, device=env.batch.device)  # of running episodes
        self.lengths = torch.zeros_like(self.returns)
        # episodes, sum of returns, sum of lengths; steps, sum of rewards
        self.sums = torch.zeros(5, dtype=torch.float64, device=env.batch.device)
        self.latest = {"return": math.nan, "length": math.nan}

    def restart(self) -> None:
        """Begin to count anew after a reset of all environments."""
        assert self.env.state is not None
        self.whole = self.env.state.steps == 0
        self.returns.zero_()
        self.lengths.zero_()

    @torch.no_grad()
    def add(self, step: EnvStep) -> None:
        """Add the result of an environment step."""
        self.returns += step.reward
        self.lengths += 1.0
        over = step.terminated | step.truncated
        counted = (over & self.whole).double()
        steps = torch.full_like(counted[0], float(len(counted)))
        sums = [counted.sum(), (counted * self.returns).sum(), (counted * self.lengths).sum()]
        self.sums += torch.stack([*sums, steps, step.reward.sum().double()])
        self.returns.masked_fill_(over, 0.0)
        self.lengths.masked_fill_(over, 0.0)
        self.whole |= over

    def metrics(self) -> dict[str, float]:
        """Return and reset the means: "return" and "length" over the whole episodes that ended since the last call (the
        previous values if none did, NaN before the first), "reward" over all steps since then.

        Raises:
          FloatingPointError: A reward was not finite.
        """
        count, total, length, steps, rewards = self.sums.tolist()
        if not math.isfinite(rewards):
            raise FloatingPointError(f"a reward of {type(self.env.task).__name__} is not finite: check its reward()")
        if count:
            self.latest = {"return": total / count, "length": length / count}
        self.sums.zero_()
        return {**self.latest, "reward": rewards / max(steps, 1.0)}

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        names = ("returns", "lengths", "whole", "sums", "latest")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state of `state_dict`."""
        for name in ("returns", "lengths", "whole", "sums"):
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
