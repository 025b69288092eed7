"""CMA-ES of the PyPI package `cma`: what one does without gradients, to compare with.

An iteration is one generation; the generations of all starts are simulated together. Covariances are full, as is that
package's default, up to FULL variables and diagonal above: with the 7000 of `throw` a generation takes 2 s with a full one and
0.06 s with a diagonal one, and the errors of both are the same for as long as either has learnt little. Going on from a saved
state keeps means and step sizes and begins a new covariance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from .problem import Iterate, Problem

FULL = 500


class CMAES:
    """CMA-ES with the package's defaults; sigma: the first standard deviation of every variable."""

    def __init__(self, problem: Problem, x: np.ndarray, *, sigma: float, seed: int = 0):
        try:
            import cma
        except ImportError:
            raise InputError("CMA-ES is in the package cma: pip install 'artigrad[optimize]'") from None
        self._cma, self.problem, self.seed, self.generation = cma, problem, seed, 0
        self._begin(x, np.full(len(x), sigma))

    def _begin(self, means: np.ndarray, sigmas: np.ndarray) -> None:
        self.done, self.n = False, means.shape[1]
        rng = np.random.default_rng((self.seed, self.generation))
        self._searches = [self._search(x, sigma, rng) for x, sigma in zip(means, sigmas, strict=True)]
        self.motions = int(self._searches[0].popsize)

    def _search(self, x: np.ndarray, sigma: float, rng: np.random.Generator) -> Any:
        lower, upper = self.problem.lower, self.problem.upper
        if self.n == 1:  # the package wants two variables at least; the second one does nothing
            x, lower, upper = np.append(x, 0.0), np.append(lower, -np.inf), np.append(upper, np.inf)
        options: dict[str, Any] = {
            "verbose": -9,
            "seed": np.nan,  # no seed of NumPy's global generator: ours below is used instead
            "randn": lambda *shape: rng.standard_normal(shape),
            "CMA_diagonal": self.n > FULL,
        }
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            none = [None if np.isinf(b) else float(b) for b in (*lower, *upper)]
            options["bounds"] = [none[: len(x)], none[len(x) :]]
        return self._cma.CMAEvolutionStrategy(x, float(sigma), options)

    def step(self) -> Iterate:
        asked = [np.array(search.ask()) for search in self._searches]
        points = np.concatenate(asked)[:, : self.n]
        loss = self.problem.loss(points).reshape(len(asked), -1)
        loss = np.where(np.isfinite(loss), loss, 1e30)  # what blows up is worst, and dies out
        for search, x, values in zip(self._searches, asked, loss, strict=True):
            search.tell(list(x), values.tolist())
        self.generation += 1
        rows, first = np.arange(len(asked)), loss.argmin(1)
        best = points.reshape(*loss.shape, self.n)[rows, first]
        return Iterate(best, loss[rows, first], np.full(len(asked), np.nan))

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
