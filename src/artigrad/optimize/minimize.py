"""minimize: run a method on a problem from several initial guesses, with a history that can be saved and resumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..arguments import checked, is_number, shown
from ..deprecation import renamed
from ..errors import InputError, is_whole
from ..files import to_write, write_arrays
from .descent import SGD, Adam
from .evolution import CMAES
from .lbfgs import LBFGS
from .problem import Iterate, Method, Problem, check_start

METHODS: dict[str, Callable[..., Method]] = {"adam": Adam, "sgd": SGD, "lbfgs": LBFGS, "cma-es": CMAES}
NEEDED = {"lbfgs": "scipy", "cma-es": "cma"}  # packages of the extra `optimize`


def check_installed(method: str) -> None:
    """Raise InputError if the package of a method is not installed."""
    package = NEEDED.get(method)
    if package is not None and find_spec(package) is None:
        raise InputError(f"method '{method}' needs {package}: pip install 'artigrad[optimize]', or choose adam or sgd")


SAVE_EVERY = 5.0  # time between two saves, s


@renamed(motions="evaluations", slope="grad_norm")
@dataclass
class History:
    """Record of a run, with one row per iteration and one column per initial guess.

    Attributes:
      method: Name of the method.
      evaluations: Loss evaluations per iteration and initial guess.
      x: Best points so far, (starts, n).
      best: Their losses, (starts,).
      loss: Losses, (iterations, starts).
      grad_norm: Norms of the gradients, (iterations, starts); NaN for methods without gradients.
      seconds: Wall-clock time since the run began, with that before an interruption, (iterations,).
      ended: Reason of the end: "solved", "iterations", "stuck" (no run could continue), "interrupted", or an error message.
    """

    method: str
    evaluations: int
    x: np.ndarray
    best: np.ndarray
    loss: list[np.ndarray] = field(default_factory=list)
    grad_norm: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ended: str = "running"

    @property
    def iterations(self) -> int:
        """Number of iterations. It counts the list that `add` extends last, as Ctrl-C may interrupt it anywhere."""
        return len(self.seconds)

    def solved_at(self, goal: float) -> np.ndarray:
        """Return the first iteration (from 1) with a loss of at most `goal` for each initial guess, (starts,); 0 if there
        is none."""
        below = np.array(self.loss[: self.iterations]).reshape(-1, len(self.best)) <= goal
        return np.where(below.any(0), below.argmax(0) + 1, 0)

    def add(self, iterate: Iterate, seconds: float) -> None:
        """Append an iteration."""
        better = iterate.loss < self.best
        self.x[better], self.best[better] = iterate.x[better], iterate.loss[better]
        self.loss.append(iterate.loss)
        self.grad_norm.append(iterate.grad_norm)
        self.seconds.append(seconds)

    def save(self, file: Path, state: dict[str, np.ndarray]) -> None:
        """Write the history and the state of the method to an .npz file, completely or not at all."""
        n = self.iterations
        arrays = {
            "loss": np.array(self.loss[:n]),
            "slope": np.array(self.grad_norm[:n]),
            "seconds": np.array(self.seconds),
        }
        state = {f"state_{name}": value for name, value in state.items()}
        given: dict[str, Any] = {"method": self.method, "motions": self.evaluations, "x": self.x, "best": self.best}
        write_arrays(file, given | arrays | state)

    @classmethod
    def load(cls, file: Path) -> tuple[History, dict[str, np.ndarray]]:
        """Return a history and a state that `save` wrote."""
        with np.load(file, allow_pickle=False) as data:
            history = cls(
                str(data["method"]),
                int(data["motions"]),
                data["x"],
                data["best"],
                list(data["loss"]),
                list(data["slope"]),
                [float(s) for s in data["seconds"]],
            )
            state = {name.removeprefix("state_"): data[name] for name in data.files if name.startswith("state_")}
        return history, state


@checked
def minimize(
    problem: Problem,
    starts: Any,
    *,
    method: str = "lbfgs",
    iterations: int = 100,
    goal: float = -np.inf,
    seed: int = 0,
    file: Path | None = None,
    resume: bool = False,
    watch: Callable[[History], None] | None = None,
    **settings: Any,
) -> History:
    """Minimize a loss from several initial guesses.

    Ends when all losses are at most `goal`, after `iterations`, at Ctrl-C, or at a loss that is not finite; the history so
    far is returned and saved in each case.

    Args:
      problem: Problem.
      starts: Initial guesses (starts, n).
      method: "lbfgs", "adam", "sgd" or "cma-es".
      iterations: Maximum number of iterations, with those before `resume`.
      goal: Loss at which a run is solved.
      seed: Seed of cma-es.
      file: .npz file in which the run is saved every few seconds and at its end.
      resume: Continue the run of the file, if it exists.
      watch: Called with the history after each iteration.
      settings: Settings of the method. lbfgs: `memory` (10). adam: `learning_rate`, `betas`, `half_life`. sgd:
        `learning_rate`, `max_grad_norm`, `min_loss`. cma-es: `sigma`. learning_rate and sigma have no default.

    Returns:
      The history of the run.
    """
    if method not in METHODS:
        raise InputError(f"a method is one of {', '.join(METHODS)}; not {method!r}")
    x = check_start(problem, starts)
    if seed < 0 or iterations < 0:
        raise InputError(f"seed and iterations are whole numbers, zero or more, not {seed} and {iterations}")
    for name, most in (("learning_rate", 1e150), ("sigma", 1e150), ("max_grad_norm", np.inf), ("half_life", np.inf)):
        if name in settings and not (is_number(settings[name]) and 0 < settings[name] <= most):
            raise InputError(f"{name} is a number above zero, not {shown(settings[name])}")
    if "memory" in settings and not is_whole(settings["memory"], 1):
        raise InputError(f"memory is a whole number of steps, at least 1, not {shown(settings['memory'])}")
    if file is not None:
        file = to_write(file, "file")
    try:
        search = METHODS[method](problem, x, seed=seed, **settings)
    except TypeError as error:
        raise InputError(f"settings of {method}: {error}") from None
    history = History(method, search.evaluations, x.copy(), np.full(len(x), np.inf))
    if resume and file is not None and file.exists():
        history, state = _loaded(file, history)
        search.restore(state)
    state = search.state()  # of complete iterations: Ctrl-C may interrupt one
    began = time.perf_counter() - (history.seconds[-1] if history.seconds else 0.0)
    saved = time.perf_counter()
    try:
        while history.ended == "running":
            if (history.best <= goal).all():
                history.ended = "solved"
            elif history.iterations >= iterations:
                history.ended = "iterations"
            elif search.done:
                history.ended = "stuck"
            else:
                iterate = search.step()
                history.add(iterate, time.perf_counter() - began)
                state = search.state()
                if watch is not None:
                    watch(history)
                if file is not None and time.perf_counter() - saved > SAVE_EVERY:
                    history.save(file, state)
                    saved = time.perf_counter()
    except KeyboardInterrupt:
        history.ended = "interrupted"
    except ArithmeticError as problem_with_numbers:
        history.ended = str(problem_with_numbers)
    finally:
        search.close()
    if file is not None:
        history.save(file, state)
    return history


def _loaded(file: Path, fresh: History) -> tuple[History, dict[str, np.ndarray]]:
    """Return history and state of a file, if they are of a run of the same kind."""
    try:
        history, state = History.load(file)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise InputError(f"{file} is not a saved run ({error}): remove it to begin again") from None
    if history.method != fresh.method or history.x.shape != fresh.x.shape:
        raise InputError(
            f"{file} holds {history.method} with {len(history.x)} starts of {history.x.shape[1]} variables, this is "
            f"{fresh.method} with {len(fresh.x)} starts of {fresh.x.shape[1]}: use another folder, or begin again"
        )
    return history, state
