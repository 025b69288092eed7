"""Pinhole camera in PyTorch, on CPU and GPU: images of a robot, differentiable with respect to poses, sizes, textures and
the camera."""

from ..errors import need

need("torch", "artigrad.camera needs PyTorch", "torch")


from ..deprecation import module_getattr
from .pinhole import Camera
from .ray_scene import RayScene, RaySolid
from .rendering import Image, render

__getattr__ = module_getattr(__name__, {"Picture": "Image"})

__all__ = ["Camera", "Image", "RayScene", "RaySolid", "render"]
