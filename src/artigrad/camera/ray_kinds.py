"""Intersection of a ray with a solid and texture coordinates of its surface: one function per kind, in the solid's frame.

A ray is o + t d with |d| = 1. Tensors are (..., 3, n) for vectors and (..., n) for scalars: n rays, 1 where all rays of an
image share a value. For a ray that misses, every function returns the nearest hit at the edge, so that edges can be soft.

Not differentiated: the choice of the first solid of a ray, and of its face. For grazing rays the derivative of t is unbounded:
the half chord is at least GRAZING times the radius, which acts over 2e-4 of the radius at the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

GRAZING = 0.02
PARALLEL = 1e-6  # smallest sine of the angle between ray and face
TINY = 1e-18  # under roots, for finite gradients


class Intersection(NamedTuple):
    """Intersection of rays with a solid.

    Attributes:
      t: Distance along the ray, m.
      normal: Outward normal, (..., 3, n).
      margin: Distance of the ray from the solid, m; negative if it intersects.
    """

    t: Tensor
    normal: Tensor
    margin: Tensor


class RayKind(NamedTuple):
    """Kind of solid: meet(o, d, size) returns an Intersection; unroll(point, normal, size) returns texture coordinates (u,
    v) in 0 to 1."""

    meet: Callable[[Tensor, Tensor, Tensor], Intersection]
    unroll: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-2)


def _root(x: Tensor) -> Tensor:
    """Return the square root of a nonnegative number, with a finite gradient."""
    return torch.sqrt(x.clamp(min=0.0) + TINY)


def _nonzero(x: Tensor) -> Tensor:
    """Return x, replaced by a small number where it is nearly zero, for divisions."""
    return torch.where(x.abs() < PARALLEL, torch.where(x < 0, -PARALLEL, PARALLEL).to(x), x)


# -- ellipsoid and sphere ------------------------------------------------------------------------------------------------
def meet_ellipsoid(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    """Intersect rays with an ellipsoid: |(o + t d) / s| = 1"""
    s = size[..., None]
    o, d = o / s, d / s
    a = dot(d, d)
    t = -dot(o, d) / a
    nearest = o + t[..., None, :] * d
    square = dot(nearest, nearest)
    t = t - torch.sqrt((1 - square).clamp(min=GRAZING**2) / a)
    p = (o + t[..., None, :] * d) / s
    k0, k1 = _root(square), _root(dot(nearest / s, nearest / s))
    return Intersection(t, p / _root(dot(p, p))[..., None, :], (k0 - 1) * k0 / k1)


def meet_sphere(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    return meet_ellipsoid(o, d, size[..., :1].expand(*size.shape[:-1], 3))


def unroll_ball(p: Tensor, normal: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return longitude and latitude as texture coordinates."""
    x, y, z = p.unbind(-2)
    return _longitude(x, y), torch.atan2(z, _root(x * x + y * y)) / torch.pi + 0.5


def _longitude(x: Tensor, y: Tensor) -> Tensor:
    return torch.atan2(y, torch.where((x == 0) & (y == 0), 1.0, x)) / (2 * torch.pi) + 0.5


# -- capsule and cylinder, along z ---------------------------------------------------------------------------------------
def meet_capsule(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    """Intersect rays with a capsule: a tube, and a ball at either end."""
    r, half = size[..., :1], size[..., 1:2]
    t, h = _tube(o, d, r)
    z_nearest = torch.clamp(o[..., 2, :] + t * d[..., 2, :], -half, half)
    margin = _ball(o, d, r, z_nearest)[1]
    t = t - h
    z = o[..., 2, :] + t * d[..., 2, :]
    on_axis = torch.clamp(z, -half, half)
    t = torch.where(z.abs() < half, t, _ball(o, d, r, on_axis)[0])
    p = o + t[..., None, :] * d
    return Intersection(
        t, torch.cat([p[..., :2, :], (p[..., 2, :] - on_axis)[..., None, :]], -2) / r[..., None], margin
    )


def meet_cylinder(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    """Intersect rays with a cylinder: a tube between two planes."""
    r, half = size[..., :1], size[..., 1:2]
    t, h = _tube(o, d, r)
    dz = _nonzero(d[..., 2, :])
    level, thick = -o[..., 2, :] / dz, half / dz.abs()
    near = torch.maximum(t - h, level - thick)
    x, y, z = _middle(o, d, near, torch.minimum(t + h, level + thick)).unbind(-2)
    margin = _beyond(torch.stack([_root(x * x + y * y) - r, z.abs() - half], -2))
    p = o + near[..., None, :] * d
    flat = torch.stack([torch.zeros_like(near), torch.zeros_like(near), -torch.sign(dz).expand_as(near)], -2)
    across = torch.cat([p[..., :2, :], torch.zeros_like(p[..., :1, :])], -2)
    across = across / _root(dot(across, across))[..., None, :]
    return Intersection(near, torch.where((level - thick > t - h)[..., None, :], flat, across), margin)


def _tube(o: Tensor, d: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Return t where a ray is nearest to the z axis, and half of its chord through the infinite tube around it."""
    o, d = o[..., :2, :], d[..., :2, :]
    a = dot(d, d).clamp(min=PARALLEL**2)
    t = -dot(o, d) / a
    nearest = o + t[..., None, :] * d
    return t, torch.sqrt(torch.maximum(r * r - dot(nearest, nearest), (GRAZING * r) ** 2) / a)


def _ball(o: Tensor, d: Tensor, r: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Return the hit of a ray with a ball at height z on the axis, and its distance outside the ball."""
    x, y, _ = o.unbind(-2)
    o = torch.stack(torch.broadcast_tensors(x, y, o[..., 2, :] - z), -2)
    t = -dot(o, d)
    nearest = o + t[..., None, :] * d
    square = dot(nearest, nearest)
    return t - torch.sqrt(torch.maximum(r * r - square, (GRAZING * r) ** 2)), _root(square) - r


def unroll_tube(p: Tensor, normal: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return texture coordinates around the axis and along it."""
    r, half = size[..., :1], size[..., 1:2]
    x, y, z = p.unbind(-2)
    return _longitude(x, y), z / (2 * (half + r)) + 0.5


# -- box and hull --------------------------------------------------------------------------------------------------------
def meet_box(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    """Intersect rays with a box: three slabs, entered at the last entry and left at the first exit."""
    d = _nonzero(d)
    middle, thick = -o / d, size[..., None] / d.abs()
    near, face = (middle - thick).max(-2)
    q = _middle(o, d, near, (middle + thick).amin(-2)).abs() - size[..., None]
    normal = torch.nn.functional.one_hot(face, 3).movedim(-1, -2) * -torch.sign(d)
    return Intersection(near, normal.detach(), _beyond(q))


def unroll_box(p: Tensor, normal: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Texture coordinates of a box: the same image on each face; of the two other axes, the later one is up."""
    x, y, z = ((p / size[..., None]).clamp(-1.0, 1.0) / 2 + 0.5).unbind(-2)
    along_x, _, along_z = (normal.abs() > 0.5).unbind(-2)
    return torch.where(along_x, y, x), torch.where(along_z, y, z)


def meet_hull(o: Tensor, d: Tensor, planes: Tensor) -> Intersection:
    """Intersect rays with a convex hull of planes n . x = w, rows (n, w), as for the box."""
    n, w = planes[..., :3], planes[..., 3:]
    height, rate = n @ o - w, _nonzero(n @ d)
    t = -height / rate
    near, face = torch.where(rate < 0, t, -torch.inf).max(-2)
    p = _middle(o, d, near, torch.where(rate > 0, t, torch.inf).amin(-2))
    index = face[..., None].expand(*face.shape, 3)
    normal = torch.gather(n.expand(*face.shape[:-1], *n.shape[-2:]), -2, index).movedim(-1, -2)
    return Intersection(near, normal, (n @ p - w).amax(-2))


def unroll_nothing(p: Tensor, normal: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(p[..., 0, :]), torch.zeros_like(p[..., 0, :])


def _middle(o: Tensor, d: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """Return the middle between entry and exit: inside a convex solid if the ray intersects it, outside if not, on its edge
    if it grazes."""
    return o + ((near + far) / 2)[..., None, :] * d


def _beyond(q: Tensor) -> Tensor:
    """Return the distance outside, given the distances along each axis."""
    out = q.clamp(min=0.0)
    return _root(dot(out, out)) + q.amax(-2).clamp(max=0.0)


# -- plane, z = 0, visible from above ---------------------------------------------------------------------------------------
def meet_plane(o: Tensor, d: Tensor, size: Tensor) -> Intersection:
    """Intersect rays with a plane up to its half extents; infinite if they are zero."""
    rise = d[..., 2, :]
    t = o[..., 2, :] / (-rise).clamp(min=PARALLEL)
    x, y, _ = (o + t[..., None, :] * d).unbind(-2)
    margin = rise * t
    for coordinate, half in ((x, size[..., :1]), (y, size[..., 1:2])):
        margin = torch.where(half > 0, torch.maximum(margin, coordinate.abs() - half), margin)
    up = torch.stack([torch.zeros_like(t), torch.zeros_like(t), torch.ones_like(t)], -2)
    return Intersection(t, up, margin)


def unroll_plane(p: Tensor, normal: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Texture coordinates of a plane: from edge to edge, or 1 m for an infinite plane."""
    half = torch.where(size > 0, size, 0.5)
    return p[..., 0, :] / (2 * half[..., :1]) + 0.5, p[..., 1, :] / (2 * half[..., 1:2]) + 0.5


KINDS = {
    "plane": RayKind(meet_plane, unroll_plane),
    "sphere": RayKind(meet_sphere, unroll_ball),
    "capsule": RayKind(meet_capsule, unroll_tube),
    "ellipsoid": RayKind(meet_ellipsoid, unroll_ball),
    "cylinder": RayKind(meet_cylinder, unroll_tube),
    "box": RayKind(meet_box, unroll_box),
    "hull": RayKind(meet_hull, unroll_nothing),
}
