"""Levenberg-Marquardt: (J^T J + damping D) step = -J^T r within bounds, D the diagonal of J^T J.

The first state of a window meets those of no other window, so they are eliminated window by window and what is left is
a system in theta alone. Fits have few parameters and many residuals, for which this takes 5 to 30 steps; L-BFGS takes
hundreds of gradients and leaves no matrix to read uncertainty from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .residuals import Normal, Point, Residuals, Slope

_LONGEST = 1.0  # step of a coordinate: a factor of e, or the start value added once
_ENOUGH = 1e-9  # share of the loss that a step must promise for another to be made
_EXACT = 1e-22  # loss per residual at which nothing is left but rounding


class Minimum(NamedTuple):
    """Where the loss is least. held: which coordinates are at a bound that keeps them from going on."""

    point: Point
    normal: Normal
    held: np.ndarray
    losses: tuple[float, ...]
    converged: bool


def minimise(problem: Residuals, here: Point, iterations: int) -> Minimum:
    """From `here`, where the loss is finite, downhill until a step promises nothing more."""
    low, high = problem.chosen.low, problem.chosen.high
    losses, damping, converged = [here.loss], 1e-3, False
    g, normal = problem.gradient(here), problem.normal(here)
    while True:
        held = ((here.theta <= low) & (g.theta > 0)) | ((here.theta >= high) & (g.theta < 0))
        promised = _promise(normal, g, damped_step(normal, g, 0.0, held))
        converged = promised <= _ENOUGH * here.loss or here.loss <= _EXACT * here.r.size
        if converged or len(losses) > iterations:
            return Minimum(here, normal, held, tuple(losses), converged)
        there, damping = _downhill(problem, here, g, normal, held, damping)
        if there is None:
            return Minimum(here, normal, held, tuple(losses), False)
        here = there
        losses.append(here.loss)
        g, normal = problem.gradient(here), problem.normal(here)


def _downhill(
    problem: Residuals, here: Point, g: Slope, normal: Normal, held: np.ndarray, damping: float
) -> tuple[Point | None, float]:
    """The first damped step that lowers the loss, and the damping for the next; None if even short ones do not."""
    while damping < 1e12:
        step = damped_step(normal, g, damping, held)
        step = Slope(*(x * min(1.0, _LONGEST / max(np.abs(step.theta).max(), 1e-300)) for x in step))
        inside = np.clip(here.theta + step.theta, problem.chosen.low, problem.chosen.high)
        step = Slope(inside - here.theta, step.start)
        there = problem.moved(here, step)
        if there.loss < here.loss:
            gain = (here.loss - there.loss) / max(_promise(normal, g, step), 1e-300)
            return there, max(1e-12, damping * (0.1 if gain > 0.5 else 1.0 if gain > 0.1 else 4.0))
        damping *= 8.0
    return None, damping


def damped_step(normal: Normal, g: Slope, damping: float, held: np.ndarray) -> Slope:
    """The solution of the damped system; held coordinates stay."""
    ss = _lifted(normal.ss, damping)
    inner = np.linalg.solve(ss, np.concatenate([np.swapaxes(normal.ts, 1, 2), g.start[..., None]], -1))
    free = ~held
    S = _lifted(normal.tt, damping) - np.einsum("wik,wkj->ij", normal.ts, inner[..., :-1])
    b = g.theta - np.einsum("wik,wk->i", normal.ts, inner[..., -1])
    theta = np.zeros_like(b)
    if free.any():
        theta[free] = -np.linalg.lstsq(S[np.ix_(free, free)], b[free], rcond=1e-14)[0]
    return Slope(theta, -inner[..., -1] - np.einsum("wkj,j->wk", inner[..., :-1], theta))


def reduced(normal: Normal) -> np.ndarray:
    """The Gauss-Newton matrix of theta alone, whatever the first states: S = tt - ts ss^-1 st"""
    inner = np.linalg.solve(_lifted(normal.ss, 0.0), np.swapaxes(normal.ts, 1, 2))
    return normal.tt - np.einsum("wik,wkj->ij", normal.ts, inner)


def _lifted(A: np.ndarray, damping: float) -> np.ndarray:
    """A + damping diag(A), and enough on the diagonal to be regular."""
    d = np.einsum("...ii->...i", A)
    least = 1e-13 * d.max(-1, keepdims=True) + 1e-300
    return A + np.eye(A.shape[-1]) * (damping * np.maximum(d, 1e-6 * d.max(-1, keepdims=True)) + least)[..., None, :]


def _promise(normal: Normal, g: Slope, step: Slope) -> float:
    """By how much the quadratic model of the loss falls: -g s - 1/2 s J^T J s"""
    t, s = step
    linear = g.theta @ t + np.einsum("wk,wk->", g.start, s)
    curved = (
        t @ normal.tt @ t + 2 * np.einsum("i,wik,wk->", t, normal.ts, s) + np.einsum("wi,wij,wj->", s, normal.ss, s)
    )
    return float(-linear - 0.5 * curved)
