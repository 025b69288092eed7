"""Training of many policies side by side, one process each: `python -m benchmarks.learn SUITE [--processes N] [--out FOLDER]`.

Suites are lists of trainings, below. Results: `learn-SUITE.json` with what each reached over steps and seconds, and
`policies-SUITE.zip` with its policies, which `artigrad play` takes. Where MuJoCo and Gymnasium are not installed, robots come
from a folder that `python -m benchmarks.learn pack --models FOLDER` made elsewhere.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import time
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

GYM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")
POINTS = 60  # of a curve that is kept


def job(
    task: str, algorithm: str, seed: int = 0, *, name: str = "", seconds: float = 0, steps: int = 0, **more: Any
) -> dict[str, Any]:
    """One training. options: of the task. device: cpu unless told. All else are settings of the algorithm."""
    own = {"options": more.pop("options", {}), "device": more.pop("device", "cpu")}
    name = name or f"{task}-{algorithm}-{seed}"
    limits = {"seconds": seconds or None, "steps": steps or None}
    return {"name": name, "task": task, "algorithm": algorithm, "seed": seed, **limits, **own, "settings": more}


def sweep() -> list[dict[str, Any]]:
    """Settings of SHAC, for whoever tunes it."""
    bare = {"options": {"contact_forces": False}, "seconds": 200}
    jobs = [job("Ant", "shac", name=f"span-{x:g}", span=x, **bare) for x in (0.2, 0.4, 0.6)]
    jobs += [job("Ant", "shac", name=f"clip-{x:g}", clip=x, **bare) for x in (3.0, 10.0, 300.0)]
    jobs += [job("Ant", "shac", name=f"envs-{n}", envs=n, **bare) for n in (64, 256)]
    jobs += [job("Ant", "shac", name=f"rate-{x:g}", actor_rate=x, **bare) for x in (5e-4, 5e-3)]
    jobs += [job("Ant", "shac", name="gamma-0.98", gamma=0.98, **bare)]
    jobs += [job("Ant", "ppo", name="ppo", **bare)]
    jobs += [job(task, "shac", seconds=200) for task in ("HalfCheetah", "Hopper", "Walker2d", "Laikago")]
    return jobs


def gym() -> list[dict[str, Any]]:
    """Gymnasium's robots: SHAC with several seeds, PPO with one; and a Laikago."""
    bare = {"options": {"contact_forces": False}}
    jobs = [job("Ant", "shac", seed, seconds=270, **bare) for seed in range(3)]
    jobs += [job(t, "shac", seed, seconds=270) for t in ("HalfCheetah", "Hopper", "Walker2d") for seed in range(2)]
    jobs += [job("Ant", "ppo", seconds=270, **bare)]
    jobs += [job(t, "ppo", seconds=270) for t in ("HalfCheetah", "Hopper", "Walker2d")]
    jobs += [job("Laikago", "shac", 1, seconds=270)]
    return jobs


def humanoid() -> list[dict[str, Any]]:
    """The humanoid on a GPU."""
    shared = {"device": "cuda", "hidden": (256, 128), "critic_hidden": (256, 256), "seconds": 420}
    return [
        job("Humanoid", "ppo", envs=4096, horizon=16, pieces=8, **shared),
        job("Humanoid", "shac", envs=1024, decay_steps=100_000_000, **shared),
    ]


def pendulum(*algorithms: str) -> list[dict[str, Any]]:
    """Table 4 of Qiao et al. (2021): n links, five seeds, at the published time step and, below, at a tenth of it."""
    seconds = {"policy-enhancement": 45, "sac": 45, "mbpo": 45, "bptt": 10}
    small = {"policy-enhancement": {"hidden": (128, 128)}, "sac": {"hidden": (128, 128)}, "bptt": {}}
    small["mbpo"] = {
        "hidden": (128, 128),
        "envs": 4,
        "first": 1000,
        "model_every": 500,
        "rollouts": 4000,
        "horizon": (1, 1, 0, 1),
    }
    return [
        job("PendulumReach", a, seed, name=f"{a}-{n}-{seed}", seconds=seconds[a], options={"links": n}, **small[a])
        for a in algorithms
        for n in range(1, 8)
        for seed in range(5)
    ]


def laikago() -> list[dict[str, Any]]:
    """Walking at a commanded speed, five seeds."""
    return [job("Laikago", "shac", seed, seconds=400) for seed in range(5)]


def figure_5() -> list[dict[str, Any]]:
    """Sample enhancement on the ant, beside others, four seeds."""
    shared: dict[str, Any] = {"options": {"contact_forces": False}, "steps": 50_000, "seconds": 540}
    small = {"envs": 5, "updates": 20, "first": 5000}
    model = {"model_every": 1000, "rollouts": 10_000}
    return [
        job("Ant", algorithm, seed, **shared, **small, **(model if "m" in algorithm else {}))
        for algorithm in ("mbpo", "sample-enhancement", "sac", "sql")
        for seed in range(4)
    ]


SUITES = {
    "sweep": sweep,
    "gym": gym,
    "humanoid": humanoid,
    "table-4": lambda: pendulum("policy-enhancement", "bptt"),
    "table-4-others": lambda: pendulum("sac", "mbpo"),
    "laikago": laikago,
    "figure-5": figure_5,
}


def run(job: dict[str, Any], models: str | None) -> dict[str, Any]:
    """One training from beginning to end: its curve, and its policy as bytes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from artigrad.learn import Training

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    model = None
    if models is not None and job["task"] in GYM:
        model = pickle.loads((Path(models) / f"{job['task']}.pickle").read_bytes())
    how = {"device": job["device"], "threads": 1, "options": job["options"], "model": model}
    training = Training(job["task"], job["algorithm"], seed=job["seed"], **how, **job["settings"])
    curve: list[dict[str, float]] = []
    cpu = time.process_time()
    training.run(
        job["steps"],
        seconds=job["seconds"],
        watch=lambda found: curve.append({**found, "cpu": time.process_time() - cpu}),
    )
    whole, every = training.learner.state_dict(), max(1, len(curve) // POINTS)
    slim = {"settings": whole["settings"], "parts": {"policy": whole["parts"]["policy"]}, "steps": whole["steps"]}
    file = io.BytesIO()
    torch.save({"about": training.about, "seconds": training.seconds, "learner": slim}, file)
    return {"job": job, "curve": [*curve[::every], curve[-1]], "policy": file.getvalue()}


def pack(folder: Path) -> None:
    """The robots of Gymnasium, for machines without it."""
    from artigrad.envs import TASKS

    folder.mkdir(parents=True, exist_ok=True)
    for name in GYM:
        (folder / f"{name}.pickle").write_bytes(pickle.dumps(TASKS[name]().model))


def main() -> None:
    """Train, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("suite", choices=[*SUITES, "pack"])
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models", default=None, help="folder of pickled robots")
    parser.add_argument("--seconds", type=float, default=None, help="of each training, in place of its own")
    parser.add_argument("--only", default="", help="trainings whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path("results"))
    given = parser.parse_args()
    if given.suite == "pack":
        return pack(Path(given.models or "build/models"))
    jobs = [one for one in SUITES[given.suite]() if given.only in one["name"]]
    for one in jobs:
        one["seconds"] = given.seconds or one["seconds"]
    given.out.mkdir(parents=True, exist_ok=True)
    results = []
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, one, given.models): one for one in jobs}
        for future in as_completed(futures):
            name = futures[future]["name"]
            if future.exception() is not None:
                print(f"{name:32} failed: {future.exception()!r}", flush=True)
                continue
            results.append(future.result())
            last = results[-1]["curve"][-1]
            print(f"{name:32}", {k: round(v, 3) for k, v in last.items()}, flush=True)
            save(given.out, given.suite, results)


def save(folder: Path, suite: str, results: list[dict[str, Any]]) -> None:
    """What is there so far."""
    kept = [{"job": r["job"], "curve": r["curve"]} for r in results]
    (folder / f"learn-{suite}.json").write_text(json.dumps(kept))
    with zipfile.ZipFile(folder / f"policies-{suite}.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for r in results:
            file.writestr(f"{r['job']['name']}.pt", r["policy"])


if __name__ == "__main__":
    main()
