"""What makes an environment of a robot: how actions drive it, what is observed, what is rewarded, when it is over.

Functions are on arrays with one row per robot and come with their adjoints, so that an environment can tell how its
observations and rewards depend on the action.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..model.model import Model
from ..model.state import State


class Transition(NamedTuple):
    """One step of an environment: the states before and after it, and the action within -1 and 1, (..., nu)."""

    before: State
    action: np.ndarray
    after: State


class RewardBars(NamedTuple):
    """Cotangents of a reward: of the action and of the state after it."""

    action: np.ndarray
    q: np.ndarray
    v: np.ndarray


class EnvTask(ABC):
    """A robot and what it is to do. Subclasses set the fields and write the functions.

    model: the robot. dt: s, one step of the simulator. frame_skip: steps of the simulator in one of the environment.
    episode: steps of the environment until it is cut off. scale, offset: (nu,), controls = offset + scale * action.
    options: of the Simulator.
    """

    model: Model
    dt: float
    frame_skip: int
    episode: int
    scale: np.ndarray
    offset: np.ndarray
    observation_size: int
    options: dict[str, Any] = {}

    @abstractmethod
    def start(self, rng: np.random.Generator, count: int) -> State:
        """Random first states of `count` robots."""

    @abstractmethod
    def observe(self, state: State, progress: np.ndarray) -> np.ndarray:
        """Observations (..., observation_size). progress: (...), which part of the episode is over."""

    @abstractmethod
    def observe_vjp(self, state: State, o_bar: np.ndarray) -> State:
        """The cotangents of q and v for that of the observations."""

    @abstractmethod
    def reward(self, step: Transition) -> np.ndarray:
        """Rewards (...)."""

    @abstractmethod
    def reward_vjp(self, step: Transition) -> RewardBars:
        """The gradient of the reward with respect to the action and to the state after it."""

    @abstractmethod
    def over(self, state: State) -> np.ndarray:
        """Which robots (...) have failed, so that their episode ends."""
