"""Shadow map: the image of the scene from the lamp, and the shadows that follow from it."""

from __future__ import annotations

import numpy as np

from .raster import rasterize
from .style import LIGHT, axes_of

SHADOW = 512  # pixels along an edge of the lamp's image


class Lamp:
    """Distant light. Its image covers a square around the focus, `reach` to each side."""

    def __init__(self, reach: float):
        self.reach, self.axes, self.scale = reach, axes_of(LIGHT), SHADOW / 2 / reach
        self.away = 10 * reach  # added to heights along the light to make them positive

    def place(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates of points (relative to the focus) in the lamp's image."""
        u, v = (points @ self.axes[k] * self.scale + SHADOW / 2 for k in (0, 1))
        return u, v

    def depth_map(self, points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the depth of the nearest surface of each pixel, and the light that it takes from surfaces far behind."""
        u, v = self.place(points.astype(np.float64))
        # This image has y upwards, which reverses the triangles: those that face away from the lamp are drawn, so that
        # no lit surface shades
        # itself.
        seen = rasterize(np.stack([u, v], axis=1), points @ self.axes[2] + self.away, faces, SHADOW, SHADOW)
        near = np.zeros(SHADOW * SHADOW, np.float32)
        near[seen.pixel] = seen.nearness
        mask = (near > 0).astype(np.float32).reshape(SHADOW, SHADOW)
        return near, _blurred(_blurred(mask, 3), 4).ravel()

    def visibility(self, points: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the fraction of the lamp visible from each point: the mean over four pixels around it in the lamp's image."""
        u, v = self.place(points)
        height = points @ self.axes[2] + self.away + 0.004 * self.reach
        total = np.zeros(len(points), np.float32)
        for du, dv in ((-0.7, -0.3), (0.3, -0.7), (0.7, 0.3), (-0.3, 0.7)):
            column, row = (np.clip(x + d, 0, SHADOW - 1).astype(int) for x, d in ((u, du), (v, dv)))
            total += near[row * SHADOW + column] <= height
        return total / 4


def _blurred(x: np.ndarray, half: int) -> np.ndarray:
    """Mean over a square of 2 half + 1 pixels."""
    for _ in range(2):
        total = np.cumsum(np.pad(x, ((half + 1, half), (0, 0))), axis=0)
        x = ((total[2 * half + 1 :] - total[: -2 * half - 1]) / (2 * half + 1)).T
    return x.astype(np.float32)
