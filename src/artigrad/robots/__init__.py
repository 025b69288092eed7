"""Robots to work with. Each function builds a fresh Model."""

from .arms import arm_dh
from .chains import cartpole, chain, pendulum
from .legged import laikago, quadruped
from .random import ball, random_tree

__all__ = ["arm_dh", "ball", "cartpole", "chain", "laikago", "pendulum", "quadruped", "random_tree"]
