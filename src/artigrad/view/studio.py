"""A picture of a scene: camera, light, shadow, floor. The camera keeps its direction and only moves along."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .meshes import Mesh, arrow, merged
from .motion import Forces, Framing, Motion
from .raster import Seen, rasterise, weights
from .scene import Scene

FINE = 2  # each pixel is the mean of FINE x FINE
VIEW_ANGLE = np.radians(32.0)  # from top to bottom
ELEVATION, AZIMUTH = np.radians(17.0), np.radians(-52.0)  # of the camera, seen from what it looks at
LIGHT = np.array([0.35, -0.55, 1.0]) / np.linalg.norm([0.35, -0.55, 1.0])  # towards it
SHADOW = 512  # pixels along an edge of the shadow's picture
SKY, HORIZON = np.array([0.62, 0.74, 0.88]), np.array([0.93, 0.95, 0.97])
TILES = np.array([[0.80, 0.83, 0.87], [0.70, 0.74, 0.80]])
ARROW = np.array([0.86, 0.20, 0.20])


class Eye(NamedTuple):
    """A camera: axes right, up, back as rows; distance to what it looks at; focal length in fine pixels."""

    axes: np.ndarray
    distance: float
    focal: float


class Studio:
    """Takes pictures of one motion, all from the same side. size: (width, height) in pixels."""

    def __init__(self, scene: Scene, motion: Motion, framing: Framing, size: tuple[int, int]):
        self.scene, self.motion, self.framing = scene, motion, framing
        self.force_scale = force_scale(motion, framing)
        self.width, self.height = FINE * size[0], FINE * size[1]
        self.vertices = [part.mesh.vertices for part in scene.parts]
        whole = merged([part.mesh for part in scene.parts])
        self.faces, self.normals = whole.faces, [part.mesh.normals for part in scene.parts]
        self.colour = np.concatenate([np.tile(_linear(p.rgba[:3]), (len(p.mesh.faces), 1)) for p in scene.parts])
        self.eye = self._eye()
        self.light = _axes(LIGHT)
        self.reach = 1.6 * framing.radius  # half edge of what the shadow's picture covers
        self._stage()

    def _eye(self) -> Eye:
        back = towards_camera()
        distance = camera_distance(self.framing) * max(1.0, self.height / self.width)
        return Eye(_axes(back), distance, self.height / 2 / np.tan(VIEW_ANGLE / 2))

    def _stage(self) -> None:
        """What is the same in all pictures: sky, where the floor is seen, how far it fades."""
        x = np.arange(self.width) + 0.5 - self.width / 2
        y = self.height / 2 - np.arange(self.height) - 0.5
        right, up, back = self.eye.axes
        rays = x[None, :, None] * right + y[:, None, None] * up - self.eye.focal * back
        rays = rays.reshape(-1, 3)
        level = rays[:, 2] / np.linalg.norm(rays, axis=1)
        sky = HORIZON + (SKY - HORIZON) * np.clip(level * 2.5, 0.0, 1.0)[:, None]
        self.backdrop = _linear(sky).astype(np.float32)
        height = self.framing.focus[0, 2] + self.eye.distance * back[2] - self.framing.floor
        self.floor = np.flatnonzero(level < -1e-3) if height > 0 else np.zeros(0, int)
        spot = self.eye.distance * back + rays[self.floor] * (height / -rays[self.floor, 2])[:, None]
        self.spot = spot[:, :2].astype(np.float32)  # seen from the focus
        far = np.linalg.norm(spot[:, :2], axis=1) / self.framing.radius
        clear = np.exp(-((far / 9.0) ** 2))[:, None]
        under = self.backdrop[self.floor]
        self.tiles = [(under + (_linear(c) - under) * clear).astype(np.float32) for c in TILES]
        self.tile = tile_length(self.framing)
        u, v = (spot @ self.light[k] * (SHADOW / 2 / self.reach) + SHADOW / 2 for k in (0, 1))
        covered = (u >= 0) & (u < SHADOW) & (v >= 0) & (v < SHADOW)
        self.shaded = self.floor[covered]
        self.shaded_from = v[covered].astype(int) * SHADOW + u[covered].astype(int)
        self.shaded_by = (0.62 * clear[covered, 0]).astype(np.float32)
        self._ground: tuple[np.ndarray, np.ndarray] | None = None

    def picture(self, k: int) -> np.ndarray:
        """Frame k as (height, width, 3) bytes."""
        focus = self.framing.focus[k]
        points, normals, faces, colour = self._world(k, focus)
        shadow_depth, shadow_mask = self._shadow(points, faces)
        image = self._floor(focus, shadow_mask)
        seen = self._look(points, faces)
        image[seen.pixel] = self._shade(seen, points, normals, faces, colour, shadow_depth)
        fine = image.reshape(self.height, self.width, 3)
        mean = sum(fine[i::FINE, j::FINE] for i in range(FINE) for j in range(FINE)) / FINE**2
        return (np.sqrt(np.clip(mean, 0, 1)) * 255 + 0.5).astype(np.uint8)

    def _world(self, k: int, focus: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Points seen from the focus, normals, faces and their colours, with the arrows of contact forces."""
        motion = self.motion
        points, normals = [], []
        for part, vertices, own in zip(self.scene.parts, self.vertices, self.normals, strict=True):
            R = motion.rotation[k, part.body + 1].astype(np.float32)
            shift = motion.position[k, part.body + 1] - focus
            points.append(vertices @ R.T + shift.astype(np.float32))
            normals.append(own @ R.T)
        faces, colour = self.faces, self.colour
        if motion.forces and len(motion.forces[k].points):
            arrows = arrows_of(motion.forces[k], self.force_scale, self.framing.radius)
            count = sum(map(len, points))
            points.append(arrows.vertices - focus.astype(np.float32))
            normals.append(arrows.normals)
            faces = np.concatenate([faces, arrows.faces + count])
            colour = np.concatenate([colour, np.tile(_linear(ARROW), (len(arrows.faces), 1))])
        return np.concatenate(points), np.concatenate(normals), faces, colour

    def _look(self, points: np.ndarray, faces: np.ndarray) -> Seen:
        x, y, z = self.eye.axes @ points.T.astype(np.float64)
        depth = self.eye.distance - z
        safe = np.where(depth > 0.01 * self.eye.distance, depth, -1.0)
        scale = self.eye.focal / np.abs(safe)
        screen = np.stack([self.width / 2 + x * scale, self.height / 2 - y * scale], axis=1)
        return rasterise(screen, 1.0 / safe, faces, self.width, self.height)

    def _shadow(self, points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seen from the light: how near the nearest thing is, and how much of the light it takes from what lies behind."""
        x, y, z = self.light @ points.T.astype(np.float64)
        scale = SHADOW / 2 / self.reach
        # the picture is upside down (y upwards), which turns the triangles: what faces away from the light is drawn, so
        # that no lit surface shades itself
        screen = np.stack([x, y], axis=1) * scale + SHADOW / 2
        seen = rasterise(screen, z + 10 * self.reach, faces, SHADOW, SHADOW)
        near = np.zeros(SHADOW * SHADOW, np.float32)
        near[seen.pixel] = seen.nearness
        mask = (near > 0).astype(np.float32).reshape(SHADOW, SHADOW)
        return near, _blurred(_blurred(mask, 3), 4).ravel()

    def _floor(self, focus: np.ndarray, shadow: np.ndarray) -> np.ndarray:
        ground = self._ground  # read once: another thread may put its own there
        if ground is None or (ground[0] != focus).any():  # the same as long as the camera stands still
            image = self.backdrop.copy()
            cell = np.floor((self.spot + focus[:2].astype(np.float32)) / np.float32(self.tile)).astype(np.int32)
            odd = ((cell[:, 0] + cell[:, 1]) & 1).astype(bool)[:, None]
            image[self.floor] = np.where(odd, self.tiles[1], self.tiles[0])
            self._ground = ground = focus, image
        image = ground[1].copy()
        image[self.shaded] *= (1 - self.shaded_by * shadow[self.shaded_from])[:, None]
        return image

    def _shade(
        self,
        seen: Seen,
        points: np.ndarray,
        normals: np.ndarray,
        faces: np.ndarray,
        colour: np.ndarray,
        shadow: np.ndarray,
    ) -> np.ndarray:
        """Light from the sky and the floor, from a lamp unless something is before it, and a little gloss."""
        face = seen.planes.face[seen.triangle]
        share = weights(seen, self.width).astype(np.float32)
        corner = faces[face]
        n = np.einsum("nk,nkc->nc", share, normals[corner])
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        at = np.einsum("nk,nkc->nc", share, points[corner])
        lit = np.maximum(n @ LIGHT.astype(np.float32), 0) * self._unshaded(at + 0.012 * self.framing.radius * n, shadow)
        half = LIGHT + self.eye.axes[2]
        gloss = np.maximum(n @ (half / np.linalg.norm(half)).astype(np.float32), 0) ** 40 * (lit > 0)
        sky = 0.5 + 0.5 * n[:, 2]
        light = 0.26 + 0.28 * sky + 0.62 * lit
        return colour[face] * light[:, None] + (0.16 * gloss)[:, None]

    def _unshaded(self, at: np.ndarray, shadow: np.ndarray) -> np.ndarray:
        """How much of the lamp each point sees: the mean of four places around it in the shadow's picture."""
        x, y, z = self.light @ at.T
        scale = SHADOW / 2 / self.reach
        nearness = z + 10 * self.reach + 0.004 * self.reach
        total = np.zeros(len(at))
        for dx, dy in ((-0.7, -0.3), (0.3, -0.7), (0.7, 0.3), (-0.3, 0.7)):
            u = np.clip(x * scale + SHADOW / 2 + dx, 0, SHADOW - 1).astype(int)
            v = np.clip(y * scale + SHADOW / 2 + dy, 0, SHADOW - 1).astype(int)
            total += shadow[v * SHADOW + u] <= nearness
        return total / 4


def towards_camera() -> np.ndarray:
    """The direction of the camera, seen from what it looks at."""
    return np.array([np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH), np.sin(ELEVATION)])


def camera_distance(framing: Framing) -> float:
    """From where all that is to be in a picture just fits, m."""
    return float(1.02 * framing.radius / np.sin(VIEW_ANGLE / 2))


def tile_length(framing: Framing) -> float:
    """Of the floor, m: 1, 2 or 5 times a power of ten, at most half the radius of the picture."""
    length = 0.5 * framing.radius
    power = 10 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


def force_scale(motion: Motion, framing: Framing) -> float:
    """Metres per newton, such that few arrows are longer than the radius of the picture."""
    sizes = np.concatenate([np.zeros(1), *(np.linalg.norm(f.vectors, axis=1) for f in motion.forces)])
    usual = np.quantile(sizes[sizes > 0], 0.9) if sizes.any() else 1.0
    return float(0.6 * framing.radius / usual)


def arrows_of(forces: Forces, scale: float, radius: float) -> Mesh:
    """Arrows for the forces of one moment, `scale` metres per newton; what would be too short to see is left out."""
    vectors = forces.vectors * scale
    shown = np.linalg.norm(vectors, axis=1) > 0.01 * radius
    pairs = zip(forces.points[shown], vectors[shown], strict=True)
    return merged([arrow(p, f, 0.014 * radius) for p, f in pairs])


def _axes(back: np.ndarray) -> np.ndarray:
    """Right, up and back as rows, for a view against `back`."""
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(back, right), back])


def _linear(colour: object) -> np.ndarray:
    """Light from the numbers of a screen; a square is near enough to its curve, and its root is fast."""
    return np.square(np.asarray(colour, float))


def _blurred(x: np.ndarray, half: int) -> np.ndarray:
    """The mean over a square of 2 half + 1 pixels."""
    for _ in range(2):
        total = np.cumsum(np.pad(x, ((half + 1, half), (0, 0))), axis=0)
        x = ((total[2 * half + 1 :] - total[: -2 * half - 1]) / (2 * half + 1)).T
    return x.astype(np.float32)
