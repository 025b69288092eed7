"""Collision shapes of `ModelBuilder`, and the selection of candidate pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..arguments import checked_model
from ..errors import ModelError, is_whole
from ..model.height_fields import MOST
from ..model.hulls import Hull, hull_of
from ..model.model import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    HEIGHT_FIELD,
    PLANE,
    POINTS,
    SHAPES,
    SPHERE,
    Model,
    Shapes,
    Surface,
)
from ..physics.collision.routines import BY_SHAPES
from ..physics.joints.table import JOINTS
from .pair_filter import Bond, Groups, groups
from .validate import mask, meaningful, not_negative, number, quaternion, soft_reference, vector, whole

WORLD = "world"
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)  # MuJoCo's defaults
# fields of Params of a shape, besides its pose and size, and of an explicit pair
NUMBERS = (
    *("friction", "torsional_friction", "rolling_friction", "restitution", "solref", "solimp", "solmix", "margin"),
    *("surface_velocity", "adhesion"),
)
FLUID = ("fluid_coefficients", "virtual_mass", "virtual_inertia")
PAIR_NUMBERS = ("friction", "solref", "solref_friction", "solimp", "margin", "adhesion")


class ShapeBuilder:
    """Methods of ModelBuilder for collision shapes."""

    name: str
    _bodies: dict[str, dict[str, Any]]
    _lenient = False  # True for input from files, of which MuJoCo accepts more

    def __init__(self) -> None:
        self._shapes: dict[str, dict[str, Any]] = {}
        self.parents_touch = False  # True if all bodies collide with their parents
        self._excluded: set[frozenset[str]] = set()
        self._included: list[tuple[str, str, dict[str, Any]]] = []

    @checked_model
    def add_plane(self, body: str = WORLD, half_extents: Any = (0.0, 0.0), **options: Any) -> str:
        """Add a half space: everything below z = 0 of its frame is inside.

        Args:
            body: Body or "world".
            half_extents: Extents along x and y for rangefinders, 0 for infinite; contact is unbounded.
            options: Options of all shapes, see below.

        Options of all shapes:

            name, position, rotation: Name, and frame in the body (m, quaternion w x y z).
            friction, torsional_friction, rolling_friction, restitution: Coefficients, as the params of these names.
            condim: Contact dimension: 1 (normal only), 3 (sliding friction), 4 (torsional) or 6 (rolling).
            solref, solimp, solmix, margin: Compliance (`docs/contact-models.md`).
            gap: Range of adhesion beyond margins, m.
            adhesion: Pull of its contacts, N.
            surface_velocity: Of a conveyor belt or turntable (`params.surface_velocity`).
            priority: The shape of higher priority alone sets the contact parameters of a pair.
            group, touches: Collision bit masks (MuJoCo contype, conaffinity); two shapes may collide if a.group &
            b.touches or b.group & a.touches is not zero.
            seen: True if rays intersect it.
            fluid: (coefficients, virtual mass, virtual inertia) of its ellipsoid in a fluid
            (`params.fluid_coefficients`).
        """
        return self._shape(body, PLANE, (*vector(half_extents, 2, "half extents of a plane"), 0.0), **options)

    @checked_model
    def add_sphere(self, body: str, radius: float, **options: Any) -> str:
        """Add a sphere centered at the shape's origin."""
        return self._shape(body, SPHERE, (radius, 0.0, 0.0), **options)

    @checked_model
    def add_capsule(self, body: str, radius: float, half_length: float, **options: Any) -> str:
        """Add a capsule: a ball swept along z from -half_length to half_length."""
        return self._shape(body, CAPSULE, (radius, half_length, 0.0), **options)

    @checked_model
    def add_box(self, body: str, half_sizes: Any, **options: Any) -> str:
        """Add a box with the given half edge lengths."""
        return self._shape(body, BOX, half_sizes, **options)

    @checked_model
    def add_cylinder(self, body: str, radius: float, half_length: float, **options: Any) -> str:
        """Add a cylinder along z."""
        return self._shape(body, CYLINDER, (radius, half_length, 0.0), **options)

    @checked_model
    def add_ellipsoid(self, body: str, half_axes: Any, **options: Any) -> str:
        """Add an ellipsoid with the given half axes."""
        return self._shape(body, ELLIPSOID, half_axes, **options)

    @checked_model
    def add_convex_hull(self, body: str, vertices: Any, *, half_axes: Any = (0.0, 0.0, 0.0), **options: Any) -> str:
        """Add the convex hull of points.

        Args:
            body: Body or "world".
            vertices: (n, 3), m, in the shape's frame.
            half_axes: Of its ellipsoid in a fluid, if any, m.
            options: As of `plane`, and surface: (vertices, faces), triangles for rangefinders.
        """
        half_axes = half_axes if options.get("fluid") is not None else (0.0, 0.0, 0.0)
        return self._shape(body, POINTS, half_axes, vertices=vertices, **options)

    @checked_model
    def add_height_field(self, body: str, heights: Any, half_extents: Any, base: float = 0.1, **options: Any) -> str:
        """Add a height field.

        Each cell is two triangles that share the diagonal from (i, j) to (i + 1, j + 1), solid down to `base`.

        Args:
            body: Body or "world".
            heights: m above the shape's origin; heights[i, j] is at row i along y and column j along x.
            half_extents: Half extents (x, y) of the grid, m.
            base: Depth of the base below the origin, m.
            options: As of `plane`.
        """
        x, y = vector(half_extents, 2, "half extents of a height field")
        return self._shape(body, HEIGHT_FIELD, (x, y, base), heights=heights, **options)

    @checked_model
    def add_exclude(self, body: str, other: str) -> None:
        """Exclude contact between two bodies."""
        for b in (body, other):
            if b != WORLD and b not in self._bodies:
                raise ModelError(f"excluded body '{b}' does not exist")
        self._excluded.add(frozenset((body, other)))

    @checked_model
    def add_pair(self, shape: str, other: str, *, condim: int | None = None, **numbers: Any) -> None:
        """Add an explicit pair: two shapes collide regardless of masks, parents and exclusions, with parameters of their
        own.

        Parameters not given are those of the two shapes, mixed.

        Args:
            shape, other: Shapes.
            condim: Contact dimension.
            numbers: friction (five: two of sliding, torsional, two of rolling), solref, solref_friction, solimp,
                margin, gap, adhesion.
        """
        for s in (shape, other):
            if s not in self._shapes:
                raise ModelError(f"included shape '{s}' does not exist; there are: {', '.join(self._shapes) or 'none'}")
        what = f"pair of '{shape}' and '{other}'"
        if any({shape, other} == {a, b} for a, b, _ in self._included):
            raise ModelError(f"{what} is included already: two shapes have one set of parameters")
        mixed = _mixed(self._shapes[shape], self._shapes[other])
        sizes = {"friction": 5, "solref": 2, "solref_friction": 2, "solimp": 5}
        for key, value in numbers.items():
            if key in ("margin", "gap", "adhesion"):
                mixed[key] = number(value, f"{key} of {what}")
            elif key in sizes:
                mixed[key] = vector(value, sizes[key], f"{key} of {what}")
            else:
                raise ModelError(
                    f"{what} has {', '.join((*sizes, 'margin', 'gap', 'adhesion', 'condim'))}; not '{key}'"
                )
        self._check_pair(shape, other, mixed, what)
        mixed["condim"] = mixed["condim"] if condim is None else _condim(condim, what)
        self._included.append((shape, other, mixed))

    def _check_pair(self, shape: str, other: str, own: dict[str, Any], what: str) -> None:
        """Refuse invalid parameters of an explicit pair.

        From files, negative coefficients become zero and an invalid solref the default, as in MuJoCo.
        """
        if self._lenient:
            own["friction"] = np.maximum(own["friction"], 0.0)
            own["solref"], own["solref_friction"] = meaningful(own["solref"]), meaningful(own["solref_friction"])
            return
        if shape == other:
            raise ModelError(f"{what}: a shape does not touch itself; a pair is of two shapes")
        for key in ("friction", "adhesion", "gap"):
            not_negative(own[key], f"{key} of {what}")
        soft_reference(own["solref"], what)
        if own["solref_friction"].any():
            soft_reference(own["solref_friction"], f"the friction of {what}")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the candidate pairs of the shapes added so far."""
        names = list(self._shapes)
        return [(names[a], names[b]) for a, b in self._candidates().tolist()]

    @checked_model
    def _shape(
        self,
        body: str,
        kind: int,
        size: Any,
        *,
        name: str | None = None,
        position: Any = (0.0, 0.0, 0.0),
        rotation: Any = (1.0, 0.0, 0.0, 0.0),
        friction: float = 1.0,
        torsional_friction: float = 0.005,
        rolling_friction: float = 0.0001,
        restitution: float = 0.0,
        condim: int = 3,
        solref: Any = SOLREF,
        solimp: Any = SOLIMP,
        solmix: float = 1.0,
        margin: float = 0.0,
        priority: int = 0,
        gap: float = 0.0,
        surface_velocity: Any = (0.0,) * 6,
        adhesion: float = 0.0,
        group: int = 1,
        touches: int = 1,
        seen: bool = True,
        fluid: Any = None,
        vertices: Any = (),
        hull: Hull | None = None,
        surface: Any = None,
        heights: Any = (),
    ) -> str:
        numbered = (f"{body}:{SHAPES[kind]}{k}" for k in range(len(self._shapes), 2 * len(self._shapes) + 1))
        name = name or next(free for free in numbered if free not in self._shapes)
        what = f"shape '{name}'"
        self._new(name, self._shapes, "shape")
        if body != WORLD and body not in self._bodies:
            raise ModelError(f"{what} is on body '{body}', which does not exist")
        size = vector(size, 3, f"size of {what}")
        needed = {SPHERE: 1, CAPSULE: 2, CYLINDER: 2, BOX: 3, ELLIPSOID: 3, HEIGHT_FIELD: 3}.get(kind, 0)
        if (size[:needed] <= 0).any():
            raise ModelError(f"size of {what} is {size[:needed]}; lengths of a {SHAPES[kind]} are positive")
        corners = _corners(vertices, what) if kind == POINTS else np.zeros((0, 3))
        grid = _grid(heights, size[2], what) if kind == HEIGHT_FIELD else np.zeros((0, 0))
        numbers = {
            "friction": friction,
            "torsional_friction": torsional_friction,
            "rolling_friction": rolling_friction,
            "solmix": solmix,
            "margin": margin,
            "gap": gap,
            "adhesion": adhesion,
        }
        numbers = {k: number(x, f"{k} of {what}") for k, x in numbers.items()}
        for k, x in numbers.items():
            if x < 0 and k != "margin":
                raise ModelError(f"{k} of {what} is {x:g}; it cannot be negative")
        restitution = number(restitution, f"restitution of {what}")
        if not 0 <= restitution <= 1:
            raise ModelError(f"restitution of {what} is {restitution:g}; it is between 0 and 1")
        self._shapes[name] = {
            "body": body,
            "kind": kind,
            "shape_position": vector(position, 3, f"position of {what}"),
            "shape_rotation": quaternion(rotation, f"rotation of {what}"),
            "shape_size": size,
            "restitution": restitution,
            "solref": soft_reference(solref, what, self._lenient),
            "solimp": vector(solimp, 5, f"solimp of {what}"),
            "surface_velocity": vector(surface_velocity, 6, f"surface_velocity of {what}"),
            **numbers,
            "condim": _condim(condim, what),
            "priority": whole(priority, f"priority of {what}"),
            "group": mask(group, f"group of {what}"),
            "touches": mask(touches, f"touches of {what}"),
            "seen": bool(seen),
            "fluid": None if fluid is None else _fluid(fluid, kind, size, what),
            "vertices": corners,
            "hull": hull or (hull_of(corners) if kind == POINTS else Hull()),
            "surface": None if surface is None else _surface(surface, what),
            "heights": grid,
        }
        return name

    def _add_shapes(
        self, robot: Model, prefix: str, kept: list[int], body: Callable[[int], str], pose: Callable[..., Any]
    ) -> None:
        """Add some shapes of another model behind a prefix.

        body(i) is the name of its body i here, and pose(i, position, rotation) the pose of something on it.
        """
        p, shapes = robot.params, robot.shapes
        for k in kept:
            first, count = shapes.vertices[k]
            height, rows, cols = shapes.grids[k]
            self._shape(
                body(shapes.body[k]),
                shapes.kind[k],
                p.shape_size[k],
                name=prefix + shapes.names[k],
                **pose(shapes.body[k], p.shape_position[k], p.shape_rotation[k]),
                condim=shapes.condim[k],
                priority=shapes.priority[k],
                gap=shapes.gap[k],
                **{key: p[key][k] for key in NUMBERS},
                group=shapes.masks[k][0],
                touches=shapes.masks[k][1],
                seen=k not in shapes.unseen,
                fluid=robot.shape_fluid(k),
                vertices=p.vertex[first : first + count],
                hull=shapes.hulls[k],
                surface=shapes.surfaces[k],
                heights=p.height[height : height + rows * cols].reshape(rows, cols),
            )
        for a, c in shapes.excluded:
            self.add_exclude(body(a), body(c))
        for k, (a, c, condim) in enumerate(shapes.included):
            if a in kept and c in kept:
                numbers = {key: p[f"pair_{key}"][k] for key in PAIR_NUMBERS} | {"gap": shapes.included_gap[k]}
                self.add_pair(prefix + shapes.names[a], prefix + shapes.names[c], condim=condim, **numbers)

    def _shape_values(self) -> dict[str, Any]:
        """Return the values of the shapes' fields of Params."""
        shapes = list(self._shapes.values())
        keys = ("shape_position", "shape_rotation", "shape_size", *NUMBERS)
        values: dict[str, Any] = {key: [s[key] for s in shapes] for key in keys} if shapes else {}
        if self._included:
            values |= {f"pair_{key}": [own[key] for _, _, own in self._included] for key in PAIR_NUMBERS}
        vertices = [v for s in shapes for v in s["vertices"]]
        values |= {"vertex": vertices} if vertices else {}
        wet = [s["fluid"] for s in shapes if s["fluid"] is not None]
        values |= {key: [x[i] for x in wet] for i, key in enumerate(FLUID)} if wet else {}
        heights = np.concatenate([np.zeros(0), *(s["heights"].ravel() for s in shapes)])
        return values | ({"height": heights} if len(heights) else {})

    def _build_shapes(self, bodies: list[str]) -> Shapes:
        shapes, first, spans = list(self._shapes.values()), 0, []
        index = {name: i for i, name in enumerate(bodies)}
        for s in shapes:
            spans.append((first, len(s["vertices"])))
            first += len(s["vertices"])
        starts = np.cumsum([0, *(s["heights"].size for s in shapes)])
        rows = enumerate(self._bodies.values())
        return Shapes(
            names=tuple(self._shapes),
            kind=tuple(s["kind"] for s in shapes),
            body=tuple(-1 if s["body"] == WORLD else index[s["body"]] for s in shapes),
            vertices=tuple(spans),
            hulls=tuple(s["hull"] for s in shapes),
            grids=tuple((int(k), *s["heights"].shape) for k, s in zip(starts, shapes, strict=False)),
            masks=tuple((s["group"], s["touches"]) for s in shapes),
            condim=tuple(s["condim"] for s in shapes),
            priority=tuple(s["priority"] for s in shapes),
            gap=tuple(s["gap"] for s in shapes),
            pairs=tuple(zip(*self._candidates().T.tolist(), strict=True)),
            excluded=tuple(sorted(self._pair(p, [WORLD, *bodies], -1) for p in self._excluded)),
            included=tuple((*self._pair(p, list(self._shapes)), own["condim"]) for *p, own in self._included),
            included_gap=tuple(float(own["gap"]) for *_, own in self._included),
            limited=tuple(i for i, b in rows if np.isfinite(b["limit"]).any() or b["dry_friction"] > 0),
            parents_touch=self.parents_touch,
            touching_parents=tuple(i for i, b in enumerate(self._bodies.values()) if self._touches_parent(b)),
            surfaces=tuple(s["surface"] for s in shapes),
            unseen=tuple(k for k, s in enumerate(shapes) if not s["seen"]),
            wet=tuple(k for k, s in enumerate(shapes) if s["fluid"] is not None),
        )

    @staticmethod
    def _pair(names: Iterable[str], known: list[str], first: int = 0) -> tuple[int, int]:
        """Convert two names to indices, the lower one first; a pair of one name has it twice."""
        indices = sorted(known.index(name) + first for name in names)
        return indices[0], indices[-1]

    def _candidates(self) -> np.ndarray:
        """Return the candidate pairs (n, 2); pairs without a routine are reported."""
        shapes, own = list(self._shapes.values()), self._groups()
        index = {name: i for i, name in enumerate(self._bodies)} | {WORLD: -1}
        body = np.array([index[s["body"]] for s in shapes], int)
        solid = np.array([own.root(b) for b in body.tolist()], int)
        mocap = [i for i, b in enumerate(self._bodies.values()) if b["mocap"]]
        unmoved = np.isin(solid, [-1, *mocap])
        kind, group, touches = (np.array([s[key] for s in shapes], np.int64) for key in ("kind", "group", "touches"))
        parents = self._parents_apart(own)
        above, excluded, included = (
            np.array([*own.above, -1], int),
            self._excluded_shapes(index, body),
            self._together(),
        )
        routed = np.zeros((len(SHAPES), len(SHAPES)), bool)
        for a, b in BY_SHAPES:
            if min(a, b) >= 0:
                routed[a, b] = True
        found: list[np.ndarray] = []
        missing: dict[str, list[str]] = {}
        for i in range(len(shapes)):
            j = np.arange(i + 1, len(shapes))
            one, other = solid[i], solid[j]
            may = ((group[i] & touches[j]) | (group[j] & touches[i])) != 0
            may[[k - i - 1 for k in excluded.get(i, ())]] = False
            if one >= 0:
                may &= ~((above[other] == one) & (other >= 0) & parents[other])
                may &= ~((above[one] == other) & (other >= 0) & parents[one])
            may[[k - i - 1 for k in included.get(i, ())]] = True
            may &= (other != one) & ~(unmoved[i] & unmoved[j])
            j = j[may]
            known = routed[kind[i], kind[j]]
            for k in j[~known].tolist():
                kinds = " and ".join(sorted((SHAPES[kind[i]], SHAPES[kind[k]])))
                missing.setdefault(kinds, []).append(f"{list(self._shapes)[i]} - {list(self._shapes)[k]}")
            j = j[known]
            # in MuJoCo's order, by type and index; but the second one moves
            turned = np.where(kind[i] <= kind[j], unmoved[j], ~unmoved[i])
            found.append(np.stack([np.where(turned, j, i), np.where(turned, i, j)], 1))
        if missing:
            self._without_routine(missing)
        return np.concatenate(found) if found else np.zeros((0, 2), int)

    def _parents_apart(self, own: Groups) -> np.ndarray:
        """Return, by group, whether it is excluded from contact with its parent group; the world last."""
        return np.array([not self._touches_parent(b) for b in self._bodies.values()] + [False], bool)

    def _excluded_shapes(self, index: dict[str, int], body: np.ndarray) -> dict[int, list[int]]:
        """Return, by shape, the later shapes of bodies excluded from contact with its body."""
        on: dict[int, list[int]] = {}
        for k, b in enumerate(body.tolist()):
            on.setdefault(b, []).append(k)
        out: dict[int, list[int]] = {}
        for pair in self._excluded:
            first, second = index[min(pair)], index[max(pair)]
            for i in on.get(first, ()):
                for j in on.get(second, ()):
                    if i != j:
                        out.setdefault(min(i, j), []).append(max(i, j))
        return out

    def _together(self) -> dict[int, list[int]]:
        """Return, by shape, the later shapes of its explicit pairs."""
        number = {name: k for k, name in enumerate(self._shapes)}
        out: dict[int, list[int]] = {}
        for one, other, _ in self._included:
            i, j = sorted((number[one], number[other]))
            if i != j:
                out.setdefault(i, []).append(j)
        return out

    def _without_routine(self, missing: dict[str, list[str]]) -> None:
        """Report candidate pairs that have no routine: names of pairs by types of shapes."""
        warnings.warn(
            f"'{self.name}': no contact between {', '.join(sorted(missing))}: these pairs have no routine; "
            "exclude them or use other shapes",
            stacklevel=5,
        )

    def _touches_parent(self, body: dict[str, Any]) -> bool:
        own = body["touches_parent"]
        return self.parents_touch if own is None else bool(own)

    def _groups(self) -> Groups:
        """Return the groups of welded bodies."""
        index = {WORLD: -1} | {name: i for i, name in enumerate(self._bodies)}
        shaped = {s["body"] for s in self._shapes.values()}
        bonds = []
        for name, b in self._bodies.items():
            joint = JOINTS[b["joint"]]
            bare = not (b["mass"] or b["inertia"].any() or joint.floating or name in shaped)
            bonds.append(Bond(index[b["parent"]], bool(joint.nv) or b["mocap"], bare))
        return groups(bonds)

    @staticmethod
    def _new(name: str, taken: dict[str, Any], what: str) -> None:
        if not isinstance(name, str) or not name:
            raise ModelError(f"the name of a {what} is a text, not {name!r}")
        if any((ord(c) < 32 and c not in "\t\n\r") or 0xD7FF < ord(c) < 0xE000 for c in name):
            raise ModelError(f"the name {name!r} of a {what} has a character that no file can hold")
        if name in taken:
            raise ModelError(f"two of the {what} names are '{name}'; names are unique")


def _corners(vertices: Any, what: str) -> np.ndarray:
    try:
        corners = np.array(vertices, dtype=np.float64)
    except (TypeError, ValueError):
        corners = np.zeros(0)
    if corners.ndim != 2 or corners.shape[1] != 3 or len(corners) == 0 or not np.isfinite(corners).all():
        raise ModelError(f"vertices of {what} must be (n, 3) finite numbers, n at least 1")
    return corners


def _fluid(fluid: Any, kind: int, size: np.ndarray, what: str) -> tuple[np.ndarray, ...]:
    if kind in (PLANE, HEIGHT_FIELD) or not (np.array(size) > 0).any():
        raise ModelError(
            f"{what}: fluid coefficients need half axes; planes, height fields and points without half_axes have none"
        )
    return tuple(vector(x, n, f"{key} of {what}") for x, key, n in zip(fluid, FLUID, (5, 3, 3), strict=True))


def _surface(surface: Any, what: str) -> Surface:
    if isinstance(surface, Surface):
        return surface
    vertices, faces = (np.ascontiguousarray(x) for x in surface)
    if vertices.ndim != 2 or faces.ndim != 2 or vertices.shape[1] != 3 or faces.shape[1] != 3 or not len(faces):
        raise ModelError(f"the surface of {what} is vertices (n, 3) and faces (n, 3)")
    return Surface(vertices.astype(float), faces.astype(int))


def _grid(heights: Any, base: float, what: str) -> np.ndarray:
    try:
        grid = np.array(heights, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.zeros(0)
    if grid.ndim != 2 or min(grid.shape) < 2 or not np.isfinite(grid).all():
        raise ModelError(f"heights of {what} must be (rows, columns) finite numbers, two of each at least")
    if grid.size > MOST:
        raise ModelError(f"{what} has {grid.size} heights; at most {MOST} are counted")
    if (grid <= -base).any():
        raise ModelError(
            f"heights of {what} go down to {grid.min():g}, and its base is at {-base:g}: make the base deeper"
        )
    return grid


def _condim(condim: Any, what: str) -> int:
    if not is_whole(condim, 1) or condim not in (1, 3, 4, 6):
        raise ModelError(f"condim of {what} is 1, 3, 4 or 6, not {condim!r}")
    return int(condim)


def _mixed(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Mix the parameters of two shapes, as MuJoCo does."""
    margin, gap, both = (a[key] + b[key] for key in ("margin", "gap", "adhesion"))
    if a["priority"] != b["priority"]:
        a = b = a if a["priority"] > b["priority"] else b
        both = a["adhesion"]
    weights = np.array([a["solmix"], b["solmix"]])
    share = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    slide, turn, roll = (max(a[k], b[k]) for k in ("friction", "torsional_friction", "rolling_friction"))
    standard = a["solref"][0] > 0 and b["solref"][0] > 0
    mix = share * a["solref"] + (1 - share) * b["solref"] if standard else np.minimum(a["solref"], b["solref"])
    return {
        "condim": max(a["condim"], b["condim"]),
        "friction": np.array([slide, slide, turn, roll, roll]),
        "solref": mix,
        "solref_friction": np.zeros(2),
        "solimp": share * a["solimp"] + (1 - share) * b["solimp"],
        "margin": margin,
        "gap": gap,
        "adhesion": both,
    }
