"""minimize: any method on any problem, from several starts, with a history that can be saved and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..files import write_arrays
from .descent import SGD, Adam
from .evolution import CMAES
from .lbfgs import LBFGS
from .problem import Iterate, Method, Problem, check_start

METHODS: dict[str, Callable[..., Method]] = {"adam": Adam, "sgd": SGD, "lbfgs": LBFGS, "cma-es": CMAES}
NEEDED = {"lbfgs": "scipy", "cma-es": "cma"}  # packages of the extra `optimize`


def check_installed(method: str) -> None:
    """One sentence if what a method needs is not there."""
    package = NEEDED.get(method)
    if package is not None and find_spec(package) is None:
        raise InputError(f"method '{method}' needs {package}: pip install 'artigrad[optimize]', or choose adam or sgd")


SAVE_EVERY = 5.0  # s, between two saves while running


@dataclass
class History:
    """A run. One row per iteration and one column per start.

    method: its name. motions: how many the method simulates per iteration and start. loss, slope: (iterations, starts), the
    loss and the norm of its gradient (NaN without gradients). seconds: (iterations,), since the run began, time before an
    interruption included. x, best: (starts, n) and (starts,), the best points so far and their losses. ended: why: "solved",
    "iterations", "stuck" (no start could move), "interrupted" or a sentence about what went wrong.
    """

    method: str
    motions: int
    x: np.ndarray
    best: np.ndarray
    loss: list[np.ndarray] = field(default_factory=list)
    slope: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    ended: str = "running"

    @property
    def iterations(self) -> int:
        """How many there are; counted by what `add` writes last, as Ctrl-C may come at any time."""
        return len(self.seconds)

    def solved_at(self, goal: float) -> np.ndarray:
        """Per start, the iteration (from 1) at which the loss was first at most `goal`; 0 where it never was."""
        below = np.array(self.loss[: self.iterations]).reshape(-1, len(self.best)) <= goal
        return np.where(below.any(0), below.argmax(0) + 1, 0)

    def add(self, iterate: Iterate, seconds: float) -> None:
        """One more iteration."""
        better = iterate.loss < self.best
        self.x[better], self.best[better] = iterate.x[better], iterate.loss[better]
        self.loss.append(iterate.loss)
        self.slope.append(iterate.slope)
        self.seconds.append(seconds)

    def save(self, file: Path, state: dict[str, np.ndarray]) -> None:
        """To an .npz file, whole or not at all, with the state of the method."""
        n = self.iterations
        arrays = {"loss": np.array(self.loss[:n]), "slope": np.array(self.slope[:n]), "seconds": np.array(self.seconds)}
        state = {f"state_{name}": value for name, value in state.items()}
        given: dict[str, Any] = {"method": self.method, "motions": self.motions, "x": self.x, "best": self.best}
        write_arrays(file, given | arrays | state)

    @classmethod
    def load(cls, file: Path) -> tuple[History, dict[str, np.ndarray]]:
        """What `save` wrote."""
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
    """Go downhill from every row of `starts` (starts, n) until all losses are at most `goal`, for so many iterations.

    method: "lbfgs", "adam", "sgd" or "cma-es". settings: of lbfgs `memory`, how many steps it remembers (10); of adam `rate`,
    the length of a step, `betas`, how fast its means forget, and `half_life`, in iterations, of that length; of sgd `rate`,
    `longest`, the most of a gradient that is used, and `lowest`, the loss that a step of Polyak's length aims at; of cma-es
    `sigma`, how far it looks at first. rate and sigma have to be given. seed: of cma-es. file: where the run is saved every
    few seconds and at its end; resume: go on from there, `iterations` counts from the first beginning. watch: called after
    each iteration. Ctrl-C ends the run, which keeps what it has; so does a loss that is not a number.
    """
    if method not in METHODS:
        raise InputError(f"a method is one of {', '.join(METHODS)}; not {method!r}")
    x = check_start(problem, starts)
    try:
        search = METHODS[method](problem, x, seed=seed, **settings)
    except TypeError as error:
        raise InputError(f"settings of {method}: {error}") from None
    history = History(method, search.motions, x.copy(), np.full(len(x), np.inf))
    if resume and file is not None and file.exists():
        history, state = _loaded(file, history)
        search.restore(state)
    state = search.state()  # of whole iterations: Ctrl-C may come in the middle of one
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
    """The run of a file, if it is one of the same kind."""
    try:
        history, state = History.load(file)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{file} is not a saved run ({error}): remove it to begin anew") from None
    if history.method != fresh.method or history.x.shape != fresh.x.shape:
        raise InputError(
            f"{file} holds {history.method} with {len(history.x)} starts of {history.x.shape[1]} variables, this is "
            f"{fresh.method} with {len(fresh.x)} starts of {fresh.x.shape[1]}: use another folder, or begin anew"
        )
    return history, state
