"""Records of height fields in saved files, exact to the last digit.

MuJoCo keeps heights in single precision. A saved file therefore also stores them as a custom text of MJCF, which MuJoCo
ignores. It is used if the field is unchanged.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .hull_record import custom_text

PREFIX = "heights:"  # followed by the name of the geom
CLOSE = 1e-6  # relative to the highest: single precision


def write(heights: np.ndarray) -> str:
    """Return heights (rows, columns), the lowest at zero, as text."""
    return json.dumps(heights.tolist(), separators=(",", ":"))


def read(m: Any, name: str, compiled: np.ndarray) -> np.ndarray:
    """Return the recorded heights of a geom; the compiled ones if it has no record, or one of another field."""
    try:
        found = np.array(json.loads(custom_text(m, PREFIX + name)), float)
    except (ValueError, TypeError):
        return compiled
    if found.shape != compiled.shape or not np.isfinite(found).all():
        return compiled
    return found if np.abs(found - compiled).max() <= CLOSE * np.abs(found).max(initial=0.0) else compiled
