"""What was found to work for robots that walk, beside an algorithm's own settings; `Training` begins with these.

Episodes are cut off early, so that few robots lie on their backs for long. Ants and cheetahs fail seldom, and gradients may
look far ahead; hoppers throw themselves forwards unless the critic keeps ahead of their policy. Policies of SHAC vary from
update to update, and a mean over them is what is played.
"""

from __future__ import annotations

from typing import Any

MEAN: dict[str, Any] = {"average": 0.99, "last_rate": 0.05}
TUNED: dict[tuple[str, str], dict[str, Any]] = {
    ("Ant", "shac"): {"episode": 250, "critic_passes": 2, **MEAN},
    ("HalfCheetah", "shac"): {"episode": 200, **MEAN},
    ("Hopper", "shac"): {"clip": 30.0, "gamma": 0.995, "span": 0.1, "actor_rate": 3e-4, **MEAN},
    ("Walker2d", "shac"): {"actor_rate": 1e-3, **MEAN},
    ("Laikago", "shac"): {"clip": 30.0},
    ("Ant", "ppo"): {"episode": 250},
    ("HalfCheetah", "ppo"): {"episode": 250},
}
OPTIONS: dict[str, dict[str, Any]] = {"Ant": {"contact_forces": False}}  # which an ant learns slowly to do without
