"""Steps along the gradient: plain, and Adam's. All starts move together; variables are put back into their bounds."""

from __future__ import annotations

import numpy as np

from .problem import Iterate, Problem, check_loss


class Descent:
    """x <- x - rate * direction(loss, gradient), within the bounds."""

    motions = 1

    def __init__(self, problem: Problem, x: np.ndarray, *, rate: float, seed: int = 0):
        self.problem, self.x, self.rate, self.done = problem, x, rate, False

    def step(self) -> Iterate:
        x = self.x
        loss, g = self.problem.gradient(x)
        check_loss(loss)
        self.x = np.clip(x - self.rate * self.direction(loss, g), self.problem.lower, self.problem.upper)
        return Iterate(x, loss, np.linalg.norm(g, axis=1))

    def direction(self, loss: np.ndarray, g: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        return {"x": self.x}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.x = state["x"]

    def close(self) -> None:
        pass


class SGD(Descent):
    """Gradient descent.

    longest: bounds the norm of the gradient that is used; contact can make single ones huge. lowest: the smallest loss there
    can be, if it is known; steps then have Polyak's length, rate * (loss - lowest) / |gradient|^2 times the gradient. With
    the square of a distance as the loss, lowest 0 and rate 2 go to where the distance would be zero if it were linear.
    """

    def __init__(
        self,
        problem: Problem,
        x: np.ndarray,
        *,
        rate: float,
        longest: float = np.inf,
        lowest: float | None = None,
        seed: int = 0,
    ):
        super().__init__(problem, x, rate=rate)
        self.longest, self.lowest = longest, lowest

    def direction(self, loss: np.ndarray, g: np.ndarray) -> np.ndarray:
        norm = np.maximum(np.linalg.norm(g, axis=1), 1e-100)
        scale = np.minimum(1.0, self.longest / norm)
        if self.lowest is not None:
            scale *= (loss - self.lowest) / norm**2
        return g * scale[:, None]


class Adam(Descent):
    """Adam. The moments forget faster than usual: runs are tens of iterations long and gradients carry no noise.

    half_life: after so many iterations steps are half as long, and so on; for losses with small jumps, which a line search
    does not pass.
    """

    def __init__(
        self,
        problem: Problem,
        x: np.ndarray,
        *,
        rate: float,
        betas: tuple[float, float] = (0.8, 0.95),
        half_life: float = np.inf,
        seed: int = 0,
    ):
        super().__init__(problem, x, rate=rate)
        self.betas, self.half_life, self.k = betas, half_life, 0
        self.mean, self.square = np.zeros_like(x), np.zeros_like(x)

    def direction(self, loss: np.ndarray, g: np.ndarray) -> np.ndarray:
        (a, b), self.k = self.betas, self.k + 1
        self.mean = a * self.mean + (1 - a) * g
        self.square = b * self.square + (1 - b) * g * g
        step = (self.mean / (1 - a**self.k)) / (np.sqrt(self.square / (1 - b**self.k)) + 1e-12)
        return step * 0.5 ** (self.k / self.half_life)

    def state(self) -> dict[str, np.ndarray]:
        return {"x": self.x, "mean": self.mean, "square": self.square, "k": np.array(self.k)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.x, self.mean, self.square, self.k = state["x"], state["mean"], state["square"], int(state["k"])
