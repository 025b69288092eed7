"""Narrow phase shared by both contact laws: poses of shapes, contact geometry of each candidate point, and its adjoint.

A pair whose routine computes all points jointly fills the slots in `collide_pair`. A point that becomes a contact copies
its slot to `contact_records`, so that the backward pass needs no search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...compiler import Reals, Row, carry, loop, maximum, minimum, select, sqrt, target, to_real, when_any
from ...model.model import BOX, HEIGHT_FIELD, PLANE, POINTS
from ..collision.collide import (
    SLACK,
    PairPoint,
    PairRoutine,
    add_corner_bars,
    bounding_distance,
    collide,
    collide_one,
    contact_geometry,
    contact_geometry_vjp,
    pair_margin,
    point_margin,
    save_if_joint,
    symmetric_margin,
)
from ..collision.contact_geometry import ContactGeometry, PairPoses, Pose
from ..collision.convex.contact_record import CornerBars
from ..collision.convex.height_field import Grid, field_bars
from ..collision.convex.hull_tables import WAYS, PlacedHull
from ..collision.convex.least_overlap import box_axis
from ..collision.convex.solids import SOLIDS, Solid
from ..collision.routines import ROUTINES, Routine
from ..context import Step
from ..kinematics import origin
from ..margin import keep_distance
from ..spatial import Force, Vec3, cross, dot, force_to_child, point_velocity
from ..tables import Constants

LOST = 1e7  # status of a batch element whose contact buffer overflowed; smaller numbers count pairs, see `name_pair`


def place_shapes(s: Step) -> None:
    """Compute the poses of all shapes, once for all pairs."""
    for k in loop(s.model.nshape):
        place_shape(s, k)


def place_shape(s: Step, k: Any) -> None:
    """Compute the pose of shape k."""
    i = s.model.shape_link[k]
    X, row = s.link[i].X @ s.const.shape[k].X, s.constraints.placed[k]
    row.X, row.at = X, X.r + origin(s, s.model.tree[i])


def pair_group_distance(s: Step, n: Any, i: Any, j: Any) -> Any:
    """Lower bound of the distances of pair group n minus margins, from the bounding boxes of its shapes on links i and j."""
    pair_group, nothing = s.const.pair_group[n], Vec3.zero()

    def box(link: Any, center: Vec3, extent: Vec3) -> Solid:
        X = s.link[link].X
        at = Pose(X.R, X.r + origin(s, s.model.tree[link]))
        return Solid(BOX, frozenset({BOX}), extent, at, center, extent, nothing, None)

    box_a, box_b = box(i, pair_group.a_center, pair_group.a_extent), box(j, pair_group.b_center, pair_group.b_extent)
    return box_axis(box_a, box_b)[0] - SLACK[target().dtype]


def pair_of(s: Step, k: Any) -> tuple[PairPoses, Vec3]:
    """Return the poses and sizes of pair k about the origin of B's tree, and that origin minus the one of A's tree."""
    problem, m = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = m.shape_link[a], m.shape_link[b]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    A, B = problem.placed[a].X, problem.placed[b].X
    return PairPoses(Pose(A.R, A.r - apart), s.const.shape[a].size, Pose(B.R, B.r), s.const.shape[b].size), apart


def solids_of(s: Step, k: Any, routine: Routine) -> tuple[Any, Any]:
    """Return the shapes of pair k about the origin of B's tree as support functions; a height field as its grid."""
    problem, (pair, _) = s.constraints, pair_of(s, k)

    def solid(i: Any, X: Pose, later: Any) -> Solid:
        row = s.const.shape[i]
        box = row.center, row.extent, row.inner
        return Solid(s.model.shape_kind[i], problem.solids, row.size, X, *box, _hull(s, i), later)

    def grid(i: Any, X: Pose, later: Any) -> Grid:
        m, size = s.model, s.const.shape[i].size
        rows, cols = m.shape_rows[i], m.shape_cols[i]
        return Grid(X, size, to_real(rows), to_real(cols), _heights(s.const, m.shape_height[i]), rows * cols)

    fields = [k == HEIGHT_FIELD for k in routine.shapes]
    one, other = (grid if field else solid for field in fields)
    swapped = to_real(problem.swapped[k])
    return one(problem.a[k], pair.A, swapped), other(problem.b[k], pair.B, 1.0 - swapped)


def _hull(s: Step, i: Any) -> PlacedHull | None:
    """Hull of shape i; None if no shape has one."""
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
    """Heights of a field, beginning with index `first`."""
    return Reals(constants.height.memory, constants.height.start + first)


def pair_point(s: Step, k: Any, m: Any, record: Callable[[Routine], Row]) -> PairPoint:
    """Return candidate point m of pair k. record: returns its record for a routine."""
    problem = s.constraints
    return PairPoint(
        lambda: problem.feature.struct(m * 3, Vec3),
        record,
        lambda routine: solids_of(s, k, routine),
    )


def _new_point(s: Step, k: Any, m: Any) -> PairPoint:
    """Candidate point m of pair k with the record just computed."""
    problem = s.constraints
    return pair_point(s, k, m, lambda routine: problem.slots.rows[0 if routine.each else m - problem.first_point[k]])


def pair_routine(s: Step, k: Any) -> PairRoutine:
    """Routine of pair k."""
    return PairRoutine(s.constraints.routine[k], s.constraints.routines)


def may_touch(s: Step, k: Any, near: Any) -> Any:
    """Return True if the shapes of pair k may be nearer than `near`, m."""
    a, b = s.constraints.a[k], s.constraints.b[k]

    def place() -> tuple[Pose, Pose]:
        A, B = s.constraints.placed[a], s.constraints.placed[b]
        return Pose(A.X.R, A.at), Pose(B.X.R, B.at)

    return bounding_distance(pair_routine(s, k), place, s.const.shape[a], s.const.shape[b], near) < 0.0


def collide_pair(s: Step, k: Any, near: Any) -> None:
    """Compute all points of pair k nearer than `near`, m, if its routine computes them jointly."""
    choice = pair_routine(s, k)
    if choice.has_collide:
        collide(choice, lambda routine: solids_of(s, k, routine), near, s.constraints.slots)


def collide_point(s: Step, k: Any, m: Any, near: Any) -> None:
    """Compute point m of pair k, if its routine computes points one at a time."""
    collide_one(pair_routine(s, k), _new_point(s, k, m), near, s.constraints.slots)


def save_contact(s: Step, k: Any, m: Any, n: Any) -> None:
    """Copy the record of point m of pair k to contact n."""
    problem = s.constraints

    def copy(routine: Routine) -> None:
        source, to = _new_point(s, k, m).record(routine), problem.contact_records[n]
        for name in routine.kept:
            setattr(to, name, getattr(source, name))

    if pair_routine(s, k).has_collide:
        save_if_joint(pair_routine(s, k), copy)


class FeatureMargin:
    """Distance of a touching pair to a change of its contact features, recorded in backward passes.

    It is evaluated for each point if the points are computed one at a time, else once for the pair; never for pairs that do
    not touch.

    Args:
        s: Step.
        k: Pair.
        near: Distance below which points count, m.
        alike: True if the rows of points are compared later, by `symmetric_points_margin`.
    """

    def __init__(self, s: Step, k: Any, near: Any, alike: bool = False):
        self.s, self.k, self.near, self.has_collide, self.alike = s, k, near, pair_routine(s, k).has_collide, alike
        self.touched = carry(0.0 * near) if s.bars is not None else None

    def add(self, m: Any, touches: Any) -> None:
        """Add point m of the pair, just computed. touches: whether it touches."""
        s, k = self.s, self.k
        if self.touched is not None:
            margin = point_margin(
                pair_routine(s, k), pair_of(s, k)[0], _new_point(s, k, m), self.near, s.constraints.slots
            )
            keep_distance(s, margin if self.alike else minimum(margin, symmetric_points_margin(s, k)[0]), touches)
            self.touched.value = maximum(self.touched.value, select(touches, 1.0, 0.0))

    def finish(self) -> None:
        """Finish the pair after all its points."""
        s, k = self.s, self.k
        if self.touched is not None and self.has_collide:
            touched = self.touched.value > 0.5
            for _ in when_any(touched):
                margin = pair_margin(
                    pair_routine(s, k), lambda routine: solids_of(s, k, routine), self.near, s.constraints.slots
                )
                keep_distance(s, margin, touched)


def has_symmetric_points(s: Step) -> bool:
    """Return True if a pair may have points whose rows must be compared."""
    return any(ROUTINES[k].symmetric_margin for k in s.constraints.routines)


def symmetric_points_margin(s: Step, k: Any) -> tuple[Any, Any]:
    """Distance, m, of pair k to a change of features without effect if the rows of its points are equal, and their number."""
    return symmetric_margin(pair_routine(s, k), pair_of(s, k)[0])


def point_geometry(s: Step, k: Any, m: Any) -> tuple[ContactGeometry, Vec3]:
    """Contact geometry of point m of pair k about the origin of B's tree, and that origin minus the one of A's tree."""
    pair, apart = pair_of(s, k)
    return contact_geometry(pair_routine(s, k), pair, _new_point(s, k, m)), apart


def saved_geometry(s: Step, k: Any, m: Any, n: Any) -> ContactGeometry:
    """Return the stored contact geometry of point m of pair k, which is contact n."""
    return contact_geometry(
        pair_routine(s, k), pair_of(s, k)[0], pair_point(s, k, m, lambda _: s.constraints.contact_records[n])
    )


def relative_velocity(s: Step, i: Any, j: Any, p: Vec3, apart: Vec3) -> Vec3:
    """Velocity of link j relative to link i at p, about the origin of j's tree. apart: that origin minus the one of i's."""
    return point_velocity(p, s.link[j].v) - point_velocity(p + apart, s.link[i].v)


def max_relative_speed(s: Step, k: Any) -> Any:
    """Upper bound of the relative speed of the shapes of pair k: over all of B, or over all of A if B is a plane."""
    problem, m = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = m.shape_link[a], m.shape_link[b]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    turn = s.link[j].v.w - s.link[i].v.w

    def around(p: Vec3, radius: Any) -> Any:
        center = relative_velocity(s, i, j, p, apart)
        return sqrt(dot(center, center)) + radius * sqrt(dot(turn, turn))

    def around_a() -> Any:
        return around(problem.placed[a].X.r - apart, s.const.shape[a].radius)

    def around_b() -> Any:
        return around(problem.placed[b].X.r, s.const.shape[b].radius)

    choice = pair_routine(s, k)
    if all(ROUTINES[r].shapes[1] != PLANE for r in choice.among):
        return around_b()
    return choice.switch(lambda routine: around_a if routine.shapes[1] == PLANE else around_b)


class ContactBars(NamedTuple):
    """Cotangents of a contact's geometry: distance, point as part of A and of B, normal, and tangent."""

    phi: Any
    p_a: Vec3
    p_b: Vec3
    n: Vec3
    t: Vec3


def add_contact_bars(s: Step, which: tuple[Any, Any, Any], bars: ContactBars) -> None:
    """Add the cotangents of a contact to those of its links' poses (zeta, o_bar) and of its shapes' poses and sizes.

    which: pair, point and index of the contact.
    """
    problem, model, (k, m, n) = s.constraints, s.model, which
    if not problem.routines:  # only rows of joints: there are no contacts
        return
    a, b = problem.a[k], problem.b[k]
    i, j = model.shape_link[a], model.shape_link[b]
    pair, apart = pair_of(s, k)
    point = pair_point(s, k, m, lambda _: problem.contact_records[n])
    y_bar = ContactGeometry(bars.phi, bars.p_b + bars.p_a, bars.n, bars.t)
    of = contact_geometry_vjp(pair_routine(s, k), pair, point, y_bar)
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
            pair_routine(s, k),
            point,
            y_bar,
            lambda side, solid, corners: _add_corners(s, (a, b)[side], solid, corners),
            lambda side, field, corners: _add_heights(s, (a, b)[side], field, corners),
        )


def _add_heights(s: Step, shape: Any, field: Grid, corners: CornerBars) -> None:
    """Add to the cotangents of heights and size of a field."""
    bars = s.bars.const
    assert bars is not None
    bars.shape[shape].size += field_bars(field, corners, _heights(bars, s.model.shape_height[shape]))


def _add_corners(s: Step, shape: Any, solid: Solid, corners: CornerBars) -> None:
    """Add to the cotangents of a hull's vertices. Their indices differ between SIMD lanes."""
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

    if solid.among.isdisjoint(SOLIDS):  # hulls touch planes only
        add()
    else:
        idle: dict[int, Callable[[], None]] = {k: lambda: None for k in SOLIDS}
        solid.by_kind(idle | {POINTS: add})


def clear_report(row: Row, gap: Any) -> None:
    """Fill a row of the contact report of a point that does not touch."""
    row.force, row.point, row.gap = Vec3.zero(), Vec3.zero(), gap
    row.along, row.normal, row.torque, row.tangent = (Vec3.zero() for _ in range(4))
