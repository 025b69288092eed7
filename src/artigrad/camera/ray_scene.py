"""RayScene: visible solids, the bodies that they are attached to, and the light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..arguments import checked
from ..errors import InputError
from ..model.hulls import thinned
from ..model.model import HEIGHT_FIELD, POINTS, SHAPES, Model
from ..model.params import Params
from ..view.meshes import hull
from ..view.scenery import PALETTE, SLAB, depths
from .pinhole import rotation_of
from .ray_kinds import KINDS

WORLD = -1
FLOOR = (0.75, 0.78, 0.82)
BACKGROUND, LIGHT, AMBIENT = (0.78, 0.85, 0.93), (0.35, -0.55, 1.0), 0.35
CORNERS = 40  # maximum number of vertices of a mesh


@dataclass(frozen=True, eq=False)
class RaySolid:
    """Visible solid, fixed to a body (-1: the world).

    Attributes:
        kind: plane, sphere, capsule, ellipsoid, cylinder, box or hull.
        size: (..., n), m, as for collision shapes; for a hull its planes (..., n, 4), rows (normal, distance from the origin).
        position: (..., 3), m, in the body frame.
        rotation: (..., 3, 3), in the body frame.
        rgb: (3,), 0 to 1.
        texture: (h, w, 3), replaces rgb: first row at the top, interpolated bilinearly and repeated; not for hulls.
        opacity: 0 to 1.

    Every tensor may require gradients; sizes and poses may have leading batch axes.
    """

    name: str
    kind: str
    body: int
    size: Tensor
    position: Tensor
    rotation: Tensor
    rgb: Tensor
    texture: Tensor | None = None
    opacity: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"'{self.name}' is a {self.kind}, and a camera sees {', '.join(KINDS)}")
        if self.texture is not None:
            if self.kind == "hull":
                raise InputError(f"'{self.name}' is a hull, which has no texture: give it rgb")
            if self.texture.ndim != 3 or self.texture.shape[-1] != 3:
                raise InputError(f"the texture of '{self.name}' is (h, w, 3), not {tuple(self.texture.shape)}")


@dataclass(frozen=True, eq=False)
class RayScene:
    """Visible scene.

    Attributes:
        solids: All solids.
        background: (3,), color of rays that hit nothing.
        light: (3,), direction to the lamp, which is at infinity.
        ambient: (), fraction of ambient light."""

    solids: tuple[RaySolid, ...]
    background: Tensor
    light: Tensor
    ambient: Tensor

    @staticmethod
    @checked
    def of(
        model: Model,
        params: Mapping[str, Tensor] | None = None,
        *,
        without: Sequence[str] = (),
        dtype: torch.dtype = torch.float64,
        device: Any = "cpu",
    ) -> RayScene:
        """Build the scene of a model: its visuals; if it has none, its collision shapes.

        Visuals are named after their bodies: `pole`, `pole.1`. Meshes are replaced by convex hulls of at most 40 vertices.

        Args:
            model: Robot.
            params: Tensors by field of `Params`; `shape_size`, `shape_position` and `shape_rotation` keep their gradients.
            without: Names of height fields to leave out; the camera does not support them.
        """
        if isinstance(params, Params) and params.model is not model:
            raise InputError(f"these params belong to '{params.model.name}': pass those of '{model.name}'")
        fields = [n for n, kind in zip(model.shapes.names, model.shapes.kind, strict=True) if kind == HEIGHT_FIELD]
        if unseen := [name for name in fields if name not in without]:
            raise InputError(
                f"a camera does not see height fields, and '{model.name}' has '{unseen[0]}': leave it out with "
                f"RayScene.of(model, without={unseen!r}), or give the ground as boxes"
            )
        like: dict[str, Any] = {"dtype": dtype, "device": device}
        solids = _from_visuals(model, like) if model.visuals else _from_shapes(model, params or {}, like)
        if not solids:
            raise InputError(f"'{model.name}' has nothing to see: add visuals or shapes, as by ModelBuilder.add_visual")
        background, light, ambient = (torch.tensor(x, **like) for x in (BACKGROUND, LIGHT, AMBIENT))
        return RayScene(tuple(solids), background, light, ambient)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the solids."""
        return tuple(solid.name for solid in self.solids)

    @checked
    def solid(self, name: str) -> RaySolid:
        """Return the solid of this name."""
        for solid in self.solids:
            if solid.name == name:
                return solid
        raise InputError(f"there is no solid '{name}' to see; there are: {', '.join(self.names)}")

    def replace(self, name: str, **fields: Any) -> RayScene:
        """Return the scene with other fields of one solid: scene.replace("pole", texture=x, size=s)."""
        old = self.solid(name)
        return replace(self, solids=tuple(replace(s, **fields) if s is old else s for s in self.solids))

    def add(self, *solids: RaySolid) -> RayScene:
        """Return the scene with additional solids."""
        return replace(self, solids=(*self.solids, *solids))

    @cached_property
    def groups(self) -> list[list[int]]:
        """Return indices of solids, grouped by kind."""
        kinds = [solid.kind for solid in self.solids]
        return [[k for k, kind in enumerate(kinds) if kind == one] for one in dict.fromkeys(kinds)]


def _from_visuals(model: Model, like: dict[str, Any]) -> list[RaySolid]:
    solids: list[RaySolid] = []
    seen: dict[int, int] = {}
    for visual in model.visuals:
        if visual.rgba[3] <= 0:
            continue
        count = seen[visual.body] = seen.get(visual.body, -1) + 1
        name = "world" if visual.body == WORLD else model.bodies[visual.body]
        kind, size = visual.kind, torch.tensor(visual.size, **like)
        if visual.mesh is not None:
            kind, size = "hull", torch.tensor(_planes(visual.mesh[0]), **like)
        turn = rotation_of(torch.tensor(visual.quaternion, **like))
        solids.append(
            RaySolid(
                name=f"{name}.{count}" if count else name,
                kind=kind,
                body=visual.body,
                size=size,
                position=torch.tensor(visual.position, **like),
                rotation=turn,
                rgb=torch.tensor(visual.rgba[:3], **like),
                opacity=float(visual.rgba[3]),
            )
        )
    return solids


def _from_shapes(model: Model, params: Mapping[str, Tensor], like: dict[str, Any]) -> list[RaySolid]:
    depth = depths(model)

    def field(name: str, k: int) -> Tensor:
        own = model.params[name]
        x = params.get(name)
        return torch.tensor(own[k], **like) if x is None else x[..., k, :].to(**like)

    solids = []
    for k, (kind, body) in enumerate(zip(model.shapes.kind, model.shapes.body, strict=True)):
        if kind == HEIGHT_FIELD:  # left out on request
            continue
        size, name = field("shape_size", k), SHAPES[kind]
        if kind == POINTS:
            first, count = model.shapes.vertices[k]
            name, size = "hull", torch.tensor(_planes(model.params.vertex[first : first + count]), **like)
        rgb: Sequence[float] = PALETTE[depth[body] % len(PALETTE)][:3] if body != WORLD else SLAB[:3]
        rgb = FLOOR if name == "plane" else rgb
        place, turn = field("shape_position", k), rotation_of(field("shape_rotation", k))
        solids.append(RaySolid(model.shapes.names[k], name, body, size, place, turn, torch.tensor(rgb, **like)))
    return solids


def _planes(points: Any) -> np.ndarray:
    """Return the planes of the convex hull of points, rows (normal, distance)."""
    p = np.unique(np.asarray(points, float), axis=0)
    mesh = hull(p if len(p) <= CORNERS else thinned(p, CORNERS))
    a, b, c = (mesh.vertices[mesh.faces[:, k]].astype(float) for k in range(3))
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    rows = np.concatenate([n, np.sum(n * a, 1, keepdims=True)], 1)
    rounded = np.round(rows / np.array([1e-4, 1e-4, 1e-4, 1e-4 * np.ptp(p, axis=0).max()]))
    return rows[np.unique(rounded, axis=0, return_index=True)[1]]
