"""What a fit found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..model.params import Params
from ..model.state import State


@dataclass(frozen=True, eq=False)
class Fit:
    """Estimated parameters; print it to read them.

    params: those of the simulator with the values found. values: by name. deviation: standard deviation of each, from
    the Gauss-Newton matrix and the noise that is left; infinite where the data do not say, NaN at a bound. unseen: a
    sentence for each combination of parameters that the data do not determine. noise: standard deviation of what was
    measured from what was simulated, as a share of each channel's range. losses: 1/2 sum r^2 after each step, of windows
    that grew one after the other. window: measurements in each at the end. converged: whether the last step was as good
    as none. start: the state in which each recording begins, (recordings, nq) and so on. notes: what was done to
    the recordings first.
    """

    params: Params = field(repr=False)
    values: dict[str, float]
    deviation: dict[str, float]
    unseen: tuple[str, ...]
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
            lines.append(f"{name:{width}}  {x:12.5g}  {_shown(self.deviation[name]):>12}")
        end = "converged" if self.converged else "NOT converged"
        lines.append(f"{end} with windows of {self.window}; what remains is {100 * self.noise:.3g} % of the range")
        return "\n".join([*lines, *(f"note: {sentence}" for sentence in (*self.unseen, *self.notes))])


def _shown(deviation: float) -> str:
    if np.isnan(deviation):
        return "at its bound"
    return "not seen" if np.isinf(deviation) else f"{deviation:.2g}"
