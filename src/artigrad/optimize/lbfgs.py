"""SciPy's L-BFGS-B from several initial guesses at once.

SciPy evaluates one point at a time; a simulator evaluates a batch at little more cost. Each run is therefore a thread, and
the points of all threads are evaluated together: an iteration is one point of every run, line searches included. Resuming
keeps the best points and begins with a new curvature memory.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..errors import InputError
from .problem import Iterate, Problem, check_loss


class _Stop(Exception):
    """Ends a run from outside."""


class LBFGS:
    """L-BFGS-B.

    Args:
      problem: Problem.
      x: Initial guesses (starts, n).
      memory: Number of steps in the curvature memory.
      seed: Not used.
    """

    evaluations = 1

    def __init__(self, problem: Problem, x: np.ndarray, *, memory: int = 10, seed: int = 0):
        try:
            from scipy import optimize
        except ImportError:
            raise InputError("L-BFGS needs SciPy: pip install 'artigrad[optimize]'") from None
        self.problem, self.memory, self._scipy = problem, memory, optimize
        self._begin(x)

    def _begin(self, x: np.ndarray) -> None:
        self.x, self.done = x.copy(), False
        self.best, self.best_loss = x.copy(), np.full(len(x), np.inf)
        self._requests: SimpleQueue[tuple[int, np.ndarray | Exception | None]] = SimpleQueue()
        self._answers: list[SimpleQueue[Any]] = [SimpleQueue() for _ in x]
        self._searching = set(range(len(x)))
        for s in range(len(x)):
            threading.Thread(target=self._search, args=(s, x[s].copy()), daemon=True).start()
        self._gather()

    def _search(self, s: int, x: np.ndarray) -> None:
        """Run the method from initial guess s, in its thread."""

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            self._requests.put((s, x.copy()))
            answer = self._answers[s].get()
            if answer is None:
                raise _Stop
            return answer

        bounds = self._scipy.Bounds(self.problem.lower, self.problem.upper)
        options = {"maxiter": 10**6, "maxfun": 10**6, "maxcor": self.memory, "ftol": 1e-15, "gtol": 1e-12}
        try:
            self._scipy.minimize(evaluate, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        except _Stop:
            return
        except Exception as problem:  # raised in the waiting thread
            self._requests.put((s, problem))
            return
        self._requests.put((s, None))

    def _gather(self) -> None:
        """Wait until every run has requested a point or has ended."""
        waiting: set[int] = set()
        while waiting != self._searching:
            s, x = self._requests.get()
            if isinstance(x, Exception):
                self._searching.discard(s)
                raise x
            if x is None:
                self._searching.discard(s)
            else:
                self.x[s] = x
                waiting.add(s)
        self.done = not self._searching

    def step(self) -> Iterate:
        """Evaluate the requested points and return them to their threads."""
        loss, g = self.problem.gradient(self.x)
        check_loss(loss)
        iterate = Iterate(self.x.copy(), loss, np.linalg.norm(g, axis=1))
        better = loss < self.best_loss
        self.best[better], self.best_loss[better] = self.x[better], loss[better]
        for s in self._searching:
            self._answers[s].put((float(loss[s]), g[s]))
        self._gather()
        return iterate

    def state(self) -> dict[str, np.ndarray]:
        return {"x": self.best.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.close()
        self._begin(state["x"])

    def close(self) -> None:
        for s in self._searching:
            self._answers[s].put(None)
        self._searching = set()
