"""Bundled robots. Each function builds a new Model."""

from .arms import arm_dh
from .chains import cartpole, chain, loaded_links, pendulum
from .gym import ant, hopper
from .humanoid import humanoid
from .legged import laikago, quadruped
from .random import ball, random_tree

__all__ = [
    "ant",
    "arm_dh",
    "ball",
    "cartpole",
    "chain",
    "hopper",
    "humanoid",
    "laikago",
    "loaded_links",
    "pendulum",
    "quadruped",
    "random_tree",
]
