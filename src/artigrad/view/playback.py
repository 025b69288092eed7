"""Playback of a trajectory in the browser: the page that would be saved, for any batch element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .browser import RATE, Viewer
from .frames import frames_of, framing, params_of
from .page import Drawing, drawing
from .scenery import scene_of

if TYPE_CHECKING:
    from ..simulate.results import Trajectory


class Playback:
    """Return the drawing that the page plays."""

    def __init__(self, viewer: Viewer, traj: Trajectory):
        self.traj = traj
        viewer.show(self.robot(0), len(np.atleast_2d(traj.final.q)))
        viewer.robots = self.robot

    def robot(self, k: int) -> Drawing:
        """Trajectory of one batch element."""
        scene, motion = scene_of(self.traj.simulator.model, params_of(self.traj, k)), frames_of(self.traj, k, RATE)
        return drawing(scene, motion, framing(scene, motion))
