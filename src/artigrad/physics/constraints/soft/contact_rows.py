"""Contacts: blocks of three rows (condim 1, 3) or six (condim 4, 6) between two shapes; and the adjoint
(theory 9.7, 9.12, 9.13).

r = gap - margin,     aref = -b J v - k d r on the normal, -b_f J v in directions of friction,     D = d/(1 - d) g
"""

from __future__ import annotations

from typing import Any

from ....compiler import Row, Table, counter, loop, maximum, select, switch, target, to_real, when_any
from ...collision.collide import SLACK
from ...collision.gap import FAR, Gap
from ...context import Step
from ...kinematics import origin
from ...margin import keep_distance
from ...spatial import (
    Force,
    Mat3,
    Vec3,
    at_point,
    contact_frame,
    contact_frame_vjp,
    cross,
    cross_force,
    dot,
    point_velocity,
)
from ..narrowphase import (
    LOST,
    FeatureMargin,
    GapBars,
    contact_gap,
    crowd_gap,
    gap_bars,
    gap_of,
    keep,
    may_touch,
    meet,
    meet_one,
    place_shape,
    place_shapes,
)
from .adhesion import add_pull_bar, along_normal, own_pull, pull_of, reach, rows_of
from .cones import pressed_edges, pressed_edges_kappa, pyramidal_bars
from .families import POINT, WRENCH, Block, velocities
from .impedance import Soft, impedance, impedance_vjp
from .soft_problem import CONTACT, POINTS, TIES, WRENCHES
from .stiff_rows import name_pair, relieve_contact
from .stiffness import Six
from .surfaces import drift, drift_vjp


def touch(s: Step, counts: tuple[counter, ...]) -> None:
    """Blocks of all points within the margins of their pairs. Pairs whose bounding spheres are apart are passed over, and
    crowds of pairs whose boxes are."""
    problem = s.constraints
    if not problem.has("contact", "patch"):
        return
    if not problem.has("crowd"):
        place_shapes(s)
        for k in loop(problem.pairs):
            _look(s, k, counts)
        return
    for n in loop(problem.stretches):
        for _ in when_any(_stretch_gap(s, n) < 0.0):
            for j in loop(problem.stretch_shape[n], problem.stretch_shape[n + 1]):
                place_shape(s, problem.stretch_shapes[j])
            for k in loop(problem.stretch[n], problem.stretch[n + 1]):
                _look(s, k, counts)


def _stretch_gap(s: Step, n: Any) -> Any:
    """Below zero where shapes of a stretch of pairs may touch."""
    problem, m = s.constraints, s.model
    first = problem.stretch[n]

    def crowd() -> Any:
        links = m.shape_link[problem.a[first]], m.shape_link[problem.b[first]]
        gap = crowd_gap(s, problem.stretch_crowd[n] - 1, *links)
        return gap - problem.stretch_reach[n] if s.extras & {"adhesion", "sticky"} else gap

    return switch(problem.stretch_boxed[n], {0: lambda: -FAR, 1: crowd})


def _look(s: Step, k: Any, counts: tuple[counter, ...]) -> None:
    """Blocks of all points of pair k within its margin, or where adhesion may act."""
    problem, ties, margin = s.constraints, counts[TIES], s.const.pair[k].margin + _gap(s, k)
    for _ in when_any(may_touch(s, k, margin)):
        before = counts[POINTS].value + counts[WRENCHES].value
        meet(s, k, margin)
        features = FeatureMargin(s, k, margin, alike=True)
        for m in loop(problem.first_point[k], problem.first_point[k + 1]):
            meet_one(s, k, m, margin)
            found, apart = gap_of(s, k, m)
            beyond = found.phi - s.const.pair[k].margin - reach(s, k)
            if s.bars is not None:  # one that is further from its beginning may have been culled
                keep_distance(s, beyond, (beyond >= 0.0) & (beyond < 0.5 * SLACK[target().dtype]))
            for _ in when_any(found.phi - margin < 0.0):
                features.add(m, beyond < 0.0)
                _by_width(s, k, m, counts, (found, apart))
        features.finish()
        if problem.has("tied"):
            tied = to_real(counts[POINTS].value + counts[WRENCHES].value - before) * to_real(problem.two[k])
            for _ in when_any(tied > 0.5):
                problem.tie_a[ties.value + 1] = s.model.shape_link[problem.a[k]]
                problem.tie_b[ties.value + 1] = s.model.shape_link[problem.b[k]]
                ties.value = ties.value + 1


def _gap(s: Step, k: Any) -> Any:
    """How far beyond the margin of pair k a point still counts, if only as a row without force."""
    return s.constraints.gap[k] if s.extras & {"adhesion", "sticky"} else 0.0


def _by_width(s: Step, k: Any, m: Any, counts: tuple[counter, ...], met: tuple[Gap, Vec3]) -> None:
    """To the family that the pair belongs to."""
    problem = s.constraints
    cases = {
        w: (lambda family=family: _touch(s, family, counts, (k, m), met))
        for w, family, name in ((0, POINT, "contact"), (1, WRENCH, "patch"))
        if problem.has(name)
    }
    switch(problem.wide[k], cases) if len(cases) > 1 else next(iter(cases.values()))()


def _touch(s: Step, family: Block, counts: tuple[counter, ...], which: tuple[Any, Any], met: tuple[Gap, Vec3]) -> None:
    """Point m of pair k becomes a block, if there is room."""
    problem, count, (k, m), (found, apart) = s.constraints, counts[family.index], which, met
    n, pair, two = count.value, s.const.pair[k], problem.two[k]
    r = found.phi - pair.margin
    active, soft = r < reach(s, k), pair.soft
    room = to_real((problem.points if family is POINT else problem.wrenches) - n) > 0.5
    for _ in when_any(room):
        row = getattr(problem, family.name)[n]
        links = {"link_a": s.model.shape_link[problem.a[k]], "link_b": s.model.shape_link[problem.b[k]]}
        values = links | {"of": k, "at": m, "kind": CONTACT, "two": two, "tie": counts[TIES].value + 1}
        for what, value in values.items():
            getattr(problem, f"{family.name}_{what}")[n] = value
        row.p, row.p_a, row.R = found.p, found.p + apart, contact_frame(found.n, found.t)
        row.r, row.slide, row.slide2, row.reg = r, pair.slide, pair.slide2, pair.reg
        d = impedance(soft, r, problem.square).d
        row.D = select(active, d / (1.0 - d) * pair.g, 0.0)
        if family is WRENCH:
            row.E, row.torsion, row.roll, row.roll2, row.D_turn = row.R, pair.torsion, pair.roll, pair.roll2, 0.0
        if "sticky" in s.extras:  # beyond its margin a contact does not rub
            row.D = select(active & (r >= 0.0), d / (1.0 - d) * pair.g_alone, row.D)
            for name in family.rubs:
                setattr(row, name, select(r < 0.0, getattr(row, name), 0.0))
        if problem.has("stiff"):
            name_pair(s, k, relieve_contact(s, family, n, row, pair.g))
        damped = _damped(s, k, _velocity(s, family, n, row, k))
        spring = Vec3(soft.k * d * r, 0.0, 0.0)
        row.ref = -damped - (Six(spring, Vec3.zero()) if family is WRENCH else spring)
        if "sticky" in s.extras:
            row.ref = row.ref + along_normal(family, _lifted(s, family, row, select(active, pair.adhesion, 0.0)))
        if problem.has("tied"):
            for _ in loop(two):
                problem.coupled[0] = maximum(problem.coupled[0], select(active, 1.0, 0.0))
        keep(s, k, m, _number(s, family, n))
        count.value = n + 1
    lost = select(r < _gap(s, k), LOST, problem.status[2])
    problem.status[2] = select(room, problem.status[2], lost)


def _lifted(s: Step, family: Block, row: Row, pull: Any) -> Any:
    """What a pull adds to the reference of the normal: c/D, shared by rows."""
    return pull / (rows_of(s, family, row) * select(row.D > 0.0, row.D, 1.0))


def _number(s: Step, family: Block, n: Any) -> Any:
    """Of a contact among all: points, then wrenches."""
    return n if family is POINT else s.constraints.points + n


def _velocity(s: Step, family: Block, n: Any, row: Row, k: Any) -> Any:
    """What a contact of pair k sees at the start of the step, of bodies and of surfaces that move by themselves."""
    seen = family.seen(s, n, row, velocities(s))
    return seen + drift(s, k, row, family is WRENCH) if "surface" in s.extras else seen


def _damped(s: Step, k: Any, y: Any) -> Any:
    """b y on the normal, b_f y in directions of friction"""
    b, b_friction = s.const.pair[k].soft.b, s.const.pair[k].b_friction
    lin = y.lin if isinstance(y, Six) else y
    out = Vec3(b * lin.x, b_friction * lin.y, b_friction * lin.z)
    return Six(out, y.ang * b_friction) if isinstance(y, Six) else out


# -- forces as an output -------------------------------------------------------------------------------------------------
def report_contact(s: Step, family: Block, n: Any, row: Row, table: Table) -> None:
    """Force on B, place and gap of a contact."""
    problem = s.constraints
    k, link = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_link_b")[n]
    at = table[getattr(problem, f"{family.name}_at")[n]]
    f = _pressing(s, family, n, row)
    f = f.lin if family is WRENCH else f
    there = row.r < reach(s, k)  # or it is a neighbour's in the pack
    at.force, at.point = row.R @ f, select(there, row.p + origin(s, s.model.tree[link]), Vec3.zero())
    at.along, at.normal, at.tangent = f, *(select(there, row.R.column(i), Vec3.zero()) for i in (0, 1))
    if family is WRENCH:
        at.torque = row.R @ row.f.ang
    at.gap = select(there, row.r + s.const.pair[k].margin, FAR)


def _pressing(s: Step, family: Block, n: Any, row: Row) -> Any:
    """The force of a contact, less what it pulls with by itself."""
    return row.f - along_normal(family, own_pull(s, family, n, row)) if "sticky" in s.extras else row.f


def force_cotangent(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Of the forces along the rows, from those of the force in the world and of the report."""
    world, told = _told(s, getattr(s.constraints, f"{family.name}_at")[n])
    f_bar = row.R.T @ world
    if told is not None:
        f_bar = f_bar + told.along
    if family is not WRENCH:
        return f_bar
    return Six(f_bar, Vec3.zero() if told is None else row.R.T @ told.torque)


def _told(s: Step, at: Any) -> tuple[Vec3, Row | None]:
    """The cotangent of the force of a point in the world, and those of its row of the report, if there are any."""
    problem = s.constraints
    if problem.report_bar is None:
        return problem.force_bar.struct(at * 3, Vec3), None
    told = problem.report_bar[at]
    return told.force, told


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def contact_bars(s: Step, family: Block, n: Any, row: Row) -> None:
    """From J nu (row.z, with the cotangent of the force itself), kappa (row.d) and the forces (row.f) of a contact to poses,
    velocities and parameters.

    Three fields of links are paired with forces at the point: nu with f, accelerations with -kappa, velocities with -b kappa.
    """
    problem, wide = s.constraints, family is WRENCH
    k, m = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_at")[n]
    i, j = (getattr(problem, f"{family.name}_link_{side}")[n] for side in "ab")
    pair, R, r = s.const.pair[k], row.R, row.r
    soft, kappa, felt = pair.soft, row.d, row.z
    curve = impedance(soft, r, problem.square)
    d, pressed = curve.d, family.dot(felt, row.f)
    if problem.edges:
        pressed = pressed + _edges_pressed(s, family, n, row)
    normal = kappa.lin.x if wide else kappa.x
    inside = select(r < reach(s, k), 1.0, 0.0)
    if "sticky" in s.extras:
        pressed = pressed - normal * _lifted(s, family, row, own_pull(s, family, n, row))
    d_bar = inside * (pressed / (d * (1.0 - d)) - soft.k * r * normal)
    r_bar = curve.slope * d_bar - inside * (soft.k * d * normal)

    pressing = row.f
    if s.extras & {"adhesion", "sticky"}:
        pull_bar = add_pull_bar(s, family, n, row)
        pressing = row.f - along_normal(family, pull_of(s, family, n, row))
        if "sticky" in s.extras and s.bars.const is not None:
            told_bar = force_cotangent(s, family, n, row) if problem.asked else row.f * 0.0
            told_bar = (told_bar.lin if wide else told_bar).x
            s.bars.const.pair[k].adhesion += inside * (pull_bar - told_bar + normal * _lifted(s, family, row, 1.0))
    fields = (("y", "F", -pressing), ("w", "w_bar", -kappa), ("v", "v_bar", -_damped(s, k, kappa)))

    def side(sign: float, link: Any, p: Vec3) -> tuple[Mat3, Vec3]:
        """Pair the fields with forces on one link; the cotangents of the frame and of the point."""
        frame_bar, p_bar, zeta = Mat3.zero(), Vec3.zero(), Force.zero()
        for field, of_x, y in fields:
            on = s.field[link] if field == "w" else s.link[link]
            x, lin = getattr(on, field), y.lin if wide else y
            force = R @ lin * sign
            wrench = at_point(p, force, R @ y.ang * sign if wide else Vec3.zero())
            setattr(on, of_x, getattr(on, of_x) + wrench)
            zeta, p_bar = zeta + cross_force(x, wrench), p_bar + cross(force, x.w)
            moved = point_velocity(p, x) * sign
            frame_bar = frame_bar + Mat3.columns(moved * lin.x, moved * lin.y, moved * lin.z)
            if wide:
                turned = x.w * sign
                frame_bar = frame_bar + Mat3.columns(turned * y.ang.x, turned * y.ang.y, turned * y.ang.z)
        s.field[link].zeta += zeta
        return frame_bar, p_bar

    def one() -> tuple[Mat3, Vec3, Vec3]:
        frame_bar, p_bar = side(1.0, j, row.p)
        return frame_bar, p_bar, Vec3.zero()

    def both() -> tuple[Mat3, Vec3, Vec3]:
        frame_bar, p_bar = side(1.0, j, row.p)
        more, p_a_bar = side(-1.0, i, row.p_a)
        return frame_bar + more, p_bar, p_a_bar

    frame_bar, p_b_bar, p_a_bar = family.on_links(s, n, one, both)
    if "surface" in s.extras:
        more, more_b, more_a = drift_vjp(s, k, row, -_damped(s, k, kappa))
        frame_bar, p_b_bar, p_a_bar = frame_bar + more, p_b_bar + more_b, p_a_bar + more_a
    gap_bar: Any = 0.0
    if problem.asked:
        net, (f_bar, told) = _pressing(s, family, n, row), _told(s, m)
        f = net.lin if wide else net
        frame_bar = frame_bar + Mat3.columns(f_bar * f.x, f_bar * f.y, f_bar * f.z)
        if told is not None and wide:
            g, t = row.f.ang, told.torque
            frame_bar = frame_bar + Mat3.columns(t * g.x, t * g.y, t * g.z)
        if told is not None:
            frame_bar = frame_bar + Mat3.columns(told.normal * inside, told.tangent * inside, Vec3.zero())
            p_b_bar, gap_bar = p_b_bar + told.point * inside, told.gap * inside
            s.tree[s.model.tree[j]].o_bar += told.point * inside
    found = contact_gap(s, k, m, _number(s, family, n))
    n_bar, t_bar = contact_frame_vjp(found.n, found.t, frame_bar)
    gap_bars(s, (k, m, _number(s, family, n)), GapBars(r_bar + gap_bar, p_a_bar, p_b_bar, n_bar, t_bar))
    if s.bars.const is not None:
        _pair_bars(s, family, n, row, (d_bar, r_bar, d, normal, pressed, inside))


def _pair_bars(s: Step, family: Block, n: Any, row: Row, of: tuple[Any, ...]) -> None:
    """To the numbers of the pair."""
    problem, wide = s.constraints, family is WRENCH
    k = getattr(problem, f"{family.name}_of")[n]
    assert s.bars.const is not None
    pair, bar, (d_bar, r_bar, d, normal, pressed, inside) = s.const.pair[k], s.bars.const.pair[k], of
    rate, kappa = _velocity(s, family, n, row, k), row.d
    lin, rate_lin = (kappa.lin, rate.lin) if wide else (kappa, rate)
    rubbed = lin.y * rate_lin.y + lin.z * rate_lin.z + (dot(kappa.ang, rate.ang) if wide else 0.0)
    bar.soft += impedance_vjp(pair.soft, row.r, problem.square, d_bar) + Soft(
        -(inside * d * row.r * normal), -(normal * rate_lin.x), 0.0, 0.0, 0.0, 0.0, 0.0
    )
    bar.b_friction -= rubbed
    if "sticky" in s.extras:
        rubs = select(row.r < 0.0, 1.0, 0.0)
        bar.g_alone += inside * (1.0 - rubs) * pressed / pair.g_alone
        inside = inside * rubs
    bar.g += inside * pressed / pair.g
    bar.margin -= r_bar
    rub, felt = family.rub(row), row.z.leaves()
    if problem.edges:
        bars = pyramidal_bars(row.y.leaves(), rub, felt, edge_bars(s, family, n))
    else:
        bars = problem.cone.bars(row.y.leaves(), rub, felt)
    for name, more in zip(family.rubs, bars.mu, strict=True):
        setattr(bar, name, getattr(bar, name) + more)
    bar.reg += bars.reg


# -- what edges press with, to which sweeps against creep add cotangents ---------------------------------------------------
def edge_bars(s: Step, family: Block, n: Any) -> list[Any]:
    """The cotangents of what the two edges of a pyramid along each direction of friction press with."""
    problem = s.constraints
    first = getattr(problem, f"{family.name}_slip")[n]
    return [problem.slip[first + d].bound_bar for d in range(len(family.rubs))]


def edges_kappa(s: Step, family: Block, n: Any, row: Row) -> Any:
    """What they add to kappa."""
    found = pressed_edges_kappa(row.y.leaves(), family.rub(row), edge_bars(s, family, n))
    return type(row.f).from_leaves(found)


def _edges_pressed(s: Step, family: Block, n: Any, row: Row) -> Any:
    """And to the cotangent of the stiffness, in which what presses is linear."""
    total: Any = 0.0
    for N, bar in zip(pressed_edges(row.y.leaves(), family.rub(row)), edge_bars(s, family, n), strict=True):
        total = total + N * bar
    return total
