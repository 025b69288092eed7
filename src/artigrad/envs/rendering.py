"""What environments show of their robots."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..model.state import State
from .batch import Batch
from .env_task import Moment

RENDER_MODES = ("human", "rgb_array")


class Rendering:
    """Draws robots of a batch, when it is first asked to. mode: one of RENDER_MODES, or None for nothing."""

    def __init__(self, batch: Batch, mode: str | None):
        if mode is not None and mode not in RENDER_MODES:
            raise InputError(f"render_mode is {' or '.join(map(repr, RENDER_MODES))}, not {mode!r}")
        self.batch, self.mode = batch, mode
        self.fps = round(1.0 / (batch.sim.dt * batch.task.frame_skip))
        self._snapshots: Any = None

    def pictures(self, now: Moment) -> tuple[np.ndarray, ...]:
        """One of each robot, (height, width, 3) bytes."""
        return tuple(self._drawn().picture(_state(now, k)) for k in range(len(now.q)))

    def show(self, now: Moment) -> None:
        """The first robot in the browser, with mode "human"."""
        if self.mode == "human":
            self._drawn().show(_state(now, 0))

    def close(self) -> None:
        if self._snapshots is not None:
            self._snapshots.close()

    def _drawn(self) -> Any:
        if self._snapshots is None:
            from ..view.snapshots import Snapshots

            self._snapshots = Snapshots(self.batch.sim)
        return self._snapshots


def _state(now: Moment, k: int) -> State:
    """That of robot k."""
    return State(*(x[k].detach().cpu().numpy() for x in (now.q, now.v)))
