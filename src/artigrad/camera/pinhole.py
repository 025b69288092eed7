"""Pinhole camera: pose, field of view, and the ray of each pixel.

As in MuJoCo, the camera is directed along -z of its frame, y is up in the image, and the field of view is vertical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..arguments import checked, numbers, shown
from ..errors import InputError, is_whole
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
        if not is_whole(self.body, -1):
            raise InputError(f"body of a camera is the index of a body, or -1, not {self.body!r}")
        for name, side in (("width", self.width), ("height", self.height)):
            if not is_whole(side, 1) or side > 1 << 16:
                raise InputError(f"{name} of a image is a whole number of pixels, at least 1, not {shown(side)}")

    @staticmethod
    @checked
    def look_at(
        position: Any,
        target: Any,
        *,
        fov: Any = 45.0,
        width: int = 288,
        height: int = 96,
        up: Any = UP,
        dtype: torch.dtype = torch.float64,
        device: Any = "cpu",
    ) -> Camera:
        """Return a camera at `position`, directed at `target`; both may be tensors that require gradients."""
        place, to, angle = (
            tensor_of(name, x, own, dtype=dtype, device=device)
            for name, x, own in (("position", position, (3,)), ("target", target, (3,)), ("fov", fov, ()))
        )
        up = tensor_of("up", up, (3,), dtype=dtype, device=device)
        if up.ndim > 1:
            raise InputError(f"up is one direction (3,), not {tuple(up.shape)}")
        place, to = torch.broadcast_tensors(place, to)
        back = _unit(place - to)
        right = torch.linalg.cross(up.expand_as(back), back)
        if not (right.norm(dim=-1) > 1e-9).all():
            raise InputError("the camera is directed along `up`: pass another up, such as up=(0, 1, 0)")
        right = _unit(right)
        rotation = torch.stack([right, torch.linalg.cross(back, right), back], -1)
        return Camera(place, rotation, angle, width, height)

    @staticmethod
    @checked
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


def tensor_of(name: str, x: Any, own: tuple[int, ...], **kind: Any) -> Tensor:
    """Return a tensor (..., *own) of numbers or of a tensor; an error that names the argument for anything else."""
    try:
        out = torch.as_tensor(x if isinstance(x, Tensor) else numbers(name, x), **kind)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name} is a tensor or numbers, not {type(x).__name__}") from None
    if out.shape[out.ndim - len(own) :] != own or out.ndim < len(own):
        raise InputError(f"{name} is (..., {', '.join(map(str, own))}), not {tuple(out.shape)}")
    return out


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
