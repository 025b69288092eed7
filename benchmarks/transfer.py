"""Learning in MuJoCo with and without previous learning in artigrad: `python -m benchmarks.transfer [--seeds N]
[--processes N]`.

PPO learns in Gymnasium's Ant-v5 for `--steps` steps, once from scratch and once from policy, critic and optimizer of a
training in artigrad's Ant for `--seconds`. Returns are of ten whole episodes of Ant-v5 without noise, as in table 5 of Qiao
et al. (2021).
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

HERE = {"num_envs": 256, "num_steps": 32, "max_episode_steps": 250, "options": {"contact_forces": False}}
THERE = {"num_envs": 16, "num_steps": 128}


class MujocoAnts:
    """A batch of Gymnasium's Ant-v5 with the interface of an environment that PPO needs."""

    def __init__(self, learner: Any, count: int, seed: int):
        import gymnasium

        self.envs = [gymnasium.make("Ant-v5") for _ in range(count)]
        self.num_envs, self.batch, self.size = count, learner.env.batch, learner.env.observation_size
        self.observation_size, self.action_size = self.size, learner.env.action_size
        self.first = seed * count

    def reset(self) -> Any:
        import torch

        rows = [env.reset(seed=self.first + k)[0][: self.size] for k, env in enumerate(self.envs)]
        return torch.tensor(np.array(rows), dtype=torch.float32)

    def step(self, action: Any) -> Any:
        import torch

        from artigrad.envs import EnvStep

        rows: list[list[Any]] = []
        for env, a in zip(self.envs, action.numpy(), strict=True):
            last, reward, failed, cut, _ = env.step(a)
            seen = env.reset()[0] if failed or cut else last
            rows.append([seen[: self.size], reward, failed, cut and not failed, last[: self.size]])
        seen, reward, failed, cut, last = (np.array(x) for x in zip(*rows, strict=True))
        numbers = (torch.tensor(x, dtype=torch.float32) for x in (seen, reward, last))
        (observation, rewards, after), (terminated, truncated) = numbers, map(torch.tensor, (failed, cut))
        return EnvStep(observation, rewards, terminated, truncated, after)


def worth(learner: Any, seed: int, episodes: int = 10) -> float:
    """Return the mean return in Ant-v5, without noise."""
    import gymnasium
    import torch

    env, total = gymnasium.make("Ant-v5"), 0.0
    for k in range(episodes):
        seen, over = env.reset(seed=10_000 + 100 * seed + k)[0], False
        while not over:
            with torch.no_grad():
                action = learner.policy(torch.tensor(seen[None, : learner.env.observation_size], dtype=torch.float32))
            seen, reward, failed, cut, _ = env.step(action[0].numpy())
            total, over = total + float(reward), failed or cut
    return total / episodes


def run(seed: int, seconds: float, steps: int) -> dict[str, Any]:
    """Run both trainings of one seed; return returns in Ant-v5 before and after learning there."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from artigrad.learn import Training
    from artigrad.learn.episodes import EpisodeStats

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"seed": seed, "steps": steps}
    for way, here in (("without", 0.0), ("with", seconds)):
        training = Training("Ant", "ppo", threads=1, seed=seed, **HERE)
        if here:
            training.run(seconds=here)
        learner, before = training.learner, training.learner.steps
        for name, value in THERE.items():
            setattr(learner.settings, name, value)
        learner.env = MujocoAnts(learner, THERE["envs"], seed)
        learner.episode_stats, learner.observation = EpisodeStats(learner.env), learner.env.reset()
        began = time.perf_counter()
        first = worth(learner, seed)
        while learner.steps < before + steps:
            learner.update()
        took = time.perf_counter() - began
        found[way] = {"steps here": before, "first": first, "last": worth(learner, seed), "seconds there": took}
        print(seed, way, found[way], flush=True)
    return found


def main() -> None:
    """Train, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=120.0, help="of learning here")
    parser.add_argument("--steps", type=int, default=100_000, help="of learning there")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/transfer.json"))
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        found = []
        seeds = range(given.seeds)
        for one in pool.map(run, seeds, [given.seconds] * given.seeds, [given.steps] * given.seeds):
            found.append(one)
            given.out.write_text(json.dumps(found, indent=1))
    for way in ("without", "with"):
        for moment in ("first", "last"):
            x = [one[way][moment] for one in found]
            print(f"{way:8} {moment:6} {np.mean(x):8,.0f} +- {np.std(x):,.0f}")


if __name__ == "__main__":
    main()
