"""A builder for models that were made before: from files, or into scenes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .builder import ModelBuilder
from .shape_builder import WORLD
from .validate import six_numbers


class LenientBuilder(ModelBuilder):
    """Files give an inertia to frames without mass that are fixed to a link, or one that no body can have: what counts is
    whether all that moves together resists every motion, which is checked in the end. A joint may be driven by negative
    damping, or held out of balance by a negative stiffness. What else MuJoCo accepts and reads in its own way is read so."""

    _lenient = True

    def body(self, name: str, parent: str = WORLD, **options: Any) -> str:
        if not self._lenient:
            return super().body(name, parent, **options)
        inertia = options.pop("inertia", np.zeros((3, 3)))
        negative = {k: options.pop(k) for k in ("damping", "stiffness") if options.get(k, 0.0) < 0}
        super().body(name, parent, **options)
        self._bodies[name] |= {"inertia": six_numbers(inertia, f"body '{name}'"), **negative}
        return name
