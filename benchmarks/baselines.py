"""PPO and SAC of stable-baselines3 and RLlib compared with artigrad's: `python -m benchmarks.baselines [--seeds N]`.

Swing-up of a cart-pole. The others have their default settings, with as many environments and updates as artigrad's;
RLlib's PPO has the minibatches, discount and GAE lambda of the others, since its defaults are for larger machines.
artigrad's PPO has their initial noise and no normalization of observations, as they do. Returns are of four whole episodes
without noise, out of 1000. Needs the extra `baselines`, which pins Gymnasium to RLlib's version: use a separate virtual
environment.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import VecEnv

from artigrad.envs import DifferentiableEnv
from artigrad.envs.gym_env import spaces
from artigrad.learn import Training

from .report import Sheet

TASK = "CartpoleSwingUp"
ROBOTS, STEPS = {"ppo": 16, "sac": 8}, {"ppo": 100_000, "sac": 10_000}
OURS: dict[str, dict[str, Any]] = {
    "ppo": {
        "num_envs": 16,
        "num_steps": 128,
        "update_epochs": 10,
        "num_minibatches": 32,
        "normalize_observations": False,
        "log_std": 0.0,
    },
    "sac": {"num_envs": 8, "critic_updates": 8, "learning_starts": 500},
}


class Robots(VecEnv):
    """DifferentiableEnv with stable-baselines3's interface."""

    def __init__(self, count: int, seed: int):
        self.env = DifferentiableEnv(TASK, count, seed=seed, threads=1)
        super().__init__(count, *spaces(self.env.batch))

    def reset(self) -> Any:
        return self.env.reset().numpy()

    def step_async(self, actions: Any) -> None:
        self.actions = torch.as_tensor(actions)

    @torch.no_grad()
    def step_wait(self) -> Any:
        found = self.env.step(self.actions)
        over, cut = (found.terminated | found.truncated).numpy(), found.truncated.numpy()
        infos = [
            {"terminal_observation": last, "TimeLimit.truncated": bool(c)} if o else {}
            for last, o, c in zip(found.next_observation.numpy(), over, cut, strict=True)
        ]
        return found.observation.numpy(), found.reward.numpy(), over, infos

    def close(self) -> None:
        pass

    def get_attr(self, name: str, indices: Any = None) -> Any:
        return [getattr(self.env, name, None)] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError(name)

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError(name)

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


@torch.no_grad()
def score(act: Any) -> float:
    """Return the mean return of four whole episodes."""
    env = DifferentiableEnv(TASK, 4, seed=10_000, threads=1)
    observation, total = env.reset(), torch.zeros(4)
    for _ in range(env.max_episode_steps):
        found = env.step(act(observation))
        total, observation = total + found.reward, found.observation
    return float(total.mean())


def ours(algorithm: str, seed: int) -> float:
    training = Training(TASK, algorithm, threads=1, seed=seed, **OURS[algorithm])
    training.run(STEPS[algorithm])
    return score(training.learner.ema_policy)


def theirs(algorithm: str, seed: int) -> float:
    robots = Robots(ROBOTS[algorithm], seed)
    if algorithm == "ppo":
        learner: Any = PPO("MlpPolicy", robots, n_steps=128, seed=seed, device="cpu")
    else:
        learner = SAC("MlpPolicy", robots, gradient_steps=8, learning_starts=500, seed=seed, device="cpu")
    learner.learn(STEPS[algorithm])
    return score(lambda seen: torch.as_tensor(learner.predict(seen.numpy(), deterministic=True)[0]))


def rllib(algorithm: str, seed: int) -> float:
    """Train RLlib on artigrad's Gymnasium environment, in this process."""
    import gymnasium
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.algorithms.sac import SACConfig
    from ray.tune.registry import register_env

    ray.init(ignore_reinit_error=True, num_cpus=1, include_dashboard=False, log_to_driver=False)
    register_env("swing-up", lambda _: gymnasium.make(f"artigrad/{TASK}-v0"))
    robots = {"num_env_runners": 0, "num_envs_per_env_runner": ROBOTS[algorithm]}
    if algorithm == "ppo":
        config: Any = PPOConfig().training(
            train_batch_size_per_learner=2048, minibatch_size=64, num_epochs=10, lr=3e-4, gamma=0.99, lambda_=0.95
        )
    else:
        config = SACConfig().training(
            train_batch_size_per_learner=256, num_steps_sampled_before_learning_starts=500, training_intensity=256.0
        )
    built = config.environment("swing-up").env_runners(**robots).debugging(seed=seed).build_algo()
    while built.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0) < STEPS[algorithm]:
        built.train()
    module = built.get_module()

    def act(seen: torch.Tensor) -> torch.Tensor:
        mean = module.forward_inference({"obs": seen})["action_dist_inputs"].chunk(2, -1)[0]
        return torch.tanh(mean) if algorithm == "sac" else mean.clamp(-1.0, 1.0)

    found = score(act)
    built.stop()
    return found


WAYS = {"artigrad": ours, "stable-baselines3": theirs, "RLlib": rllib}


def main() -> None:
    """Train in turn, print and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", choices=list(STEPS), default=None)
    parser.add_argument("--way", choices=list(WAYS), default=None)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = []
    for algorithm in [given.only] if given.only else STEPS:
        for name, way in WAYS.items():
            if given.way not in (None, name):
                continue
            found = [way(algorithm, seed) for seed in range(given.seeds)]
            cells = [f"{np.median(found):.0f}", f"{min(found):.0f} to {max(found):.0f}"]
            lines.append([f"{algorithm}, {name}", f"{STEPS[algorithm]:,}", *cells])
            print(lines[-1], flush=True)
            title = f"Swing-up of a cartpole ({given.seeds} seeds)"
            sheet = Sheet(title, ["", "steps", "return, median", "least to largest"], lines)
            (given.out / "baselines.json").write_text(
                json.dumps({"title": title, "columns": sheet.columns, "lines": lines})
            )
    print(sheet.markdown())


if __name__ == "__main__":
    main()
