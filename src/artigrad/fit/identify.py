"""Identifiability: standard deviations of parameters, and directions that the data do not determine.

Coordinates are relative: one unit is the size of a value. Along a unit eigenvector of the Gauss-Newton matrix with
eigenvalue e the standard deviation is noise / sqrt(e). A direction is unidentifiable if that is above 1/2, or if e is below
rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_UNSURE = 0.5  # standard deviation along a direction, as a fraction of the values
_ROUNDING = 1e-12  # of the largest eigenvalue
_PART = 0.05  # entries of a direction smaller than this fraction of its largest are omitted


def deviations(S: np.ndarray, change: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return relative standard deviations, and unidentifiable directions.

    Args:
      S: Gauss-Newton matrix (p, p).
      change: Relative change of each value per unit of coordinate, (values, p).
      noise: Standard deviation of the residuals.

    Returns:
      Standard deviations (values,), infinite for values in an unidentifiable direction; and those directions as rows (k,
      values).
    """
    eigenvalues, vectors = np.linalg.eigh(S)
    unidentifiable = eigenvalues <= max(_ROUNDING * eigenvalues.max(initial=0.0), (noise / _UNSURE) ** 2, 1e-300)
    deviation = noise * np.sqrt(np.sum((change @ vectors[:, ~unidentifiable]) ** 2 / eigenvalues[~unidentifiable], 1))
    directions = _sparse((change @ vectors[:, unidentifiable]).T)
    for d in directions:
        deviation[_involved(d)] = np.inf
    return deviation, directions


def in_words(direction: np.ndarray, labels: Sequence[str]) -> str:
    """Return a sentence about an unidentifiable direction of relative changes."""
    parts = _involved(direction)
    if len(parts) == 1:
        return f"{labels[parts[0]]} has almost no effect on these data"
    percent = direction / direction[parts[0]]
    moves = [f"{labels[i]} {'up' if percent[i] > 0 else 'down'} {abs(percent[i]):.2g} %" for i in parts]
    names = [labels[i] for i in parts]
    return f"{', '.join(names[:-1])} and {names[-1]} cannot be distinguished: {', '.join(moves)} together have almost no effect"


def _involved(direction: np.ndarray) -> np.ndarray:
    """Return the indices of the parameters that a direction changes."""
    size = np.abs(direction)
    return np.flatnonzero(size > _PART * size.max())


def _sparse(rows: np.ndarray) -> np.ndarray:
    """Return a basis of the rows' space in which each row has a parameter that no other row has, for short sentences."""
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
