"""study: run a task with one method and, for comparison, with CMA-ES, and summarize the results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..optimize import METHODS, History, minimize
from ..optimize.minimize import check_installed
from .task import Task

BASELINE = "cma-es"
STEPS = (1e-4, 1e-6)  # of finite differences: coarse where the motion is smooth, fine beside the kinks of contact


@dataclass
class Study:
    """Results of a study.

    Attributes:
      histories: History of each method, the chosen one first.
      gradient_error: Relative error of the gradient against finite differences.
    """

    task: Task
    seed: int
    folder: Path
    gradient_error: float
    histories: dict[str, History] = field(default_factory=dict)

    @property
    def main(self) -> History:
        """History of the chosen method."""
        return next(iter(self.histories.values()))

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C ended one of the runs."""
        return any(h.ended == "interrupted" for h in self.histories.values())


def check_gradient(task: Task, x: np.ndarray) -> float:
    """Return the relative difference between the gradient and central differences along a random direction.

    It is the median over all initial guesses, since one may be near a kink, with the better of two step sizes for each.
    """
    d = np.random.default_rng(0).normal(size=x.shape)
    slope = np.sum(task.gradient(x)[1] * d, 1)
    off = [np.abs((task.loss(x + h * d) - task.loss(x - h * d)) / (2 * h) - slope) for h in STEPS]
    return float(np.median(np.min(off, axis=0) / np.maximum(np.abs(slope), 1e-12)))


def study(
    task: Task,
    folder: Path,
    *,
    method: str | None = None,
    starts: int = 5,
    seed: int = 0,
    iterations: int | None = None,
    compare: bool = True,
    resume: bool = False,
    watch: Callable[[History], None] | None = None,
) -> Study:
    """Minimize a task from several initial guesses until all reach the goal, then by CMA-ES from the same guesses.

    Every method saves its run in the folder; `resume` continues it.
    """
    method = task.method if method is None else method
    if method not in METHODS:
        raise InputError(f"a method is one of {', '.join(METHODS)}; not {method!r}")
    methods = [method, BASELINE] if compare and method != BASELINE else [method]
    for name in methods:
        check_installed(name)
    folder.mkdir(parents=True, exist_ok=True)
    x = task.start(np.random.default_rng(seed), starts)
    out = Study(task, seed, folder, check_gradient(task, x))  # which also compiles what is timed below
    for name in methods:
        out.histories[name] = minimize(
            task,
            x,
            method=name,
            iterations=task.iterations[name] if iterations is None or name != method else iterations,
            goal=task.loss_goal(),
            seed=seed,
            file=folder / f"{name}.npz",
            resume=resume,
            watch=watch,
            **task.settings[name],
        )
        if out.interrupted:
            break
    return out


def verdict(task: Task, history: History) -> str:
    """Return a sentence about a run."""
    solved = history.solved_at(task.loss_goal())
    count, best = int((solved > 0).sum()), float(task.error(history.best).min()) if history.iterations else np.inf
    if count == len(solved):
        span = f"{solved.min()}" if solved.min() == solved.max() else f"{solved.min()} to {solved.max()}"
        return f"all {count} starts within {task.goal:g} after {span} iterations, {history.seconds[-1]:.2f} s"
    reached = (
        f"{count} of {len(solved)} starts within {task.goal:g}, best {best:.4g}, after {history.iterations} iterations"
    )
    if history.ended == "interrupted":
        return f"interrupted: {reached}; --resume goes on from here"
    if history.ended not in ("iterations", "stuck"):
        return f"ended early: {reached}; {history.ended}"
    return reached + _advice(task, history, count)


def _advice(task: Task, history: History, solved: int) -> str:
    """Return advice for a task that was not solved from any initial guess."""
    if solved:
        return ""
    at_bound = float(np.mean((history.x <= task.lower) | (history.x >= task.upper)))
    if at_bound > 0.5:
        return f"; {at_bound:.0%} of the variables are at their bounds: the target is out of reach within them"
    loss = np.minimum.accumulate(np.array(history.loss), axis=0).min(1)
    if history.ended == "stuck" or loss[-1] > 0.9 * loss[len(loss) // 2]:
        return (
            "; it no longer comes nearer: the target may be out of reach, or try other starts (--seed) or --method adam"
        )
    return "; it still comes nearer: --resume with more --iterations"
