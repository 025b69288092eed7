"""Height fields: the number of cells that another shape can cover at a time. Kernels process a window of that size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from .model import BOX, CAPSULE, CYLINDER, ELLIPSOID, HEIGHT_FIELD, POINTS, SPHERE, Model
from .params import Params

MARGIN = 1.001  # factor by which windows are larger than necessary, to allow for changed sizes
MOST = 2**23  # heights: largest integer that f32 represents


def reach(model: Model, params: Any, s: int) -> float:
    """Radius of the bounding box of shape s, m; the largest over the batch. Zero for a plane or a field."""
    size = params.shape_size[..., s, :]
    x, y = size[..., 0], size[..., 1]
    kind = model.shapes.kind[s]
    if kind == POINTS:
        first, count = model.shapes.vertices[s]
        points = params.vertex[..., first : first + count, :]
        own = np.linalg.norm(points.max(-2) - points.min(-2), axis=-1) / 2
    else:
        known = {SPHERE: lambda: x, CAPSULE: lambda: x + y, CYLINDER: lambda: np.sqrt(2 * x * x + y * y)}
        known |= dict.fromkeys((BOX, ELLIPSOID), lambda: np.linalg.norm(size, axis=-1))
        own = known.get(kind, lambda: np.zeros(()))()
    return float(np.max(own))


def window(model: Model, params: Any, field: int, other: int) -> tuple[int, int]:
    """Return the numbers of rows and columns of cells of a height field that another shape can cover at a time."""
    _, rows, cols = model.shapes.grids[field]
    wide = 2 * reach(model, params, other) * MARGIN
    half = params.shape_size[..., field, :]
    cells = [(n - 1, 2 * float(np.min(half[..., k])) / (n - 1)) for n, k in ((rows, 1), (cols, 0))]
    first, second = (min(n, int(np.ceil(wide / step)) + 1) for n, step in cells)
    return first, second


def check_windows(params: Params, measured: Iterable[tuple[int, int]] = ()) -> None:
    """Raise InputError for sizes with which a shape exceeds the window of its model. measured: further pairs."""
    model, shapes = params.model, params.model.shapes
    if HEIGHT_FIELD not in shapes.kind or params.flat is model.params.flat:
        return
    for pair in (*shapes.pairs, *measured):
        a, b = sorted(pair, key=lambda k: shapes.kind[k] != HEIGHT_FIELD)
        if shapes.kind[a] == HEIGHT_FIELD:
            built, needed = window(model, model.params, a, b), window(model, params, a, b)
            if needed[0] > built[0] or needed[1] > built[1]:
                raise InputError(
                    f"params let shape '{shapes.names[b]}' cover {needed[0]} x {needed[1]} cells of height field "
                    f"'{shapes.names[a]}', and '{model.name}' was built for {built[0]} x {built[1]}: build it "
                    "with the larger size"
                )
            _check_base(params, a)


def _check_base(params: Params, field: int) -> None:
    """Raise InputError for heights that are not above the base."""
    first, rows, cols = params.model.shapes.grids[field]
    heights, base = params.height[..., first : first + rows * cols], params.shape_size[..., field, 2:]
    if (heights <= -base).any():
        name = params.model.shapes.names[field]
        raise InputError(f"params.height of '{name}' goes down to its base: make params.shape_size[{field}, 2] larger")
