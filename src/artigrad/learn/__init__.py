"""Reinforcement learning with and without gradients of the physics, on `artigrad.envs.DifferentiableEnv`."""

from ..errors import need

need("torch", "artigrad.learn needs PyTorch", "learn")

from .evaluation import Player
from .learner import Learner, Settings
from .training import ALGORITHMS, Training

__all__ = ["ALGORITHMS", "Learner", "Player", "Settings", "Training"]
