"""What was found to work for robots that walk, beside an algorithm's own settings; `Training` begins with these.

Episodes are cut off early, so that few robots lie on their backs for long. Ants and cheetahs fail seldom, and gradients may
look far ahead; hoppers and walkers throw themselves forwards unless the critic keeps ahead of their policy.
"""

from __future__ import annotations

from typing import Any

FAR: dict[str, Any] = {"episode": 250, "critic_passes": 2, "last_rate": 0.05}
NEAR: dict[str, Any] = {"clip": 30.0, "gamma": 0.995, "span": 0.1, "actor_rate": 3e-4, "last_rate": 0.05}
TUNED: dict[tuple[str, str], dict[str, Any]] = {
    ("Ant", "shac"): {"average": 0.99, **FAR},
    ("HalfCheetah", "shac"): FAR,
    ("Hopper", "shac"): NEAR,
    ("Walker2d", "shac"): NEAR,
    ("Laikago", "shac"): {"clip": 30.0},
    ("Ant", "ppo"): {"episode": 250},
    ("HalfCheetah", "ppo"): {"episode": 250},
}
OPTIONS: dict[str, dict[str, Any]] = {"Ant": {"contact_forces": False}}  # which an ant learns slowly to do without
