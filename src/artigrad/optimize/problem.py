"""Interfaces of problems and optimization methods."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arguments import numbers
from ..deprecation import renamed
from ..errors import InputError


class Problem(Protocol):
    """A loss of n variables within bounds. Points are evaluated in batches (points, n), so that simulations run as a batch.

    Attributes:
      lower, upper: Bounds of the variables, (n,); infinite if there is none.
    """

    lower: np.ndarray
    upper: np.ndarray

    def loss(self, x: np.ndarray) -> np.ndarray:
        """Return the loss (points,) at x (points, n)."""
        ...

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss (points,) at x (points, n), and its gradient (points, n)."""
        ...


@renamed(slope="grad_norm")
class Iterate(NamedTuple):
    """One iteration from all initial guesses.

    Attributes:
      x: Points of evaluation, (starts, n).
      loss: Their losses, (starts,).
      grad_norm: Norms of their gradients, (starts,); NaN for methods without gradients.
    """

    x: np.ndarray
    loss: np.ndarray
    grad_norm: np.ndarray


class Method(Protocol):
    """An optimization method that runs from several initial guesses at once.

    Constructed from a problem, initial guesses (starts, n), a seed (not used by deterministic methods) and its settings.

    Attributes:
      done: True if no run can continue.
      evaluations: Loss evaluations per iteration and initial guess.
    """

    done: bool
    evaluations: int

    def step(self) -> Iterate:
        """Run one iteration from all initial guesses."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return the state needed to resume."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Resume from a result of `state`."""
        ...

    def close(self) -> None:
        """Release threads."""
        ...


def check_start(problem: Problem, x: Any) -> np.ndarray:
    """Return initial guesses (starts, n) as an array. Raises InputError if one is outside the bounds."""
    if not all(hasattr(problem, name) for name in ("lower", "upper", "loss")):
        raise InputError(f"problem has lower, upper, loss and gradient; {type(problem).__name__} has not")
    x, n = numbers("starts", x, finite=False), len(problem.lower)
    if x.ndim != 2 or x.shape[1] != n or len(x) == 0:
        raise InputError(f"starts are (starts, {n}), at least one, not {x.shape}")
    if not np.isfinite(x).all():
        raise InputError("starts contain values that are not finite")
    outside = np.argwhere((x < problem.lower) | (x > problem.upper))
    if len(outside):
        s, k = outside[0]
        low, high = problem.lower[k], problem.upper[k]
        raise InputError(
            f"variable {k} of start {s} is {x[s, k]:g}, outside its bounds {low:g} to {high:g}: "
            "move the start or widen the bounds"
        )
    return x


def check_loss(loss: np.ndarray) -> None:
    """Raise ArithmeticError if a loss is not finite."""
    bad = np.flatnonzero(~np.isfinite(loss))
    if len(bad):
        raise ArithmeticError(
            f"the loss of point {bad[0]} is {loss[bad[0]]}: the simulation diverged; "
            "take smaller steps (learning_rate, sigma), a smaller dt, or bounds on the variables"
        )
