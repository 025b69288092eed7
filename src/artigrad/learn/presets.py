"""Presets: settings that `Training` uses for a task in place of the algorithm's defaults.

Short episodes reset robots that fell on their backs. Ants and cheetahs rarely terminate, which permits long rollouts in
gradients. Hoppers learn to fall forward unless the critic learns faster than the policy. SHAC's policies vary from update to
update, so evaluation uses an average of their weights.
"""

from __future__ import annotations

from typing import Any

EMA: dict[str, Any] = {"ema_decay": 0.99, "final_lr_fraction": 0.05}
PRESETS: dict[tuple[str, str], dict[str, Any]] = {
    ("Ant", "shac"): {"max_episode_steps": 250, "critic_iterations": 2, **EMA},
    ("HalfCheetah", "shac"): {"max_episode_steps": 200, **EMA},
    ("Hopper", "shac"): {"clip": 30.0, "gamma": 0.995, "horizon_seconds": 0.1, "actor_learning_rate": 3e-4, **EMA},
    ("Walker2d", "shac"): {"actor_learning_rate": 1e-3, **EMA},
    ("Laikago", "shac"): {"clip": 30.0},
    ("Ant", "ppo"): {"max_episode_steps": 250},
    ("HalfCheetah", "ppo"): {"max_episode_steps": 250},
}
TASK_OPTIONS: dict[str, dict[str, Any]] = {
    "Ant": {"contact_forces": False}
}  # ants learn slowly to ignore contact forces
