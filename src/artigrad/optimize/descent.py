"""First-order methods: SGD and Adam. All runs step together; variables are projected onto their bounds."""

from __future__ import annotations

import numpy as np

from ..deprecation import renamed_arguments
from .problem import Iterate, Problem, check_loss


class Descent:
    """Base class: x <- x - learning_rate * direction(loss, gradient), within the bounds."""

    evaluations = 1

    def __init__(self, problem: Problem, x: np.ndarray, *, learning_rate: float, seed: int = 0):
        self.problem, self.x, self.learning_rate, self.done = problem, x, learning_rate, False

    def step(self) -> Iterate:
        """Evaluate the gradient at all points and take a step."""
        x = self.x
        loss, g = self.problem.gradient(x)
        check_loss(loss)
        self.x = np.clip(x - self.learning_rate * self.direction(loss, g), self.problem.lower, self.problem.upper)
        return Iterate(x, loss, np.linalg.norm(g, axis=1))

    def direction(self, loss: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return the direction (starts, n) from losses (starts,) and gradients (starts, n)."""
        raise NotImplementedError

    def state(self) -> dict[str, np.ndarray]:
        return {"x": self.x}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self.x = state["x"]

    def close(self) -> None:
        pass


class SGD(Descent):
    """Gradient descent.

    Args:
      problem: Problem.
      x: Initial guesses (starts, n).
      learning_rate: Learning rate.
      max_grad_norm: Maximum norm of the gradient, larger ones are scaled down. Contact can make single gradients very
        large.
      min_loss: Lower bound of the loss, if known. Steps then are Polyak's, learning_rate * (loss - min_loss) / |gradient|^2
        times the gradient. If the loss is a squared distance, min_loss 0 and learning_rate 2 reach zero distance in one
        step if the distance is linear.
      seed: Not used.
    """

    @renamed_arguments(rate="learning_rate", longest="max_grad_norm", lowest="min_loss")
    def __init__(
        self,
        problem: Problem,
        x: np.ndarray,
        *,
        learning_rate: float,
        max_grad_norm: float = np.inf,
        min_loss: float | None = None,
        seed: int = 0,
    ):
        super().__init__(problem, x, learning_rate=learning_rate)
        self.max_grad_norm, self.min_loss = max_grad_norm, min_loss

    def direction(self, loss: np.ndarray, g: np.ndarray) -> np.ndarray:
        norm = np.maximum(np.linalg.norm(g, axis=1), 1e-100)
        scale = np.minimum(1.0, self.max_grad_norm / norm)
        if self.min_loss is not None:
            scale *= (loss - self.min_loss) / norm**2
        return g * scale[:, None]


class Adam(Descent):
    """Adam. The default betas are smaller than usual: runs take tens of iterations and gradients have no noise.

    Args:
      problem: Problem.
      x: Initial guesses (starts, n).
      learning_rate: Learning rate.
      betas: Decay of the running means of the gradient and of its square.
      half_life: Iterations after which the learning rate is halved; for losses with small jumps, which a line search does
        not pass.
      seed: Not used.
    """

    @renamed_arguments(rate="learning_rate")
    def __init__(
        self,
        problem: Problem,
        x: np.ndarray,
        *,
        learning_rate: float,
        betas: tuple[float, float] = (0.8, 0.95),
        half_life: float = np.inf,
        seed: int = 0,
    ):
        super().__init__(problem, x, learning_rate=learning_rate)
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
