"""Style shared by videos, pages and the browser: camera, light, colors, lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .frames import Forces, Frames, Framing
from .meshes import Mesh, arrow, merged

VIEW_ANGLE = np.radians(32.0)  # from top to bottom
ELEVATION, AZIMUTH = np.radians(17.0), np.radians(-52.0)  # direction of the camera from its focus
LIGHT = np.array([0.35, -0.55, 1.0]) / np.linalg.norm([0.35, -0.55, 1.0])  # towards the lamp
SKY, HORIZON = np.array([0.62, 0.74, 0.88]), np.array([0.93, 0.95, 0.97])
TILES = np.array([[0.80, 0.83, 0.87], [0.70, 0.74, 0.80]])
ARROW = np.array([0.86, 0.20, 0.20])
ARROW_RADIUS = 0.016  # of its shaft, as a fraction of that of the image


def towards_camera() -> np.ndarray:
    """Return the unit vector from the focus to the camera."""
    return np.array([np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH), np.sin(ELEVATION)])


def camera_distance(framing: Framing) -> float:
    """Return the distance, m, from which the framed region just fits into the image."""
    return float(1.02 * framing.radius / np.sin(VIEW_ANGLE / 2))


def tile_length(framing: Framing) -> float:
    """Return the edge of the floor's tiles, m: 1, 2 or 5 times a power of ten, at most half the radius of the framing."""
    length = 0.5 * framing.radius
    power = 10 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


def force_scale(motion: Frames, framing: Framing) -> float:
    """Meters per newton, such that few arrows are longer than the radius of the image."""
    sizes = np.concatenate([np.zeros(1), *(np.linalg.norm(f.vectors, axis=1) for f in motion.forces)])
    usual = np.quantile(sizes[sizes > 0], 0.9) if sizes.any() else 1.0
    return float(0.6 * framing.radius / usual)


def arrows_of(forces: Forces, scale: float, radius: float) -> Mesh:
    """Return arrows for the forces of one frame, `scale` m/N; arrows too short to be visible are left out."""
    vectors = forces.vectors * scale
    shown = np.linalg.norm(vectors, axis=1) > 0.01 * radius
    pairs = zip(forces.points[shown], vectors[shown], strict=True)
    return merged([arrow(p, f, ARROW_RADIUS * radius) for p, f in pairs])


def axes_of(back: np.ndarray) -> np.ndarray:
    """Return the axes right, up and back of a camera as rows; back: unit vector from the focus to the camera."""
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def linear(color: Any) -> np.ndarray:
    """Linear light from screen values; a square approximates their curve, and its root is fast."""
    return np.square(np.asarray(color, float))


class Eye(NamedTuple):
    """Camera directed at the focus: axes right, up, back as rows; distance, m; sizes and focal length, pixels."""

    axes: np.ndarray
    distance: float
    focal: float
    width: int
    height: int

    @staticmethod
    def of(framing: Framing, width: int, height: int) -> Eye:
        distance = camera_distance(framing) * max(1.0, height / width)
        return Eye(axes_of(towards_camera()), distance, height / 2 / np.tan(VIEW_ANGLE / 2), width, height)

    def rays(self) -> np.ndarray:
        """Direction of each pixel (n, 3), row by row from the top."""
        x = np.arange(self.width) + 0.5 - self.width / 2
        y = self.height / 2 - np.arange(self.height) - 0.5
        right, up, back = self.axes
        return (x[None, :, None] * right + y[:, None, None] * up - self.focal * back).reshape(-1, 3)

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pixels (n, 2) and inverse depths (n,) of points relative to the focus; negative behind the camera."""
        x, y, z = self.axes @ points.T.astype(np.float64)
        depth = self.distance - z
        safe = np.where(depth > 0.01 * self.distance, depth, -1.0)
        scale = self.focal / np.abs(safe)
        return np.stack([self.width / 2 + x * scale, self.height / 2 - y * scale], axis=1), 1.0 / safe
