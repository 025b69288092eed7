"""A builder for models that were made before: from files, or into scenes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .builder import ModelBuilder
from .shape_builder import WORLD
from .validate import inertia_of


class LenientBuilder(ModelBuilder):
    """A body without mass may have an inertia, as some files give one to frames that are fixed to a link."""

    def body(self, name: str, parent: str = WORLD, **options: Any) -> str:
        inertia = options.pop("inertia", np.zeros((3, 3)))
        massless = options.get("mass", 0.0) == 0
        super().body(name, parent, inertia=np.zeros((3, 3)) if massless else inertia, **options)
        self._bodies[name]["inertia"] = inertia_of(inertia, f"body '{name}'", 1.0)
        return name
