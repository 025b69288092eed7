"""Number of controls that soft actor-critic needs, for comparison with adaptive control: `python -m
benchmarks.sac_cartpole`.

The cart-pole of `python -m experiments adaptive` in artigrad: dm_control's bodies, forces within 200 N, a control every 40 ms,
episodes of 140 controls from hanging, dm_control's swing-up reward. One robot, one update per control, `artigrad.learn`'s
SAC. Every 1000 controls the policy without noise is evaluated from five initial states; it counts as upright if all poles
are within cos > 0.95 over the last 20 controls of at least three of them. Seeds and numbers of poles run in parallel, one
process each.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from artigrad.envs import DifferentiableEnv
from artigrad.envs.balancing import CartpoleSwingUp
from artigrad.learn.sac import Sac, SacSettings

EVERY, STARTS = 1000, 5


class Strong(CartpoleSwingUp):
    """The swing-up with 200 N, as in adaptive control."""

    frame_skip, max_episode_steps = 4, 140

    def __init__(self, poles: int):
        super().__init__(poles)
        self.model = self.model.replace(params=self.model.params.replace(gear=[200.0]))


@torch.no_grad()
def upright(policy: Any, poles: int) -> int:
    """Return the number of initial states from which the poles are up at the end."""
    env = DifferentiableEnv(Strong(poles), STARTS, seed=99, threads=1)
    observation, up = env.reset(), torch.ones(STARTS, dtype=torch.bool)
    for t in range(env.task.max_episode_steps - 1):  # the last step resets
        observation = env.step(policy(observation)).observation
        if t >= env.task.max_episode_steps - 20:
            up &= (observation[:, 1 : 1 + 2 * poles : 2] > 0.95).all(-1)
    return int(up.sum())


def seed_of(job: tuple[int, int, int, float]) -> dict[str, Any]:
    """Run one seed; return its evaluations and the number of controls after which the poles were first up."""
    poles, seed, steps, seconds = job
    torch.set_num_threads(1)
    began = time.monotonic()
    learner = Sac(Strong(poles), SacSettings(num_envs=1, critic_updates=1, learning_starts=1000, seed=seed), threads=1)
    tries, first = [], None
    while learner.steps < steps and first is None and time.monotonic() - began < seconds:
        learner.update()
        if learner.steps % EVERY == 0:
            tries.append(upright(learner.policy, poles))
            first = learner.steps if 2 * tries[-1] > STARTS else None
            print(f"{poles} poles, seed {seed}: {learner.steps} controls, {tries[-1]} of {STARTS} up", flush=True)
    return {
        "poles": poles,
        "seed": seed,
        "controls": first,
        "given_up_at": learner.steps if first is None else None,
        "tries": tries,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000, help="controls after which a seed is given up")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which, too")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/adaptive/sac.json"))
    given = parser.parse_args()
    jobs = [(poles, seed, given.steps, given.seconds) for poles in (1, 2) for seed in range(given.seeds)]
    with ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1)) as pool:
        found = list(pool.map(seed_of, jobs))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    for row in found:
        print({k: x for k, x in row.items() if k != "tries"})


if __name__ == "__main__":
    main()
