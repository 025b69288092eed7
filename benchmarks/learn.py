"""Train many policies in parallel, one process each: `python -m benchmarks.learn SUITE [--processes N] [--out FOLDER]`.

Suites are lists of trainings, below. Results: `learn-SUITE.json` with the metrics over steps and seconds, and
`policies-SUITE.zip` with the policies of the best evaluations, for `artigrad play`. Without MuJoCo and Gymnasium, robots
come from a folder that `python -m benchmarks.learn pack --models FOLDER` wrote on another machine.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
import os
import pickle
import re
import time
import warnings
import zipfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

GYM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d")
POINTS = 60  # points of a saved curve


def job(
    task: str, algorithm: str, seed: int = 0, *, name: str = "", seconds: float = 0, steps: int = 0, **more: Any
) -> dict[str, Any]:
    """Return the description of a training.

    Args:
      task, algorithm, seed, name: As for Training; name of the result.
      seconds, steps: Limits; 0: none.
      more: `options` of the task; `device`; `processes` that train together, one core each, with these settings each;
        `tries`, the number of evaluations on `robots` whole episodes, from the fraction `since` of the training on. All
        else are settings of the algorithm. Decaying learning rates reach their last value at the end of the training.
    """
    usual = {"options": {}, "device": "cpu", "processes": 1, "tries": 20, "robots": 8, "since": 0.0}
    own = {key: more.pop(key, value) for key, value in usual.items()}
    name = name or f"{task}-{algorithm}-{seed}"
    limits = {"seconds": seconds or None, "steps": steps or None}
    return {"name": name, "task": task, "algorithm": algorithm, "seed": seed, **limits, **own, "settings": more}


def gym(seeds: int = 5) -> list[dict[str, Any]]:
    """Gymnasium's robots except the humanoid: SHAC, and PPO with more steps, until it converges."""
    shac = {"Ant": 600_000, "HalfCheetah": 600_000, "Hopper": 1_000_000, "Walker2d": 900_000}
    jobs = []
    for seed, (task, steps) in itertools.product(range(seeds), shac.items()):
        jobs.append(job(task, "shac", seed, steps=steps, lr_decay_steps=steps))
        jobs.append(job(task, "ppo", seed, steps=3_000_000))
    return jobs


def minutes() -> list[dict[str, Any]]:
    """Ants trained for five minutes."""
    return [job("Ant", "shac", seed, seconds=293, tries=5, since=0.75, robots=32) for seed in range(5)]


def humanoid() -> list[dict[str, Any]]:
    """The humanoid on a GPU."""
    wide = {
        "hidden": (256, 128),
        "critic_hidden": (256, 256),
        "num_envs": 8192,
        "num_steps": 16,
        "num_minibatches": 16,
        "update_epochs": 4,
    }
    return [job("Humanoid", "ppo", device="cuda", seconds=420, tries=0, **wide)]


def pendulum(*algorithms: str) -> list[dict[str, Any]]:
    """Table 4 of Qiao et al. (2021): n links, five seeds, at the published time step and at a tenth of it.

    Rewards are about 0.05 per step, so the entropy coefficient begins low. The longest trainings come first.
    """
    soft: dict[str, Any] = {
        "hidden": (64, 64),
        "batch_size": 128,
        "critic_updates": 16,
        "learning_rate": 1e-3,
        "lr_decay_steps": 1,
        "gamma": 1.0,
    }
    soft |= {"tau": 0.02, "learning_starts": 1000, "alpha": 0.003, "target_entropy_scale": 2.0, "ema_decay": 0.9}
    model = {
        "num_envs": 8,
        "model_train_frequency": 1000,
        "num_model_rollouts": 4000,
        "rollout_length_schedule": (1, 1, 0, 1),
    }
    exact: dict[str, Any] = {"gamma": 1.0, "lr_decay_steps": 1}
    own: dict[str, dict[str, Any]] = {"policy-enhancement": exact, "sac": soft, "mbpo": soft | model, "bptt": {}}
    seconds = dict(enumerate((6, 14, 14, 14, 16, 16, 30), 1))
    jobs = [
        job(
            "PendulumReach",
            a,
            seed,
            name=f"{a}-{n}-{seed}",
            seconds=seconds[n],
            tries=30,
            options={"links": n},
            **own[a],
        )
        for n in seconds
        for a in algorithms
        for seed in range(5)
    ]
    return sorted(jobs, key=lambda j: -j["seconds"])


def laikago() -> list[dict[str, Any]]:
    """Walking at a commanded speed, five seeds."""
    return [job("Laikago", "shac", seed, seconds=100) for seed in range(5)]


def figure_5() -> list[dict[str, Any]]:
    """Sample enhancement on the ant, and other algorithms for comparison. Networks are smaller than published and updates
    fewer, two per step in place of 20, so that 50,000 steps take six to eight minutes of one core."""
    shared: dict[str, Any] = {"steps": 50_000, "tries": 25, "robots": 4}
    soft: dict[str, Any] = {
        "num_envs": 10,
        "critic_updates": 20,
        "batch_size": 128,
        "hidden": (128, 128),
        "critic_layer_norm": True,
        "learning_starts": 2500,
    }
    soft |= {"policy_frequency": 2, "learning_rate": 7e-4, "tau": 0.01, "gamma": 0.97, "ema_decay": 0.98}
    soft |= {"max_episode_steps": 250, "target_entropy_scale": 0.2}
    model: dict[str, Any] = {
        "ensemble_size": 4,
        "num_elites": 3,
        "model_hidden": (200, 200),
        "model_learning_rate": 2e-3,
        "real_ratio": 0.8,
    }
    model |= {
        "model_train_frequency": 1000,
        "model_epochs": 2,
        "num_model_rollouts": 10_000,
        "rollout_length_schedule": (1, 1, 0, 1),
        "extra_sample_std": 0.2,
    }
    few = {
        "num_envs": 16,
        "num_steps": 128,
        "update_epochs": 10,
        "num_minibatches": 32,
    }  # as PPO is used where steps are expensive
    own: dict[str, dict[str, Any]] = {
        "mbpo": soft | model,
        "sample-enhancement": soft | model,
        "sac": soft,
        "sql": soft,
    }
    own |= {"ppo": few, "shac": {"num_envs": 16, "lr_decay_steps": 50_000}}
    return [job("Ant", a, seed, **shared, **own[a]) for seed in range(5) for a in own]


SUITES = {
    "gym": gym,
    "minutes": minutes,
    "humanoid": humanoid,
    "table-4": lambda: pendulum("policy-enhancement", "sac", "mbpo", "bptt"),
    "laikago": laikago,
    "figure-5": figure_5,
}


def take_up(learner: Any, saved: dict[str, Any]) -> None:
    """Restore networks and optimizers of an earlier run; environments are reset."""
    learner.steps = saved["steps"]
    for name, state in saved["modules"]["last"].items():
        if name != "episode_stats":
            learner.modules[name].load_state_dict(state)


def run(job: dict[str, Any], models: str | None, start: str | None = None) -> dict[str, Any]:
    """Run a training; return its metrics and its policy as bytes."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    model = robot(job, models)
    others, group = company(job, models)
    training = prepared(job, model, group)
    if start is not None:
        take_up(training.learner, torch.load(start, weights_only=True, map_location=job["device"])["learner"])
    curve: list[dict[str, float]] = []
    tries: list[list[float]] = []
    cpu = time.process_time()
    trial = Trial(job, {**training.about["options"], **({} if model is None else {"model": model})})
    best: dict[str, Any] = {}
    keep = Path(job["out"]) / f"{job['name']}.pt"  # intermediate results of a run without evaluations

    def attempt(found: dict[str, float]) -> None:
        policy = training.learner.ema_policy
        tries.append([found["steps"], found["seconds"], trial(policy)])
        if tries[-1][2] >= max(score for _, _, score in tries):
            best.update({name: x.detach().clone() for name, x in policy.state_dict().items()})

    def watch(found: dict[str, float]) -> None:
        curve.append({**found, "cpu": time.process_time() - cpu})
        part = max(found["seconds"] / (job["seconds"] or math.inf), found["steps"] / (job["steps"] or math.inf))
        if getattr(training.learner.settings, "lr_decay_steps", None) is not None:
            training.learner.settings.lr_decay_steps = round(found["steps"] / part)
        if group is not None:
            group.all_reduce_sum(torch.tensor(part, dtype=torch.float64))
        if not job["tries"] and found["seconds"] >= 20.0 * len(tries):
            tries.append([found["steps"], found["seconds"], found["return"]])
            print({k: round(v, 3) for k, v in found.items()}, flush=True)
            keep.write_bytes(saved(training, job, training.learner.policy.state_dict()))
        if job["tries"] and part >= job["since"] + (1.0 - job["since"]) * len(tries) / job["tries"]:
            attempt(found)

    training.run(job["steps"], seconds=job["seconds"], watch=watch)
    for other in others:
        other.join()
    if group is not None:
        group.close()
    if job["tries"]:
        attempt(curve[-1])
    every = max(1, len(curve) // POINTS)
    policy = saved(training, job, best or training.learner.policy.state_dict())
    return {"job": job, "curve": [*curve[::every], curve[-1]], "tries": tries, "policy": policy}


def robot(job: dict[str, Any], models: str | None) -> Any:
    """Return the robot of a training, or None if it comes with Gymnasium."""
    if models is None or job["task"] not in GYM:
        return None
    return pickle.loads((Path(models) / f"{job['task']}.pickle").read_bytes())


def prepared(job: dict[str, Any], model: Any, group: Any) -> Any:
    """Return the Training of a job, in its process group."""
    import torch

    from artigrad.learn import Training

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    how = {"device": job["device"], "threads": 1, "model": model, "process_group": group}
    return Training(job["task"], job["algorithm"], seed=job["seed"], options=job["options"], **how, **job["settings"])


def company(job: dict[str, Any], models: str | None) -> tuple[list[Any], Any]:
    """Start the other processes of a training; return them and the process group."""
    from artigrad.learn.distributed import GlooProcessGroup, free_port

    if job["processes"] == 1:
        return [], None
    address, spawn = f"tcp://127.0.0.1:{free_port()}", get_context("spawn")
    ranks = range(1, job["processes"])
    others = [spawn.Process(target=accompany, args=(job, models, rank, address)) for rank in ranks]
    for other in others:
        other.start()
    return others, GlooProcessGroup(0, job["processes"], address)


def accompany(job: dict[str, Any], models: str | None, rank: int, address: str) -> None:
    """Run another process of a training until the first one ends."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from artigrad.learn.distributed import GlooProcessGroup

    group = GlooProcessGroup(rank, job["processes"], address)
    learner, part = prepared(job, robot(job, models), group).learner, 0.0
    while part < 1.0:
        learner.update()
        part = float(group.all_reduce_sum(torch.zeros((), dtype=torch.float64)))
        if getattr(learner.settings, "lr_decay_steps", None) is not None:
            learner.settings.lr_decay_steps = round(learner.steps / part)
    group.close()


def saved(training: Any, job: dict[str, Any], policy: dict[str, Any]) -> bytes:
    """Return a checkpoint for Player as bytes; from a GPU also with the state of the training."""
    import torch

    whole = training.learner.state_dict()
    modules = {"policy": policy, **({} if job["device"] == "cpu" else {"last": whole["modules"]})}
    slim = {"settings": whole["settings"], "modules": modules, "steps": whole["steps"]}
    file = io.BytesIO()
    torch.save({"about": training.about, "seconds": training.seconds, "learner": slim}, file)
    return file.getvalue()


class Trial:
    """Evaluation of a policy without noise on whole episodes, for curves: training episodes may be truncated early."""

    def __init__(self, job: dict[str, Any], options: dict[str, Any]):
        from artigrad.envs import DifferentiableEnv

        robots = 1 if job["task"] == "PendulumReach" else job["robots"]  # all of its episodes begin in the same state
        self.env = DifferentiableEnv(job["task"], robots, device=job["device"], threads=1, seed=10_000, **options)

    def __call__(self, policy: Any) -> float:
        """Return the mean return."""
        import torch

        with torch.no_grad():
            observation, total = self.env.reset(), 0.0
            going = torch.ones(self.env.num_envs, device=observation.device)
            for t in range(self.env.max_episode_steps):
                found = self.env.step(policy(observation))
                total += going * found.reward
                going = going * ~(found.terminated | found.truncated)
                observation = found.observation
                if t % 50 == 0 and not going.any():
                    break
        return float(total.mean())


def pack(folder: Path) -> None:
    """Write Gymnasium's robots, for machines without it."""
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
    parser.add_argument("--seconds", type=float, default=None, help="of each training, in place of the suite's")
    parser.add_argument("--only", default="", help="trainings whose name this regular expression finds")
    parser.add_argument("--start", default=None, help="a policy of a GPU that is trained on")
    parser.add_argument("--out", type=Path, default=Path("results"))
    given = parser.parse_args()
    if given.suite == "pack":
        return pack(Path(given.models or "build/models"))
    jobs = [one for one in SUITES[given.suite]() if re.search(given.only, one["name"])]
    for one in jobs:
        one["seconds"], one["out"] = given.seconds or one["seconds"], str(given.out)
    given.out.mkdir(parents=True, exist_ok=True)
    results = []
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, one, given.models, given.start): one for one in jobs}
        for future in as_completed(futures):
            name = futures[future]["name"]
            if future.exception() is not None:
                print(f"{name:32} failed: {future.exception()!r}", flush=True)
                continue
            results.append(future.result())
            last = results[-1]["curve"][-1]
            print(f"{name:32}", [float(f"{x[2]:.4g}") for x in results[-1]["tries"]], flush=True)
            print(f"{name:32}", {k: round(v, 3) for k, v in last.items()}, flush=True)
            save(given.out, given.suite, results)


def save(folder: Path, suite: str, results: list[dict[str, Any]]) -> None:
    """Write the results so far. An interruption while writing keeps the previous files."""
    kept = [{"job": r["job"], "curve": r["curve"], "tries": r["tries"]} for r in results]
    fresh = folder / f"{suite}.part"
    fresh.write_text(json.dumps(kept))
    fresh.replace(folder / f"learn-{suite}.json")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as file:
        for r in results:
            file.writestr(f"{r['job']['name']}.pt", r["policy"])
    fresh.replace(folder / f"policies-{suite}.zip")


if __name__ == "__main__":
    main()
