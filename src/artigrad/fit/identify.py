"""What the data say about each parameter: standard deviations, and the directions in which they say nothing.

Coordinates are relative: one unit is the size of a value. Along a unit eigenvector of the Gauss-Newton matrix with
eigenvalue e the standard deviation is noise / sqrt(e). A direction is unseen if that is more than half, or if e is
nothing but rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_UNSURE = 0.5  # standard deviation along a direction, as a share of the values
_ROUNDING = 1e-12  # of the largest eigenvalue
_PART = 0.05  # entries of a direction smaller than this share of its largest are left out


def deviations(S: np.ndarray, change: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Relative standard deviations of values, infinite for what is unseen, and the unseen directions as rows (k, p).

    S: the Gauss-Newton matrix (p, p). change: (values, p), the relative change of each value per unit of coordinate.
    """
    eigenvalues, vectors = np.linalg.eigh(S)
    unseen = eigenvalues <= max(_ROUNDING * eigenvalues.max(initial=0.0), (noise / _UNSURE) ** 2, 1e-300)
    directions = _sparse(vectors[:, unseen].T)
    deviation = noise * np.sqrt(np.sum((change @ vectors[:, ~unseen]) ** 2 / eigenvalues[~unseen], 1))
    deviation[np.any(np.abs(change @ directions.T) > _PART * np.abs(directions).max(1, initial=0.0), 1)] = np.inf
    return deviation, directions


def in_words(direction: np.ndarray, labels: Sequence[str]) -> str:
    """A sentence about one unseen direction."""
    parts = _involved(direction)
    if len(parts) == 1:
        return f"{labels[parts[0]]} hardly shows in these data"
    percent = direction / direction[parts[0]]
    moves = [f"{labels[i]} {'up' if percent[i] > 0 else 'down'} {abs(percent[i]):.2g} %" for i in parts]
    names = [labels[i] for i in parts]
    return f"{', '.join(names[:-1])} and {names[-1]} cannot be told apart: {', '.join(moves)} together changes next to nothing"


def _involved(direction: np.ndarray) -> np.ndarray:
    """Which parameters a direction moves, the largest first."""
    size = np.abs(direction)
    order = np.argsort(-size, kind="stable")
    return order[size[order] > _PART * size.max()]


def _sparse(rows: np.ndarray) -> np.ndarray:
    """Another basis of the same space, each row with a parameter that no other has: few parameters in each sentence."""
    rows = np.array(rows)
    for i in range(len(rows)):
        rest = np.abs(rows[i:])
        j, k = divmod(int(np.argmax(rest)), rest.shape[1])
        rows[[i, i + j]] = rows[[i + j, i]]
        rows[i] /= rows[i, k]
        for other in range(len(rows)):
            if other != i:
                rows[other] -= rows[other, k] * rows[i]
    return rows
