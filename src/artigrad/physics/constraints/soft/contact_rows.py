"""Contact rows, three per point (condim 1, 3) or six (condim 4, 6), and their adjoint  (theory 9.7, 9.12, 9.13).

r = distance - margin,     aref = -b J v - k d r on the normal, -b_f J v in directions of friction,     D = d/(1 -
d) g
"""

from __future__ import annotations

from typing import Any

from ....compiler import Row, Table, counter, loop, maximum, select, switch, target, to_real, when_any
from ...collision.collide import SLACK
from ...collision.contact_geometry import FAR, ContactGeometry
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
from ..broadphase import has_broad_phase, near_pairs
from ..narrowphase import (
    LOST,
    ContactBars,
    FeatureMargin,
    add_contact_bars,
    clear_report,
    collide_pair,
    collide_point,
    may_touch,
    pair_group_distance,
    place_shape,
    place_shapes,
    point_geometry,
    save_contact,
    saved_geometry,
)
from .adhesion import add_pull_bar, adhesion_row_count, along_normal, contact_pull, pull_of, reach
from .cones import pressed_edges, pressed_edges_kappa, pyramidal_bars
from .families import POINT, WRENCH, Block, families, velocities
from .impedance import Soft, impedance, impedance_vjp
from .soft_problem import CONTACT, COUPLINGS, POINTS, WRENCHES
from .stiff_rows import drop_immovable_contact, name_pair
from .stiffness import Six
from .surfaces import drift, drift_vjp


def add_contact_rows(s: Step, counts: tuple[counter, ...]) -> None:
    """Add the rows of all points within the margins of their pairs.

    Pairs whose bounding spheres are apart are skipped, and pair groups whose bounding boxes are.
    """
    problem = s.constraints
    if not problem.has("contact", "patch"):
        return
    if has_broad_phase(s):
        place_shapes(s)
        for k in near_pairs(s, lambda k: s.const.pair[k].margin + _adhesion_gap(s, k)):
            _add_pair_rows(s, k, counts)
        return
    if not problem.has("pair_group"):
        place_shapes(s)
        for k in loop(problem.pairs):
            _add_pair_rows(s, k, counts)
        return
    for n in loop(problem.pair_ranges):
        for _ in when_any(_range_distance(s, n) < 0.0):
            for j in loop(problem.range_shape[n], problem.range_shape[n + 1]):
                place_shape(s, problem.range_shapes[j])
            for k in loop(problem.pair_range[n], problem.pair_range[n + 1]):
                _add_pair_rows(s, k, counts)


def _range_distance(s: Step, n: Any) -> Any:
    """Lower bound of the distances in a range of pairs minus their margins; negative if some pair can touch."""
    problem, m = s.constraints, s.model
    first = problem.pair_range[n]

    def pair_group() -> Any:
        links = m.shape_link[problem.a[first]], m.shape_link[problem.b[first]]
        distance = pair_group_distance(s, problem.range_pair_group[n] - 1, *links)
        return distance - problem.range_reach[n] if s.has("adhesion", "sticky") else distance

    return switch(problem.range_boxed[n], {0: lambda: -FAR, 1: pair_group})


def _add_pair_rows(s: Step, k: Any, counts: tuple[counter, ...]) -> None:
    """Add the rows of all points of pair k within its margin, or within the range of adhesion."""
    problem, couplings, margin = s.constraints, counts[COUPLINGS], s.const.pair[k].margin + _adhesion_gap(s, k)
    for _ in when_any(may_touch(s, k, margin)):
        before = counts[POINTS].value + counts[WRENCHES].value
        collide_pair(s, k, margin)
        features = FeatureMargin(s, k, margin, alike=True)
        for m in loop(problem.first_point[k], problem.first_point[k + 1]):
            collide_point(s, k, m, margin)
            found, apart = point_geometry(s, k, m)
            beyond = found.phi - s.const.pair[k].margin - reach(s, k)
            if s.bars is not None:  # points further away may have been culled
                keep_distance(s, beyond, (beyond >= 0.0) & (beyond < 0.5 * SLACK[target().dtype]))
            for _ in when_any(found.phi - margin < 0.0):
                features.add(m, beyond < 0.0)
                _add_by_condim(s, k, m, counts, (found, apart))
        features.finish()
        if problem.has("couplings"):
            tied = to_real(counts[POINTS].value + counts[WRENCHES].value - before) * to_real(problem.two[k])
            for _ in when_any(tied > 0.5):
                problem.coupling_a[couplings.value + 1] = s.model.shape_link[problem.a[k]]
                problem.coupling_b[couplings.value + 1] = s.model.shape_link[problem.b[k]]
                couplings.value = couplings.value + 1


def _adhesion_gap(s: Step, k: Any) -> Any:
    """Distance beyond the margin of pair k within which a point is kept, if only as a row without force."""
    return s.constraints.gap[k] if s.has("adhesion", "sticky") else 0.0


def _add_by_condim(
    s: Step, k: Any, m: Any, counts: tuple[counter, ...], geometry: tuple[ContactGeometry, Vec3]
) -> None:
    """Add a point to the family of its pair."""
    problem = s.constraints
    cases = {
        w: (lambda family=family: _add_contact(s, family, counts, (k, m), geometry))
        for w, family, name in ((0, POINT, "contact"), (1, WRENCH, "patch"))
        if problem.has(name)
    }
    switch(problem.wide[k], cases)


def _add_contact(
    s: Step, family: Block, counts: tuple[counter, ...], which: tuple[Any, Any], geometry: tuple[ContactGeometry, Vec3]
) -> None:
    """Add point m of pair k as a block, if the buffer has space."""
    problem, count, (k, m), (found, apart) = s.constraints, counts[family.index], which, geometry
    n, pair, two = count.value, s.const.pair[k], problem.two[k]
    r = found.phi - pair.margin
    active, soft = r < reach(s, k), pair.soft
    room = to_real((problem.points if family is POINT else problem.wrenches) - n) > 0.5
    for _ in when_any(room):
        row = getattr(problem, family.name)[n]
        links = {"link_a": s.model.shape_link[problem.a[k]], "link_b": s.model.shape_link[problem.b[k]]}
        values = links | {"of": k, "at": m, "kind": CONTACT, "two": two, "coupling": counts[COUPLINGS].value + 1}
        for what, value in values.items():
            getattr(problem, f"{family.name}_{what}")[n] = value
        row.p, row.p_a, row.R = found.p, found.p + apart, contact_frame(found.n, found.t)
        row.r, row.slide, row.slide2, row.reg = r, pair.slide, pair.slide2, pair.reg
        d = impedance(soft, r, problem.square).d
        row.D = select(active, d / (1.0 - d) * pair.g, 0.0)
        if family is WRENCH:
            row.E, row.torsion, row.roll, row.roll2, row.D_turn = row.R, pair.torsion, pair.roll, pair.roll2, 0.0
        if s.has("sticky"):  # no friction beyond the margin
            row.D = select(active & (r >= 0.0), d / (1.0 - d) * pair.g_alone, row.D)
            for name in family.friction_names:
                setattr(row, name, select(r < 0.0, getattr(row, name), 0.0))
        if problem.has("stiff"):
            size = s.const.shape[problem.a[k]].radius + s.const.shape[problem.b[k]].radius
            name_pair(s, k, drop_immovable_contact(s, family, n, row, pair.g, size))
        damped = _damped(s, k, _velocity(s, family, n, row, k))
        spring = Vec3(soft.k * d * r, 0.0, 0.0)
        row.ref = -damped - (Six(spring, Vec3.zero()) if family is WRENCH else spring)
        if s.has("sticky"):
            row.ref = row.ref + along_normal(family, _lifted(s, family, row, select(active, pair.adhesion, 0.0)))
        if problem.has("couplings"):
            for _ in loop(two):
                problem.coupled[0] = maximum(problem.coupled[0], select(active, 1.0, 0.0))
        save_contact(s, k, m, _number(s, family, n))
        count.value = n + 1
    lost = select(r < _adhesion_gap(s, k), LOST, problem.status[2])
    problem.status[2] = select(room, problem.status[2], lost)


def _lifted(s: Step, family: Block, row: Row, pull: Any) -> Any:
    """Reference acceleration equivalent to a pull c along the normal: c/D, shared by the rows."""
    return pull / (adhesion_row_count(s, family, row) * select(row.D > 0.0, row.D, 1.0))


def _number(s: Step, family: Block, n: Any) -> Any:
    """Index of a contact among all: points, then wrenches."""
    return n if family is POINT else s.constraints.points + n


def _velocity(s: Step, family: Block, n: Any, row: Row, k: Any) -> Any:
    """Relative velocity of a contact of pair k at the start of the step, surface velocities included."""
    seen = family.jacobian_product(s, n, row, velocities(s))
    return seen + drift(s, k, row, family is WRENCH) if s.has("surface") else seen


def _damped(s: Step, k: Any, y: Any) -> Any:
    """Return b y on the normal and b_f y in directions of friction."""
    b, b_friction = s.const.pair[k].soft.b, s.const.pair[k].b_friction
    lin = y.lin if isinstance(y, Six) else y
    out = Vec3(b * lin.x, b_friction * lin.y, b_friction * lin.z)
    return Six(out, y.ang * b_friction) if isinstance(y, Six) else out


# -- forces as an output -------------------------------------------------------------------------------------------------
def report_rows(s: Step, table: Table) -> None:
    """Fill a row of the contact report for every point that may touch."""
    for k in loop(s.constraints.all_points):
        clear_report(table[k], FAR)
    for family in (f for f in families(s) if f in (POINT, WRENCH)):
        for n, row in family.blocks(s):
            fill = lambda family=family, n=n, row=row: report_contact(s, family, n, row, table)  # noqa: E731
            family.by_kind(s, n, fill, lambda: None)


def report_contact(s: Step, family: Block, n: Any, row: Row, table: Table) -> None:
    """Write force on B, point and distance of a contact to the contact output."""
    problem = s.constraints
    k, link = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_link_b")[n]
    at = table[getattr(problem, f"{family.name}_at")[n]]
    f = _pressing(s, family, n, row)
    f = f.lin if family is WRENCH else f
    there = row.r < reach(s, k)  # else it belongs to another SIMD lane
    at.force, at.point = row.R @ f, select(there, row.p + origin(s, s.model.tree[link]), Vec3.zero())
    at.along, at.normal, at.tangent = f, *(select(there, row.R.column(i), Vec3.zero()) for i in (0, 1))
    if family is WRENCH:
        at.torque = row.R @ row.f.ang
    at.gap = select(there, row.r + s.const.pair[k].margin, FAR)


def _pressing(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Force of a contact without its own pull."""
    return row.f - along_normal(family, contact_pull(s, family, n, row)) if s.has("sticky") else row.f


def force_cotangent(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Cotangent of the forces along the rows, from those of the world force and of the contact output."""
    world, output_bar = _force_bars(s, getattr(s.constraints, f"{family.name}_at")[n])
    f_bar = row.R.T @ world
    if output_bar is not None:
        f_bar = f_bar + output_bar.along
    if family is not WRENCH:
        return f_bar
    return Six(f_bar, Vec3.zero() if output_bar is None else row.R.T @ output_bar.torque)


def _force_bars(s: Step, at: Any) -> tuple[Vec3, Row | None]:
    """Return the cotangent of a contact's force (world axes) and of its whole row of the contact output.

    The second is None if the loss has only force cotangents.
    """
    problem = s.constraints
    if problem.report_bar is None:
        return problem.force_bar.struct(at * 3, Vec3), None
    output_bar = problem.report_bar[at]
    return output_bar.force, output_bar


# -- the adjoint -----------------------------------------------------------------------------------------------------------
def contact_bars(s: Step, family: Block, n: Any, row: Row) -> None:
    """Add the cotangents of a contact's pose, velocity and parameters.

    Inputs are J nu plus the cotangent of the force itself (row.z), kappa (row.d) and the forces (row.f). Three fields
    of link motions are paired with forces at the point: nu with f, accelerations with -kappa, velocities with -b kappa.
    """
    problem, wide = s.constraints, family is WRENCH
    k, m = getattr(problem, f"{family.name}_of")[n], getattr(problem, f"{family.name}_at")[n]
    i, j = (getattr(problem, f"{family.name}_link_{side}")[n] for side in "ab")
    pair, R, r = s.const.pair[k], row.R, row.r
    soft, kappa, multiplier = pair.soft, row.d, row.z
    curve = impedance(soft, r, problem.square)
    d, pressed = curve.d, family.dot(multiplier, row.f)
    if problem.edges:
        pressed = pressed + _edges_pressed(s, family, n, row)
    normal = kappa.lin.x if wide else kappa.x
    inside = select(r < reach(s, k), 1.0, 0.0)
    if s.has("sticky"):
        pressed = pressed - normal * _lifted(s, family, row, contact_pull(s, family, n, row))
    d_bar = inside * (pressed / (d * (1.0 - d)) - soft.k * r * normal)
    r_bar = curve.slope * d_bar - inside * (soft.k * d * normal)

    pressing = row.f
    if s.has("adhesion", "sticky"):
        pull_bar = add_pull_bar(s, family, n, row)
        pressing = row.f - along_normal(family, pull_of(s, family, n, row))
        if s.has("sticky") and s.bars.const is not None:
            pull_output_bar = force_cotangent(s, family, n, row) if problem.has_output_bars else row.f * 0.0
            pull_output_bar = (pull_output_bar.lin if wide else pull_output_bar).x
            s.bars.const.pair[k].adhesion += inside * (
                pull_bar - pull_output_bar + normal * _lifted(s, family, row, 1.0)
            )
    fields = (("y", "F", -pressing), ("w", "w_bar", -kappa), ("v", "v_bar", -_damped(s, k, kappa)))

    def side(sign: float, link: Any, p: Vec3) -> tuple[Mat3, Vec3]:
        """Pair the fields with forces on one link; return the cotangents of the frame and of the point."""
        frame_bar, p_bar, zeta = Mat3.zero(), Vec3.zero(), Force.zero()
        for field, of_x, y in fields:
            on = s.field[link] if field == "w" else s.link[link]
            x, lin = getattr(on, field), y.lin if wide else y
            force = R @ lin * sign
            wrench = at_point(p, force, R @ y.ang * sign if wide else Vec3.zero())
            setattr(on, of_x, getattr(on, of_x) + wrench)
            zeta, p_bar = zeta + cross_force(x, wrench), p_bar + cross(force, x.w)
            velocity = point_velocity(p, x) * sign
            frame_bar = frame_bar + Mat3.columns(velocity * lin.x, velocity * lin.y, velocity * lin.z)
            if wide:
                spin = x.w * sign
                frame_bar = frame_bar + Mat3.columns(spin * y.ang.x, spin * y.ang.y, spin * y.ang.z)
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
    if s.has("surface"):
        more, more_b, more_a = drift_vjp(s, k, row, -_damped(s, k, kappa))
        frame_bar, p_b_bar, p_a_bar = frame_bar + more, p_b_bar + more_b, p_a_bar + more_a
    distance_bar: Any = 0.0
    if problem.has_output_bars:
        net, (f_bar, output_bar) = _pressing(s, family, n, row), _force_bars(s, m)
        f = net.lin if wide else net
        frame_bar = frame_bar + Mat3.columns(f_bar * f.x, f_bar * f.y, f_bar * f.z)
        if output_bar is not None and wide:
            g, t = row.f.ang, output_bar.torque
            frame_bar = frame_bar + Mat3.columns(t * g.x, t * g.y, t * g.z)
        if output_bar is not None:
            frame_bar = frame_bar + Mat3.columns(output_bar.normal * inside, output_bar.tangent * inside, Vec3.zero())
            p_b_bar, distance_bar = p_b_bar + output_bar.point * inside, output_bar.gap * inside
            s.tree[s.model.tree[j]].o_bar += output_bar.point * inside
    found = saved_geometry(s, k, m, _number(s, family, n))
    n_bar, t_bar = contact_frame_vjp(found.n, found.t, frame_bar)
    add_contact_bars(
        s, (k, m, _number(s, family, n)), ContactBars(r_bar + distance_bar, p_a_bar, p_b_bar, n_bar, t_bar)
    )
    if s.bars.const is not None:
        _pair_bars(s, family, n, row, (d_bar, r_bar, d, normal, pressed, inside))


def _pair_bars(s: Step, family: Block, n: Any, row: Row, of: tuple[Any, ...]) -> None:
    """Add the cotangents of the pair's parameters."""
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
    if s.has("sticky"):
        friction_names = select(row.r < 0.0, 1.0, 0.0)
        bar.g_alone += inside * (1.0 - friction_names) * pressed / pair.g_alone
        inside = inside * friction_names
    bar.g += inside * pressed / pair.g
    bar.margin -= r_bar
    friction, multiplier = family.friction_row(row), row.z.leaves()
    if problem.edges:
        bars = pyramidal_bars(row.y.leaves(), friction, multiplier, edge_bars(s, family, n))
    else:
        bars = problem.cone.bars(row.y.leaves(), friction, multiplier)
    for name, more in zip(family.friction_names, bars.mu, strict=True):
        setattr(bar, name, getattr(bar, name) + more)
    bar.reg += bars.reg


# -- pressure of pyramid edges, which noslip sweeps differentiate
# -------------------------------------------------------------
def edge_bars(s: Step, family: Block, n: Any) -> list[Any]:
    """Cotangents of the pressure of the two pyramid edges along each direction of friction."""
    problem = s.constraints
    first = getattr(problem, f"{family.name}_slip")[n]
    return [problem.slip[first + d].bound_bar for d in range(len(family.friction_names))]


def edges_kappa(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Contribution of these cotangents to kappa."""
    found = pressed_edges_kappa(row.y.leaves(), family.friction_row(row), edge_bars(s, family, n))
    return type(row.f).from_leaves(found)


def _edges_pressed(s: Step, family: Block, n: Any, row: Row) -> Any:
    """Contribution of these cotangents to that of the stiffness, in which the pressure is linear."""
    total: Any = 0.0
    for N, bar in zip(pressed_edges(row.y.leaves(), family.friction_row(row)), edge_bars(s, family, n), strict=True):
        total = total + N * bar
    return total
