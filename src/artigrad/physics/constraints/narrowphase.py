"""What both laws need of the shapes that may touch: their places, the gaps of their points, and the adjoint of these.

Pairs whose points are found together fill the slots of `meet` first; a point that becomes a contact keeps its row of `met`, so
that the backward pass has nothing to search for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...compiler import Reals, Row, carry, loop, maximum, minimum, select, sqrt, target, to_real, when_any
from ...model.model import BOX, HEIGHT_FIELD, PLANE, POINTS
from ..collision.collide import (
    SLACK,
    Kind,
    Point,
    add_corner_bars,
    alike_room,
    collide,
    collide_one,
    gap,
    gap_vjp,
    out_of_reach,
    pair_room,
    point_room,
    when_together,
)
from ..collision.convex.contact_record import CornerBars
from ..collision.convex.height_field import Grid, field_bars
from ..collision.convex.hull_tables import WAYS, PlacedHull
from ..collision.convex.least_overlap import box_axis
from ..collision.convex.solids import SOLIDS, Solid
from ..collision.gap import Gap, PairPoses, Pose
from ..collision.routines import ROUTINES, Routine
from ..context import Step
from ..kinematics import origin
from ..margin import keep_distance
from ..spatial import Force, Vec3, cross, dot, force_to_child, point_velocity
from ..tables import Constants

LOST = 1e7  # status of a robot with a contact that found no place; smaller numbers count pairs, see `name_pair`


def place_shapes(s: Step) -> None:
    """The poses of all shapes, once for all their pairs."""
    for k in loop(s.model.nshape):
        place_shape(s, k)


def place_shape(s: Step, k: Any) -> None:
    """The pose of one shape."""
    i = s.model.shape_link[k]
    X, row = s.link[i].X @ s.const.shape[k].X, s.constraints.placed[k]
    row.X, row.at = X, X.r + origin(s, s.model.tree[i])


def crowd_gap(s: Step, n: Any, i: Any, j: Any) -> Any:
    """Below zero where shapes of a crowd may be nearer than their margins, by the boxes around those on link i, on link j."""
    crowd, nothing = s.const.crowd[n], Vec3.zero()

    def box(link: Any, centre: Vec3, extent: Vec3) -> Solid:
        X = s.link[link].X
        at = Pose(X.R, X.r + origin(s, s.model.tree[link]))
        return Solid(BOX, frozenset({BOX}), extent, at, centre, extent, nothing, None)

    gap, _ = box_axis(box(i, crowd.a_centre, crowd.a_extent), box(j, crowd.b_centre, crowd.b_extent))
    return gap - SLACK[target().dtype]


def pair_of(s: Step, k: Any) -> tuple[PairPoses, Vec3]:
    """The shapes of pair k in their places about the origin of B's tree, and that origin minus the one of A's."""
    problem, m = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = m.shape_link[a], m.shape_link[b]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    A, B = problem.placed[a].X, problem.placed[b].X
    return PairPoses(Pose(A.R, A.r - apart), s.const.shape[a].size, Pose(B.R, B.r), s.const.shape[b].size), apart


def solids_of(s: Step, k: Any, routine: Routine) -> tuple[Any, Any]:
    """The shapes of pair k in the same places, as support functions see them; a height field as its grid."""
    problem, (pair, _) = s.constraints, pair_of(s, k)

    def solid(i: Any, X: Pose, later: Any) -> Solid:
        row = s.const.shape[i]
        box = row.centre, row.extent, row.inner
        return Solid(s.model.shape_kind[i], problem.solids, row.size, X, *box, _hull(s, i), later)

    def grid(i: Any, X: Pose, later: Any) -> Grid:
        m, size = s.model, s.const.shape[i].size
        rows, cols = m.shape_rows[i], m.shape_cols[i]
        return Grid(X, size, to_real(rows), to_real(cols), _heights(s.const, m.shape_height[i]), rows * cols)

    fields = [k == HEIGHT_FIELD for k in routine.shapes]
    one, other = (grid if field else solid for field in fields)
    turned = to_real(problem.turned[k])
    return one(problem.a[k], pair.A, turned), other(problem.b[k], pair.B, 1.0 - turned)


def _hull(s: Step, i: Any) -> PlacedHull | None:
    """Of shape i; None if no shape has one."""
    p, vertex, face = s.constraints, s.const.vertex, s.const.face
    if not p.solids & WAYS:
        return None
    first, first_face = s.model.shape_vertex[i], p.hull_first_face[i]
    return PlacedHull(
        table=p.hull,
        size=p.hull_size,
        starts=p.hull_starts[i],
        edges=p.hull_edges[i],
        degree=p.hull_degree[i],
        around=p.hull_around[i],
        most_around=p.hull_most_around[i],
        faces=p.hull_faces[i],
        most_corners=p.hull_most_corners[i],
        large=p.hull_large[i],
        ways=p.solids & WAYS,
        vertices=Reals(vertex.memory, vertex.start + first * 3),
        count=s.model.shape_vertex[i + 1] - first,
        normals=Reals(face.memory, face.start + first_face * 3),
        face_count=p.hull_first_face[i + 1] - first_face,
    )


def _heights(constants: Constants, first: Any) -> Reals:
    """Those of a field, from its first one on."""
    return Reals(constants.height.memory, constants.height.start + first)


def point_of(s: Step, k: Any, m: Any, met: Callable[[Routine], Row]) -> Point:
    """Point m of pair k, and where it is that something was met there."""
    problem = s.constraints
    return Point(
        lambda: problem.feature.struct(m * 3, Vec3),
        met,
        lambda routine: solids_of(s, k, routine),
    )


def _new_point(s: Step, k: Any, m: Any) -> Point:
    """Point m of pair k, which was met just now."""
    problem = s.constraints
    return point_of(s, k, m, lambda routine: problem.slots.rows[0 if routine.each else m - problem.first_point[k]])


def kind_of(s: Step, k: Any) -> Kind:
    """The routine of pair k."""
    return Kind(s.constraints.routine[k], s.constraints.routines)


def may_touch(s: Step, k: Any, near: Any) -> Any:
    """Where the shapes of pair k may be nearer than `near`."""
    a, b = s.constraints.a[k], s.constraints.b[k]

    def place() -> tuple[Pose, Pose]:
        A, B = s.constraints.placed[a], s.constraints.placed[b]
        return Pose(A.X.R, A.at), Pose(B.X.R, B.at)

    return out_of_reach(kind_of(s, k), place, s.const.shape[a], s.const.shape[b], near) < 0.0


def meet(s: Step, k: Any, near: Any) -> None:
    """All points of pair k that are nearer than `near` at once, if they are found together."""
    kind = kind_of(s, k)
    if kind.together:
        collide(kind, lambda routine: solids_of(s, k, routine), near, s.constraints.slots)


def meet_one(s: Step, k: Any, m: Any, near: Any) -> None:
    """Point m of pair k, if its points are found one by one."""
    collide_one(kind_of(s, k), _new_point(s, k, m), near, s.constraints.slots)


def keep(s: Step, k: Any, m: Any, n: Any) -> None:
    """What was met at point m of pair k belongs to contact n from now on."""
    problem = s.constraints

    def copy(routine: Routine) -> None:
        source, to = _new_point(s, k, m).met(routine), problem.met[n]
        for name in routine.kept:
            setattr(to, name, getattr(source, name))

    if kind_of(s, k).together:
        when_together(kind_of(s, k), copy)


class FeatureMargin:
    """In a backward pass, the distance of a pair that touches to where other features touch: of each point of its own where
    points are found one by one, of the pair once where they are found together. Pairs that do not touch cost nothing. alike:
    whether rows of points are compared later, by `alike_distance`."""

    def __init__(self, s: Step, k: Any, near: Any, alike: bool = False):
        self.s, self.k, self.near, self.together, self.alike = s, k, near, kind_of(s, k).together, alike
        self.touched = carry(0.0 * near) if s.bars is not None else None

    def add(self, m: Any, touches: Any) -> None:
        """Point m of the pair, which was found just now."""
        s, k = self.s, self.k
        if self.touched is not None:
            room = point_room(kind_of(s, k), pair_of(s, k)[0], _new_point(s, k, m), self.near, s.constraints.slots)
            keep_distance(s, room if self.alike else minimum(room, alike_distance(s, k)[0]), touches)
            self.touched.value = maximum(self.touched.value, select(touches, 1.0, 0.0))

    def finish(self) -> None:
        """After all points of the pair."""
        s, k = self.s, self.k
        if self.touched is not None and self.together:
            touched = self.touched.value > 0.5
            for _ in when_any(touched):
                room = pair_room(
                    kind_of(s, k), lambda routine: solids_of(s, k, routine), self.near, s.constraints.slots
                )
                keep_distance(s, room, touched)


def compares(s: Step) -> bool:
    """Whether some pair may have rows to be compared."""
    return any(ROUTINES[k].alike for k in s.constraints.routines)


def alike_distance(s: Step, k: Any) -> tuple[Any, Any]:
    """Distance of pair k to a change of its points that changes nothing where their rows are alike, m; and how many points
    there must be for that."""
    return alike_room(kind_of(s, k), pair_of(s, k)[0])


def gap_of(s: Step, k: Any, m: Any) -> tuple[Gap, Vec3]:
    """The gap of point m of pair k, about the origin of B's tree; and that origin minus the one of A's."""
    pair, apart = pair_of(s, k)
    return gap(kind_of(s, k), pair, _new_point(s, k, m)), apart


def contact_gap(s: Step, k: Any, m: Any, n: Any) -> Gap:
    """The gap of point m of pair k, which is contact n."""
    return gap(kind_of(s, k), pair_of(s, k)[0], point_of(s, k, m, lambda _: s.constraints.met[n]))


def slip(s: Step, i: Any, j: Any, p: Vec3, apart: Vec3) -> Vec3:
    """The velocity of link j against link i at p, about the origin of j's tree; apart: that origin minus the one of i's."""
    return point_velocity(p, s.link[j].v) - point_velocity(p + apart, s.link[i].v)


def fastest(s: Step, k: Any) -> Any:
    """An upper bound of the speed at which B moves against A where they may touch, of pair k: all over B, or all over A where B
    is a plane, which has no end."""
    problem, m = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = m.shape_link[a], m.shape_link[b]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    turn = s.link[j].v.w - s.link[i].v.w

    def around(p: Vec3, radius: Any) -> Any:
        centre = slip(s, i, j, p, apart)
        return sqrt(dot(centre, centre)) + radius * sqrt(dot(turn, turn))

    def around_a() -> Any:
        return around(problem.placed[a].X.r - apart, s.const.shape[a].radius)

    def around_b() -> Any:
        return around(problem.placed[b].X.r, s.const.shape[b].radius)

    kind = kind_of(s, k)
    if all(ROUTINES[r].shapes[1] != PLANE for r in kind.among):
        return around_b()
    return kind.switch(lambda routine: around_a if routine.shapes[1] == PLANE else around_b)


class GapBars(NamedTuple):
    """Cotangents of a contact's gap, of its point seen from both sides, of its normal and of its direction."""

    phi: Any
    p_a: Vec3
    p_b: Vec3
    n: Vec3
    t: Vec3


def gap_bars(s: Step, which: tuple[Any, Any, Any], bars: GapBars) -> None:
    """From the cotangents of a contact to the poses of its links (zeta, o_bar) and to the places and sizes of its shapes.
    which: its pair, its point, and its number."""
    problem, model, (k, m, n) = s.constraints, s.model, which
    if not problem.routines:  # rows of joints alone: no contact is ever asked
        return
    a, b = problem.a[k], problem.b[k]
    i, j = model.shape_link[a], model.shape_link[b]
    pair, apart = pair_of(s, k)
    point = point_of(s, k, m, lambda _: problem.met[n])
    y_bar = Gap(bars.phi, bars.p_b + bars.p_a, bars.n, bars.t)
    of = gap_vjp(kind_of(s, k), pair, point, y_bar)
    on_a = Force(of.A.n + cross(apart, of.A.f), of.A.f)
    s.field[j].zeta += of.B
    s.field[i].zeta += on_a
    s.tree[model.tree[j]].o_bar += bars.p_a - of.A.f
    s.tree[model.tree[i]].o_bar += of.A.f - bars.p_a
    if s.bars.const is not None:
        bar_a, bar_b = s.bars.const.shape[a], s.bars.const.shape[b]
        bar_a.X += force_to_child(problem.placed[a].X, on_a)
        bar_b.X += force_to_child(problem.placed[b].X, of.B)
        bar_a.size += of.size_a
        bar_b.size += of.size_b
        add_corner_bars(
            kind_of(s, k),
            point,
            y_bar,
            lambda side, solid, corners: _add_corners(s, (a, b)[side], solid, corners),
            lambda side, field, corners: _add_heights(s, (a, b)[side], field, corners),
        )


def _add_heights(s: Step, shape: Any, field: Grid, corners: CornerBars) -> None:
    """To the heights and the size of a field."""
    bars = s.bars.const
    assert bars is not None
    bars.shape[shape].size += field_bars(field, corners, _heights(bars, s.model.shape_height[shape]))


def _add_corners(s: Step, shape: Any, solid: Solid, corners: CornerBars) -> None:
    """To the vertices of a hull: which ones these are differs from robot to robot."""
    assert s.bars.const is not None
    vertex, first = s.bars.const.vertex, s.model.shape_vertex
    own = Reals(vertex.memory, vertex.start + first[shape] * 3)

    def add_one(number: Any, bar: Vec3) -> None:
        own.scatter_add_row(number, first[shape + 1] - first[shape], bar)

    def add() -> None:
        for number, bar in zip(corners.number, corners.bar, strict=True):
            add_one(number, bar)
        if corners.face is not None:
            n_bar = corners.normal_bar
            for _ in when_any(dot(n_bar, n_bar) > 0.0):
                solid.hull.normal_vjp(corners.face, n_bar, add_one)

    if solid.among.isdisjoint(SOLIDS):  # hulls are met by planes alone
        add()
    else:
        idle: dict[int, Callable[[], None]] = {k: lambda: None for k in SOLIDS}
        solid.by_kind(idle | {POINTS: add})
