"""What a method is given, and what it gives back after every iteration."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError


class Problem(Protocol):
    """A loss of n variables within bounds. Points come in batches, (points, n), so that simulations share SIMD lanes.

    lower, upper: (n,), the box in which variables stay; infinite where there is no bound.
    """

    lower: np.ndarray
    upper: np.ndarray

    def loss(self, x: np.ndarray) -> np.ndarray:
        """The loss (points,) at x (points, n)."""
        ...

    def gradient(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss (points,) at x (points, n), and its gradient (points, n)."""
        ...


class Iterate(NamedTuple):
    """One iteration of all starts. x: (starts, n), where the loss was taken; slope: norm of the gradient, NaN without."""

    x: np.ndarray
    loss: np.ndarray
    slope: np.ndarray


class Method(Protocol):
    """One way to go downhill from several starts at once.

    Made from a problem, starts (starts, n), a seed (which those without chance do not need) and settings of its own.
    done: no start can move any more. motions: how many points an iteration of one start takes.
    """

    done: bool
    motions: int

    def step(self) -> Iterate:
        """One iteration of all starts."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """What is needed to go on later."""
        ...

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what `state` gave."""
        ...

    def close(self) -> None:
        """Let go of threads."""
        ...


def check_start(problem: Problem, x: Any) -> np.ndarray:
    """Starts (starts, n) as an array; refuses those outside the bounds."""
    x, n = np.array(x, dtype=np.float64), len(problem.lower)
    if x.ndim != 2 or x.shape[1] != n or len(x) == 0:
        raise InputError(f"starts are (starts, {n}), at least one, not {x.shape}")
    if not np.isfinite(x).all():
        raise InputError("starts hold numbers that are not finite")
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
    """Refuse losses that are not numbers; says which."""
    bad = np.flatnonzero(~np.isfinite(loss))
    if len(bad):
        raise ArithmeticError(
            f"the loss of point {bad[0]} is {loss[bad[0]]}: the motion has blown up; "
            "take smaller steps (rate, sigma), a smaller dt, or bounds on the variables"
        )
