"""Model-predictive control: iLQR over a horizon that moves along, begun where the last plan leads."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..model.params import Params
from ..model.sealed import Sealed
from ..model.state import State
from ..simulate.simulator import Simulator
from .costs import Cost
from .ilqr import Plan, ilqr


class MPC(Sealed):
    """A controller: called with the state as measured, it gives the controls of the next step.

    Each call is one control: a cost over time (`Quadratic` with a target per control, or any with `window`) moves along with
    `elapsed`, the number of controls since the start or `reset`, and stays at its end. `elapsed` may be set.

    horizon: controls that it looks ahead, each held for `hold` steps. iterations, seconds: of iLQR in every call, whichever
    ends first; the first call may take `first` iterations, as it has no plan to go on from. limits: as of `ilqr`. params:
    of the model that it predicts with; may be set between calls, say, to those that were estimated. plan: the last one.
    """

    CALLED = "an MPC"
    OPEN = ("cost", "iterations", "first", "seconds", "limits", "params", "plan", "elapsed")

    def __init__(
        self,
        sim: Simulator,
        cost: Cost,
        horizon: int,
        *,
        hold: int = 1,
        iterations: int = 5,
        first: int = 50,
        seconds: float = np.inf,
        limits: Any = None,
        params: Params | None = None,
    ):
        if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
            raise InputError(f"the horizon is a whole number of steps, at least 1, not {horizon!r}")
        self.sim, self.cost, self.horizon, self.hold = sim, cost, horizon, hold
        self.iterations, self.first, self.seconds = iterations, first, seconds
        self.limits, self.params = limits, params
        self.plan: Plan | None = None
        self.elapsed = 0
        self._seal()

    def _remedy(self, name: str) -> str:
        """The length of a plan and the robot stay."""
        return "make another one" if name in ("sim", "horizon", "hold") else ""

    def reset(self, u: Any = None) -> None:
        """Forget the plan and begin the cost anew; u (horizon, nu): controls to begin from in place of zero."""
        self.plan, self._start, self.elapsed = None, u, 0

    _start: Any = None

    def __call__(self, state: State) -> np.ndarray:
        """The controls at a state, (nu,); of a batch (B, nu)."""
        fresh, window = self.plan is None, getattr(self.cost, "window", None)
        self.plan = ilqr(
            self.sim,
            self.cost if window is None else window(self.elapsed, self.horizon),
            state,
            self._guess(np.ndim(state[0]) > 1),
            hold=self.hold,
            limits=self.limits,
            iterations=self.first if fresh else self.iterations,
            seconds=self.seconds,
            params=self.params,
        )
        self.elapsed += 1
        return self.plan.u[..., 0, :]

    def _guess(self, batched: bool) -> np.ndarray:
        """The rest of the last plan, its last controls once more."""
        if self.plan is not None:
            u = self.plan.u
            return np.concatenate([u[..., 1:, :], u[..., -1:, :]], -2)
        given = np.zeros((self.horizon, self.sim.model.nu)) if self._start is None else np.asarray(self._start, float)
        if given.shape[-2:] != (self.horizon, self.sim.model.nu):
            raise InputError(f"controls to begin from are ({self.horizon}, {self.sim.model.nu}), not {given.shape}")
        return given
