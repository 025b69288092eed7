"""Rendering of environments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..model.state import State
from .batch import Batch
from .env_task import EnvState

RENDER_MODES = ("human", "rgb_array")


class Rendering:
    """Renderer of the environments of a batch, created on first use.

    Args:
      batch: The batch.
      mode: One of RENDER_MODES, or None for no rendering.
    """

    def __init__(self, batch: Batch, mode: str | None):
        if mode is not None and mode not in RENDER_MODES:
            raise InputError(f"render_mode is {' or '.join(map(repr, RENDER_MODES))}, not {mode!r}")
        self.batch, self.mode = batch, mode
        self.fps = round(1.0 / (batch.sim.dt * batch.task.frame_skip))
        self._snapshots: Any = None

    def images(self, state: EnvState) -> tuple[np.ndarray, ...]:
        """Return an image (height, width, 3) of bytes for each environment."""
        return tuple(self._renderer().picture(_simulator_state(state, k)) for k in range(len(state.q)))

    def show(self, state: EnvState) -> None:
        """Show the first environment in the browser if the mode is "human"."""
        if self.mode == "human":
            self._renderer().show(_simulator_state(state, 0))

    def close(self) -> None:
        """Close the browser page, if any."""
        if self._snapshots is not None:
            self._snapshots.close()

    def _renderer(self) -> Any:
        if self._snapshots is None:
            from ..view.snapshots import Snapshots

            self._snapshots = Snapshots(self.batch.sim)
        return self._snapshots


def _simulator_state(state: EnvState, k: int) -> State:
    """Return the simulator state of environment k."""
    return State(*(x[k].detach().cpu().numpy() for x in (state.q, state.v)))
