"""CMA-ES of the PyPI package `cma`, a method without gradients for comparison.

An iteration is one generation; the generations of all runs are simulated as a batch. Covariances are full, as by default in
the package, up to FULL variables and diagonal above: with the 7000 variables of `throw` a generation takes 2 s with a full
one and 0.06 s with a diagonal one, and the errors are equal until either has adapted. Resuming keeps means and step sizes
and begins with a new covariance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .problem import Iterate, Problem

FULL = 500


class CMAES:
    """CMA-ES with the package's defaults.

    Args:
      problem: Problem.
      x: Initial means (starts, n).
      sigma: Initial standard deviation of every variable.
      seed: Seed.
    """

    def __init__(self, problem: Problem, x: np.ndarray, *, sigma: float, seed: int = 0):
        try:
            import cma
        except ImportError:
            raise InputError("CMA-ES needs the package cma: pip install 'artigrad[optimize]'") from None
        self._cma, self.problem, self.seed, self.generation = cma, problem, seed, 0
        self._begin(x, np.full(len(x), sigma))

    def _begin(self, means: np.ndarray, sigmas: np.ndarray) -> None:
        self.done, self.n = False, means.shape[1]
        rng = np.random.default_rng((self.seed, self.generation))
        self._searches = [self._search(x, sigma, rng) for x, sigma in zip(means, sigmas, strict=True)]
        self.evaluations = int(self._searches[0].popsize)

    def _search(self, x: np.ndarray, sigma: float, rng: np.random.Generator) -> Any:
        lower, upper = self.problem.lower, self.problem.upper
        if self.n == 1:  # the package needs two variables; the second has no effect
            x, lower, upper = np.append(x, 0.0), np.append(lower, -np.inf), np.append(upper, np.inf)
        options: dict[str, Any] = {
            "verbose": -9,
            "seed": np.nan,  # the generator below in place of NumPy's global one
            "randn": lambda *shape: rng.standard_normal(shape),
            "CMA_diagonal": self.n > FULL,
        }
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            none = [None if np.isinf(b) else float(b) for b in (*lower, *upper)]
            options["bounds"] = [none[: len(x)], none[len(x) :]]
        return self._cma.CMAEvolutionStrategy(x, float(sigma), options)

    def step(self) -> Iterate:
        """Sample and evaluate one generation of all runs."""
        samples = [np.array(search.ask()) for search in self._searches]
        points = np.concatenate(samples)[:, : self.n]
        loss = self.problem.loss(points).reshape(len(samples), -1)
        loss = np.where(np.isfinite(loss), loss, 1e30)  # diverged points are the worst
        for search, x, values in zip(self._searches, samples, loss, strict=True):
            search.tell(list(x), values.tolist())
        self.generation += 1
        rows, first = np.arange(len(samples)), loss.argmin(1)
        best = points.reshape(*loss.shape, self.n)[rows, first]
        return Iterate(best, loss[rows, first], np.full(len(samples), np.nan))

    def state(self) -> dict[str, np.ndarray]:
        means = np.array([search.mean[: self.n] for search in self._searches])
        sigmas = np.array([search.sigma for search in self._searches])
        return {"means": means, "sigmas": sigmas, "generation": np.array(self.generation)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.generation = int(state["generation"])
        means = np.clip(state["means"], self.problem.lower, self.problem.upper)
        self._begin(means, state["sigmas"])

    def close(self) -> None:
        pass
