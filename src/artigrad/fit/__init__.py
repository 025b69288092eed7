"""Parameter estimation: which Params make a simulator repeat what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..model.params import Params
from ..model.state import State
from ..simulate.simulator import Simulator
from .identify import deviations, in_words
from .levenberg import Minimum, minimize, reduced
from .parameters import Bounds, Parameter, Parametrisation
from .recording import Recording, windows
from .residuals import Residuals
from .result import Fit

__all__ = ["Fit", "Parameter", "Recording", "fit"]


FIRST, LONGER = 50, 4  # measurements in a window at first, and how many times as long the next are
WORSE = 1.2  # by what factor more may remain with longer windows


def fit(
    sim: Simulator,
    data: Recording | Sequence[Recording],
    parameters: Sequence[str | Parameter],
    *,
    params: Params | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    window: int | None = None,
    iterations: int = 100,
) -> Fit:
    """Estimate parameters of the simulator's model from what was recorded, and the states in which recordings begin.

    parameters: names of entries of Params: "friction" for all of a field, "mass[rod1]" for one part, "com[rod1].z" for
    one component; or `Parameter` for a scalar of your own; none of them to find first states alone. params: to start from,
    by default `sim.params`. bounds: (lowest, highest) by name; without any, what cannot be
    negative stays so, and inertias stay those of bodies. window: measurements that are simulated in one go, from a first
    state that is estimated too. Longer ones tell more, as long as the motion can be predicted that far; by default
    they grow from 50 on until it cannot. iterations: at most, for each length.
    """
    if not isinstance(sim, Simulator) or sim.device != "cpu" or sim.dtype != "f64":
        raise InputError("fit takes a Simulator on the CPU with dtype='f64'")
    chosen = Parametrisation(sim.checks.params(params, 1), parameters, bounds or {})
    start = np.zeros(len(chosen))
    length = FIRST if window is None else window
    problem = _problem(sim, data, chosen, length)
    first = problem.first(start)
    if not np.isfinite(first.loss):
        raise InputError(
            "the simulation of a window overflows at the start values: start nearer, or shorten windows or dt"
        )
    found = minimize(problem, first, iterations)
    while window is None and found.converged and length < problem.data.longest:
        length *= LONGER
        longer = _problem(sim, data, chosen, length)
        first = longer.first(found.point.theta)
        if not np.isfinite(first.loss):
            break
        then = minimize(longer, first, iterations)
        if not then.converged or _noise(longer, then) > WORSE * _noise(problem, found):
            break
        problem, found = longer, then._replace(losses=found.losses + then.losses)
    return _result(problem, found)


def _problem(sim: Simulator, data: Recording | Sequence[Recording], chosen: Parametrisation, length: int) -> Residuals:
    """Windows of so many measurements, and that they are enough to determine everything."""
    problem = Residuals(sim, windows(sim, data, length, chosen.params(np.zeros(len(chosen)))), chosen)
    if problem.measured <= problem.unknown:
        raise InputError(
            f"{problem.measured} measured numbers cannot determine {len(chosen)} parameters and the first states of "
            f"{len(problem.data.counts)} windows ({problem.unknown} numbers): record more or make windows longer"
        )
    return problem


def _noise(problem: Residuals, found: Minimum) -> float:
    """What the measurements deviate by, as a share of the range of each channel."""
    return float(np.sqrt(2 * found.point.loss / (problem.measured - problem.unknown)))


def _result(problem: Residuals, found: Minimum) -> Fit:
    chosen, point, free, noise = problem.chosen, found.point, ~found.held, _noise(problem, found)
    values = chosen.values(point.theta)
    slope, _ = chosen.derivative(point.theta)
    size = np.maximum(np.abs(values), chosen.size)
    most = np.max(np.abs(slope) / size[:, None], axis=0, initial=0.0)
    unit = 1.0 / np.where(most > 0.0, most, 1.0)  # the step of each coordinate that changes a value by its own size
    S = (reduced(found.normal) * unit * unit[:, None])[np.ix_(free, free)]
    share, directions = deviations(S, (slope * unit / size[:, None])[:, free], noise)
    deviation = np.where(free, share * size, np.nan)
    shown = size / np.where(np.abs(values) > 0.1 * size, np.abs(values), size)  # percentages are of what was found
    return Fit(
        params=point.params,
        values=dict(zip(chosen.labels, values.tolist(), strict=True)),
        deviation=dict(zip(chosen.labels, deviation.tolist(), strict=True)),
        unseen=tuple(in_words(d * shown, chosen.labels) for d in directions),
        noise=noise,
        losses=found.losses,
        window=problem.data.counts.shape[1],
        converged=found.converged,
        start=State(*(x[~problem.data.follows] for x in point.start)),
        notes=problem.data.notes,
    )
