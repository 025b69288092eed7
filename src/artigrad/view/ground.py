"""Floor and sky behind a robot, for a camera that translates but keeps its orientation."""

from __future__ import annotations

import numpy as np

from .frames import Framing
from .shadow import SHADOW, Lamp
from .style import HORIZON, SKY, TILES, Eye, linear, tile_length

DARKEST = 0.62  # fraction of the light removed by a shadow


class Ground:
    """Background of the images."""

    def __init__(self, eye: Eye, lamp: Lamp, framing: Framing):
        """Compute what all images share: the sky, the visible floor, its fading, the area where shadows can fall."""
        rays = eye.rays()
        level = rays[:, 2] / np.linalg.norm(rays, axis=1)
        sky = HORIZON + (SKY - HORIZON) * np.clip(level * 2.5, 0.0, 1.0)[:, None]
        self.backdrop = linear(sky).astype(np.float32)
        back = eye.axes[2]
        height = framing.focus[0, 2] + eye.distance * back[2] - framing.floor
        above = np.flatnonzero(rays[:: eye.width, 2] < -1e-3 * eye.focal)  # rows below the horizon
        self.first = eye.width * int(above[0]) if len(above) and height > 0 else len(rays)
        below = rays[self.first :]
        spot = eye.distance * back + below * (height / -below[:, 2:])
        far = np.linalg.norm(spot[:, :2], axis=1) / framing.radius
        clear = np.exp(-((far / 9.0) ** 2))[:, None]
        under = self.backdrop[self.first :]
        self.tiles = [(under + (linear(c) - under) * clear).astype(np.float32) for c in TILES]
        self.tile = tile_length(framing)
        self.spot = (spot[:, :2].T / self.tile).astype(np.float32)  # relative to the focus, in tiles
        u, v = lamp.place(spot)
        covered = np.flatnonzero((u >= 0) & (u < SHADOW) & (v >= 0) & (v < SHADOW))
        self.shaded = self.first + covered
        self.shaded_from = v[covered].astype(int) * SHADOW + u[covered].astype(int)
        self.shaded_by = (DARKEST * clear[covered, 0]).astype(np.float32)
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def picture(self, focus: np.ndarray, shadow: np.ndarray) -> np.ndarray:
        """Return all pixels (n, 3), lit. shadow: of each pixel of the lamp's image, 0 to 1."""
        last = self._last  # read once: another thread may replace it
        if last is None or (last[0] != focus).any():  # reused while the camera stands still
            image = self.backdrop.copy()
            x, y = (np.floor(self.spot[k] + np.float32(focus[k] / self.tile)).astype(np.int32) for k in (0, 1))
            image[self.first :] = self.tiles[0]
            odd = np.flatnonzero((x ^ y) & 1)
            image[self.first + odd] = self.tiles[1][odd]
            self._last = last = focus, image
        image = last[1].copy()
        image[self.shaded] *= (1 - self.shaded_by * shadow[self.shaded_from])[:, None]
        return image
