"""What can be shown beside the looks of a robot: collision shapes, frames, centres of mass, contact points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..model.model import Model
from ..model.params import Params
from .browser import Viewer
from .meshes import primitive
from .scenery import Part, shapes_of

MASS = (0.10, 0.10, 0.12, 1.0)
SHAPE = (0.80, 0.25, 0.55, 1.0)


class Overlays:
    """Checkboxes, and what they show. redraw: shows the present moment again."""

    def __init__(self, viewer: Viewer, model: Model, redraw: Callable[[], None]):
        self.viewer, self.model, self.redraw = viewer, model, redraw
        self._drawn: list[Any] = []
        gui = viewer.server.gui
        with gui.add_folder("show", expand_by_default=False):
            self.shapes = gui.add_checkbox("collision shapes", False, visible=bool(model.shapes.names))
            self.frames = gui.add_checkbox("frames", False)
            self.masses = gui.add_checkbox("centres of mass", False)
            self.points = gui.add_checkbox("contact points", False, visible=bool(model.shapes.pairs))
        for handle in (self.shapes, self.frames, self.masses, self.points):
            handle.on_update(lambda _: self.redraw())

    def draw(self, params: Params, radius: float, *, forces: bool = False) -> None:
        """Whatever is ticked, for these parameters; what is inside of bodies is seen through them. radius: of the picture, m.
        forces: whether arrows are drawn."""
        self.viewer.see_through(forces or self.masses.value or self.frames.value)
        for handle in self._drawn:
            handle.remove()
        self.viewer.show_axes, self.viewer.show_points = self.frames.value, self.points.value
        self._drawn = []
        if self.shapes.value:
            for k, part in enumerate(shapes_of(self.model, params)):
                self._drawn.append(self.viewer.add_part(f"shape{k}", part._replace(rgba=SHAPE), wires=True))
        if self.masses.value:
            ball = primitive("sphere", (0.035 * radius,))
            for i in np.flatnonzero(params.mass > 0):
                part = Part(int(i), ball.moved(params.com[i], np.eye(3)), MASS)
                self._drawn.append(self.viewer.add_part("mass", part))
