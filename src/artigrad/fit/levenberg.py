"""Levenberg-Marquardt: (J^T J + damping D) step = -J^T r within bounds, D the diagonal of J^T J.

The first state of a window meets those of no other window, so they are eliminated window by window and what is left is
a system in theta alone. Fits have few parameters and many residuals: the matrix costs a few dozen rollouts, brings a
smooth fit to its end in about five steps for each length of windows, and is what uncertainty is read from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .residuals import Evaluation, Normal, Residuals, Slope

_LONGEST = 1.0  # step of a coordinate: a factor of e, or the start value added once; of a first state: the whole range
# in units of the loss of one residual, which is half the square of a standard deviation:
_ENOUGH = 1e-4  # what a step must promise for another to be made
_PATIENCE, _STALLED = 5, 0.1  # so many steps that lower the loss by no more are the end as well, at a kink say
_EXACT = 1e-22  # loss per residual at which nothing is left but rounding


class Minimum(NamedTuple):
    """Where the loss is least. held: which coordinates are at a bound that keeps them from going on."""

    point: Evaluation
    normal: Normal
    held: np.ndarray
    losses: tuple[float, ...]
    converged: bool


class _Damping(NamedTuple):
    """Of theta, and of the first state of each window (W,): a window at a kink is slowed down and holds up no other."""

    theta: float
    start: np.ndarray

    def after(self, better: bool, windows_better: np.ndarray) -> _Damping:
        """Less where it went well, more where it did not."""
        start = self.start * np.where(windows_better, 0.1, 8.0)
        return _Damping(max(1e-9, self.theta * (0.1 if better else 8.0)), np.clip(start, 1e-9, 1e3))


def minimize(problem: Residuals, here: Evaluation, iterations: int) -> Minimum:
    """From `here`, where the loss is finite, downhill until a step promises nothing more or none leads down."""
    low, high = problem.chosen.low, problem.chosen.high
    losses, damping = [here.loss], _Damping(1e-3, np.full(len(here.r), 1e-3))
    g, normal = problem.gradient(here), problem.normal(here)
    while True:
        held = ((here.theta <= low) & (g.theta > 0)) | ((here.theta >= high) & (g.theta < 0))
        one = here.loss / here.r.size
        done = here.loss <= _EXACT * here.r.size
        done = (
            done
            or _promise(normal, g, damped_step(normal, g, _Damping(0.0, 0.0 * damping.start), held)) <= _ENOUGH * one
        )
        done = done or (len(losses) > _PATIENCE and losses[-1 - _PATIENCE] - losses[-1] < _STALLED * one)
        if done or len(losses) > iterations:
            return Minimum(here, normal, held, tuple(losses), done)
        there, damping = _downhill(problem, here, g, normal, held, damping)
        if there is None:
            return Minimum(here, normal, held, tuple(losses), True)
        here = problem.continued(there)
        losses.append(here.loss)
        g, normal = problem.gradient(here), problem.normal(here)


def _downhill(
    problem: Residuals, here: Evaluation, g: Slope, normal: Normal, held: np.ndarray, damping: _Damping
) -> tuple[Evaluation | None, _Damping]:
    """The first damped step that lowers the loss, and the damping for the next; None if even short ones do not."""
    while damping.theta < 1e12:
        step = damped_step(normal, g, damping, held)
        step = Slope(*(x * min(1.0, _LONGEST / np.abs(step.theta).max(initial=1e-300)) for x in step))
        far = np.abs(step.start / problem.data.reach).max(1, keepdims=True)
        start = step.start * np.minimum(1.0, _LONGEST / np.maximum(far, 1e-300))
        inside = np.clip(here.theta + step.theta, problem.chosen.low, problem.chosen.high)
        step = Slope(inside - here.theta, start)
        there = problem.moved(here, step)
        better = there.window_losses < here.window_losses
        if not better.all():  # where the first state went wrong, the old one may do better
            there = problem.better(there, problem.moved(here, Slope(step.theta, 0.0 * step.start)))
        damping = damping.after(there.loss < here.loss, better)
        if there.loss < here.loss:
            return there, damping
    return None, damping


def damped_step(normal: Normal, g: Slope, damping: _Damping, held: np.ndarray) -> Slope:
    """The solution of the damped system; held coordinates stay."""
    ss = _lifted(normal.ss, damping.start[:, None])
    inner = np.linalg.solve(ss, np.concatenate([np.swapaxes(normal.ts, 1, 2), g.start[..., None]], -1))
    free = ~held
    S = _lifted(normal.tt, damping.theta) - np.einsum("wik,wkj->ij", normal.ts, inner[..., :-1])
    b = g.theta - np.einsum("wik,wk->i", normal.ts, inner[..., -1])
    theta = np.zeros_like(b)
    if free.any():
        theta[free] = -np.linalg.lstsq(S[np.ix_(free, free)], b[free], rcond=1e-14)[0]
    return Slope(theta, -inner[..., -1] - np.einsum("wkj,j->wk", inner[..., :-1], theta))


def reduced(normal: Normal) -> np.ndarray:
    """The Gauss-Newton matrix of theta alone, whatever the first states: S = tt - ts ss^-1 st"""
    inner = np.linalg.solve(_lifted(normal.ss, 0.0), np.swapaxes(normal.ts, 1, 2))
    return normal.tt - np.einsum("wik,wkj->ij", normal.ts, inner)


def _lifted(A: np.ndarray, damping: float | np.ndarray) -> np.ndarray:
    """A + damping diag(A), and enough on the diagonal to be regular."""
    d = np.einsum("...ii->...i", A)
    largest = d.max(-1, keepdims=True, initial=0.0)
    return A + np.eye(A.shape[-1]) * (damping * np.maximum(d, 1e-6 * largest) + 1e-13 * largest + 1e-300)[..., None, :]


def _promise(normal: Normal, g: Slope, step: Slope) -> float:
    """By how much the quadratic model of the loss falls: -g s - 1/2 s J^T J s"""
    t, s = step
    linear = g.theta @ t + np.einsum("wk,wk->", g.start, s)
    curved = (
        t @ normal.tt @ t + 2 * np.einsum("i,wik,wk->", t, normal.ts, s) + np.einsum("wi,wij,wj->", s, normal.ss, s)
    )
    return float(-linear - 0.5 * curved)
