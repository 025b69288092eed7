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
    jobs = [job("Ant", "shac", name=f"clip-{c:g}", clip=c, **bare) for c in (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)]
    jobs += [job("Ant", "shac", name=f"horizon-{h}", horizon=h, clip=3.0, **bare) for h in (8, 16)]
    jobs += [job("Ant", "shac", name="slow", actor_rate=5e-4, clip=3.0, **bare)]
    jobs += [job("Ant", "shac", name="wide", envs=256, clip=3.0, **bare)]
    jobs += [job("Ant", "shac", name="few", envs=32, clip=3.0, **bare)]
    jobs += [job("Ant", "ppo", name="ppo", **bare)]
    jobs += [job(task, "shac", seconds=200, clip=3.0) for task in ("HalfCheetah", "Hopper", "Walker2d")]
    return jobs


SUITES = {"sweep": sweep}


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
