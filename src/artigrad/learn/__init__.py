"""Learning: policies through the physics and beside it, each algorithm one file, on `artigrad.envs.DifferentiableEnv`."""

from ..errors import need

need("torch", "artigrad.learn needs PyTorch", "learn")

from .learner import Learner, Settings
from .playing import Player
from .training import ALGORITHMS, Training

__all__ = ["ALGORITHMS", "Learner", "Player", "Settings", "Training"]
