"""Swing-up: a policy for cart and pendulum, trained on plans with the true state as input.

Plans are by `artigrad.control`: iLQR trajectories from random states, the best of several initial guesses each, and LQR
about upright. Plans contain feedback gains, so that one trajectory provides training data in its neighborhood. After the
first round plans begin at states of the policy's rollouts, with its controls as an initial guess (imitation learning with
data aggregation).
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import artigrad.torch as at
from artigrad import Model, ModelBuilder, Simulator, State
from artigrad.control import LeastSquares, ilqr, lqr
from artigrad.robots.inertias import box
from artigrad.tasks import props as looks

CART, BAR, TOP = 3.375, 4.2, 3.375  # kg
REACH = 0.9  # m, from the hinge to the middle of the top
FORCE = 200.0  # N
DT, HOLD = 0.01, 3  # step (s), steps per force: 0.03 s per frame
SIZES = torch.tensor([1.0, 1.0, 1.0, 3.0, 6.0])  # scales of the features: x, sine, cosine, velocities
WEIGHTS = np.sqrt(
    [2.0, 2.0, 0.4, 0.04, 0.04, 0.2]
)  # of the residuals of a plan: top across, top down, x, velocities, force
LAST = np.array([5.0, 5.0, 5.0, 1.0, 1.0])  # factors at the end of a plan
GUESSES = 3
NEAR = torch.tensor([0.4, 0.15, 0.5, 0.6])  # m, rad, m/s, rad/s: deviations from upright for LQR data
ABOUT = torch.tensor([0.1, 0.1, 0.2, 0.4])  # deviations from plans for data by their gains


def cart_and_pendulum() -> Model:
    """Build a cart that slides along x with a pendulum about y; it is upright at q = (0, 0)."""
    b = ModelBuilder("pixels")
    b.add_body(
        "cart", joint="prismatic", axis=(1.0, 0.0, 0.0), mass=CART, inertia=box(CART, 0.15, 0.15, 0.15), damping=0.5
    )
    mass = BAR + TOP
    com = (BAR * REACH / 2 + TOP * REACH) / mass
    inertia = np.array(box(BAR, 0.1, 0.06, 0.7)) + BAR * (REACH / 2 - com) ** 2 * np.array([1, 1, 0])
    inertia += np.array(box(TOP, 0.15, 0.15, 0.15)) + TOP * (REACH - com) ** 2 * np.array([1, 1, 0])
    hinge: dict[str, Any] = {"joint": "revolute", "axis": (0.0, 1.0, 0.0), "damping": 0.1}
    b.add_body("pendulum", "cart", mass=mass, com=(0.0, 0.0, com), inertia=tuple(inertia), **hinge)
    b.add_motor("push", "cart", gear=FORCE)
    looks.box(b, "cart", (0.12, 0.1, 0.075), rgba=looks.BLUE)
    looks.box(b, "pendulum", (0.05, 0.03, 0.4), (0.0, 0.0, 0.42), looks.DARK)
    looks.box(b, "pendulum", (0.11, 0.11, 0.11), (0.0, 0.0, REACH), looks.ORANGE)
    b.add_keyframe("hanging", q=[0.0, np.pi])
    return b.build()


def state_features(q: Tensor, v: Tensor) -> Tensor:
    """Return the scaled input of the policy: x, sine, cosine, velocities, (..., 5)."""
    features = torch.stack([q[..., 0], q[..., 1].sin(), q[..., 1].cos(), v[..., 0], v[..., 1]], -1)
    return features / SIZES.to(q)


class SwingUpPolicy(nn.Module):
    """Policy from features (..., 5) to a force (..., 1) in [-1, 1]."""

    def __init__(self) -> None:
        super().__init__()
        layers = (nn.Linear(5, 128), nn.ELU(), nn.Linear(128, 128), nn.ELU(), nn.Linear(128, 1), nn.Tanh())
        self.act = nn.Sequential(*layers)

    def forward(self, features: Tensor) -> Tensor:
        return self.act(features)


def move(sim: Simulator, q: Tensor, v: Tensor, u: Tensor, fine: int = 1) -> tuple[Tensor, Tensor]:
    """Return the state one frame later. `fine` is the factor by which steps are shorter."""
    states: Any = at.rollout(sim, (q, v), u[:, None], hold=HOLD * fine)
    return states.q[:, -1], states.v[:, -1]


def random_states(robots: int, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return random states: half hanging, a quarter upright, both nearly at rest, the others arbitrary."""
    q = torch.stack([0.7 * torch.randn(robots), np.pi * (2 * torch.rand(robots) - 1)], -1)
    v = torch.randn(robots, 2) * torch.tensor([1.0, 3.0])
    half, quarter = robots // 2, robots // 4
    q[:half, 1] = np.pi + 0.2 * torch.randn(half)
    q[half : half + quarter, 1] = 0.3 * torch.randn(quarter)
    q[: half + quarter, 0] *= 0.3
    v[: half + quarter] *= 0.2
    return q.to(device), v.to(device)


def residuals(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return weighted residuals and Jacobians: position of the top relative to the highest point above the middle of the
    rail, cart position, velocities, force."""
    x, s, c = q[..., 0], np.sin(q[..., 1]), np.cos(q[..., 1])
    r = np.stack([x + REACH * s, REACH * c - REACH, x, v[..., 0], v[..., 1], u[..., 0]], -1)
    of_state, of_force = np.zeros((*x.shape, 6, 4)), np.zeros((*x.shape, 6, 1))
    of_state[..., [0, 2, 3, 4], [0, 0, 2, 3]] = 1.0
    of_state[..., 0, 1], of_state[..., 1, 1] = REACH * c, -REACH * s
    of_force[..., 5, 0] = 1.0
    return r * WEIGHTS, of_state * WEIGHTS[:, None], of_force * WEIGHTS[:, None]


def last_residuals(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the residuals of the end of a plan."""
    r, of_state, _ = residuals(q, v, np.zeros((*q.shape[:-1], 1)))
    return r[..., :5] * LAST, of_state[..., :5, :] * LAST[:, None]


class PlanDataset:
    """Plans as rows of state (4), force (1) and gain (4), extended in every round, and the training on them."""

    def __init__(self, problems: int, frames: int = 90, updates: int = 1500):
        self.problems, self.frames, self.updates = problems, frames, updates
        self.sim = Simulator(cart_and_pendulum(), dt=DT)
        self.sim32 = Simulator(self.sim.model, dt=DT, dtype="f32")
        self.cost = LeastSquares(self.sim.model, residuals, last_residuals)
        upright = State(np.zeros(2), np.zeros(2))
        about = self.cost.expand(upright.q, upright.v, np.zeros(1))
        coarse = Simulator(self.sim.model, dt=DT * HOLD)
        self.upright = torch.tensor(lqr(coarse, upright, Q=about.xx, R=about.uu).gain[0], dtype=torch.float32)
        self.rows = torch.zeros(0, 9)

    def state_dict(self) -> dict[str, Tensor]:
        return {"rows": self.rows}

    def load_state_dict(self, kept: dict[str, Tensor]) -> None:
        self.rows = kept["rows"].cpu()

    def round(self, policy: SwingUpPolicy) -> tuple[float, float]:
        """Plan from random states, later from states of the policy's rollouts, and train the policy.

        Returns:
          Mean training loss, and the fraction of the policy's rollouts that were up before.
        """
        local = copy.deepcopy(policy).cpu()
        up = self._plan_from_policy(local) if len(self.rows) else 0.0
        while not len(self.rows):
            self._plan_from_random_states()
        off = self._learn(local)
        policy.load_state_dict(local.state_dict())
        return off, up

    def _plan(self, q: np.ndarray, v: np.ndarray, own: np.ndarray | None = None) -> None:
        """Add the best plan of several initial guesses from each state, if it reaches upright. `own` are forces (B, frames,
        1) of a further guess, preferred at equal cost."""
        count, more = len(q), GUESSES - (own is not None)
        size, rate, phase = torch.rand(3, count, more, 1, 1, dtype=torch.float64).numpy()
        turns = (0.3 + 0.9 * rate) * DT * HOLD * np.arange(self.frames)[:, None] + phase
        u = 0.5 * size * np.sin(2 * np.pi * turns)
        u = u if own is None else np.concatenate([own[:, None], u], 1)
        start = State(q.repeat(GUESSES, 0), v.repeat(GUESSES, 0))
        limits: dict[str, Any] = {"hold": HOLD, "limits": (-1.0, 1.0), "iterations": 60, "tolerance": 1e-4}
        plan = ilqr(self.sim, self.cost, start, u.reshape(-1, self.frames, 1), **limits)
        cost = plan.cost.reshape(count, GUESSES)
        cost[:, 0] *= 1.0 if own is None else 0.9
        best = cost.argmin(1) + GUESSES * np.arange(count)
        best = best[(np.cos(plan.q[best, -1, 1]) > 0.98) & (np.abs(plan.v[best, -1]) < 0.5).all(1)]
        parts = (plan.q[best, :-1], plan.v[best, :-1], plan.u[best], plan.gain[best, :, 0])
        rows = np.concatenate(parts, -1)[:, : 2 * self.frames // 3].reshape(-1, 9)  # without the ends of plans
        self.rows = torch.cat([self.rows, torch.tensor(rows, dtype=torch.float32)])

    def _plan_from_random_states(self) -> None:
        """Add plans from random states."""
        q, v = random_states(self.problems)
        self._plan(q.double().numpy(), v.double().numpy())

    @torch.no_grad()
    def _plan_from_policy(self, policy: SwingUpPolicy) -> float:
        """Add plans from states of the first two seconds of the policy's rollouts, with its later controls as an initial
        guess."""
        q, v = random_states(self.problems)
        path: list[tuple[Tensor, ...]] = []
        for _ in range(60 + self.frames):
            u = policy(state_features(q, v))
            path.append((q, v, u))
            q, v = move(self.sim32, q, v, u)
        qs, vs, us = (torch.stack(x, 1).double().numpy() for x in zip(*path, strict=True))
        robot, first = np.arange(self.problems), torch.randint(60, (self.problems,)).numpy()
        begin, speed = qs[robot, first], vs[robot, first]
        begin[:, 1] = (begin[:, 1] + np.pi) % (2 * np.pi) - np.pi
        near = (np.abs(begin[:, 0]) < 4) & (np.abs(speed) < 25).all(1)
        self._plan(begin[near], speed[near], us[robot[:, None], first[:, None] + np.arange(self.frames)][near])
        return float((q[:, 1].cos() > 0.9).float().mean())

    def _learn(self, policy: SwingUpPolicy) -> float:
        """Train the policy on the plans with their gains, and on LQR about upright; return the mean loss."""
        method = torch.optim.Adam(policy.parameters(), 3e-3)
        sheet, off = torch.optim.lr_scheduler.ExponentialLR(method, 0.1 ** (1 / self.updates)), 0.0
        for _ in range(self.updates):
            x, u, gain = self.rows[torch.randint(len(self.rows), (1024,))].split((4, 1, 4), -1)
            offset = ABOUT * torch.randn_like(x) * torch.rand(len(x), 1)
            near = NEAR * torch.randn(512, 4)
            target = torch.cat([u + (gain * offset).sum(-1, keepdim=True), near @ self.upright[:, None]]).clamp(-1, 1)
            q, v = torch.cat([x + offset, near]).split(2, -1)
            loss = (policy(state_features(q, v)) - target).square().mean()
            method.zero_grad()
            loss.backward()
            method.step()
            sheet.step()
            off += float(loss.detach()) / self.updates
        return off
