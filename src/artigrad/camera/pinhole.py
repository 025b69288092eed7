"""Pinhole camera: pose, field of view, and the ray of each pixel.

As in MuJoCo, the camera is directed along -z of its frame, y is up in the image, and the field of view is vertical.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..model.model import Model

UP = (0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera.

    Attributes:
      position: Position, m, (..., 3).
      rotation: Axes (right, up, back) as columns, (..., 3, 3).
      fov: Vertical field of view, degrees, (...).
      width, height: Size of the image, pixels.
      body: Index of the body to which the camera is fixed, in whose frame position and rotation are; -1: the world.

    The tensors may require gradients and may have leading axes: a camera for each robot.
    """

    position: Tensor
    rotation: Tensor
    fov: Tensor
    width: int = 288
    height: int = 96
    body: int = -1

    def __post_init__(self) -> None:
        for name, own in (("position", (3,)), ("rotation", (3, 3)), ("fov", ())):
            x = getattr(self, name)
            if not isinstance(x, Tensor) or tuple(x.shape[x.ndim - len(own) :]) != own:
                found = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
                raise InputError(f"{name} of a camera is a tensor (..., {', '.join(map(str, own))}), not {found}")
        if self.width < 1 or self.height < 1:
            raise InputError(f"an image has at least one pixel in each direction, not {self.width} x {self.height}")

    @staticmethod
    def look_at(
        position: Any,
        target: Any,
        *,
        fov: Any = 45.0,
        width: int = 288,
        height: int = 96,
        up: Sequence[float] = UP,
        dtype: torch.dtype = torch.float64,
        device: Any = "cpu",
    ) -> Camera:
        """Return a camera at `position`, directed at `target`; both may be tensors that require gradients."""
        place, to, angle = (torch.as_tensor(x, dtype=dtype, device=device) for x in (position, target, fov))
        place, to = torch.broadcast_tensors(place, to)
        back = _unit(place - to)
        right = torch.linalg.cross(torch.as_tensor(up, dtype=dtype, device=device).expand_as(back), back)
        if not (right.norm(dim=-1) > 1e-9).all():
            raise InputError("the camera is directed along `up`: pass another up, such as up=(0, 1, 0)")
        right = _unit(right)
        rotation = torch.stack([right, torch.linalg.cross(back, right), back], -1)
        return Camera(place, rotation, angle, width, height)

    @staticmethod
    def of(
        model: Model,
        name: str,
        *,
        width: int = 288,
        height: int = 96,
        dtype: torch.dtype = torch.float64,
        device: Any = "cpu",
    ) -> Camera:
        """Return the camera of this name in a model, fixed to its body."""
        mount = model.camera(name)
        numbers = (mount.position, rotation_of(torch.tensor(mount.quaternion, dtype=torch.float64)), mount.fov)
        place, rotation, fov = (torch.as_tensor(x, dtype=dtype, device=device) for x in numbers)
        return Camera(place, rotation, fov, width, height, mount.body)

    @property
    def pixel(self) -> Tensor:
        """Distance between the rays of neighboring pixels at depth 1 m in the image center, (...)."""
        return 2 * torch.tan(torch.deg2rad(self.fov) / 2) / self.height

    def directions(self) -> Tensor:
        """Ray directions of all pixels in the camera frame, unit vectors (..., 3, height * width), row by row from the top."""
        like: dict[str, Any] = {"dtype": self.fov.dtype, "device": self.fov.device}
        x = torch.arange(self.width, **like) + 0.5 - self.width / 2
        y = self.height / 2 - 0.5 - torch.arange(self.height, **like)
        y, x = torch.meshgrid(y, x, indexing="ij")
        flat = torch.stack([x.reshape(-1), y.reshape(-1)]) * self.pixel[..., None, None]
        return _unit(torch.cat([flat, -torch.ones_like(flat[..., :1, :])], -2), -2)


def rotation_of(quaternion: Tensor) -> Tensor:
    """Return rotation matrices (..., 3, 3) of quaternions w x y z (..., 4) of any length."""
    w, x, y, z = _unit(quaternion).unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def _unit(x: Tensor, dim: int = -1) -> Tensor:
    return x / x.norm(dim=dim, keepdim=True)
