"""Builder with MuJoCo's tolerance, for models from files and in scenes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .builder import ModelBuilder
from .shape_builder import WORLD
from .validate import six_numbers


class LenientBuilder(ModelBuilder):
    """A `ModelBuilder` that accepts what MuJoCo accepts.

    Files give an inertia to frames without mass that are fixed to a link, or an impossible one: only the inertia of
    everything that moves together is checked, in the end. A joint may be driven by negative damping, or destabilized by
    a negative stiffness. Other input is interpreted as MuJoCo does.
    """

    _lenient = True

    def add_body(self, name: str, parent: str = WORLD, **options: Any) -> str:
        if not self._lenient:
            return super().add_body(name, parent, **options)
        inertia = options.pop("inertia", np.zeros((3, 3)))
        negative = {k: options.pop(k) for k in ("damping", "stiffness") if options.get(k, 0.0) < 0}
        super().add_body(name, parent, **options)
        self._bodies[name] |= {"inertia": six_numbers(inertia, f"body '{name}'"), **negative}
        return name
