"""Scene of a model: its visuals; without them its collision shapes, and sticks for bodies that have none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..model.model import HEIGHT_FIELD, PLANE, POINTS, SHAPES, Model
from ..model.params import Params
from ..model.quaternions import matrix
from .meshes import (
    Mesh,
    capsule,
    cylinder,
    from_triangles,
    height_field,
    hull,
    merged,
    primitive,
    rounded_box,
    z_towards,
)

Colour = tuple[float, float, float, float]  # red, green, blue, opacity; 0 to 1
# of bodies without a color, by the number of joints between them and the world
PALETTE: tuple[Colour, ...] = (
    (0.93, 0.94, 0.96, 1.0),
    (0.96, 0.55, 0.16, 1.0),
    (0.27, 0.52, 0.84, 1.0),
    (0.90, 0.91, 0.93, 1.0),
    (0.16, 0.62, 0.56, 1.0),
    (0.95, 0.72, 0.22, 1.0),
)
DARK: Colour = (0.20, 0.22, 0.26, 1.0)
SLAB: Colour = (0.80, 0.82, 0.86, 1.0)
WORLD = -1


class Part(NamedTuple):
    """Mesh fixed to a body (-1: the world), in the body's frame."""

    body: int
    mesh: Mesh
    rgba: Colour


class Scene(NamedTuple):
    """All parts, and the height of the floor: that of the highest level plane fixed to the world, if any.

    Attributes:
        shapes: Collision shapes, whatever the visuals are.
        masses: Bodies, and their centers of mass.
    """

    parts: tuple[Part, ...]
    floor: float | None
    shapes: tuple[Part, ...] = ()
    masses: tuple[tuple[int, np.ndarray], ...] = ()


def scene_of(model: Model, params: Params) -> Scene:
    """Return the scene of a model with one set of parameters."""
    parts, floors, kinds = _from_shapes(model, params)
    shapes, masses = tuple(parts), tuple((int(i), params.com[i]) for i in np.flatnonzero(params.mass > 0))
    if model.visuals:
        fields = [part for part, kind in zip(parts, kinds, strict=True) if kind == HEIGHT_FIELD]  # have no visuals
        return _from_visuals(model, floors, fields)._replace(shapes=shapes, masses=masses)
    drawn = {part.body for part in parts}
    sticks = Sticks(model, params)
    for i in range(model.nb):
        if i not in drawn and params.mass[i] > 0:
            parts += sticks.body(i)
    return Scene(tuple(parts), max(floors, default=None), shapes, masses)


def _from_visuals(model: Model, touched: list[float], fields: list[Part]) -> Scene:
    """Parts of the visuals, and height fields; without a visual floor, the collision floor."""
    parts, floors = list(fields), []
    for visual in model.visuals:
        R = matrix(visual.quaternion)
        if visual.kind == "plane" and _is_floor(visual.body, R):
            floors.append(float(visual.position[2]))
            continue
        mesh = primitive(visual.kind, visual.size) if visual.mesh is None else from_triangles(*visual.mesh)
        r, g, b, a = (float(x) for x in visual.rgba)
        if a > 0:
            parts.append(Part(visual.body, mesh.moved(visual.position, R), (r, g, b, a)))
    return Scene(tuple(parts), max(floors or touched, default=None))


def _from_shapes(model: Model, params: Params) -> tuple[list[Part], list[float], list[int]]:
    """Return a part for each shape, except for level planes fixed to the world: their heights; and the types of the
    parts."""
    parts, floors, kinds, depth = [], [], [], depths(model)
    for k, (kind, body) in enumerate(zip(model.shapes.kind, model.shapes.body, strict=True)):
        position, R = params.shape_position[k], matrix(params.shape_rotation[k])
        if kind == PLANE and _is_floor(body, R):
            floors.append(float(position[2]))
            continue
        mesh = _mesh_of(model, params, k)
        rgba = SLAB if body == WORLD else PALETTE[depth[body] % len(PALETTE)]
        parts.append(Part(body, mesh.moved(position, R), rgba))
        kinds.append(kind)
    return parts, floors, kinds


def _mesh_of(model: Model, params: Params, k: int) -> Mesh:
    """Return the mesh of shape k, in its frame."""
    kind, size = model.shapes.kind[k], params.shape_size[k]
    if kind == POINTS:
        first, count = model.shapes.vertices[k]
        return hull(params.vertex[first : first + count], model.shapes.hulls[k].faces)
    if kind == HEIGHT_FIELD:
        first, rows, cols = model.shapes.grids[k]
        return height_field(params.height[first : first + rows * cols].reshape(rows, cols), size)
    return primitive(SHAPES[kind], size)


def _is_floor(body: int, R: np.ndarray) -> bool:
    return body == WORLD and R[2, 2] > 0.9999


def depths(model: Model) -> list[int]:
    """Return the number of moving joints between each body's own joint and the world."""
    out: list[int] = []
    for i, p in enumerate(model.parent):
        above = -1 if p == WORLD else out[p]
        out.append(above + bool(model.joint_kind(i).nv) if p != WORLD else 0)
    return out


class Sticks:
    """Default visuals of bodies: capsules from joint to joint, and boxes with about their inertia."""

    def __init__(self, model: Model, params: Params):
        self.model, self.params, self.depth = model, params, depths(model)
        self.rotations = [matrix(r) for r in params.rotation]
        lengths = np.array([np.linalg.norm(e - s) for i in range(model.nb) for s, e in self._sticks(i)])
        self.typical = float(np.median(lengths[lengths > 0])) if lengths.any() else 0.2

    def body(self, i: int) -> list[Part]:
        """Parts of body i."""
        color = PALETTE[self.depth[i] % len(PALETTE)]
        sticks = [(s, e) for s, e in self._sticks(i) if np.linalg.norm(e - s) > 0.15 * self.typical]
        solids = [self._stick(s, e) for s, e in sticks]
        if self._is_hub(i) or not sticks:
            solids.append(self._box(i))
        parts = [Part(i, merged(solids), color)]
        if self.model.joint_kind(i).angular:
            r = 1.35 * max((self._radius(s, e) for s, e in sticks), default=0.06 * self.typical)
            R = z_towards(self.params.axis[i])
            parts.append(Part(i, cylinder((r, 1.1 * r)).moved(self.params.anchor[i], R), DARK))
        return parts

    def _children(self, i: int) -> list[int]:
        return [c for c, p in enumerate(self.model.parent) if p == i]

    def _is_hub(self, i: int) -> bool:
        return len(self._children(i)) > 1 or self.model.joint_kind(i).floating

    def _sticks(self, i: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Start and end of each capsule in the frame of body i: to the joints of its children, to its sites, or beyond
        the
        center of mass by its distance from the joint.
        """
        p = self.params
        start = p.com[i] if self._is_hub(i) else p.anchor[i]
        ends = [p.position[c] + self.rotations[c] @ p.anchor[c] for c in self._children(i)]
        ends = ends or [p.site_position[s] for s, body in enumerate(self.model.site_body) if body == i]
        return [(start, e) for e in ends or [2 * p.com[i] - start]]

    def _radius(self, start: np.ndarray, end: np.ndarray) -> float:
        return 0.07 * float(np.clip(np.linalg.norm(end - start), 0.6 * self.typical, 1.5 * self.typical))

    def _stick(self, start: np.ndarray, end: np.ndarray) -> Mesh:
        half = float(np.linalg.norm(end - start)) / 2
        return capsule((self._radius(start, end), half)).moved((start + end) / 2, z_towards(end - start))

    def _box(self, i: int) -> Mesh:
        """Box with the body's inertia, slightly smaller; for a point mass, a default box."""
        xx, yy, zz, xy, xz, yz = self.params.inertia[i]
        moments, axes = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        square = 6 * (moments.sum() - 2 * moments) / self.params.mass[i]
        half = 0.34 * np.sqrt(np.maximum(square, 0.0))
        half = np.maximum(half, 0.1 * half.max()) if half.max() > 0 else self.typical * np.array([0.24, 0.15, 0.1])
        axes = axes if np.linalg.det(axes) > 0 else -axes
        return rounded_box(half, 0.4 * half.min()).moved(self.params.com[i], axes)
