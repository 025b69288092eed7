"""Images of single states, for rendering of environments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.state import State
from ..simulate.simulator import Simulator
from .frames import Frames, Framing, framing, poses
from .scenery import scene_of


class Snapshots:
    """Renderer of states of one robot, with a camera that follows it. size: (width, height) in pixels."""

    def __init__(self, sim: Simulator, size: tuple[int, int] = (480, 360)):
        self.sim, self.size = sim, size
        self.scene = scene_of(sim.model, sim.params)
        first = self._frames(sim.reset())
        self.framing, self._middle = framing(self.scene, first), first.position[0, 1:, :2].mean(0)
        self._studio: Any = None
        self._viewer: Any = None

    def picture(self, state: State) -> np.ndarray:
        """Return the image (height, width, 3), bytes."""
        from .studio import Studio

        motion, frame = self._seen(state)
        if self._studio is None:
            self._studio = Studio(self.scene, motion, frame, self.size)
        self._studio.motion, self._studio.framing = motion, frame
        picture: np.ndarray = self._studio.picture(0)
        return picture

    def show(self, state: State) -> None:
        """Show the states in the browser, on a page that opens with the first one."""
        from .browser import Viewer

        motion, _ = self._seen(state)
        if self._viewer is None:
            self._viewer = Viewer(self.sim.model.name, None)
            self._viewer.put(self.scene, motion, self.framing)
            self._viewer.run(block=False)
            print(f"open {self._viewer.url} in a browser", flush=True)
        self._viewer.move(motion)

    def close(self) -> None:
        """Close the page, if there is one."""
        if self._viewer is not None:
            self._viewer.stop()
            self._viewer = None

    def _frames(self, state: State) -> Frames:
        position, rotation = poses(self.sim, state.q[None], state.v[None])
        return Frames(np.zeros(1), position, rotation, [])

    def _seen(self, state: State) -> tuple[Frames, Framing]:
        """Poses of a state, with the robot in the center of the image, at its initial height."""
        motion = self._frames(state)
        focus = self.framing.focus.copy()
        focus[0, :2] += motion.position[0, 1:, :2].mean(0) - self._middle
        return motion, self.framing._replace(focus=focus)
