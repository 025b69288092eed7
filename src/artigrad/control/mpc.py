"""Model-predictive control: iLQR over a receding horizon, warm-started from the previous plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import checked, numbers
from ..deprecation import renamed, renamed_arguments
from ..errors import InputError
from ..model.params import Params
from ..model.sealed import Sealed
from ..model.state import State
from ..simulate.checks import parts_of
from ..simulate.simulator import Simulator
from .costs import Cost
from .ilqr import Plan, ilqr


@renamed(first="first_iterations")
class MPC(Sealed):
    """Model-predictive controller: calling it with a measured state returns the controls of the next step.

    Each call is one control. A time-varying cost (`Quadratic` with a target per control, or any with `window`) moves along
    with `elapsed`, the number of controls since construction or `reset`, and stays at its end. `elapsed` may be set.

    Args:
      sim: Simulator.
      cost: Cost.
      horizon: Controls per plan.
      hold: Simulator steps per control.
      iterations: Maximum iLQR iterations per call.
      first_iterations: Maximum iLQR iterations of the first call, which has no previous plan.
      seconds: Time limit of a call, s: after it no further iteration begins.
      limits: As for `ilqr`.
      params: Parameters of the prediction; may be changed between calls, for example to estimates.

    Attributes:
      plan: Last plan.
    """

    CALLED = "an MPC"
    OPEN = ("cost", "iterations", "first_iterations", "seconds", "limits", "params", "plan", "elapsed")

    @renamed_arguments(first="first_iterations")
    @checked
    def __init__(
        self,
        sim: Simulator,
        cost: Cost,
        horizon: int,
        *,
        hold: int = 1,
        iterations: int = 5,
        first_iterations: int = 50,
        seconds: float = np.inf,
        limits: Any = None,
        params: Params | None = None,
    ):
        if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
            raise InputError(f"the horizon is an integer number of steps, at least 1, not {horizon!r}")
        self.sim, self.cost, self.horizon, self.hold = sim, cost, horizon, hold
        self.iterations, self.first_iterations, self.seconds = iterations, first_iterations, seconds
        self.limits, self.params = limits, params
        self.plan: Plan | None = None
        self.elapsed = 0
        self._seal()

    def _remedy(self, name: str) -> str:
        """Return the remedy for attributes on which plans depend."""
        return "make another one" if name in ("sim", "horizon", "hold") else ""

    def reset(self, u: Any = None) -> None:
        """Discard the plan and restart the cost. `u` (horizon, nu) is the initial guess of the next plan; None: zero."""
        self.plan, self._start, self.elapsed = None, None if u is None else numbers("u", u), 0

    _start: Any = None

    def __call__(self, state: State) -> np.ndarray:
        """Return the controls at a state, (nu,), or (B, nu) for a batch."""
        (q, *_), fresh, window = parts_of(state), self.plan is None, getattr(self.cost, "window", None)
        self.plan = ilqr(
            self.sim,
            self.cost if window is None else window(self.elapsed, self.horizon),
            state,
            self._guess(np.ndim(q) > 1),
            hold=self.hold,
            limits=self.limits,
            iterations=self.first_iterations if fresh else self.iterations,
            seconds=self.seconds,
            params=self.params,
        )
        self.elapsed += 1
        return self.plan.u[..., 0, :]

    def _guess(self, batched: bool) -> np.ndarray:
        """Return the previous plan shifted by one control, with its last control repeated."""
        if self.plan is not None:
            u = self.plan.u
            return np.concatenate([u[..., 1:, :], u[..., -1:, :]], -2)
        given = np.zeros((self.horizon, self.sim.model.nu)) if self._start is None else self._start
        if given.shape[-2:] != (self.horizon, self.sim.model.nu):
            raise InputError(
                f"the initial guess of the controls is ({self.horizon}, {self.sim.model.nu}), not {given.shape}"
            )
        return given
