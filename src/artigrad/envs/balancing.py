"""Poles and pendulums in a vertical plane."""

from __future__ import annotations

import numpy as np

from ..model.state import State
from ..robots import cartpole, loaded_links
from ..robots.chains import LINK as LENGTH
from .env_task import EnvTask, RewardBars, Transition


class CartpoleSwingUp(EnvTask):
    """Swing n poles up from hanging and keep them there; the action pushes the cart with up to 20 N.

    Observed: place of the cart (m), sines and cosines of the poles' angles from the vertical, velocities. Rewarded: mean
    cosine of those angles - 0.05 x^2 - 0.005 |v|^2 - 0.001 a^2. Over when the cart is more than 4 m away.
    """

    def __init__(self, poles: int = 1):
        self.model, self.poles = cartpole(poles, damping=0.02), poles
        self.dt, self.frame_skip, self.episode = 0.01, 2, 500
        self.scale, self.offset = np.array([20.0]), np.zeros(1)
        self.observation_size = 2 + 3 * poles

    def start(self, rng: np.random.Generator, count: int) -> State:
        q, v = self.model.keyframe("hanging")
        return State(q + 0.05 * rng.normal(size=(count, len(q))), v + 0.05 * rng.normal(size=(count, len(v))))

    def observe(self, state: State, progress: np.ndarray) -> np.ndarray:
        angle = np.cumsum(state.q[..., 1:], -1)
        return np.concatenate([state.q[..., :1], np.sin(angle), np.cos(angle), state.v], -1)

    def observe_vjp(self, state: State, o_bar: np.ndarray) -> State:
        n, angle = self.poles, np.cumsum(state.q[..., 1:], -1)
        x_bar, sine_bar, cosine_bar, v_bar = np.split(o_bar, [1, 1 + n, 1 + 2 * n], -1)
        angle_bar = np.cos(angle) * sine_bar - np.sin(angle) * cosine_bar
        return State(np.concatenate([x_bar, _sum_outwards(angle_bar)], -1), v_bar)

    def reward(self, step: Transition) -> np.ndarray:
        q, v = step.after
        upright = np.cos(np.cumsum(q[..., 1:], -1)).mean(-1)
        effort = 0.005 * np.square(v).sum(-1) + 0.001 * np.square(step.action).sum(-1)
        return upright - 0.05 * np.square(q[..., 0]) - effort

    def reward_vjp(self, step: Transition) -> RewardBars:
        q, v = step.after
        angle_bar = -np.sin(np.cumsum(q[..., 1:], -1)) / self.poles
        q_bar = np.concatenate([-0.1 * q[..., :1], _sum_outwards(angle_bar)], -1)
        return RewardBars(-0.002 * step.action, q_bar, -0.01 * v)

    def over(self, state: State) -> np.ndarray:
        return np.abs(state.q[..., 0]) > 4.0


class PendulumReach(EnvTask):
    """Bring the tip of n links from the horizontal to the highest point it can reach; the action times 10 N m at each joint.

    The n-link pendulum of Qiao et al. (2021), figure 4: links of 0.5 m, 1.0 kg then 2.16 kg at their ends, a tip of
    0.01 kg, gravity 9.8 m/s^2, steps of 1/60 s. Observed: velocities, x and z of each link's end (the last is the tip),
    the part of the episode that is over. Rewarded: how much the squared distance to the goal shrank, n^2/2 in all at best.
    """

    def __init__(self, links: int = 2):
        self.model, self.links = loaded_links(links), links
        self.dt, self.frame_skip, self.episode = 1 / 60, 1, 100
        self.scale, self.offset = np.full(links, 10.0), np.zeros(links)
        self.observation_size = 3 * links + 1

    def start(self, rng: np.random.Generator, count: int) -> State:
        return State(np.zeros((count, self.links)), np.zeros((count, self.links)))

    def _ends(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x and z of the links' ends."""
        angle = np.cumsum(q, -1)
        return LENGTH * np.cumsum(np.cos(angle), -1), LENGTH * np.cumsum(np.sin(angle), -1)

    def _ends_vjp(self, q: np.ndarray, x_bar: np.ndarray, z_bar: np.ndarray) -> np.ndarray:
        angle = np.cumsum(q, -1)
        x_bar, z_bar = _sum_outwards(x_bar), _sum_outwards(z_bar)
        return LENGTH * _sum_outwards(np.cos(angle) * z_bar - np.sin(angle) * x_bar)

    def observe(self, state: State, progress: np.ndarray) -> np.ndarray:
        return np.concatenate([state.v, *self._ends(state.q), progress[..., None]], -1)

    def observe_vjp(self, state: State, o_bar: np.ndarray) -> State:
        n = self.links
        v_bar, x_bar, z_bar, _ = np.split(o_bar, [n, 2 * n, 3 * n], -1)
        return State(self._ends_vjp(state.q, x_bar, z_bar), v_bar)

    def _distance(self, q: np.ndarray) -> np.ndarray:
        """|x - g|^2 of the tip to the highest point it can reach."""
        x, z = self._ends(q)
        return np.square(x[..., -1]) + np.square(z[..., -1] - LENGTH * self.links)

    def reward(self, step: Transition) -> np.ndarray:
        return self._distance(step.before.q) - self._distance(step.after.q)

    def reward_vjp(self, step: Transition) -> RewardBars:
        q, v = step.after
        x, z = self._ends(q)
        x_bar, z_bar = np.zeros_like(x), np.zeros_like(z)
        x_bar[..., -1], z_bar[..., -1] = -2.0 * x[..., -1], -2.0 * (z[..., -1] - LENGTH * self.links)
        return RewardBars(np.zeros_like(step.action), self._ends_vjp(q, x_bar, z_bar), np.zeros_like(v))

    def over(self, state: State) -> np.ndarray:
        return np.zeros(state.q.shape[:-1], bool)


def _sum_outwards(x: np.ndarray) -> np.ndarray:
    """The adjoint of cumsum: y[k] = x[k] + x[k+1] + ..."""
    return np.cumsum(x[..., ::-1], -1)[..., ::-1]
