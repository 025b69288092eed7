"""A pinhole camera in PyTorch, on the CPU and on a GPU: pictures of a robot, and their gradients to poses, sizes, textures and
the camera."""

from ..errors import need

need("torch", "artigrad.camera needs PyTorch", "torch")


from .picture import Picture, render
from .pinhole import Camera
from .ray_scene import RayScene, RaySolid

__all__ = ["Camera", "Picture", "RayScene", "RaySolid", "render"]
