"""render: ray casting of a scene. Each pixel has the color of the nearest solid on its ray.

All robots, solids and pixels are computed together, one tensor operation for all. If this would need more memory than
IMAGE_MEMORY, the batch is split; each part is recomputed in the backward pass.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..arguments import checked, shown
from ..deprecation import renamed
from ..errors import InputError
from ..simulate.results import Outputs
from .pinhole import Camera
from .ray_kinds import KINDS, dot
from .ray_scene import WORLD, RayScene, RaySolid

IMAGE_MEMORY = 2e9  # bytes of the autograd graph of one part of a batch
VALUES_PER_HIT = 120  # stored for the backward pass, about


@renamed(grey="gray")
class Image(NamedTuple):
    """Rendered images.

    Attributes:
      rgb: (..., height, width, 3), 0 to 1.
      alpha: Fraction of each pixel covered by solids, (..., height, width).
      depth: Depth along the camera's axis, m, (..., height, width); 0 where there is no solid.
    """

    rgb: Tensor
    alpha: Tensor
    depth: Tensor

    @property
    def gray(self) -> Tensor:
        """Brightness, (..., height, width)."""
        return self.rgb.mean(-1)


class Poses(NamedTuple):
    """Positions and rotations of bodies and camera, and the field of view, with one batch axis: (B, nb, 3), (B, nb, 3, 3),
    (B, 3), (B, 3, 3), (B,)."""

    position: Tensor
    rotation: Tensor
    eye: Tensor
    axes: Tensor
    fov: Tensor


@checked
def render(scene: RayScene, camera: Camera, bodies: Any = None, *, soft: float = 0.0) -> Image:
    """Render an image, differentiable with respect to body poses and all tensors of the scene and the camera.

    Args:
        scene: Solids and light.
        camera: Pose and intrinsics; leading axes broadcast with those of the bodies.
        bodies: Result of `artigrad.torch.outputs`, or a pair of positions (..., nb, 3), m, and rotations (..., nb, 3, 3). None:
            all solids are fixed to the world.
        soft: Width of the blended edges, pixels. With 0, edges are sharp: the image jumps when an edge crosses a pixel, which
            is not part of the gradient; a soft edge has a gradient.
    """
    poses, lead = _camera_poses(scene, camera, bodies)
    soft = float(soft)
    if soft < 0:
        raise InputError(f"soft is a nonnegative number of pixels, not {soft}")
    count = prod(lead)
    rows = Poses(*(_rows(x, lead, own) for x, own in zip(poses, (2, 3, 1, 2, 0), strict=True)))
    solids = [_solid_rows(s, lead) for s in scene.solids]
    bytes_each = VALUES_PER_HIT * len(solids) * camera.width * camera.height * rows.eye.element_size()
    size = max(1, int(IMAGE_MEMORY // bytes_each))
    parts = []
    for first in range(0, count, size):
        own = slice(first, first + size)
        given = (
            replace(scene, solids=tuple(_share(s, own) for s in solids)),
            camera,
            Poses(*(x[own] for x in rows)),
            soft,
        )
        again = count > size and torch.is_grad_enabled()
        parts.append(
            checkpoint(_render, *given, use_reentrant=False, preserve_rng_state=False) if again else _render(*given)
        )
    shape = (*lead, camera.height, camera.width)
    rgb, alpha, depth = (torch.cat(part) if len(parts) > 1 else part[0] for part in zip(*parts, strict=True))
    return Image(rgb.reshape(*shape, 3), alpha.reshape(shape), depth.reshape(shape))


# -- poses ---------------------------------------------------------------------------------------------------------------
def _camera_poses(scene: RayScene, camera: Camera, bodies: Any) -> tuple[Poses, tuple[int, ...]]:
    """Return poses with their leading axes, and the axes to which they broadcast with those of the solids."""
    like = camera.position
    if bodies is None:
        if any(s.body != WORLD for s in scene.solids) or camera.body != WORLD:
            raise InputError(
                "solids of this scene, or its camera, move with bodies: pass the result of artigrad.torch.outputs"
            )
        position, rotation = like.new_zeros(0, 3), like.new_zeros(0, 3, 3)
    else:
        if not isinstance(bodies, Outputs | tuple | list) or len(bodies) < 2:
            raise InputError(
                f"bodies are the Outputs of torch.outputs, or positions and rotations, not {shown(bodies)}"
            )
        position, rotation = (
            bodies[:2] if not isinstance(bodies, Outputs) else (bodies.body_position, bodies.body_rotation)
        )
    for name, x in (("the scene", scene.background), ("bodies", position)):
        if not isinstance(x, Tensor):
            raise InputError(f"{name}: positions and rotations are tensors, not {type(x).__name__}")
        if x.dtype != like.dtype or x.device != like.device:
            raise InputError(
                f"{name}: {x.dtype} on {x.device}, and the camera: {like.dtype} on {like.device}; "
                "make both with the same dtype= and device="
            )
    needed = max((*(s.body for s in scene.solids), camera.body)) + 1
    if position.shape[-2] < needed:
        raise InputError(f"bodies has {position.shape[-2]} rows, but the scene has solids on {needed} bodies")
    eye, axes = camera.position, camera.rotation
    if camera.body != WORLD:
        turn = rotation[..., camera.body, :, :]
        eye = position[..., camera.body, :] + (turn @ eye[..., None])[..., 0]
        axes = turn @ axes
    leads = [position.shape[:-2], eye.shape[:-1], axes.shape[:-2], camera.fov.shape]
    leads += [x.shape[: x.ndim - own] for s in scene.solids for x, own in _own_axes(s)]
    return Poses(position, rotation, eye, axes, camera.fov), tuple(torch.broadcast_shapes(*leads))


def _own_axes(solid: RaySolid) -> list[tuple[Tensor, int]]:
    """Return the tensors of a solid that may have leading axes, with the number of their other axes."""
    return [(solid.size, 2 if solid.kind == "hull" else 1), (solid.position, 1), (solid.rotation, 2)]


def _rows(x: Tensor, lead: tuple[int, ...], own: int) -> Tensor:
    """Return x with one leading axis, (B, ...)."""
    tail = x.shape[x.ndim - own :]
    return x.expand((*lead, *tail)).reshape(prod(lead), *tail)


def _solid_rows(solid: RaySolid, lead: tuple[int, ...]) -> RaySolid:
    """Return a solid with one leading axis; tensors shared by all robots keep (1, ...)."""

    def rows(x: Tensor, own: int) -> Tensor:
        return x[None] if x.ndim == own else _rows(x, lead, own)

    (size, n), (position, _), (rotation, _) = _own_axes(solid)
    return replace(solid, size=rows(size, n), position=rows(position, 1), rotation=rows(rotation, 2))


def _share(solid: RaySolid, own: slice) -> RaySolid:
    def of(x: Tensor) -> Tensor:
        return x if len(x) == 1 else x[own]

    return replace(solid, size=of(solid.size), position=of(solid.position), rotation=of(solid.rotation))


# -- one part of the batch -----------------------------------------------------------------------------------------------
class _Hits(NamedTuple):
    """Hits of all rays: t and margin (B, S, n), color (B, S, 3, n), and True where the solid's front is before the camera."""

    t: Tensor
    margin: Tensor
    color: Tensor
    front: Tensor


def _render(scene: RayScene, camera: Camera, poses: Poses, soft: float) -> tuple[Tensor, Tensor, Tensor]:
    lens = replace(camera, fov=poses.fov)
    inside = lens.directions()
    rays = poses.axes @ inside  # (B, 3, n)
    hits = [_cast(scene, [scene.solids[k] for k in group], poses, rays) for group in scene.groups]
    t, margin, color, front = (torch.cat(part, 1) for part in zip(*hits, strict=True))
    if soft > 0:
        width = (soft * lens.pixel)[:, None, None] * t.clamp(min=1e-9)
        cover = torch.sigmoid(-4 * margin / width) * front
    else:
        cover = (margin < 0).to(t) * front
    opacity = torch.tensor([scene.solids[k].opacity for group in scene.groups for k in group]).to(t)
    weight, behind = _in_front(cover * opacity[:, None], t.detach())
    alpha = 1 - behind
    rgb = (weight[:, :, None] * color).sum(1) + behind[:, None] * scene.background[:, None]
    depth = (weight * t).sum(1) * -inside[:, 2] / alpha.clamp(min=1e-6)
    return rgb.movedim(1, -1), alpha, depth


def _cast(scene: RayScene, solids: list[RaySolid], poses: Poses, rays: Tensor) -> _Hits:
    """Return the hits of all rays with solids of one kind."""
    kind = KINDS[solids[0].kind]
    X, p = _solid_poses(solids, poses)
    o = X.mT @ (poses.eye[:, None] - p)[..., None]  # (B, S, 3, 1)
    d = X.mT @ rays[:, None]  # (B, S, 3, n)
    size = _stacked([s.size for s in solids])
    t, normal, margin = kind.meet(o, d, size)
    light = torch.nn.functional.normalize(scene.light, dim=0)
    brightness = (1 + dot(normal, X.mT @ light[:, None])) / 2
    brightness = scene.ambient + (1 - scene.ambient) * brightness**2
    rgb = torch.stack([s.rgb for s in solids])[..., None].expand(*normal.shape)
    if any(s.texture is not None for s in solids):
        u, v = kind.unroll(o + t[..., None, :] * d, normal, size)
        rgb = torch.stack(
            [
                rgb[:, k] if s.texture is None else read_texture(s.texture, u[:, k], v[:, k])
                for k, s in enumerate(solids)
            ],
            1,
        )
    return _Hits(t, margin, brightness[..., None, :] * rgb, (t > 0).to(t))


def _solid_poses(solids: list[RaySolid], poses: Poses) -> tuple[Tensor, Tensor]:
    """Return rotations (B, S, 3, 3) and positions (B, S, 3) of solids in world axes."""
    place, turn = _stacked([s.position for s in solids]), _stacked([s.rotation for s in solids])
    eye = torch.eye(3).to(place).expand(len(poses.eye), 1, 3, 3)
    rotation = torch.cat([eye, poses.rotation], 1)[:, [s.body + 1 for s in solids]]
    position = torch.cat([torch.zeros_like(eye[..., 0]), poses.position], 1)[:, [s.body + 1 for s in solids]]
    return rotation @ turn, position + (rotation @ place[..., None])[..., 0]


def _stacked(tensors: list[Tensor]) -> Tensor:
    """Stack tensors to (B, S, ...), B = 1 if all robots size them; hulls are padded by repeating their last plane."""
    rows = max(x.shape[1] for x in tensors)
    full = [x if x.shape[1] == rows else x[:, [*range(x.shape[1]), *[-1] * (rows - x.shape[1])]] for x in tensors]
    batch = max(len(x) for x in full)
    return torch.stack([x.expand(batch, *x.shape[1:]) for x in full], 1)


def _in_front(cover: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return the visible coverage of each pixel by each solid, (B, S, n), and the remaining coverage, (B, n)."""
    order = t.argsort(1)
    ordered = torch.gather(cover, 1, order)
    left, weights = torch.ones_like(cover[:, 0]), []
    for k in range(cover.shape[1]):
        weights.append(left * ordered[:, k])
        left = left * (1 - ordered[:, k])
    return torch.zeros_like(cover).scatter(1, order, torch.stack(weights, 1)), left


def read_texture(texture: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Return colors (B, 3, n) of a texture (h, w, 3) at (u, v), bilinear between pixel centers and repeated."""
    h, w, _ = texture.shape
    x, y = u * w - 0.5, (1 - v) * h - 0.5
    x0, y0 = torch.floor(x.detach()), torch.floor(y.detach())
    fx, fy = x - x0, y - y0
    left, top = (x0.long() % w), (y0.long() % h)
    right, bottom = (left + 1) % w, (top + 1) % h
    flat = texture.reshape(h * w, 3).T

    def at(row: Tensor, column: Tensor) -> Tensor:
        return flat[:, row * w + column].movedim(0, 1)

    fx, fy = fx[:, None], fy[:, None]
    upper = at(top, left) * (1 - fx) + at(top, right) * fx
    lower = at(bottom, left) * (1 - fx) + at(bottom, right) * fx
    return upper * (1 - fy) + lower * fy
