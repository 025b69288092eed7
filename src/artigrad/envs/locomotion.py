"""Robots that are to move along x: ant, hopper, quadruped."""

from __future__ import annotations

from math import inf

import numpy as np

from .. import robots
from ..model import tangent
from ..model.model import Model
from ..model.state import State
from .env_task import EnvTask, RewardBars, Transition


class Locomotion(EnvTask):
    """Rewarded: speed along x + 1 - cost |a|^2, with x = q[0].

    Observed: q from entry `hidden` on, so that it does not matter where the robot is, and v, cut off at `fastest`.
    noise: of the first state, in tangent positions (uniform) and in velocities (normal).
    """

    hidden: int
    cost: float
    noise: tuple[float, float]
    fastest = inf

    def __init__(self, model: Model):
        self.model = model
        self.scale, self.offset = np.ones(model.nu), np.zeros(model.nu)
        self.observation_size = model.nq - self.hidden + model.nv

    def start(self, rng: np.random.Generator, count: int) -> State:
        (q, v), (dq, dv) = self.model.keyframe(), self.noise
        shape = (count, self.model.nv)
        return State(tangent.move(self.model, q, dq * rng.uniform(-1, 1, shape)), v + dv * rng.normal(size=shape))

    def observe(self, state: State, progress: np.ndarray) -> np.ndarray:
        return np.concatenate([state.q[..., self.hidden :], np.clip(state.v, -self.fastest, self.fastest)], -1)

    def observe_vjp(self, state: State, o_bar: np.ndarray) -> State:
        nq, nv = self.model.nq, self.model.nv
        q_bar = np.zeros((*o_bar.shape[:-1], nq), o_bar.dtype)
        q_bar[..., self.hidden :] = o_bar[..., : nq - self.hidden]
        return State(q_bar, o_bar[..., -nv:] * (np.abs(state.v) <= self.fastest))

    def reward(self, step: Transition) -> np.ndarray:
        speed = (step.after.q[..., 0] - step.before.q[..., 0]) / (self.dt * self.frame_skip)
        return speed + 1.0 - self.cost * np.square(step.action).sum(-1)

    def reward_vjp(self, step: Transition) -> RewardBars:
        q_bar = np.zeros_like(step.after.q)
        q_bar[..., 0] = 1 / (self.dt * self.frame_skip)
        return RewardBars(-2.0 * self.cost * step.action, q_bar, np.zeros_like(step.after.v))


class Ant(Locomotion):
    """Gymnasium's Ant: eight torques of up to 150 N m, 27 observations, 5 steps of 0.01 s. Over when the height of the torso
    leaves 0.2 to 1 m."""

    dt, frame_skip, episode = 0.01, 5, 1000
    hidden, cost, noise = 2, 0.5, (0.1, 0.1)
    options = {"lanes": 4}  # ants lie on the floor in many ways, so wide packs look at too much

    def __init__(self) -> None:
        super().__init__(robots.ant())

    def over(self, state: State) -> np.ndarray:
        height = state.q[..., 2]
        return (height < 0.2) | (height > 1.0)


class Hopper(Locomotion):
    """Gymnasium's Hopper: three torques of up to 200 N m, 11 observations, 4 steps of 0.002 s. Over when the torso is below
    0.7 m or leans more than 0.2 rad. Its height, q[1], counts from 1.25 m."""

    dt, frame_skip, episode = 0.002, 4, 1000
    hidden, cost, noise, fastest = 1, 1e-3, (5e-3, 5e-3), 10.0

    def __init__(self) -> None:
        super().__init__(robots.hopper())

    def over(self, state: State) -> np.ndarray:
        return (state.q[..., 1] < 0.7 - 1.25) | (np.abs(state.q[..., 2]) > 0.2)


class QuadrupedWalk(Locomotion):
    """Laikago: the action moves the targets of twelve servos by up to 0.4 rad from standing; 35 observations, 10 steps of
    0.002 s. Over when the trunk is below 0.3 m or leans more than 60 degrees."""

    dt, frame_skip, episode = 0.002, 10, 500
    hidden, cost, noise = 2, 0.05, (0.02, 0.02)

    def __init__(self) -> None:
        super().__init__(robots.laikago())
        self.scale, self.offset = np.full(12, 0.4), self.model.keyframe_control()

    def over(self, state: State) -> np.ndarray:
        x, y = state.q[..., 4], state.q[..., 5]
        upright = 1.0 - 2.0 * (x * x + y * y)  # z component of the trunk's z axis
        return (state.q[..., 2] < 0.3) | (upright < 0.5)
