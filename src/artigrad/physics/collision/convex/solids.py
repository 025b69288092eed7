"""Convex solids by their support functions: a core and a radius around it.

    sphere      a point, r                 ellipsoid   itself, 0              box     itself, 0
    capsule     a segment along z, r       cylinder    itself, 0              points  convex hull of the vertices, 0

The type of a solid is an integer of the model: one compiled routine serves all types, and contains only those that the
model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....compiler import select, sqrt, switch
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Vec3, dot
from ..contact_geometry import Pose
from .hull_tables import Corner

TINY = 1e-30
SOLIDS = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, POINTS)
CURVED = frozenset({ELLIPSOID, CYLINDER})


class Solid(NamedTuple):
    """Placed convex solid.

    Attributes:
        kind: Type, one of `among`.
        among: Types that the kernel is compiled for.
        size: Sizes, m.
        X: Pose.
        center, extent: Center and half extents of the core's bounding box, in the frame of the solid.
        inner: A point inside the core.
        hull: Vertices (`PlacedHull`, or the `Prism` of a height field).
        later: 1 for the solid of a pair that MuJoCo orders second.
    """

    kind: Any
    among: frozenset[int]
    size: Vec3
    X: Pose
    center: Vec3
    extent: Vec3
    inner: Vec3
    hull: Any
    later: Any = 0.0

    def by_kind(self, cases: Mapping[int, Callable[[], Any]]) -> Any:
        """Return the result of the case of the solid's type."""
        known = {k: case for k, case in cases.items() if k in self.among}
        return switch(self.kind, known)

    @property
    def radius(self) -> Any:
        """Radius around the core."""
        around: dict[int, Callable[[], Any]] = {k: lambda: 0.0 for k in SOLIDS}
        return self.by_kind(around | dict.fromkeys((SPHERE, CAPSULE), lambda: self.size.x))

    def to_world(self, p: Vec3) -> Vec3:
        return self.X.r + self.X.R @ p

    def to_own(self, p: Vec3) -> Vec3:
        return self.X.R.T @ (p - self.X.r)

    def corner(self, n: Vec3) -> Corner:
        """Return the point of the core furthest along n, and its index if it is a vertex of a hull."""
        found = core_support(self, self.X.R.T @ n)
        return Corner(self.to_world(found.p), found.number)

    def support(self, n: Vec3) -> Vec3:
        """Return the point of the core furthest along n."""
        return self.corner(n).p


def _sided(size: Any, d: Any) -> Any:
    """Return size with the sign of d."""
    return select(d < 0.0, -size, size)


def core_support(s: Solid, d: Vec3) -> Corner:
    """Return the point of the core furthest along d, in the frame of the solid."""
    z = s.size

    def ellipsoid() -> Vec3:
        k = d.map(lambda x, a: x * a, z)
        return k.map(lambda x, a: x * a, z) / sqrt(dot(k, k) + TINY)

    def cylinder() -> Vec3:
        rho = d.x * d.x + d.y * d.y
        off = rho > TINY
        f = z.x / sqrt(select(off, rho, 1.0))
        return Vec3(select(off, d.x * f, z.x), select(off, d.y * f, 0.0), _sided(z.y, d.z))

    return s.by_kind(
        {
            SPHERE: lambda: Corner(Vec3.zero(), 0.0),
            CAPSULE: lambda: Corner(Vec3(0.0, 0.0, _sided(z.y, d.z)), 0.0),
            ELLIPSOID: lambda: Corner(ellipsoid(), 0.0),
            CYLINDER: lambda: Corner(cylinder(), 0.0),
            BOX: lambda: Corner(d.map(lambda x, a: _sided(a, x), z), 0.0),
            POINTS: lambda: s.hull.furthest(d),
        }
    )
