"""Fit: result of a parameter estimation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..deprecation import renamed
from ..model.params import Params
from ..model.state import State


@renamed(deviation="standard_deviation", unseen="unidentifiable")
@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a parameter estimation. Printing it shows a table.

    Attributes:
      params: Params with the estimated values.
      values: Estimated values by name.
      standard_deviation: Standard deviation of each value, from the Gauss-Newton matrix and the residual noise; infinite
        for values that the data do not determine, NaN at a bound.
      unidentifiable: A sentence for each combination of parameters that the data do not determine.
      noise: Standard deviation of the residuals, as a fraction of each channel's range.
      losses: 1/2 sum r^2 after each step, for all window lengths in turn.
      window: Measurements per window at the end.
      converged: True if no further step would lower the loss noticeably.
      start: Initial state of each recording, (recordings, nq) and so on.
      notes: Corrections of the recordings before the fit.
    """

    params: Params = field(repr=False)
    values: dict[str, float]
    standard_deviation: dict[str, float]
    unidentifiable: tuple[str, ...]
    noise: float
    losses: tuple[float, ...] = field(repr=False)
    window: int
    converged: bool
    start: State = field(repr=False)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(9, 0, *map(len, self.values))
        lines = [f"{'parameter':{width}}  {'value':>12}  {'deviation':>12}"]
        for name, x in self.values.items():
            lines.append(f"{name:{width}}  {x:12.5g}  {_shown(self.standard_deviation[name]):>12}")
        end = "converged" if self.converged else "NOT converged"
        lines.append(f"{end} with windows of {self.window}; residual noise is {100 * self.noise:.3g} % of the range")
        return "\n".join([*lines, *(f"note: {sentence}" for sentence in (*self.unidentifiable, *self.notes))])


def _shown(deviation: float) -> str:
    if np.isnan(deviation):
        return "at its bound"
    return "unidentifiable" if np.isinf(deviation) else f"{deviation:.2g}"
