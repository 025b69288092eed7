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
    """Relative standard deviations of values, infinite for what is unseen, and the unseen directions as rows (k, values).

    S: the Gauss-Newton matrix (p, p). change: (values, p), the relative change of each value per unit of coordinate.
    """
    eigenvalues, vectors = np.linalg.eigh(S)
    unseen = eigenvalues <= max(_ROUNDING * eigenvalues.max(initial=0.0), (noise / _UNSURE) ** 2, 1e-300)
    deviation = noise * np.sqrt(np.sum((change @ vectors[:, ~unseen]) ** 2 / eigenvalues[~unseen], 1))
    directions = _sparse((change @ vectors[:, unseen]).T)
    for d in directions:
        deviation[_involved(d)] = np.inf
    return deviation, directions


def in_words(direction: np.ndarray, labels: Sequence[str]) -> str:
    """A sentence about one unseen direction, whose entries are relative changes."""
    parts = _involved(direction)
    if len(parts) == 1:
        return f"{labels[parts[0]]} hardly shows in these data"
    percent = direction / direction[parts[0]]
    moves = [f"{labels[i]} {'up' if percent[i] > 0 else 'down'} {abs(percent[i]):.2g} %" for i in parts]
    names = [labels[i] for i in parts]
    return f"{', '.join(names[:-1])} and {names[-1]} cannot be told apart: {', '.join(moves)} together changes next to nothing"


def _involved(direction: np.ndarray) -> np.ndarray:
    """Which parameters a direction moves."""
    size = np.abs(direction)
    return np.flatnonzero(size > _PART * size.max())


def _sparse(rows: np.ndarray) -> np.ndarray:
    """A basis of the space of these rows, each with a parameter that no other has: few parameters in each sentence."""
    rows = np.array(rows)
    for i in range(len(rows)):
        rest = np.abs(rows[i:])
        j, k = divmod(int(np.argmax(rest)), rest.shape[1])
        if rest[j, k] < _PART:  # a coordinate that changes no value
            return rows[:i]
        rows[[i, i + j]] = rows[[i + j, i]]
        rows[i] /= rows[i, k]
        others = np.arange(len(rows)) != i
        rows[others] -= rows[others, k, None] * rows[i]
    return rows
