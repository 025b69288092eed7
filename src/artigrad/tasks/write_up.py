"""Results of a study: result.json, curves.png, landscape.png for one variable, motion.html and motion.gif."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..files import write_text
from ..optimize import History
from .figures import plotting, save_figure
from .study import BASELINE, Study, verdict
from .task import Task

Saving = Callable[[Path], None]  # called with the path of each file before it is written


def write(study: Study, saving: Saving = lambda file: None) -> list[Path]:
    """Write all files whose packages are installed, and return their paths."""
    file = study.folder / "result.json"
    saving(file)
    write_text(file, json.dumps(result(study), indent=2) + "\n")
    if study.main.iterations == 0:
        return [file]
    return [file, *_plots(study, saving), *_films(study, saving)]


def result(study: Study) -> dict[str, Any]:
    """Return the results as a dictionary. All values but times are determined by the seed."""
    task = study.task
    out: dict[str, Any] = {
        "task": task.name,
        "summary": task.summary,
        "law": task.sim.options.law.name,
        "error": task.label,
        "goal": task.goal,
        "variables": f"{task.n} {task.variables}",
        "seed": study.seed,
        "gradient_against_differences": study.gradient_error,
        "methods": {name: _numbers(task, history) for name, history in study.histories.items()},
    }
    if BASELINE in study.histories and study.main.method != BASELINE:
        out["advantage"] = advantage(task, study.main, study.histories[BASELINE])
    out["artigrad"], out["numpy"], out["python"] = __version__, np.__version__, platform.python_version()
    out["machine"] = f"{platform.machine()}, {platform.system()}"
    return out


def _numbers(task: Task, history: History) -> dict[str, Any]:
    solved = history.solved_at(task.loss_goal())
    out = {
        "settings": task.settings[history.method],
        "verdict": verdict(task, history),
        "ended": history.ended,
        "iterations": history.iterations,
        "seconds": round(history.seconds[-1], 3) if history.seconds else 0.0,
        "motions_per_iteration": history.evaluations,
        "best_error": [float(f"{e:.6g}") for e in task.error(history.best)],
        "solved_at": solved.tolist(),
        "seconds_to_goal": [round(history.seconds[k - 1], 3) if k else None for k in solved],
    }
    return out | ({"x": history.x.tolist()} if task.n <= 10 else {})


def advantage(task: Task, main: History, other: History) -> dict[str, Any]:
    """Return the factors by which a method needs fewer iterations, simulations and seconds to the goal than another.

    Iterations and simulations are medians over initial guesses; seconds are those of the whole batch until its last guess
    is solved. A guess that the other method did not solve counts with all its iterations: the factors are then lower
    bounds.
    """
    mine, theirs = main.solved_at(task.loss_goal()), other.solved_at(task.loss_goal())
    if not (mine > 0).all() or other.iterations == 0:
        return {}
    reached = bool((theirs > 0).all())
    theirs = np.where(theirs > 0, theirs, other.iterations)
    ratio = float(np.median(theirs) / np.median(mine))
    return {
        "reached_by_the_other": reached,
        "iterations": round(ratio, 1),
        "motions": round(ratio * other.evaluations / main.evaluations, 1),
        "seconds": round(other.seconds[int(theirs.max()) - 1] / main.seconds[int(mine.max()) - 1], 1),
    }


def _plots(study: Study, saving: Saving) -> list[Path]:
    plt = plotting()
    if plt is None:
        return []
    files = [study.folder / "curves.png"]
    saving(files[0])
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 3.8), layout="constrained", sharey=True)
    _curves(study, axes)
    save_figure(figure, files[0])
    plt.close(figure)
    if study.task.n == 1:
        files.append(study.folder / "landscape.png")
        saving(files[-1])
        figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        _landscape(study, axis)
        save_figure(figure, files[-1])
        plt.close(figure)
    return files


def _curves(study: Study, axes: Any) -> None:
    """Plot the error of each guess and of the best against iterations, simulations and seconds."""
    from matplotlib.ticker import NullFormatter

    task = study.task
    for color, history in zip(("C0", "C3"), study.histories.values(), strict=False):
        if history.iterations == 0:
            continue
        error = np.maximum(task.error(np.array(history.loss[: history.iterations])), 1e-12)
        k = np.arange(1, history.iterations + 1)
        for axis, x in zip(axes, (k, k * history.evaluations, np.array(history.seconds)), strict=True):
            axis.plot(x, error, color=color, alpha=0.25, lw=1)
            axis.plot(x, np.minimum.accumulate(error.min(1)), color=color, lw=2, label=history.method)
    names = ("iterations (CMA-ES: generations)", "simulated motions per start", "seconds, all starts together")
    for axis, name in zip(axes, names, strict=True):
        axis.axhline(task.goal, color="0.5", ls=":", lw=1)
        axis.set(xlabel=name, xscale="log", yscale="log")
        axis.grid(alpha=0.2)
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel(task.label)
    axes[0].legend(frameon=False)


def _landscape(study: Study, axis: Any) -> None:
    """Plot the loss over one variable, its gradient, and the points of the first guess."""
    task = study.task
    x = np.linspace(task.lower[0], min(task.upper[0], 0.5), 200)
    loss, slope = task.gradient(x[:, None])
    axis.plot(x, loss, color="0.4", lw=1.5, label="loss")
    for k in range(6, len(x), 16):
        dx = 0.012
        axis.plot(x[k] + [-dx, dx], loss[k] + slope[k, 0] * np.array([-dx, dx]), color="C1", lw=2, zorder=3)
    axis.plot([], [], color="C1", lw=2, label="its gradient")
    found = study.main.x[0, 0]
    axis.plot(found, study.main.best[0], "o", color="C0", label=f"found: {found:.3f}")
    axis.set(xlabel=task.variables, ylabel="loss", title=task.summary)
    axis.legend(frameon=False)


def _films(study: Study, saving: Saving) -> list[Path]:
    """Save the best trajectory as a page and, if Pillow is installed, as a GIF; short ones in slow motion."""
    task, history = study.task, study.main
    traj = task.rollout(history.x[[int(np.argmin(history.best))]])
    page, film = study.folder / "motion.html", study.folder / "motion.gif"
    saving(page)
    traj.save(page)
    seconds = traj.steps * task.sim.options.dt
    try:
        saving(film)
        traj.save(film, size=(480, 360), speed=min(1.0, seconds / 2.5), fps=15)
    except ImportError:
        return [page]
    return [page, film]
