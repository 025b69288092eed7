"""Parameter estimation: Params with which a simulator reproduces recorded trajectories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arguments import checked
from ..errors import InputError
from ..model.params import Params
from ..model.state import State
from ..simulate.simulator import Simulator
from .identify import deviations, in_words
from .levenberg import Minimum, minimize, reduced
from .parameters import Bounds, Parameter, Parametrization
from .recording import Recording, windows
from .residuals import Residuals
from .result import Fit

__all__ = ["Fit", "Parameter", "Recording", "fit"]


FIRST, LONGER = 50, 4  # measurements in the first windows, factor of the next length
WORSE = 1.2  # largest factor by which the noise may grow with longer windows


@checked
def fit(
    sim: Simulator,
    data: Recording | Sequence[Recording],
    parameters: Sequence[str | Parameter],
    *,
    params: Params | None = None,
    bounds: Mapping[str, Bounds] | None = None,
    window: int | None = None,
    iterations: int = 100,
    reweighted: bool = False,
) -> Fit:
    """Estimate parameters of the simulator's model from recordings, and the initial state of each recording.

    Args:
      sim: Simulator on the CPU with dtype="f64".
      data: One recording, or several with the same channels and dt.
      parameters: Names of entries of Params: "friction" for a whole field, "mass[rod1]" for one part, "com[rod1].z" for one
        component; or a `Parameter`. An empty list estimates initial states only.
      params: Initial guess; None: `sim.params`.
      bounds: (lower, upper) by name. By default values that cannot be negative stay positive, and inertias stay physically
        possible.
      window: Measurements per window. Each window is simulated from its own initial state, which is estimated too.
        Longer windows are more informative as long as the trajectory can be predicted over their length. None: from 50, and
        four times as long while the fit succeeds.
      iterations: Maximum number of iterations for each window length.
      reweighted: Whether the weights of constraints (`Params.reweighted`), which determine how far contacts and limits give
        way, follow from the estimated masses, positions and armatures, as for a robot that is built. False: as in `params`.

    Returns:
      Estimated values, their standard deviations, and combinations of parameters that the data do not determine.
    """
    if not isinstance(sim, Simulator) or sim.device != "cpu" or sim.dtype != "f64":
        raise InputError("fit takes a Simulator on the CPU with dtype='f64'")
    if not isinstance(parameters, list | tuple):
        raise InputError(f"parameters is a list of names and ag.Parameter, not {type(parameters).__name__}")
    chosen = Parametrization(sim.checks.params(params, 1), parameters, bounds or {}, reweighted)
    start = np.zeros(len(chosen))
    length = FIRST if window is None else window
    problem = _problem(sim, data, chosen, length)
    first = problem.first(start)
    if not np.isfinite(first.loss):
        raise InputError(
            "the simulation of a window overflows at the initial guess: pass a closer one, or shorten windows or dt"
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


def _problem(sim: Simulator, data: Recording | Sequence[Recording], chosen: Parametrization, length: int) -> Residuals:
    """Return the least-squares problem with windows of `length` measurements. Raises InputError if there are fewer measured
    values than unknowns."""
    problem = Residuals(sim, windows(sim, data, length, chosen.params(np.zeros(len(chosen)))), chosen)
    if problem.measured <= problem.unknown:
        raise InputError(
            f"{problem.measured} measured values cannot determine {len(chosen)} parameters and the initial states of "
            f"{len(problem.data.counts)} windows ({problem.unknown} unknowns): record more or make windows longer"
        )
    return problem


def _noise(problem: Residuals, found: Minimum) -> float:
    """Return the standard deviation of the residuals, as a fraction of each channel's range."""
    return float(np.sqrt(2 * found.point.loss / (problem.measured - problem.unknown)))


def _result(problem: Residuals, found: Minimum) -> Fit:
    chosen, point, free, noise = problem.chosen, found.point, ~found.held, _noise(problem, found)
    values = chosen.values(point.theta)
    slope, _ = chosen.derivative(point.theta)
    size = np.maximum(np.abs(values), chosen.size)
    most = np.max(np.abs(slope) / size[:, None], axis=0, initial=0.0)
    unit = 1.0 / np.where(most > 0.0, most, 1.0)  # step of each coordinate that changes a value by its size
    S = (reduced(found.normal) * unit * unit[:, None])[np.ix_(free, free)]
    share, directions = deviations(S, (slope * unit / size[:, None])[:, free], noise)
    deviation = np.where(free, share * size, np.nan)
    shown = size / np.where(np.abs(values) > 0.1 * size, np.abs(values), size)  # percentages of the estimates
    return Fit(
        params=point.params,
        values=dict(zip(chosen.labels, values.tolist(), strict=True)),
        standard_deviation=dict(zip(chosen.labels, deviation.tolist(), strict=True)),
        unidentifiable=tuple(in_words(d * shown, chosen.labels) for d in directions),
        noise=noise,
        losses=found.losses,
        window=problem.data.counts.shape[1],
        converged=found.converged,
        start=State(*(x[~problem.data.follows] for x in point.start)),
        notes=problem.data.notes,
    )
