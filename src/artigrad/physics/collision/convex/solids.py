"""Convex solids as their support functions see them: a core, and a radius around it.

    sphere      a point, r                 ellipsoid   itself, 0              box     itself, 0
    capsule     a segment along z, r       cylinder    itself, 0              points  the hull of vertices, 0

What kind a solid is, is an integer of the model: one compiled routine serves all kinds, and only those that the model has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....compiler import select, sqrt, switch
from ....model.model import BOX, CAPSULE, CYLINDER, ELLIPSOID, POINTS, SPHERE
from ...spatial import Vec3, dot
from ..gap import Pose
from .hull_tables import Corner

TINY = 1e-30
SOLIDS = (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, POINTS)
CURVED = frozenset({ELLIPSOID, CYLINDER})


class Solid(NamedTuple):
    """A placed solid. kind: an integer of the model, one of `among`. centre, extent: of the box around its core, in its own
    frame. inner: some point of the core. hull: its corners (`PlacedHull`, or the `Prism` of a height field), where it has
    some. later: 1 for that of a pair which comes second in MuJoCo."""

    kind: Any
    among: frozenset[int]
    size: Vec3
    X: Pose
    centre: Vec3
    extent: Vec3
    inner: Vec3
    hull: Any
    later: Any = 0.0

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

    def corner(self, n: Vec3) -> Corner:
        """The point of the core that is furthest along n, and which corner of a hull it is."""
        found = core_support(self, self.X.R.T @ n)
        return Corner(self.to_world(found.p), found.number)

    def support(self, n: Vec3) -> Vec3:
        """That point alone."""
        return self.corner(n).p


def _sided(size: Any, d: Any) -> Any:
    return select(d < 0.0, -size, size)


def core_support(s: Solid, d: Vec3) -> Corner:
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
