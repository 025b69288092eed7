"""What both laws need of the shapes that may touch: their places, the gaps of their points, and the adjoint of these."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...spatial import Force, Vec3, cross, dot, force_to_child, point_velocity
from ...staging import loop, sqrt
from ..collision.collide import Point, add_vertex_bar, distance, gap, gap_vjp
from ..collision.gap import Gap, PairPoses, Pose
from ..context import Step
from ..kinematics import origin


def place_shapes(s: Step) -> None:
    """The poses of all shapes, once for all their pairs."""
    for k in loop(s.model.nshape):
        s.constraints.placed[k].X = s.link[s.model.shape_link[k]].X @ s.const.shape[k].X


def pair_of(s: Step, k: Any) -> tuple[PairPoses, Vec3]:
    """The shapes of pair k in their places about the origin of B's tree, and that origin minus the one of A's."""
    problem, m = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = m.shape_link[a], m.shape_link[b]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    A, B = problem.placed[a].X, problem.placed[b].X
    return PairPoses(Pose(A.R, A.r - apart), s.const.shape[a].size, Pose(B.R, B.r), s.const.shape[b].size), apart


def point_of(s: Step, m: Any) -> Point:
    """Point m of its pair."""
    problem = s.constraints
    return Point(lambda: problem.feature.struct(m * 3, Vec3), lambda: s.const.vertex[problem.vertex[m]].p)


def lower_bound(s: Step, k: Any) -> Any:
    """Of the gaps of pair k."""
    a, b = s.const.shape[s.constraints.a[k]], s.const.shape[s.constraints.b[k]]
    return distance(s.constraints.routine[k], lambda: pair_of(s, k)[0], a.radius, b.radius)


def gap_of(s: Step, k: Any, m: Any) -> tuple[Gap, Vec3]:
    """The gap of point m of pair k, about the origin of B's tree; and that origin minus the one of A's."""
    pair, apart = pair_of(s, k)
    return gap(s.constraints.routine[k], pair, point_of(s, m)), apart


def slip(s: Step, i: Any, j: Any, p: Vec3, apart: Vec3) -> Vec3:
    """The velocity of link j against link i at p, about the origin of j's tree; apart: that origin minus the one of i's."""
    return point_velocity(p, s.link[j].v) - point_velocity(p + apart, s.link[i].v)


def fastest(s: Step, k: Any) -> Any:
    """An upper bound of the speed at which any point of B moves against A, of pair k."""
    problem, m = s.constraints, s.model
    i, j = m.shape_link[problem.a[k]], m.shape_link[problem.b[k]]
    apart = origin(s, m.tree[j]) - origin(s, m.tree[i])
    centre = slip(s, i, j, problem.placed[problem.b[k]].X.r, apart)
    turn = s.link[j].v.w - s.link[i].v.w
    return sqrt(dot(centre, centre)) + s.const.shape[problem.b[k]].radius * sqrt(dot(turn, turn))


class GapBars(NamedTuple):
    """Cotangents of a contact's gap, of its point seen from both sides, of its normal and of its direction."""

    phi: Any
    p_a: Vec3
    p_b: Vec3
    n: Vec3
    t: Vec3


def gap_bars(s: Step, k: Any, m: Any, bars: GapBars) -> None:
    """From the cotangents of a contact to the poses of its links (zeta, o_bar) and to the places and sizes of its shapes."""
    problem, model = s.constraints, s.model
    a, b = problem.a[k], problem.b[k]
    i, j = model.shape_link[a], model.shape_link[b]
    pair, apart = pair_of(s, k)
    of = gap_vjp(problem.routine[k], pair, point_of(s, m), Gap(bars.phi, bars.p_b + bars.p_a, bars.n, bars.t))
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
        vertices = s.bars.const.vertex
        add_vertex_bar(problem.routine[k], lambda: vertices[problem.vertex[m]], of.at)
