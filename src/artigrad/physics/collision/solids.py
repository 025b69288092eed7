"""Convex solids as their support functions see them: a core, and a radius around it.

    sphere      a point, r                 ellipsoid   itself, 0              box     itself, 0
    capsule     a segment along z, r       cylinder    itself, 0              points  the hull of vertices, 0

What kind a solid is, is an integer of the model: one compiled routine serves all kinds, and only those that the model has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ...model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Vec3, dot
from ...staging import carry, select, sqrt, switch
from .gap import Pose

TINY = 1e-30
SOLIDS = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, POINTS)
CURVED = frozenset({ELLIPSOID, CYLINDER})


class Solid(NamedTuple):
    """A placed solid. kind: an integer of the model, one of `among`. centre, extent: of the box around its core, in its own
    frame. vertices: loops over those of a hull, or over some among which is the furthest along a direction (own frame)."""

    kind: Any
    among: frozenset[int]
    size: Vec3
    X: Pose
    centre: Vec3
    extent: Vec3
    vertices: Callable[[Vec3], Iterator[Vec3]]

    def by_kind(self, cases: Mapping[int, Callable[[], Any]]) -> Any:
        """The result of the case of its kind."""
        known = {k: case for k, case in cases.items() if k in self.among}
        return switch(self.kind, known) if len(known) > 1 else next(iter(known.values()))()

    @property
    def radius(self) -> Any:
        """Around the core."""
        around: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
        return self.by_kind(around | dict.fromkeys((SPHERE, CAPSULE), lambda: self.size.x))

    def to_world(self, p: Vec3) -> Vec3:
        return self.X.r + self.X.R @ p

    def to_own(self, p: Vec3) -> Vec3:
        return self.X.R.T @ (p - self.X.r)

    def support(self, n: Vec3) -> Vec3:
        """The point of the core that is furthest along n."""
        return self.to_world(core_support(self, self.X.R.T @ n))


def _sided(size: Any, d: Any) -> Any:
    return select(d < 0.0, -size, size)


def core_support(s: Solid, d: Vec3) -> Vec3:
    """The point of the core that is furthest along d, all in the frame of the solid."""
    z = s.size

    def ellipsoid() -> Vec3:
        k = d.map(lambda x, a: x * a, z)
        return k.map(lambda x, a: x * a, z) / sqrt(dot(k, k) + TINY)

    def cylinder() -> Vec3:
        rho = d.x * d.x + d.y * d.y
        off = rho > TINY
        f = z.x / sqrt(select(off, rho, 1.0))
        return Vec3(select(off, d.x * f, z.x), select(off, d.y * f, 0.0), _sided(z.y, d.z))

    def hull() -> Vec3:
        best = carry((-1.0 / TINY, Vec3.zero()))
        for v in s.vertices(d):
            top, at = best.value
            height = dot(v, d)
            more = height > top
            best.value = (select(more, height, top), select(more, v, at))
        return best.value[1]

    return s.by_kind(
        {
            SPHERE: Vec3.zero,
            CAPSULE: lambda: Vec3(0.0, 0.0, _sided(z.y, d.z)),
            ELLIPSOID: ellipsoid,
            CYLINDER: cylinder,
            BOX: lambda: d.map(lambda x, a: _sided(a, x), z),
            POINTS: hull,
        }
    )
