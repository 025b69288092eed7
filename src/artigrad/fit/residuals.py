"""Residuals of all windows, their exact gradient, and the Gauss-Newton matrix.

    r = (simulated - measured) / range of the channel,      loss = 1/2 sum r^2

Unknowns are theta and the initial state of every window, since measured states have noise. The gradient J^T r is exact: one
backward pass through the physics (`vjp`). J itself only determines steps, for which 1e-6 suffices; exact rows would cost
thousands of backward passes. It is computed by central differences, with all perturbed copies of all windows in one batch.
Its error does not change the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model import tangent
from ..model.params import Params
from ..model.state import State
from ..simulate.results import Outputs, Trajectory
from ..simulate.simulator import Simulator
from .parameters import Parametrization
from .recording import Windows

_STEP = 1e-6
_BYTES = 256e6  # of states at a time while perturbed copies run


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Coordinates theta, initial states of the windows, and their trajectory and residuals r (W, residuals per window)."""

    theta: np.ndarray
    start: State
    params: Params
    trajectory: Trajectory
    r: np.ndarray

    @property
    def window_losses(self) -> np.ndarray:
        """Loss 1/2 sum r^2 of each window; infinite where the simulation overflowed."""
        with np.errstate(over="ignore", invalid="ignore"):
            totals = 0.5 * np.sum(self.r**2, 1)
        return np.where(np.isfinite(totals), totals, np.inf)

    @property
    def loss(self) -> float:
        """Loss of all windows."""
        return float(self.window_losses.sum())


class Slope(NamedTuple):
    """Cotangents or steps of theta (p,) and of the initial states (W, 2 nv + na)."""

    theta: np.ndarray
    start: np.ndarray


class Normal(NamedTuple):
    """Blocks of the Gauss-Newton matrix J^T J: theta-theta (p, p), theta-state (W, p, k), state-state (W, k, k)."""

    tt: np.ndarray
    ts: np.ndarray
    ss: np.ndarray


class Residuals:
    """Least-squares problem of a fit."""

    def __init__(self, sim: Simulator, data: Windows, chosen: Parametrization):
        self.sim, self.data, self.chosen = sim, data, chosen
        self._measured_steps = slice(0, -1, data.every)  # steps with measurements; the last belongs to the next window
        self.measured = int(data.counts.sum()) * len(data.scale)
        self.start_size = 2 * sim.model.nv + sim.model.na
        self.unknown = len(chosen) + len(data.counts) * self.start_size

    def first(self, theta: np.ndarray) -> Evaluation:
        """Return the evaluation at theta and the recorded initial states."""
        return self._at(theta, self.data.start)

    def moved(self, point: Evaluation, step: Slope) -> Evaluation:
        """Return the evaluation after a step."""
        return self._at(point.theta + step.theta, self._shifted(point.start, step.start))

    def continued(self, point: Evaluation) -> Evaluation:
        """Start each window at the simulated end of the one before it where that lowers the loss: simulated states have
        less noise than measured ones, and rest on the ground if the robot does."""
        ends = State(*(np.roll(x[:, -1], 1, 0) for x in point.trajectory.every_state()))
        follows = self.data.follows & np.isfinite(np.concatenate(ends, 1)).all(1)
        ends = State(*(np.where(follows[:, None], x, at) for x, at in zip(ends, point.start, strict=True)))
        return self.better(point, self._at(point.theta, ends))

    def better(self, a: Evaluation, b: Evaluation) -> Evaluation:
        """Combine two evaluations with the same theta: for each window the initial state with the smaller loss."""
        take = (b.window_losses < a.window_losses)[:, None]
        if not take.any():
            return a
        return self._at(a.theta, State(*(np.where(take, y, x) for x, y in zip(a.start, b.start, strict=True))))

    def gradient(self, point: Evaluation) -> Slope:
        """Return J^T r, exact."""
        sim, m, d, traj = self.sim, self.sim.model, self.data, point.trajectory
        bars = point.r.reshape(*d.counts.shape, -1) / d.scale
        q_bar, v_bar = np.zeros_like(traj.q), np.zeros_like(traj.v)
        q, flat, at = traj.q[:, self._measured_steps], np.zeros(m.param_size), 0
        if d.q is not None:
            q_bar[:, self._measured_steps] += tangent.chord_vjp(m, d.q, q, bars[..., : m.nv])
            at += m.nv
        if d.v is not None:
            v_bar[:, self._measured_steps] += bars[..., at : at + m.nv]
            at += m.nv
        if d.sites is not None:
            state = State(q, np.zeros((*q.shape[:-1], m.nv)))
            p_bar = bars[..., at:].reshape(*q.shape[:-1], m.ns, 3)
            seen = sim.outputs_vjp(state, Outputs(site_position=p_bar), params=point.params)
            q_bar[:, self._measured_steps] += seen.q
            flat += seen.params.flat
        grad = sim.vjp(traj, q_bar=q_bar, v_bar=v_bar)
        assert grad.params is not None
        _, d_flat = self.chosen.derivative(point.theta)
        start = np.concatenate([tangent.to_tangent(m, point.start.q, grad.q0), grad.v0, grad.act0], -1)
        return Slope((flat + grad.params.flat) @ d_flat, start)

    def normal(self, point: Evaluation) -> Normal:
        """Return J^T J with J by central differences."""
        W, p, k = len(point.r), len(self.chosen), self.start_size
        state_bytes = 8 * W * (self.data.u.shape[1] + 1) * sum(x.shape[-1] for x in point.start)
        columns = max(1, int(_BYTES / (2 * state_bytes)))
        by_theta = [self._theta_columns(point, c) for c in np.split(np.eye(p), range(columns, p, columns))]
        by_start = [self._start_columns(point, c) for c in np.split(np.eye(k), range(columns, k, columns))]
        T, S = np.concatenate(by_theta), np.concatenate(by_start)  # (columns, W, residuals)
        return Normal(np.einsum("iwr,jwr->ij", T, T), np.einsum("iwr,jwr->wij", T, S), np.einsum("iwr,jwr->wij", S, S))

    def _theta_columns(self, point: Evaluation, directions: np.ndarray) -> np.ndarray:
        both = _STEP * np.concatenate([directions, -directions])
        W, n = len(point.r), len(both)
        if not n:
            return np.zeros((0, *point.r.shape))
        flat = np.stack([self.chosen.params(point.theta + d).flat for d in both])
        start = point.start.map(lambda x: np.tile(x, (n, 1)))
        return self._differences(start, Params(self.sim.model, np.repeat(flat, W, 0)), n)

    def _start_columns(self, point: Evaluation, directions: np.ndarray) -> np.ndarray:
        both = _STEP * np.concatenate([directions, -directions])
        moved = self._shifted(point.start.map(lambda x: x[None]), both[:, None])
        start = moved.map(lambda x: x.reshape(len(both) * len(point.r), x.shape[-1]))
        return self._differences(start, point.params, len(both))

    def _differences(self, start: State, params: Params, n: int) -> np.ndarray:
        traj = self.sim.rollout(start, np.tile(self.data.u, (n, 1, 1)), params=params)
        plus, minus = np.split(self._residuals(traj, n), 2)
        return (plus - minus).reshape(n // 2, len(self.data.u), -1) / (2 * _STEP)

    def _at(self, theta: np.ndarray, start: State) -> Evaluation:
        params = self.chosen.params(theta)
        traj = self.sim.rollout(start, self.data.u, params=params)
        return Evaluation(theta, start, params, traj, self._residuals(traj, 1))

    def _shifted(self, start: State, d: np.ndarray) -> State:
        nv = self.sim.model.nv
        dq, dv, d_act = np.split(d, (nv, 2 * nv), axis=-1)
        return State(tangent.integrate(self.sim.model, start.q, dq), start.v + dv, start.act + d_act)

    def _residuals(self, traj: Trajectory, copies: int) -> np.ndarray:
        """Return residuals (copies * W, H * channels), zero for padding."""
        m, d = self.sim.model, self.data
        q, v = traj.q[:, self._measured_steps], traj.v[:, self._measured_steps]
        measured = [None if x is None else np.tile(x, (copies,) + (1,) * (x.ndim - 1)) for x in (d.q, d.v, d.sites)]
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):
            if measured[0] is not None:
                parts.append(tangent.chord(m, measured[0], q))
            if measured[1] is not None:
                parts.append(v - measured[1])
            if measured[2] is not None:
                parts.append((self._sites(q, traj.params) - measured[2]).reshape(*q.shape[:-1], -1))
            r = np.concatenate(parts, -1) / d.scale
        return np.where(np.tile(d.counts, (copies, 1))[..., None], r, 0.0).reshape(len(r), -1)

    def _sites(self, q: np.ndarray, params: Params) -> np.ndarray:
        """Return positions of sites; all NaN if a simulation overflowed."""
        if not np.isfinite(q).all():
            return np.full((*q.shape[:-1], self.sim.model.ns, 3), np.nan)
        return self.sim.sites(State(q, np.zeros((*q.shape[:-1], self.sim.model.nv))), params=params)
