"""Rendering of a scene: camera, light and shadow. The camera translates but keeps its orientation."""

from __future__ import annotations

import numpy as np

from .frames import Frames, Framing
from .ground import Ground
from .meshes import merged
from .raster import Seen, rasterize, weights
from .scenery import Scene
from .shadow import Lamp
from .style import ARROW, LIGHT, Eye, arrows_of, force_scale, linear

BEFORE = 100.0  # factor by which arrows are nearer
FINE = 2  # supersampling: each pixel is the mean of FINE x FINE


class Studio:
    """Renderer of a trajectory, always from the same side. size: (width, height) in pixels."""

    def __init__(self, scene: Scene, motion: Frames, framing: Framing, size: tuple[int, int]):
        self.scene, self.motion, self.framing = scene, motion, framing
        self.force_scale = force_scale(motion, framing)
        self.size = size
        self.vertices = [part.mesh.vertices for part in scene.parts]
        whole = merged([part.mesh for part in scene.parts])
        self.faces, self.normals = whole.faces, [part.mesh.normals for part in scene.parts]
        colors = (np.tile(linear(p.rgba[:3]), (len(p.mesh.faces), 1)) for p in scene.parts)
        self.color = np.concatenate([np.zeros((0, 3)), *colors]).astype(np.float32)
        # parts with coincident surfaces must not flicker: each of four consecutive parts is slightly nearer
        self.nearer = np.concatenate(
            [np.zeros(0), *(np.full(len(p.mesh.vertices), 1 + k % 4 * 3e-4) for k, p in enumerate(scene.parts))]
        )
        self.eye = Eye.of(framing, FINE * size[0], FINE * size[1])
        self.lamp = Lamp(1.6 * framing.radius)
        self.ground = Ground(self.eye, self.lamp, framing)

    def picture(self, k: int) -> np.ndarray:
        """Return frame k as (height, width, 3) bytes."""
        focus = self.framing.focus[k]
        points, normals, faces, color = self._world(k, focus)
        near_lamp, shadow = self.lamp.depth_map(points, faces)
        image = self.ground.picture(focus, shadow)
        seen = self._look(points, faces)
        image[seen.pixel] = self._shade(seen, points, normals, faces, color, near_lamp)
        fine = image.reshape(self.eye.height, self.eye.width, 3)
        mean = sum(fine[i::FINE, j::FINE] for i in range(FINE) for j in range(FINE)) / FINE**2
        return (np.sqrt(np.clip(mean, 0, 1)) * 255 + 0.5).astype(np.uint8)

    def _world(self, k: int, focus: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return points (relative to the focus), normals, faces and their colors, with the arrows of contact forces."""
        motion = self.motion
        points, normals = [], []
        for part, vertices, own in zip(self.scene.parts, self.vertices, self.normals, strict=True):
            R = motion.rotation[k, part.body + 1].astype(np.float32)
            shift = motion.position[k, part.body + 1] - focus
            points.append(vertices @ R.T + shift.astype(np.float32))
            normals.append(own @ R.T)
        faces, color = self.faces, self.color
        if motion.forces and len(motion.forces[k].points):
            arrows = arrows_of(motion.forces[k], self.force_scale, self.framing.radius)
            count = sum(map(len, points))
            points.append(arrows.vertices - focus.astype(np.float32))
            normals.append(arrows.normals)
            faces = np.concatenate([faces, arrows.faces + count])
            color = np.concatenate([color, np.tile(linear(ARROW).astype(np.float32), (len(arrows.faces), 1))])
        return np.concatenate(points), np.concatenate(normals), faces, color

    def _look(self, points: np.ndarray, faces: np.ndarray) -> Seen:
        screen, nearness = self.eye.project(points)
        nearness[: len(self.nearer)] *= self.nearer
        nearness[len(self.nearer) :] *= BEFORE  # arrows are drawn in front of bodies
        return rasterize(screen, nearness, faces, self.eye.width, self.eye.height)

    def _shade(
        self,
        seen: Seen,
        points: np.ndarray,
        normals: np.ndarray,
        faces: np.ndarray,
        color: np.ndarray,
        near_lamp: np.ndarray,
    ) -> np.ndarray:
        """Light from the sky and the floor, from the lamp outside of shadows, and slight specular reflection."""
        face = seen.planes.face[seen.triangle]
        share = weights(seen, self.eye.width).astype(np.float32)
        corner = faces[face].T
        n = np.einsum("kn,knc->nc", share, normals[corner])
        n /= np.sqrt(np.einsum("nc,nc->n", n, n))[:, None]
        at = np.einsum("kn,knc->nc", share, points[corner])
        free = self.lamp.visibility(at + 0.012 * self.framing.radius * n, near_lamp)
        lit = np.maximum(n @ LIGHT.astype(np.float32), 0) * free
        half = LIGHT + self.eye.axes[2]
        gloss = np.maximum(n @ (half / np.linalg.norm(half)).astype(np.float32), 0) * (lit > 0)
        for _ in range(5):
            gloss *= gloss  # to the power of 32
        sky = 0.5 + 0.5 * n[:, 2]
        light = 0.26 + 0.28 * sky + 0.62 * lit
        return color[face] * light[:, None] + (0.16 * gloss)[:, None]
