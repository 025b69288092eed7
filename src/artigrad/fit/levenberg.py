"""Levenberg-Marquardt: (J^T J + damping D) step = -J^T r within bounds, D the diagonal of J^T J.

The initial states of different windows are independent, so they are eliminated window by window, which leaves a system in
theta. Fits have few parameters and many residuals: the matrix costs a few dozen rollouts, a smooth fit converges in about
five steps per window length, and standard deviations follow from the matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .residuals import Evaluation, Normal, Residuals, Slope

_LONGEST = 1.0  # largest step: a factor of e, or the initial guess added once; of an initial state its whole range
# in units of the loss of one residual, half the square of a standard deviation:
_ENOUGH = 1e-4  # smallest predicted decrease for another step
_PATIENCE, _STALLED = 5, 0.1  # ends after that many steps with less decrease in total, as at a kink
_EXACT = 1e-22  # loss per residual at the level of rounding


class Minimum(NamedTuple):
    """Result of `minimize`.

    Attributes:
      point: Evaluation with the smallest loss.
      normal: Gauss-Newton matrix there.
      held: True for coordinates at an active bound, (p,).
      losses: Loss after each step.
      converged: True if no further step lowers the loss noticeably.
    """

    point: Evaluation
    normal: Normal
    held: np.ndarray
    losses: tuple[float, ...]
    converged: bool


class _Damping(NamedTuple):
    """Damping of theta, and of the initial state of each window (W,): a window at a kink is damped without slowing others."""

    theta: float
    start: np.ndarray

    def after(self, better: bool, windows_better: np.ndarray) -> _Damping:
        """Return the next damping: smaller after a success, larger after a failure."""
        start = self.start * np.where(windows_better, 0.1, 8.0)
        return _Damping(max(1e-9, self.theta * (0.1 if better else 8.0)), np.clip(start, 1e-9, 1e3))


def minimize(problem: Residuals, here: Evaluation, iterations: int) -> Minimum:
    """Minimize the loss from an evaluation with finite loss.

    Ends when the quadratic model predicts no noticeable decrease, when several steps in a row gained little, when no damped
    step lowers the loss, or after `iterations` steps.
    """
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
    """Return the first damped step that lowers the loss, or None, and the next damping."""
    while damping.theta < 1e12:
        step = damped_step(normal, g, damping, held)
        step = Slope(*(x * min(1.0, _LONGEST / np.abs(step.theta).max(initial=1e-300)) for x in step))
        far = np.abs(step.start / problem.data.reach).max(1, keepdims=True)
        start = step.start * np.minimum(1.0, _LONGEST / np.maximum(far, 1e-300))
        inside = np.clip(here.theta + step.theta, problem.chosen.low, problem.chosen.high)
        step = Slope(inside - here.theta, start)
        there = problem.moved(here, step)
        better = there.window_losses < here.window_losses
        if not better.all():  # an initial state that got worse is kept
            there = problem.better(there, problem.moved(here, Slope(step.theta, 0.0 * step.start)))
        damping = damping.after(there.loss < here.loss, better)
        if there.loss < here.loss:
            return there, damping
    return None, damping


def damped_step(normal: Normal, g: Slope, damping: _Damping, held: np.ndarray) -> Slope:
    """Return the solution of the damped system with held coordinates fixed."""
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
    """Return the Gauss-Newton matrix of theta with initial states eliminated: S = tt - ts ss^-1 st"""
    inner = np.linalg.solve(_lifted(normal.ss, 0.0), np.swapaxes(normal.ts, 1, 2))
    return normal.tt - np.einsum("wik,wkj->ij", normal.ts, inner)


def _lifted(A: np.ndarray, damping: float | np.ndarray) -> np.ndarray:
    """Return A + damping diag(A), with a small multiple of the identity against singularity."""
    d = np.einsum("...ii->...i", A)
    largest = d.max(-1, keepdims=True, initial=0.0)
    return A + np.eye(A.shape[-1]) * (damping * np.maximum(d, 1e-6 * largest) + 1e-13 * largest + 1e-300)[..., None, :]


def _promise(normal: Normal, g: Slope, step: Slope) -> float:
    """Return the decrease of the loss that the quadratic model predicts: -g s - 1/2 s J^T J s"""
    t, s = step
    linear = g.theta @ t + np.einsum("wk,wk->", g.start, s)
    curved = (
        t @ normal.tt @ t + 2 * np.einsum("i,wik,wk->", t, normal.ts, s) + np.einsum("wi,wij,wj->", s, normal.ss, s)
    )
    return float(-linear - 0.5 * curved)
