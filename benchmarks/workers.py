"""Speedup of two workers over one: `python -m benchmarks.workers [--seconds N]`, on a quiet machine with Ray.

Each worker is a process with one thread and the same number of robots; steps are of all robots, with gradients and
learning.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

ANT: dict[str, Any] = {
    "options": {"contact_forces": False},
    "max_episode_steps": 250,
    "critic_iterations": 2,
    "clip": 100.0,
}
WAYS: dict[str, dict[str, Any]] = {
    "shac": {**ANT, "num_envs": 512},
    "ppo": {"options": ANT["options"], "num_envs": 512},
}


def speed(algorithm: str, count: int, seconds: float) -> float:
    """Return environment steps per second, of all workers."""
    from artigrad.learn.distributed import Workers

    workers = Workers("Ant", algorithm, count, **WAYS[algorithm])
    workers.run(workers.keep_every)  # compiles
    before, began = workers.steps, time.perf_counter()
    while time.perf_counter() - began < seconds:
        workers.run(workers.keep_every)
    rate = (workers.steps - before) / (time.perf_counter() - began)
    workers.close()
    return rate


def main() -> None:
    """Measure in turn, print, save the medians."""
    import ray

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each of three measurements")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/workers.json"))
    given = parser.parse_args()
    path = os.pathsep.join(p for p in sys.path if p)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": path}})
    found = {}
    for algorithm in WAYS:
        rates = [[speed(algorithm, count, given.seconds) for count in (1, 2)] for _ in range(3)]
        one, two = (sorted(x)[1] for x in zip(*rates, strict=True))
        found[algorithm] = {"one worker": one, "two workers": two, "ratio": two / one}
        print(
            f"{algorithm:6} {one:10,.0f} steps/s by one worker {two:10,.0f} by two, {two / one:.2f} times", flush=True
        )
    given.out.write_text(json.dumps({"cores": os.cpu_count(), **found}, indent=1))


if __name__ == "__main__":
    main()
