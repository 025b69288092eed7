"""A trajectory in the browser: play, time, speed, and which robot of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .browser import RATE, Viewer
from .frames import frames_of, framing, params_of
from .overlays import Overlays
from .scenery import scene_of

if TYPE_CHECKING:
    from ..simulate.results import Trajectory


class Playback:
    """The controls beside a trajectory, and what they do."""

    def __init__(self, viewer: Viewer, traj: Trajectory):
        self.viewer, self.traj = viewer, traj
        self.duration = traj.steps * traj.simulator.options.dt
        gui, batch = viewer.server.gui, len(np.atleast_2d(traj.final.q))
        self.play = gui.add_checkbox("play", True)
        step = min(1e-3, self.duration / 100)
        self.scrub = gui.add_slider("time / s", min=0.0, max=self.duration, step=step, initial_value=0.0)
        self.speed = gui.add_slider("speed", min=0.05, max=3.0, step=0.05, initial_value=1.0)
        self.robot = gui.add_slider("robot", min=0, max=max(batch - 1, 1), step=1, initial_value=0, visible=batch > 1)
        self.arrows = gui.add_checkbox("contact forces", True)
        self.overlays = Overlays(viewer, traj.simulator.model, self._show)
        self._choose()
        self.arrows.visible = bool(self.motion.forces)
        self.robot.on_update(lambda _: self._choose())
        self.scrub.on_update(lambda _: self._draw())
        self.arrows.on_update(lambda _: self._show())
        viewer.every_tick(self._tick)

    def _choose(self) -> None:
        """Show the robot that the slider names."""
        robot = int(self.robot.value)
        scene = scene_of(self.traj.simulator.model, params_of(self.traj, robot))
        self.motion = frames_of(self.traj, robot, RATE)
        self.framing = framing(scene, self.motion)
        self.viewer.put(scene, self.motion, self.framing)
        self._show()

    def _show(self) -> None:
        forces = self.arrows.value and bool(self.motion.forces)
        self.overlays.draw(params_of(self.traj, int(self.robot.value)), self.framing.radius, forces=forces)
        self._draw()

    def _draw(self) -> None:
        share = float(np.clip(self.scrub.value / self.duration, 0, 1))
        self.viewer.pose(round(share * (len(self.motion.times) - 1)), forces=self.arrows.value)

    def _tick(self, seconds: float) -> None:
        if self.play.value:
            self.scrub.value = round((self.scrub.value + self.speed.value * seconds) % self.duration, 4)
